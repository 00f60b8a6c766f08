"""Programs of others by both names of the simulated GPU, `numba.cuda` and `numba_cuda_mlir.cuda`.

    python -m benchmarks.simulator.by_name FOLDER

FOLDER has clones of repositories, that of github.com/OWNER/NAME in OWNER+NAME. Programs are their
files and the code of their notebooks, without what is no Python, that import Numba's `cuda`. Each
runs under `gemmlab simulate` as it is, and with its imports changed. Nothing of theirs is kept: the
record has each program's place, commit, and what came out by either name.
"""

import json
import re
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from benchmarks.hardware import machine
from benchmarks.samples.host_scripts import with_mlir
from gemmlab.here.driver import stamp
from gemmlab.measure import store

FILE = Path(__file__).parent / "recorded" / "by_name.json"
REQUIRED = "date", "python", "numpy", "numba"
SECONDS = 40  # of a program; those that take longer are named, not judged
ENDED, HAZARDS, LATE = "ended", "ended, with hazards", f"not ended after {SECONDS} s"
USES = re.compile(r"^\s*(from numba import .*\bcuda\b|from numba\.cuda\b|import numba\.cuda)", re.M)
KINDS = ".py", ".ipynb"
NO_PYTHON = re.compile(r"^\s*[%!].*$|^.*\bget_ipython\(\).*$", re.M)
LAUNCHES = re.compile(r"\bcuda\.jit\b|@jit\b|\[[^\]\n]+\]\(|vectorize|cuda\.reduce")


@dataclass(frozen=True)
class Program:
    """A program of others, and what came out by the first name and by the second."""

    repository: str
    commit: str
    path: str
    first: str
    second: str

    @property
    def alike(self) -> bool:
        """Whether it did the same by both names; an error may name the modules that it asked."""
        return self.first.partition(":")[0] == self.second.partition(":")[0]


def programs(clone: Path, copy: Path) -> Iterator[Path]:
    """Write a clone's files into a folder, and tell which of them are programs."""
    git = ["git", "-C", str(clone)]
    listed = subprocess.run([*git, "ls-tree", "-rz", "--name-only", "HEAD"], capture_output=True)
    names = [name for name in listed.stdout.decode().split("\0") if name.endswith(KINDS)]
    packed = subprocess.run(
        [*git, "archive", "HEAD", "--", *names], capture_output=True, check=True
    )
    subprocess.run(["tar", "-x", "-C", str(copy)], input=packed.stdout, check=True)
    for path in sorted(copy.rglob("*.ipynb")):
        text = _code(path)
        if text:
            Path(f"{path}.py").write_text(text, "utf-8")
    for path in sorted(copy.rglob("*.py")):
        text = path.read_text("utf-8", "replace")
        if USES.search(text) and LAUNCHES.search(text):
            yield path


def _code(notebook: Path) -> str:
    """Return the code of a notebook, without what is no Python."""
    try:
        book = json.loads(notebook.read_text("utf-8"))
        cells = book["cells"] if "cells" in book else book["worksheets"][0]["cells"]
    except (ValueError, KeyError, IndexError):
        return ""
    code = [cell.get("source", cell.get("input", "")) for cell in cells
            if cell["cell_type"] == "code"]  # fmt: skip
    return NO_PYTHON.sub("", "\n\n".join("".join(lines) for lines in code))


def lacking(text: str, folder: Path) -> str:
    """Name a package that a program imports and that is neither installed nor beside it."""
    names = re.findall(r"^(?:import|from) (\w+)", text, re.M)
    own = {path.stem for path in folder.iterdir()}
    return next((name for name in names if name not in own and find_spec(name) is None), "")


def outcomes(script: Path, texts: Iterable[str]) -> list[str]:
    """Run a program's texts beside its file under `gemmlab simulate`: what came out of each."""
    places = []
    for i, text in enumerate(texts):
        places.append(script.with_name(f"by_name_{i}.py"))
        places[-1].write_text(text, "utf-8")
    here = 'cd "$1" && exec "$2" -m gemmlab simulate "$3"'
    commands = [
        ["sh", "-c", here, "sh", str(place.parent), sys.executable, place.name] for place in places
    ]
    return [told(one) for one in machine.run(commands, SECONDS)]


def told(ran: machine.Ran) -> str:
    """Say in a few words what came out."""
    if ran.status is None:
        return LATE
    if ran.status == 0:
        return ENDED
    errors = re.findall(r"^(?:\w+\.)*\w*(?:Error|Exception|Interrupt|Exit)\b.*", ran.text, re.M)
    if ran.status == 1 and not errors:
        return HAZARDS
    lines = errors or ran.text.strip().splitlines() or [""]
    return re.sub(r"/\S+/", "", lines[-1])[:200]


def both(clone: Path) -> Iterator[Program]:
    """Run the programs of a clone by both names."""
    asked = ["git", "-C", str(clone), "rev-parse", "HEAD"]
    commit = subprocess.run(asked, capture_output=True, text=True, check=True).stdout.strip()
    with tempfile.TemporaryDirectory() as folder:
        for path in programs(clone, Path(folder)):
            text = path.read_text("utf-8", "replace")
            needs = lacking(text, path.parent)
            texts = (text, with_mlir(text))
            first, second = [f"needs {needs}"] * 2 if needs else outcomes(path, texts)
            place = path.relative_to(folder).as_posix().removesuffix(".ipynb.py")
            name = clone.name.replace("+", "/", 1)
            yield Program(name, commit, place, first, second)


def recorded() -> store.Stored:
    """Read the record."""
    return store.read(FILE, {"programs": Program}, REQUIRED)


def counts() -> Counter:
    """How many programs did what by both names, and how many did otherwise by the second."""
    found: Counter = Counter()
    for one in recorded().tables["programs"]:
        what = one.first if one.first in (ENDED, HAZARDS, LATE) else "ended with the same error"
        what = "needs a package that was not installed" if one.first.startswith("needs") else what
        found[what if one.alike else "did otherwise by the second name"] += 1
    return found


def main(folder: Path) -> None:
    """Run all, and record what came out."""
    found = []
    for clone in sorted(path for path in folder.iterdir() if path.is_dir()):
        for one in both(clone):
            print(one.repository, one.path, one.first, one.second, sep=" | ", flush=True)
            found.append(one)
    store.write(FILE, stamp(*REQUIRED), {"programs": found}, REQUIRED)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
