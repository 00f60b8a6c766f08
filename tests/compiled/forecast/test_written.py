"""Files of predictions: whole, written once, refused if edited; hashes that follow the code."""

from statistics import mean

import pytest

from benchmarks.forecast import published, written
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


def test_times_that_others_published_stand_beside_what_was_predicted():
    """At least 25 on three cards that are not lent, within a quarter on average: the step's aim."""
    found = published.published()
    cards = {one.source.device for one in found}
    assert len(found) >= 25
    assert len(cards) >= 3
    assert not cards & {"h200", "h100_sxm"}
    assert {one.since is None for one in found} == {False}
    assert mean(map(abs, published.errors(found))) <= 0.25
    assert mean(map(abs, published.errors(found, since=False))) <= 0.25
    for source in published.sources():
        assert len(source.commit) == 40, source.key
        assert source.address.startswith("github.com/"), source.key


def test_a_prediction_of_what_nobody_published_is_refused(monkeypatch):
    rows = ({"source": "nobody", "name": "1", "seconds": 1.0, "by": "sm"},)
    monkeypatch.setattr(published, "predictions", lambda name: written.Written({}, rows))
    with pytest.raises(ValueError, match=r"published by nobody: \[\('nobody', '1'\)\]"):
        published.published()
