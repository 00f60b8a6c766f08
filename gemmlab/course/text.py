"""Two versions of a kernel: the lines that change, and a version with other lines."""

import difflib
import inspect
import linecache
import textwrap
from collections.abc import Callable
from typing import Any


class Markdown(str):
    """A text in Markdown."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)

    def _repr_markdown_(self) -> str:
        return str(self)


def changed_lines(before: Callable, after: Callable, around: int = 1) -> Markdown:
    """The lines of `after` that are not in `before`, and the reverse, as a diff to read.

    around : unchanged lines shown on either side of a change
    """
    old, new = (_lines(function) for function in (before, after))
    lines = list(difflib.unified_diff(old, new, lineterm="", n=around))
    if not lines:
        return Markdown(f"`{before.__name__}` and `{after.__name__}` are the same, line by line.")
    # The names of the files and the place of the first piece are left out.
    shown = "\n".join("  ..." if line.startswith("@@") else line for line in lines[3:])
    return Markdown(f"```diff\n{shown}\n```")


def _lines(function: Callable) -> list[str]:
    """The source of a function below its first line, which holds its name."""
    source = inspect.getsource(getattr(function, "py_func", function))
    return textwrap.dedent(source).rstrip().splitlines()[1:]


def rewritten(function: Callable, old: str, new: str = "pass", **names: Any) -> Callable:
    """`function` with one piece of its source replaced, to see what a line is good for.

    It sees the names of `function`'s module or notebook, as they are now, and those that are given;
    what encloses a function it does not see. Raises ValueError unless `old` is there once.
    """
    source = textwrap.dedent(inspect.getsource(function))
    if source.count(old) != 1:
        raise ValueError(
            f"{old!r} is {source.count(old)} times in {function.__name__}; use a piece of its "
            "source that is there once"
        )
    text = source.replace(old, new)
    file = " ".join(f"<{function.__name__}: {new} for {old}>".split())  # in one line, for compilers
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    seen = {**function.__globals__, **names}
    exec(compile(text, file, "exec", dont_inherit=True), seen)
    return seen[function.__name__]
