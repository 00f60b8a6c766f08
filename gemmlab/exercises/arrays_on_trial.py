"""Judging a kernel that turns arrays into an array: hazards first, then the first wrong element."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

import numpy as np

from gemmlab.exercises import guard, source
from gemmlab.exercises.verdict import Finding
from gemmlab.simt import Report, simulate

# Loop iterations of one launch; the largest case takes a few dozen.
MAX_STEPS = 2_000
FAILING = "Smallest failing case"


def built(build: Callable, parameters: list[str], *args: Any) -> Callable | Finding:
    """The kernel that `build` returns, or what is wrong with it."""
    outcome = guard.attempt(build, *args)
    if outcome.fault:
        return outcome.fault
    kernel = getattr(outcome.value, "py_func", outcome.value)
    wrong = source.parameters_wrong(kernel, parameters)
    if wrong:
        call = f"{getattr(build, '__name__', 'build')}({', '.join(map(str, args))})"
        return Finding("wrong-type", (("Found", f"{call} returned: {wrong}"),))
    return kernel


def launch(
    kernel: Callable, grid: tuple[int, ...], block: tuple[int, ...], case: str, *arguments: Any
) -> Report | Finding:
    """The report of one simulated launch, or why there is none."""
    try:
        return simulate(
            kernel, grid, block, *arguments, on_hazard="collect", max_steps=MAX_STEPS
        )  # fmt: skip
    except Exception as error:
        facts = ((FAILING, case), ("Error", f"{type(error).__name__}: {error}"))
        return Finding(guard.fault(error).diagnosis, facts, {"error": type(error).__name__})


def hazard(report: Report, case: str) -> Finding | None:
    """The first hazard of a launch: "outside", "two-writers" or "never-ends"; None without any."""
    if not report.hazards:
        return None
    first = report.hazards[0]
    diagnosis = {
        "out-of-bounds": "outside",
        "global-race": "two-writers",
        "step-limit": "never-ends",
    }.get(first.kind, "wrong-values")
    facts = (
        (FAILING, case),
        (f"Hazard, {first.kind}", first.message),
        ("Where", f"line {first.line}: {first.code}"),
    )
    details = {
        "kind": first.kind,
        "line": first.line,
        "code": first.code,
        "threads": first.threads,
        "array": first.array,
    }
    return Finding(diagnosis, facts, details)


def different(name: str, expected: np.ndarray, got: np.ndarray, case: str) -> Finding | None:
    """The first element that is not exactly as expected; None where all are."""
    wrong = ~(got == expected)
    if not wrong.any():
        return None
    index = tuple(int(i) for i in np.argwhere(wrong)[0])
    values = float(expected[index]), float(got[index])
    where = f"{name}[{', '.join(map(str, index))}]"
    facts = (
        (FAILING, case),
        ("First wrong element", f"{where}: expected {values[0]:g}, got {values[1]:g}"),
    )
    details = {"index": index, "expected": values[0], "got": values[1]}
    return Finding("wrong-values", facts, details)


def joins_with_or(report: Report) -> bool:
    """Whether the kernel has an `or`."""
    return any(isinstance(node, ast.Or) for node in ast.walk(report.source.tree))
