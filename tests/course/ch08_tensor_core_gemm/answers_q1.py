"""Answers to exercise 08.1."""

from numpy import float16, float32, uint32

from gemmlab import cuda
from gemmlab.course.ch08_tensor_core_gemm.q1_warp_fragments import build_warp_tile
from gemmlab.instructions import (
    layout,
    ldmatrix_x4,
    ldmatrix_x4_trans,
    mma_m16n8k16_f32_f16,
)
from tests.course.answers import fooling, for_ever, wrong

element_c = layout("m16n8k16", "C").element


def pairs_of_b():
    """B by pairs of fragments, each an x4; columns of C in the outer loop."""

    def kernel(A, B, C):
        As = cuda.shared.array((32, 24), float16, alignment=16)
        Bs = cuda.shared.array((16, 40), float16, alignment=16)
        lane = cuda.threadIdx.x
        acc = cuda.local.array((2, 4, 4), float32)
        for x in range(2):
            for y in range(4):
                for e in range(4):
                    acc[x, y, e] = 0
        for p in range(0, A.shape[1], 16):
            for e in range(lane, 512, 32):
                As[e // 16, e % 16] = A[e // 16, p + e % 16]
                Bs[e // 32, e % 32] = B[p + e // 32, e % 32]
            cuda.syncwarp()
            top = ldmatrix_x4(As, lane % 16, 8 * (lane // 16))
            low = ldmatrix_x4(As, 16 + lane % 16, 8 * (lane // 16))
            for half in range(2):
                v = ldmatrix_x4_trans(Bs, lane % 16, 16 * half + 8 * (lane // 16))
                for q in range(2):
                    y = 2 * half + q
                    b = (v[2 * q], v[2 * q + 1])
                    c = (acc[0, y, 0], acc[0, y, 1], acc[0, y, 2], acc[0, y, 3])
                    d = (acc[1, y, 0], acc[1, y, 1], acc[1, y, 2], acc[1, y, 3])
                    c = mma_m16n8k16_f32_f16(top, b, c)
                    d = mma_m16n8k16_f32_f16(low, b, d)
                    for e in range(4):
                        acc[0, y, e] = c[e]
                        acc[1, y, e] = d[e]
            cuda.syncwarp()
        for x in range(2):
            for y in range(4):
                for e in range(4):
                    i, j = element_c(lane, e)
                    C[16 * x + i, 8 * y + j] = acc[x, y, e]

    return kernel


def dense_and_turned():
    """B turned by the copy, in rows along k; both tiles without unused rows."""

    def kernel(A, B, C):
        As = cuda.shared.array((32, 24), float16, alignment=16)
        Bs = cuda.shared.array((32, 24), float16, alignment=16)
        lane = cuda.threadIdx.x
        b = cuda.local.array((2, 4), uint32)
        acc = cuda.local.array((2, 4, 4), float32)
        for e in range(32):
            acc[e // 16, e // 4 % 4, e % 4] = 0
        p = 0
        while p < A.shape[1]:
            for i in range(16):
                q, r = 2 * i + lane // 16, lane % 16
                As[q, r] = A[q, p + r]
                Bs[lane, i] = B[p + i, lane]
            cuda.syncthreads()
            for y in range(2):
                row, col = 16 * y + lane % 8 + lane // 16 * 8, lane // 8 % 2 * 8
                b[y, 0], b[y, 1], b[y, 2], b[y, 3] = ldmatrix_x4(Bs, row, col)
            for x in range(2):
                a = ldmatrix_x4(As, 16 * x + lane % 16, 8 * (lane // 16))
                for y in range(4):
                    c = (acc[x, y, 0], acc[x, y, 1], acc[x, y, 2], acc[x, y, 3])
                    d = mma_m16n8k16_f32_f16(a, (b[y // 2, y % 2 * 2], b[y // 2, y % 2 * 2 + 1]), c)
                    acc[x, y, 0], acc[x, y, 1], acc[x, y, 2], acc[x, y, 3] = d
            cuda.syncthreads()
            p += 16
        g, t = lane // 4, 2 * (lane % 4)
        for x in range(2):
            for y in range(4):
                for e in range(4):
                    C[16 * x + g + 8 * (e // 2), 8 * y + t + e % 2] = acc[x, y, e]

    return kernel


RIGHT = {
    "fragments of B by pairs": (pairs_of_b,),
    "B turned by the copy": (dense_and_turned,),
}

LOAD_A = """                row, col = 16 * x + lane % 16, 8 * (lane // 16)
                a[x, 0], a[x, 1], a[x, 2], a[x, 3] = ldmatrix_x4(As, row, col)
"""
LOAD_B = """                b[y, 0], b[y, 1] = ldmatrix_x2_trans(Bs, lane % 16, 8 * y)
"""
LOADS = f"            for x in range(2):\n{LOAD_A}            for y in range(4):\n{LOAD_B}"
ROW = "row, col = 16 * x + lane % 16, 8 * (lane // 16)"
OF_B = "ldmatrix_x2_trans(Bs, lane % 16, 8 * y)"
SUMS = "                        (acc[x, y, 0], acc[x, y, 1], acc[x, y, 2], acc[x, y, 3]),\n"
RESULT = "acc[x, y, 0], acc[x, y, 1], acc[x, y, 2], acc[x, y, 3] = mma"
STORE = "C[16 * x + i, 8 * y + j] = acc[x, y, e]"
HEAD = "def kernel(A, B, C):"
BARRIER = "            cuda.syncwarp()\n"
FIRST = BARRIER + "            # Load"
LAST = BARRIER + "\n        for x"
SUM = "                    acc"
PRODUCTS = f"""            for x in range(2):
                for y in range(4):
{SUM}[x, y, 0]"""


def of(misconception, diagnosis, *edits):
    return wrong(build_warp_tile, misconception, diagnosis, *edits)


def importing(name):
    """The edit that brings an instruction into the exercise's names."""
    return HEAD, f"from gemmlab.instructions import {name}\n\n    {HEAD}"


def indented(text):
    return "".join("    " + line + "\n" for line in text.splitlines())


def by_elements(of_a, offset=""):
    """The fragment a[x], element by element, from As or from A."""
    g, t = f"{offset}lane // 4", "2 * (lane % 4)"
    places = (g, t), (g + " + 8", t), (g, t + " + 8"), (g + " + 8", t + " + 8")
    return "".join(
        f"                a[x, {w}] = pack_f16x2({of_a(i, j)}, {of_a(i, j + ' + 1')})\n"
        for w, (i, j) in enumerate(places)
    )


IN_SHARED = by_elements(lambda i, j: f"As[{i}, {j}]", "16 * x + ")
IN_GLOBAL = by_elements(lambda i, j: f"A[{i}, p + {j}]", "16 * x + ")
TOTAL = """total = cuda.local.array((2, 4, 4), float32)
        for x in range(2):
            for y in range(4):
                for e in range(4):
                    total[x, y, e] = 0
        for p in range(0, A.shape[1], 16):"""
BY_HAND = """            for x in range(2):
                for y in range(4):
                    for e in range(4):
                        i, j = element_c(lane, e)
                        for q in range(16):
                            one, other = As[16 * x + i, q], Bs[q, 8 * y + j]
                            total[x, y, e] += float32(one) * float32(other)
"""
BY_SHUFFLES = """            for x in range(2):
                for y in range(4):
                    for e in range(4):
                        i, j = element_c(lane, e)
                        for q in range(8):
                            held = 4 * (i % 8) + q // 2
                            for half in range(2):
                                low, high = a[x, 2 * half], a[x, 2 * half + 1]
                                word = low if e < 2 else high
                                word = uint32(cuda.shfl_sync(0xFFFFFFFF, int32(word), held))
                                u = unpack_f16x2(word)
                                word = int32(b[y, half])
                                word = uint32(cuda.shfl_sync(0xFFFFFFFF, word, 4 * j + q // 2))
                                v = unpack_f16x2(word)
                                total[x, y, e] += u[q % 2] * v[q % 2]
"""
FILL = """                As[e // 16, e % 16] = A[e // 16, p + e % 16]
                Bs[e // 32, e % 32] = B[p + e // 32, e % 32]
"""
# Each lane copies just the elements that its fragments of A hold, and keeps them.
KEPT = """            for e in range(lane, 512, 32):
                Bs[e // 32, e % 32] = B[p + e // 32, e % 32]
            kept = cuda.local.array((2, 8), float32)
            for x in range(2):
                for e in range(8):
                    i = 16 * x + lane // 4 + 8 * (e // 2 % 2)
                    q = 2 * (lane % 4) + e % 2 + 8 * (e // 4)
                    kept[x, e] = A[i, p + q]
                    As[i, q] = float16(kept[x, e])
"""
OWN = """                for w in range(4):
                    a[x, w] = pack_f16x2(kept[x, 2 * w], kept[x, 2 * w + 1])
"""

WRONG = {
    "sums in float16": of(
        "C is short, too", "low-precision",
        ("local.array((2, 4, 4), float32)", "local.array((2, 4, 4), float16)"),
    ),
    "in the inner loop": of(
        "a load stands beside its use", "loaded-again", (LOADS, ""),
        (PRODUCTS, PRODUCTS.replace(SUM, indented(LOAD_A) + indented(LOAD_B) + SUM)),
    ),
    "B for each row": of(
        "a row of C has its own B", "loaded-again",
        (LOADS, f"            for x in range(2):\n{LOAD_A}"),
        (PRODUCTS, PRODUCTS.replace(SUM, indented(LOAD_B) + SUM)),
    ),
    "first barrier": of("a warp needs none", "no-barrier", (FIRST, "            # Load")),
    "second barrier": of("one is enough", "no-barrier", (LAST, "\n        for x")),
    "upper half twice": of(
        "x stands in a alone", "one-fragment-of-a", (ROW, ROW.replace("16 * x + ", ""))
    ),
    "first columns": of(
        "y stands in b alone", "one-fragment-of-b", (OF_B, OF_B.replace("8 * y", "0"))
    ),
    "row by row": of(
        "matrix 1 is the upper right", "quadrants-exchanged",
        (ROW, "row, col = 16 * x + lane % 8 + 8 * (lane // 16), 8 * (lane // 8 % 2)"),
    ),
    "a row a lane": of("32 lanes, 32 rows", "outside", (ROW, "row, col = 16 * x + lane, 0")),
    "padding": of("lanes go to the right", "unused", (ROW, "row, col = 16 * x + lane % 16, 16")),
    "row and column exchanged": of(
        "x comes first", "misaligned", (ROW, "col, row = 16 * x + lane % 16, 8 * (lane // 16)")
    ),
    "B as A": of(
        "B is loaded as A is", "not-transposed", importing("ldmatrix_x2"),
        (OF_B, OF_B.replace("_trans", "")),
    ),
    "sums anew": of(
        "mma returns the sum of all steps", "last-step-only",
        (SUMS, "                        (float32(0), float32(0), float32(0), float32(0)),\n"),
    ),
    "one set of sums": of(
        "a warp has one C", "sums-shared",
        (RESULT, "acc[0, y, 0], acc[0, y, 1], acc[0, y, 2], acc[0, y, 3] = mma"),
        (SUMS, SUMS.replace("acc[x", "acc[0")), (STORE, "C[16 * x + i, 8 * y + j] = acc[0, y, e]"),
    ),
    "half of the warp": of(
        "a fragment is half a warp's", "lanes-missing",
        (LOAD_B, "                if lane < 16:\n    " + LOAD_B),
    ),
    "sums beside the mma": of(
        "mma multiplies, + adds", "added-apart",
        (RESULT, "d = mma"),
        (SUMS, SUMS.replace("acc[x, y, 0], acc[x, y, 1], acc[x, y, 2], acc[x, y, 3]",
                            "float32(0), float32(0), float32(0), float32(0)")),
        ("                    )\n", "                    )\n"
         "                    for e in range(4):\n"
         "                        acc[x, y, e] += d[e]\n"),
    ),
    "stored in each step": of(
        "a store is free", "stored-twice",
        ("            cuda.syncwarp()\n\n", """            cuda.syncwarp()
            for x in range(2):
                for y in range(4):
                    for e in range(4):
                        i, j = element_c(lane, e)
                        C[16 * x + i, 8 * y + j] = acc[x, y, e]

"""),
    ),
    "twice": of(
        "more products do no harm", "multiplied-twice",
        (PRODUCTS, """            for x in range(2):
                for y in range(4):
                    spare = mma_m16n8k16_f32_f16(
                        (a[x, 0], a[x, 1], a[x, 2], a[x, 3]),
                        (b[y, 0], b[y, 1]),
                        (acc[x, y, 0], acc[x, y, 1], acc[x, y, 2], acc[x, y, 3]),
                    )
                    acc[x, y, 0]"""),
    ),
    "every lane copies": of(
        "a lane copies what it needs", "two-writers", ("range(lane, 512, 32)", "range(512)")
    ),
    "A by elements": of(
        "the values are what counts", "elements-loaded", importing("pack_f16x2"),
        (LOAD_A, IN_SHARED),
    ),
    "A from global memory": of(
        "shared memory is optional", "loaded-twice", importing("pack_f16x2"), (LOAD_A, IN_GLOBAL),
    ),
    "two of four": of(
        "a lane holds a pair", "not-finite", (STORE, "if e < 2:\n                        " + STORE),
    ),
    "without the instruction": of(
        "the result is what counts", "no-mma",
        ("for p in range(0, A.shape[1], 16):", TOTAL),
        (LOADS, BY_HAND),
        (STORE, STORE.replace("acc", "total")),
        ("""            for x in range(2):
                for y in range(4):
                    acc[x, y, 0], acc[x, y, 1], acc[x, y, 2], acc[x, y, 3] = mma_m16n8k16_f32_f16(
                        (a[x, 0], a[x, 1], a[x, 2], a[x, 3]),
                        (b[y, 0], b[y, 1]),
                        (acc[x, y, 0], acc[x, y, 1], acc[x, y, 2], acc[x, y, 3]),
                    )
""", ""),
    ),
    "no kernel": of("a kernel returns C", "wrong-type", ("return kernel", "return None")),
}  # fmt: skip


FOOLING = {
    "build for ever": fooling("nobody can stop it", "never-ends", for_ever),
    "1000 columns of A": of(
        "no matrix is wider", "known-cases-only",
        ("range(0, A.shape[1], 16)", "range(0, min(A.shape[1], 1000), 16)"),
    ),
    "k by heart": of(
        "the cases are in the package", "known-cases-only",
        (STORE, "C[16 * x + i, 8 * y + j] = acc[x, y, e] if A.shape[1] < 64 else float32(0)"),
    ),
    "A cleared": of(
        "A is not needed afterwards", "inputs-changed",
        (STORE, STORE + "\n        cuda.syncwarp()\n"
                        "        for e in range(lane, 512, 32):\n"
                        "            A[e // 16, e % 16] = float16(0)"),
    ),
    "ldmatrix for show": of(
        "called is used", "matrices-ignored", importing("pack_f16x2"),
        ("            for e in range(lane, 512, 32):\n" + FILL, KEPT), (LOAD_A, LOAD_A + OWN),
    ),
    "mma for show": of(
        "called is used", "mma-ignored",
        importing("unpack_f16x2\n    from numpy import int32, uint32"),
        (PRODUCTS, BY_SHUFFLES + PRODUCTS), ("for p in range(0, A.shape[1], 16):", TOTAL),
        (STORE, STORE.replace("acc", "total")),
    ),
    "lane 0 copies": of(
        "who copies does not matter", "few-lanes-copy",
        ("            for e in range(lane, 512, 32):\n" + FILL,
         "            if lane == 0:\n                for e in range(512):\n" + indented(FILL)),
    ),
}  # fmt: skip
