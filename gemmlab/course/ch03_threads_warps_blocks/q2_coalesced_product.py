"""Exercise 03.2: the product whose lanes stand side by side, within a budget of sectors."""

from dataclasses import replace
from typing import Any

import numpy as np
from numpy import float32

from gemmlab import kernels
from gemmlab.course.judging import (
    FAILING,
    Diagnosis,
    Finding,
    Task,
    arrays_on_trial as trial,
    drawing,
    matrices,
    timed,
)
from gemmlab.course.judging.launches import Launch
from gemmlab.problem import Gemm
from gemmlab.simt import Report, cuda
from gemmlab.tiling import Tiling

# (m, n, k, block), smallest first; the traffic of the last one is counted.
CASES = (
    (1, 1, 1, (1, 1)),
    (2, 3, 5, (4, 4)),
    (5, 2, 1, (4, 4)),
    (9, 7, 3, (4, 2)),
    (20, 33, 6, (16, 16)),
    (64, 32, 16, (16, 16)),
)
_M, _N, _K, _BLOCK = CASES[-1]
ELEMENT = np.dtype(np.float32).itemsize


def build_product():
    """The kernel that computes C ← AB, one element of C for each thread."""

    def kernel(A, B, C):
        m, k = A.shape
        n = B.shape[1]
        # Your thread's row and column of C; where C has them, their sum over k, stored once.
        # [answer]
        j, i = cuda.grid(2)
        if i < m and j < n:
            acc = float32(0)
            for p in range(k):
                acc += A[i, p] * B[p, j]
            C[i, j] = acc
        # [end]

    return kernel


def budget() -> int:
    """Sectors that the loads of the last case touch where lanes follow the columns of C."""
    counters = kernels.coalesced.work(Gemm(_M, _N, _K), Tiling((*_BLOCK, 1))).counters
    return counters["global_load_sectors"]


