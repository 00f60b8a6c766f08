"""The blind set of blocks that share what they copy: drawn, predicted, then timed."""

from statistics import median

import pytest

from benchmarks import clusters
from benchmarks.page_tables import mean
from benchmarks.power import page
from gemmlab import kernels
from tests.support.paths import ROOT


def test_the_set_was_predicted_before_it_was_timed():
    predictions, timings = clusters.written()
    assert predictions.provenance["date"] < timings.provenance["date"]
    names = [(case.kernel, str(case.problem)) for case in clusters.SETS["clusters"]]
    assert [(row["kernel"], row["problem"]) for row in timings.rows] == names
    ours = [name for name in names if not kernels.get(name[0]).library]
    assert [(row["kernel"], row["problem"]) for row in predictions.rows] == ours


def test_the_decision_says_how_far_off_it_was():
    found, library = clusters.products()
    known, drawn = clusters.parts(found)
    assert (len(known), len(drawn)) == (4, 16)
    text = " ".join((ROOT / "book/decisions/043-two-blocks-share-b.md").read_text("utf-8").split())
    alone, _ = zip(*(one.errors for one in drawn), strict=True)
    long = [one.errors[1] for one in drawn if one.alone[0] >= clusters.IN_TURN["clusters"]]
    assert f"Sixteen products: {mean(alone)} off on average, half of them within" in text
    assert f"half of them within {median(map(abs, alone)):.1%}; in a row, of the" in text
    assert f"of the {len(long)} that take 60 µs or longer, {mean(long)}" in text
    far = sorted(one.problem for one in drawn if abs(one.errors[0]) > 0.1)
    assert len(far) == 4
    assert all(name.split(" ")[0] in text for name in far)
    assert all(one.errors[0] < 0 for one in drawn if one.problem in far)
    quotients = [clusters.of_library(*both)[0] for both in zip(drawn, library[4:], strict=True)]
    assert f"cuBLAS is faster in all of them: the median is {median(quotients):.2f}" in text
    assert max(quotients) < 1


@pytest.mark.parametrize("changed", [{"error": 0.1}, {"tiling": "x"}])
def test_other_code_and_a_wrong_c_are_refused(changed):
    predictions, timings = (written.rows for written in clusters.written())
    ours = [row for row in timings if not kernels.get(row["kernel"]).library]
    with pytest.raises(ValueError, match="tma_multicast 4096×4096×4096"):
        page.paired(predictions, [ours[0] | changed, *ours[1:]])
