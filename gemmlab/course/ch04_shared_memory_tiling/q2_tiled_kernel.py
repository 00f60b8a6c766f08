"""Exercise 04.2: complete the kernel that shares tiles of A and B."""

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
    case(3, 2, 1, tile=4),
    case(2, 2, 2, alpha=2, beta=-3, tile=2),
    case(2, 3, 5, alpha=2, beta=0.5, tile=2),
    case(4, 4, 4, tile=4),
    case(5, 3, 7, alpha=2, tile=4),
    case(4, 4, 8, tile=4),
    Case(Gemm(3, 5, 17), tile=4, large=True),
    case(9, 6, 5, alpha=-1, beta=2, tile=4),
    case(8, 8, 8, beta=1, tile=4),
    case(16, 16, 16, tile=8),
)
TIMED = case(17, 33, 19, tile=16)
BESIDE = timed.Yardstick(kernels.coalesced, Tiling(block=(16, 16, 1)))


def build(T):
    """The kernel for tiles of T×T elements."""

    def kernel(alpha, A, B, beta, C):
        As = cuda.shared.array((T, T), float32)
        Bs = cuda.shared.array((T, T), float32)
        m, n = C.shape
        k = A.shape[1]
        x = cuda.threadIdx.x
        y = cuda.threadIdx.y
        row = cuda.blockIdx.y * T + y
        col = cuda.blockIdx.x * T + x

        acc = float32(0)
        # Step along k, tile by tile.
        # [answer]
        for start in range(0, k, T):
            As[y, x] = A[row, start + x] if row < m and start + x < k else float32(0)
            Bs[y, x] = B[start + y, col] if start + y < k and col < n else float32(0)
            cuda.syncthreads()
            for p in range(T):
                acc += As[y, p] * Bs[p, x]
            cuda.syncthreads()
        # [end]

        # Store alpha * acc + beta * C, where there is an element of C.
        # [answer]
        if row < m and col < n:
            if beta == 0:
                C[row, col] = alpha * acc
            else:
                C[row, col] = alpha * acc + beta * C[row, col]
        # [end]

    return kernel


def judge(answer: Any) -> Finding:
    """Check values and hazards on every case, then who moves how much in the largest."""
    trials = kernels_on_trial.judge(answer, CASES, Tiling.square, anew=matrices.beyond(CASES))
    if isinstance(trials, Finding):
        return trials
    return timed.judge(
        kernels_on_trial.within_budgets(trials), answer, Tiling.square, TIMED, BESIDE
    )


TASK = Task(
    name="04.2",
    title="The tiled kernel",
    section="chapter 04, All of k",
    asked="build(T) returns a kernel (alpha, A, B, beta, C) that computes C ← alpha·A·B + beta·C "
    "from tiles of T×T elements in shared memory.",
    prompt="""
    Complete the kernel. A block of T×T threads computes a T×T tile of C; thread (x, y) has
    row y and column x of it, and the grid is ⌈n/T⌉ × ⌈m/T⌉ blocks. Step along k: copy a tile of A
    and one of B to shared memory, multiply them, go on. Any m, n, k ≥ 1, any alpha and beta;
    where beta = 0, C is not read.

    `q2.check(build)` runs it on the simulated GPU: values, races, barriers and indices first, then
    how many bytes it loads.
    """,
    judge=judge,
    answers=(build,),
    diagnoses={
        **KERNEL,
        "not-attempted": Diagnosis(
            "The skeleton is unchanged.",
            "Thread (x, y) copies one element of each tile in each step: which one?",
            "```python\nfor start in range(0, k, T):\n    As[y, x] = ...\n    Bs[y, x] = ...\n"
            "    cuda.syncthreads()\n    for p in range(T):\n        acc += ...\n"
            "    cuda.syncthreads()\n```",
        ),
    },
    praise="Two barriers a step keep writers and readers apart, zeros fill the edges, and each "
    "block loads each element once.",
)
