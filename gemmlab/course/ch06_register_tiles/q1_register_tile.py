"""Exercise 06.1: four elements a thread, and a budget for what is loaded from shared memory."""

from dataclasses import replace
from typing import Any

from numpy import float32

from gemmlab import kernels
from gemmlab.course.judging import Diagnosis, Finding, Task, kernels_on_trial, matrices, timed
from gemmlab.course.judging.diagnoses import KERNEL
from gemmlab.course.judging.matrices import Case, case
from gemmlab.problem import Gemm
from gemmlab.simt import cuda
from gemmlab.tiling import WARP, Tiling

CASES = (
    case(1, 1, 1, tile=2),
    case(1, 3, 2, tile=2),
    case(4, 4, 2, alpha=2, beta=-3, tile=2),
    case(3, 5, 3, alpha=2, beta=0.5, tile=2),
    Case(Gemm(2, 5, 17), tile=2, large=True),
    case(5, 7, 5, alpha=2, tile=2),
    case(8, 8, 8, tile=4),
    case(9, 7, 9, alpha=-1, beta=2, tile=4),
    case(32, 32, 32, tile=8),
)
TIMED = case(17, 33, 19, tile=16)
BESIDE = timed.Yardstick(kernels.tiled, Tiling.square(16))


def tiling(T: int) -> Tiling:
    """T×T threads with 2×2 elements each."""
    return Tiling(block=(2 * T, 2 * T, T), thread=(2, 2))


def build_thread_tile(T):
    """The kernel for T×T threads with 2×2 elements of C each."""
    wide = 2 * T  # a shape of shared memory takes names and numbers, no products

    def kernel(alpha, A, B, beta, C):
        As = cuda.shared.array((wide, T), float32)
        Bs = cuda.shared.array((T, wide), float32)
        m, n = C.shape
        k = A.shape[1]
        x = cuda.threadIdx.x
        y = cuda.threadIdx.y
        row = cuda.blockIdx.y * wide + y  # of this thread: rows row and row + T of C,
        col = cuda.blockIdx.x * wide + x  # columns col and col + T
        acc = cuda.local.array((2, 2), float32)
        for i in range(2):
            for j in range(2):
                acc[i, j] = 0

        for start in range(0, k, T):
            for half in range(2):
                r, c = row + half * T, col + half * T
                As[y + half * T, x] = A[r, start + x] if r < m and start + x < k else float32(0)
                Bs[y, x + half * T] = B[start + y, c] if start + y < k and c < n else float32(0)
            cuda.syncthreads()
            # For each p of the tile: four loads from As and Bs, then four FMAs.
            # [answer]
            for p in range(T):
                a0 = As[y, p]
                a1 = As[y + T, p]
                b0 = Bs[p, x]
                b1 = Bs[p, x + T]
                acc[0, 0] += a0 * b0
                acc[0, 1] += a0 * b1
                acc[1, 0] += a1 * b0
                acc[1, 1] += a1 * b1
            # [end]
            cuda.syncthreads()

        # Store alpha * acc + beta * C, four elements, where there are elements of C.
        # [answer]
        for i in range(2):
            for j in range(2):
                r, c = row + i * T, col + j * T
                if r < m and c < n:
                    if beta == 0:
                        C[r, c] = alpha * acc[i, j]
                    else:
                        C[r, c] = alpha * acc[i, j] + beta * C[r, c]
        # [end]

    return kernel


def judge(answer: Any) -> Finding:
    """Check values and hazards on every case, then the shared loads of the largest."""
    trials = kernels_on_trial.judge(answer, CASES, tiling, anew=matrices.beyond(CASES, steps=26))
    if isinstance(trials, Finding):
        return trials
    last = trials[-1]
    problem, counters = last.run.case.problem, last.report.counters
    warps = problem.m * problem.n // 4 // WARP
    loads, budget = counters["shared_load_requests"], 4 * warps * problem.k
    facts = (
        ("Shared loads of warps", f"{loads}; budget {budget}"),
        ("Shared loads for each FMA", f"{loads / budget:g}; with one element a thread it is 2"),
    )
    found = kernels_on_trial.within_budgets(trials, facts)
    if found.diagnosis == "passed" and loads > budget:
        more = {**found.details, "loads": loads}
        return replace(found, diagnosis="loads-over-budget", details=more)
    return timed.judge(found, answer, tiling, TIMED, BESIDE)


TASK = Task(
    name="06.1",
    title="A thread tile",
    section="chapter 06, One sum, four sums, many",
    asked="build_thread_tile(T) returns a kernel whose T×T threads compute 2T×2T elements of C, "
    "2×2 each, with one shared load for each FMA.",
    prompt=f"""
    The skeleton copies tiles of 2T×T and T×2T elements, and has four sums for each thread. Write
    the inner loop and the store. A thread's rows are y and y + T of the tile, its columns x and
    x + T, so that neighbouring threads read neighbouring words.

    The budget at m = n = k = {CASES[-1].problem.m} and T = {CASES[-1].tile}: each of the four
    values that a thread needs for one p is loaded from shared memory once, and serves two FMAs.
    Count loads as the source has them.
    """,
    judge=judge,
    answers=(build_thread_tile,),
    diagnoses={
        **KERNEL,
        "not-attempted": Diagnosis(
            "The skeleton is unchanged.",
            "Which four values does a thread need for one p, and which of them meet?",
            "```python\nfor p in range(T):\n    a0 = As[y, p]\n    a1 = As[..., p]\n"
            "    b0 = Bs[p, x]\n    b1 = Bs[p, ...]\n    acc[0, 0] += a0 * b0\n    ...\n```",
        ),
        "not-written": Diagnosis(
            "Some elements of C are never stored: each thread has four.",
            "Which rows does block y = 0 cover, and who stores those from T on?",
            "```python\nfor i in range(2):\n    for j in range(2):\n"
            "        r, c = row + ..., col + ...\n```",
        ),
        "right-in-part": Diagnosis(
            "Some elements of C are right and others are not: a sum has the products of another.",
            "Of the four sums of the thread that is named, which belongs to the wrong element, and "
            "which a and b should it multiply?",
            "acc[i, j] sums the products of row y + i·T and column x + j·T.",
        ),
        "traffic-over-budget": Diagnosis(
            "The result is right, but a block loads some elements of A or B more than once: the "
            "inner loop reads global memory.",
            "From which array do the four values of one p come: from A and B, or As and Bs?",
            "```python\na0 = As[y, p]\na1 = As[...]\nb0 = Bs[...]\n```",
        ),
        "loads-over-budget": Diagnosis(
            "The result is right, but values are loaded again for each FMA that uses them: the "
            "registers hold only sums.",
            "How many times does your loop body name As, and how many times Bs?",
            "```python\na0 = As[y, p]        # once; then use a0\nacc[0, 0] += a0 * ...\n"
            "acc[0, 1] += a0 * ...\n```",
        ),
    },
    praise="Four loads feed four FMAs: half as many loads as with one element a thread.",
)
