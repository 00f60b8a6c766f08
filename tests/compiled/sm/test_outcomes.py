"""What is recorded of simulated SMs is what they do."""

from dataclasses import fields
from itertools import islice

import numpy as np
import pytest

from benchmarks.ready import RUNGS
from gemmlab import kernels
from gemmlab.compiled.forecast import ready, steps
from gemmlab.compiled.forecast.rung_listings import usual
from gemmlab.compiled.sm import outcomes, simulation
from gemmlab.compiled.sm.result import Timeline
from gemmlab.compiled.sm.streams import Effects
from gemmlab.explorers.timeline import PROBLEM
from gemmlab.measure import store

DUE = "run: python -m benchmarks.ready"
LIGHT = {"coalesced", "mma_shared"}


def same(one, other):
    for field in fields(one):
        mine, theirs = getattr(one, field.name), getattr(other, field.name)
        if isinstance(mine, Timeline):
            same(mine, theirs)
        else:
            assert np.array_equal(mine, theirs), field.name


@pytest.mark.parametrize(
    "kernel",
    [pytest.param(k, id=k.name, marks=[] if k.name in LIGHT else pytest.mark.measuring)
     for k in RUNGS],
)  # fmt: skip
def test_a_python_without_numba_finds_the_steps_of_a_rung(kernel, monkeypatch):
    """Both outcomes come from the file, and are those of the loop to the bit."""
    problem = usual(kernel, PROBLEM)
    runs = ready.recorded_rung(kernel, problem).runs
    along_k = kernel.choose(None, problem).block[2]
    simulated = steps.steps(runs, along_k)
    monkeypatch.setattr(simulation, "COMPILED", False)
    monkeypatch.setattr(simulation, "run", lambda *_: pytest.fail(DUE))
    recorded = steps.steps(runs, along_k)
    assert recorded.cycles == simulated.cycles
    assert np.array_equal(recorded.lost, simulated.lost)
    same(recorded.run, simulated.run)


def test_any_other_simulation_has_no_outcome(tmp_path):
    shown = ready.recorded_rung(kernels.coalesced, usual(kernels.coalesced, PROBLEM))
    run = next(iter(shown.runs.values()))
    given = run.code, run.blocks, run.resident, run.facts
    asked = simulation.outcome_key(*given)
    others = [
        simulation.outcome_key(*given, window=(0, 100)),
        simulation.outcome_key(run.code, run.blocks[:1], 1, run.facts),
        simulation.outcome_key(*given, Effects.only("stalls")),
        asked[::-1],
    ]
    assert len({asked, *others}) == 5
    assert {outcomes.find(other) for other in others} == {None}
    assert outcomes.find(asked, tmp_path) is None


def test_what_is_written_is_read(tmp_path):
    stored = store.read(outcomes.path_of(), {"outcomes": dict}, outcomes.REQUIRED)
    keys = [row["key"] for row in islice(stored.tables["outcomes"], 2)]
    some = {asked: outcomes.find(asked) for asked in keys}
    outcomes.write(some, {"date": "2026-01-31", "gemmlab": "1"}, tmp_path)
    for asked, result in some.items():
        same(outcomes.find(asked, tmp_path), result)
