"""The blind set of blocks that share what they copy: drawn, predicted, then timed."""

from statistics import median

import pytest

from benchmarks import clusters
from benchmarks.page_tables import mean
from benchmarks.power import page
from gemmlab import kernels
from tests.support.paths import ROOT


@pytest.mark.parametrize("which", clusters.SETS)
def test_a_set_was_predicted_before_it_was_timed(which):
    predictions, timings = clusters.written(which)
    assert predictions.provenance["date"] < timings.provenance["date"]
    names = [(case.kernel, str(case.problem)) for case in clusters.SETS[which]]
    assert [(row["kernel"], row["problem"]) for row in timings.rows] == names
    ours = [name for name in names if not kernels.get(name[0]).library]
    assert [(row["kernel"], row["problem"]) for row in predictions.rows] == ours


@pytest.mark.parametrize(
    ("which", "decision", "fast", "slow"),
    [
        ("clusters", "043-two-blocks-share-b", 5, 0),
        ("padded", "051-rows-that-the-tma-cannot-copy", 6, 1),
    ],
)
def test_a_decision_says_how_far_off_it_was(which, decision, fast, slow):
    """fast, slow : how many are predicted too fast by more than a tenth, and too slow."""
    found, library = clusters.products(which)
    known, drawn = clusters.parts(found, which)
    assert (len(known), len(drawn)) == (4, 16)
    text = " ".join((ROOT / f"book/decisions/{decision}.md").read_text("utf-8").split())
    alone, _ = zip(*(one.errors for one in drawn), strict=True)
    least = clusters.IN_TURN[which]
    long = [one.errors[1] for one in drawn if one.alone[0] >= least]
    assert (
        f"Sixteen products: {mean(alone)} off on average, half of them within "
        f"{median(map(abs, alone)):.1%}; in a row, of the {len(long)} that take "
        f"{1e6 * least:.0f} µs or longer, {mean(long)}"
    ) in text
    far = [one for one in drawn if abs(one.errors[0]) > 0.1]
    assert [sum(sign * one.errors[0] > 0 for one in far) for sign in (-1, 1)] == [fast, slow]
    assert all(one.problem.split(" ")[0] in text for one in far)
    quotients = [clusters.of_library(*both)[0] for both in zip(drawn, library[4:], strict=True)]
    slower = sum(one < 1 for one in quotients)
    assert (
        f"cuBLAS is faster in {slower} of them: the median is {median(quotients):.2f}, the least "
        f"{min(quotients):.2f}, the most {max(quotients):.2f}"
    ) in text


@pytest.mark.parametrize("changed", [{"error": 0.1}, {"tiling": "x"}])
def test_other_code_and_a_wrong_c_are_refused(changed):
    predictions, timings = (written.rows for written in clusters.written("clusters"))
    ours = [row for row in timings if not kernels.get(row["kernel"]).library]
    with pytest.raises(ValueError, match="tma_multicast 4096×4096×4096"):
        page.paired(predictions, [ours[0] | changed, *ours[1:]])
