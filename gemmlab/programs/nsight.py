"""`gemmlab predict --beside`: what Nsight Compute says of the same launches, beside the forecast.

It runs the program on this machine's GPU, with the Numba that is installed, or a compiled kernel by
`launched`, and looks into the first launch of each kernel with one grid and one block.
"""

from __future__ import annotations

import argparse
import csv
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from gemmlab.compiled.sass.execution.machine import Dim
from gemmlab.compiled.sm.result import Reason
from gemmlab.here.detection import detect
from gemmlab.here.driver import gpu_status

if TYPE_CHECKING:
    from gemmlab.compiled.forecast.kernel import Forecast

# The clock as it is, caches emptied before each launch, and one launch of each kind.
OPTIONS = (
    *("--csv", "--page", "raw", "--print-units", "base"),
    *("--clock-control", "none", "--cache-control", "all"),
    *("--filter-mode", "per-launch-config", "--launch-count", "1"),
)
FOLDERS = "/usr/local/cuda*/bin/ncu", "/opt/nvidia/nsight-compute/*/ncu"
FORBIDDEN = "ERR_NVGPUCTRPERM"
TIME, ACTIVE = "gpu__time_duration.sum", "smsp__issue_active.avg.pct_of_peak_sustained_active"
_GLOBAL, _SHARED = "l1tex__t_{}_pipe_lsu_mem_global_op_{}.sum", "smsp__inst_executed_op_shared_{}"
COUNTERS = {  # the names of `model.counters`
    "inst_executed": "smsp__inst_executed.sum",
    **{
        f"global_{op}_{what}": _GLOBAL.format(what, short)
        for op, short in (("load", "ld"), ("store", "st"))
        for what in ("requests", "sectors")
    },
    **{
        name: metric
        for op, short in (("load", "ld"), ("store", "st"))
        for name, metric in (
            (f"shared_{op}_requests", f"{_SHARED.format(short)}_pred_on_any.sum"),
            (
                f"shared_{op}_wavefronts",
                f"l1tex__data_pipe_lsu_wavefronts_mem_shared_op_{short}.sum",
            ),
        )
    },
}
NAMES = {"inst_executed": "instructions of warps"}  # the others' own names are words
# What warps wait for: the simulated SM's reasons, and Nsight Compute's words for the same.
WAITS = {
    "results": ((Reason.SCOREBOARD,), ("long_scoreboard", "short_scoreboard")),
    "the arithmetic before": ((Reason.STALL,), ("wait",)),
    "a busy pipe": ((Reason.PIPE,), ("math_pipe_throttle",)),
    "the load/store unit's queue": (
        (Reason.LSU,), ("lg_throttle", "mio_throttle", "tex_throttle"),
    ),
    "a barrier": ((Reason.BARRIER,), ("barrier", "membar")),
    "instructions": ((Reason.FETCH,), ("no_instruction", "branch_resolving", "imc_miss")),
    "registers or dispatch": ((Reason.BANK, Reason.DISPATCH), ("dispatch_stall",)),
    "anything else": ((), ("drain", "sleeping", "misc")),
}  # fmt: skip
_STALL = "smsp__average_warps_issue_stalled_{}_per_issue_active.ratio"
METRICS = [
    *(TIME, ACTIVE, *COUNTERS.values()),
    *(_STALL.format(word) for _, words in WAITS.values() for word in words),
]


@dataclass(frozen=True)
class Seen:
    """A launch as Nsight Compute saw it.

    seconds : of the kernel itself
    issuing : part of the issue slots in which an instruction was issued, while the SMs had warps
    counts : by the names of `model.counters`
    waits : part of all that warps waited, by what for
    """

    kernel: str
    grid: Dim
    block: Dim
    seconds: float
    issuing: float
    counts: Mapping[str, int]
    waits: Mapping[str, float]


REMARK = (
    "Measured on this machine's {}, by Nsight Compute, with empty caches and its own clock. What a "
    "warp waits for is part of all waits: of the simulated SM's issue slots that stay empty it is "
    "the warp that goes first, of Nsight Compute's it is all warps."
)


class ProfilerError(Exception):
    """Nsight Compute could not look into the launches; the message is one line."""


def ncu() -> str | None:
    """Return the path of Nsight Compute's command, None where there is none."""
    found = (str(p) for pattern in FOLDERS for p in sorted(Path("/").glob(pattern[1:])))
    return shutil.which("ncu") or next(found, None)


def lacking() -> str:
    """Say in a line what is missing here, empty where nothing is."""
    missing = [] if ncu() else ["there is no Nsight Compute (ncu)"]
    status = gpu_status()
    if not status.works:
        missing.append(status.reason)
    return f"--beside runs the kernels on a GPU, and {' and '.join(missing)}" if missing else ""


def profile(command: Sequence[str]) -> list[Seen]:
    """Run a command under Nsight Compute; ProfilerError where it cannot."""
    asked = [str(ncu()), *OPTIONS, "--metrics", ",".join(METRICS), *command]
    ran = subprocess.run(asked, capture_output=True, encoding="utf-8", errors="replace")
    said = ran.stdout + ran.stderr
    if FORBIDDEN in said:
        raise ProfilerError(f"this user may not read the GPU's counters ({FORBIDDEN})")
    rows = parse(ran.stdout)
    if ran.returncode or not rows:
        last = (said.strip().splitlines() or [""])[-1]
        raise ProfilerError(f"ncu ended with status {ran.returncode} and {len(rows)} rows: {last}")
    return [_seen(row) for row in rows]


