"""Judging a learner's kernel on the simulator: values, hazards and traffic, smallest case first."""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from gemmlab.exercises import guard, matrices, source
from gemmlab.exercises.kernel_diagnoses import KERNEL
from gemmlab.exercises.matrices import Case, Run
from gemmlab.exercises.verdict import Finding
from gemmlab.simt import Hazard, Report, simulate
from gemmlab.tiling import Tiling

PARAMETERS = ["alpha", "A", "B", "beta", "C"]
# Loop iterations of one launch; the largest case takes a few hundred.
MAX_STEPS = 5_000


@dataclass(frozen=True)
class Trial:
    """One launch of a learner's kernel."""

    run: Run
    tiling: Tiling
    report: Report

    @property
    def returns_early(self) -> bool:
        """Whether the kernel has a return above one of its barriers."""
        nodes = list(ast.walk(self.report.source.tree))
        left = [n.lineno for n in nodes if isinstance(n, ast.Return)]
        waits = [n.lineno for n in nodes if getattr(n, "attr", "") == "syncthreads"]
        return bool(left and waits) and min(left) < max(waits)

    @property
    def right(self) -> bool:
        """Whether the values are right and nothing else is wrong."""
        return not self.report.hazards and not self.run.wrong.any()


def judge(
    build: Callable, cases: tuple[Case, ...], tiling: Callable[[int], Tiling]
) -> Finding | list[Trial]:
    """The trials, if every one is right; else what is wrong with the smallest case that is not."""
    trials: list[Trial] = []
    for case in cases:
        trial = launch(build, case, tiling(case.tile))
        failed = any(not t.right for t in trials)
        if isinstance(trial, Trial):
            trials.append(trial)
            if any(h.kind == "step-limit" for h in trial.report.hazards):
                break
        elif not failed:
            return trial
    for trial in trials:
        if trial.report.hazards:
            return _hazard(trial)
        if trial.run.wrong.any():
            return _wrong_values(trial, [t.run for t in trials if not t.report.hazards])
    return trials


def launch(build: Callable, case: Case, tiling: Tiling) -> Trial | Finding:
    """Build the kernel and simulate it on one case; a Finding where that cannot be done."""
    built = guard.attempt(build, case.tile)
    problem = case.problem
    where = (("Smallest failing case", str(case)),)
    shape = {"shape": (problem.m, problem.n, problem.k)}
    if built.fault:
        f = built.fault
        return Finding(f.diagnosis, where + f.facts, shape | dict(f.details))
    kernel = getattr(built.value, "py_func", built.value)
    wrong = source.parameters_wrong(kernel, PARAMETERS)
    if wrong:
        return Finding("wrong-type", (("Found", f"build({case.tile}) returned: {wrong}"),))
    a, b, c = case.operands()
    result = c.copy()
    scalar = c.dtype.type
    (bm, bn, _), (tm, tn) = tiling.block, tiling.thread
    arguments = scalar(problem.alpha), a, b, scalar(problem.beta), result
    try:
        report = simulate(
            kernel, tiling.grid(problem), (bn // tn, bm // tm), *arguments,
            on_hazard="collect", max_steps=MAX_STEPS,
        )  # fmt: skip
    except Exception as error:
        found = guard.fault(error)
        diagnosis, text = found.diagnosis, str(error)
        if isinstance(error, NameError) and "before it is assigned" in text:
            diagnosis = "accumulator-not-zeroed"
        facts = (*where, ("Error", f"{type(error).__name__}: {text}"))
        return Finding(diagnosis, facts, shape | {"error": type(error).__name__})
    run = Run(case, case.operands(), result.astype(np.float64))
    return Trial(run, tiling, report)


# ------------------------------------------------------------------------------------ in words


def _hazard(trial: Trial) -> Finding:
    """The first hazard of a trial, and the first wrong value if there is one."""
    hazard = trial.report.hazards[0]
    problem = trial.run.case.problem
    facts: tuple[tuple[str, str], ...] = (("Smallest failing case", str(trial.run.case)),)
    details: dict[str, Any] = {"shape": (problem.m, problem.n, problem.k)}
    if trial.run.wrong.any():
        facts, details = matrices.first_wrong(trial.run)
        facts += (_owner(trial, details),)
    details |= {
        "kind": hazard.kind,
        "line": hazard.line,
        "code": hazard.code,
        "hazard_block": hazard.block,
        "threads": hazard.threads,
    }
    facts += (
        (f"Hazard, {hazard.kind}", hazard.message),
        ("Where", f"line {hazard.line}: {hazard.code}"),
    )
    diagnosis = _of_hazard(hazard)
    if diagnosis == "tile-not-filled" and trial.returns_early:
        diagnosis = "early-return"
    return Finding(diagnosis, facts, details)


def _of_hazard(hazard: Hazard) -> str:
    """The diagnosis that a hazard stands for."""
    if hazard.kind == "shared-race":
        if hazard.ops[0] == "read":
            return "barrier-before-reading"
        return "barrier-after-reading" if hazard.ops == ("write", "read") else "two-writers"
    if hazard.kind == "uninitialised-read":
        return "accumulator-not-zeroed" if hazard.space == "local" else "tile-not-filled"
    if hazard.kind == "out-of-bounds":
        return {"A": "load-outside", "B": "load-outside", "C": "store-outside"}.get(
            hazard.array, "tile-outside"
        )
    return {
        "divergent-barrier": "barrier-not-reached",
        "global-race": "two-writers",
        "step-limit": "never-ends",
    }.get(hazard.kind, "wrong-values")


def _owner(trial: Trial, details: dict[str, Any]) -> tuple[str, str]:
    """Which block and thread the launch gives the wrong element to."""
    i, j = details["index"]
    bm, bn, _ = trial.tiling.block
    height, width = bm // trial.tiling.thread[0], bn // trial.tiling.thread[1]
    details["block"], details["thread"] = (j // bn, i // bm), (j % bn % width, i % bm % height)
    text = f"block (x, y) = {details['block']}, thread (x, y) = {details['thread']}"
    return "In charge of it", text


def _wrong_values(trial: Trial, runs: list[Run]) -> Finding:
    facts, details = matrices.first_wrong(trial.run)
    facts += (_owner(trial, details),)
    problem = trial.run.case.problem
    stored = trial.report.counters["global_store_bytes"] // problem.memory[2].itemsize
    if stored < problem.m * problem.n and trial.run.untouched:
        facts += (("Stored", f"{stored} of the {problem.m * problem.n} elements of C"),)
        return Finding("not-written", facts, details | {"stored": stored})
    return Finding(matrices.explain(runs, KERNEL), facts, details)
