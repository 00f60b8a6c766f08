"""Races of random accesses are found if, and only if, vector clocks find them; so are mutants."""

from collections import Counter

import numpy as np
import pytest

from benchmarks.simulator.fuzz import mutants
from benchmarks.simulator.fuzz.races import differences, programs, races
from gemmlab.simt.races.visits import Waits
from tests.support.paths import ROOT

COUNT = 60  # more, on the command line: python -m benchmarks.simulator.fuzz.races 5000


def test_random_accesses_are_judged_as_vector_clocks_judge_them():
    assert differences(COUNT, seed=0) == ([], [])


def test_the_programs_are_of_both_kinds():
    for shared in (False, True):
        raced = sum(races(program, shared) for program in programs(COUNT, seed=0))
        assert COUNT / 4 < raced < 0.9 * COUNT


def test_a_simulator_that_ignores_masks_would_be_found_out(monkeypatch):
    sync_warps = Waits.sync_warps

    def all_wait(self, on, named, alike):
        sync_warps(self, np.broadcast_to(on.any(axis=-1, keepdims=True), on.shape), True, alike)

    monkeypatch.setattr(Waits, "sync_warps", all_wait)
    false, missed = differences(COUNT, seed=0)
    assert not false
    assert missed


def test_a_simulator_whose_masks_order_nothing_would_be_found_out(monkeypatch):
    sync_warps = Waits.sync_warps

    def whole_warps_alone(self, on, named, alike):
        if named is True:
            sync_warps(self, on, named, alike)

    monkeypatch.setattr(Waits, "sync_warps", whole_warps_alone)
    false, missed = differences(COUNT, seed=0)
    assert false
    assert not missed


# A few of the mutants of `fuzz.mutants`: the kernel, the line, what is changed.
SAMPLE = [
    ("mma_pipelined", "cp_async_wait(PENDING)", "left out", "hazard"),
    ("wgmma_pipelined", "cuda.syncthreads()", "left out", "hazard"),
    ("tma_stored", "tma_wait_read(0)", "left out", "hazard"),
    ("warp_specialised", "mbarrier_arrive_expect", "128 bytes more", "not ending"),
]


@pytest.mark.parametrize(("kernel", "line", "change", "how"), SAMPLE)
def test_a_mutant_of_a_pipeline_is_found(kernel, line, change, how):
    (pipeline,) = (p for p in mutants.PIPELINES if p.kernel == kernel)
    made = (m for m in mutants.all_of(pipeline) if m.text.startswith(line) and m.change == change)
    assert mutants.tried(pipeline, next(made))[0] == how


def test_what_is_recorded_of_mutants_misses_none():
    page = (ROOT / "book" / "hazards.md").read_text("utf-8")
    assert mutants.sentence() in page, mutants.sentence()
    for pipeline in mutants.PIPELINES:
        rows = mutants.recorded()[pipeline.kernel].measured["mutants"]
        if pipeline.kernel in {kernel for kernel, *_ in SAMPLE[:2]}:  # all that can be made
            made = [(m.module, m.text, m.change) for m in mutants.all_of(pipeline)]
            assert [tuple(row[:3]) for row in rows] == made
        assert all(why for *_, how, why in rows if how in ("equal", "missed"))
    found = sum(mutants.counts().values(), Counter())
    assert found.total() >= 500
    assert found["missed"] == 0
