"""The table of rungs by both compilers: what was compiled and timed is kept, and a page gets it.

python -m benchmarks.compilers.table keep FOLDER TIMES   what `compiling` and `timing` wrote
python -m benchmarks.compilers.table                     book/compilers.md
"""

import json
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks import ROOT
from benchmarks.page_tables import table, write
from gemmlab.here.compilers import COMPILERS
from gemmlab.measure import store

FILE, DEVICE = "compilers.json", "h100_sxm"
PAGE = ROOT / "book" / "compilers.md"
REQUIRED = ("date", "device_title", "driver", *(name.replace("-", "_") for name in COMPILERS))


@dataclass(frozen=True)
class Rung:
    """A rung by both compilers.

    sizes : m, n, k of the product that was timed; same : whether C has the same bits
    seconds : medians, by compiler, as are registers and local_bytes: of a thread, in the launch
        that multiplies
    """

    rung: str
    sizes: tuple[int, ...]
    same: bool
    seconds: Mapping[str, float]
    registers: Mapping[str, int]
    local_bytes: Mapping[str, int]

    @property
    def ratio(self) -> float:
        """How much longer numba-cuda-mlir's takes, as a quotient."""
        first, second = (self.seconds[name] for name in COMPILERS)
        return second / first


def keep(folder: Path, times: Path) -> None:
    """Put together what was compiled and timed, and write the record."""
    tools: dict[str, str] = {}
    for name in COMPILERS:
        tools |= _lines(folder / f"{name}.jsonl")[0]
    head, *lines = _lines(times)
    rows = [
        Rung(
            line["rung"], tuple(line["sizes"]), line["same"], line["seconds"],
            *({c: taken[what] for c, taken in line["resources"].items()}
              for what in ("registers", "local_bytes")),
        )
        for line in lines
    ]  # fmt: skip
    told = {"device_title": head.pop("gpu"), **tools, **head}
    path = Path(store.ROOT) / DEVICE / FILE
    store.write(path, told, {"rungs": rows}, REQUIRED)


def _lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def recorded() -> store.Stored:
    """Read the record."""
    return store.read(store.path_of(DEVICE, FILE), {"rungs": Rung}, REQUIRED)


def rungs() -> str:
    """Return the table of all rungs."""
    found = recorded()
    rows = [
        [
            f"*{one.rung}*",
            *(f"{one.seconds[c] * 1e3:.3g}" for c in COMPILERS),
            f"{100 * (one.ratio - 1):+.1f} %",
            " / ".join(str(one.registers[c]) for c in COMPILERS),
            " / ".join(str(one.local_bytes[c]) for c in COMPILERS),
            "yes" if one.same else "no",
        ]
        for one in found.tables["rungs"]
    ]
    header = ["rung", *(f"{c} [ms]" for c in COMPILERS), "difference", "registers", "local [B]"]
    return table([*header, "same bits"], rows)


def where() -> str:
    """Return by what the table was made."""
    told = recorded().provenance
    tools = ", ".join(f"{c} {told[c.replace('-', '_')]}" for c in COMPILERS)
    return (
        f"{told['device_title']}, driver {told['driver']}, {told['date'][:10]}; {tools}, ptxas "
        f"{told['ptxas']}, Python {told['python']}"
    )


TABLES: Mapping[str, Callable[[], str]] = {"compilers": rungs, "compilers-where": where}


if __name__ == "__main__":
    if sys.argv[1:2] == ["keep"]:
        keep(*map(Path, sys.argv[2:]))
    else:
        write(PAGE, TABLES)
