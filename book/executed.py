"""Pages that were executed are kept, and not executed again until something changes.

MyST-NB finds an executed page again by its cells. A page's outputs depend on more: on the library
and its data, on the packages and on the machine. All of that together has a key, which names the
folder that executed pages are kept in: a change of any of it is another, empty folder.
"""

from __future__ import annotations

import hashlib
import platform
import shutil
from collections.abc import Iterable, Iterator
from importlib.metadata import distributions
from pathlib import Path

from gemmlab.here.driver import gpu_status

ROOT = Path(__file__).resolve().parents[1]
# What cells import and read, and what makes films of explorers; pages themselves are MyST-NB's.
READ = ("gemmlab", "benchmarks", "book/film.py", "book/outside.py", "book/vectors.py")
STARTED = ("profile_default/startup", "profile_default/ipython_kernel_config.py")
LEFT_OUT = (".pyc", ".pyo", ".nbi", ".nbc")  # compiled: what runs writes it, Numba too
KEPT = 3  # folders of executed pages, of about 100 MB each


def files(root: Path, named: Iterable[str]) -> Iterator[Path]:
    """The files in folders of `root`, and single files, in the order of their names."""
    for name in named:
        found = sorted((root / name).rglob("*")) or [root / name]
        yield from (path for path in found if path.is_file() and path.suffix not in LEFT_OUT)


def machine() -> list[str]:
    """What outputs depend on beside files: Python, each package's version, processor and GPU."""
    packages = sorted({f"{one.name} {one.version}" for one in distributions()})
    return [platform.platform(), platform.python_version(), repr(gpu_status()), *packages]


def key(root: Path, started: Path, facts: Iterable[str]) -> str:
    """Return the digits that stand for all that outputs depend on, but the cells.

    root : the folder of the repository
    started : an IPython folder, with what every kernel runs first
    facts : of this machine, as `machine` gives them
    """
    found = hashlib.sha256("\n".join(facts).encode())
    for folder, named in ((root, READ), (started, STARTED)):
        for path in files(folder, named):
            content = hashlib.sha256(path.read_bytes()).hexdigest()
            found.update(f"\n{path.relative_to(folder).as_posix()} {content}".encode())
    return found.hexdigest()[:16]


def folder(kept: Path, started: Path) -> Path:
    """Return the folder of pages that were executed as they would be now.

    The oldest folders are deleted: the `KEPT` that were asked for last stay, for whoever goes back
    and forth between two states or two environments.
    """
    now = kept / key(ROOT, started, machine())
    now.mkdir(parents=True, exist_ok=True)
    now.touch()
    for old in sorted(kept.iterdir(), key=lambda path: path.stat().st_mtime_ns)[:-KEPT]:
        shutil.rmtree(old, ignore_errors=True)
    return now
