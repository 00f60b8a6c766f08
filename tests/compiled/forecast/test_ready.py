"""What is recorded of rungs is what their code does when it is executed."""

from dataclasses import fields

import numpy as np
import pytest

from benchmarks.ready import RUNGS
from gemmlab import Gemm, kernels
from gemmlab.compiled.forecast import ready
from gemmlab.compiled.forecast.rung_listings import usual
from gemmlab.compiled.sm.streams import Stream
from gemmlab.explorers.timeline import PROBLEM

HEAVY = pytest.mark.slow, pytest.mark.measuring
LIGHT = {"coalesced", "mma_shared"}  # of each ladder one that is executed in a moment


@pytest.mark.parametrize(
    "kernel",
    [pytest.param(k, id=k.name, marks=[] if k.name in LIGHT else HEAVY) for k in RUNGS],
)
def test_what_is_recorded_is_what_is_executed(kernel):
    problem = usual(kernel, PROBLEM)
    recorded = ready.recorded_rung(kernel, problem)
    executed = ready.executed_rung(kernel, problem)
    assert recorded.seconds == pytest.approx(executed.seconds, rel=1e-9)
    assert recorded.runs.keys() == executed.runs.keys()
    for k, run in executed.runs.items():
        found = recorded.runs[k]
        assert (found.resident, found.warps) == (run.resident, run.warps)
        assert found.facts == run.facts
        for mine, other in zip(found.blocks, run.blocks, strict=True):
            for one, same in zip(mine, other, strict=True):
                for field in fields(Stream):
                    assert np.array_equal(getattr(one, field.name), getattr(same, field.name))


@pytest.mark.parametrize("kernel", RUNGS, ids=lambda k: k.name)
def test_every_rung_of_a_timeline_is_recorded(kernel):
    """Where this fails a rung or its listing has changed: run `python -m benchmarks.ready`."""
    found = ready.recorded_rung(kernel, usual(kernel, PROBLEM))
    assert found is not None
    assert len(found.runs) == 2


def test_another_source_and_another_product_have_no_record(monkeypatch, tmp_path):
    assert ready.recorded_rung(kernels.coalesced, PROBLEM, tmp_path) is None
    assert ready.recorded_rung(kernels.coalesced, Gemm(1024, 1024, 1024)) is None
    monkeypatch.setattr(ready, "source_hash", lambda kernel: "changed")
    assert ready.recorded_rung(kernels.coalesced, PROBLEM) is None


def test_what_is_written_is_read(tmp_path):
    problem = usual(kernels.coalesced, PROBLEM)
    shown = ready.recorded_rung(kernels.coalesced, problem)
    told = {"date": "2026-01-31", "gemmlab": "1"}
    ready.write({(kernels.coalesced, problem): shown}, told, tmp_path)
    again = ready.shown_rung(kernels.coalesced, problem, tmp_path)
    assert again.seconds == shown.seconds
    for k, run in shown.runs.items():
        assert again.runs[k].facts == run.facts
        assert np.array_equal(again.runs[k].blocks[0][1].cycles, run.blocks[0][1].cycles)
