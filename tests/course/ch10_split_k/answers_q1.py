"""Answers to exercise 10.1."""

from gemmlab.course.ch10_split_k.q1_part_of_k import build_parts as build
from tests.course.answers import edited, fooling, wrong

CUT = "        begin, end = part * steps // split, (part + 1) * steps // split\n"
STORE = "        if row < m and col < n:\n            W[part, row, col] = acc"
BARRIER = "                acc += As[y, p] * Bs[p, x]\n            cuda.syncthreads()\n"


LOOP = "range(begin * T, end * T, T)"
LOAD_A, LOAD_B = "row < m and start + x < k", "start + y < k and col < n"
FLOAT16 = ("    def kernel(A, B, W):", "    from numpy import float16\n\n    def kernel(A, B, W):")


def masked(own):
    """Edits that load zeros where a step is not `own`."""
    return (LOAD_A, f"{LOAD_A} and {own}"), (LOAD_B, f"{LOAD_B} and {own}")


RIGHT = {
    # Part p takes the steps p, p + split, p + 2·split, …
    "every split-th step": (edited(
        build,
        ("W[part, row, col] = acc", "W[cuda.blockIdx.z, row, col] = acc"),
        ("x = cuda.threadIdx.x",
         "Bs[y, x] = B[start + y, col] if start + y < k and col < n else float32(0)", """
            x, y = cuda.threadIdx.x, cuda.threadIdx.y
            row, col = cuda.blockIdx.y * T + y, cuda.blockIdx.x * T + x
            acc = 0.0
            for start in range(cuda.blockIdx.z * T, k, split * T):
                As[y, x] = A[row, start + x] if row < m and start + x < k else 0.0
                Bs[y, x] = B[start + y, col] if start + y < k and col < n else 0.0
        """),
    ),),
    "the first parts take one more": (
        edited(
            build,
            (
                CUT,
                "        each, rest = steps // split, steps % split\n"
                "        begin = part * each + min(part, rest)\n"
                "        end = begin + each + (1 if part < rest else 0)\n",
            ),
        ),
    ),
    "while": (
        edited(
            build,
            ("        for start in range(begin * T, end * T, T):\n",
             "        start = begin * T\n        while start < end * T:\n"),
            (BARRIER, BARRIER + "            start += T\n"),
        ),
    ),
}  # fmt: skip


