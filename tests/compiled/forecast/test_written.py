"""Files of predictions: whole, written once, refused if edited; hashes that follow the code."""

import pytest

from benchmarks.forecast import written
from benchmarks.forecast.written import read, write
from gemmlab.measure.records import RecordError

ROWS = [{"kernel": "a", "seconds": 1 / 3, "times": {"sm": 2 / 3}}, {"kernel": "b", "seconds": 1.0}]


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "gpu" / "file.json"
    write(path, {"date": "today"}, ROWS)
    return path


def test_what_is_written_is_read_with_six_digits(path):
    found = read(path)
    assert found.provenance == {"date": "today"}
    first = {"kernel": "a", "seconds": 0.333333, "times": {"sm": 0.666667}}
    assert found.rows == (first, ROWS[1])
    assert len(path.read_text("utf-8").splitlines()) == 5 + len(ROWS)


def test_what_is_written_stays(path):
    with pytest.raises(FileExistsError):
        write(path, {"date": "tomorrow"}, ROWS)


@pytest.mark.parametrize(("old", "new"), [("0.333333", "0.4"), ("today", "before")])
def test_an_edited_file_is_refused(path, old, new):
    path.write_text(path.read_text("utf-8").replace(old, new), "utf-8")
    with pytest.raises(RecordError, match="edited"):
        read(path)


def test_hashes_follow_facts_and_code(monkeypatch):
    assert written.facts_sha256("h200") != written.facts_sha256("h100_sxm")
    before = written.predictor_sha256()
    assert "gemmlab.compiled.sm.schedule" in written._modules()
    monkeypatch.setattr(written, "PREDICTOR", ("sm",))
    assert written.predictor_sha256() != before


def test_nothing_is_stored_of_a_device_that_nobody_predicted():
    assert written.stored("v100", "others_predicted") is None
