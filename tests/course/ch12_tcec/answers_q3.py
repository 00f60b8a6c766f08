"""Answers to exercise 12.3."""

from numpy import float32, uint32

from gemmlab import cuda
from gemmlab.course.ch12_tcec.q3_quads import ZERO, build_quads, element_c, three_products
from gemmlab.instructions import load_v4
from gemmlab.kernels.tcec.shared.splitting import split_two
from tests.course.answers import wrong

LOADS = "a, b = load_v4(As, g, 4 * t), load_v4(Bs, g, 4 * t)"
SECOND = "a = load_v4(As, g + 8, 4 * t)"
A0, A2 = "ah[0], al[0] = split_two(a[0], a[1])", "ah[2], al[2] = split_two(a[2], a[3])"
A1, A3 = "ah[1], al[1] = split_two(a[0], a[1])", "ah[3], al[3] = split_two(a[2], a[3])"
B0, B1 = "bh[0], bl[0] = split_two(b[0], b[1])", "bh[1], bl[1] = split_two(b[2], b[3])"
PRODUCTS = "cross, part = three_products(ah, al, bh, bl, cross)"
LANE = "        lane = cuda"
STORE = "C[i, j] = main[x] + cross[x] / float32(2048)"


def of(misconception, diagnosis, *edits):
    return wrong(build_quads, misconception, diagnosis, *edits)


