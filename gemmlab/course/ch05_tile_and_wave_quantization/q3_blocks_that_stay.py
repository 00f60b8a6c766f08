"""Exercise 05.3: a persistent kernel, whose blocks take tile after tile."""

from dataclasses import replace
from typing import Any

import numpy as np
from numpy import float32

from gemmlab.course.judging import Diagnosis, Finding, Task, kernels_on_trial, timed
from gemmlab.course.judging.diagnoses import KERNEL
from gemmlab.course.judging.kernels_on_trial import Trial
from gemmlab.course.judging.launches import Launch
from gemmlab.course.judging.matrices import Case, case
from gemmlab.device import RECORDED, device
from gemmlab.problem import Gemm
from gemmlab.simt import cuda
from gemmlab.tiling import Tiling

CASES = (
    case(1, 1, 1, tile=2),
    case(2, 3, 2, tile=2),
    case(3, 5, 3, alpha=2, beta=0.5, tile=2),
    case(5, 3, 7, alpha=2, tile=4),
    case(9, 6, 5, alpha=-1, beta=2, tile=4),
    Case(Gemm(6, 11, 17), tile=4, large=True),
    case(12, 10, 13, beta=1, tile=4),
    Case(Gemm(4, 4, 160, 0.5, 0.5), tile=4, large=True),
    case(32, 64, 16, tile=8),
)
MANY_TILES = (case(66, 70, 2, alpha=0.5, tile=2),)  # 1155, for 100 blocks
SMALL = 5  # of them: with few threads at work, larger ones take long
MANY = 4096  # elements of C, from which on the launch has 100 blocks


def blocks(problem: Gemm) -> int:
    """Blocks of the launch: 1 to 6, so that some cases have fewer tiles than blocks, or 100."""
    if problem.m * problem.n > MANY:
        return 100
    return 1 + (problem.m + problem.n + problem.k) % 6


def grid(tiling: Tiling, problem: Gemm) -> tuple[int, int]:
    """The launch of a persistent kernel: blocks along x alone, whatever the tiles are."""
    return blocks(problem), 1


def build_persistent(T):
    """The kernel for tiles of T×T elements and any number of blocks."""

    def kernel(alpha, A, B, beta, C):
        As = cuda.shared.array((T, T), float32)
        Bs = cuda.shared.array((T, T), float32)
        m, n = C.shape
        k = A.shape[1]
        x = cuda.threadIdx.x
        y = cuda.threadIdx.y
        down = (m + T - 1) // T  # tiles of C along m
        across = (n + T - 1) // T  # tiles of C along n

        # Take a tile of C; compute it as in chapter 4; take the next one that is yours.
        # [answer]
        tile = cuda.blockIdx.x
        while tile < down * across:
            row = tile // across * T + y
            col = tile % across * T + x
            acc = float32(0)
            for start in range(0, k, T):
                As[y, x] = A[row, start + x] if row < m and start + x < k else float32(0)
                Bs[y, x] = B[start + y, col] if start + y < k and col < n else float32(0)
                cuda.syncthreads()
                for p in range(T):
                    acc += As[y, p] * Bs[p, x]
                cuda.syncthreads()
            if row < m and col < n:
                C[row, col] = alpha * acc if beta == 0 else alpha * acc + beta * C[row, col]
            tile += cuda.gridDim.x
        # [end]

    return kernel


def _example() -> Launch:
    """A launch that keeps an H200 busy: eight blocks of 256 threads for each SM."""
    shapes = (SIDE, DEPTH), (DEPTH, SIDE), (SIDE, SIDE)
    a, b, c = (np.zeros(shape, np.float32) for shape in shapes)
    one = np.float32(1)
    return Launch((16,), (8 * device(RECORDED).sms, 1), (16, 16), (one, a, b, one, c))


SIDE, DEPTH = 2048, 128
EXAMPLE = timed.Example(
    kernels_on_trial.PARAMETERS,
    _example,
    f"m = n = {SIDE}, k = {DEPTH} with T = 16 and eight blocks for each SM",
    2 * SIDE * SIDE * DEPTH / device(RECORDED).peak_of("float32"),
)


def judge(answer: Any) -> Finding:
    """Check values and hazards on every case, how even the blocks' shares are, and budgets."""
    trials = kernels_on_trial.judge(answer, CASES, Tiling.square, grid)
    if isinstance(trials, Finding):
        return _few_threads(answer, trials)
    found = _within_budgets(trials)
    if found.diagnosis == "passed" and kernels_on_trial.in_turns(trials[-1].report):
        return replace(found, diagnosis="lanes-in-turns")
    if found.diagnosis == "passed":
        many = kernels_on_trial.judge(answer, MANY_TILES, Tiling.square, grid)
        found = many if isinstance(many, Finding) else found
    return timed.beside(found, answer, build_persistent, EXAMPLE)


