"""Answers to exercise 05.1."""

from numpy import float32

from gemmlab import cuda
from gemmlab.course.ch05_tile_and_wave_quantization.q1_only_what_is_needed import (
    build_guarded as build,
)
from tests.course.answers import edited, fooling, wrong

GUARDED = """            if row < m and col < n:
                for p in range(min(T, k - start)):
                    acc += As[y, p] * Bs[p, x]
"""
BARRIER = "            cuda.syncthreads()\n"


def multiplied(text):
    """The answer with another multiplication."""
    return (GUARDED, text)


def whole_warps(T):
    """A warp multiplies if its first thread has a row of C; what hangs over is garbage."""
    rows = max(1, 32 // T)  # of a warp

    def kernel(alpha, A, B, beta, C):
        As = cuda.shared.array((T, T), float32)
        Bs = cuda.shared.array((T, T), float32)
        m, n = C.shape
        k = A.shape[1]
        x = cuda.threadIdx.x
        y = cuda.threadIdx.y
        top = cuda.blockIdx.y * T
        row, col = top + y, cuda.blockIdx.x * T + x
        working = top + y // rows * rows < m
        acc = 0.0
        start = 0
        while start < k:
            As[y, x] = 0
            Bs[y, x] = 0
            if row < m and start + x < k:
                As[y, x] = A[row, start + x]
            if start + y < k and col < n:
                Bs[y, x] = B[start + y, col]
            cuda.syncthreads()
            last = T if start + T <= k else k - start
            if working:
                for p in range(last):
                    acc += As[y, p] * Bs[p, x]
            cuda.syncthreads()
            start += T
        if row < m and col < n:
            C[row, col] = alpha * acc + (beta * C[row, col] if beta != 0 else 0.0)

    return kernel


RIGHT = {
    "rows alone": (edited(build, multiplied(GUARDED.replace(" and col < n", ""))),),
    "whole warps": (whole_warps,),
    "no zeros": (
        edited(
            build,
            (
                "            As[y, x] = A[row, start + x] if row < m and start + x < k else "
                "float32(0)\n            Bs[y, x] = B[start + y, col] if start + y < k and col < n "
                "else float32(0)\n",
                "            if row < m and start + x < k:\n"
                "                As[y, x] = A[row, start + x]\n"
                "            if start + y < k and col < n:\n"
                "                Bs[y, x] = B[start + y, col]\n",
            ),
        ),
    ),
    "a test in the loop": (
        edited(
            build,
            multiplied(
                "            for p in range(T):\n"
                "                if row < m and col < n and start + p < k:\n"
                "                    acc += As[y, p] * Bs[p, x]\n"
            ),
        ),
    ),
}

IN_HALVES = """            if x % 2 == 0:
                if row < m and col < n:
                    for p in range(min(T, k - start)):
                        acc += As[y, p] * Bs[p, x]
            else:
                if row < m and col < n:
                    for p in range(min(T, k - start)):
                        acc += As[y, p] * Bs[p, x]
"""

WRONG = {
    "even lanes, then odd ones": wrong(
        build, "a branch costs nothing", "lanes-in-turns", multiplied(IN_HALVES)
    ),
    "zeros left out": wrong(
        build, "a product with zero need not be done", "products-by-value",
        multiplied(GUARDED.replace(
            "acc +=", "if As[y, p] != 0:\n                        acc +="
        )),
    ),
    "whole alpha": wrong(
        build, "factors are whole", "whole-numbers-only",
        ("C[row, col] = alpha * acc if beta == 0 else alpha * acc",
         "C[row, col] = int(alpha) * acc if beta == 0 else int(alpha) * acc"),
    ),
    "tiles in float16": wrong(
        build, "half of the bits will do", "low-precision",
        ("def build_guarded(T):", "from numpy import float16\n\n\ndef build_guarded(T):"),
        ("As = cuda.shared.array((T, T), float32)", "As = cuda.shared.array((T, T), float16)"),
    ),
    "as in chapter 4": wrong(
        build, "zeros cost nothing", "products-beyond-c",
        multiplied("            for p in range(T):\n"
                   "                acc += As[y, p] * Bs[p, x]\n"),
    ),
    "columns alone": wrong(
        build, "only n is ragged", "products-beyond-c",
        multiplied(GUARDED.replace("row < m and ", "")),
    ),
    "C alone": wrong(
        build, "the last step has T products", "products-beyond-k",
        multiplied(GUARDED.replace("min(T, k - start)", "T")),
    ),
    "or": wrong(
        build, "one index inside is enough", "products-beyond-c",
        multiplied(GUARDED.replace("row < m and col < n", "row < m or col < n")),
    ),
    "barrier in the branch": wrong(
        build, "who does not multiply need not wait", "barrier-not-reached",
        (GUARDED + BARRIER, GUARDED + "    " + BARRIER),
    ),
    "idle threads leave": wrong(
        build, "idle threads may leave", "early-return",
        ("        for start in",
         "        if row >= m or col >= n:\n            return\n        for start in"),
    ),
    "one product too few": wrong(
        build, "the last index is T - 2", "products-missing",
        multiplied(GUARDED.replace("range(min", "range(1, min")),
    ),
    "steps rounded down": wrong(
        build, "the incomplete step is not needed", "floor-steps",
        multiplied(GUARDED.replace("col < n:", "col < n and start + T <= k:")),
    ),
    "beyond k": wrong(
        build, "the loop ends at k", "tile-outside",
        multiplied(GUARDED.replace("min(T, k - start)", "k")),
    ),
}  # fmt: skip


FOOLING = {
    "65 rows": wrong(
        build, "no case has more", "known-cases-only",
        ("        if row < m and col < n:\n            C[",
         "        if row < min(m, 65) and col < n:\n            C["),
    ),
    "tiles of 8": wrong(
        build, "no tile is larger", "right-in-part",
        multiplied(GUARDED.replace("row < m", "row < m and T <= 8")),
    ),
    "no tiles, no waste": wrong(
        build, "loads from shared memory are what is counted", "shared-memory-not-used",
        ("As = cuda.shared.array((T, T), float32)",
         "C[row, col] = alpha * acc if beta == 0 else alpha * acc + beta * C[row, col]", """
            j, i = cuda.grid(2)
            if i < C.shape[0] and j < C.shape[1]:
                acc = float32(0)
                for p in range(A.shape[1]):
                    acc += A[i, p] * B[p, j]
                C[i, j] = alpha * acc if beta == 0 else alpha * acc + beta * C[i, j]
        """),
    ),
    "one operand past the tiles": wrong(
        build, "loads from shared memory are what is counted", "traffic-over-budget",
        multiplied("            for p in range(T):\n"
                   "                if row < m and start + p < k:\n"
                   "                    acc += A[row, start + p] * Bs[p, x]\n"),
    ),
    "four words at a time": fooling(
        "requests are what is counted", "products-beyond-c",
        edited(
            build,
            ("As = cuda.shared.array((T, T), float32)",
             "As = cuda.shared.array((T, T), float32, alignment=16)"),
            multiplied("            if T < 8:\n"
                       "                for p in range(T):\n"
                       "                    acc += As[y, p] * Bs[p, x]\n"
                       "            else:\n"
                       "                for p in range(0, T, 4):\n"
                       "                    a = load_v4(As, y, p)\n"
                       "                    for q in range(4):\n"
                       "                        acc += a[q] * Bs[p + q, x]\n"),
            ("def build_guarded(T):",
             "from gemmlab.instructions import load_v4\n\n\ndef build_guarded(T):"),
        ),
    ),
    "right where it is counted": wrong(
        build, "the largest case is what is counted", "products-beyond-c",
        multiplied("            if row < m or m < 20 and T > 4:\n"
                   "                for p in range(min(T, k - start)):\n"
                   "                    acc += As[y, p] * Bs[p, x]\n"),
    ),
    "by the factors of the cases": wrong(
        build, "the cases are in the package", "known-cases-only",
        ("        if row < m and col < n:\n            C[",
         "        if row < m and col < n and alpha < 3:\n            C["),
    ),
    "a generator": fooling("yield is return", "wrong-type", lambda T: (yield build(T))),
}  # fmt: skip
