"""Tables of the book's pages that are written by a program, between marks.

What stands between ``<!-- table NAME -->`` and ``<!-- end -->`` is replaced.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from statistics import fmean

Tables = Mapping[str, Callable[[], str]]  # what makes each, by name


def table(header: list[str], rows: list[list[object]]) -> str:
    """A Markdown table."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(str(cell) for cell in line) + " |" for line in lines)


def filled(text: str, tables: Tables) -> str:
    """A page with its tables as they are now."""
    return re.sub(
        r"(<!-- table ([\w-]+) -->\n).*?(<!-- end -->)",
        lambda m: f"{m[1]}\n{tables[m[2]]()}\n\n{m[3]}",
        text,
        flags=re.DOTALL,
    )


def write(page: Path, tables: Tables) -> None:
    """Write the tables of a page anew."""
    page.write_text(filled(page.read_text("utf-8"), tables), "utf-8", newline="\n")


def percent(part: float) -> str:
    """A signed part as a text.

    >>> percent(0.0512), percent(-0.5)
    ('+5.1%', '−50.0%')
    """
    rounded = round(100 * part, 1) + 0.0  # no zero has a sign
    return f"{rounded:+.1f}%".replace("-", "−")


def mean(errors: Iterable[float]) -> str:
    """The mean of absolute errors as a text."""
    return f"{100 * fmean(map(abs, errors)):.1f}%"


def ms(seconds: float | None) -> str:
    return "" if seconds is None else f"{1e3 * seconds:.3g} ms"


def fold(summary: str, text: str) -> str:
    """A part of the page that opens on a click, for whom its summary is not enough."""
    return f"<details><summary>{summary}</summary>\n\n{text}\n\n</details>"
