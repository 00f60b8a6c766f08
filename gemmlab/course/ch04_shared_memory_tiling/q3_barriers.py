"""Exercise 04.3: which barrier, removed, lets which thread spoil what."""

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy import float32

from gemmlab.course.judging import Diagnosis, Finding, Task, guard
from gemmlab.course.judging.source import short
from gemmlab.simt import cuda, simulate

T = 4
STEPS = 3
ELEMENT = "As[1, 2]"
OLD, NEW = "too old", "too new"


def claims():
    """The two threads that race without each barrier, and the k from which on they do."""
    # [answer] first = ...  # (writer, reader, "too old" or "too new")
    first = ((2, 1), (0, 1), "too old")
    # [end]
    # [answer] second = ...  # (writer, reader, "too old" or "too new")
    second = ((2, 1), (3, 1), "too new")
    # [end]
    # [answer] smallest_k = ...
    smallest_k = 5
    # [end]
    return first, second, smallest_k


def without(barrier: str, writer: tuple | None = None, reader: tuple | None = None) -> Callable:
    """The tiled kernel with its "first" or "second" barrier removed, on a square tile of A.

    Where a writer and a reader are given, only they touch the tile after it was zeroed, so that
    a race, if there is one, is theirs.
    """
    first, second, everybody = barrier != "first", barrier != "second", writer is None
    (wx, wy), (rx, ry) = writer or (0, 0), reader or (0, 0)

    def kernel(A, C):
        As = cuda.shared.array((T, T), float32)
        x = cuda.threadIdx.x
        y = cuda.threadIdx.y
        k = A.shape[1]
        As[y, x] = 0
        cuda.syncthreads()
        acc = float32(0)
        for start in range(0, k, T):
            if everybody or (x == wx and y == wy):
                As[y, x] = A[y, start + x] if start + x < k else float32(0)
            if first:
                cuda.syncthreads()
            if everybody or (x == rx and y == ry):
                for p in range(T):
                    acc += As[y, p]
            if second:
                cuda.syncthreads()
        C[y, x] = acc

    return kernel


def races(kernel: Callable, k: int) -> list[tuple[tuple, str, str]]:
    """The races of one block: (threads as (x, y), the one at fault first; effect; message)."""
    a, c = np.ones((T, k), np.float32), np.zeros((T, T), np.float32)
    report = simulate(kernel, 1, (T, T), a, c, on_hazard="collect")
    return [
        (tuple(t[:2] for t in h.threads), OLD if h.ops[0] == "read" else NEW, h.message)
        for h in report.hazards
        if h.kind == "shared-race"
    ]


def judge(answer: Any) -> Finding:
    """Try each claim on the kernel in which only its two threads touch the tile."""
    outcome = guard.attempt(answer)
    if outcome.fault:
        return outcome.fault
    value = outcome.value
    if not isinstance(value, tuple) or len(value) != 3:
        fact = ("Found", f"{short(value)}; use first, second, smallest_k")
        return Finding("wrong-type", (fact,))
    for barrier, claim in zip(("first", "second"), value[:2], strict=True):
        found = _race(barrier, claim)
        if found is not None:
            return found
    return _smallest_k(value[2])


def _race(barrier: str, claim: Any) -> Finding | None:
    """Find what is wrong with the claim about one barrier; None where nothing is."""
    about = (("Claim", f"without the {barrier} barrier: {short(claim)}"),)
    details: dict[str, Any] = {"barrier": barrier, "claim": claim}
    if claim is Ellipsis:
        return Finding("not-attempted", ((f"The {barrier} barrier", "still ..."),))
    if claim is None:
        (threads, effect, message), *_ = races(without(barrier), STEPS * T)
        seen = (("Simulated", message),)
        return Finding("race-denied", about + seen, details | {"threads": threads})
    try:
        writer, reader, effect = claim
        pair = tuple(tuple(map(operator.index, thread)) for thread in (writer, reader))
        fits = all(len(t) == 2 and min(t) >= 0 and max(t) < T for t in pair)
        fits = fits and isinstance(effect, str) and effect in (OLD, NEW)
    except Exception:
        fits = False
    if not fits:
        text = f'use ((x, y), (x, y), "{OLD}" or "{NEW}") with x and y of 0 … {T - 1}, or None'
        return Finding("wrong-type", (*about, ("Found", text)), details)
    writer, reader = pair
    column, row = 2, 1  # of ELEMENT
    if writer != (column, row):
        swapped = writer == (row, column)
        wrote = f"thread {writer} writes As[{writer[1]}, {writer[0]}], not {ELEMENT}"
        diagnosis = "axes-swapped" if swapped else "not-the-writer"
        return Finding(diagnosis, (*about, ("Found", wrote)), details)
    if reader == writer:
        return Finding("one-thread", (*about, ("Found", "writer and reader are one")), details)
    found = races(without(barrier, writer, reader), STEPS * T)
    if not found:
        text = f"with {writer} and {reader} alone at the tile there is no race"
        return Finding("never-meet", (*about, ("Simulated", text)), details)
    threads, happens, message = found[0]
    details |= {"threads": threads, "effect": happens}
    if effect != happens:
        return Finding("effect-swapped", (*about, ("Simulated", message)), details)
    return None


