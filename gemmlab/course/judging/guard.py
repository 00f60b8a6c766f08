"""Running a learner's code: it may raise, it may never end, and it may change what it is given."""

import inspect
import linecache
import sys
import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from gemmlab.course.judging.apart import IN_PAGE, Ended, Late, NotJudged, apart
from gemmlab.course.judging.copy_of_process import spent, uninterrupted
from gemmlab.course.judging.integrity import copied, difference, plain
from gemmlab.course.judging.verdict import Finding

# What came back is less than was asked for, and nothing says why: somebody else has sent it.
SAID_NO_MORE = Ended("exit", "it said that all was done before its last case")

# Lines of the answer's own code that one call may run: thousands of times what a case needs.
LINES = 300_000
_PACKAGE = str(Path(__file__).resolve().parents[2])


class Endless(BaseException):
    """The line budget is spent; not an Exception, so that no `except Exception` keeps it."""


@dataclass(frozen=True)
class Outcome:
    """The outcome of a call: a value, or what is wrong with it."""

    value: Any = None
    fault: Finding | None = None


def attempts(function: Callable, cases: Sequence[tuple]) -> list[Outcome]:
    """Call an answer with each of the `cases`, on copies, in a process of its own.

    Values come back as copies (`plain`). A call that ends the process is the last: there may be
    fewer outcomes than cases.
    """
    found: list[Outcome] = []
    for item in apart(partial(_calls, function, cases)):
        outcome = Outcome(fault=cut_short(item, file_of(function))) if ended(item) else item
        found.append(outcome)
    if len(found) < len(cases) and not (found and found[-1].fault):
        found.append(Outcome(fault=cut_short(SAID_NO_MORE, file_of(function))))
    return found


def attempt(function: Callable, *args: Any) -> Outcome:
    """Call an answer once."""
    return attempts(function, [args])[0]


def ended(item: Any) -> bool:
    """Whether what came back is the end of a process that did not come to its end."""
    return isinstance(item, Ended)


def _calls(function: Callable, cases: Sequence[tuple]) -> Iterator[Outcome]:
    for case in cases:
        given = copied(case)
        outcome = call(function, *given)
        if outcome.fault is None:
            changed = _changed(function, case, given)
            outcome = Outcome(plain(outcome.value), changed)
        yield outcome
        if outcome.fault and outcome.fault.diagnosis == "never-ends":
            return


def call(function: Callable, *args: Any, lines: int = LINES) -> Outcome:
    """Call an answer in this process, stopping it after so many lines."""
    left = lines

    def count(frame: Any, event: str, arg: Any) -> Any:
        nonlocal left
        if event == "call" and frame.f_code.co_filename.startswith(_PACKAGE):
            return None  # the course's own code: called here, but not counted line by line
        left -= 1
        if left < 0:
            raise Endless
        return count

    before, profile = sys.gettrace(), sys.getprofile()
    sys.settrace(count)
    try:
        value = function(*args)
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt) and not uninterrupted():
            raise  # somebody's, at the keyboard
        sys.settrace(before)
        return Outcome(fault=fault(error, file_of(function)))
    finally:
        sys.settrace(before)
        sys.setprofile(profile)
    return Outcome(value)


def _changed(function: Callable, case: tuple, given: tuple) -> Finding | None:
    """The finding for an argument that is not what it was before the call."""
    try:
        names = list(inspect.signature(function).parameters)
    except (TypeError, ValueError):
        names = []
    for i, (before, after) in enumerate(zip(case, given, strict=True)):
        name = names[i] if i < len(names) else f"argument {i + 1}"
        text = difference(name, before, after)
        if text:
            return Finding("arguments-changed", (("Changed", text),), {"argument": name})
    return None


# ----------------------------------------------------------------------------------------- in words


def file_of(function: Callable) -> str:
    """The file, or the notebook cell, of an answer."""
    code = getattr(function, "__code__", None)
    return code.co_filename if code else ""


def fault(error: BaseException, file: str = "") -> Finding:
    """The finding for an error or an endless run, with the line of the answer's `file`."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [(f.filename, f.lineno or 0) for f in frames if f.filename == file]
    if isinstance(error, Endless):
        stopped = ("Stopped", "it was still running after far more steps than it needs")
        return _at("never-ends", stopped, own)
    if isinstance(error, Late):
        return _at("never-ends", ("Stopped", spent(IN_PAGE).what), own)
    if isinstance(error, SystemExit):
        return _at("exits", ("Found", "it ended the program, by SystemExit"), own)
    try:
        text = f"{type(error).__name__}: {error}"
    except Exception:  # an error of the answer's own class
        text = type(error).__name__
    diagnosis = "out-of-memory" if isinstance(error, MemoryError) else "raises"
    return _at(diagnosis, ("Error", text), own, error=_kind(error))


def _kind(error: BaseException) -> str:
    """The name of the error, of Python's or of the course's, that this one is."""
    known = ("builtins", "gemmlab")
    return next(t.__name__ for t in type(error).__mro__ if t.__module__.startswith(known))


def cut_short(end: Ended, file: str = "") -> Finding:
    """The finding for a process that had to be ended, or that ended itself."""
    diagnosis = {"time": "never-ends", "exit": "exits", "memory": "out-of-memory"}
    label = "Stopped" if end.how == "time" else "Error" if end.how == "error" else "Found"
    own = [at for at in end.where if at[0] == file]
    return _at(diagnosis.get(end.how, "crashes"), (label, end.what), own)


def not_judged(why: NotJudged, file: str = "") -> Finding:
    """The finding for an answer of which nothing can be said, with the line where it was."""
    return _at("not-judged", ("Stopped", str(why)), [at for at in why.where if at[0] == file])


def _at(
    diagnosis: str, fact: tuple[str, str], own: list[tuple[str, int]], **details: Any
) -> Finding:
    """A finding at the innermost of the answer's `own` lines, (file, line)."""
    facts: tuple[tuple[str, str], ...] = (fact,)
    if own:
        file, line = own[-1]
        code = linecache.getline(file, line).strip()
        facts += (("Where", f"line {line}: {code}"),)
        details |= {"line": line, "code": code}
    return Finding(diagnosis, facts, details)
