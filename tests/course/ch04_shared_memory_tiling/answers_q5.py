"""Answers to exercise 04.5."""

from numpy import float32

from gemmlab import Tiling, cuda, kernels
from gemmlab.course.ch04_shared_memory_tiling.q5_traffic_budget import build
from tests.course.answers import Wrong, edited, wrong


def two_tiles_of_b(T):
    def kernel(alpha, A, B, beta, C):
        m, n = C.shape
        k = A.shape[1]
        x = cuda.threadIdx.x
        y = cuda.threadIdx.y
        row = cuda.blockIdx.y * T + y
        As = cuda.shared.array((T, T), float32)
        Bl = cuda.shared.array((T, T), float32)
        Br = cuda.shared.array((T, T), float32)
        left = cuda.blockIdx.x * 2 * T + x
        acc = cuda.local.array(2, float32)
        acc[0] = 0
        acc[1] = 0
        for start in range(0, k, T):
            inside = start + y < k
            As[y, x] = A[row, start + x] if row < m and start + x < k else float32(0)
            Bl[y, x] = B[start + y, left] if inside and left < n else float32(0)
            Br[y, x] = B[start + y, left + T] if inside and left + T < n else float32(0)
            cuda.syncthreads()
            for p in range(T):
                acc[0] += As[y, p] * Bl[p, x]
                acc[1] += As[y, p] * Br[p, x]
            cuda.syncthreads()
        for half in range(2):
            col = left + half * T
            if row < m and col < n:
                if beta == 0:
                    C[row, col] = alpha * acc[half]
                else:
                    C[row, col] = alpha * acc[half] + beta * C[row, col]

    return kernel


def strided(T):
    wide = 2 * T

    def kernel(alpha, A, B, beta, C):
        As = cuda.shared.array((T, T), float32)
        Bs = cuda.shared.array((T, wide), float32)
        x, y = cuda.threadIdx.x, cuda.threadIdx.y
        top, left = cuda.blockIdx.y * T, cuda.blockIdx.x * wide
        sums = cuda.local.array(2, float32)
        for j in range(2):
            sums[j] = 0
        start = 0
        while start < A.shape[1]:
            As[y, x] = 0
            if top + y < A.shape[0] and start + x < A.shape[1]:
                As[y, x] = A[top + y, start + x]
            for j in range(x, wide, T):
                Bs[y, j] = 0
                if start + y < B.shape[0] and left + j < B.shape[1]:
                    Bs[y, j] = B[start + y, left + j]
            cuda.syncthreads()
            for j in range(2):
                for p in range(T):
                    sums[j] += As[y, p] * Bs[p, x + j * T]
            cuda.syncthreads()
            start += T
        for j in range(2):
            col = left + x + j * T
            if top + y >= C.shape[0] or col >= C.shape[1]:
                continue
            if beta == 0:
                C[top + y, col] = alpha * sums[j]
            else:
                C[top + y, col] = alpha * sums[j] + beta * C[top + y, col]

    return kernel


RIGHT = {
    "strided": (strided,),
    "two tiles of B, sums in an array": (two_tiles_of_b,),
    "columns 2x and 2x + 1, copied side by side": (edited(
        build,
        ("left = cuda.blockIdx.x * 2 * T + x", ")", """
            origin = cuda.blockIdx.x * 2 * T
            even = float32(0)
            odd = float32(0)
            for start in range(0, k, T):
                As[y, x] = A[row, start + x] if row < m and start + x < k else float32(0)
                for half in range(2):
                    col = origin + half * T + x
                    value = B[start + y, col] if start + y < k and col < n else float32(0)
                    Bs[y, half * T + x] = value
                cuda.syncthreads()
                for p in range(T):
                    even += As[y, p] * Bs[p, 2 * x]
                    odd += As[y, p] * Bs[p, 2 * x + 1]
                cuda.syncthreads()
            col = origin + 2 * x
            if row < m and col < n:
                C[row, col] = alpha * even + (beta * C[row, col] if beta != 0 else float32(0))
            if row < m and col + 1 < n:
                C[row, col + 1] = alpha * odd + (
                    beta * C[row, col + 1] if beta != 0 else float32(0)
                )
        """),
    ),),
}  # fmt: skip


def no_tiles(T):
    def kernel(alpha, A, B, beta, C):
        m, n = C.shape
        row = cuda.blockIdx.y * T + cuda.threadIdx.y
        for half in range(2):
            col = (cuda.blockIdx.x * 2 + half) * T + cuda.threadIdx.x
            if row < m and col < n:
                acc = float32(0)
                for p in range(A.shape[1]):
                    acc += A[row, p] * B[p, col]
                C[row, col] = alpha * acc if beta == 0 else alpha * acc + beta * C[row, col]

    return kernel


COPIES = """            As[y, x] = A[row, start + x] if row < m and start + x < k else float32(0)
            Bs[y, x] = B[start + y, left] if start + y < k and left < n else float32(0)
            Bs[y, x + T] = B[start + y, right] if start + y < k and right < n else float32(0)
"""
BARRIER = "            cuda.syncthreads()\n"

