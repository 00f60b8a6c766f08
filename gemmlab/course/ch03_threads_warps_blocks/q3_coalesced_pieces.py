"""Exercise 03.3: several elements a thread, without giving each thread a piece of its own."""

from dataclasses import replace
from typing import Any

import numpy as np

from gemmlab.course.judging import (
    Diagnosis,
    Finding,
    Task,
    arrays_on_trial as trial,
    drawing,
    matrices,
    timed,
)
from gemmlab.course.judging.launches import Launch
from gemmlab.device import RECORDED, device
from gemmlab.model.transactions import SECTOR
from gemmlab.simt import Report, cuda

# (elements, T, threads of a block), smallest first; the last one is also counted.
CASES = ((1, 1, 1), (3, 2, 2), (8, 2, 2), (13, 4, 2), (100, 4, 8), (2048, 8, 64))


def build_axpy(T):
    """The kernel in which each thread computes T elements of Y."""

    def kernel(a, X, Y):
        # [answer] first = cuda.grid(1) * T  # this thread's piece: T neighbours
        first = cuda.grid(1)
        # [end]
        for step in range(T):
            # [answer] i = first + step
            i = first + step * cuda.gridsize(1)
            # [end]
            if i < X.size:
                Y[i] = a * X[i] + Y[i]

    return kernel


