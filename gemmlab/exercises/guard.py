"""Running a learner's code: it may raise, and it may never end."""

from __future__ import annotations

import linecache
import sys
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gemmlab.exercises.verdict import Finding

# Lines of the answer's own code that one call may run: thousands of times what a case needs.
LINES = 300_000
_PACKAGE = str(Path(__file__).resolve().parents[1])


class Endless(BaseException):
    """The line budget is spent; not an Exception, so that no `except Exception` keeps it."""


@dataclass(frozen=True)
class Outcome:
    """The outcome of a call: a value, or what is wrong with it."""

    value: Any = None
    fault: Finding | None = None


def attempt(function: Callable, *args: Any, lines: int = LINES) -> Outcome:
    """Call an answer, stopping it after so many lines; KeyboardInterrupt alone gets through."""
    left = lines

    def count(frame: Any, event: str, arg: Any) -> Any:
        nonlocal left
        if event == "call" and frame.f_code.co_filename.startswith(_PACKAGE):
            return None  # the course's own code: called here, but not counted line by line
        left -= 1
        if left < 0:
            raise Endless
        return count

    before = sys.gettrace()
    sys.settrace(count)
    try:
        value = function(*args)
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        sys.settrace(before)
        return Outcome(fault=fault(error, _file(function)))
    finally:
        sys.settrace(before)
    return Outcome(value)


def _file(function: Callable) -> str:
    code = getattr(getattr(function, "py_func", function), "__code__", None)
    return code.co_filename if code else ""


def fault(error: BaseException, file: str = "") -> Finding:
    """The finding for an error or an endless run, with the line of the answer's `file`."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [f for f in frames if f.filename == file]
    where = own[-1] if own else None
    details: dict[str, Any] = {}
    facts = []
    if isinstance(error, Endless):
        facts.append(("Stopped", "it was still running after far more steps than it needs"))
    else:
        details["error"] = type(error).__name__
        facts.append(("Error", f"{type(error).__name__}: {error}"))
    if where is not None and where.lineno:
        code = (where.line or linecache.getline(where.filename, where.lineno)).strip()
        details |= {"line": where.lineno, "code": code}
        facts.append(("Where", f"line {where.lineno}: {code}"))
    diagnosis = "never-ends" if isinstance(error, Endless) else "raises"
    return Finding(diagnosis, tuple(facts), details)
