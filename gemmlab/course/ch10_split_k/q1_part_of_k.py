"""Exercise 10.1: each block multiplies a part of k, and stores its sums in a workspace."""

from dataclasses import replace
from typing import Any

import numpy as np
from numpy import float32

from gemmlab.course.judging import Diagnosis, Finding, Task, kernels_on_trial, timed
from gemmlab.course.judging.diagnoses import KERNEL
from gemmlab.course.judging.kernels_on_trial import Form, Trial
from gemmlab.course.judging.launches import Launch
from gemmlab.course.judging.matrices import Case, case, long_and_thin
from gemmlab.problem import Gemm
from gemmlab.simt import cuda
from gemmlab.tiling import Tiling

CASES = (
    case(1, 1, 1, tile=2),
    case(2, 1, 3, tile=2),
    case(2, 3, 8, alpha=2, beta=0.5, tile=2),
    case(6, 5, 15, alpha=-1, beta=2, tile=4),
    Case(Gemm(6, 7, 17), tile=4, large=True),
    case(9, 6, 23, beta=1, tile=4),  # 6 steps in 4 parts: by twos, nothing is left for the last
    long_and_thin(4),
    case(16, 16, 72, tile=8),
)


def parts(problem: Gemm) -> int:
    """Parts of k: 1 to 5, of which some cases have more than steps; 6 more where C is large."""
    return 1 + (problem.m + problem.n + problem.k) % 5 + (6 if problem.m > 16 else 0)


def grid(tiling: Tiling, problem: Gemm) -> tuple[int, int, int]:
    """Blocks along n, along m and along k."""
    return (*tiling.grid(problem), parts(problem))


def build_parts(T):
    """The kernel for tiles of T×T elements and any number of parts."""

    def kernel(A, B, W):
        As = cuda.shared.array((T, T), float32)
        Bs = cuda.shared.array((T, T), float32)
        split, m, n = W.shape
        k = A.shape[1]
        x = cuda.threadIdx.x
        y = cuda.threadIdx.y
        row = cuda.blockIdx.y * T + y
        col = cuda.blockIdx.x * T + x
        part = cuda.blockIdx.z  # 0 … split - 1

        # Add up this block's part of the steps along k, as in chapter 4; store it in W.
        # [answer]
        steps = (k + T - 1) // T
        begin, end = part * steps // split, (part + 1) * steps // split
        acc = float32(0)
        for start in range(begin * T, end * T, T):
            As[y, x] = A[row, start + x] if row < m and start + x < k else float32(0)
            Bs[y, x] = B[start + y, col] if start + y < k and col < n else float32(0)
            cuda.syncthreads()
            for p in range(T):
                acc += As[y, p] * Bs[p, x]
            cuda.syncthreads()
        if row < m and col < n:
            W[part, row, col] = acc
        # [end]

    return kernel


def _arguments(one: Case) -> tuple[np.ndarray, ...]:
    """A, B, and a workspace in which nothing is stored yet."""
    p, (a, b, _) = one.problem, one.operands()
    return a, b, np.full((parts(p), p.m, p.n), np.nan, float32)


def _added(one: Case, after: tuple[Any, ...]) -> np.ndarray:
    """C ← α·(sum of the parts) + β·C, as the second launch makes it."""
    p, c = one.problem, one.operands().c.astype(float)
    total = p.alpha * after[-1].astype(float).sum(axis=0)
    return total + p.beta * c if p.beta != 0 else total


