"""Answers to exercise 09.3."""

from numpy import float32

from gemmlab import cuda
from gemmlab.course.ch09_software_pipelining.q3_ring_of_copies import build_ring as build
from gemmlab.instructions import cp_async_4, cp_async_commit, cp_async_wait
from tests.course.answers import fooling, for_ever, wrong

WAIT = "            cp_async_wait(pending)\n"
BARRIER = "            cuda.syncthreads()\n"
FREE = "            free = slot - 1 if slot > 0 else ahead\n"
FETCH = "            fetch(As, Bs, free, y, x, A, B, row, col, start + ahead * T)\n"
COMMIT = "            cp_async_commit()\n"
MULTIPLY = """            for p in range(T):
                acc += As[slot, y, p] * Bs[slot, p, x]
"""
STEP = WAIT + BARRIER + FREE + FETCH + COMMIT + MULTIPLY
PENDING = "pending = S - 2"


def by_remainder(T, S):
    """Slots by the number of the step; nothing is asked for beyond k, but groups are made."""
    waiting = S - 2

    def kernel(alpha, A, B, beta, C):
        As = cuda.shared.array((S, T, T), float32)
        Bs = cuda.shared.array((S, T, T), float32)
        m, n = C.shape
        k = A.shape[1]
        x, y = cuda.threadIdx.x, cuda.threadIdx.y
        row, col = cuda.blockIdx.y * T + y, cuda.blockIdx.x * T + x
        steps = (k + T - 1) // T
        acc = float32(0)
        for step in range(1 - S, steps):
            if step >= 0:
                cp_async_wait(waiting)
                cuda.syncthreads()
            coming = step + S - 1
            if coming < steps:
                p, q, to = coming * T + x, coming * T + y, coming % S
                cp_async_4(As, to, y, x, A, row, p, row < m and p < k)
                cp_async_4(Bs, to, y, x, B, q, col, q < k and col < n)
            cp_async_commit()
            if step >= 0:
                for p in range(T):
                    acc += As[step % S, y, p] * Bs[step % S, p, x]
        if row < m and col < n:
            C[row, col] = alpha * acc if beta == 0 else alpha * acc + beta * C[row, col]

    return kernel


def a_group_each(T, S):
    """A group for A and one for B, tiles below each other, the wait at the end of a step."""
    waiting, rows = 2 * (S - 2), S * T

    def kernel(alpha, A, B, beta, C):
        As = cuda.shared.array((rows, T), float32)
        Bs = cuda.shared.array((rows, T), float32)
        m, n = C.shape
        k = A.shape[1]
        x, y = cuda.threadIdx.x, cuda.threadIdx.y
        row, col = cuda.blockIdx.y * T + y, cuda.blockIdx.x * T + x
        for q in range(0, rows - T, T):
            cp_async_4(As, q + y, x, A, row, q + x, row < m and q + x < k)
            cp_async_commit()
            cp_async_4(Bs, q + y, x, B, q + y, col, q + y < k and col < n)
            cp_async_commit()
        cp_async_wait(waiting)
        cuda.syncthreads()
        acc = float32(0)
        now, fill = 0, rows - T
        for start in range(0, k, T):
            p = start + rows - T
            cp_async_4(As, fill + y, x, A, row, p + x, row < m and p + x < k)
            cp_async_commit()
            cp_async_4(Bs, fill + y, x, B, p + y, col, p + y < k and col < n)
            cp_async_commit()
            for r in range(T):
                acc += As[now + y, r] * Bs[now + r, x]
            cp_async_wait(waiting)
            cuda.syncthreads()
            fill = now
            now = now + T if now < rows - T else 0
        if row < m and col < n:
            C[row, col] = alpha * acc if beta == 0 else alpha * acc + beta * C[row, col]

    return kernel


RIGHT = {"slots by remainder": (by_remainder,), "a group for each operand": (a_group_each,)}

PLAIN = """            p, q = start + ahead * T + x, start + ahead * T + y
            As[free, y, x] = A[row, p] if row < m and p < k else float32(0)
            Bs[free, y, x] = B[q, col] if q < k and col < n else float32(0)
"""
FIRST_PLAIN = """            p, q = tile * T + x, tile * T + y
            As[tile, y, x] = A[row, p] if row < m and p < k else float32(0)
            Bs[tile, y, x] = B[q, col] if q < k and col < n else float32(0)
"""
FIRST = """            fetch(As, Bs, tile, y, x, A, B, row, col, tile * T)
            cp_async_commit()
"""


