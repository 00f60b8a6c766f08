"""Exercise 04.4: B is stored transposed, and neither sectors nor banks may suffer for it."""

from dataclasses import replace
from typing import Any

from numpy import float32

from gemmlab import kernels
from gemmlab.course.judging import Diagnosis, Finding, Task, kernels_on_trial, matrices, timed
from gemmlab.course.judging.diagnoses import KERNEL
from gemmlab.course.judging.matrices import Case
from gemmlab.problem import Gemm
from gemmlab.simt import cuda
from gemmlab.tiling import Tiling


def _case(m: int, n: int, k: int, tile: int, alpha: float = 1, beta: float = 0) -> Case:
    return Case(Gemm(m, n, k, alpha, beta, layout="nt"), tile)


CASES = (
    _case(1, 1, 1, tile=2),
    _case(1, 3, 2, tile=2),
    _case(3, 2, 4, tile=4),
    _case(3, 5, 2, alpha=2, beta=-3, tile=2),
    _case(5, 4, 7, alpha=2, tile=4),
    Case(Gemm(3, 5, 17, layout="nt"), tile=4, large=True),
    _case(9, 6, 5, alpha=-1, beta=2, tile=4),
    _case(32, 32, 32, tile=16),
)
TIMED = _case(17, 33, 19, tile=16)
BESIDE = timed.Yardstick(kernels.tiled, Tiling.square(16))  # B is not transposed

# Wavefronts of a request. Where rows are padded, a store may need two: one row's end and the next
# one's start share a bank.
MOST_WAVEFRONTS = {"load": 1, "store": 2}


def build(T):
    """The tiled kernel for a B that is stored as n rows of k elements."""
    # [answer] width = T  # words in a row of Bs
    width = T + 1  # words in a row of Bs
    # [end]

    def kernel(alpha, A, B, beta, C):
        As = cuda.shared.array((T, T), float32)
        Bs = cuda.shared.array((T, width), float32)
        m, n = C.shape
        k = A.shape[1]
        x = cuda.threadIdx.x
        y = cuda.threadIdx.y
        row = cuda.blockIdx.y * T + y
        col = cuda.blockIdx.x * T + x

        acc = float32(0)
        for start in range(0, k, T):
            As[y, x] = A[row, start + x] if row < m and start + x < k else float32(0)
            # Copy the tile of B, wait, multiply, wait.
            # [answer]
            j = cuda.blockIdx.x * T + y  # y picks the row of B, so that x runs along it
            Bs[y, x] = B[j, start + x] if j < n and start + x < k else float32(0)
            cuda.syncthreads()
            for p in range(T):
                acc += As[y, p] * Bs[x, p]
            cuda.syncthreads()
            # [end]

        if row < m and col < n:
            C[row, col] = alpha * acc if beta == 0 else alpha * acc + beta * C[row, col]

    return kernel


def judge(answer: Any) -> Finding:
    """Check values and hazards on every case, then traffic and wavefronts of the largest."""
    trials = kernels_on_trial.judge(answer, CASES, Tiling.square, anew=matrices.beyond(CASES))
    if isinstance(trials, Finding):
        return trials
    counters = trials[-1].report.counters
    counts = {
        op: tuple(counters[f"shared_{op}_{x}"] for x in ("wavefronts", "requests"))
        for op in ("load", "store")
    }
    most = {op: MOST_WAVEFRONTS[op] * requests for op, (_, requests) in counts.items()}
    facts = tuple(
        (
            f"Wavefronts of shared {op}s",
            f"{wavefronts} for {requests} requests; budget {most[op]}",
        )
        for op, (wavefronts, requests) in counts.items()
    )
    found = kernels_on_trial.within_budgets(trials, facts)
    if found.diagnosis != "passed":
        return found
    for op, (wavefronts, _) in counts.items():
        if wavefronts > most[op]:
            return replace(found, diagnosis=f"{op}s-conflict")
    return timed.judge(found, answer, Tiling.square, TIMED, BESIDE)


_LAST = CASES[-1]

TASK = Task(
    name="04.4",
    title="B is stored transposed",
    section="chapter 04, When the operand lies the other way round",
    asked="build(T) returns a kernel that computes C ← alpha·A·Bᵀ + beta·C from an array B of n "
    "rows and k columns, loads whole sectors, and reads its tiles without bank conflicts.",
    prompt=f"""
    The array `B` now has **n rows and k columns**: what the product calls element (p, j) is
    `B[j, p]`. Write the copy of its tile, the multiplication and the two barriers. You may change
    `width` and the indices of `Bs` as well.

    The budget at m = n = k = {_LAST.problem.n} and T = {_LAST.tile}: every sector of A and B is
    used whole, each shared load takes **one** wavefront, and the shared stores at most two.
    `q4.check(build)` counts.
    """,
    judge=judge,
    answers=(build,),
    diagnoses={
        **KERNEL,
        "not-attempted": Diagnosis(
            "The skeleton is unchanged.",
            "Lanes differ in x. Along which index of the array B should x run, so that lanes read "
            "neighbours?",
            "```python\nj = cuda.blockIdx.x * T + ...\n"
            "Bs[..., ...] = B[j, ...] if ... else float32(0)\n```",
        ),
        "copy-not-coalesced": Diagnosis(
            "The result is right, but neighbouring lanes stand in different rows of B: each of "
            "them touches a sector of its own.",
            "In one copy of B, what do lanes 0, 1, 2, … differ in: the row of B or the column?",
            "x has to be in the second index of B:\n\n```python\n... = B[..., start + x]\n```",
        ),
        "loads-conflict": Diagnosis(
            "The result is right and the sectors are used whole, but lanes read different words of "
            "one bank: the tile's rows are a multiple of the banks apart.",
            "How many words apart are the elements that lanes x and x + 2 read from Bs, and which "
            "banks are these?",
            "One unused word at the end of each row moves the next row on by a bank:\n\n"
            "```python\nwidth = T + ...\n```",
        ),
        "stores-conflict": Diagnosis(
            "The result is right and the loads have no conflict, but the copy writes a column of "
            "the tile, whose words share a bank.",
            "How many words apart are the elements of Bs that lanes x and x + 2 write?",
            "One unused word at the end of each row moves the next row on by a bank:\n\n"
            "```python\nwidth = T + ...\n```",
        ),
        "load-outside": Diagnosis(
            "A load lies outside A or B. The array B has n rows and k columns.",
            "For the thread that is named: which row of B does it want, and how many rows are "
            "there?",
            "```python\n... = B[j, start + x] if j < ... and start + x < ... else float32(0)\n```",
        ),
    },
    praise="x runs along a row of B when the tile is copied and down a column of Bs when it is "
    "used; one word of padding a row spreads that column over the banks.",
)
