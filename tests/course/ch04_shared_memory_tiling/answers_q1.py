"""Answers to exercise 04.1."""

from gemmlab.course.ch04_shared_memory_tiling.q1_one_tile import build
from tests.course.answers import Wrong, edited, fooling, wrong
from tests.course.ch04_shared_memory_tiling import answers_q2 as tiled_kernel

RIGHT = {
    "one line each": (edited(
        build,
        ("row = cuda.blockIdx.y * T + y", "Bs[y, x] = 0", """
            col, row = cuda.grid(2)
            As[y, x] = A[row, x] if row < m and x < k else float32(0)
            Bs[y, x] = B[y, col] if col < n and y < k else float32(0)
        """),
    ),),
    "zeros first": (edited(
        build,
        ("for p in range(T):", "for p in range(k):"),
        ("col = cuda.blockIdx.x * T + x", "Bs[y, x] = 0", """
            col = cuda.blockIdx.x * T + x
            As[y, x] = 0
            Bs[y, x] = 0
            if row < m and x < k:
                As[y, x] = A[row, x]
            if y < k and col < n:
                Bs[y, x] = B[y, col]
        """),
    ),),
    "the whole tiled kernel": (tiled_kernel.rung,),
}  # fmt: skip

COPY_A = """        if row < m and x < k:
            As[y, x] = A[row, x]
        else:
            As[y, x] = 0
"""
COPY_B = """        if y < k and col < n:
            Bs[y, x] = B[y, col]
        else:
            Bs[y, x] = 0
"""

WRONG = {
    "no barrier": wrong(
        build, "all threads run in step", "barrier-before-reading",
        ("        cuda.syncthreads()\n", ""),
    ),
    "barrier between the copies": wrong(
        build, "any barrier will do", "barrier-before-reading",
        ("        cuda.syncthreads()\n", ""), (COPY_B, f"        cuda.syncthreads()\n{COPY_B}"),
    ),
    "barrier in a branch": wrong(
        build, "only threads that copy need the barrier", "barrier-not-reached",
        ("        cuda.syncthreads()\n",
         "        if row < m and col < n:\n            cuda.syncthreads()\n"),
    ),
    "threads outside C leave": wrong(
        build, "idle threads may leave", "early-return",
        (COPY_A, "        if row >= m or col >= n:\n            return\n" + COPY_A),
    ),
    "no zeros": wrong(
        build, "shared memory starts at zero", "tile-not-filled",
        (COPY_B, "        if y < k and col < n:\n            Bs[y, x] = B[y, col]\n"),
    ),
    "no guard of A": wrong(
        build, "tiles divide the matrix", "load-outside", (COPY_A, "        As[y, x] = A[row, x]\n")
    ),
    "or in the guard of B": wrong(
        build, "one index inside is enough", "load-outside", ("y < k and col", "y < k or col")
    ),
    "rows and columns exchanged": wrong(
        build, "x picks the row of the tile of B", "tiles-transposed",
        ("            Bs[y, x] = B[y, col]", "            Bs[x, y] = B[y, col]"),
        ("            Bs[y, x] = 0", "            Bs[x, y] = 0"),
    ),
    "A copied twice": wrong(
        build, "copy and paste", "reads-a-for-b",
        (COPY_B, COPY_B.replace("if y < k and col < n", "if y < m and col < k")
         .replace("B[y, col]", "A[y, col]")),
    ),
    "all write one element": wrong(
        build, "a row of the tile has one element", "two-writers",
        ("As[y, x] = A[row, x]", "As[y, 0] = A[row, x]"), ("As[y, x] = 0", "As[y, 0] = 0"),
    ),
    "each thread copies its whole row": wrong(
        build, "a thread copies what it needs", "two-writers",
        (COPY_A, "        for p in range(T):\n"
                 "            As[y, p] = A[row, p] if row < m and p < k else float32(0)\n"),
    ),
    "loads its operands itself": Wrong(
        "caches do it", "shared-memory-not-used", (tiled_kernel.naive,)
    ),
    "the copy is not used": wrong(
        build, "copying is enough", "traffic-over-budget",
        ("            acc += As[y, p] * Bs[p, x]",
         "            if row < m and p < k:\n                acc += A[row, p] * Bs[p, x]"),
    ),
}  # fmt: skip


ALONE = """        if x == 0 and y == 0:
            for i in range(T):
                for j in range(T):
                    As[i, j] = A[row + i, j] if row + i < m and j < k else float32(0)
                    Bs[i, j] = B[i, col + j] if i < k and col + j < n else float32(0)
"""

FOOLING = {
    "forty rows": wrong(
        build, "no matrix is higher", "known-cases-only",
        ("row < m and x < k", "row < min(m, 40) and x < k"),
    ),
    "one thread copies": wrong(
        build, "a copy is a copy", "few-threads-copy", (COPY_B, ""), (COPY_A, ALONE)
    ),
    "A copied along its columns": wrong(
        build, "any thread may copy any element", "copy-not-coalesced",
        (COPY_A, """        r = cuda.blockIdx.y * T + x
        As[x, y] = A[r, y] if r < m and y < k else float32(0)
"""),
    ),
    "tiles of 32": wrong(
        build, "the largest tile serves all", "tile-size-fixed",
        ("As = cuda.shared.array((T, T)", "As = cuda.shared.array((32, 32)"),
        ("Bs = cuda.shared.array((T, T)", "Bs = cuda.shared.array((32, 32)"),
    ),
    "B cleared": wrong(
        build, "B is not needed afterwards", "inputs-changed",
        ("        acc = float32(0)\n",
         "        if m <= T and n <= T and y < k and col < n:\n            B[y, col] = 0\n"
         "        acc = float32(0)\n"),
    ),
    "no tiles": fooling("caches do it", "shared-memory-not-used", tiled_kernel.naive),
}  # fmt: skip
