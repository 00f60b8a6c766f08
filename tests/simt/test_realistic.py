"""Kernels of the kinds that GPU courses have give what NumPy or plain Python gives."""

import numpy as np
import pytest

from benchmarks.samples.realistic import BENIGN, CASES, is_right, simulated


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
