"""Kernels of the kinds that GPU courses have give what NumPy or plain Python gives."""

import runpy
from pathlib import Path

import numpy as np
import pytest

from benchmarks.samples.realistic import BENIGN, CASES, TOPICS, is_right, simulated
from gemmlab.programs.running import in_place_of_numba


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


@pytest.mark.measuring
@pytest.mark.parametrize("topic", TOPICS, ids=lambda topic: topic.__name__.rpartition(".")[2])
def test_right_by_the_second_compilers_name(topic, tmp_path):
    """Whether that compiler is installed or not."""
    text, copy = Path(topic.__file__).read_text("utf-8"), tmp_path / "topic.py"
    changed = text.replace("from gemmlab import cuda", "from numba_cuda_mlir import cuda")
    copy.write_text(changed, "utf-8")
    assert changed != text
    with in_place_of_numba():
        names = runpy.run_path(str(copy))
        for name, case in CASES.items():
            if case.__module__ == topic.__name__:
                result, reports = simulated(names[case.__name__])
                found = {hazard.kind for report in reports for hazard in report.hazards}
                assert found == BENIGN.get(name, set()), name
                assert is_right(result), name
