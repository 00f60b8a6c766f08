"""Two versions of a kernel, as the lines that change."""

from __future__ import annotations

import difflib
import inspect
import textwrap
from collections.abc import Callable

from gemmlab.markdown import Markdown


def changed_lines(before: Callable, after: Callable, around: int = 1) -> Markdown:
    """The lines of `after` that are not in `before`, and the reverse, as a diff to read.

    around : unchanged lines shown on either side of a change
    """
    old, new = (_lines(function) for function in (before, after))
    shown = []
    for line in difflib.unified_diff(old, new, lineterm="", n=around):
        if line.startswith(("---", "+++")) and len(shown) == 0:
            continue
        shown.append("  ..." if line.startswith("@@") else line)
    if not shown:
        return Markdown(f"`{before.__name__}` and `{after.__name__}` are the same, line by line.")
    return Markdown("```diff\n" + "\n".join(shown[1:]) + "\n```")


def _lines(function: Callable) -> list[str]:
    """The source of a function below its first line, which holds its name."""
    source = inspect.getsource(getattr(function, "py_func", function))
    return textwrap.dedent(source).rstrip().splitlines()[1:]
