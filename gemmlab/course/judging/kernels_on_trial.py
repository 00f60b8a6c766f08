"""Judging a learner's kernel on the simulator, smallest case first.

`judge` looks at values and hazards. `within_budgets` counts what a right kernel that shares tiles
loads and stores, and how evenly: the technique. It counts on the largest case, whose tiles are
whole. Budgets are those of the best plain style, and the shares of threads may differ by a factor
of `UNEVEN`: half of them copy, say.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from gemmlab.course.judging import matrices
from gemmlab.course.judging.diagnoses import KERNEL
from gemmlab.course.judging.integrity import difference
from gemmlab.course.judging.launches import (
    Launch,
    Launched,
    fault,
    launched,
    stores_to_input,
    threads_of,
)
from gemmlab.course.judging.matrices import Case, Run
from gemmlab.course.judging.verdict import Finding
from gemmlab.model.transactions import SECTOR
from gemmlab.problem import Gemm
from gemmlab.simt import Hazard, Report
from gemmlab.simt.races.hazards import Note
from gemmlab.tiling import WARP, Tiling

PARAMETERS = ["alpha", "A", "B", "beta", "C"]
Grid = Callable[[Tiling, Gemm], tuple[int, ...]]  # (x, y) or (x, y, z), of a tiling and a problem


def _product(case: Case) -> tuple[Any, ...]:
    """α, A, B, β and C, as most kernels take them."""
    p, (a, b, c) = case.problem, case.operands()
    return c.dtype.type(p.alpha), a, b, c.dtype.type(p.beta), c


@dataclass(frozen=True)
class Form:
    """The form of a learner's kernel: its parameters, and what its arguments say afterwards.

    sizes : what `build` is called with; the side of the case's tile if nothing else is said
    parameters : their names, A and B among them; arguments : of a case
    result : of a case, from the arguments after the launch: αAB + βC where the kernel is right
    block : threads, as (x, y); as many as thread tiles if nothing else is said
    telling : the diagnosis that the arguments of a wrong trial speak for, empty where there is none
    """

    parameters: Sequence[str] = tuple(PARAMETERS)
    arguments: Callable[[Case], tuple[Any, ...]] = _product
    result: Callable[[Case, tuple[Any, ...]], np.ndarray] = lambda case, after: after[-1]
    telling: Callable[[Trial], str] = lambda trial: ""
    sizes: Callable[[Case], tuple[Any, ...]] = lambda case: (case.tile,)
    block: tuple[int, ...] | None = None


PRODUCT = Form()  # C ← αAB + βC by one launch


@dataclass(frozen=True)
class Trial:
    """One launch of a learner's kernel."""

    run: Run
    tiling: Tiling
    launched: Launched
    form: Form = PRODUCT

    @property
    def report(self) -> Report:
        """The simulator's report of the launch."""
        return self.launched.report

    @property
    def fault(self) -> Hazard | Note | None:
        """The first thing that the launch did wrong (`launches.fault`)."""
        return fault(self.report)

    @property
    def changed(self) -> str:
        """The first element of A or B that the launch changed, in words; empty if none."""
        after = dict(zip(self.form.parameters, self.launched.arguments, strict=True))
        given = dict(zip(self.form.parameters, self.form.arguments(self.run.case), strict=True))
        return next(filter(None, (difference(x, given[x], after[x]) for x in "AB")), "")

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
    form: Form = PRODUCT,
    anew: Sequence[Case] = (),
) -> Finding | list[Trial]:
    """Try every case; the trials if all are right, else what is wrong with the smallest wrong one.

    grid : blocks of the launch; a block for each tile if nothing else is said
    form : of a kernel that is not a whole product
    anew : cases drawn for this check; one that is larger than all others if nothing else is said
    After `cases` come those, which the list of trials leaves out.
    """
    trials: list[Trial] = []
    every = (*cases, *(anew or [matrices.drawn_anew(cases)]))
    launches = [_launch(case, tiling(case.tile), grid, form) for case in every]
    tried = launched(build, list(form.parameters), launches)
    failed = False
    for case in every:
        if failed and case.anew:  # what is wrong with a known case says more
            break
        item = next(tried)
        if isinstance(item, Finding):
            if failed:
                break
            return _without_trial(case, item)
        trial = Trial(_run(case, item, form), tiling(case.tile), item, form)
        trials.append(trial)
        if trial.fault or trial.changed:  # which no other case explains
            break
        failed = failed or not trial.right
    for trial in trials:
        if trial.fault:
            found = _hazard(trial, trial.fault)
            larger = trial.run.case.tile > max(case.tile for case in cases)
            if larger and found.diagnosis == "tile-outside":
                return replace(found, diagnosis="tile-size-fixed")
            return found
        if trial.changed:
            return _changed(trial)
        if trial.run.wrong.any():
            if trial.run.case.anew:
                return _wrong_values(trial, [trial.run]).anew
            known = [t.run for t in trials[: len(cases)] if not t.fault]
            return _wrong_values(trial, known)
    return trials[: len(cases)]