def _few_threads(answer: Any, found: Finding) -> Finding:
    """The finding, or that a few threads work where this is why a kernel comes to no end."""
    if found.diagnosis != "never-ends":
        return found
    trials = kernels_on_trial.judge(answer, CASES[:SMALL], Tiling.square, grid)
    small = found if isinstance(trials, Finding) else kernels_on_trial.within_budgets(trials)
    return small if small.diagnosis == "few-threads-multiply" else found


def _within_budgets(trials: list[Trial]) -> Finding:
    """Find the first budget that a right kernel does not keep."""
    last = trials[-1]
    across, down = last.tiling.grid(last.run.case.problem)
    (bm, bn, _), launch = last.tiling.block, blocks(last.run.case.problem)
    most = -(-across * down // launch)  # tiles of a block, where they are dealt evenly
    stored = last.report.shares.of("store", "C")
    taken = stored.sum(axis=1) / (kernels_on_trial.FLOAT * bm * bn)
    facts = (
        ("Blocks, tiles", f"{launch} blocks, {across * down} tiles of {bm}×{bn}"),
        ("Tiles that a block takes", f"{taken.min():g} … {taken.max():g}; budget {most}"),
    )
    found = kernels_on_trial.within_budgets(trials, facts, own=most)
    # A block whose threads are uneven has its own diagnosis; here whole blocks are compared.
    if found.diagnosis in ("passed", "few-threads-multiply") and taken.max() > most:
        of_threads = stored.reshape(launch, -1)
        if np.all(of_threads.max(axis=1) * of_threads.shape[1] == of_threads.sum(axis=1)):
            return replace(found, diagnosis="blocks-uneven")
    return found


_LAST = CASES[-1].problem

TASK = Task(
    name="05.3",
    title="Blocks that stay",
    section="chapter 05, Must every tile be a block?",
    asked="build_persistent(T) returns a kernel that computes C ← alpha·A·B + beta·C with any "
    "number of blocks, none of which takes more tiles than an even deal gives it.",
    prompt=f"""
    The launch has fewer blocks than tiles, as many as fill the GPU once: `cuda.gridDim.x` of them,
    all along x. Let each block compute one tile of C after the other. Tiles are numbered row by
    row; you decide which block takes which.

    Any m, n, k ≥ 1, any alpha and beta, and any number of blocks, also more than there are tiles.
    The budget at {_LAST}, T = {CASES[-1].tile}, with {blocks(_LAST)} blocks: no block takes more
    tiles than an even deal gives it, and each tile loads what it needs once.
    """,
    judge=judge,
    answers=(build_persistent,),
    diagnoses={
        **KERNEL,
        "not-attempted": Diagnosis(
            "The skeleton is unchanged.",
            "With 3 blocks and 8 tiles, which tiles does block 0 take, and which block 1?",
            "```python\ntile = cuda.blockIdx.x\nwhile tile < ...:\n    row = tile // ... * T + y\n"
            "    ...\n    tile += ...\n```",
        ),
        "not-written": Diagnosis(
            "Some elements of C are never stored: no block takes their tile.",
            "Which tiles does the last block take, and who takes those after the first "
            "`gridDim.x`?",
            "```python\ntile += ...    # as far as there are blocks\n```",
        ),
        "two-writers": Diagnosis(
            "Two threads write one element: two blocks take the same tile, or two threads of a "
            "block the same place in it.",
            "Which tiles do blocks 0 and 1 take, in their order?",
            "```python\ntile = cuda.blockIdx.x    # first\ntile += cuda.gridDim.x    # then\n```",
        ),
        "right-in-part": Diagnosis(
            "Some tiles are right and others are not. Often the first tile of each block is right, "
            "and its later ones go on with what the first has left.",
            "What does the running sum hold when a block begins its second tile?",
            "```python\nwhile tile < ...:\n    acc = ...\n    for start in range(0, k, T):\n```",
        ),
        "blocks-uneven": Diagnosis(
            "The result is right, but some blocks take more tiles than an even deal gives them, "
            "while others have none left.",
            "How many tiles does each block take, and how many would it be if the SMs were to end "
            "together?",
            "With b blocks, block i takes the tiles i, i + b, i + 2b, …",
        ),
        "few-threads-multiply": Diagnosis(
            "The result is right, but a few threads of a block compute and the others look on.",
            "How many elements of one tile does each thread compute?",
            "Each thread has one element of each tile: no loop over x or y.",
        ),
    },
    praise="A block that stays computes tile after tile, and any number of blocks will do.",
)