WRONG = {
    "waits for all": wrong(
        build, "a wait waits for everything", "ring-not-used", (PENDING, "pending = 0"),
    ),
    "waits for none": wrong(
        build, "all tiles ahead may be under way", "not-waited", (PENDING, "pending = S - 1"),
    ),
    "no wait": wrong(build, "a barrier waits for copies", "not-waited", (WAIT, "")),
    "no barrier": wrong(
        build, "a wait is for all threads", "barrier-before-reading", (WAIT + BARRIER, WAIT),
    ),
    "barrier first": wrong(
        build, "any order will do", "barrier-before-reading", (WAIT + BARRIER, BARRIER + WAIT),
    ),
    "its own slot": wrong(
        build, "the slot that is multiplied is free", "not-waited",
        (FREE, "            free = slot\n"),
    ),
    "the next slot": wrong(
        build, "the next tile goes to the next slot", "not-waited",
        (FREE, "            free = slot + 1 if slot < ahead else 0\n"),
    ),
    "two barriers": wrong(
        build, "chapter 04 had two", "barriers-over-budget", (MULTIPLY, MULTIPLY + BARRIER),
    ),
    "one tile ahead": wrong(
        build, "the next step's tile is fetched", "late-steps",
        ("start + ahead * T)", "start + T)"),
    ),
    "asked for after the products": wrong(
        build, "copies may begin at any time", "ring-not-used",
        (FREE + FETCH + COMMIT + MULTIPLY, FREE + MULTIPLY + FETCH + COMMIT),
    ),
    "no group": wrong(build, "copies need no group", "not-waited", (COMMIT + MULTIPLY, MULTIPLY)),
    "groups while there is something": wrong(
        build, "an empty group is none", "not-waited",
        (FETCH + COMMIT, "            if start + ahead * T < k:\n    " + FETCH + "    " + COMMIT),
    ),
    "plain copies": wrong(
        build, "a ring is all it takes", "copies-not-used",
        (FIRST, FIRST_PLAIN), (FETCH + COMMIT, PLAIN),
    ),
    "four tiles are enough": wrong(
        build, "rings are small", "ring-not-used", (PENDING, "pending = min(S - 2, 2)")
    ),
    "half of the ring": wrong(
        build, "half of the tiles are under way", "not-waited", (PENDING, "pending = S // 2")
    ),
    "no wait after 10 steps": wrong(
        build, "after a while the copies are ahead", "not-waited",
        (WAIT, "            if start < 10 * T:\n    " + WAIT),
    ),
    "no copies after 16 steps": wrong(
        build, "a ring is full at last", "late-steps",
        (FETCH, "            if start < 16 * T:\n    " + FETCH),
    ),
    "early return": wrong(
        build, "threads outside C have nothing to do", "early-return",
        ("        for tile in range(ahead):\n", "        if row >= m or col >= n:\n"
         "            return\n        for tile in range(ahead):\n"),
    ),
    "whole operands": wrong(
        build, "elements are whole numbers", "whole-numbers-only",
        ("acc += As[slot, y, p]", "acc += float32(int(As[slot, y, p]))"),
    ),
    "whole alpha": wrong(
        build, "alpha is a whole number", "whole-numbers-only",
        *((old, old.replace("alpha", "int(alpha)"))
          for old in ("alpha * acc + beta * C[row, col]", "C[row, col] = alpha * acc\n")),
    ),
    "sums in float16": wrong(
        build, "chapter 8's operands were in float16", "low-precision",
        ("    def kernel(alpha,", "    from numpy import float16\n\n    def kernel(alpha,"),
        ("acc += As[slot, y, p]", "acc += float32(float16(As[slot, y, p]))"),
    ),
    "20 rows at most": wrong(
        build, "C is never so tall", "known-cases-only",
        ("        if row < m and col < n:\n            if",
         "        if row < min(m, 20) and col < n:\n            if"),
    ),
    "loads for show": wrong(
        build, "more loads hide more", "loads-over-budget",
        (MULTIPLY, MULTIPLY + "                acc += 0 * As[slot, p, y]\n"),
    ),
}  # fmt: skip


def _kernel_with(*lines):
    return "        m, n = C.shape\n" + "".join(f"        {line}\n" for line in lines)


FOOLING = {
    "build for ever": fooling("nobody can stop it", "never-ends", for_ever),
    "zeros under way": wrong(
        build, "anything under way counts", "ring-not-used",
        (PENDING, "pending = 0"),
        ("        m, n = C.shape\n", _kernel_with(
            "other = cuda.shared.array((2, T, T), float32)", "m, n = C.shape")),
        (COMMIT + MULTIPLY, COMMIT + "            for q in range(2):\n"
         "                cp_async_4(other, q, y, x, A, 0, 0, False)\n" + COMMIT + MULTIPLY),
    ),
    "the same tiles under way": wrong(
        build, "anything under way counts", "traffic-over-budget",
        (PENDING, "pending = 0"),
        ("        m, n = C.shape\n", _kernel_with(
            "other = cuda.shared.array((8, T, T), float32)", "m, n = C.shape")),
        (COMMIT + MULTIPLY, COMMIT + "            for q in range(8):\n"
         "                cp_async_4(other, q, y, x, A, 0, 0)\n" + COMMIT + MULTIPLY),
    ),
    "waits for all, loads again": wrong(
        build, "each load counts", "ring-not-used",
        (PENDING, "pending = 0"),
        (MULTIPLY, MULTIPLY + "                for again in range(9):\n"
         "                    acc += 0 * As[slot, y, p]\n"),
    ),
    "two tiles, whatever S is": wrong(
        build, "double buffering is a ring", "ring-not-used",
        ("def build_ring(T, S):", "def build_ring(T, S):\n    S = 2"),
    ),
    "large tiles": wrong(
        build, "the largest tile serves all", "tile-size-fixed",
        ("As = cuda.shared.array((S, T, T)", "As = cuda.shared.array((S, 32, 32)"),
        ("Bs = cuda.shared.array((S, T, T)", "Bs = cuda.shared.array((S, 32, 32)"),
    ),
    "A from global memory": wrong(
        build, "only what is under way is looked at", "traffic-over-budget",
        (MULTIPLY, """            for p in range(T):
                there = row < m and start + p < k
                acc += (A[row, start + p] if there else float32(0)) * Bs[slot, p, x]
"""),
    ),
    "one row of threads copies": wrong(
        build, "a thread can copy for others", "few-threads-copy",
        (FETCH, """            for r in range(T):
                if y == 0:
                    fetch(As, Bs, free, r, x, A, B, row + r, col, start + ahead * T)
"""),
        (FIRST, """            for r in range(T):
                if y == 0:
                    fetch(As, Bs, tile, r, x, A, B, row + r, col, tile * T)
            cp_async_commit()
"""),
    ),
}  # fmt: skip
