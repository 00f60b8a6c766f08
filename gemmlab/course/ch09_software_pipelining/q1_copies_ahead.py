"""Exercise 09.1: the next tile is fetched while this one is multiplied."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from numpy import float32

from gemmlab import kernels
from gemmlab.course.judging import Diagnosis, Finding, Task, kernels_on_trial, timed
from gemmlab.course.judging.diagnoses import KERNEL
from gemmlab.course.judging.launches import Launch, launched
from gemmlab.course.judging.matrices import Case, case
from gemmlab.problem import Gemm
from gemmlab.simt import Report, cuda
from gemmlab.tiling import WARP, Tiling

CASES = (
    case(1, 1, 1, tile=2),
    case(2, 2, 2, alpha=2, beta=-3, tile=2),
    case(2, 3, 5, alpha=2, beta=0.5, tile=2),
    case(4, 4, 8, tile=4),
    Case(Gemm(3, 5, 17), tile=4, large=True),
    case(9, 6, 5, alpha=-1, beta=2, tile=4),
    case(16, 16, 32, tile=8),
)
TIMED = case(17, 33, 19, tile=16)
BESIDE = timed.Yardstick(kernels.tiled, Tiling.square(16))
# Few enough accesses that the trace keeps each of them: three short steps, and two longer ones.
ORDER = (case(2, 2, 6, tile=2), case(4, 4, 8, tile=4))
MEANWHILE = 0.5  # of a step's products, at least, are made while a next tile is fetched


def build_ahead(T):
    """The kernel for tiles of T×T elements, two of each operand in shared memory."""

    def kernel(alpha, A, B, beta, C):
        As = cuda.shared.array((2, T, T), float32)  # tile 0 and tile 1: one is multiplied
        Bs = cuda.shared.array((2, T, T), float32)  # while the other is filled
        m, n = C.shape
        k = A.shape[1]
        x = cuda.threadIdx.x
        y = cuda.threadIdx.y
        row = cuda.blockIdx.y * T + y
        col = cuda.blockIdx.x * T + x

        As[0, y, x] = A[row, x] if row < m and x < k else float32(0)
        Bs[0, y, x] = B[y, col] if y < k and col < n else float32(0)
        cuda.syncthreads()
        acc = float32(0)
        now = 0  # the tile that is multiplied
        start = 0
        while start < k:
            # Begin to fetch this thread's elements of the next tiles, those from start + T on;
            # multiply tile `now`; store what was fetched in the other tile; pass one barrier.
            # [answer]
            after = start + T
            a = A[row, after + x] if row < m and after + x < k else float32(0)
            b = B[after + y, col] if after + y < k and col < n else float32(0)
            for p in range(T):
                acc += As[now, y, p] * Bs[now, p, x]
            now = 1 - now
            As[now, y, x] = a
            Bs[now, y, x] = b
            cuda.syncthreads()
            # [end]
            start += T

        if row < m and col < n:
            if beta == 0:
                C[row, col] = alpha * acc
            else:
                C[row, col] = alpha * acc + beta * C[row, col]

    return kernel


def judge(answer: Any) -> Finding:
    """Check values and hazards on every case, traffic, barriers, and the order of a step."""
    trials = kernels_on_trial.judge(answer, CASES, Tiling.square)
    if isinstance(trials, Finding):
        not_waited = trials.details.get("kind") == "async-not-waited"
        return replace(trials, diagnosis="not-waited") if not_waited else trials
    last = trials[-1]
    problem, counters, shares = last.run.case.problem, last.report.counters, last.report.shares
    across, down = last.tiling.grid(problem)
    steps = last.tiling.steps(problem)
    passed = counters["barriers"] // (across * down)
    loads = counters["shared_load_requests"]
    used = 2 * across * down * last.tiling.threads // WARP * problem.k  # of As and Bs, for each p
    copied = shares.of("load", "A", "B")
    between = multiplied_meanwhile(answer)
    found = kernels_on_trial.within_budgets(
        trials,
        (
            ("Barriers of a block", f"{passed}; budget {steps + 1} for {steps} steps"),
            ("Shared loads of warps", f"{loads:,}; budget {used:,}"),
            ("While a tile is fetched", f"{between:.0%} of a step's operands are multiplied"),
        ),
    )
    if found.diagnosis != "passed":
        return found
    if kernels_on_trial.uneven(copied, kernels_on_trial.ONE_EACH):
        return replace(found, diagnosis="few-threads-copy")
    if passed > steps + 1:
        return replace(found, diagnosis="barriers-over-budget")
    if between < MEANWHILE:
        return replace(found, diagnosis="stored-at-once")
    if loads > used:
        return replace(found, diagnosis="loads-over-budget")
    return timed.judge(found, answer, Tiling.square, TIMED, BESIDE)


def multiplied_meanwhile(answer: Any) -> float:
    """The least share of a step's operands that a thread takes between a load and its store.

    The first tile has nothing to wait behind, and the stores of `cp.async` wait for nobody.
    """
    launches = []
    for short in ORDER:
        T, (a, b, c) = short.tile, short.operands()
        arguments = c.dtype.type(1), a, b, c.dtype.type(0), c
        launches.append(Launch((T,), (1, 1), (T, T), arguments, trace=""))  # all lines have ""
    items = launched(answer, kernels_on_trial.PARAMETERS, launches)
    return min(
        taken / (2 * short.tile)
        for short, item in zip(ORDER, items, strict=True)
        for taken in (2 * short.tile, *_taken(item.report))
    )


def _taken(report: Report) -> Iterator[int]:
    """For each store of a next tile, how many shared elements thread 0 loaded since its load."""
    multiplied = loaded = False  # whether anything was; whether a load waits for its store
    since: set[tuple[str, int]] = set()
    for access in report.trace:
        what = access.space, access.op
        if _in_the_background(report, access.line):
            continue
        if what == ("shared", "load"):
            multiplied = True
            since.add((access.array, int(access.addresses[0, 0])))
        elif what == ("global", "load"):
            loaded, since = True, set()
        elif what == ("shared", "store") and loaded:
            if multiplied:
                yield len(since)
            loaded = False


def _in_the_background(report: Report, line: int) -> bool:
    """Whether the accesses of a line are those of `cp.async` alone."""
    counted = report.by_line[line]
    plain = ("inst_shared_store", "inst_global_load")
    return bool(counted["inst_async_copy"]) and not any(counted[name] for name in plain)


TASK = Task(
    name="09.1",
    title="Copies that run ahead",
    section="chapter 09, How can a step fetch for the next?",
    asked="build_ahead(T) returns a tiled kernel that fetches each tile during the step before it, "
    "with one barrier a step.",
    prompt="""
    The skeleton has two tiles of each operand in shared memory and fills the first pair. Write a
    step: fetch, multiply, store, one barrier.

    A load does not stop a thread. The first instruction that *uses* the value does: a store of it,
    for instance. So fetch into plain variables, `a` and `b`, which are registers, and store them
    when the multiplication is done. Beyond k, fetch nothing: a zero will do.

    The budget: one barrier a step, and one for the first tile. No more bytes from global memory
    than before.
    """,
    judge=judge,
    answers=(build_ahead,),
    diagnoses={
        **KERNEL,
        "not-attempted": Diagnosis(
            "The skeleton is unchanged.",
            "At which k do the next tiles begin, and where do their elements wait until the "
            "present tile is done?",
            "```python\na = A[row, start + T + x] if ... else float32(0)\n"
            "for p in range(T):\n    acc += As[now, y, p] * ...\n```",
        ),
        "not-waited": Diagnosis(
            "A tile is used, or filled again, before an asynchronous copy into it has arrived: a "
            "barrier waits for threads, and not for their copies.",
            "Which instruction tells a thread that its own copies have arrived, and does it stand "
            "before the barrier?",
            "```python\ncp_async_commit()\nfor p in range(T):\n    acc += ...\n"
            "cp_async_wait(...)\ncuda.syncthreads()\n```",
        ),
        "barriers-over-budget": Diagnosis(
            "The result is right, but a step has more than one barrier.",
            "The tile that you fill is not the one that a slow thread still reads. Which barrier "
            "guards against nothing?",
            "```python\nAs[1 - now, y, x] = a    # nobody reads this one\n```",
        ),
        "loads-over-budget": Diagnosis(
            "The result is right, but elements of As and Bs are loaded more often than the "
            "products need them: a load whose value is not multiplied hides nothing.",
            "How many elements of As and of Bs does one thread need in a step, and how many does "
            "it load?",
            "```python\nfor p in range(T):\n    acc += As[now, ...] * Bs[now, ...]    # two\n```",
        ),
        "stored-at-once": Diagnosis(
            "The result is right, but an element is stored before the present tile is multiplied, "
            "or is loaded after it: the store waits for global memory, and the block with it.",
            "Which statement is the first that needs the value of a?",
            "```python\na = ...\nfor p in range(T):\n    acc += ...\n"
            "As[1 - now, y, x] = a    # by now it has arrived\n```",
        ),
    },
    praise="A step has one barrier, and global memory answers while the block multiplies.",
)
