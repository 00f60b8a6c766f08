"""Answers to exercise 06.3."""

from numpy import float32

from gemmlab import cuda
from gemmlab.exercises.copies_ahead import build_ahead as build
from gemmlab.instructions import cp_async_4, cp_async_commit, cp_async_wait
from tests.support.exercise_answers.edits import fooling, for_ever, wrong

FETCH = """            a = A[row, after + x] if row < m and after + x < k else float32(0)
            b = B[after + y, col] if after + y < k and col < n else float32(0)
"""
MULTIPLY = """            for p in range(T):
                acc += As[now, y, p] * Bs[now, p, x]
"""
STORE = """            now = 1 - now
            As[now, y, x] = a
            Bs[now, y, x] = b
            cuda.syncthreads()
"""
STEP = "            after = start + T\n" + FETCH + MULTIPLY + STORE


def in_the_background(T):
    """With cp.async: no registers in between, and a wait at the end of the step."""

    def kernel(alpha, A, B, beta, C):
        As = cuda.shared.array((2, T, T), float32)
        Bs = cuda.shared.array((2, T, T), float32)
        m, n = C.shape
        k = A.shape[1]
        x, y = cuda.threadIdx.x, cuda.threadIdx.y
        row, col = cuda.blockIdx.y * T + y, cuda.blockIdx.x * T + x
        cp_async_4(As, 0, y, x, A, row, x, row < m and x < k)
        cp_async_4(Bs, 0, y, x, B, y, col, y < k and col < n)
        cp_async_commit()
        cp_async_wait(0)
        cuda.syncthreads()
        acc = float32(0)
        now = 0
        for start in range(0, k, T):
            q = start + T
            cp_async_4(As, 1 - now, y, x, A, row, q + x, row < m and q + x < k)
            cp_async_4(Bs, 1 - now, y, x, B, q + y, col, q + y < k and col < n)
            cp_async_commit()
            for p in range(T):
                acc += As[now, y, p] * Bs[now, p, x]
            cp_async_wait(0)
            cuda.syncthreads()
            now = 1 - now
        if row < m and col < n:
            C[row, col] = alpha * acc if beta == 0 else alpha * acc + beta * C[row, col]

    return kernel


