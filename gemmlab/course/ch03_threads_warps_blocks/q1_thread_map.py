"""Exercise 03.1: which thread works on which element, and how many blocks there have to be."""

from dataclasses import replace
from typing import Any

import numpy as np

from gemmlab.course.judging import (
    FAILING,
    Diagnosis,
    Finding,
    Task,
    arrays_on_trial as trial,
    drawing,
    guard,
    matrices,
    timed,
)
from gemmlab.course.judging.launches import Launch
from gemmlab.course.judging.source import short
from gemmlab.device import RECORDED, device
from gemmlab.simt import Report, cuda

# (m, n, block), smallest first: square ones, one block, whole blocks, ragged ones.
CASES = (
    (1, 1, (1, 1)),
    (2, 2, (2, 2)),
    (2, 3, (4, 4)),
    (3, 4, (4, 1)),
    (4, 8, (4, 2)),
    (5, 3, (2, 4)),
    (9, 7, (4, 4)),
    (20, 70, (32, 8)),
)
MOST = 1_000  # times the blocks that are needed: more are not launched


def build_transpose():
    """The kernel that stores alpha times the transpose of A."""

    def kernel(alpha, A, B):
        m, n = A.shape
        # The row and the column of A that this thread is in charge of.
        # [answer]
        row = cuda.blockIdx.y * cuda.blockDim.y + cuda.threadIdx.y
        col = cuda.blockIdx.x * cuda.blockDim.x + cuda.threadIdx.x
        # [end]

        # Where A has such an element: multiply it by alpha, and store it where it belongs in B.
        # [answer]
        if row < m and col < n:
            B[col, row] = alpha * A[row, col]
        # [end]

    return kernel


