"""Exercise 12.1: a warp's product with the accuracy of FP32, by three products of float16."""

from typing import Any

from numpy import float32, uint32

from gemmlab.course.ch12_tcec import corrected
from gemmlab.course.ch12_tcec.corrected import Corrected
from gemmlab.course.judging import Diagnosis, Finding, Task
from gemmlab.instructions import layout, mma_m16n8k16_f32_f16
from gemmlab.kernels.tcec.shared.splitting import split_two
from gemmlab.simt import cuda

element_a = layout("m16n8k16", "A").element
element_b = layout("m16n8k16", "B").element
element_c = layout("m16n8k16", "C").element


def build_corrected():
    """The kernel of one warp that stores A·B in C, all of them float32."""

    def kernel(A, B, C):
        lane = cuda.threadIdx.x
        ah, al = cuda.local.array(4, uint32), cuda.local.array(4, uint32)
        bh, bl = cuda.local.array(2, uint32), cuda.local.array(2, uint32)
        zero = (float32(0), float32(0), float32(0), float32(0))
        main = cuda.local.array(4, float32)
        for x in range(4):
            main[x] = 0
        cross = zero
        for p in range(0, A.shape[1], 16):
            for r in range(4):
                i, q = element_a(lane, 2 * r)
                ah[r], al[r] = split_two(A[i, p + q], A[i, p + q + 1])
            for r in range(2):
                q, j = element_b(lane, 2 * r)
                bh[r], bl[r] = split_two(B[p + q, j], B[p + q + 1, j])
            a_high, a_low = (ah[0], ah[1], ah[2], ah[3]), (al[0], al[1], al[2], al[3])
            b_high, b_low = (bh[0], bh[1]), (bl[0], bl[1])
            # Add both corrections to `cross`, inside the Tensor Core; add the main product to
            # `main`, outside of it.
            # [answer]
            cross = mma_m16n8k16_f32_f16(a_low, b_high, cross)
            cross = mma_m16n8k16_f32_f16(a_high, b_low, cross)
            part = mma_m16n8k16_f32_f16(a_high, b_high, zero)
            for x in range(4):
                main[x] += part[x]
            # [end]
        for x in range(4):
            i, j = element_c(lane, x)
            # The low parts are 2048 times what they stand for.
            # [answer] C[i, j] = ...
            C[i, j] = main[x] + cross[x] / float32(2048)
            # [end]

    return kernel


def judge(answer: Any) -> Finding:
    """The smallest case in which the kernel is wrong: hazards, then values, then products."""
    return corrected.judge(answer, Corrected())


DIAGNOSES = {
    "no-barrier": Diagnosis(
        "Lanes load what others have not finished writing, or overwrite what others still "
        "load: a syncwarp is missing.",
        "Of the two threads that are named, which one writes, and what tells the other?",
        "```python\ncuda.syncwarp()  # copied\n...\ncuda.syncwarp()  # loaded\n```",
    ),
    "not-corrected": Diagnosis(
        "C is the product of the high parts alone: rounding the operands is what makes it wrong.",
        "Which products have the low parts in them, and where do they get to C?",
        "```python\nC[i, j] = main[x] + cross[x] / ...\n```",
    ),
    "one-correction": Diagnosis(
        "One of the two corrections is missing: both operands were rounded.",
        "A·B changes if A is corrected, and if B is. How many products is that?",
        "```python\ncross = mma_...(a_low, b_high, cross)\ncross = mma_...(..., ..., cross)\n```",
    ),
    "scale-forgotten": Diagnosis(
        "The corrections count 2048 times as much as they should, or more: they are not divided.",
        "split_two multiplies low parts by 2048. Who divides?",
        "```python\nmain[x] + cross[x] / ...\n```",
    ),
    "summed-inside": Diagnosis(
        "The main products are summed inside the Tensor Core, which rounds toward zero in every "
        "step: the sums of positive numbers come out too small.",
        "With which c does the mma of the main product begin, in the second step?",
        "```python\npart = mma_...(a_high, b_high, zero)\nfor x in range(4):\n    main[x] += ...\n"
        "```",
    ),
    "last-step-only": Diagnosis(
        "The main product is that of the last step alone.",
        "What happens to `main` in the second step: is it added to, or replaced?",
        "```python\nmain[x] += part[x]\n```",
    ),
    "corrections-start-again": Diagnosis(
        "The corrections are those of the last step alone.",
        "With which c does the first correction of the second step begin?",
        "```python\ncross = mma_...(a_low, b_high, cross)\n```",
    ),
    "added-twice": Diagnosis(
        "What was summed before is added twice: the mma adds to it, and you add the result to it.",
        "What is in `part`, if its mma began with `main`?",
        "```python\npart = mma_...(a_high, b_high, zero)\n```",
    ),
    "not-written": Diagnosis(
        "Some elements of C are NaN: they are not stored, or were made from a NaN.",
        "Which elements of C does a lane store, and from what?",
        "```python\nC[i, j] = main[x] + ...\n```",
    ),
    "wrong-values": Diagnosis(
        "C is not as exact as asked, and no usual mistake gives just this C.",
        "Which of the three products is not the one that its name says, and is each of them added "
        "in its own size?",
        "Leave out one product after the other in a copy of your kernel: how does the error that "
        "the verdict states change?",
    ),
    "mma-ignored": Diagnosis(
        "The values are right, but they do not come from `mma` alone: other instructions multiply.",
        "Which products do you make by `*`?",
        "```python\npart = mma_m16n8k16_f32_f16(a_high, b_high, zero)\n```",
    ),
    "too-many-products": Diagnosis(
        "The result is right, but a step takes more than three products.",
        "How large is low·low beside high·high, and how many bits has a float32?",
        "a_low·b_high, a_high·b_low and a_high·b_high are enough.",
    ),
}

TASK = Task(
    name="12.1",
    title="Three products for one",
    section="chapter 12, Where to sum",
    asked="build_corrected() returns a kernel (A, B, C) in which one warp stores A·B in C, with "
    "the accuracy of FP32, by three mma in each step of 16.",
    prompt="""
    A is 16×k, B is k×8 and C is 16×8, all in FP32. The skeleton loads each lane's elements and
    splits them: `a_high`, `a_low`, `b_high` and `b_low` are what `mma_m16n8k16_f32_f16(a, b, c)`
    takes, and low parts are 2048 times what they stand for. Write

    - the two products that correct, summed in `cross`: they may stay inside the Tensor Core;
    - the main product, which begins with `zero` in each step and is added to `main` by the CUDA
      cores;
    - what goes to C.

    The check runs the kernel on the simulator, whose `mma` returns what Hopper returns, to the bit.
    The error may be twice that of the emulated product, and a step may take **three** `mma`.
    """,
    judge=judge,
    answers=(build_corrected,),
    diagnoses={
        "not-attempted": Diagnosis(
            "The skeleton is unchanged.",
            "Which three of the four products of two sums count?",
            "```python\ncross = mma_m16n8k16_f32_f16(a_low, b_high, cross)\n```",
        ),
        "wrong-type": Diagnosis(
            "build_corrected() is to return the kernel, a function of (A, B, C).",
            "What does the last line of build_corrected say?",
            "```python\nreturn kernel\n```",
        ),
        **DIAGNOSES,
    },
    praise="Units for float16 computed a float32 product, at three products for one.",
)