def rows_of_a_ring(T):
    """Two tiles one below the other, a step that is guarded, and the sum in two halves."""
    two = 2 * T

    def kernel(alpha, A, B, beta, C):
        As = cuda.shared.array((two, T), float32)
        Bs = cuda.shared.array((two, T), float32)
        m, n = C.shape
        k = A.shape[1]
        x, y = cuda.threadIdx.x, cuda.threadIdx.y
        row, col = cuda.blockIdx.y * T + y, cuda.blockIdx.x * T + x
        As[y, x] = A[row, x] if row < m and x < k else float32(0)
        Bs[y, x] = B[y, col] if y < k and col < n else float32(0)
        cuda.syncthreads()
        acc, a, b = float32(0), float32(0), float32(0)
        start, q = 0, 0
        while start < k:
            more = start + T < k
            if more:
                a = A[row, start + T + x] if row < m and start + T + x < k else float32(0)
            for p in range(T // 2):
                acc += As[q + y, p] * Bs[q + p, x]
            if more:
                b = B[start + T + y, col] if start + T + y < k and col < n else float32(0)
            for p in range(T // 2, T):
                acc += As[q + y, p] * Bs[q + p, x]
            q = T - q
            if more:
                As[q + y, x] = a
                Bs[q + y, x] = b
            cuda.syncthreads()
            start += T
        if row < m and col < n:
            C[row, col] = alpha * acc if beta == 0 else alpha * acc + beta * C[row, col]

    return kernel


RIGHT = {"rows of a ring": (rows_of_a_ring,), "cp.async": (in_the_background,)}


def from_global(T):
    def kernel(alpha, A, B, beta, C):
        m, n = C.shape
        col, row = cuda.grid(2)
        if row < m and col < n:
            acc = float32(0)
            for p in range(A.shape[1]):
                acc += A[row, p] * B[p, col]
            C[row, col] = alpha * acc if beta == 0 else alpha * acc + beta * C[row, col]

    return kernel


WRONG = {
    "stored at once": wrong(
        build, "a load runs in the background wherever it stands", "stored-at-once",
        (STEP, """            after = start + T
            a = A[row, after + x] if row < m and after + x < k else float32(0)
            b = B[after + y, col] if after + y < k and col < n else float32(0)
            As[1 - now, y, x] = a
            Bs[1 - now, y, x] = b
            for p in range(T):
                acc += As[now, y, p] * Bs[now, p, x]
            cuda.syncthreads()
            now = 1 - now
"""),
    ),
    "fetched after the products": wrong(
        build, "two tiles are overlap enough", "stored-at-once",
        (FETCH + MULTIPLY, MULTIPLY + FETCH),
    ),
    "one operand fetched late": wrong(
        build, "one of two waits is none", "stored-at-once",
        (FETCH + MULTIPLY + STORE, FETCH.splitlines(True)[0] + MULTIPLY
         + "            now = 1 - now\n            As[now, y, x] = a\n"
         + FETCH.splitlines(True)[1] + "            Bs[now, y, x] = b\n"
         + "            cuda.syncthreads()\n"),
    ),
    "two barriers": wrong(
        build, "chapter 04 had two", "barriers-over-budget",
        (MULTIPLY, MULTIPLY + "            cuda.syncthreads()\n"),
    ),
    "a barrier in the inner loop": wrong(
        build, "more barriers are safer", "barriers-over-budget",
        (MULTIPLY, MULTIPLY + "                cuda.syncthreads()\n"),
    ),
    "the same tile": wrong(
        build, "a thread has read its part", "barrier-after-reading",
        ("now = 1 - now\n            As", "As"),
    ),
    "no barrier": wrong(
        build, "two tiles need none", "barrier-before-reading",
        (STORE, STORE.replace("            cuda.syncthreads()\n", "")),
    ),
    "beyond k": wrong(
        build, "nobody multiplies what is fetched last", "load-outside",
        (" if row < m and after + x < k else float32(0)\n", "\n"),
    ),
    "the same tile again": wrong(
        build, "start is where to fetch", "right-in-part", ("after = start + T", "after = start"),
    ),
    "never the other tile": wrong(
        build, "tile 0 is the present one", "barrier-after-reading", ("now = 1 - now", "now = 0"),
    ),
    "one tile ahead too far": wrong(
        build, "one tile ahead is two steps on", "right-in-part",
        ("after = start + T", "after = start + 2 * T"),
    ),
    "the first element again": wrong(
        build, "loading twice is harmless", "traffic-over-budget",
        ("            after = start + T\n",
         "            after = start + T\n"
         "            a = A[row, start] if row < m else float32(0)\n"),
    ),
}  # fmt: skip


FOOLING = {
    "no tiles": fooling("caches do it", "shared-memory-not-used", from_global),
    "a word is read in between": wrong(
        build, "the check looks for any load from a tile", "stored-at-once",
        (STEP, "            after = start + T\n" + FETCH + """            acc += 0 * As[now, y, x]
            As[1 - now, y, x] = a
            Bs[1 - now, y, x] = b
            for p in range(T):
                acc += As[now, y, p] * Bs[now, p, x]
            cuda.syncthreads()
            now = 1 - now
"""),
    ),
    "A from global memory": wrong(
        build, "only the order is looked at", "traffic-over-budget",
        (MULTIPLY, """            for p in range(T):
                there = row < m and start + p < k
                acc += (A[row, start + p] if there else float32(0)) * Bs[now, p, x]
"""),
    ),
    "a barrier of a warp": wrong(
        build, "syncwarp is not counted", "barrier-before-reading",
        (STORE, STORE.replace("syncthreads", "syncwarp")),
    ),
    "A cleared": wrong(
        build, "A is not needed afterwards", "inputs-changed",
        ("        if row < m and col < n:\n            if beta",
         "        if cuda.blockIdx.x == 0 and row < m and x < k and n <= T:\n"
         "            A[row, x] = 0\n"
         "        if row < m and col < n:\n            if beta"),
    ),
    "tiles for show": wrong(
        build, "the counter is what counts", "traffic-over-budget",
        ("                acc += As[now, y, p] * Bs[now, p, x]\n",
         "                if row < m and col < n and start + p < k:\n"
         "                    acc += A[row, start + p] * B[start + p, col] + 0 * As[now, y, p]\n"),
    ),
    "for ever": wrong(
        build, "nobody can stop it", "never-ends",
        ("            start += T\n", "            start += 0\n"),
    ),
    "tiles of 32": wrong(
        build, "the largest tile serves all", "tile-size-fixed",
        ("As = cuda.shared.array((2, T, T)", "As = cuda.shared.array((2, 32, 32)"),
        ("Bs = cuda.shared.array((2, T, T)", "Bs = cuda.shared.array((2, 32, 32)"),
    ),
}  # fmt: skip


FOOLING = {
    "tiles of 32": wrong(
        build, "the largest tile serves all", "tile-size-fixed",
        ("As = cuda.shared.array((2, T, T)", "As = cuda.shared.array((2, 32, 32)"),
    ),
    "only known factors": wrong(
        build, "the cases are in the package", "known-cases-only",
        ("if row < m and col < n:", "if row < m and col < n and beta < 3 and alpha < 3:"),
    ),
    "B cleared": wrong(
        build, "B is not needed afterwards", "inputs-changed",
        ("        if row < m and col < n:\n",
         "        if m <= T and n <= T and y < k <= T and col < n:\n            B[y, col] = 0\n"
         "        if row < m and col < n:\n"),
    ),
    "build for ever": fooling("nobody can stop it", "never-ends", for_ever),
}  # fmt: skip
