"""Wrong answers as edits of the right one, compiled the way a notebook cell is."""

from __future__ import annotations

import inspect
import itertools
import linecache
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from types import ModuleType
from typing import Any

from gemmlab.exercises import source

_numbers = itertools.count()
_solution = cache(source.solution)  # many wrong answers are edits of one


@dataclass(frozen=True)
class Wrong:
    """One wrong answer: the misconception, the diagnosis that it must get, and the answers."""

    misconception: str
    diagnosis: str
    answers: tuple[Any, ...]


def cell(text: str, names: dict[str, Any]) -> dict[str, Any]:
    """Run `text` as a notebook cell: its source stays readable. Returns what it defines."""
    file = f"<cell {next(_numbers)}>"
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    namespace = dict(names)
    exec(compile(text, file, "exec", dont_inherit=True), namespace)
    return namespace


def edited(answer: Callable, *edits: tuple[str, str]) -> Callable:
    """`answer` with pieces of its source replaced, each of which must be there.

    Of a piece that occurs more than once the last is replaced.
    """
    text = _solution(answer)
    for old, new in edits:
        head, found, tail = text.rpartition(old)
        assert found, f"{old!r} is not in\n{text}"
        text = head + new + tail
    module = inspect.getmodule(answer)
    assert isinstance(module, ModuleType)
    return cell(text, vars(module))[answer.__name__]


def wrong(answer: Callable, misconception: str, diagnosis: str, *edits: tuple[str, str]) -> Wrong:
    """A wrong answer to an exercise that asks for one function."""
    return Wrong(misconception, diagnosis, (edited(answer, *edits),))


def fooling(idea: str, diagnosis: str, *answers: Any) -> Wrong:
    """An answer that is meant to pass without being right: the idea, and what it must get."""
    return Wrong(idea, diagnosis, answers)


class Agrees(float):
    """A number that equals everything."""

    def __eq__(self, other: object) -> bool:
        return True

    def __ne__(self, other: object) -> bool:
        return False

    __hash__ = None


def table(reference: Callable, cases: Any, otherwise: Any = 0) -> Callable:
    """A function that has the results of `cases` by heart."""
    known = {repr(case): reference(*case) for case in cases}

    def looked_up(*arguments: Any) -> Any:
        return known.get(repr(arguments), otherwise)

    return looked_up


def in_order(reference: Callable, cases: Any, otherwise: Any = 0) -> Callable:
    """A function that hands out the results of `cases` in the order in which a check asks."""
    results = iter([reference(*case) for case in cases])
    return lambda *arguments: next(results, otherwise)


def for_ever(*arguments: Any) -> None:
    """Runs for ever, whatever is thrown at it."""
    while True:
        try:
            while True:
                pass
        except BaseException:
            pass
