"""Answers to exercise 12.1."""

from numpy import float32, uint32

from gemmlab import cuda
from gemmlab.course.ch12_tcec.q1_corrected_product import (
    build_corrected,
    element_a,
    element_b,
)
from gemmlab.instructions import mma_m16n8k16_f32_f16
from gemmlab.kernels.tcec.shared.splitting import UNSCALE, split_two
from tests.course.answers import edited, wrong

CROSS_A = "cross = mma_m16n8k16_f32_f16(a_low, b_high, cross)"
CROSS_B = "cross = mma_m16n8k16_f32_f16(a_high, b_low, cross)"
PART = "part = mma_m16n8k16_f32_f16(a_high, b_high, zero)"
ADD = """            for x in range(4):
                main[x] += part[x]
"""
STORE = "C[i, j] = main[x] + cross[x] / float32(2048)"
START = "        cross = zero\n"


def of(misconception, diagnosis, *edits):
    return wrong(build_corrected, misconception, diagnosis, *edits)


def tuples_everywhere():
    """The main sum is a tuple, the corrections come in the other order, after the main product."""

    def kernel(A, B, C):
        lane = cuda.threadIdx.x
        ah, al = cuda.local.array(4, uint32), cuda.local.array(4, uint32)
        bh, bl = cuda.local.array(2, uint32), cuda.local.array(2, uint32)
        zero = (float32(0), float32(0), float32(0), float32(0))
        m0 = m1 = m2 = m3 = float32(0)
        cross = zero
        p = 0
        while p < A.shape[1]:
            for r in range(4):
                i, q = element_a(lane, 2 * r)
                ah[r], al[r] = split_two(A[i, p + q], A[i, p + q + 1])
            for r in range(2):
                q, j = element_b(lane, 2 * r)
                bh[r], bl[r] = split_two(B[p + q, j], B[p + q + 1, j])
            high = (ah[0], ah[1], ah[2], ah[3])
            d0, d1, d2, d3 = mma_m16n8k16_f32_f16(high, (bh[0], bh[1]), zero)
            m0, m1, m2, m3 = m0 + d0, m1 + d1, m2 + d2, m3 + d3
            cross = mma_m16n8k16_f32_f16(high, (bl[0], bl[1]), cross)
            cross = mma_m16n8k16_f32_f16((al[0], al[1], al[2], al[3]), (bh[0], bh[1]), cross)
            p += 16
        i, j = lane // 4, 2 * (lane % 4)
        C[i, j] = m0 + cross[0] * UNSCALE
        C[i, j + 1] = m1 + cross[1] * UNSCALE
        C[i + 8, j] = m2 + cross[2] * UNSCALE
        C[i + 8, j + 1] = m3 + cross[3] * UNSCALE

    return kernel


RIGHT = {
    "the corrections last": (tuples_everywhere,),
    # The corrections have a sum outside, too, and C takes both at the end.
    "all sums outside": (edited(
        build_corrected,
        ("i, j = element_c(lane, x)", "C[i, j] = main[x] + cross[x] / float32(2048)", """
            i, j = element_c(lane, x)
            C[i, j] = main[x] + small[x] / float32(2048)
        """),
        ("b_high, b_low = (bh[0], bh[1]), (bl[0], bl[1])", "for x in range(4):", """
            left = mma_m16n8k16_f32_f16(a_low, (bh[0], bh[1]), zero)
            right = mma_m16n8k16_f32_f16(a_high, (bl[0], bl[1]), zero)
            part = mma_m16n8k16_f32_f16(a_high, (bh[0], bh[1]), zero)
            for x in range(4):
                small[x] += left[x] + right[x]
        """),
        ("main = cuda.local.array(4, float32)", "cross = zero", """
            main, small = cuda.local.array(4, float32), cuda.local.array(4, float32)
            for x in range(4):
                main[x] = 0
                small[x] = 0
        """),
    ),),
}  # fmt: skip

