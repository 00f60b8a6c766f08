"""Answers to exercise 08.3."""

from numpy import float16, float32

from gemmlab import cuda
from gemmlab.course.ch08_tensor_core_gemm.q3_swizzled_tile import build_swizzled_tile
from gemmlab.instructions import (
    layout,
    ldmatrix_x1,
    ldmatrix_x2,
    ldmatrix_x2_trans,
    ldmatrix_x4,
    ldmatrix_x4_trans,
    load_v8,
    mma_m16n8k16_f32_f16,
    store_v8,
)
from tests.course.answers import fooling, for_ever, wrong

element_c = layout("m16n8k16", "C").element


def turned():
    """Pieces turned by the number of the row, in a tile of two dimensions; halves of A."""

    def kernel(A, B, C):
        As = cuda.shared.array((16, 64), float16, alignment=16)
        Bs = cuda.shared.array((64, 8), float16, alignment=16)
        lane = cuda.threadIdx.x
        c = (float32(0), float32(0), float32(0), float32(0))
        for p in range(0, A.shape[1], 64):
            for e in range(lane, 64, 32):
                store_v8(Bs, e, 0, load_v8(B, p + e, 0))
            for row in range(lane // 8, 16, 4):
                piece = lane % 8
                store_v8(As, row, (piece + row) % 8 * 8, load_v8(A, row, p + 8 * piece))
            cuda.syncthreads()
            for s in range(4):
                row = lane % 16
                left = ldmatrix_x2(As, row, (2 * s + row) % 8 * 8)
                right = ldmatrix_x2(As, row, (2 * s + 1 + row) % 8 * 8)
                b = ldmatrix_x2_trans(Bs, 16 * s + row, 0)
                c = mma_m16n8k16_f32_f16((left[0], left[1], right[0], right[1]), b, c)
            cuda.syncthreads()
        for x in range(4):
            i, j = element_c(lane, x)
            C[i, j] = c[x]

    return kernel


def by_bits():
    """Addresses once for all slices, which an exclusive or leads on; B by two slices at once."""

    def kernel(A, B, C):
        As = cuda.shared.array(1024, float16, alignment=16)
        Bs = cuda.shared.array(512, float16, alignment=16)
        lane = cuda.threadIdx.x
        to = (lane >> 3) << 6 | (lane & 7) << 3
        start = (lane & 15) << 6 | ((lane >> 4) ^ (lane & 7)) << 3
        c = (float32(0), float32(0), float32(0), float32(0))
        for p in range(0, A.shape[1], 64):
            for e in range(2):
                store_v8(Bs, e * 256 + lane * 8, load_v8(B, p + e * 32 + lane, 0))
            for e in range(4):
                row = e * 4 + (lane >> 3)
                store_v8(As, (to + e * 256) ^ ((row & 7) << 3), load_v8(A, row, p + (lane & 7) * 8))
            cuda.syncwarp()
            for s in range(2):
                b = ldmatrix_x4_trans(Bs, (32 * s + lane) * 8)
                a = ldmatrix_x4(As, start ^ (4 * s) << 3)
                c = mma_m16n8k16_f32_f16(a, (b[0], b[1]), c)
                a = ldmatrix_x4(As, start ^ (4 * s + 2) << 3)
                c = mma_m16n8k16_f32_f16(a, (b[2], b[3]), c)
            cuda.syncwarp()
        for x in range(4):
            i, j = element_c(lane, x)
            C[i, j] = c[x]

    return kernel


def matrix_by_matrix():
    def kernel(A, B, C):
        As = cuda.shared.array(1024, float16, alignment=16)
        Bs = cuda.shared.array((64, 8), float16, alignment=16)
        lane = cuda.threadIdx.x
        r = lane % 8
        c = (float32(0), float32(0), float32(0), float32(0))
        for p in range(0, A.shape[1], 64):
            for e in range(lane, 64, 32):
                store_v8(Bs, e, 0, load_v8(B, p + e, 0))
            for e in range(lane, 128, 32):
                row, piece = e // 8, e % 8
                store_v8(
                    As, e // 8 * 64 + (7 - piece ^ row % 8) * 8, load_v8(A, row, p + 8 * piece)
                )
            cuda.syncwarp()
            for s in range(4):
                left, right = (7 - 2 * s ^ r) * 8, (6 - 2 * s ^ r) * 8
                a = (
                    ldmatrix_x1(As, 64 * r + left),
                    ldmatrix_x1(As, 64 * r + 512 + left),
                    ldmatrix_x1(As, 64 * r + right),
                    ldmatrix_x1(As, 64 * r + 512 + right),
                )
                b = ldmatrix_x2_trans(Bs, 16 * s + lane % 16, 0)
                c = mma_m16n8k16_f32_f16(a, b, c)
            cuda.syncwarp()
        for x in range(4):
            i, j = element_c(lane, x)
            C[i, j] = c[x]

    return kernel


RIGHT = {
    "turned by the row": (turned,),
    "addresses by bits": (by_bits,),
    "from the last to the first": (matrix_by_matrix,),
}

BARRIER = "            cuda.syncwarp()\n"
FIRST, LAST = BARRIER + "            for s", BARRIER + "        for x"
THERE = "there = row * 64 + (piece ^ row % 8) * 8"
STORE = "store_v8(As, there, load_v8(A, row, p + 8 * piece))"
FROM = "ldmatrix_x4(As, row * 64 + (piece ^ row % 8) * 8)"
PLACE = "row, piece = lane % 16, 2 * s + lane // 16"
LOAD_A = f"a = {FROM}"
LOAD_B = "b = ldmatrix_x2_trans(Bs, 16 * s + lane % 16, 0)"
MMA = "c = mma_m16n8k16_f32_f16(a, b, c)"
RESULT = "C[i, j] = c[x]"
HEAD = "def kernel(A, B, C):"
AS = "As = cuda.shared.array(1024, float16, alignment=16)"
SUMS = "c = (float32(0), float32(0), float32(0), float32(0))"
COPY = """            for e in range(lane, 64, 32):
                store_v8(Bs, e, 0, load_v8(B, p + e, 0))
            for e in range(lane, 128, 32):
                row, piece = e // 8, e % 8
                # Bring the piece that begins at A[row, p + 8 * piece] to its place in As.
                there = row * 64 + (piece ^ row % 8) * 8
                store_v8(As, there, load_v8(A, row, p + 8 * piece))
"""


def of(misconception, diagnosis, *edits):
    return wrong(build_swizzled_tile, misconception, diagnosis, *edits)


def importing(name):
    """The edit that brings an instruction into the exercise's names."""
    return HEAD, f"from gemmlab.instructions import {name}\n\n    {HEAD}"


def fragment(of_a):
    """The fragment a, element by element; `of_a` says where (i, j) of a slice is."""
    g, t = "lane // 4", "2 * (lane % 4)"
    places = (g, t), (f"{g} + 8", t), (g, f"{t} + 8"), (f"{g} + 8", f"{t} + 8")
    pairs = (f"pack_f16x2({of_a(i, j)}, {of_a(i, j + ' + 1')})" for i, j in places)
    return f"a = ({', '.join(pairs)})"


def swizzled_element(i, j):
    return f"As[({i}) * 64 + ((2 * s + ({j}) // 8) ^ ({i}) % 8) * 8 + ({j}) % 8]"


IN_SHARED = fragment(swizzled_element)
IN_GLOBAL = fragment(lambda i, j: f"A[{i}, p + 16 * s + {j}]")
TOTAL = f"""total = cuda.local.array(4, float32)
        for x in range(4):
            total[x] = float32(0)
        {SUMS}"""
BY_ELEMENTS = f"""for x in range(4):
                    i, j = element_c(lane, x)
                    for q in range(16):
                        one = {swizzled_element("i", "q")}
                        total[x] += float32(one) * float32(Bs[16 * s + q, j])"""
BY_SHUFFLES = f"""{MMA}
                for x in range(4):
                    i, j = element_c(lane, x)
                    for q in range(8):
                        held = 4 * (i % 8) + q // 2
                        low, high = (a[0], a[2]) if x < 2 else (a[1], a[3])
                        for half in range(2):
                            word = low if half == 0 else high
                            u = unpack_f16x2(uint32(cuda.shfl_sync(0xFFFFFFFF, int32(word), held)))
                            other = int32(b[half])
                            other = uint32(cuda.shfl_sync(0xFFFFFFFF, other, 4 * j + q // 2))
                            v = unpack_f16x2(other)
                            total[x] += u[q % 2] * v[q % 2]"""
# Each lane copies just the elements that its fragments of A hold, and keeps them.
KEPT = """            for e in range(lane, 64, 32):
                store_v8(Bs, e, 0, load_v8(B, p + e, 0))
            kept = cuda.local.array((4, 8), float32)
            for s in range(4):
                for e in range(8):
                    i, q = lane // 4 + 8 * (e // 2 % 2), 2 * (lane % 4) + e % 2 + 8 * (e // 4)
                    kept[s, e] = A[i, p + 16 * s + q]
                    there = i * 64 + ((2 * s + q // 8) ^ i % 8) * 8 + q % 8
                    As[there] = float16(kept[s, e])
"""
OWN = (
    "a = (pack_f16x2(kept[s, 0], kept[s, 1]), pack_f16x2(kept[s, 2], kept[s, 3]), "
    "pack_f16x2(kept[s, 4], kept[s, 5]), pack_f16x2(kept[s, 6], kept[s, 7]))"
)

WRONG = {
    "sums in float16": of(
        "C is short, too", "low-precision",
        (MMA, f"{MMA}\n                c = (float32(float16(c[0])), float32(float16(c[1])), "
              "float32(float16(c[2])), float32(float16(c[3])))"),
    ),
    "as they are": of(
        "ldmatrix knows", "bank-conflicts",
        (THERE, "there = row * 64 + piece * 8"), (FROM, "ldmatrix_x4(As, row * 64 + piece * 8)"),
    ),
    "four rows": of(
        "four banks, four rows", "bank-conflicts",
        (THERE, THERE.replace("% 8", "% 4")), (FROM, FROM.replace("% 8", "% 4")),
    ),
    "stored alone": of(
        "the load finds it", "one-side-only", (FROM, "ldmatrix_x4(As, row * 64 + piece * 8)")
    ),
    "loaded alone": of(
        "only loads conflict", "one-side-only", (THERE, "there = row * 64 + piece * 8")
    ),
    "turned, stored alone": of(
        "the load finds it", "one-side-only", (THERE, "there = row * 64 + (piece + row) % 8 * 8"),
        (FROM, "ldmatrix_x4(As, row * 64 + piece * 8)"),
    ),
    "padded rows": of(
        "padding is a swizzle", "padded", (AS, AS.replace("1024", "1152")),
        (THERE, "there = row * 72 + piece * 8"), (FROM, "ldmatrix_x4(As, row * 72 + piece * 8)"),
    ),
    "padded rows, no room": of(
        "padding is a swizzle", "outside",
        (THERE, "there = row * 72 + piece * 8"), (FROM, "ldmatrix_x4(As, row * 72 + piece * 8)"),
    ),
    "all of the row's bits": of(
        "the row's number is its last digit", "outside",
        (THERE, THERE.replace("row % 8", "row * 8")), (FROM, FROM.replace("row % 8", "row * 8")),
    ),
    "places, not elements": of(
        "a place is an element", "misaligned", (THERE, "there = row * 64 + (piece ^ row % 8)"),
    ),
    "or": of("| is ^", "two-writers", (THERE, THERE.replace("^", "|"))),
    "the lane's own element": of(
        "a lane names what it gets", "misaligned",
        (FROM, "ldmatrix_x4(As, lane // 4 * 64 + 2 * (lane % 4))"),
    ),
    "slice of A": of("s stands in b", "one-slice", (PLACE, PLACE.replace("2 * s + ", ""))),
    "slice of B": of("s stands in a", "one-slice", (LOAD_B, LOAD_B.replace("16 * s + ", ""))),
    "halves forgotten": of("16 rows are all", "left-half-twice", (PLACE, PLACE[:-13])),
    "B as A": of(
        "B is loaded as A is", "not-transposed", importing("ldmatrix_x2"),
        (LOAD_B, LOAD_B.replace("_trans", "")),
    ),
    "c anew": of(
        "mma returns the sum of all steps", "last-tile-only",
        (f"{SUMS}\n        for p in range(0, A.shape[1], 64):",
         f"for p in range(0, A.shape[1], 64):\n            {SUMS}"),
    ),
    "first barrier": of("a warp needs none", "no-barrier", (FIRST, "            for s")),
    "second barrier": of("one is enough", "no-barrier", (LAST, "        for x")),
    "half a tile": of(
        "16 pieces are a tile", "unused", ("range(lane, 128, 32)", "range(lane, 64, 32)")
    ),
    "two of four": of(
        "a lane holds a pair", "not-finite", ("for x in range(4)", "for x in range(2)")
    ),
    "A by elements": of(
        "the values are what counts", "elements-loaded", importing("pack_f16x2"),
        (LOAD_A, IN_SHARED),
    ),
    "A from global memory": of(
        "shared memory is optional", "loaded-twice", importing("pack_f16x2"), (LOAD_A, IN_GLOBAL)
    ),
    "by columns of pieces": of(
        "only loads conflict", "stores-meet",
        (THERE, "there = (piece * 16 + row) * 8"),
        (FROM, "ldmatrix_x4(As, (piece * 16 + row) * 8)"),
    ),
    "sums beside the mma": of(
        "mma multiplies, + adds", "added-apart",
        (MMA, "d = mma_m16n8k16_f32_f16(a, b, (float32(0), float32(0), float32(0), float32(0)))\n"
              "                c = (c[0] + d[0], c[1] + d[1], c[2] + d[2], c[3] + d[3])"),
    ),
    "half of the warp": of(
        "b is half a warp's", "lanes-missing",
        (LOAD_B, "if lane < 16:\n                    " + LOAD_B),
    ),
    "stored twice": of(
        "a store is free", "stored-twice", (RESULT, f"{RESULT}\n            {RESULT}")
    ),
    "twice": of(
        "more products do no harm", "multiplied-twice",
        (MMA, f"d = {MMA[4:]}\n                {MMA}"),
    ),
    "whole numbers": of(
        "c is a whole number", "whole-numbers-only", (RESULT, "C[i, j] = int(c[x])")
    ),
    "one by one": of(
        "a store is a store", "stored-by-elements",
        (STORE, "for q in range(8):\n"
                "                    As[there + q] = A[row, p + 8 * piece + q]"),
    ),
    "without the instruction": of(
        "the result is what counts", "no-mma",
        (MMA, BY_ELEMENTS), (SUMS, TOTAL), (RESULT, "C[i, j] = total[x]"),
    ),
    "no kernel": of("a kernel returns C", "wrong-type", ("return kernel", "return None")),
}  # fmt: skip


FOOLING = {
    "build for ever": fooling("nobody can stop it", "never-ends", for_ever),
    "4096 columns of A": of(
        "no matrix is wider", "known-cases-only",
        ("range(0, A.shape[1], 64)", "range(0, min(A.shape[1], 4096), 64)"),
    ),
    "k by heart": of(
        "the cases are in the package", "known-cases-only",
        (RESULT, "C[i, j] = c[x] if A.shape[1] < 256 else float32(0)"),
    ),
    "B cleared": of(
        "B is not needed afterwards", "inputs-changed",
        (RESULT, RESULT + "\n        cuda.syncwarp()\n"
                          "        for e in range(lane, 128, 32):\n"
                          "            B[e // 8, e % 8] = float16(0)"),
    ),
    "ldmatrix for show": of(
        "called is used", "stored-by-elements", importing("pack_f16x2"),
        (COPY, KEPT), (LOAD_A, f"{LOAD_A}\n                {OWN}"),
    ),
    "mma for show": of(
        "called is used", "mma-ignored",
        importing("unpack_f16x2\n    from numpy import int32, uint32"),
        (MMA, BY_SHUFFLES), (SUMS, TOTAL), (RESULT, "C[i, j] = total[x]"),
    ),
    "b by hand": of(
        "ldmatrix is for A", "matrices-ignored", importing("pack_f16x2"),
        ("                store_v8(Bs, e, 0, load_v8(B, p + e, 0))\n",
         "                store_v8(Bs, e, 0, load_v8(B, p + e, 0))\n"
         "            # Column lane // 4 of B, from the lanes that have loaded its rows.\n"),
        ("            for e in range(lane, 64, 32):\n",
         "            upper, lower = load_v8(B, p + lane, 0), load_v8(B, p + 32 + lane, 0)\n"
         "            store_v8(Bs, lane, 0, upper)\n"
         "            store_v8(Bs, 32 + lane, 0, lower)\n"
         "            for e in range(64, 64):\n"),
        (LOAD_B, LOAD_B + """
                held = cuda.local.array(4, float32)
                for q in range(8):
                    for x in range(4):
                        i = 16 * s + 2 * (lane % 4) + x % 2 + 8 * (x // 2)
                        high = cuda.shfl_sync(0xFFFFFFFF, float32(upper[q]), i % 32)
                        low = cuda.shfl_sync(0xFFFFFFFF, float32(lower[q]), i % 32)
                        if q == lane // 4:
                            held[x] = high if i < 32 else low
                b = (pack_f16x2(held[0], held[1]), pack_f16x2(held[2], held[3]))"""),
    ),
    "lane 0 copies": of(
        "who copies does not matter", "few-lanes-copy",
        (COPY, "            if lane == 0:\n" + "".join(
            "    " + line.replace("range(lane, ", "range(0, ").replace(", 32)", ")") + "\n"
            for line in COPY.splitlines())),
    ),
}  # fmt: skip
