"""Answers to exercise 08.5."""

from textwrap import dedent, indent

from gemmlab.course.ch08_tensor_core_gemm.q5_block_of_warps import build_block_tile
from tests.course.answers import edited, fooling, for_ever, wrong

COPY_A = """                row, col = e // 4, 8 * (e % 4)
                store_v8(As, row, col, load_v8(A, top + row, p + col))
"""
COPY_B = """                row, col = e // 8, 8 * (e % 8)
                store_v8(Bs, row, col, load_v8(B, p + row, left + col))
"""
COPIES = f"            for e in range(thread, 256, 128):\n{COPY_A}{COPY_B}"
BARRIER = "            cuda.syncthreads()\n"
FIRST = f"{COPY_B}{BARRIER}"
LAST = f"{BARRIER}\n        for x"
SLICES = "            for s in range(0, 32, 16):\n"
ROW = "row, col = down + 16 * x + lane % 16, s + 8 * (lane // 16)"
LOAD_A = f"""                    {ROW}
                    a[x, 0], a[x, 1], a[x, 2], a[x, 3] = ldmatrix_x4(As, row, col)
"""
OF_B = "ldmatrix_x2_trans(Bs, s + lane % 16, right + 8 * y)"
LOAD_B = f"                    b[y, 0], b[y, 1] = {OF_B}\n"
LOADS = f"""                for x in range(2):
{LOAD_A}                for y in range(4):
{LOAD_B}"""
SUMS = "                                (acc[x, y, 0], acc[x, y, 1], acc[x, y, 2], acc[x, y, 3]),\n"
ZEROS = "                                (float32(0), float32(0), float32(0), float32(0)),\n"
RESULT = "acc[x, y, 0], acc[x, y, 1], acc[x, y, 2], acc[x, y, 3] = (\n"
PRODUCTS = f"                    for y in range(4):\n                        {RESULT}"
END = "                        )\n"
STORE = "C[top + down + 16 * x + i, left + right + 8 * y + j] = acc[x, y, e]"
HEAD = "def kernel(A, B, C):"


def of(misconception, diagnosis, *edits):
    return wrong(build_block_tile, misconception, diagnosis, *edits)


def importing(name):
    """The edit that brings an instruction into the exercise's names."""
    return HEAD, f"from gemmlab.instructions import {name}\n\n    {HEAD}"


RIGHT = {
    "half of the block for each tile": (
        edited(
            build_block_tile,
            (COPIES, """            for e in range(thread % 64, 256, 64):
                if thread < 64:
                    row, col = e // 4, 8 * (e % 4)
                    store_v8(As, row, col, load_v8(A, top + row, p + col))
                else:
                    row, col = e // 8, 8 * (e % 8)
                    store_v8(Bs, row, col, load_v8(B, p + row, left + col))
"""),
        ),
    ),
    "pairs of B": (
        edited(
            build_block_tile,
            importing("ldmatrix_x4_trans"),
            (f"                for y in range(4):\n{LOAD_B}", """
                for y in range(0, 4, 2):
                    two = ldmatrix_x4_trans(
                        Bs, s + lane % 16, right + 8 * y + 8 * (lane // 16)
                    )
                    b[y, 0], b[y, 1], b[y + 1, 0], b[y + 1, 1] = two
"""),
        ),
    ),
}  # fmt: skip

BY_HAND = """                for x in range(2):
                    for y in range(4):
                        for e in range(4):
                            i, j = element_c(lane, e)
                            for q in range(16):
                                one = As[down + 16 * x + i, s + q]
                                other = Bs[s + q, right + 8 * y + j]
                                total[x, y, e] += float32(one) * float32(other)
"""
ONLY_BY_HAND = (
    "for s in range(0, 32, 16):\n" + indent(dedent(BY_HAND), "    ") + "cuda.syncthreads()"
)
TOTAL = """total = cuda.local.array((2, 4, 4), float32)
        for x in range(2):
            for y in range(4):
                for e in range(4):
                    total[x, y, e] = 0
        for p in range(0, A.shape[1], 32):"""
LOOP = "for p in range(0, A.shape[1], 32):"

