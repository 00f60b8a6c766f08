"""Answers to exercise 06.2."""

from numpy import float32

from gemmlab import cuda
from gemmlab.course.ch06_register_tiles.q2_wide_loads import ZEROS, build_fours as build
from gemmlab.instructions import (
    load_v4,
    store_v4,
)
from tests.course.answers import Wrong, fooling, for_ever, wrong
from tests.course.ch06_register_tiles.answers_q2_in_other_styles import (
    b_in_the_background,
    rows_as_they_lie,
    stored_in_fours,
    with_a_device_function,
    written_out,
)

COPY_B = """            inside = start + y < k and col + 4 * x < n
            store_v4(Bs, y, 4 * x, load_v4(B, start + y, col + 4 * x) if inside else ZEROS)
"""
COPY_A = (
    "            v = load_v4(A, row + i, start + q) if row + i < m and start + q < k else ZEROS\n"
    "            As[q, i], As[q + 1, i], As[q + 2, i], As[q + 3, i] = v\n"
)
LOAD_A = "                a = load_v4(As, p, 4 * y)\n"
INNER = """                a = load_v4(As, p, 4 * y)
                b = load_v4(Bs, p, 4 * x)
                for r in range(4):
                    for c in range(4):
                        acc[r, c] += a[r] * b[c]
"""


RIGHT = {
    "written out": (written_out,),
    "C in fours": (stored_in_fours,),
    "rows of A as they lie": (rows_as_they_lie,),
    "a device function": (with_a_device_function,),
    "B by cp.async": (b_in_the_background,),
}


def from_global(T):
    """No tiles: groups of four straight from A and B, in the inner loop."""
    wide = 4 * T

    def kernel(alpha, A, B, beta, C):
        m, n = C.shape
        k = A.shape[1]
        row = cuda.blockIdx.y * wide + 4 * cuda.threadIdx.y
        col = cuda.blockIdx.x * wide + 4 * cuda.threadIdx.x
        for r in range(4):
            acc = cuda.local.array(4, float32)
            for c in range(4):
                acc[c] = 0
            if row + r < m and col < n:
                for p in range(k):
                    b = load_v4(B, p, col)
                    for c in range(4):
                        acc[c] += A[row + r, p] * b[c]
                for c in range(4):
                    old = C[row + r, col + c] if beta != 0 else float32(0)
                    C[row + r, col + c] = alpha * acc[c] + beta * old

    return kernel


WRONG = {
    "sums in float64": wrong(
        build, "more digits cost nothing", "time-over-limit",
        ("    padded = wide + 4", "    from numpy import float64\n\n    padded = wide + 4"),
        ("acc = cuda.local.array((4, 4), float32)", "acc = cuda.local.array((4, 4), float64)"),
    ),
    "p by remainders": wrong(
        build, "where in a tile one begins costs nothing", "time-over-limit",
        ("            for p in range(T):\n",
         "            for e in range(y, y + T):  # rows of a block begin at different places\n"
         "                p = e % cuda.blockDim.x\n"),
    ),
    "A straight from global memory": wrong(
        build, "one operand in shared memory is enough", "traffic-over-budget",
        (LOAD_A, """                a = cuda.local.array(4, float32)
                for r in range(4):
                    there = row + 4 * y + r < m and start + p < k
                    a[r] = A[row + 4 * y + r, start + p] if there else float32(0)
"""),
    ),
    "no tiles": Wrong("caches do it", "shared-memory-not-used", (from_global,)),
    "B word by word": wrong(
        build, "a wide store makes a wide load", "copies-over-budget",
        (COPY_B, """            for e in range(4):
                inside = start + y < k and col + 4 * x + e < n
                Bs[y, 4 * x + e] = B[start + y, col + 4 * x + e] if inside else float32(0)
"""),
    ),
    "B word by word, coalesced": wrong(
        build, "coalesced is as good as wide", "copies-over-budget",
        (COPY_B, """            for e in range(4):
                inside = start + y < k and col + x + e * T < n
                Bs[y, x + e * T] = B[start + y, col + x + e * T] if inside else float32(0)
"""),
    ),
    "lanes down a column": wrong(
        build, "a group of four is a sector", "copy-not-coalesced",
        ("        i, q = (y * T + x) // across, (y * T + x) % across * 4  # this",
         "        i, q = (y * T + x) % wide, (y * T + x) // wide * 4  # this"),
    ),
    "one thread copies A": wrong(
        build, "who copies does not matter", "few-threads-copy",
        ("            v = load_v4(A, row + i, start + q) if row + i < m and start + q < k "
         "else ZEROS\n            As[q, i], As[q + 1, i], As[q + 2, i], As[q + 3, i] = v\n",
         """            if x == 0 and y == 0:
                for i in range(wide):
                    for q in range(0, T, 4):
                        there = row + i < m and start + q < k
                        v = load_v4(A, row + i, start + q) if there else ZEROS
                        As[q, i], As[q + 1, i], As[q + 2, i], As[q + 3, i] = v
"""),
    ),
    "As word by word": wrong(
        build, "neighbours are merged", "loads-over-budget",
        (LOAD_A, "                a = As[p, 4 * y], As[p, 4 * y + 1], As[p, 4 * y + 2], "
                 "As[p, 4 * y + 3]\n"),
    ),
    "B again for each row": wrong(
        build, "the compiler keeps what is loaded", "loads-over-budget",
        (INNER, """                a = load_v4(As, p, 4 * y)
                for r in range(4):
                    b = load_v4(Bs, p, 4 * x)
                    for c in range(4):
                        acc[r, c] += a[r] * b[c]
"""),
    ),
    "x, not 4x": wrong(
        build, "load_v4 counts in fours", "misaligned", ("load_v4(Bs, p, 4 * x)",
                                                        "load_v4(Bs, p, x)"),
    ),
    "one row four times": wrong(
        build, "a is one value", "right-in-part",
        ("acc[r, c] += a[r] * b[c]", "acc[r, c] += a[0] * b[c]"),
    ),
    "rows and columns swapped": wrong(
        build, "x runs down", "places-mixed", ("load_v4(As, p, 4 * y)", "load_v4(As, p, 4 * x)"),
        ("load_v4(Bs, p, 4 * x)", "load_v4(Bs, p, 4 * y)"),
    ),
    "tile of A not transposed": wrong(
        build, "As[p, i] is A[i, p] by itself", "tile-outside",
        ("As[q, i], As[q + 1, i], As[q + 2, i], As[q + 3, i] = v",
         "As[i, q], As[i, q + 1], As[i, q + 2], As[i, q + 3] = v"),
    ),
    "no guard for A": wrong(
        build, "zeros fill the edge", "load-outside",
        (" if row + i < m and start + q < k else ZEROS\n            As", "\n            As"),
    ),
    "no zeros": wrong(
        build, "what is outside is not used", "tile-not-filled",
        (COPY_B, """            if start + y < k and col + 4 * x < n:
                store_v4(Bs, y, 4 * x, load_v4(B, start + y, col + 4 * x))
"""),
    ),
    "barrier removed": wrong(
        build, "threads copy in step", "barrier-before-reading",
        ("            cuda.syncthreads()\n            # For each p", "            # For each p"),
    ),
}  # fmt: skip