WRONG = {
    "high parts alone": of(
        "the high part is the number", "not-corrected", (STORE, "C[i, j] = main[x]")
    ),
    "through shared memory, without a barrier": of(
        "a warp is in step", "no-barrier",
        ("        lane = cuda.threadIdx.x\n",
         "        lane = cuda.threadIdx.x\n        As = cuda.shared.array((16, 16), float32)\n"),
        ("            for r in range(4):\n",
         "            for e in range(lane, 256, 32):\n"
         "                As[e // 16, e % 16] = A[e // 16, p + e % 16]\n"
         "            for r in range(4):\n"),
        ("A[i, p + q], A[i, p + q + 1]", "As[i, q], As[i, q + 1]"),
    ),
    "A alone": of("one correction is enough", "one-correction", (CROSS_B, "pass")),
    "B alone": of("one correction is enough", "one-correction", (CROSS_A, "pass")),
    "no division": of(
        "low parts are what is missing", "scale-forgotten", (STORE, "C[i, j] = main[x] + cross[x]")
    ),
    "a product": of(
        "low parts have to be made larger", "scale-forgotten", (STORE, STORE.replace("/", "*"))
    ),
    "all inside": of(
        "that is what the accumulator is for", "summed-inside",
        (START, "        cross = zero\n        part = zero\n"),
        (PART, "part = mma_m16n8k16_f32_f16(a_high, b_high, part)"), (ADD, ""),
        (STORE, "C[i, j] = part[x] + cross[x] / float32(2048)"),
    ),
    "replaced": of(
        "part is the sum", "last-step-only", ("main[x] += part[x]", "main[x] = part[x]")
    ),
    "nothing returned": of("the kernel is there", "wrong-type", ("    return kernel", "    pass")),
    "corrections from zero": of(
        "all products begin with zero", "corrections-start-again",
        (CROSS_A, "cross = mma_m16n8k16_f32_f16(a_low, b_high, zero)"),
    ),
    "added twice": of(
        "mma adds, and += too", "added-twice",
        (PART, "part = mma_m16n8k16_f32_f16(a_high, b_high, "
               "(main[0], main[1], main[2], main[3]))"),
    ),
    "main from nothing": of(
        "memory is zero", "unset",
        ("        for x in range(4):\n            main[x] = 0\n", ""),
    ),
    "low by low": of(
        "(a + b)(c + d) has four terms", "too-many-products",
        (CROSS_A, CROSS_A + "\n            least = mma_m16n8k16_f32_f16(a_low, b_low, zero)"),
        (ADD, ADD + "            main[0] += float32(0) * least[0]\n"),
    ),
    "1024 at most": of(
        "k is never so long", "known-cases-only",
        ("range(0, A.shape[1], 16)", "range(0, min(A.shape[1], 1024), 16)"),
    ),
    "no corrections beyond 1024": of(
        "corrections are small", "known-cases-only",
        (CROSS_A, "if p < 1024:\n                " + CROSS_A),
    ),
    "a row for each lane": of(
        "a lane has a row", "two-writers",
        ("i, j = element_c(lane, x)", "i, j = lane // 4, x"),
    ),
    "beyond A": of(
        "a fragment begins at its lane", "outside", ("A[i, p + q], A[i", "A[i + lane, p + q], A[i")
    ),
    "A is scratch": of(
        "what was split is done with", "inputs-changed",
        (PART, PART + "\n            A[lane % 16, p] = 0"),
    ),
    "half of the factor": of(
        "a low part is 1024 times as large", "wrong-values", (STORE, STORE.replace("2048", "1024"))
    ),
    "some lanes multiply": of(
        "a lane has its own mma", "lanes-missing", (PART, "if lane < 16:\n                " + PART)
    ),
    "half of C": of(
        "two elements a lane", "not-written",
        ("        for x in range(4):\n            i, j = element_c",
         "        for x in range(2):\n            i, j = element_c"),
    ),
}  # fmt: skip


FOOLING = {
    "in FP32, for itself": of(
        "only the result is looked at", "mma-ignored",
        (CROSS_A, ""), (CROSS_B, ""), (PART, ""), (ADD, "            " + """for x in range(4):
                i, j = element_c(lane, x)
                few = float32(0)
                for q in range(16):
                    few += A[i, p + q] * B[p + q, j]
                main[x] += few
"""), (STORE, "C[i, j] = main[x]"),
    ),
    "mma for show": of(
        "called is used", "mma-ignored",
        (ADD, """            for x in range(4):
                i, j = element_c(lane, x)
                few = float32(0)
                for q in range(16):
                    few += A[i, p + q] * B[p + q, j]
                main[x] += few
"""), (STORE, "C[i, j] = main[x] + float32(0) * part[x]"),
    ),
    "k by heart": of(
        "the cases are in the package", "known-cases-only",
        (STORE, "C[i, j] = main[x] + (cross[x] / float32(2048) if A.shape[1] < 130 else "
                "float32(0))"),
    ),
    "A cleared": of(
        "A is not needed afterwards", "inputs-changed",
        (STORE, STORE + "\n        cuda.syncwarp()\n        A[lane % 16, lane // 16] = 0"),
    ),
    "for ever": of(
        "nobody can stop it", "never-ends",
        (PART, "while lane >= 0:\n                lane = lane + 0\n            " + PART),
    ),
}  # fmt: skip