WRONG = {
    "all of k": wrong(
        build, "blockIdx.z is another tile", "whole-of-k", (CUT, "        begin, end = 0, steps\n")
    ),
    "from 0": wrong(
        build, "a sum begins at 0", "begins-at-zero", (CUT, CUT + "        begin = 0\n")
    ),
    "rounded down": wrong(
        build, "k divides", "rest-left-out",
        (CUT, "        begin, end = part * (steps // split), (part + 1) * (steps // split)\n"),
    ),
    "the last takes the rest": wrong(
        build, "the rest is little", "part-too-long",
        (CUT, "        begin, end = part * (steps // split), (part + 1) * (steps // split)\n"
              "        if part == split - 1:\n            end = steps\n"),
    ),
    "empty parts leave": wrong(
        build, "without work there is nothing to store", "part-not-stored",
        (STORE, STORE.replace("col < n:", "col < n and begin < end:")),
    ),
    "always part 0": wrong(
        build, "the sums go to one place", "two-writers", ("W[part, row, col]", "W[0, row, col]"),
    ),
    "elements, not steps": wrong(
        build, "begin and end are elements", "right-in-part",
        ("range(begin * T, end * T, T)", "range(begin, end, T)"),
    ),
    "between steps": wrong(
        build, "k is what is divided", "cut-inside-steps",
        (CUT, "        begin, end = part * k // split, (part + 1) * k // split\n        k = end\n"),
        ("range(begin * T, end * T, T)", "range(begin, end, T)"),
    ),
    "no zeros beyond k": wrong(
        build, "k is a multiple of T", "load-outside", ("row < m and start + x < k", "row < m"),
    ),
    "no second barrier": wrong(
        build, "one barrier a step is enough", "barrier-after-reading",
        (BARRIER, "                acc += As[y, p] * Bs[p, x]\n"),
    ),
    "stores beyond C": wrong(
        build, "a block has a whole tile of W", "store-outside",
        ("        if row < m and col < n:\n    ", "        if True:\n    "),
    ),
    "the sum of one step": wrong(
        build, "a step is a sum", "right-in-part",
        ("            cuda.syncthreads()\n            for p",
         "            cuda.syncthreads()\n            acc = float32(0)\n            for p"),
    ),
    "masked, not cut": wrong(
        build, "a block skips what is not its own", "part-too-long",
        (LOOP, "range(0, steps * T, T)"), *masked("begin * T <= start and start < end * T"),
    ),
    "walks all of k": wrong(
        build, "a step without products is no step", "part-too-long",
        (LOOP, "range(0, steps * T, T)"), *masked("begin * T <= start and start < end * T"),
        ("            for p in range(T):\n    ",
         "            for p in range(T if begin * T <= start and start < end * T else 0):\n    "),
    ),
    "by ceilings": wrong(
        build, "⌈steps / split⌉ is even enough", "part-too-short",
        (CUT, "        each = (steps + split - 1) // split\n"
              "        begin, end = min(part * each, steps), min((part + 1) * each, steps)\n"),
    ),
    "beyond k": wrong(
        build, "a step of zeros is harmless", "part-too-long",
        (CUT, "        each = (steps + split - 1) // split\n"
              "        begin, end = part * each, (part + 1) * each\n"),
    ),
    "no barrier after 8 steps": wrong(
        build, "the first barriers put threads in step", "barrier-after-reading",
        (BARRIER, BARRIER.replace(
            "            cuda", "            if start < (begin + 8) * T:\n                cuda")),
    ),
    "8 steps at most": wrong(
        build, "a part is short", "late-steps",
        (LOOP, "range(begin * T, min(end, begin + 8) * T, T)"),
    ),
    "a float16 tile": wrong(
        build, "chapter 8's tiles were in float16", "low-precision", FLOAT16,
        ("As = cuda.shared.array((T, T), float32)", "As = cuda.shared.array((T, T), float16)"),
    ),
    "whole operands": wrong(
        build, "elements are whole numbers", "whole-numbers-only",
        ("acc += As[y, p]", "acc += float32(int(As[y, p]))"),
    ),
    "whole sums": wrong(
        build, "sums are whole numbers", "whole-numbers-only", ("] = acc", "] = int(acc)")
    ),
    "A is scratch": wrong(
        build, "what was copied is done with", "inputs-changed",
        ("            for p in range(T):\n    ",
         "            if row < m and x < k:\n                A[row, x] = 0\n"
         "            for p in range(T):\n    "),
    ),
    "5 parts at most": wrong(
        build, "no split is larger", "known-cases-only",
        ("] = acc", "] = acc if split < 6 else float32(0)"),
    ),
    "20 rows at most": wrong(
        build, "C is never so tall", "known-cases-only",
        (STORE, STORE.replace("row < m", "row < min(m, 20)")),
    ),
}  # fmt: skip

FOOLING = {
    "part 0 does it all": wrong(
        build, "zeros add nothing", "part-too-long",
        (CUT, "        begin, end = 0, steps if part == 0 else 0\n"),
    ),
    "known sizes": wrong(
        build, "the cases are in the package", "known-cases-only",
        (STORE, STORE.replace("] = acc", "] = acc if k in (1, 3, 8, 15, 17, 23, 160, 72) else 2")),
    ),
    "from global memory": wrong(
        build, "the counter is what counts", "traffic-over-budget",
        ("                acc += As[y, p] * Bs[p, x]\n",
         "                if row < m and col < n and start + p < k:\n"
         "                    acc += A[row, start + p] * B[start + p, col] + 0 * As[y, p]\n"),
    ),
    "four parts": wrong(
        build, "there are never more", "two-writers",
        ("W[part, row, col] = acc", "W[part % 4, row, col] = acc"),
    ),
    "a generator": fooling("yield is return", "wrong-type", lambda T: (yield build(T))),
}  # fmt: skip
