"""Exercise 08.5: a kernel of blocks on Tensor Cores: four warps share the tiles that they copy."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy import float16, float32, uint32

from gemmlab.course.judging import (
    FAILING,
    Diagnosis,
    Finding,
    Task,
    arrays_on_trial as trial,
    drawing,
    kernels_on_trial,
    matrices,
    one_warp,
    timed,
)
from gemmlab.course.judging.launches import Launch
from gemmlab.course.judging.one_warp import product
from gemmlab.device import RECORDED, device
from gemmlab.instructions import (
    layout,
    ldmatrix_x2_trans,
    ldmatrix_x4,
    load_v8,
    mma_m16n8k16_f32_f16,
    store_v8,
)
from gemmlab.problem import Gemm
from gemmlab.simt import Report, cuda

element_c = layout("m16n8k16", "C").element
TILE, STEP = 64, 32  # sides of a block's tile of C, and elements of k in a step
WARPS, THREADS = 4, 128  # of a block
PARAMETERS = ["A", "B", "C"]
CASES = ((64, 64, 32), (64, 128, 64), (128, 64, 96))  # m, n, k, smallest first
USUAL, FINE = np.arange(-4, 5), np.array([9.25, 11.5, 13.75])  # what elements are drawn from

PIECES = 2 * TILE * STEP // 8  # of 16 bytes in the two tiles of a step
REQUESTS = PIECES // 32  # of the block, if each lane moves a piece at a time
WAVEFRONTS = WARPS * 2 * (32 + 32) // 8 * 2  # of a step: one for each 8×8 matrix of each warp
PRODUCTS = WARPS * 2 * 2 * 4  # `mma` of a step


def build_block_tile():
    """The kernel of blocks of four warps, each block with 64×64 elements of C."""

    def kernel(A, B, C):
        As = cuda.shared.array((64, 40), float16, alignment=16)  # of a row, 32 elements are used
        Bs = cuda.shared.array((32, 72), float16, alignment=16)  # and of this one 64
        thread = cuda.threadIdx.x
        lane, warp = thread % 32, thread // 32
        top, left = 64 * cuda.blockIdx.y, 64 * cuda.blockIdx.x  # of the block's tile of C
        down, right = 32 * (warp // 2), 32 * (warp % 2)  # of the warp's tile in it
        a = cuda.local.array((2, 4), uint32)
        b = cuda.local.array((4, 2), uint32)
        acc = cuda.local.array((2, 4, 4), float32)
        for x in range(2):
            for y in range(4):
                for e in range(4):
                    acc[x, y, e] = 0

        for p in range(0, A.shape[1], 32):
            # Copy both tiles, all 128 threads, 16 bytes at a time; then both halves of the step:
            # this warp's fragments and its eight products.
            # [answer]
            for e in range(thread, 256, 128):
                row, col = e // 4, 8 * (e % 4)
                store_v8(As, row, col, load_v8(A, top + row, p + col))
                row, col = e // 8, 8 * (e % 8)
                store_v8(Bs, row, col, load_v8(B, p + row, left + col))
            cuda.syncthreads()
            for s in range(0, 32, 16):
                for x in range(2):
                    row, col = down + 16 * x + lane % 16, s + 8 * (lane // 16)
                    a[x, 0], a[x, 1], a[x, 2], a[x, 3] = ldmatrix_x4(As, row, col)
                for y in range(4):
                    b[y, 0], b[y, 1] = ldmatrix_x2_trans(Bs, s + lane % 16, right + 8 * y)
                for x in range(2):
                    for y in range(4):
                        acc[x, y, 0], acc[x, y, 1], acc[x, y, 2], acc[x, y, 3] = (
                            mma_m16n8k16_f32_f16(
                                (a[x, 0], a[x, 1], a[x, 2], a[x, 3]),
                                (b[y, 0], b[y, 1]),
                                (acc[x, y, 0], acc[x, y, 1], acc[x, y, 2], acc[x, y, 3]),
                            )
                        )
            cuda.syncthreads()
            # [end]

        for x in range(2):
            for y in range(4):
                for e in range(4):
                    i, j = element_c(lane, e)
                    C[top + down + 16 * x + i, left + right + 8 * y + j] = acc[x, y, e]

    return kernel


def _launch(sizes: tuple[int, int, int], rng: np.random.Generator) -> tuple[str, Launch]:
    """A case in words, and its launch; the larger ones have fractions."""
    m, n, k = sizes
    values = USUAL if sizes in CASES[:-1] else FINE
    a, b = (rng.choice(values, shape).astype(np.float16) for shape in ((m, k), (k, n)))
    blocks = n // TILE, m // TILE
    case = f"A is {m}×{k}, B is {k}×{n}; blocks of {THREADS} threads: {blocks[0]}×{blocks[1]}"
    return case, Launch((), blocks, (THREADS,), (a, b, np.full((m, n), np.nan, np.float32)))


def _wrong(case: str, launch: Launch, report: Report) -> Finding | None:
    """Find what is wrong with the result of a launch."""
    a, b, c = launch.arguments
    if found := trial.hazard(report, case):
        return replace(found, diagnosis=one_warp.of_hazard(found))
    found = trial.different("C", product(a, b), c, case)
    return found and replace(found, diagnosis=_why(a, b, c))


def _why(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> str:
    """The mistake that gives just this result, else the pattern of what is wrong."""
    if np.isnan(c).any():
        return "not-finite"
    right = product(a, b)
    tiles = right.reshape(len(a) // TILE, TILE, -1, TILE)
    halves = np.arange(a.shape[1]) // 16 % 2
    turned = b.reshape(-1, 8, b.shape[1] // 8, 8).transpose(0, 3, 2, 1).reshape(b.shape)
    instead = {
        "last-step-only": product(a[:, -STEP:], b[-STEP:]),
        "last-step-only, of half a step": product(a[:, -STEP // 2 :], b[-STEP // 2 :]),
        "one-half-of-a-step": product(a[:, halves == 0], b[halves == 0]),
        "one-half-of-a-step, twice": 2 * product(a[:, halves == 0], b[halves == 0]),
        "not-transposed": product(a, turned),
        "one-tile-for-all": np.broadcast_to(tiles[:1, :, :1], tiles.shape).reshape(right.shape),
    }
    for name, wrong in instead.items():
        if np.array_equal(c, wrong):
            return name.partition(",")[0]
    if _warps_alike(c):
        return "warps-alike"
    nearly = one_warp.rounded(a, b, c) if np.abs(a).max() > USUAL.max() else ""
    return nearly or matrices.pattern(right, c)


def _warps_alike(c: np.ndarray) -> bool:
    """Whether warps of the first block have computed the same."""
    quarters = c[:TILE, :TILE].reshape(2, 32, 2, 32).swapaxes(1, 2).reshape(WARPS, -1)
    return len(np.unique(quarters, axis=0)) < WARPS and bool(c.any())


@dataclass(frozen=True)
class Budget:
    """One count of a launch, and the most that it may be."""

    what: str
    counted: int
    most: int
    diagnosis: str


def _costs(report: Report, case: str) -> Finding:
    """Find the first count that is beyond its budget; "passed" where none is."""
    m, n, k = CASES[-1]
    steps = k // STEP * (m // TILE) * (n // TILE)  # of all blocks
    told, counters = report.instructions, report.counters
    copied, stored = report.shares.of("load", "A", "B"), report.shares.of("store", "C")
    budgets = [
        Budget("Bytes of A and B loaded", int(copied.sum()), steps * PIECES * 16, "loaded-again"),
        Budget("Bytes of C stored", int(stored.sum()), 4 * m * n, "stored-twice"),
        Budget("Products, mma", told["inst_mma"], steps * PRODUCTS, "multiplied-twice"),
        Budget("Shared loads of single elements", told["inst_shared_load"], 0, "elements-loaded"),
        Budget("Loads of warps from A and B", counters["global_load_requests"],
               steps * REQUESTS, "narrow-copies"),
        Budget("Stores of warps to shared memory", counters["shared_store_requests"],
               steps * REQUESTS, "narrow-copies"),
        Budget("Wavefronts of shared loads", counters["shared_load_wavefronts"],
               steps * WAVEFRONTS, "fragments-again"),
        Budget("Barriers", counters["barriers"], 2 * steps, "too-many-barriers"),
        Budget("Float additions", told["inst_fp"], max(0, told["inst_mma"] - 1), "added-apart"),
    ]  # fmt: skip
    facts = (
        (FAILING, case),
        *((one.what, f"{one.counted:,}; budget {one.most:,}") for one in budgets),
    )
    if not told["inst_mma"]:
        return Finding("no-mma", facts)
    if kernels_on_trial.uneven(copied, kernels_on_trial.ONE_EACH):
        fact = ("Copied by a thread", f"{copied.min()} … {copied.max()} bytes")
        return Finding("few-threads-copy", (*facts, fact))
    for one in budgets:
        if one.counted > one.most:
            return Finding(one.diagnosis, facts)
    values = ("Values", f"right in all {len(CASES)} cases, and in those drawn anew")
    return Finding("passed", (values, *facts[1:]))


def _example() -> Launch:
    """A launch that keeps an H200 busy."""
    shapes = (SIDE, DEPTH), (DEPTH, SIDE)
    a, b = (np.zeros(shape, np.float16) for shape in shapes)
    blocks = SIDE // TILE
    return Launch((), (blocks, blocks), (THREADS,), (a, b, np.zeros((SIDE, SIDE), np.float32)))


SIDE, DEPTH = 4096, 256
EXAMPLE = timed.Example(
    PARAMETERS,
    _example,
    f"m = n = {SIDE}, k = {DEPTH}",
    Gemm(SIDE, SIDE, DEPTH).flops / device(RECORDED).peak_of("float16"),
)


def judge(answer: Any) -> Finding:
    """Check values and hazards on every case, counts of the largest, and cases drawn anew."""
    arrays = trial.Arrays(answer, PARAMETERS, _launch, _wrong)
    largest = arrays.first_wrong(CASES)
    found = largest if isinstance(largest, Finding) else _costs(*largest)
    if found.diagnosis == "passed":
        rng = drawing.generator()
        wide = tuple(TILE * int(size) for size in rng.integers(3, 5, 2))
        anew = [(*wide, STEP * int(rng.integers(4, 7))), (64, 64, STEP * int(rng.integers(35, 40)))]
        found = arrays.wrong_anew(anew) or found
    return timed.beside(found, answer, build_block_tile, EXAMPLE)


TASK = Task(
    name="08.5",
    title="Four warps, one tile",
    section="chapter 08, Your turn: a kernel of blocks",
    asked="build_block_tile() returns a kernel (A, B, C) that stores A·B in C, in blocks of four "
    "warps with 64×64 elements of C each.",
    prompt=f"""
    A is m×k, B is k×n, both float16 in rows; m and n are multiples of {TILE} and k of {STEP}. A
    block of {THREADS} threads has {TILE}×{TILE} elements of C, each of its four warps 32×32 of
    them, as in exercise 08.1. In each step of {STEP} along k

    - all {THREADS} threads copy the block's tiles, each piece of 16 bytes by one
      `store_v8(As, row, col, load_v8(A, i, j))`: {PIECES} pieces, four for each thread;
    - the block waits;
    - each warp takes its fragments of both halves of the step from the shared tiles, by
      `ldmatrix_x4(As, row, col)` and `ldmatrix_x2_trans(Bs, row, col)`, and makes
      {PRODUCTS // WARPS} `mma`;
    - the block waits once more.

    Rows are padded, so that nothing meets in a bank. The budget of a step: {PIECES * 16:,} bytes
    from A and B, {WAVEFRONTS} wavefronts of shared loads, two barriers. Then the check predicts the
    time on an H200 at m = n = {SIDE}, k = {DEPTH}.
    """,
    judge=judge,
    answers=(build_block_tile,),
    diagnoses={
        "not-attempted": Diagnosis(
            "The skeleton is unchanged.",
            "Which four pieces does thread 0 copy, and which 32 rows and columns are warp 3's?",
            "```python\nfor e in range(thread, 256, 128):\n    row, col = e // 4, 8 * (e % 4)\n"
            "    store_v8(As, row, col, load_v8(A, ..., ...))\n```",
        ),
        "wrong-type": Diagnosis(
            "build_block_tile() is to return the kernel, a function of (A, B, C).",
            "What does the last line of build_block_tile say?",
            "```python\nreturn kernel\n```",
        ),
        "no-barrier": Diagnosis(
            "Warps load what others have not finished copying, or overwrite what others still "
            "load: a syncthreads is missing.",
            "Of the two threads that are named, which one writes, and what tells the other?",
            "```python\n...    # copied\ncuda.syncthreads()\n...    # multiplied\n"
            "cuda.syncthreads()\n```",
        ),
        "two-writers": Diagnosis(
            "Two threads write the same element: each piece is for one thread to copy.",
            "Which e do the threads that are named have, and which row and col?",
            "```python\nfor e in range(thread, 256, 128):    # each piece once\n```",
        ),
        "misaligned": Diagnosis(
            "A piece of eight elements begins at a column that is no multiple of 8.",
            "Which columns does the thread that is named ask for?",
            "```python\nrow, col = e // 4, 8 * (e % 4)\n```",
        ),
        "outside": Diagnosis(
            "An index lies outside of its array.",
            "Which of row and col, p, top and left belong to A, and which to B?",
            "```python\nload_v8(A, top + row, p + col)\nload_v8(B, p + row, ...)\n```",
        ),
        "unused": Diagnosis(
            "A lane names elements of a shared tile that nobody has written.",
            "Which rows and columns of As and Bs does your copy fill?",
            "```python\nfor e in range(thread, 256, 128):    # 256 pieces of each tile\n```",
        ),
        "not-finite": Diagnosis(
            "Some elements of C are NaN: they are not stored, or were made from a NaN.",
            "Which of acc do your lines add to, and what was in it before?",
            "```python\nacc[x, y, ...] = mma_m16n8k16_f32_f16(...)\n```",
        ),
        "last-step-only": Diagnosis(
            "What comes out is the product of the last step alone: the sums start again.",
            "Which sums go into `mma` in the second step?",
            "```python\nmma_m16n8k16_f32_f16(..., ..., (acc[x, y, 0], ...))\n```",
        ),
        "one-half-of-a-step": Diagnosis(
            "Only the first 16 of the 32 elements along k are multiplied.",
            "Which columns of As does the second half of a step begin with?",
            "```python\nfor s in range(0, 32, 16):\n    ... ldmatrix_x4(As, ..., s + ...)\n```",
        ),
        "not-transposed": Diagnosis(
            "Each 8×8 matrix of B arrives transposed: pairs of B lie in a column.",
            "What do the two halves of a register of B hold, and what lies side by side in Bs?",
            "```python\nb[y, 0], b[y, 1] = ldmatrix_x2_...(Bs, ...)\n```",
        ),
        "one-tile-for-all": Diagnosis(
            "All blocks compute the first tile of C.",
            "Where do top and left stand in your copies?",
            "```python\nload_v8(A, top + row, ...)\nload_v8(B, ..., left + col)\n```",
        ),
        "warps-alike": Diagnosis(
            "Warps of a block compute the same: their fragments come from the same place.",
            "Which rows of As does warp 2 need, and which columns of Bs warp 1?",
            "```python\nrow = down + 16 * x + lane % 16    # and columns from `right` on\n```",
        ),
        **one_warp.OWN,
        "loaded-again": Diagnosis(
            "The result is right, but elements of A or B are loaded more than once by a block.",
            "A tile of A has 256 pieces. How many does your block load in a step?",
            "```python\nfor e in range(thread, 256, 128):    # shared by four warps\n```",
        ),
        "multiplied-twice": Diagnosis(
            "The result is right, but warps multiply more than they have to.",
            "How many `mma` does a warp need for 32×32 sums and 16 elements of k?",
            "```python\nfor x in range(2):\n    for y in range(4):\n        # one mma\n```",
        ),
        "elements-loaded": Diagnosis(
            "The result is right, but lanes load single elements from shared memory.",
            "How many instructions load the fragments of half a step? Six are enough.",
            "```python\nldmatrix_x4(As, ...)\nldmatrix_x2_trans(Bs, ...)\n```",
        ),
        "narrow-copies": Diagnosis(
            "The result is right, but tiles are copied in smaller pieces than 16 bytes.",
            "How many loads does a warp need for 32 pieces?",
            "```python\nstore_v8(As, row, col, load_v8(A, ..., ...))\n```",
        ),
        "few-threads-copy": Diagnosis(
            "The result is right, but a few threads copy the tiles, and the others wait.",
            "512 pieces and 128 threads: how many are each one's?",
            "```python\nfor e in range(thread, 256, 128):\n    ...\n```",
        ),
        "fragments-again": Diagnosis(
            "The result is right, but fragments are loaded more than once, or their rows meet in "
            "banks.",
            "For how many y is one fragment of A the same? Which loop should its load be in?",
            "```python\nfor x in range(2):\n    a[x, ...] = ...\nfor y in range(4):\n    "
            "b[y, ...] = ...\n# and only then the products\n```",
        ),
        "too-many-barriers": Diagnosis(
            "The result is right, but the block waits more often than twice in a step.",
            "Which two moments of a step does every thread have to know of?",
            "```python\n...    # copied\ncuda.syncthreads()\n...    # multiplied\n"
            "cuda.syncthreads()\n```",
        ),
        "no-mma": Diagnosis(
            "The result is right, but it was not made by the Tensor Core.",
            "Which instruction shall do the multiplications of a step?",
            "```python\nacc[x, y, 0], ... = mma_m16n8k16_f32_f16(...)\n```",
        ),
    },
    praise="This is a whole kernel on Tensor Cores, with the three nested tiles of this chapter. "
    "Chapter 9 lets its copies run ahead.",
)
