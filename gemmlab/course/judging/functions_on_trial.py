"""Judging functions that return one number: `judge` for one, `judge_parts` for several.

The first wrong result is explained by a mistake that gives exactly the results that were returned,
or else by what the results have in common.
"""

import itertools
import math
import numbers
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from gemmlab.course.judging import drawing, guard, source
from gemmlab.course.judging.source import short
from gemmlab.course.judging.verdict import DRAWN_ANEW, FAILING, Finding

_LARGEST = 10**300  # beyond it, whole numbers have no quotients
Instead = Mapping[str, Callable[..., Any]]


def judge(
    name: str,
    answer: Callable,
    cases: Sequence[tuple],
    reference: Callable[..., Any],
    instead: Instead,
    show: Callable[[Any], str] = str,
    fresh: Sequence[tuple] = (),
) -> Finding | None:
    """Find the first case in which `answer` is wrong, and say why; None if there is none.

    reference : the right number, or None where the right answer is that there is none
    instead : id -> the number that this mistake gives, None where it gives none
    show : an argument as text
    fresh : cases drawn anew for each check, tried after the others: who knows those by heart
        is found out here
    """
    every = (*cases, *fresh)
    outcomes = guard.attempts(answer, every)
    expected = [reference(*case) for case in every]
    may_be_none = None in expected
    wrong: Finding | None = None
    given: list[Any] = []
    for i, (case, outcome) in enumerate(zip(every, outcomes, strict=False)):
        anew = i >= len(cases)
        label = DRAWN_ANEW if anew else FAILING
        facts = ((label, f"{name}({', '.join(map(show, case))})"),)
        details = {"case": case, "expected": expected[i], "function": name}
        if outcome.fault:
            if wrong is not None:  # what went wrong first says more
                break
            fault = outcome.fault
            unbounded = expected[i] is None and fault.diagnosis in ("never-ends", "raises")
            diagnosis = "no-limit-known" if unbounded else fault.diagnosis
            found = Finding(diagnosis, facts + fault.facts, details | dict(fault.details))
            return found.anew if anew else found
        value = outcome.value
        given.append(value)
        if wrong is not None:
            continue
        if value is Ellipsis:
            return Finding("not-attempted", ((name, "still returns ..."),), details)
        if not (_is_number(value) or (value is None and may_be_none)):
            found = (("Found", f"it returned {short(value)}; use a number"),)
            return Finding("wrong-type", facts + found, details)
        if not _equal(value, expected[i]):
            facts += (("Result", "expected {}, got {}".format(*_both(expected[i], value))),)
            wrong = Finding("wrong-values", facts, details | {"got": value})
            wrong = wrong.anew if anew else wrong
    if wrong is None or wrong.diagnosis == "known-cases-only":
        return wrong
    tried = list(zip(every, given, expected, strict=False))[: len(cases)]
    diagnosis, evidence = _explain(tried, reference, instead)
    return replace(wrong, diagnosis=diagnosis, facts=wrong.facts + evidence)


Tried = list[tuple[tuple, Any, Any]]  # arguments, what was returned, what is right


def _explain(
    tried: Tried, reference: Callable[..., Any], instead: Instead
) -> tuple[str, tuple[tuple[str, str], ...]]:
    """The diagnosis that explains all results, and what speaks for it."""
    for name, wrong in instead.items():
        pairs = [(value, wrong(*case)) for case, value, _ in tried]
        known = [_equal(value, w) for value, w in pairs if w is not None]
        if known and all(known):
            return name, ()
    if all(_equal(value, right) for _, value, right in tried if right is not None):
        return "no-limit-known", ()
    return _pattern(tried, reference)


def _pattern(
    tried: Tried, reference: Callable[..., Any]
) -> tuple[str, tuple[tuple[str, str], ...]]:
    """The diagnosis of a mistake that nobody foresaw, from what its results have in common."""
    pairs = [(v, r) for _, v, r in tried if _is_number(v) and _is_number(r)]
    if any(not math.isfinite(v) for v, _ in pairs if not isinstance(v, int)):
        return "not-finite", ()
    if any(abs(v) > _LARGEST for v, _ in pairs):
        return "wrong-values", ()
    if len(pairs) > 2 and len({v for v, _ in pairs}) == 1 < len({r for _, r in pairs}):
        return "constant", (("Evidence", f"it is {_show(pairs[0][0])} in every case"),)
    if not pairs:
        return "wrong-values", ()
    nonzero = [(v, r) for v, r in pairs if r]
    for text, of in (("times", _ratio), ("plus", _distance)):
        common = of(nonzero if of is _ratio else pairs)
        if common is not None:
            evidence = f"in every case it is the right number {text} {_show(common)}"
            return "by-a-factor" if of is _ratio else "by-a-constant", (("Evidence", evidence),)
    if all(_equal(v, round(r)) or _equal(v, math.floor(r)) for v, r in pairs):
        return "whole-numbers-only", ()
    if _exchanged(tried, reference):
        return "arguments-exchanged", ()
    right = sum(_equal(v, r) for _, v, r in tried)
    evidence = (("Evidence", f"right in {right} of {len(tried)} cases"),)
    return ("right-in-part", evidence) if right else ("wrong-values", ())


