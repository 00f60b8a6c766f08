"""Judging a kernel that turns arrays into an array: hazards first, then the first wrong element."""

import ast
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from gemmlab import instructions
from gemmlab.course.judging import drawing
from gemmlab.course.judging.integrity import difference
from gemmlab.course.judging.launches import Launch, fault, launched, stores_to_input, threads_of
from gemmlab.course.judging.verdict import FAILING, Diagnosis, Finding
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
    """The report of one simulated launch, or why there is none; see `tried` for its arguments."""
    asked = Launch(kernel.sizes, grid, block, arguments)
    return next(tried(kernel.build, kernel.parameters, [(case, asked)]))


def tried(
    build: Callable, parameters: list[str], asked: Iterable[tuple[str, Launch]]
) -> Iterator[Report | Finding]:
    """The report of each simulated launch, or why there is none, one after the other.

    The last of a launch's arrays is the result, and holds it afterwards. The others may only be
    read: they stay as they are here, and a kernel that stores to one of them is found out.

    asked : each case in words, with its launch
    """
    every = list(asked)
    items = launched(build, parameters, [launch for _, launch in every])
    for (case, launch), item in zip(every, items, strict=False):
        if isinstance(item, Finding):
            yield replace(item, facts=((FAILING, case), *item.facts))
            return
        pairs = [
            (name, before, after)
            for name, before, after in zip(
                parameters, launch.arguments, item.arguments, strict=True
            )
            if isinstance(before, np.ndarray)
        ]
        *inputs, (_, result, computed) = pairs
        changed = next(filter(None, (difference(*pair) for pair in inputs)), "")
        if changed and not item.report.hazards:
            facts = ((FAILING, case), ("You changed", changed))
            yield Finding("inputs-changed", facts, {"changed": changed})
            return
        result[...] = computed
        yield item.report


# A case in words, its launch, and what is wrong with its report and, by then, with its result.
Asked = tuple[str, Launch, Callable[[Report], Finding | None]]
WHOLE_NUMBERS_ONLY = Diagnosis(
    "Fractions get lost on the way: an array, a factor or a result is cut to whole numbers.",
    "Which value is a whole number on its way through the kernel: where is an int(), or a dtype "
    "without fractions?",
    "Leave every product and every sum as it is: float32 times float32 is float32.",
)


def of_cases(
    build: Callable,
    parameters: list[str],
    one: Callable[[Any, int], Asked],
    cases: Sequence[Any],
    *anew: Any,
) -> Finding | tuple[Report, str]:
    """Find the first case that is wrong; if none is, return the last one's report and words.

    one : of the sizes of a case and a seed
    anew : the sizes of cases that are drawn for this check, with operands of their own
    """
    asked = [one(sizes, seed) for seed, sizes in enumerate(cases)]
    seeds = map(int, drawing.generator().integers(len(cases), 1 << 30, len(anew)))
    asked += [one(sizes, seed) for sizes, seed in zip(anew, seeds, strict=True)]
    reports = tried(build, parameters, [(case, launch) for case, launch, _ in asked])
    for number, ((case, _, wrong), report) in enumerate(zip(asked, reports, strict=False)):
        found = report if isinstance(report, Finding) else wrong(report)
        if found:
            return found if number < len(cases) else found.anew
        if number < len(cases):
            largest = report, case
    return largest


@dataclass(frozen=True)
class Arrays:
    """An exercise that asks for a kernel of arrays.

    launch : (sizes of a case, a generator of random numbers) -> the case in words, and its launch
    wrong : (the case in words, its launch, whose last array is the result, its report) -> what is
        wrong with it
    """

    build: Callable
    parameters: list[str]
    launch: Callable[[Any, np.random.Generator], tuple[str, Launch]]
    wrong: Callable[[str, Launch, Report], Finding | None]

    def first_wrong(self, cases: Sequence[Any]) -> Finding | tuple[Report, str]:
        """Find the first case that is wrong; the last one's report and words if none is."""
        asked = [self.launch(sizes, np.random.default_rng(i)) for i, sizes in enumerate(cases)]
        return self._tried(asked)

    def wrong_anew(self, cases: Sequence[Any]) -> Finding | None:
        """Find the first case that is wrong among those with sizes drawn for this check."""
        asked = [self.launch(sizes, drawing.generator()) for sizes in cases]
        found = self._tried(asked)
        return found.anew if isinstance(found, Finding) else None

    def _tried(self, asked: Sequence[tuple[str, Launch]]) -> Finding | tuple[Report, str]:
        for (case, launch), report in zip(
            asked, tried(self.build, self.parameters, asked), strict=False
        ):
            found = report if isinstance(report, Finding) else self.wrong(case, launch, report)
            if found:
                return found
        return report, case


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
        "divergent-barrier": "barrier-not-reached",
        "uninitialised-read": "unset",
        "misaligned": "misaligned",
    }.get(first.kind, "wrong-values")
    if first.kind == "shared-race":
        before, after = first.ops
        both_write = "two-writers" if before == after else "barrier-after-reading"
        diagnosis = "barrier-before-reading" if before == "read" else both_write
    *inputs, _ = (a.arg for a in report.source.tree.args.args)
    if inputs and stores_to_input(first, inputs):
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


NEARLY = 0.02  # of the largest result, is what rounding to float16 on the way may change


def rounded(expected: np.ndarray, got: np.ndarray) -> str:
    """The diagnosis of results that are nearly right; empty where they are not.

    Rounding goes up and down. Where all differ the same way, a small part of the sums is missing.
    """
    if not np.isfinite(got).all() or np.abs(expected - got).max() > NEARLY * np.abs(expected).max():
        return ""
    with np.errstate(over="ignore"):
        in_float16 = np.array_equal(got, got.astype(np.float16))
    if np.array_equal(got, np.trunc(got)) and not in_float16:
        return "whole-numbers-only"
    up_and_down = (got < expected).any() and (got > expected).any()
    return "low-precision" if up_and_down else ""


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
