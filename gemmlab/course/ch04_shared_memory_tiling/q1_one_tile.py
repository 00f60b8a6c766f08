"""Exercise 04.1: copy one tile of A and one of B, and wait for the block."""

from typing import Any

from numpy import float32

from gemmlab.course.judging import Diagnosis, Finding, Task, kernels_on_trial, matrices, timed
from gemmlab.course.judging.diagnoses import KERNEL
from gemmlab.course.judging.launches import Launch
from gemmlab.course.judging.matrices import Case, case
from gemmlab.problem import Gemm
from gemmlab.simt import cuda
from gemmlab.tiling import Tiling

# k is at most T, also in the case that is drawn anew with the last T.
CASES = (
    case(1, 1, 1, tile=2),
    case(3, 2, 1, tile=4),
    case(2, 2, 2, alpha=2, beta=-3, tile=2),
    case(3, 5, 2, alpha=2, tile=2),
    case(5, 3, 3, alpha=-1, beta=0.5, tile=4),
    case(4, 8, 4, tile=4),
    Case(Gemm(5, 9, 7), tile=8, large=True),
    case(9, 6, 8, beta=2, tile=8),
    case(16, 32, 16, tile=16),
)


def build(T):
    """The kernel for one tile of T×T elements of A and one of B."""

    def kernel(alpha, A, B, beta, C):
        As = cuda.shared.array((T, T), float32)
        Bs = cuda.shared.array((T, T), float32)
        m, n = C.shape
        k = A.shape[1]  # at most T
        x = cuda.threadIdx.x
        y = cuda.threadIdx.y
        row = cuda.blockIdx.y * T + y
        col = cuda.blockIdx.x * T + x

        # As[y, x] holds A[row, x], Bs[y, x] holds B[y, col]; 0 where there is no such element.
        # [answer]
        if row < m and x < k:
            As[y, x] = A[row, x]
        else:
            As[y, x] = 0
        if y < k and col < n:
            Bs[y, x] = B[y, col]
        else:
            Bs[y, x] = 0
        cuda.syncthreads()
        # [end]

        acc = float32(0)
        for p in range(T):
            acc += As[y, p] * Bs[p, x]

        if row < m and col < n:
            C[row, col] = alpha * acc if beta == 0 else alpha * acc + beta * C[row, col]

    return kernel


SIDE = 4096
EXAMPLE = timed.of_product(
    SIDE, SIDE, 16, "T = 16",
    lambda a, b, c: Launch(
        (16,), (SIDE // 16, SIDE // 16), (16, 16), (float32(1), a, b, float32(0), c)
    ),
)  # fmt: skip


def judge(answer: Any) -> Finding:
    """Check values and hazards on every case, then who moves how much in the largest."""
    trials = kernels_on_trial.judge(answer, CASES, Tiling.square, anew=matrices.beyond(CASES))
    if isinstance(trials, Finding):
        return trials
    return timed.beside(kernels_on_trial.within_budgets(trials), answer, build, EXAMPLE)


TASK = Task(
    name="04.1",
    title="One tile, one barrier",
    section="chapter 04, One tile",
    asked="build(T) returns a kernel (alpha, A, B, beta, C) for k of at most T, whose threads copy "
    "one element of A and one of B each and wait before they multiply.",
    prompt="""
    Here k is at most T, so one tile of A and one of B hold everything that a block needs. Fill in
    the copy: thread (x, y) copies **one** element to `As[y, x]` and one to `Bs[y, x]`, or writes a
    0 where the matrix has ended. Then all must wait for all.

    `q1.check(build)` runs the kernel on the simulated GPU, with shapes that T does not divide.
    """,
    judge=judge,
    answers=(build,),
    diagnoses={
        **KERNEL,
        "not-attempted": Diagnosis(
            "The skeleton is unchanged.",
            "Which element of A does thread (x, y) copy, and for which threads is there none?",
            "```python\nif row < m and ...:\n    As[y, x] = A[row, ...]\nelse:\n    ...\n```",
        ),
        "tile-not-filled": Diagnosis(
            "An element of a tile was never written: beyond the edge of A or B it must become 0, "
            "because shared memory does not start at zero.",
            "What does a tile hold where it hangs over the edge of the matrix?",
            "```python\nif row < m and x < k:\n    As[y, x] = A[row, x]\nelse:\n    ...\n```",
        ),
        "load-outside": Diagnosis(
            "A load lies outside A or B: the guard lets a thread through whose row or column is "
            "beyond the edge. Each of the two conditions has to hold.",
            "For the thread that is named: which of its two indices is too large, and which part "
            "of the condition should have stopped it?",
            "```python\nif row < m ... x < k:\n```",
        ),
        "barrier-before-reading": Diagnosis(
            "A thread reads a tile before the others have finished writing it: nothing makes it "
            "wait between copying and multiplying.",
            "When a thread starts to multiply, who tells it that the other threads have copied?",
            "```python\nBs[y, x] = ...\n...            # everybody has copied\nacc = float32(0)\n"
            "```",
        ),
    },
    praise="Each thread loads two elements and uses 2T: the other threads of its block have copied "
    "the rest. The barrier makes sure that they have.",
)
