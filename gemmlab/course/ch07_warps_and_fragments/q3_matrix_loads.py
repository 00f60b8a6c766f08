"""Exercise 07.3: the fragments of a warp's product, loaded from shared memory by `ldmatrix`."""

from typing import Any

import numpy as np
from numpy import float16, float32

from gemmlab.course.judging import Diagnosis, Finding, Task, matrices, one_warp, timed
from gemmlab.course.judging.one_warp import OneWarp, product
from gemmlab.instructions import layout, ldmatrix_x2_trans, ldmatrix_x4, mma_m16n8k16_f32_f16
from gemmlab.simt import cuda

element_c = layout("m16n8k16", "C").element
CASES = (16, 32, 48)  # k, smallest first
WAVEFRONTS = 6  # of shared loads for 16 columns of A: one for each 8×8 matrix of A and B


def build_matrix_loads():
    """The kernel of one warp that stores A·B in C, with fragments from shared memory."""

    def kernel(A, B, C):
        # Elements from the start of one row of As to the next; 16 of them are used.
        # [answer] pitch = 16
        pitch = 24
        # [end]
        As = cuda.shared.array((16, pitch), float16, alignment=16)
        Bs = cuda.shared.array((16, 8), float16, alignment=16)
        lane = cuda.threadIdx.x
        c = (float32(0), float32(0), float32(0), float32(0))
        for p in range(0, A.shape[1], 16):
            for e in range(lane, 256, 32):
                As[e // 16, e % 16] = A[e // 16, p + e % 16]
            for e in range(lane, 128, 32):
                Bs[e // 8, e % 8] = B[p + e // 8, e % 8]
            # Wait for the other lanes, load a and b, multiply, and wait again.
            # [answer]
            cuda.syncwarp()
            a = ldmatrix_x4(As, lane % 16, 8 * (lane // 16))
            b = ldmatrix_x2_trans(Bs, lane % 16, 0)
            c = mma_m16n8k16_f32_f16(a, b, c)
            cuda.syncwarp()
            # [end]
        for x in range(4):
            i, j = element_c(lane, x)
            C[i, j] = c[x]

    return kernel


def _why(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> str:
    """The mistake that gives just this result."""
    if np.isnan(c).any():
        return "not-written"
    quarters = a.reshape(2, 8, -1, 2, 8)  # below, row, step, right, column
    first = np.broadcast_to(a[0], a.shape)
    halves = b.reshape(-1, 8, 8).transpose(0, 2, 1)
    instead = {
        "quadrants-exchanged": product(quarters.swapaxes(0, 3).reshape(a.shape), b),
        "left-half-twice": product(_left(a), b),
        "one-row": product(first, b),
        "one-row, its left half": product(_left(first), b),
        "not-transposed": product(a, halves.reshape(b.shape)),
        "last-step-only": product(a[:, -16:], b[-16:]),
    }
    for name, wrong in instead.items():
        if np.array_equal(c, wrong):
            return name.partition(",")[0]
    return matrices.pattern(product(a, b), c)


def _left(a: np.ndarray) -> np.ndarray:
    """`a` with columns 0 to 7 of each step in place of 8 to 15, too."""
    return np.repeat(a.reshape(16, -1, 2, 8)[:, :, :1], 2, axis=2).reshape(a.shape)


ASKED = OneWarp(16, 8, step=16, cases=CASES, wavefronts=WAVEFRONTS, why=_why, long=256)


EXAMPLE = one_warp.example(16, 8, 1024)


def judge(answer: Any) -> Finding:
    """The smallest k for which the kernel is wrong: hazards, then values; then its loads."""
    return timed.beside(one_warp.judge(answer, ASKED), answer, build_matrix_loads, EXAMPLE)


TASK = Task(
    name="07.3",
    title="Matrix loads",
    section="chapter 07, From shared memory into a fragment",
    asked="build_matrix_loads() returns a kernel (A, B, C) in which one warp stores A·B in C and "
    "takes its fragments from shared memory with ldmatrix, without a bank conflict.",
    prompt=f"""
    The same product, A (16×k) times B (k×8), but through shared memory. The copy into `As` and `Bs`
    is written for you, and so is the store of C. Write the middle of a step:

    - the two `cuda.syncwarp()` that keep copying and loading apart;
    - `a` with one `ldmatrix_x4(As, row, column)`, and `b` with one
      `ldmatrix_x2_trans(Bs, row, column)`, where row and column are those of the first of the
      eight elements that *this* lane names;
    - the `mma` that adds to `c`.

    Then choose `pitch`. The check runs the kernel on the simulator, for several k. It wants the
    right values, and at most **{WAVEFRONTS} wavefronts** of shared loads in each step: one for each
    of the six 8×8 matrices.
    """,
    judge=judge,
    answers=(build_matrix_loads,),
    diagnoses={
        **one_warp.OWN,
        "not-attempted": Diagnosis(
            "The skeleton is unchanged.",
            "Lane 8q + r names row r of matrix q. Which row and column of As is that for lane 17?",
            "```python\na = ldmatrix_x4(As, lane % 16, ...)\n```",
        ),
        "wrong-type": Diagnosis(
            "build_matrix_loads() is to return the kernel, a function of (A, B, C).",
            "What does the last line of build_matrix_loads say?",
            "```python\nreturn kernel\n```",
        ),
        "no-barrier": Diagnosis(
            "Lanes load what others have not finished writing, or overwrite what others still "
            "load: one of the two syncwarp is missing.",
            "Of the two threads that are named, which one writes, and what tells the other?",
            "```python\ncuda.syncwarp()  # copied\na = ...\nc = mma_...(...)\n...\n```",
        ),
        "two-writers": Diagnosis(
            "Two lanes write the same element; each of As, Bs and C is for one lane to write.",
            "Which lanes come to the line that is named, with which e or x?",
            "```python\nfor e in range(lane, ..., 32):    # each element once\n```",
        ),
        "misaligned": Diagnosis(
            "A lane names eight elements that do not begin at a multiple of 16 bytes.",
            "Eight float16 are 16 bytes. Which columns, and which pitches, are multiples of that?",
            "Columns 0 and 8, and a pitch that is a multiple of ...",
        ),
        "outside": Diagnosis(
            "A lane names a row that the tile does not have. As has 16 rows, and 32 lanes name "
            "eight elements each.",
            "Lanes 16 to 31 name the right half. Of which rows?",
            "```python\nldmatrix_x4(As, lane % ..., 8 * (lane // ...))\n```",
        ),
        "unused": Diagnosis(
            "A lane names elements beyond column 15: that is padding, which nobody writes.",
            "Which columns does the lane that is named ask for?",
            "```python\nldmatrix_x4(As, ..., 8 * (lane // ...))\n```",
        ),
        "not-written": Diagnosis(
            "Some elements of C are NaN: they are not stored, or were made from a NaN.",
            "Which values go into `mma`?",
            "```python\nc = mma_m16n8k16_f32_f16(a, b, c)\n```",
        ),
        "quadrants-exchanged": Diagnosis(
            "Matrices 1 and 2 are exchanged: register 1 of A is the lower left quarter, "
            "register 2 the upper right.",
            "In the map of A: what does x2 of a lane hold, below x0 or to its right?",
            "```python\nldmatrix_x4(As, lane % 16, ...)    # lanes 8 to 15: rows 8 to 15\n```",
        ),
        "one-row": Diagnosis(
            "Each row of a is the row 0 of As: all lanes name the same one.",
            "Which lanes tell the instruction where rows 1 to 7 of an 8×8 matrix begin?",
            "```python\nldmatrix_x4(As, lane % ..., ...)    # a row from each lane\n```",
        ),
        "left-half-twice": Diagnosis(
            "Both halves of a are the columns 0 to 7 of As.",
            "Which column do lanes 16 to 31 name?",
            "```python\nldmatrix_x4(As, lane % 16, 8 * (...))\n```",
        ),
        "not-transposed": Diagnosis(
            "Each 8×8 matrix of B arrives transposed: pairs of B lie in a column, and a load "
            "without trans makes pairs from rows.",
            "What do the two halves of a register of B hold, and what lies side by side in Bs?",
            "```python\nb = ldmatrix_x2_...(Bs, lane % 16, 0)\n```",
        ),
        "last-step-only": Diagnosis(
            "What comes out is the product of the last step alone: c starts again in every step.",
            "Which value of c goes into `mma` in the second step?",
            "```python\nc = mma_m16n8k16_f32_f16(a, b, c)    # adds to the c before\n```",
        ),
        "loaded-twice": Diagnosis(
            "The result is right, but operands come from global memory again.",
            "Which arrays do the loads of your part name?",
            "```python\na = ldmatrix_x4(As, ...)\n```",
        ),
        "few-lanes-copy": Diagnosis(
            "The result is right, but a few lanes copy the tiles, and the others wait for them.",
            "Which elements of As does each of the 32 lanes copy in the skeleton?",
            "```python\nfor e in range(lane, 256, 32):\n    As[...] = ...\n```",
        ),
        "matrices-ignored": Diagnosis(
            "The result is right, but it does not depend on what ldmatrix brings: a or b reaches "
            "the mma on another way.",
            "Which statement gives a its value, and which one b?",
            "```python\na = ldmatrix_x4(As, ...)\nb = ldmatrix_x2_trans(Bs, ...)\n"
            "c = mma_m16n8k16_f32_f16(a, b, c)    # just these two\n```",
        ),
        "mma-ignored": Diagnosis(
            "The result is right, but the sums are made elsewhere, not by the mma.",
            "Which variable does the store of C take its values from, and which statement sets it?",
            "```python\nc = mma_m16n8k16_f32_f16(a, b, c)\n...\nC[i, j] = c[x]\n```",
        ),
        "no-mma": Diagnosis(
            "The result is right, but it was not made by the Tensor Core.",
            "Which instruction shall do the 2048 multiplications of a step?",
            "```python\nc = mma_m16n8k16_f32_f16(a, b, c)\n```",
        ),
        "elements-loaded": Diagnosis(
            "The result is right, but lanes load single elements from shared memory.",
            "How many instructions load your fragments of one step? Two are enough.",
            "```python\na = ldmatrix_x4(As, ...)\nb = ldmatrix_x2_trans(Bs, ...)\n```",
        ),
        "loaded-again": one_warp.LOADED_AGAIN,
        "bank-conflicts": Diagnosis(
            "The result is right, but rows of one 8×8 matrix fall on the same banks.",
            "With this pitch, at which byte do rows 0 and 4 begin, modulo 128?",
            "A pitch of 16 + ... elements: eight rows then begin at eight different multiples of "
            "16 bytes, modulo 128.",
        ),
    },
    praise="Two collective loads do the work of twelve, and eight unused elements in a row keep "
    "eight rows on different banks.",
)