PAIRS = (  # the edit that brings load_v2 into the exercise's names
    "def kernel(alpha, A, B, beta, C):",
    "from gemmlab.instructions import load_v2\n\n    def kernel(alpha, A, B, beta, C):",
)


def one_row_multiplies(T):
    """The row y = 0 of threads computes the elements of all; the others copy and look on."""
    wide, across = 4 * T, T // 4

    def kernel(alpha, A, B, beta, C):
        As = cuda.shared.array((T, wide), float32, alignment=16)
        Bs = cuda.shared.array((T, wide), float32, alignment=16)
        m, n = C.shape
        k = A.shape[1]
        x, y = cuda.threadIdx.x, cuda.threadIdx.y
        row, col = cuda.blockIdx.y * wide, cuda.blockIdx.x * wide
        i, q = (y * T + x) // across, (y * T + x) % across * 4
        acc = cuda.local.array((wide, 4), float32)
        for r in range(wide):
            for c in range(4):
                acc[r, c] = 0
        for start in range(0, k, T):
            v = load_v4(A, row + i, start + q) if row + i < m and start + q < k else ZEROS
            As[q, i], As[q + 1, i], As[q + 2, i], As[q + 3, i] = v
            inside = start + y < k and col + 4 * x < n
            store_v4(Bs, y, 4 * x, load_v4(B, start + y, col + 4 * x) if inside else ZEROS)
            cuda.syncthreads()
            if y == 0:
                for p in range(T):
                    b0, b1, b2, b3 = load_v4(Bs, p, 4 * x)
                    for g in range(0, wide, 4):
                        a = load_v4(As, p, g)
                        for r in range(4):
                            acc[g + r, 0] += a[r] * b0
                            acc[g + r, 1] += a[r] * b1
                            acc[g + r, 2] += a[r] * b2
                            acc[g + r, 3] += a[r] * b3
            cuda.syncthreads()
        if y == 0:
            for r in range(wide):
                for c in range(4):
                    if row + r < m and col + 4 * x + c < n:
                        old = C[row + r, col + 4 * x + c] if beta != 0 else float32(0)
                        C[row + r, col + 4 * x + c] = alpha * acc[r, c] + beta * old

    return kernel


