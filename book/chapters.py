"""Write the lists of chapters in README, on the first page and in the first notebook:
``python -m book.chapters``.

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


def contents() -> str:
    """The table of the first notebook, for whoever sees file names beside it."""
    lines = ["| Chapter | Question | Minutes |", "|---|---|--:|"]
    for path, said in chapters():
        number, name = int(path.name[:2]), said.get("card", said["title"])
        if number:
            minutes = said["footer"].split()[0]
            lines.append(f"| [{number} · {name}]({path.name}) | {said['question']} | {minutes} |")
    return "\n".join(lines) + "\n"


def up_to_date() -> dict[Path, str]:
    """The pages with their lists as the notebooks have them."""
    pages = {ROOT / "README.md": table(), ROOT / "book" / "index.md": cards()}
    found = {path: _listed(path.read_text("utf-8"), text) for path, text in pages.items()}
    first, _ = next(chapters())
    notebook = json.loads(first.read_text("utf-8"))
    for cell in notebook["cells"]:
        if cell["cell_type"] == "markdown":
            cell["source"] = _listed("".join(cell["source"]), contents()).splitlines(keepends=True)
    return found | {first: json.dumps(notebook, ensure_ascii=False, indent=1) + "\n"}


def _listed(page: str, text: str) -> str:
    """A page with this list between its marks; as it is where it has none."""
    return LISTS.sub(lambda _: f"\n{text}\n", page)


if __name__ == "__main__":
    for page, text in up_to_date().items():
        page.write_text(text, "utf-8")