def _smallest_k(k: Any) -> Finding:
    about = (("Claim", f"smallest k at which the second barrier matters: {short(k)}"),)
    details: dict[str, Any] = {"claim": k}
    if k is Ellipsis:
        return Finding("not-attempted", (("smallest_k", "still ..."),))
    if not isinstance(k, (int, np.integer)) or isinstance(k, bool) or not 1 <= k <= 64:
        text = (("Found", "use a whole number of 1 … 64"),)
        return Finding("wrong-type", about + text, details)
    kernel = without("second")
    if not races(kernel, int(k)):
        seen = (("Simulated", f"k = {k}: {-(-int(k) // T)} step, no race"),)
        return Finding("one-step-only", about + seen, details)
    smaller = [j for j in range(1, int(k)) if races(kernel, j)]
    if smaller:
        seen = (("Simulated", f"k = {smaller[0]}: a race already"),)
        return Finding("smaller-k-races", about + seen, details)
    message = races(kernel, int(k))[0][2]
    return Finding("passed", (("Simulated, second barrier removed", message),), details)


TASK = Task(
    name="04.3",
    title="Remove a barrier",
    section="chapter 04, What does each barrier hold back?",
    asked=f"Name for each barrier a writer and a reader of {ELEMENT} that race without it and what "
    "the reader gets, and the smallest k at which the second barrier matters.",
    prompt=f"""
    The tiled kernel, T = {T}: in each step thread (x, y) writes `As[y, x]`; then comes the
    **first** barrier; then it reads `As[y, 0]` … `As[y, {T - 1}]`; then comes the **second**.

    Look at the element `{ELEMENT}`. Remove one barrier at a time, and commit yourself:

    - `first`, `second`: `(writer, reader, effect)`. Writer and reader are two threads, as (x, y),
      that race over this element without that barrier; the effect is what the reader may get, a
      value that is `"{OLD}"` (of an earlier tile, or of none) or `"{NEW}"` (of the next tile).
      Write `None` if you hold that nothing can go wrong.
    - `smallest_k`: the smallest k at which removing the second barrier can do harm

    `q3.check(claims)` simulates the kernel without that barrier; only your two threads touch the
    tile.
    """,
    judge=judge,
    answers=(claims,),
    diagnoses={
        "not-attempted": Diagnosis(
            "A claim is still the gap of the skeleton.",
            "Which thread (x, y) writes As[y, x] when y = 1 and x = 2, and which ones read row 1?",
            'first = ((…, …), (…, 1), "…")',
        ),
        "race-denied": Diagnosis(
            "A barrier may seem needless because the threads of a warp often run together; "
            "nothing promises that they do.",
            "What keeps a slow thread and a fast one in the same step without this barrier?",
            "Name one thread that writes the element and one of another column that reads it.",
        ),
        "axes-swapped": Diagnosis(
            "Row and column are exchanged: threads are written (x, y), elements [y, x].",
            "Which of x and y is the row of As[y, x]?",
            "writer = (column, row) = (…, …)",
        ),
        "not-the-writer": Diagnosis(
            "This thread never writes the element.",
            "Which thread has y = row and x = column of the element?",
            "writer = (column, row) = (…, …)",
        ),
        "one-thread": Diagnosis(
            "A thread does not race with itself: its own statements are ordered.",
            "Which other threads read the element?",
            "reader = (…, 1), with another x than the writer's",
        ),
        "never-meet": Diagnosis(
            "The reader never reads this element: thread (x, y) reads row y of As.",
            "Which row of As does this reader walk along?",
            "reader = (…, row of the element)",
        ),
        "effect-swapped": Diagnosis(
            "The effects are exchanged: without the first barrier a reader is too early, without "
            "the second a writer is.",
            "Which of the two threads is too early when this barrier is gone?",
            "first: the reader is early, its value is …; second: the writer is early, it is …",
        ),
        "one-step-only": Diagnosis(
            "With a single step along k there is no next copy that could spoil the tile.",
            "How many steps must there be before somebody writes to the tile again?",
            "smallest_k = T + …",
        ),
        "smaller-k-races": Diagnosis(
            "A smaller k has a second step already: it need not be a whole tile.",
            "How many elements must be left over for a second step to take place?",
            "smallest_k = T + …",
        ),
    },
    praise="The first barrier keeps readers from being early, the second one writers; both matter "
    "as soon as there is a second step.",
)
