"""Exercise 10.3: Stream-K, whose blocks share the steps of all tiles evenly."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy import float32

from gemmlab.course.judging import Diagnosis, Finding, Task, kernels_on_trial, timed
from gemmlab.course.judging.diagnoses import KERNEL
from gemmlab.course.judging.kernels_on_trial import Form, Trial
from gemmlab.course.judging.launches import Launch
from gemmlab.course.judging.matrices import Case, case, long_and_thin
from gemmlab.model.schedule import Piece, stream_k
from gemmlab.problem import Gemm
from gemmlab.simt import cuda
from gemmlab.tiling import Tiling

CASES = (
    case(1, 1, 1, tile=2),
    case(2, 3, 2, tile=2),
    case(3, 5, 3, alpha=2, beta=0.5, tile=2),
    case(9, 6, 5, alpha=-1, beta=2, tile=4),
    Case(Gemm(6, 11, 17), tile=4, large=True),
    case(12, 10, 13, beta=1, tile=4),
    long_and_thin(4),
    case(16, 16, 40, tile=8),
)


def blocks(problem: Gemm) -> int:
    """Blocks of the launch, 1 to 7: in some cases more than steps, in most fewer than tiles.

    Where C is large there are 7 more.
    """
    return 1 + (problem.m + problem.n + problem.k) % 7 + (7 if problem.m > 16 else 0)


def grid(tiling: Tiling, problem: Gemm) -> tuple[int, int]:
    """The launch: blocks along x alone, whatever the tiles are."""
    return blocks(problem), 1


def build_stream_k(T):
    """The kernel for tiles of T×T elements and any number of blocks; C holds beta·C before."""

    def kernel(alpha, A, B, C):
        As = cuda.shared.array((T, T), float32)
        Bs = cuda.shared.array((T, T), float32)
        m, n = C.shape
        k = A.shape[1]
        x = cuda.threadIdx.x
        y = cuda.threadIdx.y
        across = (n + T - 1) // T  # tiles of C along n
        steps = (k + T - 1) // T  # of each tile
        total = (m + T - 1) // T * across * steps  # the steps of all tiles, in one row

        # This block's share of the row: from step `at` up to, not including, `end`.
        # [answer] at = end = ...
        at = cuda.blockIdx.x * total // cuda.gridDim.x
        end = (cuda.blockIdx.x + 1) * total // cuda.gridDim.x
        # [end]
        while at < end:
            # Which tile does `at` lie in, and which of its steps, `first` up to `last`, are in
            # the share? Where in C is this thread's element: `row` and `col`?
            # [answer] row = col = first = last = ...
            tile = at // steps
            first = at % steps
            last = min(steps, first + end - at)
            row = tile // across * T + y
            col = tile % across * T + x
            # [end]
            acc = float32(0)
            for p in range(first * T, last * T, T):
                As[y, x] = A[row, p + x] if row < m and p + x < k else float32(0)
                Bs[y, x] = B[p + y, col] if p + y < k and col < n else float32(0)
                cuda.syncthreads()
                for q in range(T):
                    acc += As[y, q] * Bs[q, x]
                cuda.syncthreads()
            if row < m and col < n:
                cuda.atomic.add(C, (row, col), alpha * acc)
            at += last - first

    return kernel


def _arguments(one: Case) -> tuple[Any, ...]:
    """α, A, B, and a C that a launch before has scaled by β."""
    p, (a, b, c) = one.problem, one.operands()
    scaled = c * c.dtype.type(p.beta) if p.beta != 0 else np.zeros_like(c)
    return c.dtype.type(p.alpha), a, b, scaled


def _telling(trial: Trial) -> str:
    """The diagnosis that a wrong C speaks for, by the steps that were added to it."""
    _, a, b, after = trial.launched.arguments
    _, _, _, before = _arguments(trial.run.case)
    problem = trial.run.case.problem
    added = (after.astype(float) - before) / problem.alpha
    if problem.alpha % 1 and np.array_equal(
        added * problem.alpha, int(problem.alpha) * (a.astype(float) @ b)
    ):
        return "whole-numbers-only"
    if not added[trial.run.wrong].any():
        return "steps-left-out"
    of_all = range(2, blocks(problem) + 1)
    if any(np.array_equal(added, times * (a.astype(float) @ b)) for times in of_all):
        return "counted-again"
    instead = {
        "begins-at-zero": lambda piece: (0, piece.last),
        "ends-with-the-tile": lambda piece: (piece.first, piece.of),
    }
    for name, steps in instead.items():
        if np.array_equal(added, _added(trial, a, b, steps)):
            return name
    return ""


def _added(
    trial: Trial, a: np.ndarray, b: np.ndarray, steps: Callable[[Piece], tuple[int, int]]
) -> np.ndarray:
    """The C that results if the blocks take other `steps` of each piece."""
    problem, tiling, tile = trial.run.case.problem, trial.tiling, trial.run.case.tile
    across, down = tiling.grid(problem)
    sums = np.zeros((problem.m, problem.n))
    for share in stream_k(across * down, tiling.steps(problem), blocks(problem)):
        for piece in share:
            i, j = (place * tile for place in divmod(piece.tile, across))
            first, last = (step * tile for step in steps(piece))
            rows, columns = a[i : i + tile, first:last], b[first:last, j : j + tile]
            sums[i : i + tile, j : j + tile] += rows.astype(float) @ columns
    return sums


FORM = Form(("alpha", "A", "B", "C"), _arguments, lambda case, after: after[-1], _telling)


EXAMPLE = timed.of_product(
    128, 128, 2048, "T = 16, 132 blocks",
    lambda a, b, c: Launch((16,), (132, 1), (16, 16), (float32(1), a, b, c)),
    ("alpha", "A", "B", "C"),
)  # fmt: skip


def judge(answer: Any) -> Finding:
    """Check values and hazards on every case, the steps of the busiest block, and budgets."""
    trials = kernels_on_trial.judge(answer, CASES, Tiling.square, grid, FORM)
    if isinstance(trials, Finding):
        return trials
    last = trials[-1]
    problem, tile = last.run.case.problem, last.run.case.tile
    across, down = last.tiling.grid(problem)
    steps, launch = last.tiling.steps(problem), blocks(problem)
    most = -(-across * down * steps // launch)
    taken = last.report.shares.of("load", "A").sum(axis=1) / (kernels_on_trial.FLOAT * tile * tile)
    whole = -(-across * down // launch) * steps  # where tiles are dealt out as they are
    of_tile = kernels_on_trial.FLOAT * tile * tile
    added = last.report.counters["global_atomic_bytes"] // of_tile
    added += int(last.report.shares.of("load", "C").sum()) // of_tile  # by a plain +=
    pieces = across * down + launch - 1  # tiles, and one more for each cut between shares
    facts = (
        ("Blocks, tiles", f"{launch} blocks, {across * down} tiles of {steps} steps each"),
        ("Tiles of sums added to C", f"{added}; budget {pieces}"),
        ("Steps of the busiest block", f"{taken.max():g}; budget {most}; whole tiles: {whole}"),
    )
    found = kernels_on_trial.within_budgets(trials, facts, own=across * down, of_c=pieces * of_tile)
    told = tuple(fact for fact in found.facts if fact[0] != "Stored by a thread")  # it adds
    found = replace(found, facts=told)
    # Where all is loaded once, a share that is too large is that of a block.
    uneven = found.diagnosis in ("passed", "few-threads-multiply", "few-threads-copy")
    if uneven and taken.max() > most:
        return replace(found, diagnosis="shares-uneven")
    length, fact = kernels_on_trial.deal(trials, _dealt)
    if uneven and length:
        told = (*found.facts, ("Steps that a block multiplies", fact))
        return replace(found, diagnosis="shares-uneven", facts=told)
    if found.diagnosis == "passed" and added > pieces:
        return replace(found, diagnosis="added-too-often")
    return timed.beside(found, answer, build_stream_k, EXAMPLE)


def _dealt(trial: Trial) -> tuple[int, int]:
    """The steps of all tiles, and the blocks that share them."""
    problem = trial.run.case.problem
    across, down = trial.tiling.grid(problem)
    return across * down * trial.tiling.steps(problem), blocks(problem)


_LAST = CASES[-1].problem

TASK = Task(
    name="10.3",
    title="Even shares",
    section="chapter 10, Must all parts be alike?",
    asked="build_stream_k(T) returns a kernel that adds alpha·A·B to C with any number of blocks, "
    "whose shares of all steps differ by one step at most.",
    prompt=f"""
    Each tile of C takes ⌈k/T⌉ steps. Lay the steps of all tiles in one row, tile after tile, and
    cut the row into `cuda.gridDim.x` shares. A share may begin in the middle of one tile and end in
    the middle of another; the block goes through it tile by tile, and adds what it has of each to
    C. (C holds beta·C already.) Copying, multiplying and adding are there: write which steps the
    block takes, and where they belong.

    Any m, n, k ≥ 1, and any number of blocks, also more than there are steps. The counter: at
    {_LAST}, T = {CASES[-1].tile}, with {blocks(_LAST)} blocks, no block takes more steps than an
    even deal gives it, and a block adds to C once for each tile that it has a piece of.
    """,
    judge=judge,
    answers=(build_stream_k,),
    diagnoses={
        **KERNEL,
        "not-attempted": Diagnosis(
            "The skeleton is unchanged.",
            "5 tiles of 8 steps, 4 blocks: with which step of which tile does block 1 begin?",
            "```python\nat = cuda.blockIdx.x * total // ...\nend = ...\nwhile at < end:\n"
            "    tile = at // steps\n    first = ...\n    last = min(..., ...)\n```",
        ),
        "steps-left-out": Diagnosis(
            "Some elements of C got nothing: no share has the steps of their tile.",
            "Where does the last share end, and where does each of the others begin?",
            "```python\nend = (cuda.blockIdx.x + 1) * total // cuda.gridDim.x    # the next one's "
            "at\n```",
        ),
        "counted-again": Diagnosis(
            "Each product is counted several times: the shares overlap.",
            "Which steps has block 0, and which block 1?",
            "A share ends where the next one begins: `end` of block b is `at` of block b + 1.",
        ),
        "begins-at-zero": Diagnosis(
            "A block that begins in the middle of a tile counts the steps before it as well.",
            "A share begins at step 10, and tiles have 8 steps. How many steps of tile 1 lie "
            "before it, and who takes them?",
            "```python\nfirst = at % ...    # steps of the tile that lie before `at`\n```",
        ),
        "ends-with-the-tile": Diagnosis(
            "A block goes on to the end of a tile, beyond the end of its share.",
            "A share ends at step 10, and tiles have 8 steps. How many of tile 1 does it have?",
            "```python\nlast = min(steps, first + ...)    # what is left of the share\n```",
        ),
        "added-too-often": Diagnosis(
            "The result is right and the shares are even, but a block adds to the same tile "
            "several times: its share of the tile is in pieces.",
            "How many additions does each element of C get, and how many blocks share its tile?",
            "```python\nlast = min(steps, ...)    # all steps of the tile that it has\n```",
        ),
        "shares-uneven": Diagnosis(
            "The result is right, but some blocks take more steps than an even deal gives them, "
            "and the launch is done when they are. A step that multiplies zeros is one, too.",
            "How many steps does the busiest block take, and how many would it be if a share could "
            "end in the middle of a tile?",
            "Multiply before you divide: block · total // blocks is even to within one step.",
        ),
    },
    praise="Equal shares need no last wave: a tile is as divisible as its steps.",
)