FOOLING = {
    "tiles of eight": wrong(
        build, "no tile is larger", "known-cases-only",
        ("for p in range(T)", "for p in range(min(T, 8))"),
    ),
    "large matrices left out": wrong(
        build, "nobody looks at what is only timed", "work-left-out",
        ("        start = 0\n", "        start = 0 if m < 1000 else k\n"),
    ),
    "one of two types": wrong(
        build, "what is not compiled has no time", "not-compiled",
        ("        start = 0\n", "        step = (T, 2.5)[m % 1]\n        start = 0\n"),
    ),
    "build for ever": fooling("nobody can stop it", "never-ends", for_ever),
    "tiles of 32 rows": wrong(
        build, "the largest tile serves all", "tile-size-fixed",
        ("As = cuda.shared.array((T, padded)", "As = cuda.shared.array((32, padded)"),
        ("Bs = cuda.shared.array((T, wide)", "Bs = cuda.shared.array((32, wide)"),
    ),
    "B cleared": wrong(
        build, "B is not needed afterwards", "inputs-changed",
        ("        for r in range(4):\n            for c in range(4):\n                if row",
         "        if row == 0 and start + y < k + T and y < k and col + 4 * x < n:\n"
         "            store_v4(B, y, col + 4 * x, ZEROS)\n"
         "        for r in range(4):\n            for c in range(4):\n                if row"),
    ),
    "for ever": wrong(
        build, "nobody can stop it", "never-ends",
        ("            start += T\n", "            start += 0\n"),
    ),
    "tiles of 16": wrong(
        build, "the largest tile serves all", "tile-size-fixed",
        ("As = cuda.shared.array((T, padded)", "As = cuda.shared.array((16, 68)"),
        ("Bs = cuda.shared.array((T, wide)", "Bs = cuda.shared.array((16, 64)"),
    ),
    "A word by word": wrong(
        build, "four loads of a word are one of four", "copies-over-budget",
        (COPY_A, """            for e in range(4):
                i, q = (y * T + x + e * T * T) // T, (y * T + x + e * T * T) % T
                there = row + i < m and start + q < k
                As[q, i] = A[row + i, start + q] if there else float32(0)
"""),
    ),
    "B in pairs": wrong(
        build, "wide is wide", "copies-over-budget", PAIRS,
        (COPY_B, """            inside = start + y < k and col + 4 * x < n
            none = (float32(0), float32(0))
            for e in range(0, 4, 2):
                v = load_v2(B, start + y, col + 4 * x + e) if inside else none
                Bs[y, 4 * x + e], Bs[y, 4 * x + e + 1] = v
"""),
    ),
    "As in pairs": wrong(
        build, "wide is wide", "loads-over-budget", PAIRS,
        (LOAD_A, """                a0, a1 = load_v2(As, p, 4 * y)
                a2, a3 = load_v2(As, p, 4 * y + 2)
                a = (a0, a1, a2, a3)
"""),
    ),
    "load_v4 for show": wrong(
        build, "called is used", "loads-over-budget",
        (INNER, """                a = load_v4(As, p, 4 * y)
                b = load_v4(Bs, p, 4 * x)
                for r in range(4):
                    for c in range(4):
                        acc[r, c] += As[p, 4 * y + r] * Bs[p, 4 * x + c] + 0 * (a[r] + b[c])
"""),
    ),
    "tiles for show": wrong(
        build, "the counter is what counts", "traffic-over-budget",
        (INNER, """                a = load_v4(As, p, 4 * y)
                b = load_v4(Bs, p, 4 * x)
                for r in range(4):
                    for c in range(4):
                        if row + 4 * y + r < m and col + 4 * x + c < n and start + p < k:
                            of_a = A[row + 4 * y + r, start + p]
                            of_b = B[start + p, col + 4 * x + c]
                            acc[r, c] += of_a * of_b + 0 * (a[r] + b[c])
"""),
    ),
    "one row of threads multiplies": Wrong(
        "the sums may be anybody's", "few-threads-multiply", (one_row_multiplies,)
    ),
    "one warp copies": wrong(
        build, "half of the threads are enough", "few-threads-copy",
        (COPY_A + COPY_B, """            half = T // 2
            for y2 in range(y, T if y < half else 0, half):
                i, q = (y2 * T + x) // across, (y2 * T + x) % across * 4
                v = load_v4(A, row + i, start + q) if row + i < m and start + q < k else ZEROS
                As[q, i], As[q + 1, i], As[q + 2, i], As[q + 3, i] = v
                inside = start + y2 < k and col + 4 * x < n
                w = load_v4(B, start + y2, col + 4 * x) if inside else ZEROS
                store_v4(Bs, y2, 4 * x, w)
"""),
    ),
    "a warp is a block": wrong(
        build, "threads run in step", "barrier-before-reading",
        ("            cuda.syncthreads()\n            # For each p",
         "            cuda.syncwarp()\n            # For each p"),
    ),
    "the last warp waits": wrong(
        build, "whoever is late waits", "barrier-not-reached",
        ("            cuda.syncthreads()\n            start += T",
         "            if y > 0:\n                cuda.syncthreads()\n            start += T"),
    ),
    "C read in any case": wrong(
        build, "0 times C is 0", "beta-zero-reads-c", (" if beta != 0 else float32(0)\n", "\n"),
    ),
    "alpha by heart": wrong(
        build, "the cases are in the package", "known-cases-only",
        ("        start = 0\n",
         "        start = 0\n        factor = alpha if -2 < alpha and alpha < 3 else float32(1)\n"),
        ("] = alpha *", "] = factor *"),
    ),
}  # fmt: skip
