"""Answers to exercise 09.1."""

from numpy import float32

from gemmlab import cuda
from gemmlab.course.ch09_software_pipelining.q1_copies_ahead import build_ahead as build
from gemmlab.instructions import cp_async_4, cp_async_commit, cp_async_wait
from tests.course.answers import Wrong, fooling, for_ever, wrong

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


def first_tile_in_the_loop(T):
    """The loop begins one step early, with nothing to multiply yet; rows of tiles are padded."""
    padded = T + 1

    def kernel(alpha, A, B, beta, C):
        As = cuda.shared.array((2, T, padded), float32)
        Bs = cuda.shared.array((2, T, padded), float32)
        (m, k), n = A.shape, B.shape[1]
        x, y = cuda.threadIdx.x, cuda.threadIdx.y
        col, row = cuda.grid(2)
        acc = float32(0)
        for start in range(-T, k, T):
            q = start + T
            now = start // T & 1
            fetched = (
                A[row, q + x] if row < m and q + x < k else float32(0),
                B[q + y, col] if q + y < k and col < n else float32(0),
            )
            if start >= 0:
                for p in range(T):
                    acc += As[now, y, p] * Bs[now, p, x]
            As[now ^ 1, y, x], Bs[now ^ 1, y, x] = fetched
            cuda.syncthreads()
        if row < m and col < n:
            old = C[row, col] if beta != 0 else float32(0)
            C[row, col] = alpha * acc + beta * old

    return kernel


def four_tiles_in_one_array(T):
    """One shared array for both operands, the sum backwards, and no last fetch."""

    def kernel(alpha, A, B, beta, C):
        tiles = cuda.shared.array((4, T, T), float32)  # A's at 0 and 2, B's at 1 and 3
        m, n = C.shape
        k = A.shape[1]
        x, y = cuda.threadIdx.x, cuda.threadIdx.y
        row, col = cuda.blockIdx.y * T + y, cuda.blockIdx.x * T + x
        tiles[0, y, x] = A[row, x] if row < m and x < k else float32(0)
        tiles[1, y, x] = B[y, col] if y < k and col < n else float32(0)
        cuda.syncthreads()
        acc = float32(0)
        steps = (k + T - 1) // T
        for step in range(steps):
            a, b = float32(0), float32(0)
            if step + 1 < steps:
                i, j = (step + 1) * T + y, (step + 1) * T + x
                if row < m and j < k:
                    a = A[row, j]
                if i < k and col < n:
                    b = B[i, col]
            at = step % 2 * 2
            for p in range(T - 1, -1, -1):
                acc += tiles[at, y, p] * tiles[at + 1, p, x]
            tiles[2 - at, y, x] = a
            tiles[3 - at, y, x] = b
            cuda.syncthreads()
        if row < m and col < n:
            C[row, col] = alpha * acc if beta == 0 else alpha * acc + beta * C[row, col]

    return kernel


def three_tiles(T):
    """Two steps ahead, from registers of the step before into the third tile."""

    def kernel(alpha, A, B, beta, C):
        As = cuda.shared.array((3, T, T), float32)
        Bs = cuda.shared.array((3, T, T), float32)
        m, n = C.shape
        k = A.shape[1]
        x, y = cuda.threadIdx.x, cuda.threadIdx.y
        row, col = cuda.blockIdx.y * T + y, cuda.blockIdx.x * T + x
        for tile in range(2):
            p = tile * T
            As[tile, y, x] = A[row, p + x] if row < m and p + x < k else float32(0)
            Bs[tile, y, x] = B[p + y, col] if p + y < k and col < n else float32(0)
        cuda.syncthreads()
        acc = float32(0)
        now = 0
        for start in range(0, k, T):
            p = start + 2 * T
            a = A[row, p + x] if row < m and p + x < k else float32(0)
            b = B[p + y, col] if p + y < k and col < n else float32(0)
            for q in range(T):
                acc += As[now, y, q] * Bs[now, q, x]
            free = (now + 2) % 3
            As[free, y, x] = a
            Bs[free, y, x] = b
            cuda.syncthreads()
            now = (now + 1) % 3
        if row < m and col < n:
            C[row, col] = alpha * acc if beta == 0 else alpha * acc + beta * C[row, col]

    return kernel


@cuda.jit(device=True)
def element(X, i, j):
    """X[i, j], or 0 where X has no such element."""
    return X[i, j] if i < X.shape[0] and j < X.shape[1] else float32(0)


