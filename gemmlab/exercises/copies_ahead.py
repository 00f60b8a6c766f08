"""Exercise 06.3: the next tile is fetched while this one is multiplied."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from numpy import float32

from gemmlab import cuda
from gemmlab.exercises import budgets, kernels_on_trial
from gemmlab.exercises.exercise import Task
from gemmlab.exercises.kernel_diagnoses import KERNEL
from gemmlab.exercises.launches import Launch, launched
from gemmlab.exercises.matrices import Case, case
from gemmlab.exercises.verdict import Diagnosis, Finding
from gemmlab.problem import Gemm
from gemmlab.tiling import Tiling

CASES = (
    case(1, 1, 1, tile=2),
    case(2, 2, 2, alpha=2, beta=-3, tile=2),
    case(2, 3, 5, alpha=2, beta=0.5, tile=2),
    case(4, 4, 8, tile=4),
    Case(Gemm(3, 5, 17), tile=4, large=True),
    case(9, 6, 5, alpha=-1, beta=2, tile=4),
    case(16, 16, 32, tile=8),
)
ORDER = case(2, 2, 8, tile=2)  # few enough accesses that the trace keeps each of them


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
    """Values and hazards on every case, who moves how much, barriers, and the order of a step."""
    trials = kernels_on_trial.judge(answer, CASES, Tiling.square)
    if isinstance(trials, Finding):
        return trials
    last = trials[-1]
    across, down = last.tiling.grid(last.run.case.problem)
    steps = last.tiling.steps(last.run.case.problem)
    passed = last.report.counters["barriers"] // (across * down)
    at_once = stored_at_once(answer)
    order = "stored right after it was loaded" if at_once else "under way during the products"
    found = budgets.judge(
        trials,
        (
            ("Barriers of a block", f"{passed}; budget {steps + 1} for {steps} steps"),
            ("Next tile", order),
        ),
    )
    if found.diagnosis == "passed" and passed > steps + 1:
        return replace(found, diagnosis="barriers-over-budget")
    if found.diagnosis == "passed" and at_once:
        return replace(found, diagnosis="stored-at-once")
    return found


def stored_at_once(answer: Any) -> bool:
    """Whether a tile is stored with less than half of a step's products since it was loaded.

    The first tile has nothing to wait behind, and the stores of `cp.async` wait for nobody.
    """
    T, (a, b, c) = ORDER.tile, ORDER.operands()
    one, zero = c.dtype.type(1), c.dtype.type(0)
    launch = Launch((T,), (1, 1), (T, T), (one, a, b, zero, c), trace="")  # all lines have ""
    (item,) = launched(answer, kernels_on_trial.PARAMETERS, [launch])
    source, found = item.report.source, item.report.trace
    order = [(x.space, x.op) for x in found if "cp_async" not in source.code(x.line)]
    enough = order.count(("shared", "load")) / (ORDER.problem.k // T) / 2
    multiplied, since = False, 0  # whether anything was; operands read since the last load
    for what in order:
        if what == ("shared", "load"):
            multiplied, since = True, since + 1
        elif what == ("global", "load"):
            since = 0
        elif what == ("shared", "store") and multiplied and since < enough:
            return True
    return False


TASK = Task(
    name="06.3",
    title="Copies that run ahead",
    section="chapter 06, What do the warps wait for?",
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
        "barriers-over-budget": Diagnosis(
            "The result is right, but a step has more than one barrier.",
            "The tile that you fill is not the one that a slow thread still reads. Which barrier "
            "guards against nothing?",
            "```python\nAs[1 - now, y, x] = a    # nobody reads this one\n```",
        ),
        "stored-at-once": Diagnosis(
            "The result is right, but each element is stored as soon as it is loaded: the store "
            "waits for global memory, and the multiplication waits behind it.",
            "Which statement is the first that needs the value of a?",
            "```python\na = ...\nfor p in range(T):\n    acc += ...\n"
            "As[1 - now, y, x] = a    # by now it has arrived\n```",
        ),
    },
    praise="A step has one barrier, and global memory answers while the block multiplies.",
)