def grid(m, n, block):
    """The number of blocks along x and y."""
    # As many blocks as it takes, and no more.
    # [answer]
    return -(-n // block[0]), -(-m // block[1])
    # [end]


def _example() -> Launch:
    """A launch that keeps an H200 busy."""
    a, b = (np.zeros((SIDE, SIDE), np.float32) for _ in range(2))
    return Launch((), (SIDE // 32, SIDE // 8), (32, 8), (np.float32(2), a, b))


SIDE = 4096
EXAMPLE = timed.Example(
    ["alpha", "A", "B"],
    _example,
    f"{SIDE}×{SIDE} elements, blocks of 32×8",
    2 * 4 * SIDE**2 / device(RECORDED).dram_bandwidth,
)


def judge(answer: Any, blocks: Any) -> Finding:
    """The smallest case that is wrong: the grid's form, hazards, values, blocks too many."""
    rng = drawing.generator()
    cases = (*CASES, *_drawn_anew(rng))
    fresh = len(cases) - len(CASES)
    seeds = (*range(len(CASES)), *map(int, rng.integers(1 << 30, size=fresh)))
    asked: list[trial.Asked] = []
    no_launch: Finding | None = None
    for case, outcome, seed in zip(cases, guard.attempts(blocks, cases), seeds, strict=False):
        one = _one(outcome, case, seed)
        if isinstance(one, Finding):
            no_launch = one
            break
        asked.append(one)
    launches = [(case, launch) for case, launch, _ in asked]
    reports = trial.tried(answer, ["alpha", "A", "B"], launches) if launches else ()
    for number, ((_, _, wrong), report) in enumerate(zip(asked, reports, strict=False)):
        found = report if isinstance(report, Finding) else wrong(report)
        if found is not None:
            return found if number < len(CASES) else found.anew
    if no_launch is not None:
        return no_launch if len(asked) < len(CASES) else no_launch.anew
    text = f"right in all {len(CASES)} cases and in {fresh} drawn anew, with no hazard"
    return timed.beside(Finding("passed", (("Values", text),)), answer, build_transpose, EXAMPLE)


def _drawn_anew(rng: np.random.Generator) -> list[tuple[int, int, tuple[int, int]]]:
    """A matrix that is taller, and one that is wider, than those of all `CASES`."""
    few, far = rng.integers(3, 9, 2), rng.integers(300, 500, 2)
    blocks = [(int(2**x), int(2**y)) for x, y in rng.integers(1, 5, (2, 2))]
    return [(int(far[0]), int(few[0]), blocks[0]), (int(few[1]), int(far[1]), blocks[1])]


def _one(outcome: guard.Outcome, sizes: tuple[Any, ...], seed: int) -> trial.Asked | Finding:
    """Return a case in words, its launch and what is wrong with it, or why there is no launch."""
    m, n, block = sizes
    if outcome.fault:
        return outcome.fault
    size = outcome.value
    if not _is_grid(size):
        text = f"grid({m}, {n}, {block}) returned {short(size)}; use two whole numbers (x, y)"
        return Finding("wrong-type", (("Found", text),))
    size = tuple(int(s) for s in size)
    case = f"A is {m}×{n}, block (x, y) = {block}, grid (x, y) = {size}"
    launched = ("Launched", f"{size[0]} by {size[1]} blocks of {block[0]} by {block[1]} threads")
    needed = {(-(-n // block[0]), -(-m // block[1])), (-(-m // block[0]), -(-n // block[1]))}
    down = {(n // block[0], m // block[1]), (m // block[0], n // block[1])}
    short_of = size in down - needed
    if min(size) < 1:
        diagnosis = "grid-rounded-down" if short_of else "grid-empty"
        return Finding(diagnosis, ((FAILING, case), launched), {"grid": size})
    too_large = size[0] * size[1] > max(x * y for x, y in needed)
    if size[0] * size[1] > MOST * max(x * y for x, y in needed):
        return Finding("grid-too-large", ((FAILING, case), launched), {"grid": size})

    rng = np.random.default_rng(seed)
    # Fractions, and more bits than float16 has; products with alpha are exact in float32.
    a = (rng.permutation(np.arange(m * n)) + 3.625).astype(np.float32).reshape(m, n)
    alpha = np.float32(rng.integers(2, 8) + 0.5)
    expected = alpha * a.T
    b = np.full((n, m), np.nan, np.float32)

    def wrong(report: Report) -> Finding | None:
        found = trial.hazard(report, case)
        if found:
            wrong_join = found.diagnosis == "outside" and trial.joins_with_or(report)
            diagnosis = "guard-or" if wrong_join else found.diagnosis
            return replace(found, diagnosis=diagnosis, details={**found.details, "grid": size})
        found = trial.different("B", expected, b, case)
        if found:
            facts, details = (*found.facts, launched), {**found.details, "grid": size}
            return Finding(_why(alpha, a, b, short_of), facts, details)
        if too_large:
            return Finding("grid-too-large", ((FAILING, case), launched), {"grid": size})
        return _shared_out(report, (m, n), (size[0] * block[0], size[1] * block[1]), case)

    return case, Launch((), size, block, (alpha, a, b)), wrong


def _shared_out(
    report: Report, shape: tuple[int, int], threads: tuple[int, int], case: str
) -> Finding | None:
    """Whether each thread stores one element; as many as it has to, where the grid goes round."""
    (m, n), (x, y) = shape, threads
    most = max(-(-n // x) * -(-m // y), -(-m // x) * -(-n // y))
    stored = int(report.shares.of("store", "B").max()) // 4
    if stored <= most:
        return None
    facts = (
        (FAILING, case),
        ("Stored by one thread", f"{stored} elements; its share is {most}"),
    )
    return Finding("few-threads-work", facts, {"stored": stored, "share": most})


def _is_grid(size: Any) -> bool:
    whole = (int, np.integer)
    return (
        isinstance(size, (tuple, list))
        and len(size) == 2
        and all(isinstance(s, whole) and not isinstance(s, bool) for s in size)
    )


def _why(alpha: np.float32, a: np.ndarray, b: np.ndarray, short_of: bool) -> str:
    """Name the mistake that gives just this result, else the pattern of what is wrong."""
    missing = np.isnan(b)
    if missing.any():
        return "grid-rounded-down" if short_of else "not-written"
    if np.array_equal(b, a.T):
        return "alpha-dropped"
    if a.shape == b.shape and np.array_equal(b, alpha * a):
        return "not-transposed"
    cut = np.trunc(alpha) * a, alpha * np.trunc(a), np.trunc(alpha * a)
    if any(np.array_equal(b, x.T) for x in cut):
        return "whole-numbers-only"
    return matrices.pattern(alpha * a.T, b)


TASK = Task(
    name="03.1",
    title="The thread map",
    section="chapter 03, The last block",
    asked="build_transpose() returns a kernel (alpha, A, B) that stores alpha·Aᵀ in B, and "
    "grid(m, n, block) the number of blocks to launch it with, as (x, y).",
    prompt="""
    A is m×n and B is n×m. Give each element of A a thread: compute the thread's row and column from
    `cuda.blockIdx`, `cuda.blockDim` and `cuda.threadIdx`, and store `alpha * A[row, col]` at the
    transposed place of B. The block may have any size, `block = (x, y)`, and need not divide
    anything. `grid` says how many blocks there have to be, and no more than that.

    `q1.check(build_transpose, grid)` launches it for several sizes, most of them ragged.
    """,
    judge=judge,
    answers=(build_transpose, grid),
    diagnoses={
        "not-attempted": Diagnosis(
            "The skeleton is unchanged.",
            "How many threads stand before the first thread of block (2, 0)?",
            "```python\ncol = cuda.blockIdx.x * ... + cuda.threadIdx.x\n```",
        ),
        "grid-rounded-down": Diagnosis(
            "The number of blocks is rounded down, so that the last, incomplete block is missing.",
            "How many blocks of 4 threads do 9 elements need?",
            "⌈n / x⌉ in whole numbers is `(n + x - 1) // x`, or `-(-n // x)`.",
        ),
        "grid-empty": Diagnosis(
            "A grid needs at least one block in each direction.",
            "What does your formula give where the block is larger than the matrix?",
            "⌈n / x⌉ in whole numbers is `(n + x - 1) // x`, or `-(-n // x)`.",
        ),
        "grid-too-large": Diagnosis(
            "The result is right, but some blocks have nothing to do: the number of blocks is "
            "rounded up where the block divides the matrix, too.",
            "How many blocks of 4 threads do 8 elements need?",
            "Dividing and adding 1 is not rounding up: `-(-n // x)`.",
        ),
        "guard-or": Diagnosis(
            "The guard lets a thread through where one of its indices is inside; both have to be.",
            "For the thread that is named: which of its two indices is inside, and which is not?",
            "```python\nif row < ... and col < ...:\n```",
        ),
        "outside": Diagnosis(
            "A thread beyond the edge is let through: the grid is rounded up, so the last blocks "
            "hang over the matrix, and each index needs its own limit.",
            "How many rows does A have and how many columns, and which of your indices is which?",
            "```python\nif row < ... and col < ...:\n```",
        ),
        "two-writers": Diagnosis(
            "Two threads are in charge of the same element: they compute the same row and column.",
            "The two threads differ in their block or in their place in it. Which of the two is "
            "missing from your index?",
            "```python\nrow = cuda.blockIdx.y * ... + cuda.threadIdx.y\n```",
        ),
        "not-written": Diagnosis(
            "Some elements have no thread: what the kernel takes for x, the grid counts along y, "
            "or the guard stops too many.",
            "Which block and which thread should be in charge of the element that is named?",
            "If x runs along a row of A, there are ⌈n / x⌉ blocks along x and ⌈m / y⌉ along y.",
        ),
        "not-transposed": Diagnosis(
            "A is scaled but not transposed.",
            "Where in B does A[0, 1] belong?",
            "```python\nB[..., ...] = alpha * A[row, col]\n```",
        ),
        "whole-numbers-only": trial.WHOLE_NUMBERS_ONLY,
        "wrong-values": Diagnosis(
            "Every element of A has its thread, but what is stored in B is not alpha times it.",
            "For the element that is named: which element of A belongs there, and what is it "
            "multiplied by?",
            "```python\nB[col, row] = alpha * A[..., ...]\n```",
        ),
        "places-mixed": Diagnosis(
            "B holds the right values in the wrong order.",
            "Which element of A belongs to B[0, 1], and from where does your thread take it?",
            "```python\nB[col, row] = alpha * A[row, ...]\n```",
        ),
        "few-threads-work": Diagnosis(
            "The result is right, but a few threads do the work of all: a GPU is fast because "
            "each of its threads has an element.",
            "How many elements does the busiest thread store, and what do the others do meanwhile?",
            "Row and column come from the thread's place alone, with no loop over rows or columns.",
        ),
        "alpha-dropped": Diagnosis(
            "A is transposed but not multiplied by alpha.",
            "What should B hold where A holds 1?",
            "```python\nB[...] = ... * A[row, col]\n```",
        ),
    },
    praise="Block index times block size plus thread index, a grid that is rounded up, and a guard "
    "for the threads that are too many.",
)
