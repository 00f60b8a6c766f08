"""Answers to exercise 05.3."""

from numpy import float32

from gemmlab import Tiling, cuda, kernels
from gemmlab.course.ch05_tile_and_wave_quantization.q3_blocks_that_stay import (
    build_persistent as build,
)
from tests.course.answers import edited, fooling, wrong

LOOP = "        while tile < down * across:\n"
NEXT = "            tile += cuda.gridDim.x\n"
ZERO = "            acc = float32(0)\n"
FIRST = "        tile = cuda.blockIdx.x\n"


def for_loop(T):
    def kernel(alpha, A, B, beta, C):
        As = cuda.shared.array((T, T), float32)
        Bs = cuda.shared.array((T, T), float32)
        m, n = C.shape
        k = A.shape[1]
        x = cuda.threadIdx.x
        y = cuda.threadIdx.y
        down, across = -(-m // T), -(-n // T)
        for tile in range(cuda.blockIdx.x, down * across, cuda.gridDim.x):
            row, col = tile % down * T + y, tile // down * T + x  # column by column
            acc = 0.0
            for start in range(0, k, T):
                cuda.syncthreads()  # nobody reads the tiles of the step before any more
                As[y, x] = A[row, start + x] if row < m and start + x < k else 0.0
                Bs[y, x] = B[start + y, col] if start + y < k and col < n else 0.0
                cuda.syncthreads()
                for p in range(T):
                    acc += As[y, p] * Bs[p, x]
            if row < m and col < n:
                C[row, col] = alpha * acc + (beta * C[row, col] if beta != 0 else 0.0)

    return kernel


def neighbours(T):
    """A block takes tiles that lie side by side."""
    share = (
        f"{FIRST}        while",
        "        each = (down * across + cuda.gridDim.x - 1) // cuda.gridDim.x\n"
        "        tile = cuda.blockIdx.x * each\n"
        "        last = min(tile + each, down * across)\n        while",
    )
    return edited(build, share, (LOOP, "        while tile < last:\n"),
                  (NEXT, "            tile += 1\n"))(T)  # fmt: skip


RIGHT = {
    "for, column by column": (for_loop,),
    "neighbours": (neighbours,),
    "from the last tile": (
        edited(
            build,
            (FIRST, "        tile = down * across - 1 - cuda.blockIdx.x\n"),
            (LOOP, "        while tile >= 0:\n"),
            (NEXT, "            tile -= cuda.gridDim.x\n"),
        ),
    ),
}


WRONG = {
    "one tile each": wrong(
        build, "there is a block for each tile", "not-written",
        (NEXT, "            tile += down * across\n"),
    ),
    "the rung of the ladder": fooling(
        "blockIdx says which tile", "not-written", lambda T: kernels.tiled.build(Tiling.square(T))
    ),
    "the sum runs on": wrong(
        build, "a sum starts once", "right-in-part",
        (ZERO, ""), (FIRST, FIRST + "        acc = float32(0)\n"),
    ),
    "all of them": wrong(
        build, "every block sees all tiles", "two-writers", (FIRST, "        tile = 0\n"),
        (NEXT, "            tile += 1\n"),
    ),
    "the next one": wrong(
        build, "the next tile is mine", "two-writers", (NEXT, "            tile += 1\n")
    ),
    "rows and columns exchanged": wrong(
        build, "a tile's row is tile % across", "not-written",
        ("tile // across * T + y", "tile % across * T + y"),
        ("tile % across * T + x", "tile // across * T + x"),
    ),
    "block 0 alone": wrong(
        build, "whoever is free takes a tile", "blocks-uneven",
        (FIRST, "        tile = 0 if cuda.blockIdx.x == 0 else down * across\n"),
        (NEXT, "            tile += 1\n"),
    ),
    "columns of tiles": wrong(
        build, "a column of tiles is a portion", "blocks-uneven",
        (LOOP, "        while tile < across * down:\n"),
        (FIRST, "        tile = cuda.blockIdx.x if cuda.blockIdx.x < across else down * across\n"),
        (NEXT, "            tile += across\n"
               "            if tile >= across * down and tile % across + cuda.gridDim.x < across:\n"
               "                tile = tile % across + cuda.gridDim.x\n"),
    ),
    "the last block takes the rest": wrong(
        build, "rounded down, and the rest to the last", "blocks-uneven",
        (f"{FIRST}        while",
         "        each = down * across // cuda.gridDim.x\n"
         "        tile = cuda.blockIdx.x * each\n"
         "        last = tile + each\n"
         "        if cuda.blockIdx.x == cuda.gridDim.x - 1:\n"
         "            last = down * across\n        while"),
        (LOOP, "        while tile < last:\n"), (NEXT, "            tile += 1\n"),
    ),
    "edge threads leave": wrong(
        build, "idle threads may leave", "early-return",
        ("            for start in",
         "            if row >= m or col >= n:\n                return\n            for start in"),
    ),
    "no barrier after the products": wrong(
        build, "one barrier a step is enough", "barrier-after-reading",
        ("Bs[p, x]\n                cuda.syncthreads()\n", "Bs[p, x]\n"),
    ),
    "no barrier between tiles": wrong(
        build, "a tile is done when its sum is", "barrier-after-reading",
        ("Bs[p, x]\n                cuda.syncthreads()\n",
         "Bs[p, x]\n                if start + T < k:\n                    cuda.syncthreads()\n"),
    ),
}  # fmt: skip


STORE = (
    "                C[row, col] = alpha * acc if beta == 0 else alpha * acc + beta * C[row, col]\n"
)
WRONG |= {
    "stored, then scaled": wrong(
        build, "C is as good a place as a register", "c-again",
        (STORE, "                if beta == 0:\n"
                "                    C[row, col] = acc\n"
                "                    C[row, col] = alpha * C[row, col]\n"
                "                else:\n    " + STORE),
    ),
    "whole factors": wrong(
        build, "factors are whole", "whole-numbers-only",
        (STORE, STORE.replace("beta * C", "int(beta) * C")),
    ),
    "64 steps": wrong(
        build, "no sum is longer", "late-steps", ("range(0, k, T)", "range(0, min(k, 64), T)")
    ),
    "64 blocks": wrong(
        build, "no GPU has more", "not-written",
        (LOOP, "        while tile < down * across and cuda.blockIdx.x < 64:\n"),
    ),
    "1000 tiles": wrong(
        build, "no product has more", "not-written",
        (LOOP, "        while tile < min(down * across, 1000):\n"),
    ),
}  # fmt: skip


def one_thread(T):
    """Thread 0 of each block stores for all: the sums go through shared memory."""
    stored = (
        "            if row < m and col < n:\n                C[row, col] =",
        "            Out[y, x] = acc\n            cuda.syncthreads()\n"
        "            if x == 0 and y == 0:\n"
        "                for i in range(T):\n                    for j in range(T):\n"
        "                        if row + i < m and col + j < n:\n"
        "                            s = alpha * Out[i, j]\n"
        "                            if beta != 0:\n"
        "                                s += beta * C[row + i, col + j]\n"
        "                            C[row + i, col + j] = s\n"
        "            if row < 0:\n                C[row, col] =",
    )
    shared = (
        "        m, n = C.shape\n",
        "        Out = cuda.shared.array((T, T), float32)\n        m, n = C.shape\n",
    )
    return edited(build, stored, shared)(T)


FOOLING = {
    "by the factors of the cases": wrong(
        build, "the cases are in the package", "known-cases-only",
        ("row < m and col < n:", "row < m and col < n and alpha < 3:"),
    ),
    "five blocks": wrong(
        build, "the last case has five blocks", "two-writers", (NEXT, "            tile += 5\n")
    ),
    "computes all, stores its own": wrong(
        build, "who stores is what is counted", "traffic-over-budget",
        (FIRST, "        tile = 0\n"), (NEXT, "            tile += 1\n"),
        ("row < m and col < n:",
         "row < m and col < n and tile % cuda.gridDim.x == cuda.blockIdx.x:"),
    ),
    "one thread stores": fooling("a store is a store", "few-threads-multiply", one_thread),
    "tiles for show": wrong(
        build, "the counter is what counts", "traffic-over-budget",
        ("                    acc += As[y, p] * Bs[p, x]\n",
         "                    if row < m and col < n and start + p < k:\n"
         "                        acc += A[row, start + p] * B[start + p, col] + 0 * As[y, p]\n"),
    ),
    "a generator": fooling("yield is return", "wrong-type", lambda T: (yield build(T))),
}  # fmt: skip
