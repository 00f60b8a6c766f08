"""Answers to exercise 10.1."""

from gemmlab.course.ch10_split_k.q1_part_of_k import build_parts as build
from tests.course.answers import edited, fooling, wrong

CUT = "        begin, end = part * steps // split, (part + 1) * steps // split\n"
STORE = "        if row < m and col < n:\n            W[part, row, col] = acc"
BARRIER = "                acc += As[y, p] * Bs[p, x]\n            cuda.syncthreads()\n"


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
    "rounded up": wrong(
        build, "rounded up, the parts are even", "part-too-long",
        (CUT, "        each = (steps + split - 1) // split + 1\n"
              "        begin, end = min(part * each, steps), min((part + 1) * each, steps)\n"),
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
}  # fmt: skip

FOOLING = {
    "part 0 does it all": wrong(
        build, "zeros add nothing", "part-too-long",
        (CUT, "        begin, end = 0, steps if part == 0 else 0\n"),
    ),
    "known sizes": wrong(
        build, "the cases are in the package", "known-cases-only",
        (STORE, STORE.replace("] = acc", "] = acc if k in (1, 3, 8, 12, 15, 17, 21, 72) else 2")),
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
