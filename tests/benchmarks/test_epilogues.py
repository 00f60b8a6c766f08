"""Layers as one launch, beside PyTorch: predicted, then timed; the decision says what came out."""

from statistics import median

import pytest

from benchmarks import epilogues
from benchmarks.page_tables import mean
from tests.support.paths import ROOT

DECISION = ROOT / "book/decisions/044-epilogues-in-registers.md"


def times(found, which):
    """Of each way, alone or in a row [s]."""
    return {way: median(one["ns"]) * 1e-9 if which == "alone" else one["sustained"]
            for way, one in found["ways"].items()}  # fmt: skip


def test_layers_were_predicted_before_they_were_timed():
    predictions, timings = epilogues.written()
    assert predictions.provenance["date"] < timings.provenance["date"]
    for case, told, found in zip(epilogues.CASES, predictions.rows, timings.rows, strict=True):
        epilogues.check(case, told, found)
        assert told["case"] == str(case)


def test_the_decision_has_the_errors_and_the_quotients_of_the_record():
    text = " ".join(DECISION.read_text("utf-8").split())
    predictions, timings = epilogues.written()
    alone = [p / m - 1 for p, m in epilogues.pairs()]
    turns = [told["sustained"] / times(found, "in a row")["ours"] - 1
             for told, found in zip(predictions.rows, timings.rows, strict=True)]  # fmt: skip
    assert f"{mean(alone)} off on average, {mean(turns)} in a row" in text
    quotients = [
        {way: [of[way] / of["ours"] for of in (times(found, "alone"), times(found, "in a row"))]
         for way in found["ways"]}
        for found in timings.rows
    ]  # fmt: skip
    for one in quotients[3:5] + quotients[6:]:
        for way in ("torch", "torch_fused"):
            if way in one:
                assert "| {:.2f} · {:.2f} |".format(*one[way]) in text
    followed = [one["torch"][0] for one in quotients[3:5] + quotients[6:]]
    called = [one["torch_fused"] for one in quotients if "torch_fused" in one]
    said = (ROOT / "CHANGELOG.md").read_text("utf-8")
    assert f"takes {min(followed):.2f} to {max(followed):.2f} times as long" in said
    (least, most), (slow, fast) = ((min(x), max(x)) for x in zip(*called, strict=True))
    assert f"{least:.2f} to {most:.2f} times in its one call ({slow:.2f} to {fast:.2f}" in said


@pytest.mark.parametrize("changed", [{"source_sha256": "0"}, {"errors": {"ours": 0.1}}])
def test_other_code_and_a_wrong_c_are_refused(changed):
    predictions, timings = epilogues.written()
    case, told, found = epilogues.CASES[0], predictions.rows[0], timings.rows[0]
    with pytest.raises(ValueError, match="linear 4096×4096×4096"):
        epilogues.check(case, told, found | changed)
