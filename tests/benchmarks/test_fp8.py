"""Products of FP8 beside PyTorch: drawn, predicted, then timed; the decision says what came out."""

from statistics import median

import pytest

from benchmarks import fp8
from benchmarks.page_tables import mean
from tests.support.paths import ROOT

DECISION = ROOT / "book/decisions/048-fp8-with-scales.md"


def test_the_set_was_predicted_before_it_was_timed():
    predictions, timings = fp8.written()
    assert predictions.provenance["date"] < timings.provenance["date"]
    for rows in (predictions.rows, timings.rows):
        assert [row["case"] for row in rows] == [str(case) for case in fp8.CASES]


def test_the_decision_has_the_times_and_the_errors_of_the_record():
    text = " ".join(DECISION.read_text("utf-8").split())
    found = fp8.cases()
    known, drawn = found[: len(fp8.KNOWN)], found[len(fp8.KNOWN) :]
    long = [one.off[1] for one in drawn if one.long]
    off = [one.off[0] for one in drawn]
    assert f"half of them within {median(map(abs, off)):.1%}, all too fast;" in text
    assert max(off) < 0
    assert f"{mean(one.off[0] for one in drawn)} off on average" in text
    assert f"in a row, of the {len(long)} that take 60 µs or longer, {mean(long)}" in text
    for one in known:
        p = one.case.problem
        name = f"{p.m}³, {p.out_dtype}{', scales by line' * one.case.lines}"
        quotients = " · ".join(f"{part:.2f}" for part in one.of_torch)
        times = " · ".join(f"{1e3 * seconds:.4g}" for seconds in one.ours)
        kind = "fast" if one.case.fast else "promoted"
        errors = " · ".join(f"{error:.1e}" for error in one.errors)
        assert f"| {name}, {kind} | {times} | {quotients} | {errors} |" in text


def test_readme_says_what_the_largest_squares_reach():
    squares = [one for one in fp8.cases() if one.case in fp8.KNOWN and one.case.problem.m == 8192]
    (least, most), (slow, fast) = (
        (min(x), max(x)) for x in zip(*(one.of_torch for one in squares), strict=True)
    )
    text = " ".join((ROOT / "README.md").read_text("utf-8").split())
    assert f"runs at {least:.2f} to {most:.2f} × the speed of cuBLASLt" in text
    assert f"among many in a row at {slow:.2f} to {fast:.2f} ×, with the same errors" in text
    for one in fp8.cases():
        ours, theirs = one.errors
        assert abs(ours / theirs - 1) < 1e-5


def test_half_of_what_was_drawn_is_told_with_its_least():
    quotients = sorted(one.of_torch[0] for one in fp8.cases()[len(fp8.KNOWN) :])
    text = " ".join(DECISION.read_text("utf-8").split())
    middle = (quotients[5] + quotients[6]) / 2
    assert f"median {middle:.2f} of PyTorch's speed, the least {quotients[0]:.2f}" in text


@pytest.mark.parametrize("changed", [{"source_sha256": "0"}, {"case": "another"}])
def test_other_code_is_refused(changed):
    predictions, timings = fp8.written()
    case, told, found = fp8.CASES[0], predictions.rows[0], timings.rows[0]
    assert fp8._timed(case, told, found).case is case
    with pytest.raises(ValueError, match="4096×4096×4096 float8_e4m3fn"):
        fp8._timed(case, told, found | changed)


def test_a_wrong_c_is_refused():
    predictions, timings = fp8.written()
    wrong = timings.rows[0] | {"errors": {"ours": [0.1, 0.1], "torch": [0.001, 0.04]}}
    with pytest.raises(ValueError, match=r"the sums were off by 0.1, PyTorch's by 0.001"):
        fp8._timed(fp8.CASES[0], predictions.rows[0], wrong)