def parse(text: str) -> list[dict[str, str]]:
    """Return the launches of Nsight Compute's raw CSV page, without the row of units."""
    table = [line for line in text.splitlines() if line.startswith('"')]
    return [row for row in csv.DictReader(table) if row["ID"].strip()]


def _seen(row: Mapping[str, str]) -> Seen:
    stalls = {
        name: sum(_number(row[_STALL.format(word)]) for word in words)
        for name, (_, words) in WAITS.items()
    }
    return Seen(
        row["Kernel Name"], _dim(row["Grid Size"]), _dim(row["Block Size"]),
        1e-9 * _number(row[TIME]), _number(row[ACTIVE]) / 100,
        {name: round(_number(row[metric])) for name, metric in COUNTERS.items()},
        _parts(stalls),
    )  # fmt: skip


def _number(text: str) -> float:
    return float(text.replace(",", ""))


def _dim(text: str) -> Dim:
    x, y, z = map(int, re.findall(r"\d+", text))
    return x, y, z


def _parts(of: Mapping[str, float]) -> dict[str, float]:
    total = sum(of.values()) or 1.0
    return {name: part / total for name, part in of.items()}


def matching(seen: Iterable[Seen], kernel: str, grid: Dim, block: Dim) -> Seen | None:
    """Return what was seen of a kernel's launch; names are as compilers decorate them.

    >>> sizes = (8, 1, 1), (64, 1, 1)
    >>> one = Seen("void blur(float *)", *sizes, 1e-6, 0.5, {}, {})
    >>> matching([one], "blur", *sizes) is one, matching([one], "blu", *sizes)
    (True, None)
    """
    name = re.compile(rf"(?<![\w]){re.escape(kernel.rpartition('.')[2])}(?!\w)")
    for one in seen:
        if (one.grid, one.block) == (tuple(grid), tuple(block)) and name.search(one.kernel):
            return one
    return None


def waits(forecast: Forecast) -> dict[str, float]:
    """Return the parts of a forecast's empty issue slots, by the names of `WAITS`."""
    empty = forecast.result.empty
    return _parts(
        {
            name: sum(empty.get(reason.name.lower(), 0) for reason in reasons)
            for name, (reasons, _) in WAITS.items()
        }
    )


def compared(forecast: Forecast, seen: Seen) -> list[tuple[str, str, float, float]]:
    """List (what, its kind, predicted, measured): the time, counters, and parts of slots and waits.

    The kind is "s", "count" or "part". What neither has is left out.
    """
    rows = [("time of the kernel", "s", forecast.seconds - forecast.launch, seen.seconds)]
    for name in COUNTERS:
        made, found = forecast.counts.get(name, 0), seen.counts[name]
        if made or found:
            rows.append((NAMES.get(name, name.replace("_", " ")), "count", made, found))
    used = sum(forecast.result.used.values()) / forecast.result.slots
    rows.append(("issue slots used", "part", used, seen.issuing))
    made = waits(forecast)
    for name, found in sorted(seen.waits.items(), key=lambda item: -item[1]):
        if max(found, made[name]) >= 0.01:
            rows.append((f"waits for {name}", "part", made[name], found))
    return rows


def data(seen: Seen | None) -> dict[str, Any] | None:
    """Return what was seen as data."""
    return None if seen is None else {
        "seconds": seen.seconds, "issuing": seen.issuing, "counts": dict(seen.counts),
        "waits": {name: round(part, 6) for name, part in seen.waits.items()},
    }  # fmt: skip


class Looked(Protocol):
    """A launch that was forecast, and what a profiler says of it."""

    kernel: str
    grid: Dim
    block: Dim
    seen: Seen | None


def look(
    launches: Sequence[Looked], devices: Sequence[str], asked: argparse.Namespace,
    program: str | None,
) -> list[str]:  # fmt: skip
    """Run what was forecast under Nsight Compute, keep what it saw, and say what is compared.

    devices : those that it was forecast for
    asked : what the command was told; program : the file of a program, None for a compiled kernel
    Raises ProfilerError where none of the launches is seen, or the GPU here was not asked for.
    """
    here = detect()
    if here.name not in devices:
        raise ProfilerError(f"the GPU here is {here.name}, and --device names others")
    seen = profile(command(asked, program))
    for launch in launches:
        launch.seen = matching(seen, launch.kernel, launch.grid, launch.block)
    if all(launch.seen is None for launch in launches):
        names = ", ".join(dict.fromkeys(one.kernel for one in seen))
        raise ProfilerError(f"Nsight Compute saw other launches alone: {names}")
    return [REMARK.format(here.title)]


def command(asked: argparse.Namespace, program: str | None) -> list[str]:
    """Return what runs a program, or launches a compiled kernel, on the GPU here."""
    if program:
        return [sys.executable, program, *asked.rest]
    sizes = ("--grid", asked.grid), ("--block", asked.block), ("--shared", asked.shared)
    told = [text for name, value in sizes if value for text in (name, str(value))]
    told += [text for one in asked.arg for text in ("--arg", one)]
    return [sys.executable, "-m", "gemmlab.programs.launched", asked.target, *told]
