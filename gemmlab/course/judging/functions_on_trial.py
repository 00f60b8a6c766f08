"""Judging several functions of the same arguments, each of which returns one whole number."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from gemmlab.course.judging import quantities, source
from gemmlab.course.judging.verdict import Finding

AGAIN = 32  # cases that are asked for once more, in another order


@dataclass(frozen=True)
class Part:
    """One of the functions that an exercise asks for.

    asked : the function of the solution; right : the number it returns
    instead : id -> the number that a mistake gives; of "as-in-a 2" the first word is the diagnosis
    """

    asked: Callable
    right: Callable[..., int]
    instead: quantities.Instead


def judge(
    parts: Sequence[Part], answers: Sequence[Any], cases: Sequence[tuple], what: str
) -> Finding:
    """The first function that is wrong, at its smallest case; "half-done" if some are not written.

    what : the cases, in words: "elements"
    """
    right_so_far: tuple[tuple[str, str], ...] = ()
    to_do = []
    for part, answer in zip(parts, answers, strict=True):
        name = part.asked.__name__
        if source.unchanged(part.asked, answer):
            to_do.append((name, "still to be written"))
            continue
        again = np.random.default_rng().choice(len(cases), min(AGAIN, len(cases)), replace=False)
        fresh = [cases[i] for i in again]
        found = quantities.judge(name, answer, cases, part.right, part.instead, fresh=fresh)
        if found is not None:
            got = found.details.get("got")
            not_whole = isinstance(got, float) and math.isfinite(got) and not got.is_integer()
            diagnosis = "not-whole" if not_whole else found.diagnosis.split()[0]
            return replace(found, diagnosis=diagnosis)
        right_so_far += ((name, f"right for all {len(cases)} {what}"),)
    if to_do:
        return Finding("half-done", (*right_so_far, *to_do))
    return Finding("passed", (("Checked", f"all {len(cases)} {what}"),))
