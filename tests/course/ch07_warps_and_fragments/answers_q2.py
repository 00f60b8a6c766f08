"""Answers to exercise 07.2."""

from numpy import float16, float32, uint32

from gemmlab import cuda
from gemmlab.course.ch07_warps_and_fragments.q2_warp_gemm import build_warp_gemm
from gemmlab.instructions import ldmatrix_x2_trans, ldmatrix_x4, mma_m16n8k16_f32_f16, pack_f16x2
from tests.course.answers import wrong


def by_hand():
    def kernel(A, B, C):
        lane = cuda.threadIdx.x
        g, t = lane // 4, lane % 4
        c = (float32(0), float32(0), float32(0), float32(0))
        for p in range(0, A.shape[1], 16):
            j = p + 2 * t
            a = (
                pack_f16x2(A[g, j], A[g, j + 1]),
                pack_f16x2(A[g + 8, j], A[g + 8, j + 1]),
                pack_f16x2(A[g, j + 8], A[g, j + 9]),
                pack_f16x2(A[g + 8, j + 8], A[g + 8, j + 9]),
            )
            b = (pack_f16x2(B[j, g], B[j + 1, g]), pack_f16x2(B[j + 8, g], B[j + 9, g]))
            c = mma_m16n8k16_f32_f16(a, b, c)
        C[g, 2 * t], C[g, 2 * t + 1] = c[0], c[1]
        C[g + 8, 2 * t], C[g + 8, 2 * t + 1] = c[2], c[3]

    return kernel


