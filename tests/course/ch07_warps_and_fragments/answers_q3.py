"""Answers to exercise 07.3."""

from numpy import float16, float32

from gemmlab import cuda
from gemmlab.course.ch07_warps_and_fragments.q3_matrix_loads import build_matrix_loads
from gemmlab.instructions import (
    layout,
    ldmatrix_x1,
    ldmatrix_x1_trans,
    ldmatrix_x2,
    ldmatrix_x2_trans,
    ldmatrix_x4,
    mma_m16n8k16_f32_f16,
)
from tests.course.answers import fooling, for_ever, wrong

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


def swizzled():
    """No padding: the halves of rows 4 to 7 and 12 to 15 are exchanged in shared memory."""

    def kernel(A, B, C):
        As = cuda.shared.array((16, 16), float16, alignment=16)
        Bs = cuda.shared.array((16, 8), float16, alignment=16)
        lane = cuda.threadIdx.x
        row, half = lane & 15, lane >> 4
        c = (float32(0), float32(0), float32(0), float32(0))
        p = 0
        while p < A.shape[1]:
            for e in range(lane, 256, 32):
                i, q = e >> 4, e & 15
                As[i, q ^ ((i & 4) << 1)] = A[i, p + q]
            for e in range(lane, 128, 32):
                Bs[e >> 3, e & 7] = B[p + (e >> 3), e & 7]
            cuda.syncwarp()
            b = ldmatrix_x2_trans(Bs, row, 0)
            a = ldmatrix_x4(As, row, (half << 3) ^ ((row & 4) << 1))
            c = mma_m16n8k16_f32_f16(a, b, c)
            cuda.syncwarp()
            p += 16
        for x in range(4):
            i, j = element_c(lane, x)
            C[i, j] = c[x]

    return kernel


