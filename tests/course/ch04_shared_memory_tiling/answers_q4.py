"""Answers to exercise 04.4."""

from numpy import float32

from gemmlab import cuda
from gemmlab.course.ch04_shared_memory_tiling.q4_transposed_b import build
from tests.course.answers import Wrong, edited, fooling, for_ever, wrong


def swizzled(T):
    def kernel(alpha, A, B, beta, C):
        As = cuda.shared.array((T, T), float32)
        Bs = cuda.shared.array((T, T), float32)
        m, n = C.shape
        k = A.shape[1]
        x = cuda.threadIdx.x
        y = cuda.threadIdx.y
        row = cuda.blockIdx.y * T + y
        col = cuda.blockIdx.x * T + x
        j = cuda.blockIdx.x * T + y
        acc = float32(0)
        for start in range(0, k, T):
            As[y, x] = A[row, start + x] if row < m and start + x < k else float32(0)
            Bs[y, (x + y) % T] = B[j, start + x] if j < n and start + x < k else float32(0)
            cuda.syncthreads()
            for p in range(T):
                acc += As[y, p] * Bs[x, (p + x) % T]
            cuda.syncthreads()
        if row < m and col < n:
            C[row, col] = alpha * acc if beta == 0 else alpha * acc + beta * C[row, col]

    return kernel


def padded_by_three(T):
    padded = T + 3

    def kernel(alpha, A, B, beta, C):
        As = cuda.shared.array((T, T), float32)
        Bs = cuda.shared.array((T, padded), float32)
        x, y = cuda.threadIdx.x, cuda.threadIdx.y
        top, left = cuda.blockIdx.y * T, cuda.blockIdx.x * T
        total = 0.0
        start = 0
        while start < B.shape[1]:
            As[y, x] = 0
            Bs[y, x] = 0
            if start + x < B.shape[1]:
                if top + y < A.shape[0]:
                    As[y, x] = A[top + y, start + x]
                if left + y < B.shape[0]:
                    Bs[y, x] = B[left + y, start + x]
            cuda.syncthreads()
            for p in range(T):
                total += As[y, p] * Bs[x, p]
            cuda.syncthreads()
            start += T
        if top + y >= C.shape[0] or left + x >= C.shape[1]:
            return
        C[top + y, left + x] = alpha * total + (beta * C[top + y, left + x] if beta else 0.0)

    return kernel


RIGHT = {
    "three words of padding": (padded_by_three,),
    "turned when it is stored": (edited(
        build,
        ("As[y, x] = A[row, start + x] if row < m and start + x < k else float32(0)",
         "acc += As[y, p] * Bs[x, p]", """
            As[y, x] = A[row, start + x] if row < m and start + x < k else float32(0)
            if first + y < n and start + x < k:
                Bs[x, y] = B[first + y, start + x]
            else:
                Bs[x, y] = 0
            cuda.syncthreads()
            for p in range(T):
                acc += As[y, p] * Bs[p, x]
        """),
        ("row = cuda.blockIdx.y * T + y", "acc = float32(0)", """
            col, row = cuda.grid(2)
            first = cuda.blockIdx.x * T
            acc = float32(0)
        """),
        ("Bs = cuda.shared.array((T, width), float32)",
         "Bs = cuda.shared.array((T, padded), float32)"),
        ("width = T + 1", "", "padded = T + 1"),
    ),),
    "columns rotated by the row": (swizzled,),
}  # fmt: skip

BARRIER = "            cuda.syncthreads()\n"
FIRST = f"{BARRIER}            for p in range(T):\n"
COPY = """            j = cuda.blockIdx.x * T + y  # y picks the row of B, so that x runs along it
            Bs[y, x] = B[j, start + x] if j < n and start + x < k else float32(0)
"""
UNPADDED = ("width = T + 1 ", "width = T ")

WRONG = {
    "copied as before": wrong(
        build, "only the indices of B change", "copy-not-coalesced",
        ("Bs[x, p]", "Bs[p, x]"),
        (COPY, "            Bs[y, x] = B[col, start + y] if col < n and start + y < k "
               "else float32(0)\n"),
    ),
    "no padding": wrong(build, "shared memory is always fast", "loads-conflict", UNPADDED),
    "two words of padding too many": wrong(
        build, "any padding will do", "loads-conflict", ("width = T + 1 ", "width = T + 8 ")
    ),
    "turned when it is stored, no padding": wrong(
        build, "only loads conflict", "stores-conflict", UNPADDED,
        ("Bs[y, x] =", "Bs[x, y] ="), ("Bs[x, p]", "Bs[p, x]"),
    ),
    "not turned": wrong(
        build, "the tile lies as it did", "tiles-transposed", ("Bs[x, p]", "Bs[p, x]")
    ),
    "B as it was": wrong(
        build, "the array B still has k rows", "load-outside",
        ("B[j, start + x] if j < n and start + x < k", "B[start + y, col] if start + y < k "
         "and col < n"),
        ("Bs[x, p]", "Bs[p, x]"),
    ),
    "no guard": wrong(
        build, "tiles divide the matrix", "load-outside",
        (" if j < n and start + x < k else float32(0)", ""),
    ),
    "no first barrier": wrong(
        build, "threads copy in step", "barrier-before-reading",
        (FIRST, FIRST.removeprefix(BARRIER)),
    ),
    "no second barrier": wrong(
        build, "one barrier a step is enough", "barrier-after-reading",
        (f"Bs[x, p]\n{BARRIER}", "Bs[x, p]\n"),
    ),
    "no zeros": wrong(
        build, "shared memory starts at zero", "tile-not-filled",
        (COPY, "            j = cuda.blockIdx.x * T + y\n"
               "            if j < n and start + x < k:\n"
               "                Bs[y, x] = B[j, start + x]\n"),
    ),
    "B is loaded for each product": wrong(
        build, "B lies right already", "traffic-over-budget",
        ("                acc += As[y, p] * Bs[x, p]",
         "                if col < n and start + p < k:\n"
         "                    acc += As[y, p] * B[col, start + p]"),
    ),
    "no kernel": Wrong("build computes C", "wrong-type", (lambda T: None,)),
}  # fmt: skip


FOOLING = {
    "a sum of 100": wrong(
        build, "no sum is longer", "known-cases-only",
        ("range(0, k, T)", "range(0, min(k, 100), T)"),
    ),
    "one thread copies": wrong(
        build, "a copy is a copy", "few-threads-copy",
        ("            As[y, x] = A[row, start + x] if row < m and start + x < k else float32(0)\n",
         ""),
        (COPY, """            if x == 0 and y == 0:
                for i in range(T):
                    for q in range(T):
                        r, c = row + i, start + q
                        As[i, q] = A[r, c] if r < m and c < k else float32(0)
                        r = col + i
                        Bs[i, q] = B[r, c] if r < n and c < k else float32(0)
"""),
    ),
    "tiles of 64": wrong(
        build, "the largest tile serves all", "tile-size-fixed",
        ("Bs = cuda.shared.array((T, width)", "Bs = cuda.shared.array((64, 65)"),
    ),
    "B cleared": wrong(
        build, "B is not needed afterwards", "inputs-changed",
        ("        if row < m and col < n:\n",
         "        if m <= T and n <= T and k <= T and y < n and x < k:\n            B[y, x] = 0\n"
         "        if row < m and col < n:\n"),
    ),
    "build for ever": fooling("nobody can stop it", "never-ends", for_ever),
}  # fmt: skip
