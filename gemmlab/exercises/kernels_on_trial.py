"""Judging a learner's kernel on the simulator: values, hazards and traffic, smallest case first."""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from gemmlab.exercises import matrices
from gemmlab.exercises.kernel_diagnoses import KERNEL
from gemmlab.exercises.launches import Launch, Launched, fault, launched, threads_of
from gemmlab.exercises.matrices import Case, Run
from gemmlab.exercises.plain import difference
from gemmlab.exercises.verdict import Finding
from gemmlab.problem import Gemm
from gemmlab.simt import Hazard, Report
from gemmlab.simt.report.notes import Note
from gemmlab.tiling import Tiling

PARAMETERS = ["alpha", "A", "B", "beta", "C"]
Grid = Callable[[Tiling, Gemm], tuple[int, int]]  # (x, y), of a tiling and a problem
Sizes = Callable[[Case], tuple[int, ...]]  # of a case: what `build` is called with


def side_alone(case: Case) -> tuple[int, ...]:
    """The side of the tile."""
    return (case.tile,)


@dataclass(frozen=True)
class Trial:
    """One launch of a learner's kernel."""

    run: Run
    tiling: Tiling
    launched: Launched

    @property
    def report(self) -> Report:
        """What the simulator counted and found."""
        return self.launched.report

    @property
    def fault(self) -> Hazard | Note | None:
        """The first thing that it did wrong, as `launches.fault` has it."""
        return fault(self.report)

    @property
    def changed(self) -> str:
        """Where A or B is not what it was before the launch; empty where they are."""
        _, a, b, _, _ = self.launched.arguments
        before = self.run.operands
        return difference("A", before.a, a) or difference("B", before.b, b)

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
        return not self.fault and not self.changed and not self.run.wrong.any()


def judge(
    build: Callable,
    cases: tuple[Case, ...],
    tiling: Callable[[int], Tiling],
    grid: Grid = Tiling.grid,
    sizes: Sizes = side_alone,
) -> Finding | list[Trial]:
    """The trials, if every one is right; else what is wrong with the smallest case that is not.

    grid : blocks of the launch; a block for each tile if nothing else is said
    sizes : the arguments of `build`
    After `cases` comes one more, drawn anew, which the list of trials leaves out.
    """
    trials: list[Trial] = []
    every = (*cases, matrices.drawn_anew(cases))
    launches = [_launch(case, tiling(case.tile), grid, sizes) for case in every]
    tried = launched(build, PARAMETERS, launches)
    for case, item in zip(every, tried, strict=False):
        failed = any(not t.right for t in trials)
        if isinstance(item, Finding):
            if failed:
                break
            return _without_trial(case, item)
        trials.append(Trial(_run(case, item), tiling(case.tile), item))
        if any(h.kind in ("step-limit", "deadlock") for h in item.report.hazards):
            break
    for trial in trials:
        if trial.fault:
            return _hazard(trial, trial.fault)
        if trial.changed:
            return _changed(trial)
        if trial.run.wrong.any():
            if trial.run.case.anew:
                return _wrong_values(trial, [trial.run]).anew
            known = [t.run for t in trials[: len(cases)] if not t.fault]
            return _wrong_values(trial, known)
    return trials[:-1]


def launch(build: Callable, case: Case, tiling: Tiling) -> Trial | Finding:
    """Build the kernel and simulate it on one case; a Finding where that cannot be done."""
    item = next(launched(build, PARAMETERS, [_launch(case, tiling)]))
    if isinstance(item, Finding):
        return _without_trial(case, item)
    return Trial(_run(case, item), tiling, item)


def _launch(
    case: Case, tiling: Tiling, grid: Grid = Tiling.grid, sizes: Sizes = side_alone
) -> Launch:
    (bm, bn, _), (tm, tn) = tiling.block, tiling.thread
    p, (a, b, c) = case.problem, case.operands()
    arguments = c.dtype.type(p.alpha), a, b, c.dtype.type(p.beta), c
    return Launch(sizes(case), grid(tiling, p), (bn // tn, bm // tm), arguments)


def _run(case: Case, item: Launched) -> Run:
    return Run(case, case.operands(), item.arguments[-1].astype(np.float64))


def _without_trial(case: Case, found: Finding) -> Finding:
    """The finding for a case that could not be simulated to its end."""
    p = case.problem
    facts = (case.fact, *found.facts)
    unset = found.details.get("error") == "NameError" and any(
        "before it is assigned" in text for _, text in found.facts
    )
    diagnosis = "accumulator-not-zeroed" if unset else found.diagnosis
    found = Finding(diagnosis, facts, {"shape": (p.m, p.n, p.k), **found.details})
    return found.anew if case.anew else found


# ------------------------------------------------------------------------------------ in words


def _hazard(trial: Trial, hazard: Hazard | Note) -> Finding:
    """The fault of a trial, and the first wrong value if there is one."""
    problem = trial.run.case.problem
    facts: tuple[tuple[str, str], ...] = (trial.run.case.fact,)
    details: dict[str, Any] = {"shape": (problem.m, problem.n, problem.k)}
    if trial.run.wrong.any():
        facts, details = matrices.first_wrong(trial.run)
        facts += (_owner(trial, details),)
    details |= {
        "kind": hazard.kind,
        "line": hazard.line,
        "code": hazard.code,
        "hazard_block": hazard.block,
        "threads": threads_of(hazard),
    }
    facts += (
        (f"Hazard, {hazard.kind}", hazard.message),
        ("Where", f"line {hazard.line}: {hazard.code}"),
    )
    diagnosis = _of_hazard(hazard)
    if diagnosis == "tile-not-filled" and trial.returns_early:
        diagnosis = "early-return"
    return Finding(diagnosis, facts, details)


def _changed(trial: Trial) -> Finding:
    p = trial.run.case.problem
    facts = (trial.run.case.fact, ("You changed", trial.changed))
    return Finding("inputs-changed", facts, {"shape": (p.m, p.n, p.k), "changed": trial.changed})


def _of_hazard(hazard: Hazard | Note) -> str:
    """The diagnosis that a hazard, or a note, stands for."""
    if isinstance(hazard, Note):
        return "two-writers"
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
        "deadlock": "never-ends",
    }.get(hazard.kind, "wrong-values")


def _owner(trial: Trial, details: dict[str, Any]) -> tuple[str, str]:
    """Which block and thread the launch gives the wrong element to.

    Where blocks are not tiles, the block is any that takes the tile.
    """
    i, j = details["index"]
    bm, bn, _ = trial.tiling.block
    height, width = bm // trial.tiling.thread[0], bn // trial.tiling.thread[1]
    details["block"], details["thread"] = (j // bn, i // bm), (j % bn % width, i % bm % height)
    a_block_each = trial.report.grid[:2] == trial.tiling.grid(trial.run.case.problem)
    whose = "block" if a_block_each else "whoever takes tile"
    text = f"{whose} (x, y) = {details['block']}, thread (x, y) = {details['thread']}"
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
