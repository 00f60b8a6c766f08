"""Errors of a launch, as whoever wrote the kernel sees them."""

from __future__ import annotations

import ast
import linecache
from collections.abc import Callable
from functools import wraps
from types import TracebackType
from typing import Any

from gemmlab.simt.syntax.rewrite import SOURCE


def told_at_the_kernel(launch: Callable) -> Callable:
    """A function that launches kernels, whose errors tell where in the kernel they arose.

    Their message has the line, and their traceback the frames of the kernel and of its device
    functions, without those of the simulator.
    """

    @wraps(launch)
    def run(*args: Any, **options: Any) -> Any:
        __tracebackhide__ = True  # IPython and pytest leave this frame out
        try:
            return launch(*args, **options)
        except Exception as error:
            places = _places(error)
            if not places and hasattr(error, "place"):  # of the source
                raise error.with_traceback(_at(*error.place)) from None
            if not places:  # of the launch itself
                raise
            _add_line(error, places[-1])
            raise error.with_traceback(_joined(places)) from None

    return run


def _places(error: Exception) -> list[TracebackType]:
    """Where an error passed through kernels, the innermost place last."""
    places, step = [], error.__traceback__
    while step is not None:
        if SOURCE in step.tb_frame.f_globals:
            places.append(step)
        step = step.tb_next
    return places


def _at(file: str, line: int, function: str) -> TracebackType | None:
    """A traceback to a line of a function, which did not run.

    IPython shows the innermost frame even of code that wants to be left out.
    """
    tree, text = ast.parse("raise RuntimeError"), linecache.getline(file, line).rstrip()
    first, last = len(text) - len(text.lstrip()), len(text)  # the whole line: Python marks less
    place = {"lineno": line, "end_lineno": line, "col_offset": first, "end_col_offset": last}
    for node in ast.walk(tree):
        vars(node).update(place if hasattr(node, "lineno") else {})
    code = compile(tree, file, "exec").replace(co_name=function, co_qualname=function)
    try:
        exec(code, {})
    except RuntimeError as error:
        return error.__traceback__.tb_next  # type: ignore[union-attr]
    return None


def _add_line(error: Exception, place: TracebackType) -> None:
    """Let the message of an error show the line, if it does not."""
    line, source = place.tb_lineno, place.tb_frame.f_globals[SOURCE]
    told = f"line {line}: {source.code(line)}"
    if len(error.args) == 1 and told not in str(error):
        error.args = (f"{error}\n  {source.place(line)}",)


def _joined(places: list[TracebackType]) -> TracebackType | None:
    """A traceback of these places alone."""
    kept: TracebackType | None = None
    for place in reversed(places):
        kept = TracebackType(kept, place.tb_frame, place.tb_lasti, place.tb_lineno)
    return kept
