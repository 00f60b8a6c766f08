"""Wrong answers as edits of the right one, compiled the way a notebook cell is."""

from __future__ import annotations

import inspect
import itertools
import linecache
import sys
import textwrap
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from types import ModuleType
from typing import Any

from gemmlab.course import exercise_modules
from gemmlab.course.judging import source

_numbers = itertools.count()
_solution = cache(source.solution)  # many wrong answers are edits of one


def answers_of(name: str) -> ModuleType:
    """The module with the answers to an exercise: `RIGHT`, `WRONG` and `FOOLING`."""
    chapter = exercise_modules()[name].split(".")[2]
    return import_module(f"tests.course.{chapter}.answers_q{name.partition('.')[2]}")


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


Edit = tuple[str, str] | tuple[str, str, str]


def edited(answer: Callable, *edits: Edit) -> Callable:
    """`answer` with parts of its source replaced, each of which must be there.

    An edit is (piece, new piece), or (first line, last line, new lines), whose last line may be ""
    where it is the first one. Of a piece or a first line that occurs more than once the last is
    meant. New lines are indented as the first one was.
    """
    text = _solution(answer)
    for edit in edits:
        if len(edit) == 3:
            text = _with_lines(text, *edit)
            continue
        old, new = edit
        head, found, tail = text.rpartition(old)
        assert found, f"{old!r} is not in\n{text}"
        text = head + new + tail
    module = inspect.getmodule(answer)
    assert isinstance(module, ModuleType)
    return cell(text, vars(module))[answer.__name__]


def _with_lines(text: str, first: str, last: str, new: str) -> str:
    """`text` with its lines from `first` to `last` replaced; both are given without indentation."""
    lines = text.splitlines()
    bare = [line.partition("  # ")[0].strip() for line in lines]
    assert first in bare, f"there is no line {first!r} in\n{text}"
    begin = len(bare) - 1 - bare[::-1].index(first)
    end = bare.index(last, begin) if last else begin
    indent = lines[begin][: len(lines[begin]) - len(lines[begin].lstrip())]
    block = textwrap.indent(textwrap.dedent(new).strip("\n"), indent).rstrip()
    return "\n".join([*lines[:begin], *block.splitlines(), *lines[end + 1 :]])


def wrong(answer: Callable, misconception: str, diagnosis: str, *edits: Edit) -> Wrong:
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


def from_the_judge(*arguments: Any) -> Any:
    """The result of the `reference` that a caller's frame holds, 0 where none does."""
    frame = sys._getframe()
    while frame := frame.f_back:
        if callable(frame.f_locals.get("reference")):
            return frame.f_locals["reference"](*arguments)
    return 0


def for_ever(*arguments: Any) -> None:
    """Runs for ever, whatever is thrown at it."""
    while True:
        try:
            while True:
                pass
        except BaseException:
            pass
