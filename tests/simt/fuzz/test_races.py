"""The simulator finds a race in random accesses if, and only if, vector clocks do."""

import numpy as np

from benchmarks.simulator.fuzz.races import differences, programs, races
from gemmlab.simt.races.visits import Waits

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
