"""Exercise 04.5: two elements a thread, and a budget for what is loaded."""

from typing import Any

from numpy import float32

from gemmlab import kernels
from gemmlab.course.judging import Diagnosis, Finding, Task, kernels_on_trial, matrices, timed
from gemmlab.course.judging.diagnoses import KERNEL
from gemmlab.course.judging.matrices import Case, case
from gemmlab.problem import Gemm
from gemmlab.simt import cuda
from gemmlab.tiling import Tiling

CASES = (
    case(1, 1, 1, tile=2),
    case(1, 3, 2, tile=2),
    case(2, 4, 2, alpha=2, beta=-3, tile=2),
    case(3, 5, 3, alpha=2, beta=0.5, tile=2),
    case(4, 7, 5, alpha=2, tile=4),
    Case(Gemm(2, 5, 17), tile=2, large=True),
    case(4, 8, 8, tile=4),
    case(5, 9, 6, alpha=-1, beta=2, tile=4),
    case(32, 32, 32, tile=8),
)
TIMED = case(17, 33, 19, tile=16)
BESIDE = timed.Yardstick(kernels.tiled, Tiling.square(16))


def tiling(T: int) -> Tiling:
    """T×T threads, each with two elements of a tile of T rows and 2T columns."""
    return Tiling(block=(T, 2 * T, T), thread=(1, 2))


def build(T):
    """The kernel for T×T threads with two elements of C each."""
    wide = 2 * T  # a shape of shared memory takes names and numbers, no products

    def kernel(alpha, A, B, beta, C):
        m, n = C.shape
        k = A.shape[1]
        x = cuda.threadIdx.x
        y = cuda.threadIdx.y
        row = cuda.blockIdx.y * T + y
        # The block's tile of C is T rows by `wide` columns.
        # [answer]
        As = cuda.shared.array((T, T), float32)
        Bs = cuda.shared.array((T, wide), float32)
        left = cuda.blockIdx.x * 2 * T + x
        right = left + T

        acc_left = float32(0)
        acc_right = float32(0)
        for start in range(0, k, T):
            As[y, x] = A[row, start + x] if row < m and start + x < k else float32(0)
            Bs[y, x] = B[start + y, left] if start + y < k and left < n else float32(0)
            Bs[y, x + T] = B[start + y, right] if start + y < k and right < n else float32(0)
            cuda.syncthreads()
            for p in range(T):
                a = As[y, p]
                acc_left += a * Bs[p, x]
                acc_right += a * Bs[p, x + T]
            cuda.syncthreads()

        if row < m and left < n:
            C[row, left] = alpha * acc_left if beta == 0 else alpha * acc_left + beta * C[row, left]
        if row < m and right < n:
            C[row, right] = (
                alpha * acc_right if beta == 0 else alpha * acc_right + beta * C[row, right]
            )
        # [end]

    return kernel


def judge(answer: Any) -> Finding:
    """Check values and hazards on every case, then bytes and sectors of the largest."""
    trials = kernels_on_trial.judge(answer, CASES, tiling, anew=matrices.beyond(CASES))
    if isinstance(trials, Finding):
        return trials
    return timed.judge(kernels_on_trial.within_budgets(trials), answer, tiling, TIMED, BESIDE)


_LAST = CASES[-1].problem

TASK = Task(
    name="04.5",
    title="A traffic budget",
    section="chapter 04, Two elements for each thread",
    asked="build(T) returns a kernel whose T×T threads compute T×2T elements of C, two each, "
    "and whose block loads each element that it needs once, in whole sectors.",
    prompt=f"""
    Let each thread compute **two** elements of C, in the same row: a block of T×T threads then
    computes T rows by 2T columns, and the grid is ⌈n/2T⌉ × ⌈m/T⌉ blocks.

    The budget at m = n = k = {_LAST.m} and T = {CASES[-1].tile}: each block loads each element of A
    and B that it needs once, and lanes of a warp read neighbours, so that every 32-byte sector is
    used whole. `q5.check(build)` says how many sectors that is and how many were counted.
    """,
    judge=judge,
    answers=(build,),
    diagnoses={
        **KERNEL,
        "not-attempted": Diagnosis(
            "The skeleton is unchanged.",
            "Which two columns of C does thread x take, so that neighbours in x read neighbours?",
            "```python\nAs = cuda.shared.array((T, T), float32)\n"
            "Bs = cuda.shared.array((T, ...), float32)\n"
            "left = cuda.blockIdx.x * ... + x\nright = left + ...\n```",
        ),
        "not-written": Diagnosis(
            "Some elements of C are never stored: each thread has two.",
            "Which columns does block x = 0 cover, and who stores the second half of them?",
            "```python\nleft = cuda.blockIdx.x * ... + x\nright = left + ...\n```",
        ),
        "traffic-over-budget": Diagnosis(
            "The result is right, but a block loads some elements more than once; the point of two "
            "elements a thread is that one tile of A serves both.",
            "How many times does your block copy the same tile of A?",
            "```python\nfor p in range(T):\n    a = As[y, p]\n    acc_left += a * ...\n"
            "    acc_right += a * ...\n```",
        ),
        "copy-not-coalesced": Diagnosis(
            "The result is right and each element is loaded once, but neighbouring lanes read "
            "elements that are not neighbours. Where they are two apart, each sector is fetched "
            "twice and half used each time.",
            "Which addresses do lanes 0, 1, 2, … read in one load of B?",
            "Columns x and x + T, not 2·x and 2·x + 1, when copying.",
        ),
    },
    praise="A wider tile halves the traffic of A, and neighbouring lanes use sectors whole.",
)
