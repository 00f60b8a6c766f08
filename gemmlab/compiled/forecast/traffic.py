"""Accesses ask of L1, L2 and device memory what streams tell of them.

L2 and device memory count in sectors of 32 bytes, in the time that each takes for one of a stream.
What is no stream takes longer. L2 answers a request for one line at a time, whatever is wanted of
the line. Where the lanes of a warp go anywhere, they meet nobody's lines: device memory opens a row
for each, and moves 64 bytes; L2 may still hold what was asked for, by chance.
"""

import math
from collections import Counter, OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Self

import numpy as np

from gemmlab import Device
from gemmlab.compiled.forecast.repeated import pass_by
from gemmlab.compiled.sass.execution.memory import SEGMENT, Cost
from gemmlab.compiled.sass.execution.visits import Again, Visit
from gemmlab.compiled.sass.listing import Listing
from gemmlab.compiled.sm.streams import Level, Stream
from gemmlab.model.transactions import LINE, SECTOR, SECTORS

PATTERN = 8  # distances between the sectors of a warp, at most, where its lanes follow a pattern


class L1:
    """The L1 cache of an SM has lines of four sectors; the line not used for longest gives way.

    A sector that was asked for in the same round is on its way: those that ask again wait, too, but
    L2 is asked once.
    """

    def __init__(self, size: int) -> None:
        """Make an empty cache of `size` bytes."""
        self.most = max(1, size // LINE)
        self.lines: OrderedDict[int, list[int]] = OrderedDict()  # number -> rounds of its sectors
        self.round = 0

    def load(self, sectors: Iterable[int]) -> tuple[list[int], bool]:
        """Ask for sectors: which come from L2, and whether one asked for before is awaited."""
        missing, awaited, last, held = [], False, None, []
        for sector in sectors:
            line, place = sector // SECTORS, sector % SECTORS
            if line != last:
                last, held = line, self._line(line)
            if not held[place]:
                missing.append(sector)
                held[place] = self.round
            elif held[place] == self.round:
                awaited = True
        return missing, awaited

    def _line(self, number: int) -> list[int]:
        """Return the rounds of a line's sectors; it is the one used last from now on."""
        held = self.lines.get(number)
        if held is None:
            held = self.lines[number] = [0] * SECTORS
            if len(self.lines) > self.most:
                self.lines.popitem(last=False)
        else:
            self.lines.move_to_end(number)
        return held


class Recent:
    """L2 still has what an SM asked for lately, before all SMs have asked for as much as it holds.

    It holds nothing if `size` is 0, or all of it was there before.
    """

    def __init__(self, size: float) -> None:
        """`size` is this SM's part of L2 [B], if all of them ask for as much."""
        self.most = size / SECTOR
        self.asked = 0
        self.last: dict[int, int] = {}  # of a sector, how much had been asked for

    def has(self, sectors: Sequence[int]) -> bool:
        """Say whether all of these are there, which are asked for now."""
        there = all(self.asked - self.last.get(s, -math.inf) <= self.most for s in sectors)
        self.asked += len(sectors)
        self.last.update(dict.fromkeys(sectors, self.asked))
        return there


@dataclass(frozen=True)
class Weights:
    """Accesses count as so many sectors of a stream, by the time that they take.

    request : of L2, a line of which a load wants a part
    written : of L2, a sector that is stored; partial : a line of which one is stored in part, more
    filled : of device memory, a sector stored in part that nobody fills, more than a whole one
    addition : of L2, an atomic addition
    line : of L2, a line to which single lanes add; returned : where they want the sum
    read, stored : of device memory, an access somewhere
    """

    request: float = 1.0
    written: float = 1.0
    partial: float = 0.0
    filled: float = 0.0
    addition: float = 0.0
    line: float = 1.0
    returned: float = 1.0
    read: float = 1.0
    stored: float = 1.0

    def times(self, gain: float) -> Self:
        """Return these for an SM that has so much more of L2 for its loads alone."""
        slower = ("written", "partial", "addition", "line", "returned")
        return replace(self, **{name: gain * getattr(self, name) for name in slower})


def weights(device: Device) -> Weights:
    """Return the weights of a device; 1, or 0 for additions, where a rate is not known."""
    stream = device.dram_copy_bandwidth or device.dram_bandwidth

    def of_l2(rate: float | None, unknown: float = 1.0) -> float:
        known = device.l2_bandwidth and rate
        return device.l2_bandwidth / SECTOR / rate if known else unknown

    def of_dram(rate: float | None) -> float:
        return stream / SECTOR / rate if rate else 1.0

    written = of_l2(device.l2_write_bandwidth and device.l2_write_bandwidth / SECTOR)
    writes = (device.dram_write_bandwidth or device.dram_bandwidth) / SECTOR
    return Weights(
        of_l2(device.l2_requests),
        written,
        max(0.0, of_l2(device.l2_partial_lines, written) - written),
        writes / device.l2_partial_writes - 1 if device.l2_partial_writes else 0.0,
        of_l2(device.l2_additions, 0.0),
        of_l2(device.l2_scattered_additions),
        of_l2(device.l2_scattered_atomics),
        of_dram(device.dram_scattered_reads),
        of_dram(device.dram_scattered_writes),
    )


@dataclass(frozen=True)
class Scattered:
    """Lanes go anywhere in some arrays: L2 lacks a part of what they ask for.

    loads, stores, additions : by the number of an array, what part goes to device memory
    at : the instructions, by their indices
    """

    loads: Mapping[int, float] = field(default_factory=dict)
    stores: Mapping[int, float] = field(default_factory=dict)
    additions: Mapping[int, float] = field(default_factory=dict)
    at: frozenset[int] = frozenset()

    @property
    def arrays(self) -> set[int]:
        """The numbers of the arrays in which lanes go anywhere."""
        return {*self.loads, *self.stores, *self.additions}

    def of(self, op: str) -> Mapping[int, float]:
        """Return the parts of accesses with such a `Cost.op`."""
        return {"load": self.loads, "store": self.stores}.get(op, self.additions)


def is_scattered(pieces: np.ndarray) -> np.ndarray:
    """Say which warps go anywhere, by the numbers of the sectors of each, ascending after some -1.

    >>> row = np.arange(32)
    >>> is_scattered(np.stack([row, 96 * row, np.sort(row**3 % 1009)])).tolist()
    [False, False, True]
    """
    steps = np.where(pieces[:, :-1] >= 0, np.diff(pieces, axis=1), 0)
    steps.sort(axis=1)
    different = (np.diff(steps, axis=1) > 0).sum(axis=1) + (steps[:, 0] > 0)
    return different > PATTERN


def array_of(pieces: np.ndarray) -> int:
    """Return the number of the array that an access goes to, by the numbers of its sectors."""
    return int(pieces.max()) * SECTOR >> SEGMENT


def lines_of(pieces: np.ndarray) -> np.ndarray:
    """Count the lines that each warp goes to."""
    lines = np.where(pieces >= 0, pieces // SECTORS, -1)
    return (np.diff(lines, axis=1, prepend=-1) > 0).sum(axis=1)


def scattered(
    visits: Iterable[Visit], sizes: Mapping[int, int], times: float, device: Device, cold: bool
) -> Scattered:
    """Find what L2 lacks where lanes go anywhere.

    sizes : of the arrays [B], by number
    times : how often a launch does what these visits do
    cold : L2 has nothing of the arrays
    """
    asked = Scattered(Counter(), Counter(), Counter())
    instructions = set()
    for at, cost in (told for visit in visits for told in visit.costs):
        if cost.pieces is not None and cost.pieces.size:
            anywhere = is_scattered(cost.pieces)
            if anywhere.any():
                asked.of(cost.op)[array_of(cost.pieces)] += int(cost.sectors[anywhere].sum())
                instructions.add(at)
    near = (device.l2_bytes or 0) / device.l2_partitions
    added = device.l2_added_bytes or near
    return Scattered(
        *(
            {a: lacking(sizes[a], times * n, most, device, cold) for a, n in counted.items()}
            for counted, most in (
                (asked.loads, near),
                (asked.stores, near),
                (asked.additions, added),
            )
        ),
        frozenset(instructions),
    )


def lacking(size: int, accesses: float, kept: float, device: Device, cold: bool) -> float:
    """Return the part of the accesses to an array that L2 cannot answer.

    L2 keeps whole lines, each as long as it takes to ask for as many others. Of a line it holds
    what was asked for since it came: access after access with the probability p that the next one
    of the line comes before it goes, so that an access finds its part, one of g, with p/(g-(g-1)p).

    kept : what L2 holds of the array at most [B]: where it has two partitions, a line is in both
    """
    places = size / device.dram_access_bytes
    first = places / accesses * -math.expm1(-accesses / places) if cold else 0.0
    p, parts = min(1.0, kept / size), LINE / device.dram_access_bytes
    return first + (1 - first) * (1 - p / (parts - (parts - 1) * p))


def streams(
    visits: Sequence[Visit], listing: Listing, beyond: np.ndarray, cache: L1,
    weights: Weights | None = None, stored: Level = Level.STORED,
    lacks: Scattered | None = None, recent: Recent | None = None,
) -> list[Stream]:  # fmt: skip
    """Make a stream for each warp; `beyond` has the warps' `Level` of what `cache` lacks.

    It has one row for all visits, or some that take turns.
    stored : the `Level` of what is stored
    lacks : what L2 lacks where lanes go anywhere
    """
    beyond = np.atleast_2d(beyond)
    weigh, lacks, recent = weights or Weights(), lacks or Scattered(), recent or Recent(0)
    parts: list[list[np.ndarray]] = [[] for _ in beyond[0]]
    # A load looks into L1, except one that others must see at once.
    cached = [
        i.opcode.startswith(("LDG", "LD.")) and "STRONG" not in i.opcode
        for i in listing.instructions
    ]
    alone = never_filled(visits)
    before: list[int] = []  # what had been asked of L2 before each visit
    returns = [i.name not in ("RED", "REDG") for i in listing.instructions]
    for visit in visits:
        cache.round += 1
        if isinstance(visit, Again):
            pass_by(cache, visit, cached)
            plain = sum(not isinstance(one, Again) for one in visit.period)
            recent.asked += visit.times * (recent.asked - before[-plain])
            continue
        at_once = beyond[len(before) % len(beyond)]
        before.append(recent.asked)
        length = visit.stop - visit.start
        rows = np.zeros((7, len(visit.warps), length), np.int32)
        rows[0] = np.arange(visit.start, visit.stop)
        for at, cost in visit.costs:
            where = np.searchsorted(visit.warps, cost.warps)
            place = where, at - visit.start
            rows[1][place] += cost.cycles
            if cost.mbarrier is not None:
                rows[4][place], rows[5][place] = cost.mbarrier, cost.amount
                rows[2][place] = rows[6][place] = cost.sectors
                rows[3][place] = at_once[cost.warps]
            if cost.space == "tensor":
                rows[2][place] += np.rint(weigh.written * cost.sectors).astype(np.int32)
                rows[6][place], rows[3][place] = rows[2][place], int(stored)
            if cost.pieces is not None:
                asked = _asked(
                    cost, cache if cached[at] else None, recent, weigh, returns[at],
                    lacks if at in lacks.at else None, alone.get(at, 0.0), at_once[cost.warps],
                    int(stored),
                )  # fmt: skip
                sectors, level, moved = (np.rint(of_warps).astype(np.int32) for of_warps in asked)
                rows[2][place] += sectors
                rows[3][place], rows[6][place] = level, moved
        for row, warp in enumerate(visit.warps):
            parts[warp].append(rows[:, row])
    return [
        Stream(whole[0], whole[1], whole[2], whole[3].astype(np.int8), *whole[4:])
        for whole in (np.concatenate(part, axis=1) for part in parts if part)
    ]


def never_filled(visits: Iterable[Visit]) -> dict[int, float]:
    """Find the part of the sectors stored in part that no other access stores to, by instruction.

    A sector that several warps fill is whole when it leaves L2.
    """
    stores = [
        (at, cost.pieces[cost.partial > 0])
        for visit in visits
        for at, cost in visit.costs
        if cost.op == "store" and cost.partial is not None and cost.partial.any()
    ]
    apart = [(at, np.unique(row[row >= 0])) for at, rows in stores for row in rows]
    if not apart:
        return {}
    sectors, counts = np.unique(np.concatenate([row for _, row in apart]), return_counts=True)
    found: dict[int, list[np.ndarray]] = {}
    for at, row in apart:
        found.setdefault(at, []).append(counts[np.searchsorted(sectors, row)] == 1)
    return {at: float(np.concatenate(once).mean()) for at, once in found.items()}


def _asked(
    cost: Cost, cache: L1 | None, recent: Recent, weigh: Weights, returns: bool,
    lacks: Scattered | None, alone: float, beyond: np.ndarray, stored: int,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:  # fmt: skip
    """Return what each warp's access asks of L2, the level that answers, and what that moves.

    lacks : what L2 lacks, None for an instruction of which no warp goes anywhere
    alone : the part of the sectors stored in part that nobody else fills
    """
    if cost.op == "load":
        missing, waits, there = _loaded(cost, cache, recent)
        lines = lines_of(cost.pieces) * missing / np.maximum(cost.sectors, 1)
        asked, weight = np.maximum(missing, weigh.request * lines), weigh.read
        level, moved = np.where(there, int(Level.L2), beyond), missing
    elif cost.op == "store":
        waits, missing, level = cost.sectors > 0, cost.sectors, np.full(len(beyond), stored)
        in_part = weigh.partial * lines_of(cost.pieces) * (cost.partial > 0)
        asked = weigh.written * cost.sectors + in_part
        moved = weigh.written * (cost.sectors + weigh.filled * alone * cost.partial)
        weight = weigh.stored + weigh.read * (cost.partial > 0)
    else:
        waits, weight = cost.sectors > 0, weigh.read + weigh.stored
        missing, level = cost.sectors, np.full(len(beyond), int(Level.L2))  # L2 adds by itself
        additions = np.count_nonzero(cost.pieces >= 0, axis=1)
        each = weigh.returned if returns else weigh.line
        asked = np.maximum(cost.sectors, weigh.addition * additions)
        asked = moved = np.maximum(asked, each * lines_of(cost.pieces))
    if lacks is not None and (anywhere := is_scattered(cost.pieces)).any():
        part = lacks.of(cost.op)[array_of(cost.pieces)]
        moved = np.where(anywhere, part * weight * missing, moved)
        of_l2 = np.where(part * missing >= 0.5, int(Level.DRAM), int(Level.L2))
        level = np.where(anywhere, of_l2, level)
    return asked, np.where(waits, level, int(Level.L1)), moved


def _loaded(
    cost: Cost, cache: L1 | None, recent: Recent
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the sectors that each warp's load asks of L2, and whether it waits, and L2 has them.

    One that waits for what others asked for waits as long as they.
    """
    asked = np.empty(len(cost.pieces), np.int64)
    waits, there = np.empty((2, len(cost.pieces)), bool)
    first = cost.pieces >= 0
    first[:, 1:] &= cost.pieces[:, 1:] != cost.pieces[:, :-1]  # they ascend
    sectors, ends = cost.pieces[first].tolist(), first.sum(axis=1).cumsum().tolist()
    for i, (begin, end) in enumerate(pairwise([0, *ends])):
        wanted, late = sectors[begin:end], False
        if cache is not None:
            wanted, late = cache.load(wanted)
        asked[i], waits[i] = len(wanted), late or bool(wanted)
        there[i] = bool(wanted) and recent.has(wanted)
    return asked, waits, there
