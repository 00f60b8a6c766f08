"""Write the lists of chapters in README and on the first page: ``python -m book.chapters``.

What a list says of a chapter stands in its notebook, as the metadata ``gemmlab``:

    title     its name, in README
    card      the same on the first page, where it is another
    question  what the card asks
    footer    how long it takes, and what a reader builds
    can       what a reader can do afterwards
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

from benchmarks import ROOT

BEGIN, END = "<!-- chapters: written by book/chapters.py -->", "<!-- end of chapters -->"
LISTS = re.compile(f"(?<={BEGIN}\n).*?(?={END})", re.DOTALL)


def chapters() -> Iterator[tuple[Path, dict[str, str]]]:
    """The notebooks in the order of their numbers, each with what it says of itself."""
    for path in sorted((ROOT / "notebooks").glob("*.ipynb")):
        yield path, json.loads(path.read_text("utf-8"))["metadata"]["gemmlab"]


def table() -> str:
    """The table of README."""
    lines = ["| chapter | you can afterwards |", "|---|---|"]
    for path, said in chapters():
        link = f"[{path.name[:2]} {said['title']}](notebooks/{path.name})"
        lines.append(f"| {link} | {said['can']} |")
    return "\n".join(lines) + "\n"


def cards() -> str:
    """The cards of the first page."""
    lines = [":::::{grid} 1 2 2 3", ":gutter: 3", ":class-container: gemmlab-chapters", ""]
    for path, said in chapters():
        number, name = int(path.name[:2]), said.get("card", said["title"])
        lines += [
            f"::::{{grid-item-card}} {f'{number} · ' if number else ''}{name}",
            f":link: notebooks/{path.stem}",
            ":link-type: doc",
            said["question"],
            ":::{card-footer}",
            said["footer"],
            ":::",
            "::::",
            "",
        ]
    return "\n".join([*lines[:-1], ":::::"]) + "\n"


def up_to_date() -> dict[Path, str]:
    """Both pages with their lists as the notebooks have them."""
    lists = {ROOT / "README.md": table(), ROOT / "book" / "index.md": cards()}
    return {
        path: LISTS.sub(lambda _, text=text: f"\n{text}\n", path.read_text("utf-8"))
        for path, text in lists.items()
    }


if __name__ == "__main__":
    for page, text in up_to_date().items():
        page.write_text(text, "utf-8")
