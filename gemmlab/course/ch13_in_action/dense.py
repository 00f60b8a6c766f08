"""A product of a layer whose epilogue does what follows it: bias and rectifier, mask, or a step.

The loop over k is that of chapter 10's *split_k*, with k whole. An `Epilogue` says what becomes of
each sum: `fetch` loads what it needs, and `finish` makes of both what is stored. A thread fetches
for all of its sums before it stores the first: a load that stood behind a store would wait for it,
since nobody tells the compiler that C and D are different arrays.
"""

from collections.abc import Callable
from typing import NamedTuple

from numpy import float32

from gemmlab import Gemm, Tiling
from gemmlab.kernels.kernel import on_device
from gemmlab.kernels.simt.pipelined import variant
from gemmlab.kernels.simt.shared import vector_access, warp_tiles
from gemmlab.kernels.split_k.shared.mainloop import summing
from gemmlab.simt import cuda

TILING = Tiling(block=(64, 64, 16), warp=(32, 32), thread=(8, 4), stages=3)


class Epilogue(NamedTuple):
    """Device functions: fetch, (D, r, c) -> d, and finish, (x, d) -> what is stored in C[r, c]."""

    fetch: Callable
    finish: Callable


@on_device
def nothing(D, r, c):
    """Fetch nothing."""
    return float32(0)


@on_device
def of_row(D, r, c):
    """Fetch what belongs to the row."""
    return D[r, 0]


@on_device
def of_element(D, r, c):
    """Fetch what belongs to the element."""
    return D[r, c]


@on_device
def alone(x, d):
    """Store the product alone."""
    return x


@on_device
def added(x, d):
    """Add what was fetched."""
    return x + d


@on_device
def rectified(x, d):
    """Add what was fetched, and store 0 for what is negative."""
    y = x + d
    return y if y > 0 else float32(0)


@on_device
def masked(x, d):
    """Store the product where what was fetched is positive, else 0."""
    return x if d > 0 else float32(0)


STORE = Epilogue(nothing, alone)
BIAS = Epilogue(of_row, added)  # D is a column of biases
RECTIFIER = Epilogue(of_row, rectified)
MASK = Epilogue(of_element, masked)  # D is the layer's input: a gradient passes where it is > 0


def step(rate: float) -> Epilogue:
    """Give the epilogue that moves weights: D, which is C itself, less `rate` times the product."""
    RATE = float32(rate)

    @on_device
    def moved(x, d):
        return d - RATE * x

    return Epilogue(of_element, moved)


def build(tiling: Tiling, layout: str, aligned: bool, asynchronous: bool, epilogue: Epilogue):
    """Return the kernel (A, B, C, D) that stores what the epilogue makes of AB in C."""
    BM, BN, BK = tiling.block
    TM, TN = tiling.thread
    DOWN, ACROSS = warp_tiles.apart(tiling)
    K_AXIS = 1 if layout[0] == "n" else 0
    first = on_device(warp_tiles.first_element(tiling))
    sum_part = summing(tiling, layout, aligned, asynchronous)
    fetch, finish = epilogue

    def dense(A, B, C, D):
        m, n = C.shape
        steps = (A.shape[K_AXIS] + BK - 1) // BK
        row = cuda.blockIdx.y * BM
        col = cuda.blockIdx.x * BN
        i, j = first(cuda.threadIdx.x)
        acc = cuda.local.array((TM, TN), float32)
        sum_part(A, B, row, col, i, j, 0, steps * BK, acc)
        d = cuda.local.array((TM, TN), float32)
        for y in range(TM):
            for x in range(TN):
                r = row + i + y // 4 * DOWN + y % 4
                c = col + j + x // 4 * ACROSS + x % 4
                if r < m and c < n:
                    d[y, x] = fetch(D, r, c)
        for y in range(TM):
            for x in range(TN):
                r = row + i + y // 4 * DOWN + y % 4
                c = col + j + x // 4 * ACROSS + x % 4
                if r < m and c < n:
                    C[r, c] = finish(acc[y, x], d[y, x])

    return dense


def kernel(
    problem: Gemm, epilogue: Epilogue, capability: tuple[int, int] | None = None
) -> Callable:
    """Return the kernel for one product; capability : of the GPU, None for the simulated one."""
    return build(TILING, epilogue=epilogue, **variant(problem, capability))


def launch(problem: Gemm) -> tuple[tuple[int, int], tuple[int, int], int]:
    """Give the grid, the block, and the bytes of shared memory."""
    grid, block = TILING.grid(problem), (TILING.threads, 1)
    return grid, block, vector_access.shared_bytes(problem, TILING)
