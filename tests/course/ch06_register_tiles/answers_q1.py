"""Answers to exercise 06.1."""

from numpy import float32

from gemmlab import Tiling, cuda, kernels
from gemmlab.course.ch06_register_tiles.q1_register_tile import build_thread_tile as build
from tests.course.answers import edited, wrong

INNER = """            for p in range(T):
                a0 = As[y, p]
                a1 = As[y + T, p]
                b0 = Bs[p, x]
                b1 = Bs[p, x + T]
                acc[0, 0] += a0 * b0
                acc[0, 1] += a0 * b1
                acc[1, 0] += a1 * b0
                acc[1, 1] += a1 * b1
"""


def outer_product(T):
    wide = 2 * T

    def kernel(alpha, A, B, beta, C):
        As = cuda.shared.array((wide, T), float32)
        Bs = cuda.shared.array((T, wide), float32)
        x, y = cuda.threadIdx.x, cuda.threadIdx.y
        top, left = cuda.blockIdx.y * wide, cuda.blockIdx.x * wide
        acc = cuda.local.array(4, float32)
        a = cuda.local.array(2, float32)
        for e in range(4):
            acc[e] = 0
        for step in range((A.shape[1] + T - 1) // T):
            start = step * T
            for e in range(y * T + x, wide * T, T * T):
                i, j = e // T, start + e % T
                inside = top + i < A.shape[0] and j < A.shape[1]
                As[i, e % T] = A[top + i, j] if inside else float32(0)
                i, j = e // wide, left + e % wide
                inside = start + i < B.shape[0] and j < B.shape[1]
                Bs[i, e % wide] = B[start + i, j] if inside else float32(0)
            cuda.syncthreads()
            for p in range(T):
                for i in range(2):
                    a[i] = As[y + i * T, p]
                for j in range(2):
                    b = Bs[p, x + j * T]
                    for i in range(2):
                        acc[2 * i + j] += a[i] * b
            cuda.syncthreads()
        for e in range(4):
            r, c = top + y + (e >> 1) * T, left + x + (e & 1) * T
            if r >= C.shape[0] or c >= C.shape[1]:
                continue
            old = float32(0)
            if beta != 0:
                old = beta * C[r, c]
            C[r, c] = alpha * acc[e] + old

    return kernel


RIGHT = {
    "an outer product for each p": (outer_product,),
    "the rung itself": (
        lambda T: kernels.register_tiled.build(Tiling(block=(2 * T, 2 * T, T), thread=(2, 2))),
    ),
    "neighbours, A's tile transposed": (edited(
        build,
        ("row = cuda.blockIdx.y * wide + y", "C[r, c] = alpha * acc[i, j] + beta * C[r, c]", """
            top = cuda.blockIdx.y * wide
            left = cuda.blockIdx.x * wide
            s00 = s01 = s10 = s11 = float32(0)
            for start in range(0, k, T):
                for i in range(y, wide, T):
                    inside = top + i < m and start + x < k
                    As[x, i] = A[top + i, start + x] if inside else float32(0)
                for j in range(x, wide, T):
                    inside = start + y < k and left + j < n
                    Bs[y, j] = B[start + y, left + j] if inside else float32(0)
                cuda.syncthreads()
                for p in range(T):
                    a0, a1, b0, b1 = As[p, 2 * y], As[p, 2 * y + 1], Bs[p, 2 * x], Bs[p, 2 * x + 1]
                    s00 += a0 * b0
                    s01 += a0 * b1
                    s10 += a1 * b0
                    s11 += a1 * b1
                cuda.syncthreads()
            for i in range(2):
                for j in range(2):
                    r, c = top + 2 * y + i, left + 2 * x + j
                    s = (s00 if j == 0 else s01) if i == 0 else (s10 if j == 0 else s11)
                    if r < m and c < n:
                        C[r, c] = alpha * s + (beta * C[r, c] if beta != 0 else float32(0))
        """),
        ("As = cuda.shared.array((wide, T), float32)",
         "As = cuda.shared.array((T, wide), float32)"),
    ),),
}  # fmt: skip


def inner(text):
    return INNER, text


WRONG = {
    "eight loads": wrong(
        build, "the compiler keeps what is loaded", "loads-over-budget",
        inner("""            for p in range(T):
                for i in range(2):
                    for j in range(2):
                        acc[i, j] += As[y + i * T, p] * Bs[p, x + j * T]
"""),
    ),
    "six loads": wrong(
        build, "one operand in a register is enough", "loads-over-budget",
        inner("""            for p in range(T):
                for i in range(2):
                    a = As[y + i * T, p]
                    for j in range(2):
                        acc[i, j] += a * Bs[p, x + j * T]
"""),
    ),
    "no tiles": wrong(
        outer_product, "caches do it", "shared-memory-not-used",
        ("As = cuda.shared.array((wide, T), float32)", "C[r, c] = alpha * acc[e] + old", """
            m, n = C.shape
            row = cuda.blockIdx.y * wide + cuda.threadIdx.y
            col = cuda.blockIdx.x * wide + cuda.threadIdx.x
            for i in range(2):
                for j in range(2):
                    r, c = row + i * T, col + j * T
                    if r < m and c < n:
                        acc = float32(0)
                        for p in range(A.shape[1]):
                            acc += A[r, p] * B[p, c]
                        C[r, c] = alpha * acc if beta == 0 else alpha * acc + beta * C[r, c]
        """),
    ),
    "rows are neighbours": wrong(
        build, "a thread's rows are side by side", "places-mixed",
        ("As[y, p]", "As[2 * y, p]"), ("As[y + T, p]", "As[2 * y + 1, p]"),
    ),
    "sums crossed": wrong(
        build, "acc[i, j] and acc[j, i] are the same", "places-mixed",
        ("acc[0, 1] += a0 * b1", "acc[1, 0] += a0 * b1"),
        ("acc[1, 0] += a1 * b0", "acc[0, 1] += a1 * b0"),
    ),
    "one sum forgotten": wrong(
        build, "three FMAs are four", "right-in-part", ("acc[1, 1] += a1 * b1", "b1 = a1")
    ),
    "one element stored": wrong(
        build, "a thread has one element", "not-written",
        ("j in range(2):\n                r, c", "j in range(1):\n                r, c"),
    ),
    "one guard for four": wrong(
        build, "a thread is inside or outside", "store-outside",
        ("if r < m and c < n:\n", "if row < m and col < n:\n"),
    ),
    "no store": wrong(
        build, "sums are the result", "not-written", ("if r < m and c < n:\n", "if r < 0:\n")
    ),
    "inner loop short": wrong(
        build, "range includes its end", "products-missing",
        ("for p in range(T)", "for p in range(1, T)"),
    ),
    "inner loop over the wide tile": wrong(
        build, "the tile is 2T deep", "tile-outside", ("for p in range(T)", "for p in range(wide)")
    ),
    "beta dropped": wrong(build, "beta is 0", "beta-dropped", (" + beta * C[r, c]", "")),
    "alpha dropped": wrong(
        build, "alpha is 1", "alpha-dropped",
        ("C[r, c] = alpha * acc[i, j]\n", "C[r, c] = acc[i, j]\n"),
        ("alpha * acc[i, j] + beta", "acc[i, j] + beta"),
    ),
    "C is read": wrong(
        build, "0 times anything is 0", "beta-zero-reads-c", ("if beta == 0:", "if beta == 17:")
    ),
    "barrier removed": wrong(
        build, "threads copy in step", "barrier-before-reading",
        ("            cuda.syncthreads()\n            # For", "            # For"),
    ),
}  # fmt: skip

FROM_A = """            for p in range(T):
                a0 = A[row, start + p] if row < m and start + p < k else float32(0)
                a1 = A[row + T, start + p] if row + T < m and start + p < k else float32(0)
                b0 = Bs[p, x]
                b1 = Bs[p, x + T]
                acc[0, 0] += a0 * b0
                acc[0, 1] += a0 * b1
                acc[1, 0] += a1 * b0
                acc[1, 1] += a1 * b1
"""
FROM_B = """            for p in range(T):
                q = start + p
                a0 = As[y, p]
                a1 = As[y + T, p]
                b0 = B[q, col] if q < k and col < n else float32(0)
                b1 = B[q, col + T] if q < k and col + T < n else float32(0)
                acc[0, 0] += a0 * b0
                acc[0, 1] += a0 * b1
                acc[1, 0] += a1 * b0
                acc[1, 1] += a1 * b1
"""


FOOLING = {
    "tiles of eight": wrong(
        build, "no tile is larger", "known-cases-only",
        ("for p in range(T)", "for p in range(min(T, 8))"),
    ),
    "no beta in the lower rows": wrong(
        build, "one epilogue is enough", "rows-wrong",
        ("alpha * acc[i, j] + beta * C[r, c]",
         "alpha * acc[i, j] + (beta * C[r, c] if i == 0 else float32(0))"),
    ),
    "A from global memory": wrong(
        build, "only shared loads are counted", "traffic-over-budget", inner(FROM_A)
    ),
    "B from global memory": wrong(
        build, "only shared loads are counted", "traffic-over-budget", inner(FROM_B)
    ),
    "sums of zeros, then B cleared": wrong(
        build, "the check compares what is left", "inputs-changed",
        ("        for start in range(0, k, T):",
         "        if m <= T and n <= T and k <= T and y < k and col < n:\n"
         "            B[y, col] = 0\n        for start in range(0, k, T):"),
    ),
    # The kernel in which the threads copy, and a row of them computes.
    "a row of threads for a block": wrong(
        build, "the result is what counts", "few-threads-multiply",
        ("for start in range(0, k, T):", "C[r, c] = alpha * acc[i, j] + beta * C[r, c]", """
            for start in range(0, k, T):
                for i in range(y, wide, T):
                    inside = top + i < m and start + x < k
                    As[i, x] = A[top + i, start + x] if inside else float32(0)
                for j in range(x, wide, T):
                    inside = start + y < k and left + j < n
                    Bs[y, j] = B[start + y, left + j] if inside else float32(0)
                cuda.syncthreads()
                if y == 0:
                    for i in range(wide):
                        for j in range(x, wide, T):
                            for p in range(T):
                                acc[i, j] += As[i, p] * Bs[p, j]
                cuda.syncthreads()
            if y == 0:
                for i in range(wide):
                    for j in range(x, wide, T):
                        if top + i < m and left + j < n:
                            s = alpha * acc[i, j]
                            C[top + i, left + j] = (
                                s if beta == 0 else s + beta * C[top + i, left + j]
                            )
        """),
        ("row = cuda.blockIdx.y * wide + y", "for j in range(2):", """
            top, left = cuda.blockIdx.y * wide, cuda.blockIdx.x * wide
            for i in range(wide):
                for j in range(wide):
        """),
        ("Bs = cuda.shared.array((T, wide), float32)", "", """
            Bs = cuda.shared.array((T, wide), float32)
            acc = cuda.local.array((wide, wide), float32)
        """),
    ),
    "tiles of 32": wrong(
        build, "the largest tile serves all", "tile-size-fixed",
        ("cuda.shared.array((wide, T)", "cuda.shared.array((64, 32)"),
    ),
}  # fmt: skip
