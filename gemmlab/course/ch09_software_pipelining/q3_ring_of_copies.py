"""Exercise 09.3: a ring of tiles that `cp.async` fills while others are multiplied."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy import float32

from gemmlab.course.judging import Diagnosis, Finding, Task, guard, kernels_on_trial, timed
from gemmlab.course.judging.apart import apart
from gemmlab.course.judging.diagnoses import KERNEL
from gemmlab.course.judging.launches import SECONDS, Launch, here
from gemmlab.course.judging.matrices import Case, case, long_and_thin
from gemmlab.instructions import cp_async_4, cp_async_commit, cp_async_wait
from gemmlab.problem import Gemm
from gemmlab.simt import cuda
from gemmlab.simt.builtins.async_copies import Copies, Copy
from gemmlab.simt.memory.array import Array
from gemmlab.tiling import WARP, Tiling

CASES = (
    case(1, 1, 1, tile=2),
    case(2, 2, 2, alpha=2, beta=-3, tile=2),
    case(2, 3, 5, alpha=2, beta=0.5, tile=2),
    case(4, 5, 7, alpha=0.5, beta=2, tile=3),
    Case(Gemm(3, 5, 17), tile=4, large=True),
    case(9, 6, 5, alpha=-1, beta=2, tile=4),
    long_and_thin(4),
    case(16, 16, 64, tile=8),
)
STAGES = {2: 2, 3: 6, 4: 3, 8: 4}  # side of a tile -> tiles in the ring
STEPS = 8  # of the cases in which it is looked at what is under way
NEARLY = 0.9  # of what could be under way while tiles are multiplied has to be


@cuda.jit(device=True)
def fetch(As, Bs, slot, y, x, A, B, row, col, start):
    """Begin to copy this thread's elements of the tiles that begin at `start` of k."""
    m, k = A.shape
    n = B.shape[1]
    cp_async_4(As, slot, y, x, A, row, start + x, row < m and start + x < k)
    cp_async_4(Bs, slot, y, x, B, start + y, col, start + y < k and col < n)


def build_ring(T, S):
    """The kernel for tiles of T×T elements, S of each operand in shared memory."""
    ahead = S - 1  # tiles that are on their way while one is multiplied
    # How many groups of copies may still be under way when a tile is needed?
    # [answer] pending = 0
    pending = S - 2
    # [end]

    def kernel(alpha, A, B, beta, C):
        As = cuda.shared.array((S, T, T), float32)
        Bs = cuda.shared.array((S, T, T), float32)
        m, n = C.shape
        k = A.shape[1]
        x = cuda.threadIdx.x
        y = cuda.threadIdx.y
        row = cuda.blockIdx.y * T + y
        col = cuda.blockIdx.x * T + x

        for tile in range(ahead):
            fetch(As, Bs, tile, y, x, A, B, row, col, tile * T)
            cp_async_commit()
        acc = float32(0)
        slot = 0  # of the ring: the one that holds the tiles from `start` on
        start = 0
        while start < k:
            # Wait for the tiles of `slot`: for this thread's copies, and for those of the others.
            # Begin to copy the tiles `ahead` steps further into the slot that nobody reads any
            # more; make a group of these copies. Multiply.
            # [answer]
            cp_async_wait(pending)
            cuda.syncthreads()
            free = slot - 1 if slot > 0 else ahead
            fetch(As, Bs, free, y, x, A, B, row, col, start + ahead * T)
            cp_async_commit()
            for p in range(T):
                acc += As[slot, y, p] * Bs[slot, p, x]
            # [end]
            slot = slot + 1 if slot < ahead else 0
            start += T

        if row < m and col < n:
            if beta == 0:
                C[row, col] = alpha * acc
            else:
                C[row, col] = alpha * acc + beta * C[row, col]

    return kernel


def sizes(case: Case) -> tuple[int, int]:
    """The arguments of `build_ring` for a case."""
    return case.tile, STAGES[case.tile]


EXAMPLE = timed.of_product(
    1024, 1024, 1024, "T = 16 and S = 3",
    lambda a, b, c: Launch((16, 3), (64, 64), (16, 16), (float32(1), a, b, float32(0), c)),
)  # fmt: skip


