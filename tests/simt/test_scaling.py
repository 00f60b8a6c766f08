"""The simulator's memory is bounded: batches of blocks, and a fixed cost for each array element."""

import tracemalloc

import numpy as np
from numpy import float32

from gemmlab import Gemm, cuda, kernels, simulate
from gemmlab.simt.launch import LANES

THREADS = 256
ONE_BATCH = LANES // THREADS  # blocks
# Tracking an element of an array that is stored to: who wrote it, who read it, and when.
BYTES_PER_ELEMENT = 64


def peak(grid, block, kernel, *arguments):
    """The most that a simulated launch holds at once [B]."""
    tracemalloc.start()
    try:
        assert not simulate(kernel, grid, block, *arguments).hazards
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def sum_of_block(x, out):
    part = cuda.shared.array(THREADS, float32)
    t = cuda.threadIdx.x
    value = float32(0)
    for i in range(x.size):
        value += x[(i + cuda.grid(1)) % x.size]
    part[t] = value
    cuda.syncthreads()
    if t == 0:
        total = float32(0)
        for j in range(THREADS):
            total += part[j]
        out[cuda.blockIdx.x] = total


def test_many_batches_take_no_more_memory_than_one():
    x = np.arange(4, dtype=np.float32)
    one, many = np.zeros(ONE_BATCH, np.float32), np.zeros(12 * ONE_BATCH, np.float32)
    simulate(sum_of_block, 1, THREADS, x, one)  # imports and caches
    least = peak(one.size, THREADS, sum_of_block, x, one)
    assert least > LANES * 4  # at least one value for each lane
    most = peak(many.size, THREADS, sum_of_block, x, many)
    assert most < 1.5 * least + BYTES_PER_ELEMENT * many.size
    np.testing.assert_array_equal(many, THREADS * x.sum())


def test_a_gemm_of_many_batches_adds_what_its_arrays_take():
    tiling = kernels.tiled.default
    side = tiling.block[0] * int(ONE_BATCH**0.5)

    def gemm(n):
        problem = Gemm(n, n, 2 * tiling.block[0])
        operands = problem.operands()
        c = np.full((n, n), np.nan, np.float32)
        arguments = (np.float32(1), operands.a, operands.b, np.float32(0), c)
        held = peak(
            *kernels.tiled.configure(problem, tiling), kernels.tiled.build(tiling), *arguments
        )
        assert problem.error(c, operands) <= problem.tolerance
        return held

    gemm(tiling.block[0])
    one, nine = gemm(side), gemm(3 * side)
    assert nine < 1.5 * one + BYTES_PER_ELEMENT * (3 * side) ** 2
