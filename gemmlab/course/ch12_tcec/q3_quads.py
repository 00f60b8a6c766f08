"""Exercise 12.3: fragments split as they are loaded, from tiles in FP32, four words at a time."""

from typing import Any

import numpy as np
from numpy import float32, uint32

from gemmlab.course.ch12_tcec import corrected
from gemmlab.course.ch12_tcec.corrected import STEP, Arrays, Corrected, M, N
from gemmlab.course.ch12_tcec.q1_corrected_product import DIAGNOSES
from gemmlab.course.judging import FAILING, Diagnosis, Finding, Task
from gemmlab.instructions import layout, load_v4, mma_m16n8k16_f32_f16
from gemmlab.kernels.tcec.shared.splitting import split_two
from gemmlab.simt import Report, cuda

element_c = layout("m16n8k16", "C").element
ZERO = (float32(0), float32(0), float32(0), float32(0))
WAVEFRONTS = 12  # of shared loads in a step: 384 words of A and B, 32 at a time


@cuda.jit(device=True)
def three_products(ah, al, bh, bl, cross):
    """The corrections, added to `cross`, and the main product of one step."""
    a_high, a_low = (ah[0], ah[1], ah[2], ah[3]), (al[0], al[1], al[2], al[3])
    b_high, b_low = (bh[0], bh[1]), (bl[0], bl[1])
    cross = mma_m16n8k16_f32_f16(a_low, b_high, cross)
    cross = mma_m16n8k16_f32_f16(a_high, b_low, cross)
    return cross, mma_m16n8k16_f32_f16(a_high, b_high, ZERO)


