"""Answers to exercise 07.3."""

from numpy import float16, float32

from gemmlab import cuda
from gemmlab.exercises.matrix_loads import build_matrix_loads
from gemmlab.instructions import (
    layout,
    ldmatrix_x1,
    ldmatrix_x1_trans,
    ldmatrix_x2,
    ldmatrix_x2_trans,
    mma_m16n8k16_f32_f16,
)
from tests.support.exercise_answers.edits import fooling, for_ever, wrong

element_c = layout("m16n8k16", "C").element


def two_by_two():
    def kernel(A, B, C):
        As = cuda.shared.array((16, 40), float16, alignment=16)
        Bs = cuda.shared.array((16, 8), float16, alignment=16)
        lane = cuda.threadIdx.x
        c = (float32(0), float32(0), float32(0), float32(0))
        for p in range(0, A.shape[1], 16):
            for e in range(lane, 256, 32):
                As[e // 16, e % 16] = A[e // 16, p + e % 16]
            for e in range(lane, 128, 32):
                Bs[e // 8, e % 8] = B[p + e // 8, e % 8]
            cuda.syncwarp()
            left = ldmatrix_x2(As, lane % 16, 0)
            right = ldmatrix_x2(As, lane % 16, 8)
            b = ldmatrix_x2_trans(Bs, lane % 16, 0)
            c = mma_m16n8k16_f32_f16((left[0], left[1], right[0], right[1]), b, c)
            cuda.syncwarp()
        for x in range(4):
            i, j = element_c(lane, x)
            C[i, j] = c[x]

    return kernel


def one_by_one():
    def kernel(A, B, C):
        As = cuda.shared.array((16, 24), float16, alignment=16)
        Bs = cuda.shared.array((16, 8), float16, alignment=16)
        lane = cuda.threadIdx.x
        r = lane % 8
        c = (float32(0), float32(0), float32(0), float32(0))
        for p in range(0, A.shape[1], 16):
            for e in range(lane, 256, 32):
                As[e // 16, e % 16] = A[e // 16, p + e % 16]
            for e in range(lane, 128, 32):
                Bs[e // 8, e % 8] = B[p + e // 8, e % 8]
            cuda.syncthreads()
            a = (
                ldmatrix_x1(As, r, 0),
                ldmatrix_x1(As, r + 8, 0),
                ldmatrix_x1(As, r, 8),
                ldmatrix_x1(As, r + 8, 8),
            )
            b = (ldmatrix_x1_trans(Bs, r, 0), ldmatrix_x1_trans(Bs, r + 8, 0))
            c = mma_m16n8k16_f32_f16(a, b, c)
            cuda.syncthreads()
        for x in range(4):
            i, j = element_c(lane, x)
            C[i, j] = c[x]

    return kernel


RIGHT = {"halves of A, another pitch": (two_by_two,), "matrix by matrix": (one_by_one,)}

BARRIER = "            cuda.syncwarp()\n"
FIRST, SECOND = BARRIER + "            a =", BARRIER + "        for x"
LOAD_A = "a = ldmatrix_x4(As, lane % 16, 8 * (lane // 16))"
LOAD_B = "b = ldmatrix_x2_trans(Bs, lane % 16, 0)"
MMA = "c = mma_m16n8k16_f32_f16(a, b, c)"
STORE = "C[i, j] = c[x]"
G, T = "lane // 4", "2 * (lane % 4)"


def elements(of, offset=""):
    """The fragment a, element by element, from As or from A."""
    places = [(G, T), (f"{G} + 8", T), (G, f"{T} + 8"), (f"{G} + 8", f"{T} + 8")]
    pairs = (f"pack_f16x2({of}[{i}, {offset}{j}], {of}[{i}, {offset}{j} + 1])" for i, j in places)
    return f"a = ({', '.join(pairs)})"


def of(misconception, diagnosis, *edits):
    return wrong(build_matrix_loads, misconception, diagnosis, *edits)


def importing(name):
    """The edit that brings an instruction into the exercise's names."""
    head = "def kernel(A, B, C):"
    return head, f"from gemmlab.instructions import {name}\n\n    {head}"


WRONG = {
    "dense rows": of("what is unused is wasted", "bank-conflicts", ("pitch = 24", "pitch = 16")),
    "rows of 64 bytes": of("more is better", "bank-conflicts", ("pitch = 24", "pitch = 32")),
    "one more": of("as in chapter 4", "misaligned", ("pitch = 24", "pitch = 17")),
    "first barrier": of("a warp needs none", "no-barrier", (FIRST, "            a =")),
    "second barrier": of("one is enough", "no-barrier", (SECOND, "        for x")),
    "row and column exchanged": of(
        "x comes first", "misaligned", (LOAD_A, "a = ldmatrix_x4(As, 8 * (lane // 16), lane % 16)")
    ),
    "the lane's own element": of(
        "a lane names what it gets", "misaligned", (LOAD_A, f"a = ldmatrix_x4(As, {G}, {T})")
    ),
    "a row a lane": of("32 lanes, 32 rows", "outside", (LOAD_A, "a = ldmatrix_x4(As, lane, 0)")),
    "side by side": of(
        "matrices lie in a row",
        "unused",
        (LOAD_A, "a = ldmatrix_x4(As, lane % 8, 8 * (lane // 8 % 3))"),
    ),
    "row by row": of(
        "matrix 1 is the upper right",
        "quadrants-exchanged",
        (LOAD_A, "a = ldmatrix_x4(As, lane % 8 + 8 * (lane // 16), 8 * (lane // 8 % 2))"),
    ),
    "columns forgotten": of(
        "16 rows are all", "left-half-twice", (LOAD_A, "a = ldmatrix_x4(As, lane % 16, 0)")
    ),
    "B as A": of(
        "B is loaded as A is",
        "not-transposed",
        importing("ldmatrix_x2"),
        (LOAD_B, "b = ldmatrix_x2(Bs, lane % 16, 0)"),
    ),
    "c anew": of(
        "mma returns the sum of all steps",
        "last-step-only",
        (MMA, "c = mma_m16n8k16_f32_f16(a, b, (float32(0), float32(0), float32(0), float32(0)))"),
    ),
    "A by elements": of(
        "the values are what counts",
        "elements-loaded",
        importing("pack_f16x2"),
        (LOAD_A, elements("As")),
    ),
    "A from global memory": of(
        "shared memory is optional",
        "loaded-twice",
        importing("pack_f16x2"),
        (LOAD_A, elements("A", "p + ")),
    ),
    "without the instruction": of(
        "the result is what counts",
        "no-mma",
        (MMA, "pass"),
        (STORE, "C[i, j] = total[x]"),
        (
            "cuda.syncwarp()\n        for x",
            """for x in range(4):
                i, j = element_c(lane, x)
                for q in range(16):
                    total[x] += float32(As[i, q]) * float32(Bs[q, j])
            cuda.syncwarp()
        for x""",
        ),
        (
            "c = (float32(0), float32(0), float32(0), float32(0))",
            """total = cuda.local.array(4, float32)
        for x in range(4):
            total[x] = float32(0)""",
        ),
    ),
    "two of four": of(
        "a lane holds a pair", "not-written", ("for x in range(4)", "for x in range(2)")
    ),
    "one row for all": of(
        "lane 0 names the tile", "wrong-values", (LOAD_A, "a = ldmatrix_x4(As, 0, 0)")
    ),
    "x4 for B": of(
        "B has 16 rows, as A",
        "raises",
        importing("ldmatrix_x4_trans"),
        (LOAD_B, "b = ldmatrix_x4_trans(Bs, lane % 16, 0)"),
    ),
    "no kernel": of("a kernel returns C", "wrong-type", ("return kernel", "return None")),
}


FOOLING = {
    "k by heart": of(
        "the cases are in the package", "known-cases-only",
        (STORE, f"{STORE} if A.shape[1] < 64 else float32(0)"),
    ),
    "B cleared": of(
        "B is not needed afterwards", "inputs-changed",
        ("        for x in range(4):",
         "        for e in range(lane, 128, 32):\n            B[e // 8, e % 8] = float16(0)\n"
         "        for x in range(4):"),
    ),
    "build for ever": fooling("nobody can stop it", "never-ends", for_ever),
    "for ever": of(
        "nobody can stop it", "never-ends",
        ("            c = mma",
         "            while lane >= 0:\n                lane = lane + 0\n            c = mma"),
    ),
}  # fmt: skip
