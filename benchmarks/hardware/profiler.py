"""Counters of launches as Nsight Compute reads them."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence

from benchmarks.hardware.check import UnavailableError
from benchmarks.hardware.machine import run, under

NCU = "ncu"
OPTIONS = ("--clock-control", "none", "--csv", "--page", "raw", "--print-units", "base")
LIMIT = 300  # seconds that the launches of a piece may take
TRIAL = "write_one"  # the kernel by which gemmlab finds out whether the GPU works: `try_kernel`
FORBIDDEN = "ERR_NVGPUCTRPERM"


def profile(
    check: str, piece: str, metrics: Mapping[str, Sequence[str]], *options: str
) -> list[dict[str, int]]:
    """The counters of each launch of a piece, in order; see `profiled`."""
    return [counters for _, counters in profiled(check, piece, metrics, *options)]


def profiled(
    check: str, piece: str, metrics: Mapping[str, Sequence[str]], *options: str
) -> list[tuple[str, dict[str, int]]]:
    """The kernel's name and the counters of each launch of a piece, in order.

    metrics : name here -> metrics of Nsight Compute whose sums are added

    Raises UnavailableError where this user may not read counters, RuntimeError where ncu fails.
    """
    asked = ",".join(f"{m}.sum" for several in metrics.values() for m in several)
    command = under(NCU, [*OPTIONS, *options, "--metrics", asked], check, piece)
    (ran,) = run([command], LIMIT)
    if FORBIDDEN in ran.text:
        raise UnavailableError(f"ncu may not read counters as this user ({FORBIDDEN})")
    if ran.status != 0:
        raise RuntimeError(f"ncu ended with status {ran.status}:\n{ran.text[-3000:]}")
    return [
        (row["Kernel Name"], {name: round(sum(_number(row[f"{m}.sum"]) for m in several))
                              for name, several in metrics.items()})
        for row in parse(ran.text)
    ]  # fmt: skip


def parse(text: str) -> list[dict[str, str]]:
    """The launches of Nsight Compute's raw CSV page, but for the row of units and the trial."""
    table = [line for line in text.splitlines() if line.startswith('"')]
    rows = [row for row in csv.DictReader(table) if row["ID"].strip()]
    return [row for row in rows if TRIAL not in row["Kernel Name"]]


def _number(text: str) -> float:
    return float(text.replace(",", ""))