def judge(answer: Any) -> Finding:
    """Check values and hazards on every case, barriers, loads, and what is under way."""
    form = kernels_on_trial.Form(sizes=sizes)
    trials = kernels_on_trial.judge(answer, CASES, Tiling.square, form=form)
    if isinstance(trials, Finding):
        not_waited = trials.details.get("kind") == "async-not-waited"
        return replace(trials, diagnosis="not-waited") if not_waited else trials
    last = trials[-1]
    problem, counters = last.run.case.problem, last.report.counters
    across, down = last.tiling.grid(problem)
    steps = last.tiling.steps(problem)
    passed = counters["barriers"] // (across * down)
    loads = counters["shared_load_requests"]
    used = 2 * across * down * last.tiling.threads // WARP * problem.k  # of As and Bs, for each p
    meanwhile = least_under_way(answer)
    if isinstance(meanwhile, Finding):
        return meanwhile
    found = kernels_on_trial.within_budgets(
        trials,
        (
            ("Barriers of a block", f"{passed}; budget {steps + 1} for {steps} steps"),
            ("Shared loads of warps", f"{loads:,}; budget {used:,}"),
            ("Under way while a tile is multiplied", f"{meanwhile:.0%} of what a ring can have"),
        ),
    )
    if found.diagnosis != "passed":
        return found
    if kernels_on_trial.uneven(last.report.shares.of("load", "A", "B"), kernels_on_trial.ONE_EACH):
        return replace(found, diagnosis="few-threads-copy")
    if passed > steps + 1:
        return replace(found, diagnosis="barriers-over-budget")
    if not last.report.instructions["inst_async_copy"]:
        return replace(found, diagnosis="copies-not-used")
    if loads > used:
        return replace(found, diagnosis="loads-over-budget")
    if meanwhile < NEARLY:
        return replace(found, diagnosis="ring-not-used")
    return timed.beside(found, answer, build_ring, EXAMPLE)


def least_under_way(answer: Any) -> float | Finding:
    """Bytes on their way while tiles are multiplied, as a share of what a ring has room for.

    The last steps have fewer tiles left to ask for. The least share of all sizes of the ring.
    """
    launches, room = [], []
    for T, S in STAGES.items():
        a, b, c = case(T, T, STEPS * T, tile=T).operands()
        arguments = c.dtype.type(1), a, b, c.dtype.type(0), c
        launches.append(Launch((T, S), (1, 1), (T, T), arguments))
        tiles = sum(min(S - 1, STEPS - 1 - step) for step in range(STEPS))
        room.append(2 * T * tiles * a.itemsize * 2 * T * T)  # at each of 2·T loads of a step
    shares = []
    for most, item in zip(
        room, _under_way(answer, kernels_on_trial.PARAMETERS, launches), strict=False
    ):
        if isinstance(item, Finding):
            return item
        shares.append(item / most)
    return min(shares)


def _under_way(
    build: Callable, parameters: list[str], launches: Sequence[Launch]
) -> Iterator[int | Finding]:
    """For each launch, the bytes on their way at the loads of a thread, added up.

    Zeros that are written in place of what lies beyond a matrix are not on their way.
    """
    for item in apart(partial(_measured, build, parameters, launches), SECONDS):
        yield guard.cut_short(item, guard.file_of(build)) if guard.ended(item) else item


def _measured(
    build: Callable, parameters: list[str], launches: Sequence[Launch]
) -> Iterator[int | Finding]:
    with _watched() as seen:
        for item in here(build, parameters, launches):
            yield item if isinstance(item, Finding) else sum(seen.values())
            seen.clear()


@contextmanager
def _watched() -> Iterator[dict[tuple, int]]:
    """Let the loads from shared memory note what is on its way then [B], for a while.

    They are seen by the check that the simulator makes at each of them, which is put back at the
    end. An element that thread 0 loads again before it commits another group is noted once: loads
    for show count nothing.
    """
    check = Copies.check
    seen: dict[tuple, int] = {}

    def watching(
        copies: Copies, m: Any, line: int, op: str, array: Array, at: Any, mask: Any
    ) -> None:
        if op == "read":
            element, groups = m.lanes.spread(at).flat[0], np.max(copies.committed)
            coming = sum(_bytes(m, copy) for copy in copies.pending)
            seen.setdefault((array.name, int(element), int(groups)), coming)
        check(copies, m, line, op, array, at, mask)

    Copies.check = watching
    try:
        yield seen
    finally:
        Copies.check = check


