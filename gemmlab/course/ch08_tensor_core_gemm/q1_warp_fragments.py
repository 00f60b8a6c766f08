"""Exercise 08.1: a warp's tile of C, whose fragments are loaded once and used several times."""

from typing import Any

import numpy as np
from numpy import float16, float32, uint32

from gemmlab.course.judging import (
    FAILING,
    Diagnosis,
    Finding,
    Task,
    matrices,
    one_warp,
    timed,
)
from gemmlab.course.judging.one_warp import OneWarp, product
from gemmlab.instructions import layout, ldmatrix_x2_trans, ldmatrix_x4, mma_m16n8k16_f32_f16
from gemmlab.simt import Report, cuda

element_c = layout("m16n8k16", "C").element
CASES = (16, 32, 48)  # k, smallest first
SIDE = 32  # of the warp's tile of C
PRODUCTS = 8  # `mma` in a step of 16 along k


def build_warp_tile():
    """The kernel of one warp that stores A·B in C, of 32×32 elements."""

    def kernel(A, B, C):
        As = cuda.shared.array((32, 24), float16, alignment=16)  # of a row, 16 elements are used
        Bs = cuda.shared.array((16, 40), float16, alignment=16)  # and of this one 32
        lane = cuda.threadIdx.x
        a = cuda.local.array((2, 4), uint32)  # two fragments of A, one below the other
        b = cuda.local.array((4, 2), uint32)  # four of B, side by side
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
            # Load each fragment once, a[x, :] and b[y, :]; then add to all eight acc[x, y, :].
            # [answer]
            for x in range(2):
                row, col = 16 * x + lane % 16, 8 * (lane // 16)
                a[x, 0], a[x, 1], a[x, 2], a[x, 3] = ldmatrix_x4(As, row, col)
            for y in range(4):
                b[y, 0], b[y, 1] = ldmatrix_x2_trans(Bs, lane % 16, 8 * y)
            for x in range(2):
                for y in range(4):
                    acc[x, y, 0], acc[x, y, 1], acc[x, y, 2], acc[x, y, 3] = mma_m16n8k16_f32_f16(
                        (a[x, 0], a[x, 1], a[x, 2], a[x, 3]),
                        (b[y, 0], b[y, 1]),
                        (acc[x, y, 0], acc[x, y, 1], acc[x, y, 2], acc[x, y, 3]),
                    )
            # [end]
            cuda.syncwarp()

        for x in range(2):
            for y in range(4):
                for e in range(4):
                    i, j = element_c(lane, e)
                    C[16 * x + i, 8 * y + j] = acc[x, y, e]

    return kernel


def _why(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> str:
    """The mistake that gives just this result."""
    if np.isnan(c).any():
        return "not-finite"
    quarters = a.reshape(2, 2, 8, -1, 2, 8)  # fragment, below, row, step, right, column
    halves = b.reshape(-1, 8, 4, 8).transpose(0, 3, 2, 1)  # each 8×8 matrix, turned
    upper, first = np.concatenate([a[:16], a[:16]]), np.tile(b[:, :8], 4)
    instead = {
        "one-fragment-of-a": product(upper, b),
        "one-fragment-of-b": product(a, first),
        "one-fragment-of-b, and of A": product(upper, first),
        "quadrants-exchanged": product(quarters.swapaxes(1, 4).reshape(a.shape), b),
        "not-transposed": product(a, halves.reshape(b.shape)),
        "last-step-only": product(a[:, -16:], b[-16:]),
    }
    for name, wrong in instead.items():
        if np.array_equal(c, wrong):
            return name.partition(",")[0]
    return "sums-shared" if _blocks_alike(c) else matrices.pattern(product(a, b), c)


def _blocks_alike(c: np.ndarray) -> bool:
    """Whether several of C's eight blocks hold the same: they were added up in one place."""
    blocks = c.reshape(2, 16, 4, 8).transpose(0, 2, 1, 3).reshape(PRODUCTS, -1)
    return len(np.unique(blocks, axis=0)) < PRODUCTS and c.any()


def _costly(report: Report, steps: int, case: str) -> Finding | None:
    done, asked = report.instructions["inst_mma"], PRODUCTS * steps
    if done > asked:
        fact = ("Products", f"{done} mma, where {asked} make C")
        return Finding("multiplied-twice", ((FAILING, case), fact))
    return None


ASKED = OneWarp(
    SIDE, SIDE, step=16, cases=CASES, wavefronts=2 * PRODUCTS, why=_why, costly=_costly,
    too_many="loaded-again", long=1024,
)  # fmt: skip
EXAMPLE = one_warp.example(32, 32, 1024)


def judge(answer: Any) -> Finding:
    """The smallest k for which the kernel is wrong: hazards, then values; then loads and mma."""
    return timed.beside(one_warp.judge(answer, ASKED), answer, build_warp_tile, EXAMPLE)


TASK = Task(
    name="08.1",
    title="A tile for the warp",
    section="chapter 08, Three nested tiles",
    asked="build_warp_tile() returns a kernel (A, B, C) in which one warp stores A·B in C, 32×32 "
    "elements, and loads each fragment once in a step.",
    prompt="""
    One warp computes 32×32 elements of C: two fragments of A below each other, four of B side by
    side, and eight tiles of C, `acc[x, y]`. The copies and the store are written for you. Write
    what stands between the two barriers:

    - both fragments of A, each by one `ldmatrix_x4(As, row, col)`;
    - the four of B, each by one `ldmatrix_x2_trans(Bs, row, col)`;
    - eight `mma`, one for each pair of fragments.

    The rows of `As` and `Bs` are padded, so nothing meets in a bank. The check runs the kernel on
    the simulator, for several k, and counts the **wavefronts** of shared loads: a step may take one
    for each 8×8 matrix of its six fragments, no more.
    """,
    judge=judge,
    answers=(build_warp_tile,),
    diagnoses={
        "not-attempted": Diagnosis(
            "The skeleton is unchanged.",
            "Chapter 7's product had one fragment of A and one of B. Which row of As begins the "
            "second fragment of A, and which column of Bs the second one of B?",
            "```python\nfor x in range(2):\n    a[x, 0], a[x, 1], a[x, 2], a[x, 3] = "
            "ldmatrix_x4(As, ...)\n```",
        ),
        "wrong-type": Diagnosis(
            "build_warp_tile() is to return the kernel, a function of (A, B, C).",
            "What does the last line of build_warp_tile say?",
            "```python\nreturn kernel\n```",
        ),
        "no-barrier": Diagnosis(
            "Lanes load what others have not finished writing, or overwrite what others still "
            "load: a syncwarp is missing.",
            "Of the two threads that are named, which one writes, and what tells the other?",
            "```python\ncuda.syncwarp()  # copied\n...\ncuda.syncwarp()  # loaded\n```",
        ),
        "two-writers": Diagnosis(
            "Two lanes write the same element; each of As, Bs and C is for one lane to write.",
            "Which lanes come to the line that is named, with which indices?",
            "```python\nfor e in range(lane, 512, 32):    # each element once\n```",
        ),
        "misaligned": Diagnosis(
            "A lane names eight elements that do not begin at a multiple of 16 bytes.",
            "Which columns of As, and of Bs, are the first of a piece of eight?",
            "```python\nldmatrix_x4(As, 16 * x + lane % 16, 8 * (...))\n```",
        ),
        "outside": Diagnosis(
            "A lane names a row or a column that the tile does not have.",
            "As is 32×16 and Bs 16×32. Which row does lane 31 name, for the last x or y?",
            "```python\nldmatrix_x4(As, 16 * x + lane % ..., 8 * (lane // ...))\n```",
        ),
        "unused": Diagnosis(
            "A lane names padding, which nobody writes.",
            "Which columns does the lane that is named ask for?",
            "```python\nldmatrix_x4(As, ..., 8 * (lane // 16))\n```",
        ),
        "not-finite": Diagnosis(
            "Some elements of C are NaN: they are not stored, or were made from a NaN.",
            "Which of acc do your lines add to, and what was in it before?",
            "```python\nfor x in range(2):\n    for y in range(4):\n        acc[x, y, ...] = ...\n"
            "```",
        ),
        "one-fragment-of-a": Diagnosis(
            "The lower half of C repeats the upper: both fragments of A are the rows 0 to 15.",
            "In which of the two numbers that name an address does x stand?",
            "```python\nldmatrix_x4(As, 16 * x + ..., 8 * (lane // 16))\n```",
        ),
        "one-fragment-of-b": Diagnosis(
            "All blocks of eight columns are the first: the four fragments of B are one.",
            "In which of the two numbers that name an address does y stand?",
            "```python\nldmatrix_x2_trans(Bs, lane % 16, 8 * ...)\n```",
        ),
        "quadrants-exchanged": Diagnosis(
            "Matrices 1 and 2 of A are exchanged: register 1 is the lower left quarter, register "
            "2 the upper right.",
            "Which rows do lanes 8 to 15 name?",
            "```python\nldmatrix_x4(As, 16 * x + lane % 16, 8 * (lane // 16))\n```",
        ),
        "not-transposed": Diagnosis(
            "Each 8×8 matrix of B arrives transposed: pairs of B lie in a column, and a load "
            "without trans makes pairs from rows.",
            "What do the two halves of a register of B hold, and what lies side by side in Bs?",
            "```python\nb[y, 0], b[y, 1] = ldmatrix_x2_...(Bs, lane % 16, 8 * y)\n```",
        ),
        "last-step-only": Diagnosis(
            "What comes out is the product of the last step alone: the sums start again.",
            "Which sums go into `mma` in the second step?",
            "```python\nmma_m16n8k16_f32_f16(..., ..., (acc[x, y, 0], ...))\n```",
        ),
        "sums-shared": Diagnosis(
            "Blocks of C are alike that should differ: several products add to the same sums.",
            "Eight products, eight tiles of C. Which acc does the one for x and y add to?",
            "```python\nacc[x, y, 0], acc[x, y, 1], ... = mma_m16n8k16_f32_f16(...)\n```",
        ),
        **one_warp.OWN,
        "loaded-twice": Diagnosis(
            "The result is right, but operands come from global memory again.",
            "Which arrays do the loads of your part name?",
            "```python\nldmatrix_x4(As, ...)\nldmatrix_x2_trans(Bs, ...)\n```",
        ),
        "few-lanes-copy": Diagnosis(
            "The result is right, but a few lanes copy the tiles, and the others wait for them.",
            "Which elements does each of the 32 lanes copy in the skeleton?",
            "```python\nfor e in range(lane, 512, 32):\n    As[...] = ...\n```",
        ),
        "loaded-again": Diagnosis(
            "The result is right, but fragments are loaded more than once: a load stands in a loop "
            "that does not change its address.",
            "For how many y is one fragment of A the same? Which loop should its load be in?",
            "```python\nfor x in range(2):\n    a[x, ...] = ...\nfor y in range(4):\n    "
            "b[y, ...] = ...\n# and only then the products\n```",
        ),
        "multiplied-twice": Diagnosis(
            "The result is right, but the warp multiplies more than it has to.",
            "How many pairs of a fragment of A and one of B are there?",
            "```python\nfor x in range(2):\n    for y in range(4):\n        # one mma\n```",
        ),
        "matrices-ignored": Diagnosis(
            "The result is right, but it does not depend on what ldmatrix brings: a or b reaches "
            "the mma on another way.",
            "Which statement gives a its values, and which one b?",
            "```python\na[x, 0], a[x, 1], a[x, 2], a[x, 3] = ldmatrix_x4(As, ...)\n```",
        ),
        "mma-ignored": Diagnosis(
            "The result is right, but the sums are made elsewhere, not by the mma.",
            "Which variable does the store of C take its values from, and which statement sets it?",
            "```python\nacc[x, y, 0], ... = mma_m16n8k16_f32_f16(...)\n```",
        ),
        "no-mma": Diagnosis(
            "The result is right, but it was not made by the Tensor Core.",
            "Which instruction shall do the multiplications of a step?",
            "```python\nacc[x, y, 0], ... = mma_m16n8k16_f32_f16(...)\n```",
        ),
        "elements-loaded": Diagnosis(
            "The result is right, but lanes load single elements from shared memory.",
            "How many instructions load your fragments of one step? Six are enough.",
            "```python\nldmatrix_x4(As, ...)\nldmatrix_x2_trans(Bs, ...)\n```",
        ),
    },
    praise="Six fragments serve eight products: two wavefronts for each mma where one tile of C "
    "takes six.",
)