WRONG = {
    "one element a thread": Wrong(
        "the tile is T by T", "not-written", (lambda T: kernels.tiled.build(Tiling.square(T)),)
    ),
    "two passes": wrong(
        two_tiles_of_b, "twice the work is two elements", "traffic-over-budget",
        ("Bl = cuda.shared.array((T, T), float32)",
         "C[row, col] = alpha * acc[half] + beta * C[row, col]", """
            Bs = cuda.shared.array((T, T), float32)
            for half in range(2):
                col = (cuda.blockIdx.x * 2 + half) * T + x
                acc = float32(0)
                for start in range(0, k, T):
                    As[y, x] = A[row, start + x] if row < m and start + x < k else float32(0)
                    Bs[y, x] = B[start + y, col] if start + y < k and col < n else float32(0)
                    cuda.syncthreads()
                    for p in range(T):
                        acc += As[y, p] * Bs[p, x]
                    cuda.syncthreads()
                if row < m and col < n:
                    C[row, col] = alpha * acc if beta == 0 else alpha * acc + beta * C[row, col]
        """),
    ),
    "no tiles": Wrong("caches do it", "shared-memory-not-used", (no_tiles,)),
    "copies columns 2x and 2x + 1": wrong(
        build, "a thread copies what it uses", "copy-not-coalesced",
        ("2 * T + x\n        right = left + T", "2 * T + 2 * x\n        right = left + 1"),
        ("Bs[y, x] =", "Bs[y, 2 * x] ="), ("Bs[y, x + T] =", "Bs[y, 2 * x + 1] ="),
        ("Bs[p, x]", "Bs[p, 2 * x]"), ("Bs[p, x + T]", "Bs[p, 2 * x + 1]"),
    ),
    "right half not guarded": wrong(
        build, "both halves have one guard", "load-outside", ("right < n else", "left < n else")
    ),
    "right store not guarded": wrong(
        build, "both halves have one guard", "store-outside",
        ("if row < m and right < n:", "if row < m and left < n:"),
    ),
    "one tile of B for both": wrong(
        build, "a tile can be used twice at once", "two-writers",
        ("(T, wide)", "(T, T)"), ("Bs[y, x + T]", "Bs[x, y]"), ("Bs[p, x + T]", "Bs[x, p]"),
    ),
    "no second barrier": wrong(
        build, "one barrier is enough", "barrier-after-reading", (f"x + T]\n{BARRIER}", "x + T]\n"),
    ),
    "no first barrier": wrong(
        build, "threads copy in step", "barrier-before-reading",
        (f"{BARRIER}            for p", "            for p"),
    ),
    "one sum": wrong(
        build, "one sum is enough", "right-in-part", ("acc_right += a", "acc_left += a")
    ),
    "beta dropped on the right": wrong(
        build, "one epilogue is enough", "columns-wrong", (" + beta * C[row, right]", ""),
    ),
    "float16 sums": wrong(
        build, "half precision is enough for sums", "low-precision",
        ("acc_left += a * Bs[p, x]", "acc_left = float16(acc_left + a * Bs[p, x])"),
        ("def build(T):\n", "from numpy import float16\n\n\ndef build(T):\n"),
    ),
}  # fmt: skip


FOOLING = {
    "a sum of 100": wrong(
        build, "no sum is longer", "known-cases-only",
        ("range(0, k, T)", "range(0, min(k, 100), T)"),
    ),
    "beta of the right half is whole": wrong(
        build, "beta is a count", "fractional-factors",
        ("alpha * acc_right + beta", "alpha * acc_right + int(beta)"),
    ),
    # The kernel in which threads of even y compute two rows, and the others none.
    "half of the threads": wrong(
        build, "fewer threads, more each", "few-threads-multiply",
        ("row = cuda.blockIdx.y * T + y", ")", """
            row = cuda.blockIdx.y * T + y
            left = cuda.blockIdx.x * wide + x
            As = cuda.shared.array((T, T), float32)
            Bs = cuda.shared.array((T, wide), float32)
            acc = cuda.local.array((2, 2), float32)
            for i in range(2):
                for j in range(2):
                    acc[i, j] = 0
            for start in range(0, k, T):
                As[y, x] = A[row, start + x] if row < m and start + x < k else float32(0)
                for j in range(2):
                    c = left + j * T
                    Bs[y, x + j * T] = B[start + y, c] if start + y < k and c < n else float32(0)
                cuda.syncthreads()
                if y % 2 == 0:
                    for p in range(T):
                        for i in range(2):
                            for j in range(2):
                                acc[i, j] += As[y + i, p] * Bs[p, x + j * T]
                cuda.syncthreads()
            if y % 2 == 0:
                for i in range(2):
                    for j in range(2):
                        r, c = row + i, left + j * T
                        if r < m and c < n:
                            s = alpha * acc[i, j]
                            C[r, c] = s if beta == 0 else s + beta * C[r, c]
        """),
    ),
    "a column of threads copies": wrong(
        build,
        "a copy is a copy",
        "few-threads-copy",
        (
            COPIES,
            "            if x == 0:\n"
            "                for j in range(T):\n"
            "                    c = start + j\n"
            "                    As[y, j] = A[row, c] if row < m and c < k else float32(0)\n"
            "                for j in range(2 * T):\n"
            "                    c = left + j\n"
            "                    Bs[y, j] = B[start + y, c] if start + y < k and c < n "
            "else float32(0)\n",
        ),
    ),
    "tiles of 64": wrong(
        build, "the largest tile serves all", "tile-size-fixed", ("(T, wide)", "(32, 64)"),
    ),
    "B cleared": wrong(
        build, "B is not needed afterwards", "inputs-changed",
        ("        if row < m and left < n:",
         "        if m <= T and n <= wide and k <= T and y < k and left < n:\n"
         "            B[y, left] = 0\n        if row < m and left < n:"),
    ),
}  # fmt: skip
