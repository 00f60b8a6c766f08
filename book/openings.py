"""Store the first picture of each chapter in its notebook: ``python -m book.openings``.

Whoever opens a chapter sees what it asks about before anything has run. All other cells are kept
without outputs, so that a change of a notebook is a change of its text or its code.
"""

from __future__ import annotations

import ast
import html
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks import ROOT
from book.film import PNG, lighter
from gemmlab.plots.shared.figures import Figure

DRAWS = "plots.figure("  # stands in the source of each cell that makes a figure


def notebooks() -> Iterator[Path]:
    """The chapters, in the order of their numbers."""
    yield from sorted((ROOT / "notebooks").glob("*.ipynb"))


def read(path: Path) -> dict[str, Any]:
    """What a notebook holds."""
    return json.loads(path.read_text("utf-8"))


def opening(notebook: dict[str, Any]) -> list[dict[str, Any]]:
    """The code cells up to the first that draws."""
    code = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    last = next(i for i, cell in enumerate(code) if DRAWS in "".join(cell["source"]))
    return code[: last + 1]


def drawn(cells: list[dict[str, Any]]) -> Figure:
    """The figure in which these cells end."""
    scope: dict[str, Any] = {}
    for cell in cells:
        body = ast.parse("".join(cell["source"])).body
        end = ast.Expression(body.pop().value) if isinstance(body[-1], ast.Expr) else None
        exec(compile(ast.Module(body, []), cell["id"], "exec"), scope)
    return eval(compile(end, cells[-1]["id"], "eval"), scope)


def output(figure: Figure, number: int) -> dict[str, Any]:
    """The figure as the result of a cell: the page that it shows, its images in few colours."""
    page = figure._repr_mimebundle_()[0]["text/html"]
    light = PNG.sub(lambda image: lighter(image[0]), page)
    return {
        "data": {"text/html": [light]},
        "execution_count": number,
        "metadata": {},
        "output_type": "execute_result",
    }


def told(cell: dict[str, Any]) -> str:
    """The alternative text of the picture that a cell stores; empty where there is none."""
    texts = ["".join(shown["data"]["text/html"]) for shown in cell["outputs"]]
    found = re.search(r'\balt="([^"]*)"', "".join(texts))
    return html.unescape(found[1]) if found else ""


def store(path: Path) -> None:
    """Draw a notebook's first picture anew, and drop all other outputs."""
    notebook = read(path)
    first = opening(notebook)
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            cell.update(execution_count=None, outputs=[])
    number = len(first)  # as if they had been run: nbval takes no output of a cell that was not
    first[-1].update(execution_count=number, outputs=[output(drawn(first), number)])
    path.write_text(json.dumps(notebook, ensure_ascii=False, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    for chapter in notebooks():
        store(chapter)
