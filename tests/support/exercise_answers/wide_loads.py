"""Answers to exercise 06.2."""

from numpy import float32

from gemmlab import cuda
from gemmlab.exercises.wide_loads import ZEROS
from gemmlab.exercises.wide_loads import build_fours as build
from gemmlab.instructions import load_v4, store_v4
from tests.support.exercise_answers.edits import fooling, for_ever, wrong

COPY_B = """            inside = start + y < k and col + 4 * x < n
            store_v4(Bs, y, 4 * x, load_v4(B, start + y, col + 4 * x) if inside else ZEROS)
"""
LOAD_A = "                a = load_v4(As, p, 4 * y)\n"
INNER = """                a = load_v4(As, p, 4 * y)
                b = load_v4(Bs, p, 4 * x)
                for r in range(4):
                    for c in range(4):
                        acc[r, c] += a[r] * b[c]
"""


def written_out(T):
    """Sixteen named sums, columns first, and the tile of B stored word by word."""
    wide = 4 * T

    def kernel(alpha, A, B, beta, C):
        As = cuda.shared.array((T, wide), float32, alignment=16)
        Bs = cuda.shared.array((T, wide), float32, alignment=16)
        m, n = C.shape
        k = A.shape[1]
        x, y = cuda.threadIdx.x, cuda.threadIdx.y
        row, col = cuda.blockIdx.y * wide, cuda.blockIdx.x * wide
        t = y * T + x
        q = 4 * (t % (T // 4))
        i = t // (T // 4)
        acc = cuda.local.array((4, 4), float32)
        for c in range(4):
            for r in range(4):
                acc[r, c] = 0
        start = 0
        while start < k:
            v = ZEROS
            if row + i < m and start + q < k:
                v = load_v4(A, row + i, start + q)
            for e in range(4):
                As[q + e, i] = v[e]
            w = ZEROS
            if start + y < k and col + 4 * x < n:
                w = load_v4(B, start + y, col + 4 * x)
            for e in range(4):
                Bs[y, 4 * x + e] = w[e]
            cuda.syncthreads()
            p = 0
            while p < T:
                b0, b1, b2, b3 = load_v4(Bs, p, 4 * x)
                a = load_v4(As, p, 4 * y)
                for r in range(4):
                    acc[r, 0] += a[r] * b0
                    acc[r, 1] += a[r] * b1
                    acc[r, 2] += a[r] * b2
                    acc[r, 3] += a[r] * b3
                p += 1
            cuda.syncthreads()
            start += T
        for r in range(4):
            for c in range(4):
                i_c, j_c = row + 4 * y + r, col + 4 * x + c
                if i_c < m and j_c < n:
                    if beta == 0:
                        C[i_c, j_c] = alpha * acc[r, c]
                    else:
                        C[i_c, j_c] = alpha * acc[r, c] + beta * C[i_c, j_c]

    return kernel


def stored_in_fours(T):
    """The solution with another epilogue: a row of four is updated at once."""
    wide, across = 4 * T, T // 4

    def kernel(alpha, A, B, beta, C):
        As = cuda.shared.array((T, wide), float32, alignment=16)
        Bs = cuda.shared.array((T, wide), float32, alignment=16)
        m, n = C.shape
        k = A.shape[1]
        x, y = cuda.threadIdx.x, cuda.threadIdx.y
        row, col = cuda.blockIdx.y * wide, cuda.blockIdx.x * wide
        i, q = (y * T + x) // across, (y * T + x) % across * 4
        acc = cuda.local.array((4, 4), float32)
        for r in range(4):
            for c in range(4):
                acc[r, c] = 0
        for start in range(0, k, T):
            v = load_v4(A, row + i, start + q) if row + i < m and start + q < k else ZEROS
            As[q, i], As[q + 1, i], As[q + 2, i], As[q + 3, i] = v
            inside = start + y < k and col + 4 * x < n
            store_v4(Bs, y, 4 * x, load_v4(B, start + y, col + 4 * x) if inside else ZEROS)
            cuda.syncthreads()
            for p in range(T):
                a, b = load_v4(As, p, 4 * y), load_v4(Bs, p, 4 * x)
                for r in range(4):
                    for c in range(4):
                        acc[r, c] += a[r] * b[c]
            cuda.syncthreads()
        j = col + 4 * x
        for r in range(4):
            if row + 4 * y + r < m and j < n:
                old = load_v4(C, row + 4 * y + r, j) if beta != 0 else ZEROS
                new = (
                    alpha * acc[r, 0] + beta * old[0], alpha * acc[r, 1] + beta * old[1],
                    alpha * acc[r, 2] + beta * old[2], alpha * acc[r, 3] + beta * old[3],
                )  # fmt: skip
                store_v4(C, row + 4 * y + r, j, new)

    return kernel


RIGHT = {"written out": (written_out,), "C in fours": (stored_in_fours,)}


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


FOOLING = {
    "no tiles": fooling("caches do it", "shared-memory-not-used", from_global),
    "A straight from global memory": wrong(
        build, "one operand in shared memory is enough", "traffic-over-budget",
        (LOAD_A, """                a = cuda.local.array(4, float32)
                for r in range(4):
                    there = row + 4 * y + r < m and start + p < k
                    a[r] = A[row + 4 * y + r, start + p] if there else float32(0)
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
    "tiles of 64": wrong(
        build, "the largest tile serves all", "tile-size-fixed",
        ("cuda.shared.array((T, wide)", "cuda.shared.array((32, 256)"),
    ),
    "tiles of 32 rows": wrong(
        build, "the largest tile serves all", "tile-size-fixed",
        ("As = cuda.shared.array((T, padded)", "As = cuda.shared.array((32, padded)"),
        ("Bs = cuda.shared.array((T, wide)", "Bs = cuda.shared.array((32, wide)"),
    ),
    "only known factors": wrong(
        build, "the cases are in the package", "known-cases-only",
        ("< m and col + 4 * x + c < n:", "< m and col + 4 * x + c < n and beta < 3 and alpha < 3:"),
    ),
    "build for ever": fooling("nobody can stop it", "never-ends", for_ever),
}  # fmt: skip