def build_quads():
    """The kernel of one warp that stores A·B in C; B is handed over by columns, 8×k."""

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
        g, t = lane // 4, lane % 4
        for p in range(0, A.shape[1], 16):
            for e in range(lane, 256, 32):
                As[e // 16, e % 16] = A[e // 16, p + e % 16]
            for e in range(lane, 128, 32):
                Bs[e // 16, e % 16] = B[e // 16, p + e % 16]
            cuda.syncwarp()
            # Load what this lane needs by load_v4(tile, row, column), and split it into the
            # registers ah, al (four of each), bh and bl (two of each).
            # [answer]
            a, b = load_v4(As, g, 4 * t), load_v4(Bs, g, 4 * t)
            ah[0], al[0] = split_two(a[0], a[1])
            ah[2], al[2] = split_two(a[2], a[3])
            a = load_v4(As, g + 8, 4 * t)
            ah[1], al[1] = split_two(a[0], a[1])
            ah[3], al[3] = split_two(a[2], a[3])
            bh[0], bl[0] = split_two(b[0], b[1])
            bh[1], bl[1] = split_two(b[2], b[3])
            # [end]
            cross, part = three_products(ah, al, bh, bl, cross)
            for x in range(4):
                main[x] += part[x]
            cuda.syncwarp()
        for x in range(4):
            i, j = element_c(lane, x)
            C[i, j] = main[x] + cross[x] / float32(2048)

    return kernel


def _instead(a: np.ndarray, b: np.ndarray) -> Arrays:
    """The C that results where lanes load other elements."""
    steps = np.arange(a.shape[1]).reshape(-1, 1, 4, 4)  # step, one, lane, element of its quad
    quads = np.concatenate([steps[..., :2], steps[..., 2:]], 1).reshape(-1)  # as `mma` has them
    by_quads = a[:, quads].astype(np.float64)
    quarters = by_quads.reshape(2, 8, -1, 2, 8)
    upper = np.concatenate([by_quads[:8]] * 2)
    return {
        "orders-differ": by_quads @ b,
        "orders-differ, B": a @ b[quads].astype(np.float64),
        "registers-exchanged": quarters.swapaxes(0, 3).reshape(a.shape) @ b[quads],
        "upper-half-twice": upper @ b[quads],
    }


def _costly(report: Report, k: int, case: str) -> Finding | None:
    """A right kernel that moves more than it should."""
    counters, steps = report.counters, k // STEP
    words = (M + N) * k
    if counters["global_load_bytes"] > 4 * words:
        fact = ("Global loads", f"{counters['global_load_bytes']} bytes, A and B have {4 * words}")
        return Finding("loaded-twice", ((FAILING, case), fact))
    each = counters["shared_store_wavefronts"] / steps
    if each > WAVEFRONTS:
        fact = ("Wavefronts", f"{each:g} of shared stores in each step, the copies take 12")
        return Finding("parts-stored", ((FAILING, case), fact), {"wavefronts": each})
    each = counters["shared_load_wavefronts"] / steps
    if not each:
        return Finding("shared-memory-not-used", ((FAILING, case),))
    if each > WAVEFRONTS:
        fact = ("Wavefronts", f"{each:g} of shared loads in each step, at most {WAVEFRONTS} asked")
        return Finding("too-many-wavefronts", ((FAILING, case), fact), {"wavefronts": each})
    return None


def judge(answer: Any) -> Finding:
    """The smallest case in which the kernel is wrong: hazards, values, then its loads."""
    return corrected.judge(answer, Corrected(True, _instead, _costly))


TASK = Task(
    name="12.3",
    title="Split while loading",
    section="chapter 12, What feeds three products?",
    asked="build_quads() returns a kernel (A, B, C) in which one warp stores A·B in C; it loads "
    "FP32 words from shared memory, at most 12 wavefronts in a step, and splits them.",
    prompt=f"""
    The same product once more. A is 16×k, and B is handed over by columns, 8×k: both tiles have
    rows of 16 words along $k$. They lie in shared memory in FP32. Write the load and the split.

    By the map, lane $4g + t$ holds the elements $2t$, $2t + 1$, $2t + 8$ and $2t + 9$ of its rows
    $g$ and $g + 8$ of A, and the same of column $g$ of B: registers 0 and 1 have the first two, of
    rows $g$ and $g + 8$, registers 2 and 3 the others; B has registers 0 and 1. That is a load for
    each word, and bank conflicts. But a sum does not ask in which order its products come. If A
    **and** B agree, a lane may take the elements $4t$ to $4t + 3$ instead, which is **one**
    `load_v4` for each row.

    The check wants the accuracy of 12.1, no part in shared memory, and at most **{WAVEFRONTS}
    wavefronts** of shared loads in a step.
    """,
    judge=judge,
    answers=(build_quads,),
    diagnoses={
        "not-attempted": Diagnosis(
            "The skeleton is unchanged.",
            "Which four words of As does lane 4g + t need for its row g, if it takes neighbours?",
            "```python\na = load_v4(As, g, 4 * t)\nah[0], al[0] = split_two(a[0], a[1])\n```",
        ),
        "wrong-type": Diagnosis(
            "build_quads() is to return the kernel, a function of (A, B, C).",
            "What does the last line of build_quads say?",
            "```python\nreturn kernel\n```",
        ),
        "orders-differ": Diagnosis(
            "A and B number the elements along k in different orders: a product multiplies an "
            "element of A with another one of B.",
            "Lane t holds 4t to 4t + 3 of A. Which elements of B does it hold?",
            "```python\nb = load_v4(Bs, g, ...)    # the same columns as of A\n```",
        ),
        "registers-exchanged": Diagnosis(
            "Registers 1 and 2 of A are exchanged: 1 belongs to row g + 8, 2 to row g.",
            "Which two registers hold elements of row g?",
            "```python\nah[0], al[0] = split_two(a[0], a[1])\nah[2], al[2] = split_two(...)\n```",
        ),
        "upper-half-twice": Diagnosis(
            "Rows 8 to 15 of C are those of the rows 0 to 7 of A.",
            "Which rows of As does a lane need?",
            "```python\na = load_v4(As, g + ..., 4 * t)\n```",
        ),
        "outside": Diagnosis(
            "A lane loads beyond the end of a tile.",
            "What are the largest row and the largest column that load_v4 is given, and how many "
            "words does it take from there?",
            "```python\nload_v4(As, g + 8, 4 * t)    # t is 0 to 3\n```",
        ),
        "loaded-twice": Diagnosis(
            "The result is right, but operands come from global memory again.",
            "Which arrays do the loads of your part name?",
            "```python\na = load_v4(As, ...)\n```",
        ),
        "parts-stored": Diagnosis(
            "The result is right, but parts go through shared memory: that is what this kernel "
            "is to save.",
            "Where do the words need to be, that `mma` takes?",
            "```python\nah[0], al[0] = split_two(a[0], a[1])    # registers\n```",
        ),
        "shared-memory-not-used": Diagnosis(
            "The result is right, but operands go from global memory to registers: other warps of "
            "a block could not use them.",
            "Which arrays do the loads of your part name?",
            "```python\na = load_v4(As, ...)\n```",
        ),
        "too-many-wavefronts": Diagnosis(
            "The result is right, but its loads take more wavefronts: words are loaded one or two "
            "at a time, and lanes meet in a bank.",
            "How many bytes does a lane load at once, and how many do 32 lanes need?",
            "```python\nload_v4(As, g, 4 * t)    # 16 bytes a lane\n```",
        ),
        **{
            name: DIAGNOSES[name]
            for name in (
                *("no-barrier", "not-corrected", "one-correction", "wrong-values", "mma-ignored"),
            )
        },
    },
    praise="A split in registers takes 4 bytes of shared memory for each element in place of 12.",
)
