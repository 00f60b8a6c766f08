"""Judging a kernel that turns arrays into an array: hazards first, then the first wrong element."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from gemmlab import instructions
from gemmlab.course.judging.integrity import difference
from gemmlab.course.judging.launches import Launch, fault, launched, stores_to_input, threads_of
from gemmlab.course.judging.verdict import FAILING, Finding
from gemmlab.simt import Report


@dataclass(frozen=True)
class Kernel:
    """A learner's kernel, which `build(*sizes)` returns; each `launch` builds it anew."""

    build: Callable
    parameters: list[str]
    sizes: tuple[Any, ...] = ()


def launch(
    kernel: Kernel, grid: tuple[int, ...], block: tuple[int, ...], case: str, *arguments: Any
) -> Report | Finding:
    """The report of one simulated launch, or why there is none.

    The last of the arrays is the result, and holds it afterwards. The others may only be read: they
    stay as they are here, and a kernel that stores to one of them is found out.
    """
    asked = Launch(kernel.sizes, grid, block, arguments)
    item = next(launched(kernel.build, kernel.parameters, [asked]))
    if isinstance(item, Finding):
        return replace(item, facts=((FAILING, case), *item.facts))
    pairs = [
        (name, before, after)
        for name, before, after in zip(kernel.parameters, arguments, item.arguments, strict=True)
        if isinstance(before, np.ndarray)
    ]
    *inputs, (_, result, computed) = pairs
    changed = next(filter(None, (difference(*pair) for pair in inputs)), "")
    if changed and not item.report.hazards:
        facts = ((FAILING, case), ("You changed", changed))
        return Finding("inputs-changed", facts, {"changed": changed})
    result[...] = computed
    return item.report


def of_cases(
    one: Callable[[Any, int], tuple[Report | None, Finding | None, str]],
    cases: Sequence[Any],
    anew: Any,
) -> Finding | tuple[Report, str]:
    """Find the first case that is wrong; if none is, return the last one's report and words.

    one : (sizes of a case, seed) -> the report of a launch, what is wrong with it, the case in
        words; anew : the sizes of a case that is drawn for this check, with operands of its own
    """
    for seed, sizes in enumerate(cases):
        report, found, case = one(sizes, seed)
        if found:
            return found
    _, found, _ = one(anew, int(np.random.default_rng().integers(len(cases), 1 << 30)))
    return found.anew if found else (report, case)


def hazard(report: Report, case: str) -> Finding | None:
    """Name what `fault` finds in a launch, such as "outside"; None where it finds nothing."""
    first = fault(report)
    if first is None:
        return None
    diagnosis = {
        "out-of-bounds": "outside",
        "global-race": "two-writers",
        "same-value": "two-writers",
        "step-limit": "never-ends",
        "deadlock": "never-ends",
    }.get(first.kind, "wrong-values")
    if stores_to_input(first):
        diagnosis = "inputs-changed"
    facts = (
        (FAILING, case),
        (f"Hazard, {first.kind}", first.message),
        ("Where", f"line {first.line}: {first.code}"),
    )
    details = {
        "kind": first.kind,
        "line": first.line,
        "code": first.code,
        "threads": threads_of(first),
        "array": getattr(first, "array", ""),
        "ops": getattr(first, "ops", ()),
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
    """Tell whether the kernel has an `or`."""
    return any(isinstance(node, ast.Or) for node in ast.walk(report.source.tree))


@contextmanager
def scaled(kind: str, by: int) -> Iterator[None]:
    """Let the first operand of these instructions, float16 in pairs, count `by` times for a while.

    A result that does not change then does not depend on them. What an instruction means is put
    back at the end; an `Instruction` is frozen, so that its attributes are set in its `vars`.
    """
    changed = [one for one in vars(instructions).values() if getattr(one, "kind", "") == kind]
    meanings = [one.meaning for one in changed]
    for one in changed:
        vars(one)["meaning"] = _times(by, one.meaning)
    try:
        yield
    finally:
        for one, meaning in zip(changed, meanings, strict=True):
            vars(one)["meaning"] = meaning


def _times(by: int, meaning: Callable) -> Callable:
    def of_more(first: np.ndarray, *rest: np.ndarray, arch: str) -> np.ndarray:
        halves = np.ascontiguousarray(first).view(np.float16) * np.float16(by)
        return meaning(halves.view(first.dtype), *rest, arch=arch)

    return of_more
