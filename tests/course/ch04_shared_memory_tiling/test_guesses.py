"""The answers of chapter 04, found another way: by kernels, words, and the lines of records."""

import numpy as np
import pytest
from numpy import float32

from gemmlab import Gemm, cuda, kernels, run, simulate
from gemmlab.course.ch04_shared_memory_tiling import guesses as answers
from tests.support.bank_words import passes
from tests.support.one_thread import one_by_one
from tests.support.record_lines import time

N = 64


def test_reads():
    class Counted:
        """A matrix of ones that counts the loads of each element."""

        def __init__(self, *shape):
            self.shape = shape
            self.loads = np.zeros(shape, int)

        def __getitem__(self, at):
            self.loads[at] += 1
            return float32(1)

    # One row of blocks and two steps: what n alone decides is the same for the others.
    a, b, c = Counted(16, 2), Counted(2, N), np.zeros((16, N), float32)
    kernel = kernels.coalesced.build(kernels.coalesced.default)
    one_by_one(kernel, (N // 16, 1), (16, 16), float32(1), a, b, float32(0), c)
    assert set(a.loads.ravel()) == {answers.reads().number}


def test_once():
    counters = run(kernels.tiled, Gemm(N, N, N), backend="simulator").counters
    of_a = counters["global_load_bytes"] / 4 / 2  # as many are of B
    assert answers.once().number == of_a / N**2


def test_spoilt():
    """Line after line in all threads, in NumPy: each thread's own A[row, p] and B[p, col]."""
    a, b, _ = Gemm(N, N, N).operands(kind="integers")
    row, col = np.indices((N, N))
    acc = np.zeros((N, N), float32)
    for start in range(0, N, 16):
        as_, bs = a[row, start + col % 16], b[start + row % 16, col]  # all stored, then all read
        for p in range(16):
            acc += as_[row, col - col % 16 + p] * bs[row - row % 16 + p, col]
    assert answers.spoilt().number == (acc != a @ b).sum()


def test_smaller():
    sectors = {
        n: run(kernels.tiled, Gemm(n, n, n), backend="simulator").counters["global_load_sectors"]
        for n in (127, 128)
    }
    assert answers.smaller().number == pytest.approx(100 * sectors[127] / sectors[128])


def of_a_column(words):
    """Wavefronts of a warp's request for `Bs[x, 0]` where a row of Bs has so many words."""

    def kernel(y):
        Bs = cuda.shared.array((16, words), float32)
        x = cuda.threadIdx.x
        if cuda.threadIdx.y == 0:
            Bs[x, 0] = float32(x)
        cuda.syncthreads()
        y[cuda.threadIdx.y, x] = Bs[x, 0]

    report = simulate(kernel, 1, (16, 2), np.zeros((2, 16), float32))
    return report.counters["shared_load_wavefronts"]


def test_column():
    assert answers.column().number == of_a_column(16)


def test_width():
    assert answers.width().number == of_a_column(20)


def test_saved():
    def wavefronts(side):
        """Of a warp of *tiled* at n = 4096."""
        lanes = [(lane // side, lane % side) for lane in range(32)]
        places = passes(4096 * y + x for y, x in lanes)  # in A, B and C alike
        stores = 2 * passes(side * y + x for y, x in lanes)
        loads = sum(
            passes(side * y + p for y, _ in lanes) + passes(side * p + x for _, x in lanes)
            for p in range(side)
        )
        return 4096 // side * (2 * places + stores + loads) + places

    assert answers.saved().number == pytest.approx(100 * (1 - wavefronts(32) / wavefronts(16)))


def test_small():
    ratio = time("coalesced", 4096) / time("tiled", 4096, (8, 8, 8))
    assert answers.small().number == pytest.approx(ratio)