WRONG = {
    "first barrier": of("a block needs none", "no-barrier", (FIRST, COPY_B)),
    "second barrier": of("one is enough", "no-barrier", (LAST, "\n        for x")),
    "a warp's barrier": of(
        "a warp is a block", "no-barrier", (FIRST, FIRST.replace("syncthreads", "syncwarp"))
    ),
    "every thread copies all": of(
        "a thread copies what it needs", "two-writers", ("range(thread, 256, 128)", "range(256)")
    ),
    "words, not pieces": of(
        "col is a piece", "misaligned", ("e // 4, 8 * (e % 4)", "e // 4, e % 4")
    ),
    "A by columns": of(
        "row of A is along k", "outside", ("A, top + row, p + col", "A, p + row, top + col")
    ),
    "half of the tile": of(
        "128 pieces are a tile", "unused", ("range(thread, 256, 128)", "range(thread, 128, 128)")
    ),
    "two of four": of(
        "a lane holds a pair", "not-finite", (STORE, f"if e < 2:\n                        {STORE}")
    ),
    "sums anew": of("mma returns the sum of all steps", "last-step-only", (SUMS, ZEROS)),
    "sums anew in each step": of(
        "sums belong to a step", "last-step-only",
        (SLICES, "            for x in range(2):\n                for y in range(4):\n"
                 "                    for e in range(4):\n"
                 "                        acc[x, y, e] = 0\n" + SLICES),
    ),
    "half of a step": of(
        "a step is 16", "one-half-of-a-step", ("range(0, 32, 16)", "range(0, 16, 16)")
    ),
    "the same half twice": of(
        "loops repeat a step", "one-half-of-a-step",
        (ROW, ROW.replace("s + 8", "8")), (OF_B, OF_B.replace("s + lane", "lane")),
    ),
    "B as A": of(
        "B is loaded as A is", "not-transposed", importing("ldmatrix_x2"),
        (OF_B, OF_B.replace("_trans", "")),
    ),
    "one block": of(
        "blocks know their tile", "one-tile-for-all",
        ("A, top + row", "A, row"), ("p + row, left + col", "p + row, col"),
    ),
    "one warp": of(
        "a warp has the block's rows", "warps-alike", (ROW, ROW.replace("down + ", ""))
    ),
    "half of the warp": of(
        "b is half a warp's", "lanes-missing",
        (LOAD_B, f"                    if lane < 16:\n    {LOAD_B}"),
    ),
    "in float16": of(
        "C is short, too", "low-precision",
        ("local.array((2, 4, 4), float32)", "local.array((2, 4, 4), float16)"),
    ),
    "sums beside the mma": of(
        "mma multiplies, + adds", "added-apart", (SUMS, ZEROS), (RESULT, "d = (\n"),
        (END, END + "                        for e in range(4):\n"
                    "                            acc[x, y, e] += d[e]\n"),
    ),
    "stored in each step": of(
        "a store is free", "stored-twice", (LAST, f"""{BARRIER}            for x in range(2):
                for y in range(4):
                    for e in range(4):
                        i, j = element_c(lane, e)
                        {STORE}

        for x"""),
    ),
    "a tile for each warp": of(
        "warps have their own tiles", "loaded-again",
        (COPIES, f"            for e in range(thread, 256, 128):\n{COPY_A}{COPY_A}{COPY_B}"),
    ),
    "twice": of(
        "more products do no harm", "multiplied-twice",
        (SLICES, "            for s in range(-16, 32, 16):\n                if s < 0:\n"
                 "                    spare = mma_m16n8k16_f32_f16(\n"
                 "                        (uint32(0), uint32(0), uint32(0), uint32(0)),\n"
                 "                        (uint32(0), uint32(0)),\n"
                 "                        (float32(0), float32(0), float32(0), float32(0)),\n"
                 "                    )\n                    continue\n"),
    ),
    "without the instruction": of(
        "the result is what counts", "no-mma",
        ("for s in range(0, 32, 16):", "cuda.syncthreads()", ONLY_BY_HAND),
        (LOOP, TOTAL), (STORE, STORE.replace("acc", "total")),
    ),
    "whole numbers": of(
        "sums are whole", "whole-numbers-only",
        (STORE, STORE.replace("acc[x, y, e]", "int(acc[x, y, e])")),
    ),
    "no kernel": of("a kernel returns C", "wrong-type", ("return kernel", "return None")),
    "element by element": of(
        "a copy is a copy", "narrow-copies",
        (COPY_A, """                for q in range(8):
                    As[e // 4, 8 * (e % 4) + q] = A[top + e // 4, p + 8 * (e % 4) + q]
"""),
    ),
    "one warp copies": of(
        "who copies does not matter", "few-threads-copy",
        ("range(thread, 256, 128)", "range(thread, 256 if thread < 32 else 0, 32)"),
    ),
    "in the inner loop": of(
        "a load stands beside its use", "fragments-again",
        (LOADS, f"                for x in range(2):\n{LOAD_A}"),
        (PRODUCTS, PRODUCTS.replace(":\n", f":\n    {LOAD_B}")),
    ),
    "three barriers": of(
        "more barriers are safer", "too-many-barriers", (FIRST, FIRST + BARRIER)
    ),
    "A by elements": of(
        "the values are what counts", "elements-loaded",
        (SLICES, SLICES + "                spare = As[0, 0]\n"),
    ),
}  # fmt: skip

FOOLING = {
    "four steps": of(
        "the cases are in the package", "known-cases-only",
        ("range(0, A.shape[1], 32)", "range(0, min(A.shape[1], 1000), 32)"),
    ),
    "two blocks": of(
        "the cases are in the package", "known-cases-only",
        (STORE, f"if cuda.blockIdx.x < 2:\n                        {STORE}"),
    ),
    "build for ever": fooling("nobody can stop it", "never-ends", for_ever),
}  # fmt: skip
