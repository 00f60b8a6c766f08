"""The tables of products at the limit of power and beyond L2, for book/predictions.md.

They are `benchmarks.power.blind`'s sets: predicted and committed before anybody timed them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, median
from types import MappingProxyType
from typing import Any

from benchmarks.forecast.written import Written, first_and_since, stored
from benchmarks.page_tables import ms, percent, table
from gemmlab import kernels
from gemmlab.kernels.hashing import source_hash

DEVICE, FIRST = "h100_sxm", "power"
RIGHT = 1e-3  # of C, by norm, from cuBLAS' at most
GROUPS = {
    "held back by the limit of power": lambda one: one.held,
    "`coalesced`, beyond L2": lambda one: one.kernel == "coalesced",
    "others": lambda one: not one.held and one.kernel != "coalesced",
}


@dataclass(frozen=True)
class Product:
    """A product's two times [s], each as it was measured and predicted: alone, and in a row.

    held : the board said, while launches followed each other, that its limit held the clock back
    """

    kernel: str
    problem: str
    alone: tuple[float, float]
    in_a_row: tuple[float, float]
    held: bool

    @property
    def errors(self) -> tuple[float, float]:
        """Return predicted ÷ measured − 1 of a launch alone and of one among many in a row."""
        return tuple(predicted / taken - 1 for taken, predicted in (self.alone, self.in_a_row))


def written(which: str = FIRST) -> list[Written]:
    """Return what was predicted of a set first, and what later code says if it was asked."""
    return first_and_since(DEVICE, f"{which}_predicted")


def timings(which: str = FIRST) -> Written:
    """Return what was timed of a set."""
    return stored(DEVICE, f"{which}_timed")


def products(predictions: Written, which: str = FIRST) -> list[Product]:
    """Pair predictions and timings of a set, as `paired` does."""
    return paired(predictions.rows, timings(which).rows)


def paired(
    predictions: Sequence[Mapping[str, Any]],
    timings: Sequence[Mapping[str, Any]],
    allowed: Mapping[str, float] = MappingProxyType({}),
) -> list[Product]:
    """Pair rows of both; ValueError for another kernel, or a C that is wrong.

    allowed : how far C may be off, by norm, of a product of this name; others: `RIGHT`
    """
    found = []
    for said, timed in zip(predictions, timings, strict=True):
        names = ("kernel", "problem", "tiling", "source_sha256")
        now = source_hash(kernels.get(said["kernel"]))
        if [said[n] for n in names] != [timed[n] for n in names] or now != said["source_sha256"]:
            raise ValueError(
                f"{said['kernel']} {said['problem']}: other code was timed, or is here"
            )
        if not timed["error"] < allowed.get(said["problem"], RIGHT):
            raise ValueError(f"{said['kernel']} {said['problem']}: C was off by {timed['error']}")
        found.append(
            Product(
                said["kernel"], said["problem"], (median(timed["ns"]) * 1e-9, said["seconds"]),
                (timed["sustained"], said["sustained"]), "power cap" in timed["throttle"],
            )
        )  # fmt: skip
    return found


def means(found: Iterable[Product]) -> tuple[float, float]:
    """Return the means of absolute errors, alone and in a row."""
    alone, in_a_row = zip(*(one.errors for one in found), strict=True)
    return fmean(map(abs, alone)), fmean(map(abs, in_a_row))


def rows(which: str = FIRST) -> tuple[str, str]:
    """Tell the means of a set in a sentence, and each product in a table."""
    every = [products(predictions, which) for predictions in written(which)]
    names = ("error", "since")[: len(every)]
    head = ["product", "measured", *names, "in a row", *names]
    cells, said = [], []
    for group, belongs in GROUPS.items():
        members = [[one for one in found if belongs(one)] for found in every]
        if not members[0]:
            continue
        cells += [
            [f"`{same[0].kernel}` {same[0].problem}", *_cells([o.errors for o in same], percent,
             [ms(same[0].alone[0]), ms(same[0].in_a_row[0])])]
            for same in zip(*members, strict=True)
        ]  # fmt: skip
        off = [means(found) for found in members]
        cells.append([f"**{len(members[0])} {group}**", *_cells(off, _mean, ["", ""])])
        said.append(f"{len(members[0])} {group}: {_mean(off[0][0])}")
    off = [means(found) for found in every]
    cells.append([f"**all {len(every[0])}**", *_cells(off, _mean, ["", ""])])
    summary = f"{len(every[0])} products, {_mean(off[0][0])} off on average; in a row "
    return summary + "; ".join([_mean(off[0][1]), *said]), table(head, cells)


def _cells(
    errors: Sequence[tuple[float, float]], told: Callable[[float], str], times: list[str]
) -> list[str]:
    """Return each of two times and behind it its errors, as predicted first and since."""
    return [
        cell for i, time in enumerate(times) for cell in (time, *(told(pair[i]) for pair in errors))
    ]


def _mean(part: float) -> str:
    return f"**{100 * part:.1f}%**"
