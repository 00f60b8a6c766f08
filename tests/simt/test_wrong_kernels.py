"""Kernels with one fault each, and the misconception it stands for: all are found, and why."""

from collections import Counter

import pytest

from benchmarks.samples.right_kernels import RIGHT
from benchmarks.samples.wrong_kernels import FILES, MAX_STEPS, findings, load
from gemmlab import kernels
from gemmlab.simt.races.hazards import KINDS


@pytest.mark.parametrize("base", RIGHT)
def test_right_kernels_have_no_fault(base):
    assert set(findings(RIGHT[base], base)) == {None}


def test_every_rung_of_the_ladder_is_among_the_right_ones():
    assert {f"ladder_{rung.name}" for rung in kernels.LADDER} <= set(RIGHT)


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.stem)
def test_wrong_kernels_are_found(path):
    wrong = load(path)
    faults = [i for i, t in enumerate(path.read_text("utf-8").splitlines(), 1) if "# fault" in t]
    launch = getattr(wrong, "launch", None)
    found = next(
        filter(None, findings(wrong.kernel, wrong.BASE, launch, max_steps=MAX_STEPS)), None
    )
    assert found is not None, "the fault was not found"
    assert len(faults) == 1
    assert wrong.__doc__.startswith(("Misconception: ", "Slip: "))
    if wrong.EXPECT == "values":
        assert found == "values"
    else:
        assert (found.kind, found.line) == (wrong.EXPECT, faults[0]), str(found)
        assert "# fault" in found.code


def test_the_collection():
    """Enough of them; the kinds that none of them shows are in `test_suspicious`, or, of Hopper's
    instructions, in `tests/instructions/test_asynchronous.py`.
    """
    expected = Counter(load(path).EXPECT for path in FILES)
    assert len(FILES) >= 50
    assert set(expected) == {*KINDS, "values"} - {"async-not-waited", "misaligned", "missing-fence"}
    assert min(expected.values()) >= 2
