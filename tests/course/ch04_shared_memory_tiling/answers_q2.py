"""Answers to exercise 04.2."""

import os

import numpy as np
from numpy import float32

from gemmlab import Tiling, cuda, kernels
from gemmlab.course.ch04_shared_memory_tiling.q2_tiled_kernel import CASES, build
from gemmlab.course.judging import launches
from tests.course.answers import Wrong, fooling, for_ever, wrong


def rung(T):
    return kernels.tiled.build(Tiling.square(T))


def one_barrier(T):
    def kernel(alpha, A, B, beta, C):
        As = cuda.shared.array((2, T, T), float32)
        Bs = cuda.shared.array((2, T, T), float32)
        m, n = C.shape
        k = A.shape[1]
        col, row = cuda.grid(2)
        x = cuda.threadIdx.x
        y = cuda.threadIdx.y
        acc = float32(0)
        for step in range((k + T - 1) // T):
            buffer = step % 2
            p = step * T + x
            if row < m and p < k:
                As[buffer, y, x] = A[row, p]
            else:
                As[buffer, y, x] = 0
            p = step * T + y
            if p < k and col < n:
                Bs[buffer, y, x] = B[p, col]
            else:
                Bs[buffer, y, x] = 0
            cuda.syncthreads()
            for p in range(T):
                acc += As[buffer, y, p] * Bs[buffer, p, x]
        if row < m and col < n:
            if beta != 0:
                C[row, col] = alpha * acc + beta * C[row, col]
            else:
                C[row, col] = alpha * acc

    return kernel


def padded_and_transposed(T):
    padded = T + 1

    def kernel(alpha, A, B, beta, C):
        tile_a = cuda.shared.array((T, padded), float32)
        tile_b = cuda.shared.array((T, T), float32)
        x = cuda.threadIdx.x
        y = cuda.threadIdx.y
        i = cuda.blockIdx.y * cuda.blockDim.y + y
        j = cuda.blockIdx.x * cuda.blockDim.x + x
        total = 0.0
        start = 0
        while start < A.shape[1]:
            tile_a[x, y] = 0
            tile_b[y, x] = 0
            if i < A.shape[0] and start + x < A.shape[1]:
                tile_a[x, y] = A[i, start + x]
            if start + y < B.shape[0] and j < B.shape[1]:
                tile_b[y, x] = B[start + y, j]
            cuda.syncthreads()
            for p in range(T):
                total += tile_a[p, y] * tile_b[p, x]
            cuda.syncthreads()
            start += T
        if i < C.shape[0] and j < C.shape[1]:
            C[i, j] = alpha * total + (beta * C[i, j] if beta != 0 else 0.0)

    return kernel


def warps_share_the_copying(T):
    def kernel(alpha, A, B, beta, C):
        As = cuda.shared.array((T, T), float32)
        Bs = cuda.shared.array((T, T), float32)
        me = cuda.threadIdx.y * T + cuda.threadIdx.x
        threads = cuda.blockDim.x * cuda.blockDim.y
        top, left = cuda.blockIdx.y * T, cuda.blockIdx.x * T
        y, x = me // T, me % T
        acc = float32(0)
        for step in range(-(-A.shape[1] // T)):
            for e in range(me, 2 * T * T, threads):
                i, j = e % (T * T) // T, e % T
                value = float32(0)
                if e < T * T:
                    if top + i < A.shape[0] and step * T + j < A.shape[1]:
                        value = A[top + i, step * T + j]
                    As[i, j] = value
                else:
                    if step * T + i < B.shape[0] and left + j < B.shape[1]:
                        value = B[step * T + i, left + j]
                    Bs[i, j] = value
            cuda.syncthreads()
            for p in range(T - 1, -1, -1):
                acc += As[y, p] * Bs[p, x]
            cuda.syncthreads()
        if top + y >= C.shape[0] or left + x >= C.shape[1]:
            return
        if beta == 0:
            C[top + y, left + x] = alpha * acc
            return
        C[top + y, left + x] = alpha * acc + beta * C[top + y, left + x]

    return kernel


RIGHT = {
    "a loop over both tiles": (warps_share_the_copying,),
    "the rung of the ladder": (rung,),
    "compiled for a GPU": (lambda T: cuda.jit(kernels.tiled.build(Tiling.square(T))),),
    "two buffers, one barrier": (one_barrier,),
    "padded, transposed, while": (padded_and_transposed,),
}


def naive(T):
    def kernel(alpha, A, B, beta, C):
        j, i = cuda.grid(2)
        if i < C.shape[0] and j < C.shape[1]:
            acc = float32(0)
            for p in range(A.shape[1]):
                acc += A[i, p] * B[p, j]
            C[i, j] = alpha * acc if beta == 0 else alpha * acc + beta * C[i, j]

    return kernel


BARRIER = "            cuda.syncthreads()\n"
FIRST = f"{BARRIER}            for p in range(T):\n"
SECOND = f"Bs[p, x]\n{BARRIER}"
GUARD_A = " if row < m and start + x < k else float32(0)"
GUARD_C = "if row < m and col < n:"
LOADS = """            As[y, x] = A[row, start + x] if row < m and start + x < k else float32(0)
            Bs[y, x] = B[start + y, col] if start + y < k and col < n else float32(0)
"""

WRONG = {
    "no first barrier": wrong(
        build, "threads copy in step", "barrier-before-reading",
        (FIRST, FIRST.removeprefix(BARRIER)),
    ),
    "no second barrier": wrong(
        build, "one barrier a step is enough", "barrier-after-reading", (SECOND, "Bs[p, x]\n")
    ),
    "no barrier": wrong(
        build, "warps run in lock-step", "barrier-before-reading",
        (SECOND, "Bs[p, x]\n"), (FIRST, FIRST.removeprefix(BARRIER)),
    ),
    "no zero fill": wrong(
        build, "shared memory starts at zero", "tile-not-filled",
        (LOADS, "            if row < m and start + x < k:\n"
                "                As[y, x] = A[row, start + x]\n"
                "            if start + y < k and col < n:\n"
                "                Bs[y, x] = B[start + y, col]\n"),
    ),
    "stale edge": wrong(
        build, "one zero fill is enough", "tile-not-filled",
        (LOADS, "            if row < m and start + x < k:\n"
                "                As[y, x] = A[row, start + x]\n"
                "            Bs[y, x] = B[start + y, col] if start + y < k and col < n else 0.0\n"),
    ),
    "or in the guard of A": wrong(
        build, "one index inside is enough", "load-outside",
        ("row < m and start", "row < m or start"),
    ),
    "no guard of A": wrong(build, "tiles divide the matrix", "load-outside", (GUARD_A, "")),
    "or in the guard of C": wrong(
        build, "one index inside is enough", "store-outside", (GUARD_C, "if row < m or col < n:")
    ),
    "skip only where both are outside": wrong(
        build, "and for or when skipping", "store-outside",
        (GUARD_C, "if not (row >= m and col >= n):"),
    ),
    "early return": wrong(
        build, "idle threads may leave", "early-return",
        ("        for start in",
         "        if row >= m or col >= n:\n            return\n        for start in"),
    ),
    "barrier in a branch": wrong(
        build, "only threads that copy need the barrier", "barrier-not-reached",
        (FIRST, f"            if row < m and col < n:\n    {FIRST}"),
    ),
    "floor": wrong(
        build, "k // T steps", "floor-steps", ("range(0, k, T)", "range(0, k // T * T, T)")
    ),
    "beta dropped": wrong(
        build, "beta is 0", "beta-dropped", ("alpha * acc + beta * C[row, col]", "alpha * acc")
    ),
    "alpha dropped": wrong(
        build, "alpha is 1", "alpha-dropped",
        ("alpha * acc + beta", "acc + beta"), ("alpha * acc", "acc"),
    ),
    "alpha over all": wrong(
        build, "alpha scales the sum", "alpha-scales-c",
        ("alpha * acc + beta * C[row, col]", "alpha * (acc + beta * C[row, col])"),
    ),
    "C read at beta = 0": wrong(
        build, "0 · x is 0", "beta-zero-reads-c", ("if beta == 0:", "if beta == 17:")
    ),
    "A for B": wrong(build, "copy and paste", "reads-a-for-b", ("= B[start", "= A[start")),
    "A for B, guarded": wrong(
        build, "copy and paste", "reads-a-for-b",
        ("= B[start + y, col] if start + y < k and col < n",
         "= A[start + y, col] if start + y < m and col < k"),
    ),
    "B transposed": wrong(
        build, "the tile of B is read by rows", "tiles-transposed", ("Bs[p, x]", "Bs[x, p]")
    ),
    "no sum at the start": wrong(
        build, "a variable starts at 0", "accumulator-not-zeroed",
        ("        acc = float32(0)\n", ""),
    ),
    "local array not zeroed": wrong(
        build, "local memory starts at 0", "accumulator-not-zeroed",
        ("acc = float32(0)", "acc = cuda.local.array(1, float32)"), ("acc +=", "acc[0] +="),
        ("alpha * acc + beta", "alpha * acc[0] + beta"), ("alpha * acc\n", "alpha * acc[0]\n"),
    ),
    "NaN sum": wrong(
        build, "NaN passes a comparison", "always-nan",
        ("float32(0)\n        # S", "float32('nan')\n        # S"),
    ),
    "no shared memory": Wrong("caches do it", "shared-memory-not-used", (naive,)),
    "tiles copied, not used": wrong(
        build, "copying is enough", "shared-memory-not-used",
        ("                acc += As[y, p] * Bs[p, x]\n",
         "                if row < m and col < n and start + p < k:\n"
         "                    acc += A[row, start + p] * B[start + p, col]\n"),
    ),
    "A is loaded for each product": wrong(
        build, "only B needs a tile", "traffic-over-budget",
        ("                acc += As[y, p] * Bs[p, x]\n",
         "                if row < m and start + p < k:\n"
         "                    acc += A[row, start + p] * Bs[p, x]\n"),
    ),
    "float16 sum": wrong(
        build, "half precision is enough for sums", "low-precision",
        ("acc += As[y, p] * Bs[p, x]", "acc = float16(acc + As[y, p] * Bs[p, x])"),
        ("def build(T):\n", "from numpy import float16\n\n\ndef build(T):\n"),
    ),
    "inner loop over k": wrong(
        build, "the tile is as deep as the matrix", "tile-outside",
        ("for p in range(T)", "for p in range(k)"),
    ),
    "rows follow x": wrong(
        build, "x is the row", "not-written",
        ("cuda.blockIdx.y * T + y", "cuda.blockIdx.x * T + y"),
        ("cuda.blockIdx.x * T + x\n", "cuda.blockIdx.y * T + x\n"),
    ),
    "all write one element": wrong(
        build, "each row has one tile element", "two-writers", ("As[y, x] =", "As[y, 0] =")
    ),
    "endless": wrong(
        build, "range without a step ends", "never-ends",
        ("for start in range(0, k, T):", "start = 0\n        while start < k:"),
    ),
    "no kernel": Wrong("build computes C", "wrong-type", (lambda T: None,)),
    "kernel without beta": Wrong(
        "beta is optional", "wrong-type", (lambda T: lambda A, B, C: None,)
    ),
    "name misspelt": wrong(build, "names are checked early", "raises", ("Bs[p, x]", "Bz[p, x]")),
    "unsupported": wrong(
        build, "kernels are all of Python", "raises", ("for p in range(T):", "for p in [0, 1]:")
    ),
    "build raises": Wrong("T is a tiling", "raises", (lambda T: kernels.tiled.build(T),)),
    "not a function": Wrong("the kernel is text", "wrong-type", (np.zeros(3),)),
}  # fmt: skip

COPY_A = "As[y, x] = A[row, start + x] if row < m and start + x < k else float32(0)"
COPY_B = "Bs[y, x] = B[start + y, col] if start + y < k and col < n else float32(0)"
ALONE = """            if x == 0 and y == 0:
                for i in range(T):
                    for j in range(T):
                        r, c = row + i, start + j
                        As[i, j] = A[r, c] if r < m and c < k else float32(0)
                        r, c = start + i, col + j
                        Bs[i, j] = B[r, c] if r < k and c < n else float32(0)
"""


def by_heart(T):
    known = {}
    for case in CASES:
        p = case.problem
        known.setdefault(case.tile, []).append((p.m, p.n, p.k, p.reference(case.operands())))
    m0, n0, _, last = known[T][-1]
    last = last.astype(np.float32)

    def kernel(alpha, A, B, beta, C):
        j, i = cuda.grid(2)
        if i < C.shape[0] and j < C.shape[1]:
            C[i, j] = last[i % m0, j % n0]

    return kernel


def patches(T):
    launches.simulate = lambda *arguments, **options: None
    return rung(T)


def patches_arrays(T):
    np.array_equal = lambda *a, **k: True
    return rung(T)


def ends(T):
    os._exit(0)


FOOLING = {
    "a sum of 64": wrong(
        build, "no sum is longer", "known-cases-only", ("range(0, k, T)", "range(0, min(k, 64), T)")
    ),
    "tiles of eight": wrong(
        build, "no tile is larger", "known-cases-only",
        ("for p in range(T)", "for p in range(min(T, 8))"),
    ),
    "one column too few in the last step": wrong(
        build, "the last index is k - 2", "ragged-k",
        (GUARD_A, " if row < m and (start + x < k - 1 or start + T <= k) else 0.0"),
    ),
    "no beta in the last block": wrong(
        build, "an incomplete block has no C to add", "edges-only",
        ("            if beta == 0:", "            if beta == 0 or cuda.blockIdx.x == n // T:"),
    ),
    "added for multiplied": wrong(
        build, "an FMA adds", "wrong-values", ("As[y, p] * Bs[p, x]", "As[y, p] + Bs[p, x]")
    ),
    "one thread copies": wrong(build, "a copy is a copy", "few-threads-copy", (LOADS, ALONE)),
    "a row of threads copies": wrong(
        build,
        "a copy is a copy",
        "few-threads-copy",
        (
            LOADS,
            """            if y == 0:
                for i in range(T):
                    r = cuda.blockIdx.y * T + i
                    As[i, x] = A[r, start + x] if r < m and start + x < k else float32(0)
                    r = start + i
                    Bs[i, x] = B[r, col] if r < k and col < n else float32(0)
""",
        ),
    ),
    "A copied along its columns": wrong(
        build,
        "any thread may copy any element",
        "copy-not-coalesced",
        (
            f"            {COPY_A}\n",
            """            r, c = cuda.blockIdx.y * T + x, start + y
            As[x, y] = A[r, c] if r < m and c < k else float32(0)
""",
        ),
    ),
    "B copied along its columns": wrong(
        build,
        "any thread may copy any element",
        "copy-not-coalesced",
        (
            f"            {COPY_B}\n",
            """            r, c = start + x, cuda.blockIdx.x * T + y
            Bs[x, y] = B[r, c] if r < k and c < n else float32(0)
""",
        ),
    ),
    "tiles of 32": wrong(
        build, "the largest tile serves all", "tile-size-fixed",
        ("As = cuda.shared.array((T, T)", "As = cuda.shared.array((32, 32)"),
        ("Bs = cuda.shared.array((T, T)", "Bs = cuda.shared.array((32, 32)"),
    ),
    "tiles of 8": wrong(
        build, "the largest tile serves all", "tile-size-fixed",
        ("As = cuda.shared.array((T, T)", "As = cuda.shared.array((16, 16)"),
        ("Bs = cuda.shared.array((T, T)", "Bs = cuda.shared.array((8, 8)"),
    ),
    "one thread multiplies": wrong(
        build, "the result is what counts", "few-threads-multiply",
        ("for start in range(0, k, T):", "C[row, col] = alpha * acc + beta * C[row, col]", """
            for start in range(0, k, T):
                As[y, x] = A[row, start + x] if row < m and start + x < k else float32(0)
                Bs[y, x] = B[start + y, col] if start + y < k and col < n else float32(0)
                cuda.syncthreads()
                if x == 0 and y == 0:
                    for i in range(T):
                        for j in range(T):
                            for p in range(T):
                                acc[i, j] += As[i, p] * Bs[p, j]
                cuda.syncthreads()
            if x == 0 and y == 0:
                for i in range(T):
                    for j in range(T):
                        if row + i < m and col + j < n:
                            s = alpha * acc[i, j]
                            C[row + i, col + j] = s if beta == 0 else s + beta * C[row + i, col + j]
        """),
        ("col = cuda.blockIdx.x * T + x", "for start in range(0, k, T):", """
            col = cuda.blockIdx.x * T + x
            for i in range(T):
                for j in range(T):
                    acc[i, j] = 0
            for start in range(0, k, T):
        """),
        ("Bs = cuda.shared.array((T, T), float32)", "", """
            Bs = cuda.shared.array((T, T), float32)
            acc = cuda.local.array((T, T), float32)
        """),
    ),
    "shared memory for show": wrong(
        build, "the counter is what counts", "traffic-over-budget",
        ("                acc += As[y, p] * Bs[p, x]\n",
         "                if row < m and col < n and start + p < k:\n"
         "                    acc += A[row, start + p] * B[start + p, col] + 0 * As[y, p]\n"),
    ),
    "A cleared": wrong(
        build, "A is not needed afterwards", "inputs-changed",
        ("        if row < m and col < n:\n            if beta",
         "        if row < m and col == 0 and n <= T:\n            for p in range(k):\n"
         "                A[row, p] = 0\n        if row < m and col < n:\n            if beta"),
    ),
    "by heart": fooling("the cases are in the package", "right-in-part", by_heart),
    "only known factors": wrong(
        build, "the cases are in the package", "known-cases-only",
        ("if row < m and col < n:", "if row < m and col < n and beta < 3 and alpha < 3:"),
    ),
    "simulator replaced": fooling("what launches can be replaced", "tampers", patches),
    "NumPy replaced": fooling("what compares can be replaced", "tampers", patches_arrays),
    "ends the process": fooling("no process, no verdict", "exits", ends),
    "build for ever": fooling("nobody can stop it", "never-ends", for_ever),
    "a generator": fooling("yield is return", "wrong-type", lambda T: (yield rung(T))),
}  # fmt: skip
