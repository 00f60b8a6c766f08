"""The page's tables: what was compiled and timed is kept, and what differs besides is written.

python -m benchmarks.compilers.table keep FOLDER TIMES   what `compiling` and `timing` wrote
python -m benchmarks.compilers.table                     book/compilers.md
"""

import json
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks import ROOT
from benchmarks.compilers import differences
from benchmarks.page_tables import table, write
from gemmlab.here.compilers import COMPILERS, MLIR
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
    compile_seconds : of all its launches, from Python to the cubin
    """

    rung: str
    sizes: tuple[int, ...]
    same: bool
    seconds: Mapping[str, float]
    registers: Mapping[str, int]
    local_bytes: Mapping[str, int]
    compile_seconds: Mapping[str, float]

    @property
    def ratio(self) -> float:
        """How much longer numba-cuda-mlir's takes, as a quotient."""
        first, second = (self.seconds[name] for name in COMPILERS)
        return second / first


def keep(folder: Path, times: Path) -> None:
    """Put together what was compiled and timed, and write the record."""
    tools: dict[str, str] = {}
    compiling: dict[str, dict[str, float]] = {}
    for name in COMPILERS:
        first, *lines = _lines(folder / f"{name}.jsonl")
        tools |= first
        for line in lines:
            own = compiling.setdefault(line["rung"], dict.fromkeys(COMPILERS, 0.0))
            own[name] = round(own[name] + line["seconds"], 3)
    head, *lines = _lines(times)
    rows = [
        Rung(
            line["rung"], tuple(line["sizes"]), line["same"], line["seconds"],
            *({c: taken[what] for c, taken in line["resources"].items()}
              for what in ("registers", "local_bytes")),
            compiling[line["rung"]],
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
            " / ".join(f"{one.compile_seconds[c]:.2g}" for c in COMPILERS),
            "yes" if one.same else "no",
        ]
        for one in found.tables["rungs"]
    ]
    header = ["rung", *(f"{c} [ms]" for c in COMPILERS), "difference", "registers", "local [B]"]
    return table([*header, "compiling [s]", "same bits"], rows)


def where() -> str:
    """Return by what the table was made."""
    told = recorded().provenance
    tools = ", ".join(f"{c} {told[c.replace('-', '_')]}" for c in COMPILERS)
    return (
        f"{told['device_title']}, driver {told['driver']}, {told['date'][:10]}; {tools}, ptxas "
        f"{told['ptxas']}, Python {told['python']}"
    )


def differing(topic: str) -> str:
    """Return the table of what differs in a topic; what comes out alike is named below it."""
    found = [one for one in differences.recorded().tables["differences"] if one.topic == topic]
    alike = [one for one in found if len({*one.outcomes.values(), one.mended}) == 1]
    rows = [
        [one.what, *(_cell(one.outcomes[c]) for c in COMPILERS), _mended(one)]
        for one in found
        if one not in alike
    ]
    text = table(["", *COMPILERS, "with gemmlab"], rows)
    named = "; ".join(f"{one.what} ({_cell(one.mended)})" for one in alike)
    return f"{text}\n\nAlike: {named}." if alike else text


def _cell(outcome: str) -> str:
    # A page takes bars for cells, angles for HTML, and brackets for links.
    for sign, shown in (("|", "\\|"), ("<", "&lt;"), ("[", "\\[")):
        outcome = outcome.replace(sign, shown)
    return outcome or "none"


def _mended(one: differences.Difference) -> str:
    return "the same" if one.mended == one.outcomes[MLIR] else _cell(one.mended)


def chains() -> str:
    """Return the table of times to compile device functions that call each other."""
    rows = [
        [one.functions, *(f"{one.seconds[c]:.2g}" for c in COMPILERS)]
        for one in differences.recorded().tables["chains"]
    ]
    return table(["device functions", *(f"{c} [s]" for c in COMPILERS)], rows)


TABLES: Mapping[str, Callable[[], str]] = {
    "compilers": rungs,
    "compilers-where": where,
    **{f"compilers-{topic}": partial(differing, topic) for topic in differences.TOPICS},
    "compilers-chains": chains,
}


if __name__ == "__main__":
    if sys.argv[1:2] == ["keep"]:
        keep(*map(Path, sys.argv[2:]))
    else:
        write(PAGE, TABLES)
