"""A chapter as a teacher sees it: sections and exercises, each with its minutes.

A chapter's minutes stand in its notebook. They are shared out here: a section gets the time to read
its words and to run its cells, and the exercises, alike, get the rest.
"""

import json
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from gemmlab.course import chapters, exercise_modules

WORDS = 100  # that are read in a minute, formulas among them
CELLS = 2  # that are run and looked at in a minute
READING = 0.6  # of a chapter that has exercises, at most
HEADING = re.compile(r"^##? (.+)$", re.MULTILINE)
REVIEW = "review"  # so begin the names of the cells of a review, which has minutes of its own
EXERCISE = re.compile(r"ex(\d+)")  # the name of the cell in which an exercise is answered


@dataclass(frozen=True)
class Part:
    """A section, with what is read and run in it, or one exercise.

    section : the number of the section, or of the one that an exercise lies in
    exercise : its name, such as "04.1"; empty for a section
    """

    title: str
    minutes: int
    section: int
    exercise: str = ""


@dataclass(frozen=True)
class Chapter:
    """A chapter: its number, such as "04", its title, its minutes and the parts that share them."""

    number: str
    title: str
    minutes: int
    parts: tuple[Part, ...]


def folder() -> Path:
    """Where the chapters lie: beside the package in a clone, inside where it is installed."""
    package = Path(__file__).parents[2]
    inside = package / "lab" / "notebooks"
    return inside if inside.is_dir() else package.parent / "notebooks"


def path_of(number: str) -> Path:
    """The notebook of a chapter; ValueError for one that there is not."""
    if number not in chapters():
        raise ValueError(f"there is no chapter {number!r}; use {', '.join(chapters())}")
    path = folder() / f"{chapters()[number].removeprefix('ch')}.ipynb"
    if not path.is_file():
        raise ValueError(f"the chapters are not here: there is no {path}")
    return path


def notebook(number: str) -> dict[str, Any]:
    """A chapter's notebook as it ships: skeletons are unanswered, and solutions are not in it."""
    return json.loads(path_of(number).read_text("utf-8"))


@cache
def read(number: str) -> Chapter:
    """The chapter with this number; ValueError for one that there is not."""
    content = notebook(number)
    told = content["metadata"]["gemmlab"]
    minutes = int(told["footer"].split()[0])  # "150 minutes · you build a tiled kernel"
    found = _weighed(number, content["cells"])
    reading = sum(weight for _, _, name, weight in found if not name)
    exercises = sum(bool(name) for _, _, name, _ in found)
    most = READING * minutes if exercises else reading
    scale = min(1.0, most / reading)
    each = (minutes - scale * reading) / exercises if exercises else 0
    shares = _shared(minutes, [each if name else scale * w for _, _, name, w in found])
    parts = (
        Part(title, share, at, name)
        for (title, at, name, _), share in zip(found, shares, strict=True)
    )
    return Chapter(number, told["title"], minutes, tuple(parts))


def _weighed(number: str, cells: list[dict[str, Any]]) -> list[tuple[str, int, str, float]]:
    """Each part in order: title, section, exercise, and minutes that its text and cells take."""
    found: list[tuple[str, int, str, float]] = []
    section = -1
    for cell in cells:
        if cell.get("id", "").startswith(REVIEW):
            continue
        text = "".join(cell["source"])
        heading = cell["cell_type"] == "markdown" and HEADING.search(text)
        if heading or section < 0:
            section += 1
            title = heading[1].strip() if section and heading else "Opening"
            found.append((title, section, "", 0.0))
        told = EXERCISE.fullmatch(cell.get("id", ""))
        name = f"{number}.{told[1]}" if told else ""
        if name in exercise_modules():
            found.append((name, section, name, 0.0))
            continue
        weight = len(text.split()) / WORDS if cell["cell_type"] == "markdown" else 1 / CELLS
        at = max(i for i, part in enumerate(found) if not part[2])
        found[at] = (*found[at][:3], found[at][3] + weight)
    return found


def _shared(whole: int, parts: list[float]) -> list[int]:
    """Whole numbers in proportion to `parts` that add up to `whole`: largest remainders first.

    >>> _shared(10, [1.0, 1.0, 1.0])
    [4, 3, 3]
    """
    exact = [whole * part / sum(parts) for part in parts]
    shares = [int(one) for one in exact]
    rest = sorted(range(len(parts)), key=lambda i: (shares[i] - exact[i], i))
    for i in rest[: whole - sum(shares)]:
        shares[i] += 1
    return shares
