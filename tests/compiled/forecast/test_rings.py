"""Stages of a ring over time: on a listing whose cycles can be counted, and on a rung."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from gemmlab import Gemm, device, kernels
from gemmlab.compiled.forecast.rings import PAUSE, Doing, ring
from gemmlab.compiled.forecast.rung_listings import usual
from gemmlab.compiled.forecast.rungs import execute_rung
from gemmlab.compiled.forecast.whole_gpu import sm_facts
from gemmlab.compiled.sm.facts import facts
from gemmlab.compiled.sm.simulation import simulate
from gemmlab.compiled.sm.streams import Effects, Level, stream
from gemmlab.plots.timeline import turns
from tests.support.listings import listing

H200 = facts("h200")
INIT, EXPECT, COPY, WAIT, ARRIVE, MULTIPLY, STORE = range(7)
CODE = listing(
    """
    ------ W- R- - S01  SYNCS.EXCH.64 URZ[UR4], UR6
    ------ W- R- - S01  SYNCS.ARRIVE.TRANS64 RZ, [UR4], R2
    ------ W- R- - S01  UTMALDG.2D [UR8][UR10]
    ------ W- R- - S01  SYNCS.PHASECHK.TRANS64.TRYWAIT P0[UR4], R0
    ------ W- R- - S01  SYNCS.ARRIVE.TRANS64.A1T0 RZ, [UR4], RZ
    ------ W- R- - S08  HGMMA.64x128x16.F32 R24, gdesc[UR20], R24
    ------ W- R- - S01  STG.E [R2.64], R4
    """
)
EFFECTS = Effects.only("stalls", "scoreboards", "barriers", "pipes", "l2")
STAGES, STEPS, BYTES = 2, 4, 4096
FULL, EMPTY = 0, STAGES  # of stage 0; the numbers of the others follow
PRODUCT = 128 // H200.wgmma_columns
IDLE = WAIT, 0, 0  # for no phase
BETWEEN = 70  # cycles from the pause after a step's first product to the second one


def asked(*events):
    """A stream of (instruction, number of the mbarrier, amount)."""
    indices, numbers, amounts = zip(*events, strict=True)
    one = stream(indices, 0, [BYTES // 32 * (i == COPY) for i in indices], Level.L2)
    return replace(one, mbarriers=np.array(numbers), amounts=np.array(amounts))


def on_paper():
    """A producer and a consumer, two stages and four steps; the last product's stage is kept.

    Another consumer comes late and leaves nothing.
    """
    made = [(INIT, number, 1) for number in range(2 * STAGES)]
    asks, reads = [], []
    for step in range(STEPS):
        stage, parity = step % STAGES, step // STAGES % 2
        asks += [
            (WAIT, EMPTY + stage, 1 + (parity ^ 1)),
            (EXPECT, FULL + stage, BYTES),
            (COPY, FULL + stage, BYTES),
        ]
        reads += [(WAIT, FULL + stage, 1 + parity), (MULTIPLY, 0, 0), *[IDLE] * BETWEEN]
        reads += [(MULTIPLY, 0, 0)]
        reads += [(ARRIVE, EMPTY + stage, 1)] * (step < STEPS - 1)
    late = [*[IDLE] * 500, *((WAIT, FULL + stage, 1) for stage in range(STAGES))]
    late += [(WAIT, FULL + stage, 2) for stage in range(STAGES)]
    block = [asked(*made, *asks), asked(*reads, (STORE, 0, 0), (STORE, 0, 0)), asked(*late)]
    timeline = simulate(CODE, [block], effects=EFFECTS, window=(0, 5000)).timeline
    return block, timeline


def test_turns_on_paper():
    block, timeline = on_paper()
    found = ring(CODE, block, timeline, H200)
    first, second, third = found.turns  # nobody leaves the fourth
    assert [turn.stage for turn in found.turns] == [0, 1, 0]
    assert found.stages == STAGES
    moved = BYTES / H200.l2_bytes_per_cycle
    assert first.asked == 6  # four are made, one wait passes, the bytes are expected
    assert first.full == int(first.asked + moved) + H200.l2_latency
    assert second.full == int(first.asked + 2 * moved) + H200.l2_latency  # one copy at a time
    assert first.read == first.full
    assert first.full < 500
    # A product pauses 8 cycles.
    assert first.free == first.read + 1 + 8 + BETWEEN + 8 + H200.mbarrier_latency
    assert third.asked == first.free + 2
    assert found.roles["consumer 1"][0] == Doing("wait", 0, first.full)
    assert found.roles["producer"][2] == Doing("wait", second.asked + 1, first.free)
    products = found.roles["Tensor Cores"][0]
    later = first.read + 1 + 8 + BETWEEN  # the second product of the step
    assert 0 < later - (first.read + 1 + PRODUCT) < PAUSE
    assert products.start == first.read + 1
    assert products.end >= later + PRODUCT
    assert found.roles["consumer 1"][-1].what == "store"


def test_a_timeline_that_begins_later_is_refused():
    block, timeline = on_paper()
    with pytest.raises(ValueError, match="from cycle 7, and 1 warps ask for copies"):
        ring(CODE, block, replace(timeline, first=7), H200)
    with pytest.raises(ValueError, match="from cycle 0, and 0 warps ask for copies"):
        ring(CODE, block[1:], timeline, H200)


def test_rows_are_cut_to_the_window():
    block, timeline = on_paper()
    found = ring(CODE, block, timeline, H200)
    turn = found.turns[0]
    rows = turns(found, turn.full - 100, turn.full + 300)
    assert list(rows) == ["producer", "stage 0", "stage 1", "consumer 1", "Tensor Cores"]
    copy, multiply = rows["stage 0"][:2]
    assert (copy.what, copy.start, copy.end) == ("copy", 0, 100)  # and full for no cycle
    assert (multiply.what, multiply.start, multiply.end) == (
        "multiply",
        100,
        100 + turn.free - turn.read,
    )


@pytest.fixture(
    scope="module", params=[kernels.warp_specialised, kernels.mma_tma], ids=lambda k: k.name
)
def rung(request):
    """A rung's ring, of one tile of C and eight steps."""
    kernel = request.param
    bm, bn, bk = kernel.default.block
    (one,) = execute_rung(usual(kernel, Gemm(bm, bn, 8 * bk)), "h200", kernel).values()
    block, known = one.blocks(cold=False)[0], sm_facts(one)
    timeline = simulate(one.code, [block], on=known, window=(0, 60_000)).timeline
    return kernel, ring(one.code, block, timeline, known)


def test_a_rung_goes_round_its_ring(rung):
    kernel, found = rung
    stages = kernel.default.stages
    assert [turn.stage for turn in found.turns] == [step % stages for step in range(8)]
    for turn in found.turns:
        assert turn.asked < turn.full <= turn.read < turn.free
    for before, after in zip(found.turns, found.turns[stages:], strict=False):
        assert before.free < after.asked
    assert list(found.roles) == ["producer", "consumer 1", "consumer 2", "Tensor Cores"]
    for spans in found.roles.values():
        assert all(one.end <= after.start for one, after in pairwise(spans))


def test_a_stage_is_multiplied_after_it_is_full_and_the_tensor_cores_are_busy_then(rung):
    kernel, found = rung
    bm, bn, bk = kernel.default.block
    products = found.roles["Tensor Cores"]
    busy = sum(one.end - one.start for one in products)
    least = 2 * 8 * bm * bn * bk / device("h200").flop_per_cycle_per_sm["float16"]
    assert products[0].start >= found.turns[0].full
    assert least <= busy < 2 * least
    [last] = [one for one in found.roles["consumer 1"] if one.what == "store"][-1:]
    assert last.end >= products[-1].end
