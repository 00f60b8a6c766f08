"""Answers to exercise 10.3."""

from gemmlab.course.ch10_split_k.q3_share_of_steps import build_stream_k as build
from tests.course.answers import edited, fooling, wrong

AT = "        at = cuda.blockIdx.x * total // cuda.gridDim.x\n"
END = "        end = (cuda.blockIdx.x + 1) * total // cuda.gridDim.x\n"
LAST = "            last = min(steps, first + end - at)\n"
ADD = "                cuda.atomic.add(C, (row, col), alpha * acc)\n"


LOOP = "range(first * T, last * T, T)"
LOAD_A, LOAD_B = "row < m and p + x < k", "p + y < k and col < n"
FLOAT16 = (
    "    def kernel(alpha,", "    from numpy import float16\n\n    def kernel(alpha,"
)  # fmt: skip


def masked(own):
    """Edits that load zeros where a step is not `own`."""
    return (LOAD_A, f"{LOAD_A} and {own}"), (LOAD_B, f"{LOAD_B} and {own}")


RIGHT = {
    # Every step by itself, added where its tile ends or the share does.
    "step by step": (edited(
        build,
        ("x = cuda.threadIdx.x", "at += last - first", """
            x, y = cuda.threadIdx.x, cuda.threadIdx.y
            across, steps = -(-n // T), -(-k // T)
            total = -(-m // T) * across * steps
            block, blocks = cuda.blockIdx.x, cuda.gridDim.x
            acc = float32(0)
            end = (block + 1) * total // blocks
            for at in range(block * total // blocks, end):
                tile, step = divmod(at, steps)
                row, col, p = tile // across * T + y, tile % across * T + x, step * T
                As[y, x] = A[row, p + x] if row < m and p + x < k else float32(0)
                Bs[y, x] = B[p + y, col] if p + y < k and col < n else float32(0)
                cuda.syncthreads()
                for q in range(T):
                    acc += As[y, q] * Bs[q, x]
                cuda.syncthreads()
                if step == steps - 1 or at == end - 1:
                    if row < m and col < n:
                        cuda.atomic.add(C, (row, col), alpha * acc)
                    acc = float32(0)
        """),
    ),),
    "the first shares have one more": (
        edited(
            build,
            (AT, "        each, rest = total // cuda.gridDim.x, total % cuda.gridDim.x\n"
                 "        at = cuda.blockIdx.x * each + min(cuda.blockIdx.x, rest)\n"),
            (END, "        end = at + each + (1 if cuda.blockIdx.x < rest else 0)\n"),
        ),
    ),
    "a plain addition where a tile is the block's own": (
        edited(
            build,
            (ADD, "                if last - first == steps:\n"
                  "                    C[row, col] += alpha * acc\n"
                  "                else:\n    " + ADD),
        ),
    ),
    "column by column": (
        edited(
            build,
            ("            row = tile // across * T + y\n            col = tile % across * T + x\n",
             "            down = total // steps // across\n"
             "            row = tile % down * T + y\n            col = tile // down * T + x\n"),
        ),
    ),
}  # fmt: skip

