"""Lanes that run apart count what they count in lock-step."""

import numpy as np
from numpy import int32

from gemmlab import cuda, simulate
from tests.support.launches import line_of


def meets(lock, x, out, spins):
    """Barriers, votes and shuffles, after a lock that is taken lane by lane."""
    tile = cuda.shared.array(64, int32)
    t = cuda.threadIdx.x
    if spins:
        while cuda.atomic.cas(lock, 0, 0, 1) != 0:
            pass
        cuda.threadfence()
        x[64] += 1
        cuda.threadfence()
        cuda.atomic.exch(lock, 0, 0)
    tile[t] = x[t]
    cuda.syncthreads()
    value = tile[63 - t]
    value += cuda.shfl_xor_sync(0xFFFFFFFF, value, 1)
    for step in (16, 8):
        value += cuda.shfl_down_sync(0xFFFFFFFF, value, step)
    cuda.syncwarp()
    if t < 16:
        value += cuda.ballot_sync(0xFFFF, t % 3 == 0)
    odd = cuda.syncthreads_count(value % 2)
    for i in range(t % 5):
        value += x[(t * 7 + i) % 64]
    out[t] = value + odd


def test_counters_and_values_of_lanes_apart_are_those_of_lock_step():
    x = np.random.default_rng(2).integers(0, 99, 65).astype(int32)
    results = []
    for spins in (False, True):
        out = np.zeros(64, int32)
        report = simulate(meets, 1, 64, np.zeros(1, int32), x.copy(), out, spins, shares=True)
        first = line_of(meets, "tile[t] = x[t]")
        counts = {n: dict(c) for n, c in report.by_line.items() if n >= first}
        results.append((out.tolist(), counts))
        loads = report.shares.of("load", "x")[0] - 4 * spins
    assert results[0] == results[1]
    assert (loads == 4 * (1 + np.arange(64) % 5)).all()
