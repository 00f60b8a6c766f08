"""Wrong kernels are found at their line, and only for their fault; right ones give no hazard."""

import numpy as np
import pytest

from gemmlab import simulate
from gemmlab.simt.races.hazards import KINDS
from tests.simt.suspicious import (
    fault_of,
    right_in_blocks,
    right_in_grids,
    twin,
    wrong_in_blocks,
    wrong_in_grids,
    wrong_in_memory,
    wrong_in_warps,
)

WRONG = [
    *wrong_in_blocks.WRONG,
    *wrong_in_warps.WRONG,
    *wrong_in_grids.WRONG,
    *wrong_in_memory.WRONG,
]
RIGHT = [*right_in_blocks.RIGHT, *right_in_grids.RIGHT]


def found(trial, kernel):
    arguments = trial.arguments()
    report = simulate(
        kernel, trial.grid, trial.block, *arguments, shared_bytes=trial.shared_bytes,
        on_hazard="collect", max_steps=5000,
    )  # fmt: skip
    return report.hazards, arguments[-1]


@pytest.mark.parametrize("lanes", [1 << 16, 32])
@pytest.mark.parametrize("trial", WRONG, ids=lambda t: t.name)
def test_wrong_kernels_are_found_at_their_line(trial, lanes, monkeypatch):
    monkeypatch.setattr("gemmlab.simt.launch.LANES", lanes)
    hazards, _ = found(trial, trial.kernel)
    assert hazards, "the fault was not found"
    first, fault = hazards[0], fault_of(trial.kernel)
    assert first.kind == trial.kind
    # of a race both lines are named; which of the two is found second depends on the batches
    assert fault in (first.line, *(touch.line for touch in first.touches)), first


@pytest.mark.parametrize("trial", WRONG, ids=lambda t: t.name)
def test_without_its_fault_a_wrong_kernel_gives_no_hazard(trial):
    hazards, _ = found(trial, twin(trial.kernel))
    assert hazards == []


@pytest.mark.parametrize("lanes", [1 << 16, 32])
@pytest.mark.parametrize("trial", RIGHT, ids=lambda t: t.name)
def test_right_kernels_that_look_suspicious_give_no_hazard(trial, lanes, monkeypatch):
    monkeypatch.setattr("gemmlab.simt.launch.LANES", lanes)
    hazards, result = found(trial, trial.kernel)
    assert hazards == []
    np.testing.assert_allclose(result, trial.result, rtol=1e-6)


def test_there_are_enough_of_them():
    for trials in (WRONG, RIGHT):
        assert len({trial.name for trial in trials}) == len(trials) >= 40
        assert all(trial.why for trial in trials)
    # Fences are in `tests/instructions/test_asynchronous.py`.
    assert {trial.kind for trial in WRONG} == KINDS.keys() - {"step-limit", "missing-fence"}