WRONG = {
    "whole tiles": wrong(
        build, "a tile cannot be cut", "shares-uneven",
        (AT, "        tiles = total // steps\n"
             "        at = cuda.blockIdx.x * tiles // cuda.gridDim.x * steps\n"),
        (END, "        end = (cuda.blockIdx.x + 1) * tiles // cuda.gridDim.x * steps\n"),
    ),
    "the last takes the rest": wrong(
        build, "rounded down, and the rest to the last", "shares-uneven",
        (AT, "        each = total // cuda.gridDim.x\n        at = cuda.blockIdx.x * each\n"),
        (END, "        end = at + each\n"
              "        if cuda.blockIdx.x == cuda.gridDim.x - 1:\n            end = total\n"),
    ),
    "rounded up": wrong(
        build, "every share has ⌈total / blocks⌉ steps", "traffic-over-budget",
        (AT, "        each = total // cuda.gridDim.x + 1\n        at = cuda.blockIdx.x * each\n"),
        (END, "        end = at + each\n"),
    ),
    "rounded down": wrong(
        build, "the number of blocks divides", "steps-left-out",
        (AT, "        each = total // cuda.gridDim.x\n        at = cuda.blockIdx.x * each\n"),
        (END, "        end = at + each\n"),
    ),
    "all of it": wrong(
        build, "every block sees all steps", "counted-again", (AT, "        at = 0\n"),
        (END, "        end = total\n"),
    ),
    "to the end": wrong(
        build, "a block goes on to the end", "counted-again", (END, "        end = total\n"),
    ),
    "beyond the share": wrong(
        build, "a tile that was begun is ended", "ends-with-the-tile",
        (LAST, "            last = steps\n"),
    ),
    "beyond the tile": wrong(
        build, "a share is in one tile", "steps-left-out",
        (LAST, "            last = first + end - at\n"),
    ),
    "from the first step": wrong(
        build, "a tile begins at 0", "begins-at-zero",
        ("            first = at % steps\n", "            first = at % steps\n"
         "            late = first\n            first = 0\n"),
        (LAST, "            last = min(steps, late + end - at)\n"),
        ("            at += last - first", "            at += last - late"),
    ),
    "rows and columns exchanged": wrong(
        build, "a tile's row is tile % across", "steps-left-out",
        ("tile // across * T + y", "tile % across * T + y"),
        ("tile % across * T + x", "tile // across * T + x"),
    ),
    "a plain store": wrong(
        build, "C += is enough", "two-writers",
        (ADD, "                C[row, col] += alpha * acc\n"),
    ),
    "no second barrier": wrong(
        build, "one barrier a step is enough", "barrier-after-reading",
        ("Bs[q, x]\n                cuda.syncthreads()\n", "Bs[q, x]\n"),
    ),
    "masked, not cut": wrong(
        build, "a block skips what is not its own", "shares-uneven",
        (AT, AT + "        mine = at\n        at = 0\n"),
        (END, END + "        until = end\n        end = total\n"),
        *masked("mine <= tile * steps + p // T and tile * steps + p // T < until"),
    ),
    "walks through its tile": wrong(
        build, "a step without products is no step", "shares-uneven",
        (LOOP, "range(0, steps * T, T)"), *masked("first * T <= p and p < last * T"),
        ("range(T):\n                    acc",
         "range(T if first * T <= p and p < last * T else 0):\n                    acc"),
    ),
    "by ceilings": wrong(
        build, "⌈total / blocks⌉ is even enough", "shares-uneven",
        (AT, "        each = -(-total // cuda.gridDim.x)\n"
             "        at = min(cuda.blockIdx.x * each, total)\n"),
        (END, "        end = min(at + each, total)\n"),
    ),
    "whole alpha": wrong(
        build, "alpha is a whole number", "whole-numbers-only",
        (ADD, ADD.replace("alpha", "int(alpha)")),
    ),
    "a float16 tile": wrong(
        build, "chapter 8's tiles were in float16", "low-precision", FLOAT16,
        ("As = cuda.shared.array((T, T), float32)", "As = cuda.shared.array((T, T), float16)"),
    ),
    "sums in float16": wrong(
        build, "a piece has few digits", "low-precision", FLOAT16,
        (ADD, ADD.replace("alpha * acc", "float32(float16(alpha * acc))")),
    ),
    "no barrier after 16 steps": wrong(
        build, "the first barriers put threads in step", "barrier-after-reading",
        ("Bs[q, x]\n                cuda.sync", "Bs[q, x]\n                if p < 16 * T:\n"
         "                    cuda.sync"),
    ),
    "20 rows at most": wrong(
        build, "C is never so tall", "known-cases-only",
        ("            if row < m and", "            if row < min(m, 20) and"),
    ),
    "7 blocks at most": wrong(
        build, "a launch is never so large", "known-cases-only",
        (END, END + "        if cuda.gridDim.x > 7:\n            end = at\n"),
    ),
}  # fmt: skip

FOOLING = {
    "one step at a time": wrong(
        build, "a step is a piece", "added-too-often", (LAST, "            last = first + 1\n")
    ),
    "every blocks-th step": wrong(
        build, "even is even", "added-too-often", (AT, "        at = cuda.blockIdx.x\n"),
        (END, "        end = total\n"), (LAST, "            last = first + 1\n"),
        ("            at += last - first", "            at += cuda.gridDim.x"),
    ),
    "block 0 alone": wrong(
        build, "whoever is free takes a step", "shares-uneven", (AT, "        at = 0\n"),
        (END, "        end = total if cuda.blockIdx.x == 0 else 0\n"),
    ),
    "the blocks of the last case": wrong(
        build, "the launch is known", "known-cases-only",
        (END, END + "        if total > 60 and k % 8:\n            end = at\n"),
        (ADD, ADD.replace("alpha * acc", "alpha * acc if alpha < 3 else alpha")),
    ),
    "from global memory": wrong(
        build, "the counter is what counts", "traffic-over-budget",
        ("                    acc += As[y, q] * Bs[q, x]\n",
         "                    if row < m and col < n and p + q < k:\n"
         "                        acc += A[row, p + q] * B[p + q, col] + 0 * As[y, q]\n"),
    ),
    "a generator": fooling("yield is return", "wrong-type", lambda T: (yield build(T))),
}  # fmt: skip
