"""Judging functions that return one number."""

from __future__ import annotations

import math
import numbers
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from gemmlab.exercises import guard
from gemmlab.exercises.source import short
from gemmlab.exercises.verdict import Finding

Instead = Mapping[str, Callable[..., Any]]


def judge(
    name: str,
    answer: Callable,
    cases: Sequence[tuple],
    reference: Callable[..., Any],
    instead: Instead,
    show: Callable[[Any], str] = str,
) -> Finding | None:
    """What is wrong with `answer` at the first case where it is wrong; None if nothing is.

    reference : the right number, or None where the right answer is that there is none
    instead : id -> the number that this mistake gives, None where it gives none
    show : an argument as text
    """
    given: list[Any] = []
    first: Finding | None = None
    for case in cases:
        outcome = guard.attempt(answer, *case)
        expected = reference(*case)
        text = f"{name}({', '.join(map(show, case))})"
        facts = (("Smallest failing case", text),)
        details = {"case": case, "expected": expected, "function": name}
        value = outcome.value
        given.append(value)
        if first is not None:
            if outcome.fault:  # what went wrong first says more
                break
            continue
        if outcome.fault:
            fault = outcome.fault
            diagnosis = "no-limit-known" if expected is None else fault.diagnosis
            return Finding(diagnosis, facts + fault.facts, details | dict(fault.details))
        if value is Ellipsis:
            return Finding("not-attempted", ((name, "still returns ..."),), details)
        if not (_is_number(value) or (value is None and _may_be_none(reference, cases))):
            found = (("Found", f"it returned {short(value)}; use a number"),)
            return Finding("wrong-type", facts + found, details)
        if not _equal(value, expected):
            facts += (("Result", f"expected {_show(expected)}, got {_show(value)}"),)
            first = Finding("wrong-values", facts, details | {"got": value})
    if first is None:
        return None
    tried = list(zip(cases, given, strict=False))
    return Finding(_explain(tried, reference, instead), first.facts, first.details)


def _explain(
    tried: list[tuple[tuple, Any]], reference: Callable[..., Any], instead: Instead
) -> str:
    for name, wrong in instead.items():
        pairs = [(value, wrong(*case)) for case, value in tried]
        known = [_equal(value, w) for value, w in pairs if w is not None]
        if known and all(known):
            return name
    if all(_equal(v, reference(*case)) for case, v in tried if reference(*case) is not None):
        return "no-limit-known"
    return "wrong-values"


def _is_number(value: Any) -> bool:
    return isinstance(value, numbers.Real) and not isinstance(value, bool)


def _may_be_none(reference: Callable[..., Any], cases: Sequence[tuple]) -> bool:
    return any(reference(*case) is None for case in cases)


def _equal(value: Any, expected: Any) -> bool:
    if value is None or expected is None:
        return value is expected
    return _is_number(value) and math.isclose(value, expected, rel_tol=1e-9)


def _show(value: Any) -> str:
    return f"{value:,.6g}" if isinstance(value, float) else str(value)
