"""Kernels of the kinds that GPU courses and textbooks have give what NumPy or plain Python gives.

Each function of `benchmarks.samples.realistic` whose parameter is `launch` is a case: it launches
its kernels, as `launch(kernel, grid, block, *arguments)`, and returns what they left beside what is
right: pairs, with the relative difference allowed as a third part where rounding decides.
"""

import inspect
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

from gemmlab import simulate

MAX_STEPS = 2000  # of the loops of a thread: enough for all that end
HERE = Path(__file__).parent / "realistic"
TOPICS = [
    import_module(f"benchmarks.samples.realistic.{p.stem}") for p in sorted(HERE.glob("*.py"))
]
CASES = {
    f"{topic.__name__.rpartition('.')[2]}.{name}": function
    for topic in TOPICS
    for name, function in vars(topic).items()
    if inspect.isfunction(function) and list(inspect.signature(function).parameters) == ["launch"]
}

# Cases that have hazards which are no fault, and why.
BENIGN = {
    # threads of one level give a vertex the same number, whoever reads it in between
    "graphs.breadth_first_level_by_level": {"global-race"},
}


def pairs(result):
    """What a case returned, as (left, right, tolerance)."""
    for left, right, *tolerance in result if isinstance(result, list) else [result]:
        left, right = np.asarray(left), np.asarray(right)
        is_float = left.dtype.kind in "fc"
        default = 64 * np.finfo(left.dtype).eps if is_float else 0
        yield left, right, tolerance[0] if tolerance else default


def is_right(result) -> bool:
    return all(
        left.shape == right.shape
        and (
            np.allclose(left, right, rtol=tolerance, atol=tolerance * np.abs(right).max())
            if tolerance
            else np.array_equal(left, right)
        )
        for left, right, tolerance in pairs(result)
    )


def simulated(case):
    """What a case returned, and the reports of its launches."""
    reports = []

    def launch(kernel, grid, block, *arguments, shared_bytes=0):
        options = {"shared_bytes": shared_bytes, "on_hazard": "collect", "max_steps": MAX_STEPS}
        reports.append(simulate(kernel, grid, block, *arguments, **options))

    return case(launch), reports


@pytest.mark.parametrize("name", CASES)
def test_right_and_without_hazards(name):
    result, reports = simulated(CASES[name])
    found = [hazard for report in reports for hazard in report.hazards]
    assert {h.kind for h in found} == BENIGN.get(name, set()), found
    assert all(any(report.counters.values()) for report in reports)
    assert is_right(result), result


@pytest.mark.parametrize("name", CASES)
def test_a_case_is_wrong_when_its_kernels_do_nothing(name):
    with np.errstate(all="ignore"):
        assert not is_right(CASES[name](lambda *arguments, **options: None))


def test_the_collection():
    assert len(CASES) >= 110
    assert set(BENIGN) <= set(CASES)
