"""The learner's copies of the chapters: what was changed is kept, the rest follows the course.

A chapter is the sequence of its cells' sources. Running and saving it changes outputs alone, so a
chapter that was only run counts as unchanged.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from itertools import count
from pathlib import Path

from gemmlab.here import files

LAID = ".laid.json"  # name of a copy -> digest of the chapter as it was laid there


def update(chapters: Path, work: Path) -> list[str]:
    """Bring the copies in `work` up to date; a line for each chapter laid beside a changed one.

    A chapter that is missing is laid there, one that the learner left as it was is replaced, and
    one with changes stays, with the new version beside it. Others that do the same wait.
    """
    with files.locked(work):
        return list(_updated(chapters, work))


def _updated(chapters: Path, work: Path) -> Iterator[str]:
    laid = _read(work / LAID)
    for chapter in sorted(chapters.glob("*.ipynb")):
        fresh = digest(chapter)
        copies = list(_copies(chapter.stem, work))
        if any(copy.exists() and laid.get(copy.name) == fresh for copy in copies):
            continue  # the learner has this version, with changes or without
        copy = next(c for c in copies if digest(c) in ("missing", fresh, laid.get(c.name)))
        if digest(copy) != fresh:
            files.put(copy, chapter.read_bytes())
        laid[copy.name] = fresh
        files.put(work / LAID, json.dumps(laid, indent=1).encode())
        if copy != copies[0]:
            yield (
                f"{chapter.name} has a new version: yours is kept, because you changed it, and the "
                f"new one is {copy.name}"
            )


def trust(chapters: Path, work: Path) -> None:
    """Sign the copies that are the course's files: JupyterLab calls others "not trusted".

    A copy with other outputs may be somebody else's, and an output can hold a program. JupyterLab
    itself signs what the learner runs and saves.
    """
    import nbformat
    from jupyter_core.paths import jupyter_data_dir
    from nbformat.sign import NotebookNotary

    Path(jupyter_data_dir()).mkdir(parents=True, exist_ok=True)  # where signatures are kept
    with NotebookNotary() as notary:
        for chapter in chapters.glob("*.ipynb"):
            for copy in _copies(chapter.stem, work):
                if copy.exists() and copy.read_bytes() == chapter.read_bytes():
                    notary.sign(nbformat.read(copy, as_version=4))


def digest(notebook: Path) -> str:
    """The digest of the cells' sources, or why there is none: "missing" or "unreadable"."""
    if not notebook.exists():
        return "missing"
    try:
        cells = json.loads(notebook.read_text("utf-8"))["cells"]
        sources = [(cell["cell_type"], "".join(cell["source"])) for cell in cells]
    except (ValueError, TypeError, KeyError):  # half saved, or no notebook
        return "unreadable"
    return hashlib.sha256(json.dumps(sources).encode()).hexdigest()


def _copies(stem: str, work: Path) -> Iterator[Path]:
    """The copies of a chapter, the oldest first, and the first place that is free."""
    for number in count(1):
        copy = work / (f"{stem}.ipynb" if number == 1 else f"{stem}.new{number}.ipynb")
        yield copy
        if not copy.exists():
            return


def _read(file: Path) -> dict[str, str]:
    """What was laid; empty where that is not known, so that everything counts as changed."""
    try:
        laid = json.loads(file.read_text("utf-8"))
    except (FileNotFoundError, ValueError):
        return {}
    return laid if isinstance(laid, dict) else {}
