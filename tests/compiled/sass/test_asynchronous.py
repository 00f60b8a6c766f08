"""Compiled code with mbarriers, copies by the TMA and `wgmma`, executed: who waits for whom."""

from collections import Counter

import numpy as np
import pytest

from gemmlab import Gemm, Tiling, cuda, device
from gemmlab.compiled.forecast.rungs import execute_rung
from gemmlab.compiled.forecast.whole_gpu import stored_weight
from gemmlab.compiled.sass.compiling import listing
from gemmlab.compiled.sass.execution.asynchronous import Mbarrier
from gemmlab.compiled.sass.execution.machine import counters, launch
from gemmlab.compiled.sm.facts import facts
from gemmlab.compiled.sm.pipes import Unit, use
from gemmlab.compiled.sm.streams import Level
from gemmlab.instructions import (
    fence_mbarrier_init,
    mbarrier_arrive,
    mbarrier_init,
    mbarrier_wait,
    shared_view,
)
from gemmlab.kernels import tma_stored, warp_specialised
from tests.support.listings import listing as code_of


def test_a_phase_needs_its_arrivals_and_its_bytes():
    one = Mbarrier(number=0, count=2)
    assert one.is_past(1)  # of the phase before the first
    assert not one.is_past(0)
    assert not one.add(1, 4096)
    assert not one.add(1, 0)  # all have arrived, and the bytes are to come
    assert one.add(0, -4096)
    assert one.is_past(0)
    assert not one.is_past(1)
    assert not one.add(1, 0)
    assert one.add(1, 0)
    assert one.is_past(1)


def built(arrivals):
    @cuda.jit
    def kernel(out):
        """The last warp arrives, lane by lane; the others wait, and say that they have."""
        barriers = shared_view((1,), np.uint64, 0)
        if cuda.threadIdx.x == 0:
            mbarrier_init(barriers, 0, np.uint32(32))
            fence_mbarrier_init()
        cuda.syncthreads()
        if cuda.threadIdx.x >= 64:
            if cuda.threadIdx.x < 64 + arrivals:
                mbarrier_arrive(barriers, 0)
        else:
            mbarrier_wait(barriers, 0, np.uint32(0))
        out[cuda.blockIdx.x * 96 + cuda.threadIdx.x] = 1

    return kernel


@pytest.mark.ptxas
def test_lanes_wait_for_the_last_arrival_of_their_own_block():
    out = np.zeros(192, np.int32)
    code = listing(built(32), (out,))
    machine = launch(code, 2, 96, out, shared_bytes=8)
    visits = machine.run(10_000)
    assert out.all()
    asked = [(cost.op, int(cost.warps[0])) for v in visits for _, cost in v.costs
             if cost.space == "mbarrier"]  # fmt: skip
    assert Counter(asked) == Counter(
        [("init", w) for w in (0, 3)]
        + [("wait", w) for w in (0, 1, 3, 4)]
        + [("arrive", w) for w in (2, 5)]
    )
    assert "mbarrier_wait_requests" not in counters(visits)


@pytest.mark.ptxas
def test_who_waits_for_arrivals_that_do_not_come_waits_for_ever():
    out = np.zeros(96, np.int32)
    code = listing(built(31), (out,))
    with pytest.raises(RuntimeError, match="wait for each other for ever"):
        launch(code, 1, 96, out, shared_bytes=8).run(10_000)


@pytest.mark.ptxas
def test_every_stage_is_filled_before_it_is_read_and_read_before_it_is_filled():
    """Two tiles of three steps in a ring of two stages: of one block, in the order of its run."""
    problem = Gemm(128, 128, 192, dtype="float16", out_dtype="float32", layout="nt")
    tiling = Tiling(block=(128, 64, 64), stages=2)
    (executed,) = execute_rung(problem, device("h200"), warp_specialised, tiling).values()
    costs = [c for v in executed.visits for _, c in v.costs if c.space == "mbarrier"]
    made = {c.mbarrier: c.amount for c in costs if c.op == "init"}
    (full, empty) = (sorted(n for n, count in made.items() if count == c) for c in (1, 2))
    assert len(full) == len(empty) == tiling.stages
    copies = [c for c in costs if c.op == "copy"]
    boxes = {128 * 128, 64 * 128}
    assert {c.amount for c in copies} == boxes
    assert {c.mbarrier for c in copies} == set(full)
    steps = 3  # each block has a tile
    assert len(copies) == executed.count * steps * len(boxes)
    waits = Counter((c.mbarrier in full, int(c.warps[0]) < 8) for c in costs if c.op == "wait")
    assert waits == {(True, True): executed.count * steps * 8, (False, False): steps}
    assert sum(int(c.sectors.sum()) for c in copies) == sum(c.amount for c in copies) // 32
    assert sum(c.amount for c in costs if c.op == "arrive" and c.mbarrier in empty) == steps * 2


@pytest.mark.ptxas
def test_the_tma_stores_all_of_c():
    """A warp has 16 rows, and lets the TMA store 32 columns of them at a time."""
    problem = Gemm(256, 256, 128, dtype="float16", out_dtype="float32", layout="nt")
    tiling = Tiling(block=(128, 128, 64), stages=2)
    (executed,) = execute_rung(problem, device("h200"), tma_stored, tiling).values()
    costs = [c for v in executed.visits for _, c in v.costs]
    stores = [c for c in costs if c.space == "tensor"]
    assert {c.op for c in stores} == {"store"}
    assert {int(c.warps[0]) % 12 for c in stores} == set(range(8))  # eight warps of consumers
    assert {int(c.sectors[0]) for c in stores} == {16 * 128 // 32}
    assert len(stores) == executed.count * 8 * (128 // 32)
    assert not [c for c in costs if c.space == "global" and c.op == "store"]
    storing = [
        i
        for i, one in enumerate(executed.code.instructions)
        if use(one, facts("h200")).unit is Unit.BULK_STORE
    ]
    asked = np.concatenate(
        [s.sectors[np.isin(s.instructions, storing)] for b in executed.blocks(True) for s in b]
    )
    levels = {int(x) for b in executed.blocks(True) for s in b
              for x in s.levels[np.isin(s.instructions, storing)]}  # fmt: skip
    assert levels == {Level.STORED}  # where they take the place of lines to be written back
    weighs = 16 * 128 // 32 * stored_weight(executed)
    assert set(asked) == {round(weighs)}  # as many sectors as L2 takes the time of


def test_the_loop_over_values_of_lanes_takes_each_once():
    """R2UR's predicate holds in lanes whose value is another than the one that was taken."""
    code = code_of(
        """
        ------ W- R- - S01  S2R R0, SR_TID.X
        ------ W- R- - S01  LOP3.LUT R0, R0, 0x3, RZ, 0xc0, !PT
        ------ W- R- - S01  MOV R2, RZ
        ------ W- R- - S01  PLOP3.LUT P1, PT, PT, PT, PT, 0x80, 0x0
        ------ W- R- - S01  @P1 R2UR P0, UR4, R0
        ------ W- R- - S01  @P1 R2UR.OR P0, UR5, RZ
        ------ W- R- - S01  @P1 PLOP3.LUT P1, PT, P0, PT, PT, 0x80, 0x0
        ------ W- R- - S01  IADD3 R2, R2, 0x1, RZ
        ------ W- R- - S05  @P1 BRA 0x40
        ------ W- R- - S05  EXIT
        """
    )
    machine = launch(code, 1, 32)
    machine.run(1000)
    rounds = machine.state.registers["R"][2]
    assert rounds.tolist() == [1, 2, 3, 4] * 8  # a lane goes round until its value was taken
