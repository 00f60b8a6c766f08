"""How long the works of `benchmarks.simulator.work` take here, and in Numba's own simulator.

    python -m benchmarks.simulator.speed [NAME ...]

Each work runs `TIMES` times in either simulator, in turn, every time in a Python of its own; the
quickest run is kept in `recorded/speed.json`, with the machine, versions and date, and the hash of
the works' code. The guide (`book/simulator.md`) shows it. Times are those of a clock, because the
threads of Numba's simulator sleep while they wait; of several runs the quickest is the one that a
busy computer has disturbed least.
"""

from __future__ import annotations

import argparse
import os
import platform
from collections.abc import Callable
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

from benchmarks.fingerprint import fingerprint
from benchmarks.hardware.check import Result
from benchmarks.hardware.store import read, write
from benchmarks.simulator import work as works
from gemmlab.here.detection import processor_name

RECORDED = Path(__file__).parent / "recorded" / "speed"
TIMES = 3


def recorded() -> dict[str, Result]:
    """What was recorded, by the name of a work."""
    return read(RECORDED)


def code_sha256() -> str:
    """Hash the works' code."""
    return fingerprint(Path(works.__file__).read_text("utf-8"))


def measured(work: works.Work, run: Callable[[int, bool], Any]) -> dict[str, Any]:
    """The quickest runs of a work here and there, of which `run(size, numba)` makes one.

    RuntimeError for a work that fails.
    """
    runs: dict[bool, list[dict[str, float]]] = {False: [], True: []}
    for _ in range(TIMES):
        for numba, size in ((False, work.size), (True, work.size_of_numba)):
            cost = run(size, numba)
            if isinstance(cost, str):
                raise RuntimeError(f"{work.launch.__name__} of {size} {cost}")
            runs[numba].append({"size": size, **cost})
    here, there = (min(costs, key=lambda cost: cost["wall"]) for costs in runs.values())
    return {"here": here, "there": there, "code_sha256": code_sha256()}


def origin() -> dict[str, Any]:
    """Where this is measured, with what, and when."""
    return {
        "processor": processor_name(),
        "cores": os.cpu_count(),
        "system": platform.system(),
        "python": platform.python_version(),
        **{p.replace("-", "_"): version(p) for p in ("numpy", "numba", "numba-cuda")},
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help="default: all")
    known = recorded()
    for name in parser.parse_args().names or works.WORKS:
        found = measured(
            works.WORKS[name], lambda *how, name=name: works.measured_apart(name, *how)
        )
        known[name] = Result(name, found, origin())
        times = (found[where]["wall"] / found[where]["turns"] for where in ("here", "there"))
        print(f"{name:<20} {' '.join(f'{time:.1e}' for time in times)} s/turn", flush=True)
        write(RECORDED, (known[n] for n in works.WORKS if n in known))


if __name__ == "__main__":
    main()
