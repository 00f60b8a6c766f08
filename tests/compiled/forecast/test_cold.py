"""What a launch pays for that finds nothing in L2: device memory, and what L2 does with stores."""

import math
from dataclasses import replace

import numpy as np
import pytest

from gemmlab import Gemm, Tiling, cuda, device, kernels
from gemmlab.compiled.forecast.executed import execute
from gemmlab.compiled.forecast.kernel import ALL, predict_time, simulated
from gemmlab.compiled.forecast.rungs import execute_rung, predict_rung
from gemmlab.compiled.forecast.traffic import L1, Weights, streams, weights
from gemmlab.compiled.forecast.whole_gpu import (
    asked_again,
    clock,
    dram_time,
    sm_facts,
    stored_alone,
    stored_weight,
    stream_bandwidth,
)
from gemmlab.compiled.sass.compiling import listing as compiled
from gemmlab.compiled.sass.execution.machine import Visit
from gemmlab.compiled.sass.execution.memory import Cost
from gemmlab.compiled.sm.facts import facts
from gemmlab.compiled.sm.streams import Level
from tests.support.listings import listing

H200 = device("h200")
SM = facts("h200")
TILING = Tiling(block=(128, 128, 8), warp=(64, 32), thread=(8, 8), stages=3)


def executed(problem):
    return next(iter(execute_rung(problem, H200, kernels.pipelined, TILING).values()))


@cuda.jit
def sums(x, y):
    total, i = np.float32(0), cuda.grid(1)
    for j in range(i, x.size, cuda.gridsize(1)):
        total += x[j]
    y[i] = total


def one_access(op, sectors, in_part=None, weigh=None, **options):
    """(sectors, level) of an access by a whole warp, whose data come from device memory."""
    code = listing("------ W0 R- - S01  LDG.E R4, desc[UR4][R2.64]")
    visit = Visit(0, np.array([0]), 1)
    pieces = np.full((1, 32), -1)
    pieces[0] = np.sort(np.arange(32) % sectors)
    of_part = None if in_part is None else np.array([in_part])
    cost = Cost("global", op, np.array([0]), np.array([1]), np.array([sectors]), pieces, of_part)
    visit.costs.append((0, cost))
    levels = np.array([int(Level.DRAM)], np.int32)
    (found,) = streams([visit], code, levels, L1(4096), weigh, **options)
    return found.sectors[0], found.levels[0]


def test_what_is_stored_takes_l2_longer_than_what_is_loaded():
    known = weights(H200)
    assert known.written == H200.l2_bandwidth / H200.l2_write_bandwidth > 1
    weigh = Weights(written=known.written, partial=4.0)
    assert one_access("load", 16, weigh=weigh) == (16, Level.DRAM)
    assert one_access("store", 16, 0, weigh)[0] == round(16 * known.written)
    lines = 16 // 4  # each of which L2 reads before it writes it
    assert one_access("store", 16, 16, weigh)[0] == round(16 * known.written + lines * 4)
    assert weights(replace(H200, l2_write_bandwidth=None)).written == 1


def test_l2_adds_by_itself_and_makes_room_for_the_rest():
    assert one_access("atomic", 4) == (4, Level.L2)
    assert one_access("store", 4, 0) == (4, Level.STORED)
    assert one_access("store", 4, 0, stored=Level.L2) == (4, Level.L2)