def _bytes(m: Any, copy: Copy) -> int:
    """The bytes that the lanes of a copy read from global memory."""
    lanes = m.lanes.full(copy.mask)
    read = (lanes if from_there is None else lanes & m.lanes.full(from_there)
            for from_there in copy.read)  # fmt: skip
    return sum(int(each.sum()) for each in read) * copy.to.itemsize


TASK = Task(
    name="09.3",
    title="A ring of tiles",
    section="chapter 09, Who carries a tile?",
    asked="build_ring(T, S) returns a tiled kernel that keeps S − 1 tiles of each operand under "
    "way by cp.async while one is multiplied, with one barrier a step.",
    prompt="""
    Shared memory has room for S tiles of each operand, a *ring*. The skeleton asks for the first
    S − 1, each a group of its own. Write a step:

    - wait until the tiles of `slot` are there, for *all* threads;
    - ask for the tiles `ahead` steps further on. Which slot is free? Commit them as one group, even
      where they lie beyond k: `fetch` then writes zeros, and the number of groups stays the same;
    - multiply.

    Then choose `pending`. The check builds rings of 2, 3, 4 and 6 tiles. The budget: one barrier a
    step, and one more. While a tile is multiplied, all others must be under way.
    """,
    judge=judge,
    answers=(build_ring,),
    diagnoses={
        **KERNEL,
        "not-attempted": Diagnosis(
            "The skeleton is unchanged.",
            "Two groups are under way and the older one holds your tile. How many may be left "
            "when you multiply?",
            "```python\ncp_async_wait(pending)\ncuda.syncthreads()\nfree = ...\n"
            "fetch(As, Bs, free, ..., start + ahead * T)\ncp_async_commit()\n```",
        ),
        "not-waited": Diagnosis(
            "A tile is read, or filled again, while a copy into it may be under way: too many "
            "groups are allowed to be, or the barrier comes before the wait.",
            "After S − 1 groups were committed, which of them holds the tile of this step, and how "
            "many came after it?",
            "```python\ncp_async_wait(...)    # my copies\ncuda.syncthreads()    # everybody's\n"
            "```",
        ),
        "barriers-over-budget": Diagnosis(
            "The result is right, but a step has more than one barrier.",
            "Behind the barrier of this step, which slot has everybody finished reading?",
            "```python\ncp_async_wait(pending)\ncuda.syncthreads()\n"
            "free = ...    # the slot of the step before\n```",
        ),
        "copies-not-used": Diagnosis(
            "The result is right, but threads carry the tiles: nothing is copied by cp.async.",
            "Which instruction copies from global to shared memory without a register?",
            "```python\nfetch(As, Bs, free, y, x, A, B, row, col, ...)\ncp_async_commit()\n```",
        ),
        "loads-over-budget": Diagnosis(
            "The result is right, but elements of As and Bs are loaded more often than the "
            "products need them.",
            "How many elements of As and of Bs does one thread need in a step?",
            "```python\nfor p in range(T):\n    acc += As[slot, ...] * Bs[slot, ...]    # two\n```",
        ),
        "ring-not-used": Diagnosis(
            "The result is right, but while a tile is multiplied fewer tiles are under way than "
            "the ring has room for: they were waited for too early, or are asked for too late.",
            "With S = 4, how many groups are still under way behind your wait, and is the next one "
            "asked for before or after the products?",
            "```python\ncp_async_wait(pending)    # S − ...\ncuda.syncthreads()\nfetch(...)\n"
            "for p in range(T):    # meanwhile S − 1 are under way\n```",
        ),
    },
    praise="One barrier a step does two things: it tells that a tile has arrived for everybody, "
    "and that the slot of the step before is free.",
)
