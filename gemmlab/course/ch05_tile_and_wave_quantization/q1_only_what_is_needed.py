"""Exercise 05.1: at the ragged edge no warp multiplies what C does not need."""

from dataclasses import dataclass, replace
from typing import Any

from numpy import float32

from gemmlab import kernels
from gemmlab.course.judging import Diagnosis, Finding, Task, kernels_on_trial, timed
from gemmlab.course.judging.diagnoses import KERNEL
from gemmlab.course.judging.kernels_on_trial import Trial
from gemmlab.course.judging.matrices import Case, case
from gemmlab.problem import Gemm, Operands
from gemmlab.simt import cuda
from gemmlab.tiling import Tiling


class Hollow(Case):
    """A case whose A and B hold zeros, of which no product may depend."""

    def operands(self) -> Operands:
        """A with every third column zero, and B with the rows after them."""
        found = super().operands()
        found.a[:, ::3], found.b[1::3] = 0, 0
        return found


CASES = (
    case(1, 1, 1, tile=2),
    case(3, 2, 1, tile=4),
    case(2, 3, 5, alpha=2, beta=0.5, tile=2),
    case(4, 4, 8, tile=4),
    Case(Gemm(3, 5, 17), tile=4, large=True),
    case(9, 6, 5, alpha=-1, beta=2, tile=4),
    case(9, 16, 8, tile=8),
    case(17, 9, 13, beta=1, tile=8),
    Hollow(Gemm(65, 4, 64, 0.5, 0.5), tile=32),
    case(9, 136, 16, tile=8),
    Case(Gemm(8, 8, 320, 0.5, 0.5), tile=8, large=True),
    case(20, 32, 32, tile=8),
)
TIMED = case(17, 18, 21, alpha=2, beta=0.5, tile=16)
BESIDE = timed.Yardstick(kernels.tiled, Tiling.square(16))  # it multiplies what hangs over, too


def build_guarded(T):
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
        for start in range(0, k, T):
            As[y, x] = A[row, start + x] if row < m and start + x < k else float32(0)
            Bs[y, x] = B[start + y, col] if start + y < k and col < n else float32(0)
            cuda.syncthreads()
            # Multiply the two tiles, but only where C needs the product.
            # [answer]
            if row < m and col < n:
                for p in range(min(T, k - start)):
                    acc += As[y, p] * Bs[p, x]
            # [end]
            cuda.syncthreads()

        if row < m and col < n:
            C[row, col] = alpha * acc if beta == 0 else alpha * acc + beta * C[row, col]

    return kernel


@dataclass(frozen=True)
class Work:
    """Products of warps in one launch, by the words that their lanes load from shared memory.

    needed : k for each warp that has an element of C; beyond_c : of warps that have none
    executed : of all; a warp has as many as the lane that has most
    """

    trial: Trial
    needed: float
    executed: float
    beyond_c: float

    @property
    def wasted(self) -> float:
        """Products of warps that C needs not; below 0 where it needs more."""
        return self.executed - self.needed


def work(trial: Trial) -> Work:
    """Count what each warp multiplied; a warp has an element of C if it stores one."""
    shares = trial.report.shares
    products = kernels_on_trial.by_warp(
        kernels_on_trial.of_shared(shares, "load") / (2 * kernels_on_trial.FLOAT)
    )
    with_c = kernels_on_trial.by_warp(shares.of("store", "C")) > 0
    needed = int(with_c.sum()) * trial.run.case.problem.k
    return Work(trial, needed, float(products.sum()), float(products[~with_c].sum()))


def judge(answer: Any) -> Finding:
    """Check values and hazards on every case, budgets, and then products that C needs not."""
    trials = kernels_on_trial.judge(answer, CASES, Tiling.square)
    if isinstance(trials, Finding):
        return trials
    works = [work(trial) for trial in trials]
    worst = max(works, key=lambda w: (w.wasted, w.needed))
    facts = (
        ("Most wasteful case", str(worst.trial.run.case)),
        ("Its products, by whole warps", f"{worst.executed:g}; needed: {worst.needed:g}"),
    )
    found = kernels_on_trial.within_budgets(trials, facts)
    if found.diagnosis != "passed":
        return found
    if worst.wasted > 0:
        beyond_c = any(w.beyond_c for w in works)
        return replace(found, diagnosis="products-beyond-c" if beyond_c else "products-beyond-k")
    if fewer := next((w for w in works if w.wasted < 0), None):
        told = f"{fewer.executed:g} of {fewer.needed:g}, where A and B hold zeros"
        facts = (*found.facts, ("Products left out", told))
        return replace(found, diagnosis="products-by-value", facts=facts)
    if any(kernels_on_trial.in_turns(trial.report) for trial in trials):
        return replace(found, diagnosis="lanes-in-turns")
    return timed.judge(found, answer, Tiling.square, TIMED, BESIDE)


TASK = Task(
    name="05.1",
    title="Only what C needs",
    section="chapter 05, Which products does nobody need?",
    asked="build_guarded(T) returns a tiled kernel in which no warp multiplies for elements "
    "outside of C, nor for steps beyond k.",
    prompt="""
    The kernel of chapter 4 multiplies in every thread and fills what hangs over with zeros. Write
    the multiplication so that a warp none of whose lanes has an element of C does not multiply at
    all, and that nobody multiplies beyond k.

    The budget: k products for each warp that has an element of C, whatever the values are, and none
    for others. A warp counts whole, however many of its lanes work; a product takes a word of As
    and one of Bs. The check also predicts the time of a product without ragged edges on an H200.
    """,
    judge=judge,
    answers=(build_guarded,),
    diagnoses={
        **KERNEL,
        "not-attempted": Diagnosis(
            "The skeleton is unchanged.",
            "Which threads have an element of C, and how many products does the last step have?",
            "```python\nif row < m and ...:\n    for p in range(min(T, ...)):\n"
            "        acc += As[y, p] * Bs[p, x]\n```",
        ),
        "products-beyond-c": Diagnosis(
            "The result is right, but warps multiply that have no element of C.",
            "For which threads is the sum never stored, and what stops them from adding it up?",
            "```python\nif row < m and ...:\n    for p in range(...):\n        acc += ...\n```",
        ),
        "products-by-value": Diagnosis(
            "The result is right, but which products are done depends on the values: those with a "
            "zero are left out, and the lanes of a warp then wait for those without one.",
            "Which of your conditions looks at an element of As or Bs?",
            "```python\nif row < m and ...:    # sizes and places, no values\n```",
        ),
        "products-beyond-k": Diagnosis(
            "The result is right, but the last step along k multiplies zeros.",
            "How many columns of A are left in the step that begins at `start`?",
            "```python\nfor p in range(min(T, ...)):\n```",
        ),
    },
    praise="All threads copy and wait, and only those that C needs multiply. A warp with one "
    "useful lane still takes the time of a whole one. A bound that the compiler does not know has "
    "its price, too: with a loop of T for whole steps and another one for the last, the predicted "
    "79 ms become 23.",
)