def through_shared():
    def kernel(A, B, C):
        As = cuda.shared.array((16, 16), float16, alignment=16)
        Bs = cuda.shared.array((16, 8), float16, alignment=16)
        lane = cuda.threadIdx.x
        c = (float32(0), float32(0), float32(0), float32(0))
        for p in range(0, A.shape[1], 16):
            for e in range(lane, 256, 32):
                As[e // 16, e % 16] = A[e // 16, p + e % 16]
            for e in range(lane, 128, 32):
                Bs[e // 8, e % 8] = B[p + e // 8, e % 8]
            cuda.syncwarp()
            a = ldmatrix_x4(As, lane % 16, 8 * (lane // 16))
            b = ldmatrix_x2_trans(Bs, lane % 16, 0)
            c = mma_m16n8k16_f32_f16(a, b, c)
            cuda.syncwarp()
        for x in range(4):
            C[lane // 4 + 8 * (x // 2), 2 * (lane % 4) + x % 2] = c[x]

    return kernel


def halves():
    def kernel(A, B, C):
        lane = cuda.threadIdx.x
        g, t = lane >> 2, lane & 3
        c0 = c1 = c2 = c3 = float32(0)
        p = A.shape[1] - 16
        while p >= 0:
            a = cuda.local.array(4, uint32)
            for half in range(2):
                for down in range(2):
                    col = p + 8 * half + 2 * t
                    low, high = A[g + 8 * down, col], A[g + 8 * down, col + 1]
                    a[2 * half + down] = pack_f16x2(low, high)
            row = p + 2 * t
            b0 = pack_f16x2(B[row, g], B[row + 1, g])
            b1 = pack_f16x2(B[row + 8, g], B[row + 9, g])
            c0, c1, c2, c3 = mma_m16n8k16_f32_f16(
                (a[0], a[1], a[2], a[3]), (b0, b1), (c0, c1, c2, c3)
            )
            p -= 16
        C[g, 2 * t] = c0
        C[g, 2 * t + 1] = c1
        C[g + 8, 2 * t] = c2
        C[g + 8, 2 * t + 1] = c3

    return kernel


RIGHT = {
    "from the last step": (halves,),
    "formulas of the manual": (by_hand,),
    "matrix loads": (through_shared,),
}

PAIR = "pack_f16x2(B[p + i, j], B[p + i + 1, j])"
STORE = "C[i, j] = c[x]"
BY_HAND = """acc = float32(0)
            for p in range(A.shape[1]):
                acc += float32(A[i, p]) * float32(B[p, j])
            C[i, j] = acc"""


def of(misconception, diagnosis, *edits):
    return wrong(build_warp_gemm, misconception, diagnosis, *edits)


WRONG = {
    "pairs along a row": of(
        "B's pairs lie as A's do", "outside", (PAIR, "pack_f16x2(B[p + i, j], B[p + i, j + 1])")
    ),
    "the map of A": of("A, B and C have one map", "outside", ("element_b", "element_a")),
    "C transposed": of("C is stored by columns", "outside", (STORE, "C[j, i] = c[x]")),
    "high half first": of(
        "the first element is the high half", "halves-swapped",
        (PAIR, "pack_f16x2(B[p + i + 1, j], B[p + i, j])"),
    ),
    "p forgotten": of(
        "a fragment is loaded once", "first-tile-only", (PAIR, "pack_f16x2(B[i, j], B[i + 1, j])")
    ),
    "two of four": of(
        "a lane holds a pair", "not-written", ("for x in range(4)", "for x in range(2)")
    ),
    "one lane stores": of(
        "lane 0 has the result", "not-written", (STORE, f"if lane == 0:\n                {STORE}")
    ),
    "rows exchanged": of("the order is free", "rows-mixed", (STORE, "C[(i + 8) % 16, j] = c[x]")),
    "a lane a row": of("a lane owns a row", "two-writers", (STORE, "C[lane % 16, x] = c[x]")),
    "one register": of(
        "both registers are the same", "registers-alike",
        ("element_b(lane, 2 * w)", "element_b(lane, 0)"),
    ),
    "words": of(
        "a register is a word", "words-counted", ("element_b(lane, 2 * w)", "element_b(lane, w)"),
    ),
    "the other way round": of("the order is free", "registers-exchanged", ("b[w]", "b[1 - w]")),
    "an element twice": of(
        "an element fills a register", "pair-of-one", (PAIR, "pack_f16x2(B[p + i, j], B[p + i, j])")
    ),
    "half of B": of(
        "one register is enough", "not-loaded", ("for w in range(2)", "for w in range(1)")
    ),
    "an element a register": of("an element fills a register", "not-packed", (PAIR, "B[p + i, j]")),
    "four registers": of(
        "a lane has four registers of B", "not-packed", ("for w in range(2)", "for w in range(4)"),
        ("element_b(lane, 2 * w)", "element_b(lane, w)"), (PAIR, "B[p + i, j]"),
    ),
    "half a warp": of(
        "16 rows need 16 lanes", "lanes-missing",
        ("c = mma", "if lane < 16:\n                c = mma"),
    ),
    "added to C": of("C starts at zero", "adds-to-c", (STORE, "C[i, j] += c[x]")),
    "c anew": of(
        "mma returns the sum of all steps", "last-step-only",
        ("(b[0], b[1]), c)", "(b[0], b[1]), (float32(0), float32(0), float32(0), float32(0)))"),
    ),
    "C by the map of B": of("A, B and C have one map", "places-mixed", ("element_c", "element_b")),
    "columns exchanged": of("the order is free", "places-mixed", (STORE, "C[i, j ^ 1] = c[x]")),
    "rows off by one": of(
        "rows are counted from 1", "wrong-values",
        (PAIR, "pack_f16x2(B[p + (i + 1) % 16, j], B[p + (i + 2) % 16, j])"),
    ),
    "without the instruction": of(
        "the result is what counts", "no-mma", (STORE, BY_HAND),
        ("mma_m16n8k16_f32_f16((a[0], a[1], a[2], a[3]), (b[0], b[1]), c)", "c"),
    ),
    "no kernel": of("a kernel returns C", "wrong-type", ("return kernel", "return None")),
    "an unknown name": of("rows are called row", "raises", (STORE, "C[row, j] = c[x]")),
}  # fmt: skip

MMA = "c = mma_m16n8k16_f32_f16((a[0], a[1], a[2], a[3]), (b[0], b[1]), c)"
STORES = """for x in range(4):
            i, j = element_c(lane, x)
            C[i, j] = c[x]"""


def ignored(*rows):
    """The product by hand, beside an `mma` whose result is not stored."""
    return of("the counter is what counts", "mma-ignored", *rows)


def backwards(text):
    return text.replace("range(A.shape[1])", "range(A.shape[1] - 1, -1, -1)")


FOOLING = {
    "a sum of 128": wrong(
        build_warp_gemm,
        "no sum is longer",
        "known-cases-only",
        ("range(0, A.shape[1], 16)", "range(0, min(A.shape[1], 128), 16)"),
    ),
    "stored in each step": wrong(
        build_warp_gemm,
        "C is where sums are kept",
        "stored-twice",
        ("\n        for x in range(4):", "\n            for x in range(4):"),
        ("            i, j = element_c", "                i, j = element_c"),
        ("            C[i, j]", "                C[i, j]"),
    ),
    "sums of float16": wrong(
        halves,
        "half precision is enough for sums",
        "low-precision",
        ("p -= 16", "p -= 16\n            c0, c1 = float32(float16(c0)), float32(float16(c1))"),
    ),
    "mma for show": ignored((STORE, BY_HAND)),
    "mma for show, from the end": ignored((STORE, backwards(BY_HAND))),
    "mma for show, in float64": ignored(
        (STORE, BY_HAND.replace("float32", "float64")),
        ("def build_warp_gemm", "from numpy import float64\n\n\ndef build_warp_gemm"),
    ),
    "mma for show, a lane a row": ignored(
        (
            STORES,
            """if lane < 16:
            for j in range(8):
                acc = float32(0)
                for p in range(A.shape[1]):
                    acc += float32(A[lane, p]) * float32(B[p, j])
                C[lane, j] = acc""",
        ),
    ),
    "B cleared": of(
        "B is not needed afterwards",
        "inputs-changed",
        (
            STORES,
            f"""{STORES}
        cuda.syncwarp()
        for e in range(lane, 128, 32):
            B[e // 8, e % 8] = float16(0)""",
        ),
        ("def build_warp_gemm", "from numpy import float16\n\n\ndef build_warp_gemm"),
    ),
    "k by heart": of(
        "the cases are in the package",
        "known-cases-only",
        (STORE, f"{STORE} if A.shape[1] < 64 else float32(0)"),
    ),
}