def another_order():
    """Lanes share a row the other way round, and halves of a quad change places."""

    def kernel(A, B, C):
        As = cuda.shared.array((16, 16), float32, alignment=16)
        Bs = cuda.shared.array((8, 16), float32, alignment=16)
        lane = cuda.threadIdx.x
        ah, al = cuda.local.array(4, uint32), cuda.local.array(4, uint32)
        bh, bl = cuda.local.array(2, uint32), cuda.local.array(2, uint32)
        main = cuda.local.array(4, float32)
        for x in range(4):
            main[x] = 0
        cross = ZERO
        g, col = lane // 4, 4 * (3 - lane % 4)
        for p in range(0, A.shape[1], 16):
            for e in range(lane, 256, 32):
                As[e // 16, e % 16] = A[e // 16, p + e % 16]
            for e in range(lane, 128, 32):
                Bs[e // 16, e % 16] = B[e // 16, p + e % 16]
            cuda.syncwarp()
            for r in range(2):
                a0, a1, a2, a3 = load_v4(As, g + 8 * r, col)
                ah[r], al[r] = split_two(a2, a3)
                ah[r + 2], al[r + 2] = split_two(a0, a1)
            b0, b1, b2, b3 = load_v4(Bs, g, col)
            bh[0], bl[0] = split_two(b2, b3)
            bh[1], bl[1] = split_two(b0, b1)
            cross, part = three_products(ah, al, bh, bl, cross)
            for x in range(4):
                main[x] += part[x]
            cuda.syncwarp()
        for x in range(4):
            i, j = element_c(lane, x)
            C[i, j] = main[x] + cross[x] / float32(2048)

    return kernel


def one_array():
    """Both tiles lie in one array, and a lane loads its three quads at once."""

    def kernel(A, B, C):
        tile = cuda.shared.array((24, 16), float32, alignment=16)
        lane = cuda.threadIdx.x
        ah, al = cuda.local.array(4, uint32), cuda.local.array(4, uint32)
        bh, bl = cuda.local.array(2, uint32), cuda.local.array(2, uint32)
        main = cuda.local.array(4, float32)
        for x in range(4):
            main[x] = 0
        cross = ZERO
        g, t = lane >> 2, (lane & 3) << 2
        for p in range(0, A.shape[1], 16):
            for e in range(lane, 384, 32):
                i, q = e >> 4, p + (e & 15)
                tile[i, e & 15] = A[i, q] if i < 16 else B[i - 16, q]
            cuda.syncthreads()
            u, v, w = load_v4(tile, g, t), load_v4(tile, g + 8, t), load_v4(tile, g + 16, t)
            ah[0], al[0] = split_two(u[0], u[1])
            ah[1], al[1] = split_two(v[0], v[1])
            ah[2], al[2] = split_two(u[2], u[3])
            ah[3], al[3] = split_two(v[2], v[3])
            bh[0], bl[0] = split_two(w[0], w[1])
            bh[1], bl[1] = split_two(w[2], w[3])
            cross, part = three_products(ah, al, bh, bl, cross)
            for x in range(4):
                main[x] += part[x]
            cuda.syncthreads()
        for x in range(4):
            i, j = element_c(lane, x)
            C[i, j] = main[x] + cross[x] / float32(2048)

    return kernel


RIGHT = {"another order": (another_order,), "one array": (one_array,)}

BY_THE_MAP = (
    (LOADS, "b0, b1 = Bs[g, 2 * t], Bs[g, 2 * t + 1]\n"
            "            b2, b3 = Bs[g, 2 * t + 8], Bs[g, 2 * t + 9]\n"
            "            a0, a1 = As[g, 2 * t], As[g, 2 * t + 1]\n"
            "            a2, a3 = As[g, 2 * t + 8], As[g, 2 * t + 9]"),
    (SECOND, "c0, c1 = As[g + 8, 2 * t], As[g + 8, 2 * t + 1]\n"
             "            c2, c3 = As[g + 8, 2 * t + 8], As[g + 8, 2 * t + 9]"),
    (A0, "ah[0], al[0] = split_two(a0, a1)"), (A2, "ah[2], al[2] = split_two(a2, a3)"),
    (A1, "ah[1], al[1] = split_two(c0, c1)"), (A3, "ah[3], al[3] = split_two(c2, c3)"),
    (B0, "bh[0], bl[0] = split_two(b0, b1)"), (B1, "bh[1], bl[1] = split_two(b2, b3)"),
)  # fmt: skip
B_BY_THE_MAP = (
    (LOADS, "a = load_v4(As, g, 4 * t)\n"
            "            b = (Bs[g, 2 * t], Bs[g, 2 * t + 1], Bs[g, 2 * t + 8], Bs[g, 2 * t + 9])"),
)  # fmt: skip
STORED = """            for e in range(lane, 256, 32):
                parts[e] = As[e // 16, e % 16]
            cuda.syncwarp()
"""

FIRST_BARRIER = "            cuda.syncwarp()\n            # Load"

WRONG = {
    "no shared memory": of(
        "where words come from is the cache's business", "shared-memory-not-used",
        ("        As = cuda.shared.array((16, 16), float32, alignment=16)\n", ""),
        ("        Bs = cuda.shared.array((8, 16), float32, alignment=16)\n", ""),
        ("            for e in range(lane, 256, 32):\n"
         "                As[e // 16, e % 16] = A[e // 16, p + e % 16]\n", ""),
        ("            for e in range(lane, 128, 32):\n"
         "                Bs[e // 16, e % 16] = B[e // 16, p + e % 16]\n", ""),
        (LOADS, "a, b = load_v4(A, g, p + 4 * t), load_v4(B, g, p + 4 * t)"),
        (SECOND, "a = load_v4(A, g + 8, p + 4 * t)"),
    ),
    "no first barrier": of(
        "a warp is in step", "no-barrier", (FIRST_BARRIER, "            # Load")
    ),
    "by the map": of("the map says so", "too-many-wavefronts", *BY_THE_MAP),
    "B by the map": of("only A is loaded by fours", "orders-differ", *B_BY_THE_MAP),
    "A by the map": of(
        "only B is loaded by fours", "orders-differ",
        (LOADS, "b = load_v4(Bs, g, 4 * t)\n"
                "            a = (As[g, 2 * t], As[g, 2 * t + 1], As[g, 2 * t + 8], "
                "As[g, 2 * t + 9])"),
        (SECOND, "i = g + 8\n"
                 "            a = (As[i, 2 * t], As[i, 2 * t + 1], As[i, 2 * t + 8], "
                 "As[i, 2 * t + 9])"),
    ),
    "row after row": of(
        "a row's registers lie side by side", "registers-exchanged",
        (A2, "ah[1], al[1] = split_two(a[2], a[3])"), (A1, "ah[2], al[2] = split_two(a[0], a[1])"),
    ),
    "eight rows": of(
        "g counts to eight", "upper-half-twice", (SECOND, "a = load_v4(As, g, 4 * t)")
    ),
    "nothing returned": of("the kernel is there", "wrong-type", ("    return kernel", "    pass")),
    "no low parts of A": of(
        "A is exact enough", "one-correction",
        *((line, line + f"\n            al[{r}] = uint32(0)")
          for r, line in enumerate((A0, A1, A2, A3))),
    ),
    "no low parts": of(
        "high parts are the numbers", "not-corrected",
        (PRODUCTS, "for r in range(4):\n                al[r] = uint32(0)\n"
                   "            for r in range(2):\n                bl[r] = uint32(0)\n"
                   "            " + PRODUCTS),
    ),
    "1024 at most": of(
        "k is never so long", "known-cases-only",
        ("range(0, A.shape[1], 16)", "range(0, min(A.shape[1], 1024), 16)"),
    ),
    "a row for each lane": of(
        "a lane has a row", "two-writers",
        ("i, j = element_c(lane, x)", "i, j = lane // 4, x"),
    ),
    "halves of B exchanged": of(
        "registers of B have no order", "wrong-values",
        (B0, B0.replace("bh[0], bl[0]", "bh[1], bl[1]")),
        (B1, B1.replace("bh[1], bl[1]", "bh[0], bl[0]")),
    ),
    "misaligned": of("fours begin anywhere", "misaligned", (SECOND, "a = load_v4(As, g + 8, t)")),
    "beyond the row": of("a quad a lane", "outside", (SECOND, "a = load_v4(As, g + 8, 4 * t + 4)")),
}  # fmt: skip

FROM_GLOBAL = (
    "q = p + 4 * t\n            a = (A[{0}, q], A[{0}, q + 1], A[{0}, q + 2], A[{0}, q + 3])"
)

FOOLING = {
    "from global memory": of(
        "only shared loads are counted", "loaded-twice",
        (LOADS, "b = load_v4(Bs, g, 4 * t)\n            " + FROM_GLOBAL.format("g")),
        (SECOND, FROM_GLOBAL.format("g + 8")),
    ),
    "through shared memory": of(
        "only loads are counted", "parts-stored",
        (LANE, "        parts = cuda.shared.array(256, float32)\n" + LANE),
        ("            " + LOADS, STORED + "            " + LOADS),
    ),
    "products in FP32": of(
        "only the result is looked at", "mma-ignored",
        (A0, "for e in range(4):\n                words[e], words[8 + e] = a[e], b[e]\n"
             "            " + A0),
        (A1, "for e in range(4):\n                words[4 + e] = a[e]\n            " + A1),
        (LANE, "        words = cuda.local.array(12, float32)\n" + LANE),
        ("                main[x] += part[x]", """                few = float32(0)
                for q in range(16):
                    u = cuda.shfl_sync(0xFFFFFFFF, words[x // 2 * 4 + q % 4], 4 * g + q // 4)
                    v = cuda.shfl_sync(0xFFFFFFFF, words[8 + q % 4], 4 * (2 * t + x % 2) + q // 4)
                    few += u * v
                main[x] += few + float32(0) * part[x]"""),
        (STORE, "C[i, j] = main[x]"),
    ),
    "k by heart": of(
        "the cases are in the package", "known-cases-only",
        (STORE, "C[i, j] = main[x] + (cross[x] / float32(2048) if A.shape[1] < 130 else "
                "float32(0))"),
    ),
    "B cleared": of(
        "B is not needed afterwards", "inputs-changed",
        (STORE, STORE + "\n        cuda.syncwarp()\n        B[lane % 8, lane // 8] = 0"),
    ),
}  # fmt: skip