def with_a_device_function(T):
    def kernel(alpha, A, B, beta, C):
        As = cuda.shared.array((2, T, T), float32)
        Bs = cuda.shared.array((2, T, T), float32)
        x, y = cuda.threadIdx.x, cuda.threadIdx.y
        row, col = cuda.blockIdx.y * T + y, cuda.blockIdx.x * T + x
        As[0, y, x] = element(A, row, x)
        Bs[0, y, x] = element(B, y, col)
        cuda.syncthreads()
        acc, now, start = float32(0), 0, 0
        while start < A.shape[1]:
            start += T
            a = element(A, row, start + x)
            b = element(B, start + y, col)
            for p in range(T):
                acc += As[now, y, p] * Bs[now, p, x]
            As[1 - now, y, x] = a
            Bs[1 - now, y, x] = b
            now = 1 - now
            cuda.syncthreads()
        if row < C.shape[0] and col < C.shape[1]:
            C[row, col] = alpha * acc if beta == 0 else alpha * acc + beta * C[row, col]

    return kernel


RIGHT = {
    "rows of a ring": (rows_of_a_ring,),
    "cp.async": (in_the_background,),
    "first tile in the loop": (first_tile_in_the_loop,),
    "four tiles in one array": (four_tiles_in_one_array,),
    "three tiles": (three_tiles,),
    "a device function": (with_a_device_function,),
}


FLOAT16 = (
    "    def kernel(alpha,", "    from numpy import float16\n\n    def kernel(alpha,"
)  # fmt: skip
FUNCTION_STORE = "            As[1 - now, y, x] = a\n            Bs[1 - now, y, x] = b\n"


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
    "not waited for": wrong(
        in_the_background, "a barrier waits for copies, too", "not-waited",
        ("            cp_async_wait(0)\n            cuda.syncthreads()\n            now",
         "            cuda.syncthreads()\n            now"),
    ),
    "no tiles": Wrong("caches do it", "shared-memory-not-used", (from_global,)),
    "scaled as it is fetched": wrong(
        build, "alpha may come at any time", "used-at-once",
        (FETCH, FETCH.replace("a = A", "a = alpha * A")),
        ("As[0, y, x] = A", "As[0, y, x] = alpha * A"),
        *((old, old.replace("alpha * acc", "acc"))
          for old in ("alpha * acc + beta * C[row, col]", "C[row, col] = alpha * acc\n")),
    ),
    "compared as it is fetched": wrong(
        build, "a look costs nothing", "used-at-once",
        (FETCH, FETCH + "            if max(a, b) != max(a, b):\n                acc = a\n"),
    ),
    "stored at once, by a function": wrong(
        with_a_device_function, "a load runs in the background wherever it stands",
        "stored-at-once",
        (FUNCTION_STORE, ""),
        ("            for p in range(T):\n", FUNCTION_STORE + "            for p in range(T):\n"),
    ),
    "tiles in float16": wrong(
        build, "chapter 8's tiles were in float16", "low-precision", FLOAT16,
        ("As = cuda.shared.array((2, T, T), float32)",
         "As = cuda.shared.array((2, T, T), float16)"),
    ),
    "whole operands": wrong(
        build, "elements are whole numbers", "whole-numbers-only",
        ("acc += As[now, y, p]", "acc += float32(int(As[now, y, p]))"),
    ),
    "whole alpha": wrong(
        build, "alpha is a whole number", "whole-numbers-only",
        *((old, old.replace("alpha", "int(alpha)"))
          for old in ("alpha * acc + beta * C[row, col]", "C[row, col] = alpha * acc\n")),
    ),
    "no barrier after 20 steps": wrong(
        build, "the first barriers put threads in step", "barrier-before-reading",
        (STORE, STORE.replace("            cuda.sync", "            if start < 20 * T:\n"
                              "                cuda.sync")),
    ),
    "a sum of 100 at most": wrong(
        build, "k is never so long", "late-steps",
        ("while start < k:", "while start < min(k, 100):"),
    ),
    "early return": wrong(
        build, "threads outside C have nothing to do", "early-return",
        ("        As[0, y, x] = A", "        if row >= m or col >= n:\n            return\n"
         "        As[0, y, x] = A"),
    ),
    "A is scratch": wrong(
        build, "what was loaded is done with", "inputs-changed",
        (FETCH, FETCH + "            if row < m and x < k:\n                A[row, x] = a + y\n"),
    ),
    "16 rows at most": wrong(
        build, "C is never so tall", "known-cases-only",
        ("        if row < m and col < n:\n            if",
         "        if row < min(m, 16) and col < n:\n            if"),
    ),
}  # fmt: skip


AT_ONCE = """            now = 1 - now
            As[now, y, x] = a
            Bs[now, y, x] = b
            for p in range(T):
                acc += As[1 - now, y, p] * Bs[1 - now, p, x]
            cuda.syncthreads()
"""
STORE_C = """            if beta == 0:
                C[row, col] = alpha * acc
            else:
                C[row, col] = alpha * acc + beta * C[row, col]
"""


