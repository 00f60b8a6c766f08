"""The Python of a cell, without what IPython alone understands: magics, shell commands, questions.

A line is left out where Python's parser stops at it, and nowhere else: ``% b)`` may go on with a
remainder, and a comment may ask something. A cell that is handed on whole, to a shell or a browser,
has no Python.
"""

from __future__ import annotations

import ast
import textwrap

RUN = ("%%time", "%%capture", "%%prun", "%%memit")  # magics that run their cell as it stands
MOST = 100  # lines of a cell that are left out


def parsed(text: str) -> tuple[ast.Module, str]:
    """The statements of a cell, and why there are none; the text's lines stay where they are."""
    lines = _lines(text)
    fault = ""
    for _ in range(MOST):
        try:
            return ast.parse("\n".join(lines)), ""
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            at = getattr(error, "lineno", None) or 0
            why = getattr(error, "msg", None) or first_line(error)
            fault = f"line {at}: {why}" if at else why
        if not 0 < at <= len(lines) or not _left_out(lines, at - 1):
            break
    return ast.Module([], []), fault


def first_line(error: BaseException) -> str:
    """The first line of what an error says."""
    return (str(error) or type(error).__name__).splitlines()[0][:200]


def source(text: str) -> str:
    """A cell's text with the line ends and the margin with which it is read."""
    return "\n".join(_lines(text))


def _lines(text: str) -> list[str]:
    """The lines as Python counts them; IPython takes a margin that all of them have away."""
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    first = next((i for i, line in enumerate(lines) if line.strip()), 0)
    words = lines[first].split()
    if words and words[0].startswith("%%"):
        lines[first] = ""
        if words[0] not in RUN:
            return [""]
    elif lines[first][:1] in (" ", "\t"):
        lines = textwrap.dedent("\n".join(lines)).split("\n")
    return lines


def _left_out(lines: list[str], at: int) -> bool:
    """Put Python in the place of a line that is none of its own; whether there was such a line."""
    line = lines[at]
    code = line.lstrip()
    margin = line[: len(line) - len(code)]
    name, sign, value = code.partition("=")
    if code.startswith("%time ") and code.split(None, 1)[1:]:
        lines[at] = margin + code.split(None, 1)[1]
    elif code.startswith(("%", "!")) or code.rstrip().endswith("?") or code.startswith("?"):
        lines[at] = f"{margin}pass"
    elif sign and value.lstrip()[:1] in ("%", "!") and name.strip().isidentifier():
        lines[at] = f"{margin}{name.strip()} = None"
    else:
        return False
    while line.endswith("\\") and at + 1 < len(lines):  # a command of several lines
        at += 1
        line, lines[at] = lines[at], ""
    return True
