"""A step of a rung along k is what a longer run of an SM has more than a shorter one."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from functools import cached_property

import numpy as np

from gemmlab.compiled.forecast.executed import Executed
from gemmlab.compiled.forecast.kernel import ALL
from gemmlab.compiled.forecast.ready import Ready, ready
from gemmlab.compiled.sass.listing import Line, Listing
from gemmlab.compiled.sm.pipes import Kind
from gemmlab.compiled.sm.result import SCHEDULERS, Reason, Result
from gemmlab.compiled.sm.simulation import simulate
from gemmlab.compiled.sm.streams import Effects

LEAST = 5e-4  # of all slots: less is left out, as what differs between the ends of two runs


@dataclass(frozen=True, eq=False)
class LineCost:
    """A line of the source costs issue slots, told as shares of all slots.

    used : by the name of a `Kind`; empty : by the name of a `Reason`, of slots that stayed empty
        because this line's instructions had to wait, or because they were waited for
    """

    line: Line
    used: Mapping[str, float]
    empty: Mapping[str, float]

    @property
    def share(self) -> float:
        return sum(self.used.values()) + sum(self.empty.values())


@dataclass(frozen=True, eq=False)
class Steps:
    """Steps tell of one SM with its resident blocks in the midst of their loop.

    cycles : of one step
    issued, lost : of one step, as in `Result`
    run : the shorter run as a whole, with its `Timeline`
    """

    listing: Listing = field(repr=False)
    cycles: float
    issued: np.ndarray = field(repr=False)
    lost: np.ndarray = field(repr=False)
    run: Result = field(repr=False)

    @property
    def slots(self) -> float:
        return SCHEDULERS * self.cycles

    @cached_property
    def used(self) -> dict[str, float]:
        """Shares of the slots in which an instruction was issued, by its kind; largest first."""
        return _named(np.bincount(self.run.kinds, self.issued, len(Kind)) / self.slots, Kind)

    @cached_property
    def empty(self) -> dict[str, float]:
        """Shares of the slots in which none was, by the reason; largest first."""
        return _named(self.lost.sum(axis=1) / self.slots, Reason)

    @cached_property
    def lines(self) -> list[LineCost]:
        """The lines of the source, the dearest first; none where lines are not known."""
        known = list(dict.fromkeys(self.listing.lines))
        number = {line: i for i, line in enumerate(known)}
        if not known:
            return []
        at = np.array([number[line] for line in self.listing.lines])
        used, empty = np.zeros((len(known), len(Kind))), np.zeros((len(known), len(Reason)))
        np.add.at(used, (at, self.run.kinds), self.issued / self.slots)
        np.add.at(empty, at, self.lost.T / self.slots)
        costs = [
            LineCost(line, _named(used[i], Kind), _named(empty[i], Reason))
            for line, i in number.items()
            if line is not None
        ]
        return sorted(costs, key=lambda cost: -cost.share)


def steps(executed: Mapping[int, Executed | Ready], along_k: int, effects: Effects = ALL) -> Steps:
    """Find the steps of a rung from two runs as `execute_rung` gives them, both with a warm L2.

    along_k : the length of a step, `Tiling.block[2]`
    Raises ValueError where there is one run alone, because the problem's k is short.
    """
    if len(executed) != 2:
        raise ValueError(f"two runs are needed, not that of k = {list(executed)}: take a longer k")
    runs = ((k, one if isinstance(one, Ready) else ready(one)) for k, one in executed.items())
    (k, short), (longer, long) = runs

    def run(one: Ready, window: tuple[int, int] | None) -> Result:
        return simulate(one.code, one.blocks, one.resident, one.facts, effects, window)

    second = run(long, None)
    first = run(short, (0, second.cycles))
    count = (longer - k) / along_k
    return Steps(
        short.code,
        (second.cycles - first.cycles) / count,
        (second.issued - first.issued) / count,
        (second.lost - first.lost) / count,
        first,
    )


def _named(shares: np.ndarray, members: type[IntEnum]) -> dict[str, float]:
    """Return shares by name, the largest first, without those below `LEAST`."""
    found = {m.name.lower(): float(shares[m]) for m in members if shares[m] > LEAST}
    return dict(sorted(found.items(), key=lambda item: -item[1]))