def _launch(case: Case, tiling: Tiling, grid: Grid, form: Form) -> Launch:
    (bm, bn, _), (tm, tn) = tiling.block, tiling.thread
    blocks = grid(tiling, case.problem)
    threads = form.block or (bn // tn, bm // tm)
    return Launch(form.sizes(case), blocks, threads, form.arguments(case))


def _run(case: Case, item: Launched, form: Form) -> Run:
    result = form.result(case, item.arguments).astype(np.float64)
    return Run(case, case.operands(), result)


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
    diagnosis = "inputs-changed" if stores_to_input(hazard) else _of_hazard(hazard)
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
        outside = {"A": "load-outside", "B": "load-outside"}
        outside |= {"C": "store-outside", "W": "store-outside"}  # W: a workspace
        return outside.get(hazard.array, "tile-outside")
    return {
        "divergent-barrier": "barrier-not-reached",
        "global-race": "two-writers",
        "step-limit": "never-ends",
        "deadlock": "never-ends",
    }.get(hazard.kind, "wrong-values")


def _owner(trial: Trial, details: dict[str, Any]) -> tuple[str, str]:
    """Name the block and the thread to which the launch gives the wrong element.

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
    if told := trial.form.telling(trial):
        return Finding(told, facts, details)
    problem = trial.run.case.problem
    stored = trial.report.counters["global_store_bytes"] // problem.memory[2].itemsize
    if stored < problem.m * problem.n and trial.run.untouched:
        facts += (("Stored", f"{stored} of the {problem.m * problem.n} elements of C"),)
        return Finding("not-written", facts, details | {"stored": stored})
    return Finding(matrices.explain(runs, KERNEL), facts, details)


# -------------------------------------------------------------------------------------- budgets

UNEVEN = 2  # times the mean of all threads, at most, is what one of them may do
MANY_BARRIERS = 3  # in a step: with more, there are steps in which a block has nothing to do
ONE_EACH = 1.5  # the same, where tiles have one element or group for each thread to copy
GLOBAL = ("A", "B", "C", "W")
FLOAT = 4  # bytes

Facts = tuple[tuple[str, str], ...]


def within_budgets(
    trials: list[Trial],
    facts: Facts = (),
    own: int = 0,
    of_c: int = 0,
    also: str = "C or a workspace",
) -> Finding:
    """Find the first budget that is not kept; "passed", with all the numbers, where all are.

    facts : more that an exercise has counted
    of_c : bytes of C that may be loaded beside A and B; also : what it is, in words
    own : elements of C that are a thread's own, those of its thread tile if nothing else is said
    """
    last = trials[-1]
    counters, shares = last.report.counters, last.report.shares
    loaded, sectors = counters["global_load_bytes"], counters["global_load_sectors"]
    budget = global_budget(last)
    beside = loaded - int(shares.of("load", "A", "B").sum())
    allowed = budget + min(beside, of_c)
    copied, multiplied = shares.of("load", "A", "B"), of_shared(shares, "load")
    stored = shares.of("store", "C") // FLOAT
    own = own or int(np.prod(last.tiling.thread))
    details = {
        "loaded": loaded, "sectors": sectors, "budget": budget, "counters": dict(counters),
    }  # fmt: skip
    facts = (
        ("Values", f"right in all {len(trials)} cases and in one drawn anew, with no hazard"),
        ("Case", str(last.run.case)),
        ("Loaded from A and B", f"{loaded - beside} B; each block once per element: {budget} B"),
        *(((f"Loaded from {also}", f"{beside} B"),) if beside else ()),
        ("Global load sectors", f"{sectors}; budget {allowed // SECTOR}"),
        ("Copied by a thread", f"{_range(copied)} B"),
        ("Stored by a thread", f"{_range(stored)} elements of C; its own are {own}"),
        *facts,
    )
    too_large = next((t for t in trials if t.report.shares.shared_bytes > shared_limit(t)), None)
    if not multiplied.any():
        return Finding("shared-memory-not-used", facts, details)
    if loaded > allowed:
        again = loaded - beside <= budget
        return Finding("c-again" if again else "traffic-over-budget", facts, details)
    if stored.sum() > last.run.case.problem.m * last.run.case.problem.n:
        return Finding("c-again", facts, details)
    if stored.max() > own:
        return Finding("few-threads-multiply", facts, details)
    if uneven(multiplied):
        told = (("Loaded from shared memory by a thread", f"{_range(multiplied)} B"),)
        return Finding("few-threads-multiply", facts + told, details)
    if uneven(copied):
        return Finding("few-threads-copy", facts, details)
    if sectors > allowed // SECTOR:
        return Finding("copy-not-coalesced", facts, details)
    if too_large is not None:
        return _fixed(too_large, facts, details)
    return Finding("passed", facts, details)


IN_TURNS = 1.5  # times the loads that warps need make with all of their lanes at once


def in_turns(report: Report) -> bool:
    """Whether lanes of a warp load from shared memory one after the other: they are in branches."""
    words = by_warp(of_shared(report.shares, "load") / FLOAT)
    return bool(report.instructions["inst_shared_load"] > IN_TURNS * words.sum())


def by_warp(of_threads: np.ndarray) -> np.ndarray:
    """The largest of each warp's lanes, (blocks, warps)."""
    blocks, threads = of_threads.shape
    padded = np.pad(of_threads, ((0, 0), (0, -threads % WARP)))
    return padded.reshape(blocks, -1, WARP).max(axis=2)


def global_budget(trial: Trial) -> int:
    """Bytes of A and B, if each block loads each element that it needs once."""
    p = trial.run.case.problem
    across, down = trial.tiling.grid(p)
    return FLOAT * (across * p.m * p.k + down * p.k * p.n)


def shared_limit(trial: Trial) -> int:
    """Bytes of shared memory that two buffers of padded tiles take, with room to spare."""
    bm, bn, bk = trial.tiling.block
    return 2 * FLOAT * 2 * (bm + bn) * (bk + 4)


def _fixed(trial: Trial, facts: Facts, details: dict[str, Any]) -> Finding:
    taken = trial.report.shares.shared_bytes
    text = f"{taken} B with T={trial.run.case.tile}; two padded tiles take {shared_limit(trial)} B"
    told = (("Shared memory of a block", text),)
    return Finding("tile-size-fixed", facts + told, details | {"shared_bytes": taken})


def of_shared(shares: Any, op: str) -> np.ndarray:
    """Count the bytes that each thread loads from, or stores to, all shared arrays."""
    names = {name for _, name in shares.bytes} - set(GLOBAL)
    return shares.of(op, *names)


def steps_multiplied(trial: Trial) -> np.ndarray:
    """Steps along k that each block multiplies, by what its busiest thread loads from its tiles."""
    of_a_step = 2 * FLOAT * trial.run.case.tile  # a row of one tile, a column of the other
    return of_shared(trial.report.shares, "load").max(axis=1) / of_a_step


def deal(trials: list[Trial], dealt: Callable[[Trial], tuple[int, int]]) -> tuple[str, str]:
    """Find the first trial whose blocks multiply more, or less, than an even deal gives them.

    dealt : (steps, blocks that share them) of a trial
    Returns "too-long" or "too-short" and the fact behind it; two empty texts if there is none.
    """
    for trial in trials:
        steps, blocks = dealt(trial)
        least, most = steps // blocks, -(-steps // blocks)
        taken = steps_multiplied(trial)
        launched_too = len(taken) // blocks  # others that share as many steps
        passed, there_are = trial.report.counters["barriers"], launched_too * steps
        fact = (
            f"{taken.min():g} … {taken.max():g} where {blocks} share {steps}; even: "
            f"{least} … {most}. All have {there_are}, with {passed} barriers ({trial.run.case})"
        )
        empty = taken.sum() > there_are or passed > MANY_BARRIERS * there_are + len(taken)
        if taken.max() > most or empty:
            return "too-long", fact
        if taken.min() * most < taken.max() * least:
            return "too-short", fact
    return "", ""


def uneven(share: np.ndarray, most: float = UNEVEN) -> bool:
    """Whether a thread's share is more than `most` times the mean."""
    return bool(share.max() > most * share.mean())


def _range(share: np.ndarray) -> str:
    least, most = int(share.min()), int(share.max())
    return f"{most}" if least == most else f"{least} … {most}"
