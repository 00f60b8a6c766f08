"""Answers as source: the solution as it is shown, the skeleton cut from it, and comparisons.

In a solution the lines from ``# [answer]`` to ``# [end]`` are the learner's; the skeleton has in
their place what follows ``[answer]``, or ``...``.
"""

import contextlib
import inspect
import textwrap
from collections.abc import Callable, Iterator
from types import CodeType
from typing import Any

import numpy as np

from gemmlab.course.judging.verdict import Finding

_START, _END = "# [answer]", "# [end]"
LONG = 10_000  # characters or elements of a value that is named, not shown


def _lines(function: Callable) -> list[str]:
    """The lines of `function` without its docstring of one line, which is for this package."""
    first, second, *rest = textwrap.dedent(inspect.getsource(function)).rstrip().splitlines()
    if not second.strip().startswith('"""'):
        rest = [second, *rest]
    return [first, *rest[not rest[0].strip() :]]


def solution(function: Callable) -> str:
    """The source of `function` without the marks."""
    return "\n".join(
        line for line in _lines(function) if not line.strip().startswith((_START, _END))
    )


def skeleton(function: Callable) -> str:
    """The source of `function` with a gap for each marked part."""
    out, inside = [], False
    for line in _lines(function):
        text = line.strip()
        if text.startswith(_START):
            indent = line[: len(line) - len(line.lstrip())]
            out.append(indent + (text.removeprefix(_START).strip() or "..."))
            inside = True
        elif text.startswith(_END):
            inside = False
        elif not inside:
            out.append(line)
    return "\n".join(out)


def unchanged(answer: Callable, given: Callable) -> bool:
    """Whether `given` compiles to what the skeleton of `answer` does, comments aside."""
    compiled = compile(skeleton(answer), "<skeleton>", "exec", dont_inherit=True)
    code = next(c for c in compiled.co_consts if isinstance(c, CodeType))
    return _same(code, getattr(given, "__code__", None))


def _same(a: Any, b: Any) -> bool:
    if not isinstance(a, CodeType) or not isinstance(b, CodeType):
        return type(a) is type(b) and a == b
    return (
        a.co_code == b.co_code
        and a.co_names == b.co_names
        and a.co_varnames == b.co_varnames
        and len(a.co_consts) == len(b.co_consts)
        and all(map(_same, a.co_consts, b.co_consts))
    )


def names_in(function: Callable) -> set[str]:
    """The names that a function uses, and the functions inside of it."""
    names: set[str] = set()
    codes = [function.__code__] if inspect.isfunction(function) else []
    while codes:
        code = codes.pop()
        names |= set(code.co_names)
        codes += [c for c in code.co_consts if isinstance(c, CodeType)]
    return names


def borrowed(answers: tuple[Callable, ...], judge: Callable, given: tuple) -> Finding | None:
    """Find an answer that calls, or is, a function of the judge's module; None where none does.

    Free are the exercise's own `answers` and what they name.
    """
    free = {a.__name__ for a in answers}.union(*map(names_in, answers))
    for answer in given:
        if getattr(answer, "__module__", "") == judge.__module__ and answer in answers:
            continue
        named = [getattr(answer, "__globals__", {}).get(name) for name in names_in(answer)]
        for value in (answer, *named, *_enclosed(answer)):
            if not inspect.isfunction(value) or value.__globals__ is not judge.__globals__:
                continue
            if value.__name__ not in free:
                return Finding("borrowed", (("Found", f"it calls {value.__name__}"),))
    return None


def _enclosed(answer: Any) -> Iterator[Any]:
    """What a function has from the functions around it."""
    for cell in getattr(answer, "__closure__", None) or ():
        with contextlib.suppress(ValueError):  # nothing was assigned to it yet
            yield cell.cell_contents


def unwrapped(answer: Any) -> Any:
    """The Python function that a compiled one, of Numba or of `cuda.jit`, was made from."""
    function = inspect.getattr_static(answer, "py_func", None)
    return function if inspect.isfunction(function) else answer


def wrong_type(wanted: tuple[Callable, ...], given: tuple) -> Finding | None:
    """Find the first answer that is of the wrong kind; None where none is."""
    for function, answer in zip(wanted, given, strict=True):
        name = function.__name__
        text = parameters_wrong(answer, list(inspect.signature(function).parameters), name)
        if text:
            return Finding("wrong-type", (("Found", text),), {"answer": name})
    return None


def parameters_wrong(answer: Any, names: list[str], name: str = "") -> str:
    """Say why `answer` cannot be called with `names`; empty where it can.

    name : what it is called in the skeleton, for the text
    """
    function = unwrapped(answer)
    what, wanted = f"{name}: " if name else "", f"a function of ({', '.join(names)})"
    if not callable(function):
        return f"{what}{short(answer)} is a {type(answer).__name__}; use {wanted}"
    if inspect.isclass(function):
        return f"{what}{function.__name__} is a class; use {wanted}, made with def"
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        return f"{what}it has a yield, which makes it a generator; use return"
    if inspect.iscoroutinefunction(function):
        return f"{what}it is async, so that nothing runs when it is called; use def alone"
    try:
        signature = inspect.signature(function)
        signature.bind(*names)
    except TypeError:
        return f"{what}its parameters are {_parameters(function)}; use {wanted}"
    except Exception:  # some built-in functions do not tell their parameters, some objects raise
        pass
    return ""


def _parameters(function: Callable) -> str:
    try:
        return str(inspect.signature(function))
    except Exception:
        return "unknown"


def short(value: Any) -> str:
    """`value` as text of one short line, whatever it is."""
    if type(value) is np.ndarray:
        return f"an array of shape {value.shape} and dtype {value.dtype}"
    if type(value) in (str, bytes, list, tuple, dict, set) and len(value) > LONG:
        return f"a {type(value).__name__} of length {len(value):,}"
    try:
        text = " ".join(repr(value).split())
    except Exception:
        return f"a value of class {type(value).__name__}"
    return text if len(text) <= 60 else text[:57] + "..."