def launched(m: int, n: int, block: tuple[int, int]) -> tuple[int, int]:
    """Blocks enough for either choice: x along the columns of C, or along its rows."""
    side = max(m, n)
    return -(-side // block[0]), -(-side // block[1])


SIDE = 512
EXAMPLE = timed.of_product(
    SIDE, SIDE, SIDE, "blocks of 16×16",
    lambda a, b, c: Launch((), (SIDE // 16, SIDE // 16), (16, 16), (a, b, c)),
    ("A", "B", "C"),
)  # fmt: skip


def judge(answer: Any) -> Finding:
    """Check values, hazards and shares on every case and a fresh one; traffic of the largest."""
    rng = drawing.generator()
    middle = rng.integers(10, 20, 3).tolist()  # no shape of `CASES`, and one far larger side each
    far, few = rng.integers(150, 250, 3), rng.integers(3, 9, 3)
    shapes = [middle, *(np.roll([far[i], few[i], 3], i).tolist() for i in range(3))]
    anew = [(*shape, (8, 4)) for shape in shapes]
    largest = trial.of_cases(answer, ["A", "B", "C"], _one, CASES, *anew)
    if isinstance(largest, Finding):
        return largest
    return timed.beside(_traffic(*largest), answer, build_product, EXAMPLE)


def _one(sizes: tuple[int, int, int, tuple[int, int]], seed: int) -> trial.Asked:
    """Return a case in words, its launch, and what says what is wrong with it."""
    m, n, k, block = sizes
    rng = np.random.default_rng(seed)
    grid = launched(m, n, block)
    case = f"m={m}, n={n}, k={k}, block (x, y) = {block}, grid (x, y) = {grid}"
    # Fractions of 12 bits times short ones: every sum is exact, in float32 alone.
    a = ((2 * rng.integers(1024, 2048, (m, k)) + 1) / 1024).astype(np.float32)
    b = (rng.choice([-2.5, -1, 1.5, 2], (k, n))).astype(np.float32)
    expected = a @ b
    c = np.full((m, n), np.nan, np.float32)

    def wrong(report: Report) -> Finding | None:
        found = trial.hazard(report, case) or trial.different("C", expected, c, case)
        if found is None:
            return _shared_out(report, m * n, case)
        diagnosis = found.diagnosis
        if diagnosis == "outside" and trial.joins_with_or(report):
            diagnosis = "guard-or"
        if diagnosis == "wrong-values":
            diagnosis = _why(a, b, c, expected)
        return replace(found, diagnosis=diagnosis)

    return case, Launch((), grid, block, (a, b, c)), wrong


def _why(a: np.ndarray, b: np.ndarray, c: np.ndarray, expected: np.ndarray) -> str:
    """Name the mistake that gives just this result, else the pattern of what is wrong."""
    if np.isnan(c[c != expected]).all():
        return "not-written"
    if np.array_equal(c, a[:, -1:] @ b[-1:]):
        return "last-product-only"
    cut = np.trunc(a) @ b, a @ np.trunc(b), np.trunc(a) @ np.trunc(b), np.trunc(expected)
    if any(np.array_equal(c, x) for x in cut):
        return "whole-numbers-only"
    return matrices.pattern(expected, c)


def _shared_out(report: Report, elements: int, case: str) -> Finding | None:
    """Whether each element of C has a thread of its own."""
    threads = len(np.flatnonzero(report.shares.of("store", "C")))
    if threads >= elements:
        return None
    facts = ((FAILING, case), ("Stored", f"{elements} elements, by {threads} threads"))
    return Finding("few-threads-work", facts, {"threads": threads, "elements": elements})


def _traffic(report: Report, case: str) -> Finding:
    """Whether C is stored once, and each product loads its two operands once, in few sectors."""
    counters = report.counters
    requests, sectors = counters["global_load_requests"], counters["global_load_sectors"]
    loads, needed = counters["global_load_bytes"] // ELEMENT, 2 * _M * _N * _K
    stores = counters["global_store_bytes"] // ELEMENT
    facts = (
        ("Values", f"right in all {len(CASES)} cases and in four drawn anew, with no hazard"),
        ("Case", case),
        ("Sectors loaded", f"{sectors:,}; budget {budget():,}"),
        ("Sectors per request", f"{sectors / max(requests, 1):.3g}"),
        ("Elements loaded", f"{loads:,}; two for each product: {needed:,}"),
        ("Elements stored", f"{stores:,}; C has {_M * _N:,}"),
    )
    details = {"sectors": sectors, "budget": budget(), "loads": loads, "stores": stores}
    if stores > _M * _N:
        return Finding("stored-again", facts, details)
    if sectors <= budget():
        return Finding("passed", facts, details)
    return Finding("loaded-again" if loads > needed else "sectors-above-budget", facts, details)


TASK = Task(
    name="03.2",
    title="A product whose lanes stand side by side",
    section="chapter 03, One warp, two loads",
    asked="build_product() returns a kernel (A, B, C) that computes C ← AB, one element a thread, "
    "and whose loads touch no more sectors than the budget.",
    prompt=f"""
    Write the kernel of $C \\leftarrow AB$, one element of $C$ for each thread, for any shape and
    block. You choose what `x` and `y` are: the launch has blocks enough for either choice.

    The check counts the sectors of all loads for m = {_M}, n = {_N}, k = {_K} and blocks of
    {_BLOCK[0]}×{_BLOCK[1]}. *naive* touches more than four times the budget.
    Check it with `q2.check(build_product)`.
    """,
    judge=judge,
    answers=(build_product,),
    diagnoses={
        "whole-numbers-only": trial.WHOLE_NUMBERS_ONLY,
        "not-attempted": Diagnosis(
            "The skeleton is unchanged.",
            "Which row of A and which column of B does the thread of C[i, j] walk along?",
            "```python\n..., ... = cuda.grid(2)\nif ... and ...:\n    acc = float32(0)\n```",
        ),
        "sectors-above-budget": Diagnosis(
            "The result is right, but the lanes of a warp stand in different rows of A: each "
            "touches a sector of its own.",
            "Lanes follow x. Of A[i, p] and B[p, j]: which element changes from lane 0 to lane 1, "
            "and how far does its address move?",
            "Let the index that moves by one element follow x:\n\n"
            "```python\n..., ... = cuda.grid(2)    # x comes first\n```",
        ),
        "few-threads-work": Diagnosis(
            "The result is right, but some threads compute several elements of C, and others none.",
            "How many elements has C, and how many threads does the launch have?",
            "One loop, over p: rows and columns are what the threads are for.",
        ),
        "loaded-again": Diagnosis(
            "The result is right, but elements are loaded more often than products need them.",
            "How many steps does your thread take over k in all, and what does a step load?",
            "```python\nfor p in range(k):    # once\n    acc += A[..., ...] * B[..., ...]\n```",
        ),
        "stored-again": Diagnosis(
            "The result is right, but elements of C are stored more than once.",
            "How often does your thread store to C[...], and what would it need to store it once?",
            "```python\nacc += A[..., ...] * B[..., ...]    # the sum stays in a register\n```",
        ),
        "guard-or": Diagnosis(
            "The guard lets a thread through where one of its indices is inside; both have to be.",
            "For the thread that is named: which of its two indices is inside, and which is not?",
            "```python\nif i < ... and j < ...:\n```",
        ),
        "outside": Diagnosis(
            "A thread beyond the edge of C, or a step beyond k, is let through.",
            "Which limit has each of your three indices, and which condition checks it?",
            "```python\nif i < ... and j < ...:\n    for p in range(...):\n```",
        ),
        "two-writers": Diagnosis(
            "Two threads compute the same element of C.",
            "Which part of the thread's place is missing from your row or column?",
            "```python\n..., ... = cuda.grid(2)\n```",
        ),
        "not-written": Diagnosis(
            "Some elements of C are never stored.",
            "Which thread is in charge of the element that is named, and what stops it?",
            "```python\nif i < m and j < ...:\n    C[i, j] = ...\n```",
        ),
        "last-product-only": Diagnosis(
            "C holds the last product of each sum: each step replaces the one before.",
            "What does your sum hold after the second step?",
            "```python\nacc ... A[i, p] * B[p, j]\n```",
        ),
    },
    praise="Lanes follow x. With x along the columns of C, a request of B is whole sectors and one "
    "of A is a broadcast.",
)