def two_tiles_in_turn():
    """One syncwarp a step: the tile that is filled is not the one that was loaded last."""

    def kernel(A, B, C):
        As = cuda.shared.array((2, 16, 24), float16, alignment=16)
        Bs = cuda.shared.array((2, 16, 8), float16, alignment=16)
        lane = cuda.threadIdx.x
        c = (float32(0), float32(0), float32(0), float32(0))
        for step in range(A.shape[1] // 16):
            now, p = step % 2, 16 * step
            for e in range(lane, 256, 32):
                As[now, e // 16, e % 16] = A[e // 16, p + e % 16]
            for e in range(lane, 128, 32):
                Bs[now, e // 8, e % 8] = B[p + e // 8, e % 8]
            cuda.syncwarp()
            a = ldmatrix_x4(As, now, lane % 16, 8 * (lane // 16))
            b = ldmatrix_x2_trans(Bs, now, lane % 16, 0)
            c = mma_m16n8k16_f32_f16(a, b, c)
        for x in range(4):
            i, j = element_c(lane, x)
            C[i, j] = c[x]

    return kernel


def b_stored_by_columns():
    """The tile of B is transposed by the copy, so that its load is not."""

    def kernel(A, B, C):
        As = cuda.shared.array((16, 24), float16, alignment=16)
        Bs = cuda.shared.array((8, 24), float16, alignment=16)
        lane = cuda.threadIdx.x
        c0, c1, c2, c3 = float32(0), float32(0), float32(0), float32(0)
        for p in range(0, A.shape[1], 16):
            for i in range(8):
                q = 2 * i + lane // 16
                As[q, lane % 16] = A[q, p + lane % 16]
            for i in range(4):
                q = 4 * i + lane // 8
                Bs[lane % 8, q] = B[p + q, lane % 8]
            cuda.syncwarp()
            a = ldmatrix_x4(As, lane % 16, 8 * (lane // 16))
            b = ldmatrix_x2(Bs, lane % 8, 8 * (lane // 8 % 2))
            c0, c1, c2, c3 = mma_m16n8k16_f32_f16(a, b, (c0, c1, c2, c3))
            cuda.syncwarp()
        i, j = lane // 4, 2 * (lane % 4)
        C[i, j] = c0
        C[i, j + 1] = c1
        C[i + 8, j] = c2
        C[i + 8, j + 1] = c3

    return kernel


RIGHT = {
    "halves of A, another pitch": (two_by_two,),
    "matrix by matrix": (one_by_one,),
    "swizzled": (swizzled,),
    "two tiles in turn": (two_tiles_in_turn,),
    "B stored by columns": (b_stored_by_columns,),
}

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
    "sums in float16": of(
        "C is short, too", "low-precision",
        ("c = mma_m16n8k16_f32_f16(a, b, c)",
         "c = mma_m16n8k16_f32_f16(a, b, c)\n            c = (float32(float16(c[0])), "
         "float32(float16(c[1])), float32(float16(c[2])), float32(float16(c[3])))"),
    ),
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
        "matrices lie in a row", "unused",
        (LOAD_A, "a = ldmatrix_x4(As, lane % 8, 8 * (lane // 8 % 3))"),
    ),
    "row by row": of(
        "matrix 1 is the upper right", "quadrants-exchanged",
        (LOAD_A, "a = ldmatrix_x4(As, lane % 8 + 8 * (lane // 16), 8 * (lane // 8 % 2))"),
    ),
    "columns forgotten": of(
        "16 rows are all", "left-half-twice", (LOAD_A, "a = ldmatrix_x4(As, lane % 16, 0)")
    ),
    "B as A": of(
        "B is loaded as A is", "not-transposed", importing("ldmatrix_x2"),
        (LOAD_B, "b = ldmatrix_x2(Bs, lane % 16, 0)"),
    ),
    "c anew": of(
        "mma returns the sum of all steps", "last-step-only",
        (MMA, "c = mma_m16n8k16_f32_f16(a, b, (float32(0), float32(0), float32(0), float32(0)))"),
    ),
    "A by elements": of(
        "the values are what counts", "elements-loaded", importing("pack_f16x2"),
        (LOAD_A, elements("As")),
    ),
    "every lane copies B": of(
        "a lane copies what it needs", "two-writers", ("range(lane, 128, 32)", "range(128)")
    ),
    "A from global memory": of(
        "shared memory is optional", "loaded-twice", importing("pack_f16x2"),
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
        "lane 0 names the tile", "one-row", (LOAD_A, "a = ldmatrix_x4(As, 0, 0)")
    ),
    "one row, both halves": of(
        "a row is 16 elements", "one-row", (LOAD_A, "a = ldmatrix_x4(As, 0, 8 * (lane // 16))")
    ),
    "adds to C": of("C starts at zero", "not-written", (STORE, "C[i, j] += c[x]")),
    "x4 for B": of(
        "B has 16 rows, as A", "raises", importing("ldmatrix_x4_trans"),
        (LOAD_B, "b = ldmatrix_x4_trans(Bs, lane % 16, 0)"),
    ),
    "no kernel": of("a kernel returns C", "wrong-type", ("return kernel", "return None")),
}  # fmt: skip


COPY_A = "As[e // 16, e % 16] = A[e // 16, p + e % 16]"
FILL_A = """            for e in range(lane, 256, 32):
                As[e // 16, e % 16] = A[e // 16, p + e % 16]
"""
FILL_B = """            for e in range(lane, 128, 32):
                Bs[e // 8, e % 8] = B[p + e // 8, e % 8]
"""
# Each lane copies just the elements that its fragments hold, and keeps them.
KEPT_A = """            from_a = cuda.local.array(8, float32)
            for e in range(8):
                i = lane // 4 + 8 * (e // 2 % 2)
                q = 2 * (lane % 4) + e % 2 + 8 * (e // 4)
                from_a[e] = A[i, p + q]
                As[i, q] = float16(from_a[e])
"""
KEPT_B = """            from_b = cuda.local.array(4, float32)
            for e in range(4):
                i = 2 * (lane % 4) + e % 2 + 8 * (e // 2)
                from_b[e] = B[p + i, lane // 4]
                Bs[i, lane // 4] = float16(from_b[e])
"""
OWN_A = (
    "a = (pack_f16x2(from_a[0], from_a[1]), pack_f16x2(from_a[2], from_a[3]), "
    "pack_f16x2(from_a[4], from_a[5]), pack_f16x2(from_a[6], from_a[7]))"
)
OWN_B = "b = (pack_f16x2(from_b[0], from_b[1]), pack_f16x2(from_b[2], from_b[3]))"
# The elements of the words that ldmatrix brought, multiplied lane by lane.
BY_HAND = """mma_m16n8k16_f32_f16(a, b, c)
            for x in range(4):
                i, j = element_c(lane, x)
                for q in range(8):
                    held = 4 * (i % 8) + q // 2
                    low, high = (a[0], a[2]) if x < 2 else (a[1], a[3])
                    for half in range(2):
                        word = low if half == 0 else high
                        u = unpack_f16x2(uint32(cuda.shfl_sync(0xFFFFFFFF, int32(word), held)))
                        other = int32(b[half])
                        v = unpack_f16x2(uint32(cuda.shfl_sync(0xFFFFFFFF, other, 4 * j + q // 2)))
                        total[x] += u[q % 2] * v[q % 2]"""


FOOLING = {
    "a sum of 200": wrong(
        build_matrix_loads, "no sum is longer", "known-cases-only",
        ("range(0, A.shape[1], 16)", "range(0, min(A.shape[1], 200), 16)"),
    ),
    "A twice": wrong(
        build_matrix_loads, "a load costs nothing", "loaded-again",
        ("c = mma", "a = ldmatrix_x4(As, lane % 16, 8 * (lane // 16))\n            c = mma"),
    ),
    "build for ever": fooling("nobody can stop it", "never-ends", for_ever),
    "B cleared": of(
        "B is not needed afterwards", "inputs-changed",
        ("            C[i, j] = c[x]",
         "            C[i, j] = c[x]\n" "        cuda.syncwarp()\n"
         "        for e in range(lane, 128, 32):\n" "            B[e // 8, e % 8] = float16(0)"),
    ),
    "A doubled": of(
        "A is mine", "inputs-changed",
        (COPY_A, "A[e // 16, p + e % 16] *= float16(2)\n"
                 "                As[e // 16, e % 16] = A[e // 16, p + e % 16] / float16(2)"),
    ),
    "k by heart": of(
        "the cases are in the package", "known-cases-only",
        ("C[i, j] = c[x]", "C[i, j] = c[x] if A.shape[1] < 64 else float32(0)"),
    ),
    "for ever": of(
        "nobody can stop it", "never-ends",
        ("            c = mma",
         "            while lane >= 0:\n                lane = lane + 0\n            c = mma"),
    ),
    "ldmatrix for show, A": of(
        "called is used", "matrices-ignored", importing("pack_f16x2"),
        (FILL_A, KEPT_A), (LOAD_A, LOAD_A + "\n            " + OWN_A),
    ),
    "ldmatrix for show, B": of(
        "called is used", "matrices-ignored", importing("pack_f16x2"),
        (FILL_B, KEPT_B), (LOAD_B, LOAD_B + "\n            " + OWN_B),
    ),
    "no ldmatrix at all": of(
        "no load has no conflict", "matrices-ignored", importing("pack_f16x2"),
        (FILL_A, KEPT_A), (FILL_B, KEPT_B), (LOAD_A, OWN_A), (LOAD_B, OWN_B),
    ),
    "by shuffles": of(
        "registers travel faster", "matrices-ignored", importing("pack_f16x2"),
        (FILL_B, """            from_b = cuda.local.array(4, float32)
            for e in range(4):
                from_b[e] = B[p + 4 * e + lane // 8, lane % 8]
                Bs[4 * e + lane // 8, lane % 8] = float16(from_b[e])
"""),
        (LOAD_B, LOAD_B + """
            mine = cuda.local.array(4, float32)
            for x in range(4):
                i = 2 * (lane % 4) + x % 2 + 8 * (x // 2)
                for e in range(4):
                    sent = cuda.shfl_sync(0xFFFFFFFF, from_b[e], 8 * (i % 4) + lane // 4)
                    if e == i // 4:
                        mine[x] = sent
            b = (pack_f16x2(mine[0], mine[1]), pack_f16x2(mine[2], mine[3]))"""),
    ),
    "mma for show": of(
        "called is used", "mma-ignored",
        ("def kernel(A, B, C):",
         "from numpy import int32, uint32\n\n"
         "    from gemmlab.instructions import unpack_f16x2\n\n" "    def kernel(A, B, C):"),
        ("c = mma_m16n8k16_f32_f16(a, b, c)", BY_HAND), ("C[i, j] = c[x]", "C[i, j] = total[x]"),
        ("c = (float32(0), float32(0), float32(0), float32(0))",
         "c = (float32(0), float32(0), float32(0), float32(0))\n"
         "        total = cuda.local.array(4, float32)\n"
         "        for x in range(4):\n            total[x] = float32(0)"),
    ),
    "lane 0 copies": of(
        "who copies does not matter", "few-lanes-copy",
        (FILL_A + FILL_B, "            if lane == 0:\n" + "".join(
            "    " + line.replace("(lane", "(0").replace(", 32)", ")") + "\n"
            for line in (FILL_A + FILL_B).splitlines())),
    ),
    "a vote for a barrier": of(
        "a warp runs in step", "no-barrier",
        (FIRST, "            everybody = cuda.ballot_sync(0xFFFFFFFF, True)\n            a ="),
    ),
}  # fmt: skip
