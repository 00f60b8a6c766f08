"""Exercise 09.1: the next tile is fetched while this one is multiplied."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from types import BuiltinFunctionType
from typing import Any

import numpy as np
from numpy import float32

from gemmlab import kernels
from gemmlab.course.judging import Diagnosis, Finding, Task, guard, kernels_on_trial, timed
from gemmlab.course.judging.apart import apart
from gemmlab.course.judging.diagnoses import KERNEL
from gemmlab.course.judging.launches import SECONDS, Launch, here
from gemmlab.course.judging.matrices import Case, case, long_and_thin
from gemmlab.problem import Gemm
from gemmlab.simt import cuda
from gemmlab.simt.builtins.async_copies import Copies
from gemmlab.simt.machine.operations import Operations
from gemmlab.simt.machine.scope import Scope
from gemmlab.simt.memory.access import shared_values
from gemmlab.simt.numbers.values import NUMBER
from gemmlab.simt.report.trace import Shares
from gemmlab.tiling import WARP, Tiling

CASES = (
    case(1, 1, 1, tile=2),
    case(2, 2, 2, alpha=2, beta=-3, tile=2),
    case(2, 3, 5, alpha=2, beta=0.5, tile=2),
    Case(Gemm(3, 5, 17), tile=4, large=True),
    case(9, 6, 5, alpha=-1, beta=2, tile=4),
    long_and_thin(4),
    case(16, 16, 32, tile=8),
)
TIMED = case(17, 33, 19, tile=16)
BESIDE = timed.Yardstick(kernels.tiled, Tiling.square(16))
SOLUTION = 0.0179  # seconds, predicted for `build_ahead` like those of an answer
ORDER = (case(2, 2, 6, tile=2), case(4, 4, 8, tile=4))  # three short steps, and two longer ones
MEANWHILE = 0.5  # of a step's products, at least, are made while a next tile is fetched
OPERATORS = ("binary", "unary", "compare", "fused_left", "fused_right", "fma")
Event = tuple[str, int, tuple]  # what is done, in which line, with which element


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
    meanwhile = multiplied_meanwhile(answer)
    if isinstance(meanwhile, Finding):
        return meanwhile
    between, use = meanwhile
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
        return replace(found, diagnosis=f"{use}-at-once")
    if loads > used:
        return replace(found, diagnosis="loads-over-budget")
    found = timed.judge(found, answer, Tiling.square, TIMED, BESIDE)
    if "seconds" not in found.details:
        return found
    return replace(found, facts=(*found.facts, ("The solution", timed.ms(SOLUTION))))


def multiplied_meanwhile(answer: Any) -> tuple[float, str] | Finding:
    """The least share of a step's operands that a thread takes before it uses what it fetched.

    Beside it stands the use: "stored", or "used" by an instruction that computes or compares. The
    first tile has nothing to wait behind, and the stores of `cp.async` wait for nobody.
    """
    launches, least = [], (1.0, "stored")
    for short in ORDER:
        T, p, rng = short.tile, short.problem, np.random.default_rng(short.tile)
        a, b, c = (rng.uniform(1, 2, shape).astype(float32) for shape in p.shapes)  # all differ
        launches.append(Launch((T,), (1, 1), (T, T), (float32(1), a, b, float32(0), c)))
    found = apart(partial(_uses, answer, launches), SECONDS)
    for short, item in zip(ORDER, found, strict=False):
        if guard.ended(item):
            return guard.cut_short(item, guard.file_of(answer))
        if isinstance(item, Finding):
            return item
        least = min([least, *((taken / (2 * short.tile), use) for taken, use in item)])
    return least


def _uses(build: Any, launches: list[Launch]) -> Iterator[list[tuple[int, str]] | Finding]:
    """For each launch, what thread 0 took before it used each of the elements that it fetched."""
    with _watched() as events:
        for item in here(build, kernels_on_trial.PARAMETERS, launches):
            yield item if isinstance(item, Finding) else list(_taken(events))
            events.clear()


def _taken(events: list[Event]) -> Iterator[tuple[int, str]]:
    """For each first use of what was fetched, how many elements of tiles were loaded since."""
    multiplied = loaded = False  # whether anything was; whether a load waits for its use
    since: set[Any] = set()
    for what, _, place in events:
        if what == "taken":
            multiplied = True
            since.add(place)
        elif what == "fetched":
            loaded, since = True, set()
        elif loaded:
            if multiplied:
                yield len(since), what
            loaded = False


@contextmanager
def _watched() -> Iterator[list[Event]]:
    """Let accesses and operators note what they do for thread 0, for a while.

    An element of A or B is "fetched", and then "stored" in a tile, or "used" by an operator before
    it was "taken" from a tile; which one it is its value tells. The simulator calls what is
    replaced here, and has it back at the end.
    """
    events: list[Event] = []
    fresh: set[float] = set()  # values that were fetched, and in no tile so far
    watch, begin, translate = Shares.watch, Copies.begin, Scope.translate

    def accessed(shares: Shares, m: Any, line: int, op: str, array: Any, at: Any, mask: Any):
        watch(shares, m, line, op, array, at, mask)
        if not m.lanes.full(mask)[0, 0]:
            return
        what = {"global load": "fetched", "shared store": "stored", "shared load": "taken"}
        element = int(m.lanes.spread(at)[0, 0])
        noted = what.get(f"{array.space} {op}")
        if noted == "fetched":
            fresh.add(float(array.buffer.reshape(-1)[element]))
        elif noted == "taken":
            fresh.discard(float(np.asarray(shared_values(m, array, at)).flat[0]))
        if noted:
            events.append((noted, line, (array.name, element)))

    def begun(copies: Copies, m: Any, copy: Any):
        while events and events[-1][:2] in (("fetched", copy.line), ("stored", copy.line)):
            events.pop()  # in the background
        begin(copies, m, copy)

    def operator(method: Callable) -> Callable:
        def noting(operations: Any, *arguments: Any):
            own = {float(np.asarray(x).flat[0]) for x in arguments if isinstance(x, NUMBER)}
            if own & fresh:
                events.append(("used", 0, ()))
            return method(operations, *arguments)

        return noting

    def translated(scope: Scope, value: Any) -> Any:
        found = translate(scope, value)
        if not isinstance(value, BuiltinFunctionType | np.ufunc):
            return found
        return partial(operator(lambda _, *arguments: found(*arguments)), None)

    own = {name: getattr(Operations, name) for name in OPERATORS}
    Shares.watch, Copies.begin, Scope.translate = accessed, begun, translated
    for name, method in own.items():
        setattr(Operations, name, operator(method))
    try:
        yield events
    finally:
        Shares.watch, Copies.begin, Scope.translate = watch, begin, translate
        for name, method in own.items():
            setattr(Operations, name, method)


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

    Any m, n, k ≥ 1. The budget: one barrier a step, and one for the first tile. No more bytes from
    global memory than before.
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
        "used-at-once": Diagnosis(
            "The result is right, but a fetched value is used before the present tile is "
            "multiplied: the first instruction that computes with it, or compares it, waits for "
            "global memory, and the block with it.",
            "Which operator has a fetched value beside it, and could it wait until the tile is "
            "done?",
            "```python\na = A[...] if ... else float32(0)    # fetched, and nothing else\n"
            "for p in range(T):\n    acc += ...\n```",
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
