"""Exercise 03.3: several elements a thread, without giving each thread a piece of its own."""

from __future__ import annotations

from typing import Any

import numpy as np

from gemmlab import cuda
from gemmlab.exercises import arrays_on_trial as trial
from gemmlab.exercises.exercise import Task
from gemmlab.exercises.verdict import Diagnosis, Finding
from gemmlab.model.transactions import SECTOR

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


def judge(answer: Any) -> Finding:
    """Values and hazards on every case, then bytes and sectors of the largest."""
    report, case, size = None, "", 0
    for size, T, block in CASES:
        kernel = trial.built(answer, ["a", "X", "Y"], T)
        if isinstance(kernel, Finding):
            return kernel
        grid = -(-size // (T * block))
        case = f"{size} elements, T={T}, {grid} blocks of {block} threads"
        x = np.arange(1, size + 1, dtype=np.float32)
        before = np.arange(size, 0, -1, dtype=np.float32)
        y, a = before.copy(), np.float32(2)
        report = trial.launch(kernel, (grid,), (block,), case, a, x, y)
        if isinstance(report, Finding):
            return report
        found = trial.hazard(report, case) or trial.different("Y", a * x + before, y, case)
        if found:
            missing = found.diagnosis == "wrong-values" and _untouched(before, y, a * x + before)
            diagnosis = "not-written" if missing else found.diagnosis
            return Finding(diagnosis, found.facts, found.details)
    return _traffic(report.counters, case, size)


def _untouched(before: np.ndarray, now: np.ndarray, expected: np.ndarray) -> bool:
    wrong = now != expected
    return bool((now[wrong] == before[wrong]).all())


def _traffic(counters: Any, case: str, size: int) -> Finding:
    """Whether each element was asked for once, and in whole sectors."""
    budget = 3 * 4 * size  # X and Y are loaded, Y is stored
    asked = counters["global_load_bytes"] + counters["global_store_bytes"]
    sectors = counters["global_load_sectors"] + counters["global_store_sectors"]
    requests = counters["global_load_requests"] + counters["global_store_requests"]
    facts = (
        ("Values", f"right in all {len(CASES)} cases, with no hazard"),
        ("Case", case),
        ("Global sectors", f"{sectors}; budget {budget // SECTOR}"),
        ("Sectors per request", f"{sectors / requests:g}"),
        ("Bytes that threads asked for", f"{asked} B; each element once: {budget} B"),
    )
    details = {"sectors": sectors, "budget": budget // SECTOR, "asked": asked}
    if asked > budget:
        return Finding("asked-twice", facts, details)
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