FOOLING = {
    "build for ever": fooling("nobody can stop it", "never-ends", for_ever),
    "A from global memory": wrong(
        build, "only the order is looked at", "traffic-over-budget",
        (MULTIPLY, """            for p in range(T):
                there = row < m and start + p < k
                acc += (A[row, start + p] if there else float32(0)) * Bs[now, p, x]
"""),
    ),
    "A cleared": wrong(
        build, "A is not needed afterwards", "inputs-changed",
        ("        if row < m and col < n:\n            if beta",
         "        if cuda.blockIdx.x == 0 and row < m and x < k and n <= T:\n"
         "            A[row, x] = 0\n" "        if row < m and col < n:\n            if beta"),
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
    "one load in between": wrong(
        build, "any use of a tile is work", "stored-at-once",
        (MULTIPLY + STORE, "            acc += 0 * As[now, y, 0]\n" + AT_ONCE),
    ),
    "a tile loaded for show": wrong(
        build, "loads are what is looked at", "loads-over-budget",
        (MULTIPLY + STORE, """            for p in range(T):
                acc += 0 * (As[now, y, p] + Bs[now, p, x])
""" + AT_ONCE),
    ),
    "fetched before the last product": wrong(
        build, "one product is overlap", "stored-at-once",
        (FETCH + MULTIPLY, MULTIPLY.replace("range(T)", "range(T - 1)") + FETCH
         + MULTIPLY.replace("range(T)", "range(T - 1, T)")),
    ),
    "cp.async for show": wrong(
        build, "a line with cp.async waits for nobody", "stored-at-once",
        ("def kernel(alpha, A, B, beta, C):",
         "from gemmlab.instructions import cp_async_4, cp_async_commit, cp_async_wait\n\n"
         "    def kernel(alpha, A, B, beta, C):"),
        ("        m, n = C.shape\n",
         "        m, n = C.shape\n"
         "        other = cuda.shared.array((2, T, T), float32)\n"),
        (MULTIPLY + STORE, AT_ONCE.replace(
            "As[now, y, x] = a",
            "cp_async_4(other, 0, y, x, A, 0, 0, False); As[now, y, x] = a")
         .replace("Bs[now, y, x] = b",
                  "cp_async_4(other, 1, y, x, A, 0, 0, False); Bs[now, y, x] = b")
         .replace("            cuda.sync",
                  "            cp_async_commit()\n            cp_async_wait(0)\n"
                  "            cuda.sync")),
    ),
    "a warp is a block": wrong(
        build, "threads run in step", "barrier-before-reading",
        ("cuda.syncthreads()\n            start", "cuda.syncwarp()\n            start"),
    ),
    "every second step": wrong(
        build, "two tiles, half of the barriers", "barrier-before-reading",
        (STORE, STORE.replace("            cuda.syncthreads()\n",
                              "            if now == 0:\n"
                              "                cuda.syncthreads()\n")),
    ),
    "one warp copies": wrong(
        build, "half of the threads are enough", "few-threads-copy",
        (FETCH, "            a, b = float32(0), float32(0)\n"),
        ("            now = 1 - now\n            As[now, y, x] = a\n"
         "            Bs[now, y, x] = b\n",
         """            now = 1 - now
            half = (T + 1) // 2
            for y2 in range(y, T if y < half else 0, half):
                r, q = row - y + y2, after + y2
                As[now, y2, x] = A[r, after + x] if r < m and after + x < k else float32(0)
                Bs[now, y2, x] = B[q, col] if q < k and col < n else float32(0)
"""),
    ),
    "one row of threads multiplies": wrong(
        build, "the sums may be anybody's", "few-threads-multiply",
        ("        acc = float32(0)\n",
         "        acc = cuda.local.array(T, float32)\n"
         "        for i in range(T):\n            acc[i] = float32(0)\n"),
        (MULTIPLY, """            if y == 0:
                for i in range(T):
                    for p in range(T):
                        acc[i] += As[now, i, p] * Bs[now, p, x]
"""),
        ("        if row < m and col < n:\n" + STORE_C,
         """        for i in range(T):
            if y == 0 and row + i < m and col < n:
                old = C[row + i, col] if beta != 0 else float32(0)
                C[row + i, col] = alpha * acc[i] + beta * old
"""),
    ),
    "C read in any case": wrong(
        build, "0 times C is 0", "beta-zero-reads-c",
        (STORE_C, "            C[row, col] = alpha * acc + beta * C[row, col]\n"),
    ),
    "B doubled": wrong(
        build, "twice and half is once", "inputs-changed",
        (FETCH, FETCH + "            if blockless and after + y < k and col < n:\n"
         "                B[after + y, col] = 2 * b\n"),
        ("        acc = float32(0)\n", "        acc = float32(0)\n"
         "        blockless = cuda.blockIdx.y == 0 and m <= T\n"),
    ),
}  # fmt: skip