def _telling(trial: Trial) -> str:
    """The diagnosis that the workspace of a wrong trial speaks for."""
    w, (a, b, _) = trial.launched.arguments[-1], trial.run.operands
    (split, _, _), (_, k), tile = w.shape, a.shape, trial.run.case.tile
    if trial.run.case.large and np.array_equal(w, np.trunc(w)):
        return "whole-numbers-only"
    if np.isnan(w).any():
        return "part-not-stored" if np.isnan(w).all(axis=(1, 2)).any() else ""
    if split == 1:
        return ""
    steps = -(-k // tile)
    whole = steps // split * tile
    cut = [part * steps // split * tile for part in range(split + 1)]
    expected = {
        "whole-of-k": [a @ b] * split,
        "begins-at-zero": [a[:, :end] @ b[:end] for end in cut[1:]],
        "rest-left-out": [
            a[:, i * whole : (i + 1) * whole] @ b[i * whole : (i + 1) * whole] for i in range(split)
        ],
    }
    for name, sums in expected.items():
        if np.array_equal(w, sums):
            return name
    return ""


FORM = Form(("A", "B", "W"), _arguments, _added, _telling)


EXAMPLE = timed.of_product(
    64, 64, 8192, "T = 16, 8 parts",
    lambda a, b, c: Launch((16,), (4, 4, 8), (16, 16), (a, b, np.zeros((8, 64, 64), float32))),
    ("A", "B", "W"),
)  # fmt: skip


def judge(answer: Any) -> Finding:
    """Check values and hazards on every case, the longest part, and the usual budgets."""
    trials = kernels_on_trial.judge(answer, CASES, Tiling.square, grid, FORM)
    if isinstance(trials, Finding):
        return trials
    last = trials[-1]
    problem, tiling = last.run.case.problem, last.tiling
    tile, split, steps = last.run.case.tile, parts(problem), tiling.steps(problem)
    loaded = last.report.shares.of("load", "A").sum(axis=1) / (kernels_on_trial.FLOAT * tile * tile)
    most = -(-steps // split)
    facts = (
        ("Blocks", f"{' × '.join(map(str, last.report.grid))}, the last along k"),
        ("Steps of a block", f"{loaded.min():g} … {loaded.max():g}; even parts: at most {most}"),
    )
    found = kernels_on_trial.within_budgets(trials, facts)
    told = tuple(fact for fact in found.facts if fact[0] != "Stored by a thread")  # of C: nothing
    found = replace(found, facts=told)
    # Where all is loaded once, a share that is too large is that of a block.
    uneven = found.diagnosis in ("passed", "few-threads-multiply", "few-threads-copy")
    if found.diagnosis == "copy-not-coalesced" and (loaded % 1).any():
        return replace(found, diagnosis="cut-inside-steps")
    if uneven and loaded.max() > most:
        return Finding("part-too-long", found.facts, found.details)
    length, fact = kernels_on_trial.deal(
        trials, lambda trial: (trial.run.steps, parts(trial.run.case.problem))
    )
    if uneven and length:
        facts = (*found.facts, ("Steps that a block multiplies", fact))
        return Finding(f"part-{length}", facts, found.details)
    return timed.beside(found, answer, build_parts, EXAMPLE)


_LAST = CASES[-1].problem

TASK = Task(
    name="10.1",
    title="A part of k",
    section="chapter 10, How do several blocks share one tile?",
    asked="build_parts(T) returns a kernel whose block (x, y, z) stores in W[z] the sums over its "
    "part of k, for its tile of C.",
    prompt=f"""
    The grid has a third axis: `cuda.blockIdx.z` says which of the `split` parts of k is this
    block's. Add up that part alone, and store the sums in `W[part, row, col]`. Another launch will
    add the parts, with alpha, beta and C, so that none of these comes in here.

    - k takes ⌈k/T⌉ steps of T. Cut *between steps*, in parts that differ by one step at most.
    - Any m, n, k ≥ 1 and any `split`, also one above the number of steps. The workspace holds NaN
      before the launch.
    - The budget at {_LAST}, T = {CASES[-1].tile}, with {parts(_LAST)} parts: no block takes more
      steps than an even deal gives it, and A and B are loaded as often as without a split.
    """,
    judge=judge,
    answers=(build_parts,),
    diagnoses={
        **KERNEL,
        "not-attempted": Diagnosis(
            "The skeleton is unchanged.",
            "With 9 steps and 4 parts, which steps are those of part 0, and which of part 3?",
            "```python\nbegin, end = part * steps // split, ...\nacc = float32(0)\n"
            "for start in range(begin * T, ..., T):\n    ...\n```",
        ),
        "part-not-stored": Diagnosis(
            "A part of the workspace is never stored. A part without a step is a sum, too: 0.",
            "Which parts have no step when k takes 1 step and there are 4 parts, and what will the "
            "second launch read there?",
            "```python\nif row < m and col < n:    # whatever the part is\n    W[part, ...] = acc\n"
            "```",
        ),
        "whole-of-k": Diagnosis(
            "Each block adds up all of k, so that every product is counted once for each part.",
            "Which statement of your loop depends on `part`?",
            "```python\nfor start in range(begin * T, end * T, T):    # begin, end: of this part\n"
            "```",
        ),
        "begins-at-zero": Diagnosis(
            "Each part begins at 0, so that early products are counted several times.",
            "Where does part 1 begin if part 0 ends at step e?",
            "```python\nbegin = part * steps // ...\n```",
        ),
        "rest-left-out": Diagnosis(
            "Each part has ⌊steps / split⌋ steps, and the rest of k is left out.",
            "With 9 steps and 4 parts of 2, who takes the ninth?",
            "```python\nbegin, end = part * steps // split, (part + 1) * ...\n```",
        ),
        "cut-inside-steps": Diagnosis(
            "The sums are right, but parts begin inside of a step: the rows that they load begin "
            "anywhere in a sector.",
            "At which multiples may a part of k begin?",
            "Cut the number of steps, not k: begin * T is a multiple of T.",
        ),
        "part-too-long": Diagnosis(
            "The sums are right, but a block takes more steps than an even deal gives it, and the "
            "launch is done when that block is. A step that multiplies zeros is one, too.",
            "How many steps does the longest part have, and how many the shortest?",
            "Multiply before you divide: part · steps // split is even to within one step.",
        ),
        "part-too-short": Diagnosis(
            "The sums are right, but the parts differ by more than one step: a block has less to "
            "do than an even deal gives it.",
            "With 9 steps in 4 parts, how many has each if each but the last takes ⌈9 / 4⌉?",
            "Multiply before you divide: part · steps // split is even to within one step.",
        ),
    },
    praise="Parts that differ by one step at most keep all blocks busy, and a sum of nothing is 0.",
)