def test_bytes_come_more_slowly_until_l2_is_full_of_them():
    rate = SM.dram_bytes_per_cycle * H200.clock * H200.sms
    full = H200.l2_bytes / rate
    assert dram_time(H200.l2_bytes // 2, H200) == pytest.approx(full / 2)
    assert dram_time(3 * H200.l2_bytes, H200) == pytest.approx(
        full + 2 * H200.l2_bytes / stream_bandwidth(H200)
    )
    assert rate < stream_bandwidth(H200)


@pytest.mark.ptxas
def test_an_sm_waits_for_memory_as_long_as_the_memory_takes():
    """Of a stream larger than L2 most comes when L2 has given up all that it was full of."""
    x, y = np.zeros(4 * H200.l2_bytes // 4, np.float32), np.zeros(132 * 8 * 256, np.float32)
    times = predict_time(sums, 132 * 8, 256, x, y).times
    assert times["sm"] == pytest.approx(times["dram"], rel=0.15)
    slowest = x.nbytes / (SM.dram_bytes_per_cycle * H200.clock * H200.sms)
    assert times["sm"] < 0.8 * slowest


@pytest.mark.ptxas
def test_a_rung_asks_memory_for_each_array_once():
    problem = Gemm(300, 200, 100)
    found = predict_rung(problem, H200, kernels.tiled)
    assert found.times["dram"] == dram_time(problem.bytes, H200)


@pytest.mark.ptxas
def test_what_l2_keeps_comes_once_for_all_rounds():
    """Blocks of later rounds ask memory again only where L2 cannot hold the arrays."""
    one = executed(Gemm(4096, 2048, 64))
    blocks, at_once = math.prod(one.share.grid), one.share.sms * one.share.resident
    assert blocks > at_once  # several rounds
    stored = stored_alone(one) * blocks
    assert stored == 4 * 4096 * 2048
    assert one.lost == 0.0
    of_one_round, of_all = (asked_again(replace(one, missing=lost)) for lost in (0.0, 1.0))
    assert of_all / of_one_round == pytest.approx(blocks / at_once)
    beyond = replace(one, missing=None, footprint=H200.l2_bytes + 1)
    assert beyond.lost == 1.0


@cuda.jit
def doubled(x):
    i = cuda.grid(1)
    x[i] *= 2


@pytest.mark.ptxas
def test_what_is_read_and_stored_comes_from_memory_all_the_same():
    """An array that is changed in place is read once, and C where beta is not 0."""
    code = compiled(doubled, (np.zeros(8, np.float32),))
    one = execute(code, H200, 1 << 12, 256, np.zeros(1 << 20, np.float32))
    assert stored_alone(one) == 0
    assert asked_again(one) == 1
    written, changed = (executed(Gemm(128, 128, 64, beta=beta)) for beta in (0.0, 1.0))
    assert (stored_alone(written), stored_alone(changed)) == (4 * 128 * 128, 0)


@pytest.mark.ptxas
def test_what_several_blocks_ask_for_comes_once():
    """A block by itself asks for everything once; of four, two have the same rows of A or B.

    What they store is each one's own.
    """
    alone, four = executed(Gemm(128, 128, 2048)), executed(Gemm(256, 256, 2048))
    assert asked_again(alone) == pytest.approx(1, rel=0.02)
    assert asked_again(four) == pytest.approx(2, rel=0.02)
    assert asked_again(replace(four, footprint=0)) == 1


@pytest.mark.ptxas
@pytest.mark.parametrize(("n", "blocks"), [(256, 4), (2048, 256)])
def test_an_sm_is_one_of_many(n, blocks):
    """Those that have no block leave what they could have to the others."""
    one = executed(Gemm(n, n, 256))
    assert math.prod(one.share.grid) == blocks
    known = sm_facts(one)
    assert clock(one) == H200.clock
    assert known.l2_latency == SM.l2_latency_for_all > SM.l2_latency
    share = SM.dram_bytes_per_cycle * H200.sms / min(H200.sms, blocks)
    assert one.footprint < H200.l2_bytes
    assert known.dram_bytes_per_cycle == pytest.approx(share * asked_again(one))
    of_stores = SM.dram_stored_per_cycle * H200.sms / min(H200.sms, blocks)
    assert known.dram_stored_per_cycle == pytest.approx(of_stores * stored_weight(one))
    assert 1 < one.together < 2  # neighbours have columns of B in common, or rows of A
    of_all = SM.l2_bytes_per_cycle * H200.sms / min(H200.sms, blocks) * one.together
    assert known.l2_bytes_per_cycle == pytest.approx(min(of_all, SM.l2_bytes_at_most))
    assert (known.l2_bytes_per_cycle == SM.l2_bytes_at_most) == (blocks == 4)


@pytest.mark.ptxas
def test_what_is_stored_takes_the_place_of_lines_in_every_round():
    """What blocks of later rounds read is in L2, but L2 is full of what was written before."""
    one = executed(Gemm(4096, 2048, 64))

    def levels(**asked):
        streams = [s for block in one.blocks(**asked) for s in block]
        return {int(level) for s in streams for level in s.levels[s.sectors > 0]}

    assert one.count == one.share.resident  # of the first round
    assert levels(cold=True) == {Level.DRAM, Level.STORED}
    assert levels(cold=True, later=True) == {Level.L2, Level.STORED}
    assert levels(cold=False) == {Level.L2}


@pytest.mark.ptxas
def test_blocks_that_run_again_are_a_later_round(monkeypatch):
    one, seen = executed(Gemm(4096, 2048, 64)), []
    monkeypatch.setattr(
        "gemmlab.compiled.forecast.kernel.simulate", lambda code, of, **_: seen.extend(of)
    )
    simulated(one, one.count + 1, True, ALL, 1.0)
    first, again = (
        {int(level) for s in seen[i] for level in s.levels[s.sectors > 0]} for i in (0, -1)
    )
    assert (first, again) == ({Level.DRAM, Level.STORED}, {Level.L2, Level.STORED})


@pytest.mark.ptxas
def test_what_is_stored_gains_nothing_from_neighbours():
    """Where they read half as much again, a sector that is stored counts as one and a half."""
    one = executed(Gemm(2048, 2048, 256))
    alone, both = (replace(one, together=often).blocks(cold=False)[0][0] for often in (1.0, 1.5))
    stores = np.array([i.name == "STG" for i in one.code.instructions])[alone.instructions]
    assert both.sectors[stores].sum() == pytest.approx(1.5 * alone.sectors[stores].sum(), rel=0.02)
    assert (both.sectors[~stores] == alone.sectors[~stores]).all()
