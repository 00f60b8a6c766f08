"""Warps visit instructions, and may do the same again, a little further on in memory."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from gemmlab.compiled.sass.execution.memory import Cost


@dataclass
class Visit:
    """Some warps have executed the instructions from `start` up to `stop` one after the other.

    costs : of the accesses among them, as (index of the instruction, cost)
    lanes : a number that tells which of these warps' lanes did, if somebody looks for loops
    """

    start: int
    warps: np.ndarray
    stop: int = 0
    costs: list[tuple[int, Cost]] = field(default_factory=list)
    lanes: int = 0

    @property
    def instructions(self) -> range:
        return range(self.start, self.stop)


@dataclass
class Again(Visit):
    """The warps have done the same again, so many times, without being executed.

    period : the visits before it, which are those that repeat
    earlier : the visits before these, which are the same with other addresses: each time all of
        them are that much further on
    """

    period: list[Visit] = field(default_factory=list)
    earlier: list[Visit] = field(default_factory=list)
    times: int = 0

    @classmethod
    def of(cls, earlier: list[Visit], period: list[Visit], times: int) -> Again:
        warps = np.unique(np.concatenate([visit.warps for visit in period]))
        return cls(0, warps, period=period, earlier=earlier, times=times)

    @property
    def site(self) -> int:
        """The first instruction of the loop."""
        return self.period[0].start

    def turn(self, number: int) -> list[Visit]:
        """Return what is done the 1st time, the 2nd, ….

        >>> cost = Cost("global", "load", *np.zeros((3, 1), int), np.array([[-1, 7]]))
        >>> next_one = cost._replace(pieces=np.array([[-1, 9]]))
        >>> a, b = (Visit(4, np.array([0]), 5, [(4, c)]) for c in (cost, next_one))
        >>> Again.of([a], [b], 5).turn(3)[0].costs[0][1].pieces.tolist()
        [[-1, 15]]
        """
        pairs = zip(self.earlier, self.period, strict=True)
        return [further(before, after, number) for before, after in pairs]


def further(before: Visit, after: Visit, number: int) -> Visit:
    """Return a visit `number` times as much further on than `after` as that is from `before`."""
    if isinstance(after, Again):
        period, earlier = (
            [further(b, a, number) for b, a in zip(*both, strict=True)]
            for both in ((before.period, after.period), (before.earlier, after.earlier))
        )
        return replace(after, period=period, earlier=earlier)
    costs = [
        (at, moved(old, new, number))
        for (at, new), (_, old) in zip(after.costs, before.costs, strict=True)
    ]
    return replace(after, costs=costs)


def moved(old: Cost, new: Cost, number: int) -> Cost:
    """Return the cost of an access that goes on as it went from `old` to `new`."""
    if new.pieces is None or old.pieces is new.pieces:
        return new
    ahead = number * (new.pieces[:, -1:] - old.pieces[:, -1:])
    if not ahead.any():
        return new
    return new._replace(pieces=np.where(new.pieces < 0, new.pieces, new.pieces + ahead))


def count(visits: Iterable[Visit]) -> int:
    """Count the instructions that warps issue in visits, with those that are done again."""
    return sum(
        one.times * count(one.period)
        if isinstance(one, Again)
        else (one.stop - one.start) * len(one.warps)
        for one in visits
    )


Steps = list[np.ndarray | None]


def steps(before: Sequence[Visit], after: Sequence[Visit]) -> Steps | None:
    """Return how many sectors each access is further on in `after`; None where more differs."""
    if len(before) != len(after):
        return None
    for a, b in zip(before, after, strict=True):
        if (a.start, a.stop, a.lanes, len(a.costs)) != (b.start, b.stop, b.lanes, len(b.costs)):
            return None
    found: Steps = []
    for a, b in zip(before, after, strict=True):
        if not _equal(a.warps, b.warps):
            return None
        if isinstance(a, Again) or isinstance(b, Again):
            if type(a) is not type(b) or a.times != b.times:
                return None
            continue
        for (at, old), (other, new) in zip(a.costs, b.costs, strict=True):
            if at != other or not _same_cost(old, new):
                return None
            step = None
            if old.pieces is not None:
                step = new.pieces[:, -1] - old.pieces[:, -1]
                kept = np.where(old.pieces < 0, old.pieces, old.pieces + step[:, None])
                if not _equal(kept, new.pieces):
                    return None
            found.append(step)
    return found


def _same_cost(a: Cost, b: Cost) -> bool:
    return (
        (a.space, a.op, a.mbarrier, a.box) == (b.space, b.op, None, None)
        and _equal(a.warps, b.warps)
        and _equal(a.cycles, b.cycles)
        and _equal(a.sectors, b.sectors)
        and _equal(a.partial, b.partial)
    )


def _equal(a: np.ndarray | None, b: np.ndarray | None) -> bool:
    return a is b or (a is not None and b is not None and np.array_equal(a, b))
