"""Write the lists of chapters in README, on the first page and in the first notebook:
``python -m book.chapters``.

What a list says of a chapter stands in its notebook, as the metadata ``gemmlab``:

    title     its name, in README
    card      the same on the map, where it is another
    question  what it asks
    footer    how long it takes, and what a reader builds
    idea, needs, track
              what the map has (`gemmlab.course.course_map`)
    can       what a reader can do afterwards
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

from benchmarks import ROOT
from gemmlab.course import course_map

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


def chart() -> str:
    """The map of the first page: paragraphs that a catalogue translates, and lines beside them."""
    legend = (f"[{words}]{{.{name}}}" for name, words in course_map.LINES.items())
    lines = ["::::{div} gemmlab-map", " ".join(legend), ""]
    for row, station in enumerate(course_map.stations()):
        links = [(station.path, station.title)]
        links += [(s.path, "appendix") for s in course_map.appendices(station)]
        name = ", ".join(f"[{name}](notebooks/{path.stem})" for path, name in links)
        idea = f"*{station.idea}* {station.told}".rstrip()
        lines += ["- ```{raw} html", f"  {course_map.drawing(row)}", "  ```"]
        for first, second in ((name, station.question), (idea, station.footer)):
            lines += ["", "  :::{div}", f"  {first}", "", f"  {second}", "  :::"]
        lines.append("")
    told = [f"**{name}:** {what}" for name, what in course_map.ways().items()]
    return "\n".join([*lines, *(line for one in told for line in (one, "")), "::::"]) + "\n"


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
    pages = {ROOT / "README.md": table(), ROOT / "book" / "index.md": chart()}
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