def _example() -> Launch:
    """A launch that keeps an H200 busy, with the T that it is built for."""
    x, y = (np.zeros(LONG, np.float32) for _ in range(2))
    return Launch((8,), (LONG // (8 * 256),), (256,), (np.float32(2), x, y))


LONG = 1 << 24
EXAMPLE = timed.Example(
    ["a", "X", "Y"],
    _example,
    "2²⁴ elements, T = 8, blocks of 256",
    3 * 4 * LONG / device(RECORDED).dram_bandwidth,
)


def judge(answer: Any) -> Finding:
    """Check values and hazards on every case and a fresh one; bytes and sectors of the largest."""
    rng = drawing.generator()
    anew = int(rng.integers(2500, 4000)), 2 * int(rng.integers(5, 8)), 32
    largest = trial.of_cases(answer, ["a", "X", "Y"], _one, CASES, anew)
    if isinstance(largest, Finding):
        return largest
    return timed.beside(_traffic(*largest), answer, build_axpy, EXAMPLE)


def _one(sizes: tuple[int, int, int], seed: int) -> trial.Asked:
    """Return a case in words, its launch, and what says what is wrong with it."""
    size, T, block = sizes
    rng = np.random.default_rng(seed)
    grid = -(-size // (T * block))
    case = f"{size} elements, T={T}, {grid} blocks of {block} threads"
    # Fractions, of more bits than float16 has; each result is exact in float32.
    x, before = ((rng.permutation(size) + 3.625).astype(np.float32) for _ in range(2))
    x *= rng.choice([-1, 1], size)
    y, a = before.copy(), np.float32(rng.integers(-8, -2) + 0.5)
    expected = a * x + before

    def wrong(report: Report) -> Finding | None:
        found = trial.hazard(report, case) or trial.different("Y", expected, y, case)
        if found and found.diagnosis == "wrong-values":
            found = replace(found, diagnosis=_why(a, x, before, y))
        return found

    return case, Launch((T,), (grid,), (block,), (a, x, y)), wrong


def _why(a: np.float32, x: np.ndarray, before: np.ndarray, now: np.ndarray) -> str:
    """Name the mistake that gives just this result, else the pattern of what is wrong."""
    expected = a * x + before
    if np.array_equal(now, a * x):
        return "y-not-added"
    if np.array_equal(now, x + before):
        return "a-dropped"
    cut = np.trunc(a) * x + before, a * np.trunc(x) + before, np.trunc(a * x) + before
    if any(np.array_equal(now, y) for y in (*cut, np.trunc(expected))):
        return "whole-numbers-only"
    wrong = now != expected
    if (now[wrong] == before[wrong]).all():
        return "not-written"
    return matrices.pattern(expected[None], now[None])


def _traffic(report: Report, case: str) -> Finding:
    """Whether each element was asked for once, in whole sectors, and by all threads alike."""
    (size, T, _), counters = CASES[-1], report.counters
    budget = 3 * 4 * size  # X and Y are loaded, Y is stored
    asked = counters["global_load_bytes"] + counters["global_store_bytes"]
    sectors = counters["global_load_sectors"] + counters["global_store_sectors"]
    requests = counters["global_load_requests"] + counters["global_store_requests"]
    stored = int(report.shares.of("store", "Y").max()) // 4
    facts = (
        ("Values", f"right in all {len(CASES)} cases and in one drawn anew, with no hazard"),
        ("Case", case),
        ("Global sectors", f"{sectors}; budget {budget // SECTOR}"),
        ("Sectors per request", f"{sectors / requests:g}"),
        ("Bytes that threads asked for", f"{asked} B; each element once: {budget} B"),
        ("Stored by one thread", f"{stored} elements at most; T is {T}"),
    )
    details = {"sectors": sectors, "budget": budget // SECTOR, "asked": asked, "stored": stored}
    if asked > budget:
        return Finding("asked-twice", facts, details)
    if stored > T:
        return Finding("few-threads-work", facts, details)
    if sectors > budget // SECTOR:
        return Finding("sectors-above-budget", facts, details)
    return Finding("passed", facts, details)


_SIZE, _T, _BLOCK = CASES[-1]

TASK = Task(
    name="03.3",
    title="Pieces that lanes share",
    section="chapter 03, What does a load move?",
    asked="build_axpy(T) returns a kernel (a, X, Y) that computes Y ← a·X + Y, T elements a "
    "thread, and moves no more sectors than the elements fill.",
    prompt=f"""
    The kernel below is right. Each thread takes T neighbouring elements, as one would give each
    core of a CPU its own piece. On a GPU that is the wrong way round. Keep T elements a thread and
    the grid of ⌈size / (T · block)⌉ blocks, and change *which* elements a thread takes, so that the
    lanes of a warp stand side by side in every step.

    The budget for {_SIZE} elements, T = {_T} and blocks of {_BLOCK} threads: each sector of X is
    loaded once, each of Y is loaded once and stored once. `q3.check(build_axpy)` says how many
    sectors that is, and how many were counted.
    """,
    judge=judge,
    answers=(build_axpy,),
    diagnoses={
        "whole-numbers-only": trial.WHOLE_NUMBERS_ONLY,
        "not-attempted": Diagnosis(
            "The kernel is unchanged: right, but each lane walks through a piece of its own.",
            "In one step of the loop, which elements do lanes 0, 1, 2, … ask for?",
            "```python\nfirst = cuda.grid(1)\nfor step in range(T):\n"
            "    i = first + step * ...\n```",
        ),
        "sectors-above-budget": Diagnosis(
            "The result is right, but neighbouring lanes do not stand side by side: they touch "
            "more sectors than their elements fill.",
            "How far apart are the elements of lane 0 and lane 1 in the same step?",
            "Neighbouring threads differ by 1 in i; the steps of one thread are far apart:\n\n"
            "```python\ni = first + step * ...\n```",
        ),
        "asked-twice": Diagnosis(
            "The result is right, but some elements are loaded or stored more than once.",
            "How often does your loop body name X[i], and how often Y[i]?",
            "```python\nY[i] = a * X[i] + Y[i]\n```",
        ),
        "few-threads-work": Diagnosis(
            "The result is right, but some threads take more than T elements and others none.",
            "How many threads does the grid have, and how many of them does your loop keep busy?",
            "```python\nfor step in range(T):    # T elements, for each thread of the grid\n```",
        ),
        "wrong-values": Diagnosis(
            "Each element of Y has its thread, but what is stored is not a·X + Y.",
            "For the element that is named: what do X and Y hold there, and what does your line "
            "make of them?",
            "```python\nY[i] = a * X[...] + Y[...]\n```",
        ),
        "y-not-added": Diagnosis(
            "What Y held before is lost: Y is read as well as written.",
            "What does the + in a·X + Y add?",
            "```python\nY[i] = a * X[i] + ...\n```",
        ),
        "a-dropped": Diagnosis(
            "X is added as it is; it is to be multiplied by a first.",
            "What should Y grow by where X holds 1?",
            "```python\nY[i] = ... * X[i] + Y[i]\n```",
        ),
        "two-writers": Diagnosis(
            "Two threads are in charge of the same element.",
            "Where does block 0 end in your numbering, and where does block 1 start?",
            "Either the whole grid steps as one, by `cuda.gridsize(1)`, or each block has T times "
            "as many elements as threads and steps through them by `cuda.blockDim.x`.",
        ),
        "outside": Diagnosis(
            "A thread reads or writes beyond the end: the last block has threads too many.",
            "What is the largest i that your formula gives, and who stops it?",
            "```python\nif i < ...:\n```",
        ),
        "not-written": Diagnosis(
            "Some elements have no thread: the threads take fewer than T, or leave gaps.",
            "Write down which elements thread 0 takes, and which thread 1. Who takes the first "
            "one that is missing?",
            "```python\nfor step in range(T):\n    i = first + step * ...\n```",
        ),
    },
    praise="Neighbouring lanes, neighbouring elements, in every step: each sector is moved once. A "
    "thread's own elements may lie as far apart as they like.",
)
