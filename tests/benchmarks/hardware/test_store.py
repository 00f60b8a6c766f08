"""Results come back from files as they were written."""

import numpy as np
import pytest

from benchmarks.hardware import store
from benchmarks.hardware.check import Result
from gemmlab.measure.store import RecordError

ORIGIN = {"device": "a GPU", "date": "2026-01-01"}
pytestmark = pytest.mark.measuring


def test_results_come_back_as_they_were(tmp_path):
    words = np.arange(6, dtype=np.uint16).reshape(2, 3)
    results = [
        Result("a piece, 1", {"x": words, "k": np.array(2, np.float32), "n": 3}, ORIGIN, 7, 0),
        Result("another", {"lists": [[1], [2, 3]]}, ORIGIN, 1, 1, 0.5, ("it differs",)),
        Result("none", left_out="it needs more"),
    ]
    store.write(tmp_path / "folder" / "check", results)
    found = store.read(tmp_path / "folder" / "check")
    assert list(found) == [r.piece for r in results]
    for result in results:
        back = found[result.piece]
        assert set(back.measured) == set(result.measured)
        for key, value in result.measured.items():
            if isinstance(value, np.ndarray):
                assert back.measured[key].dtype == value.dtype
                assert np.array_equal(back.measured[key], value)
            else:
                assert back.measured[key] == value
        for name in ("origin", "compared", "differing", "seconds", "texts", "left_out"):
            assert getattr(back, name) == getattr(result, name)


def test_what_is_written_again_keeps_no_older_array(tmp_path):
    store.write(tmp_path / "check", [Result("a", {"x": np.ones(2)})])
    store.write(tmp_path / "check", [Result("b")])
    assert store.read(tmp_path / "check") == {"b": Result("b")}


def test_nothing_is_found_where_nothing_was_written(tmp_path):
    assert store.read(tmp_path / "check") == {}
    assert store.recorded("no_such_device", "counters") == {}


def test_a_line_is_there_only_with_its_arrays(tmp_path, monkeypatch):
    def broken(*args, **arrays):
        raise KeyboardInterrupt

    monkeypatch.setattr(np, "savez_compressed", broken)
    with pytest.raises(KeyboardInterrupt):
        store.write(tmp_path / "check", [Result("a", {"x": np.ones(2)})])
    assert store.read(tmp_path / "check") == {}


def test_edited_rows_and_arrays_are_refused(tmp_path):
    path = tmp_path / "check"
    store.write(path, [Result("a", {"x": np.ones(2), "n": 3}, ORIGIN)])
    file, archive = store.files(path)
    text = file.read_text("utf-8")
    file.write_text(text.replace('"n":3', '"n":4'), "utf-8")
    with pytest.raises(RecordError, match=r"check\.json: edited"):
        store.read(path)
    file.write_text(text, "utf-8")
    np.savez_compressed(archive, **{"a/x": np.zeros(2)})
    with pytest.raises(RecordError, match=r"check\.npz: edited"):
        store.read(path)