def _ratio(pairs: list[tuple[Any, Any]]) -> float | None:
    """The factor between results and right numbers, if there is one for all.

    A factor of 1 explains nothing: then what is wrong is a result that should be 0.
    """
    ratios = [float(v) / float(r) for v, r in pairs]
    return ratios[0] if _alike(ratios) and not math.isclose(ratios[0], 1) and ratios[0] else None


def _distance(pairs: list[tuple[Any, Any]]) -> float | None:
    distances = [float(v) - float(r) for v, r in pairs]
    return distances[0] if _alike(distances) else None


def _alike(values: list[float]) -> bool:
    return len(values) > 2 and all(math.isclose(v, values[0], rel_tol=1e-9) for v in values)


def _exchanged(tried: Tried, reference: Callable[..., Any]) -> bool:
    """Whether the results are right for the arguments in another order."""
    count = len(tried[0][0])
    if not 2 <= count <= 4 or not all(_is_number(x) for case, _, _ in tried for x in case):
        return False
    orders = list(itertools.permutations(range(count)))[1:]
    try:
        return any(
            all(_equal(v, reference(*(case[i] for i in order))) for case, v, _ in tried)
            for order in orders
        )
    except ArithmeticError:  # another order may make no sense
        return False


def _is_number(value: Any) -> bool:
    return isinstance(value, numbers.Real) and not isinstance(value, (bool, np.bool_))


def _equal(value: Any, expected: Any) -> bool:
    if value is None or expected is None:
        return value is expected
    if not _is_number(value):
        return False
    try:
        return math.isclose(value, expected, rel_tol=1e-9)
    except OverflowError:  # a whole number beyond the range of floats
        return bool(value == expected)


def _show(value: Any) -> str:
    return f"{value:,.6g}" if isinstance(value, float) else short(value)


def _both(expected: Any, got: Any) -> tuple[str, str]:
    """Two numbers that differ, with as many digits as it takes to see it."""
    both = _show(expected), _show(got)
    if both[0] == both[1] and _is_number(got):
        return f"{expected:,.12g}", f"{got:,.12g}"
    return both


AGAIN = 32  # cases that are asked for once more, in another order


@dataclass(frozen=True)
class Part:
    """One of the functions that an exercise asks for.

    asked : the function of the solution; right : the number it returns
    instead : id -> the number that a mistake gives; of "as-in-a 2" the first word is the diagnosis
    """

    asked: Callable
    right: Callable[..., int]
    instead: Instead


def judge_parts(
    parts: Sequence[Part], answers: Sequence[Any], cases: Sequence[tuple], what: str
) -> Finding:
    """Find the first function that is wrong, at its smallest case; "half-done" if some are missing.

    what : the cases, in words: "elements"
    """
    right_so_far: tuple[tuple[str, str], ...] = ()
    to_do = []
    for part, answer in zip(parts, answers, strict=True):
        name = part.asked.__name__
        if source.unchanged(part.asked, answer):
            to_do.append((name, "still to be written"))
            continue
        again = drawing.generator().choice(len(cases), min(AGAIN, len(cases)), replace=False)
        fresh = [cases[i] for i in again]
        found = judge(name, answer, cases, part.right, part.instead, fresh=fresh)
        if found is not None:
            got = found.details.get("got")
            not_whole = isinstance(got, float) and math.isfinite(got) and not got.is_integer()
            diagnosis = "not-whole" if not_whole else found.diagnosis.split()[0]
            return replace(found, diagnosis=diagnosis)
        right_so_far += ((name, f"right for all {len(cases)} {what}"),)
    if to_do:
        return Finding("half-done", (*right_so_far, *to_do))
    return Finding("passed", (("Checked", f"all {len(cases)} {what}"),))
