"""Tables of the book's pages that are written by a program, between marks.

What stands between ``<!-- table NAME -->`` and ``<!-- end -->`` is replaced.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path

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
