"""Times from compiled code: the parts by hand, and kernels beside what an H200 took."""

from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pytest

from gemmlab import Gemm, cuda, device, kernels, records
from gemmlab.compiled.forecast.executed import L1, Share, share
from gemmlab.compiled.forecast.kernel import predict_time, total_cycles
from gemmlab.compiled.forecast.rungs import predict_rung
from gemmlab.compiled.sm.facts import facts

H200 = device("h200")


def test_l1_keeps_sectors_and_forgets_lines():
    cache = L1(2 * 128)
    cache.round = 1
    assert cache.load([0, 1]) == ([0, 1], False)  # two sectors of one line
    assert cache.load([1, 2]) == ([2], True)  # one is on its way, one is asked for
    cache.round = 2
    assert cache.load([0, 1, 2]) == ([], False)
    assert cache.load([4]) == ([4], False)
    assert cache.load([8]) == ([8], False)  # the line of 0 to 3 gives way
    assert cache.load([0]) == ([0], False)


def test_blocks_are_dealt_to_sms_in_turn():
    mine = share(H200, (12, 33, 1), threads=256, shared_bytes=0, registers=32)
    assert (mine.blocks, mine.resident) == (3, 3)
    assert list(mine.places(3)) == [(0, 0, 0), (0, 11, 0), (0, 22, 0)]
    assert list(mine.places(2, first=3)) == [(3, 0, 0), (3, 11, 0)]
    many = share(H200, (10_000, 1, 1), 1024, 0, 32)
    assert (many.blocks, many.resident) == (76, 2)
    numbers = [x // 132 for x, _, _ in many.places(6)]
    assert numbers == [0, 1, 37, 38, 74, 75]  # three rounds: the first, one amid, the last
    assert [x // 132 for x, _, _ in many.places(4)] == [0, 1, 74, 75]
    all_of_five = share(H200, (660, 1, 1), 1024, 0, 32)
    assert [x // 132 for x, _, _ in all_of_five.places(5)] == [0, 1, 2, 3, 4]
    with pytest.raises(ValueError, match="2048 threads is too large"):
        share(H200, (1, 1, 1), 2048, 0, 32)


def ended(*cycles):
    """Blocks that end in these cycles, each after 100 instructions more."""
    issued = 100 * (1 + np.arange(len(cycles)))
    return SimpleNamespace(block_ends=np.array(cycles), issued_then=issued)


@pytest.mark.parametrize(
    ("ends", "blocks", "resident", "cycles"),
    [
        ((10, 20), 2, 2, 20),  # all of them
        ((10, 12, 20, 22, 31, 33), 10, 2, 33 + 4 * 4),  # from 10 to 22, 300 instructions
    ],
)
def test_blocks_that_were_not_simulated_follow(ends, blocks, resident, cycles):
    mine = Share((blocks, 1, 1), blocks, resident, 1)
    assert total_cycles(ended(*ends), mine) == cycles


@cuda.jit
def saxpy(a, x, y):
    i = cuda.grid(1)
    if i < x.size:
        y[i] += a * x[i]


@cuda.jit
def busy(x, turns):
    i = cuda.grid(1)
    value = x[i]
    for _ in range(turns):
        value = value * np.float32(1.5) + np.float32(0.5)
    x[i] = value


@pytest.mark.ptxas
def test_a_stream_is_bound_by_memory_or_by_its_blocks():
    x, y = np.ones(1 << 26, np.float32), np.ones(1 << 26, np.float32)
    found = predict_time(saxpy, (1 << 26) // 1024, 1024, np.float32(2), x, y)
    assert (y == 1).all()
    first = H200.l2_bytes  # until L2 has given up what was in it
    rate = H200.sms * H200.clock * facts("h200").dram_bytes_per_cycle
    rest = 8 * x.size - first
    assert found.times["dram"] == pytest.approx(first / rate + rest / H200.dram_copy_bandwidth)
    assert found.times["blocks"] == pytest.approx(x.size / 1024 * H200.hand_out_interval)
    assert max(found.times.values()) == found.times[found.bottleneck]
    assert found.seconds == H200.launch_latency + found.times[found.bottleneck]
    assert f"by {found.bottleneck}; slots: " in str(found)


def doubled(x, y):
    i = cuda.grid(1)
    if i < x.size:
        y[i] = 2 * x[i]


@pytest.mark.ptxas
@pytest.mark.numba_cuda
def test_the_example_of_predict_time_has_these_digits():
    """The docstring leaves out those that are not the same by both compilers."""
    x, y = np.zeros((2, 1 << 24), np.float32)
    found = predict_time(doubled, x.size // 256, 256, x, y, device="h200")
    told = "5.2 e-05 s on h200, by sm; slots: 52% scoreboard, 16% integer, 11% stall, "
    start, end = told.split(" ", 1)
    assert str(found).startswith(start)
    assert end in str(found)
    assert 2.5 <= 2 * x.nbytes / found.seconds / 1e12 < 2.6


@pytest.mark.ptxas
def test_time_grows_with_the_turns_of_a_loop():
    """Each turn takes as long, and a scheduler's 8 warps have 8 slots for their FMAs."""
    x = np.ones(132 * 1024, np.float32)
    found = [predict_time(busy, 132, 1024, x, np.int32(n)) for n in (1000, 2000, 3000)]
    first, second = (b.times["sm"] - a.times["sm"] for a, b in pairwise(found))
    assert first == pytest.approx(second, rel=0.05)  # warps end one after the other
    assert first > 1000 * 8 / H200.clock
    loops = [f.result.issued.max() for f in found]
    slots = [f.result.issued.sum() / f.result.slots for f in found]
    assert loops[1] / loops[0] == pytest.approx(2)
    assert 0.5 < slots[2] <= 1


@pytest.mark.ptxas
def test_a_device_without_a_simulated_sm_is_refused():
    with pytest.raises(ValueError, match="no facts of the SM of 'v100'"):
        predict_time(saxpy, 1, 32, np.float32(1), *np.ones((2, 32), np.float32), device="v100")


@pytest.mark.ptxas
@pytest.mark.parametrize("kernel", [kernels.vectorised, kernels.warp_tiled, kernels.pipelined])
def test_rungs_take_what_their_code_says(kernel):
    """Nothing here knows these records: facts and rules of the SM are from microbenchmarks."""
    problem = Gemm(4096, 4096, 4096)
    found = predict_rung(problem, "h200", kernel)
    recorded = {(m.problem, m.tiling): m for m in records.load("h200", kernel.name)}
    measured = recorded[problem, kernel.default].seconds
    assert found.bottleneck == "sm"
    assert found.seconds == pytest.approx(measured, rel=0.1)
