"""An SM executes its share of a launch; what its warps did is made into what it simulates.

The share is which blocks the SM gets, and how many at once. At first every SM gets as many as the
others. Later ones go, one by one, to where a block has ended. Blocks of an SM that end together
make room for several, while other SMs, a little slower, wait with theirs; so the last blocks may go
to few SMs. Microbenchmark `blocks_that_load`.

Two blocks in a row run on the two SMs of a TPC, which ask L2 together: what both read comes once
for both, as if each had a larger share of L2. Microbenchmark `tma_together_by_2`, decision 020.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from statistics import NormalDist
from typing import Any

import numpy as np

from gemmlab import Device
from gemmlab.compiled.forecast.repeated import parts
from gemmlab.compiled.forecast.traffic import L1, Recent, Scattered, scattered, streams, weights
from gemmlab.compiled.sass.execution.machine import Dim, Visit, dim, launch
from gemmlab.compiled.sass.execution.memory import SHARED_START, Cost
from gemmlab.compiled.sass.execution.stale import MisjudgedError
from gemmlab.compiled.sass.execution.visits import Again, count
from gemmlab.compiled.sass.listing import Listing
from gemmlab.compiled.sm.facts import facts
from gemmlab.compiled.sm.streams import Level, Stream
from gemmlab.model.occupancy import check_block, resident_blocks
from gemmlab.tiling import WARP


@dataclass(frozen=True)
class Share:
    """A share is the blocks of the SM that has most to do.

    blocks : how many it gets
    resident : how many at once
    """

    grid: Dim
    blocks: int
    resident: int
    sms: int

    def places(self, count: int, first: int = 0) -> Iterator[Dim]:
        """Yield places in the grid of `count` of its blocks, in the order in which they start.

        first : the number of its first block, one of the first `sms`

        Blocks are handed out in the order of their numbers, x first: every `sms`-th is its. Those
        that it has at once follow each other, and such rounds lie evenly in all that it gets.
        """
        last = math.prod(self.grid) - 1
        further = -(-count // self.resident) - 1
        step = max(self.resident, (self.blocks - self.resident) // max(1, further))
        for i in range(count):
            a_round, place = divmod(i, self.resident)
            its = a_round * step + place
            yield self.place(min(its * self.sms + first, last))

    def place(self, number: int) -> Dim:
        """Return the place in the grid of a block by its number, which counts x first."""
        x, y, _ = self.grid
        return number % x, number // x % y, number // (x * y)


def share(device: Device, grid: Dim, threads: int, shared_bytes: int, registers: int) -> Share:
    """Return the share of one SM of a launch; ValueError for a block that `device` cannot hold."""
    check_block(device, threads, shared_bytes)
    resident = resident_blocks(device, threads, shared_bytes, registers)
    blocks = -(-math.prod(grid) // device.sms)
    return Share(grid, blocks, min(resident, blocks), device.sms)


def most_blocks(share: Share, ends: np.ndarray, spread: float) -> int:
    """Count the blocks of the SM that gets most of a launch; `share.blocks` where all get alike.

    ends : when blocks end on an SM that always has the next one, as far as that is known
    spread : standard deviation of the time of blocks over the SMs, as a part of it

    >>> share = Share((5, 1, 1), 3, 2, 2)
    >>> [most_blocks(share, np.array(ends), 0.01) for ends in ((100, 150, 200), (100, 100, 200))]
    [3, 3]
    >>> most_blocks(Share((6, 1, 1), 3, 2, 2), np.array((100, 100, 200)), 0.01)
    4
    """
    left = math.prod(share.grid) - share.sms * share.resident
    if left <= 0:
        return share.blocks
    times = following(ends, share.resident, share.blocks)
    when = np.outer(speeds(share.sms, spread), times)
    first = np.argsort(when, axis=None, kind="stable")[:left]
    return share.resident + int(np.bincount(first // len(times)).max())


def following(ends: np.ndarray, resident: int, count: int) -> np.ndarray:
    """Return when `count` blocks end on an SM that always has the next one.

    The last `resident` of those that are known ended with less and less beside them, and are left
    out if others are known. From there on each round of blocks takes as long as the one before.
    """
    known = np.sort(ends)[: max(resident, len(ends) - resident)]
    long = len(known) > resident
    each = (known[-1] - known[0]) / (len(known) - 1) if long else known[-1] / resident
    rounds, place = np.divmod(np.arange(max(0, count - len(known))), resident)
    later = known[-resident:][place] + (rounds + 1) * resident * each
    return np.concatenate([known, later])[:count]


def speeds(sms: int, spread: float) -> np.ndarray:
    """Return how long each SM takes, as a multiple of the mean: quantiles of a normal law."""
    law = NormalDist(1.0, spread)
    return np.array([law.inv_cdf((i + 0.5) / sms) for i in range(sms)])


GOLDEN = (5**0.5 - 1) / 2  # its multiples are everywhere between whole numbers
TURNS = 64  # visits, after which what L2 has lost is the same again
ROUNDS = 3  # of resident blocks: one that begins alone, one amid others, one that ends alone
LONGEST = 5_000_000  # steps that a sample may take to its end


_OF_WARPS = ("warps", "cycles", "sectors", "pieces", "partial")  # fields of a `Cost`


def neighbour(share: Share, block: int) -> list[Dim]:
    """Return the place of the block beside another, by their numbers; none beside a last one.

    >>> neighbour(Share((5, 1, 1), 1, 1, 132), 3), neighbour(Share((5, 1, 1), 1, 1, 132), 4)
    ([(2, 0, 0)], [])
    """
    beside = block ^ 1
    return [share.place(beside)] if beside < np.prod(share.grid) else []


def first_warps(visits: Iterable[Visit], count: int) -> list[Visit]:
    """Keep what the first `count` warps did, without the others."""
    found = []
    for visit in visits:
        mine = visit.warps < count
        if isinstance(visit, Again):
            kept = (first_warps(v, count) for v in (visit.earlier, visit.period))
            found.append(Again.of(*kept, visit.times))
        elif mine.all():
            found.append(visit)
        elif mine.any():
            costs = [(at, _some(cost, cost.warps < count)) for at, cost in visit.costs]
            kept = [(at, cost) for at, cost in costs if len(cost.warps)]
            found.append(Visit(visit.start, visit.warps[mine], visit.stop, kept))
    return found


def _some(cost: Cost, chosen: np.ndarray) -> Cost:
    rows = {name: getattr(cost, name) for name in _OF_WARPS}
    return cost._replace(**{n: row[chosen] for n, row in rows.items() if row is not None})


def asked_together(visits: Sequence[Visit], warps: int, blocks: Sequence[int]) -> float:
    """Count how often two blocks ask for what comes from L2 once: from 1 (nothing shared) to 2.

    warps : of a block; blocks : the two, by their numbers among those that were executed
    """
    counted = [(often, _together(run, warps, blocks)) for often, run in parts(visits)]
    asked, come = (sum(often * of[i] for often, of in counted) for i in (0, 1))
    return asked / come if come else 1.0


def _together(visits: Iterable[Visit], warps: int, blocks: Sequence[int]) -> tuple[int, int]:
    """Count the sectors that two blocks ask for, and those that come."""
    pieces: dict[int, list[np.ndarray]] = {block: [] for block in blocks}
    boxes: dict[int, Counter] = {block: Counter() for block in blocks}
    stored = 0
    for cost in (cost for visit in visits for _, cost in visit.costs):
        for block in blocks:
            its = cost.warps // warps == block
            if cost.op not in ("load", "copy"):
                stored += int(cost.sectors[its].sum())
            elif cost.box is not None:
                boxes[block][cost.box] += int(cost.sectors[its].sum())
            elif cost.pieces is not None:
                pieces[block].append(cost.pieces[its].ravel())
    loads = [_counted(pieces[block]) for block in blocks]
    asked = stored + sum(sum(of.values()) for of in (*loads, *boxes.values()))
    return asked, stored + sum(sum((a | b).values()) for a, b in (loads, boxes.values()))


def _counted(pieces: list[np.ndarray]) -> Counter:
    every = np.concatenate([np.empty(0, np.int64), *pieces])
    sectors, counts = np.unique(every[every >= 0], return_counts=True)
    return Counter(dict(zip(sectors.tolist(), counts.tolist(), strict=True)))


@dataclass(frozen=True, eq=False)
class Executed:
    """The first blocks of an SM's share of a launch have been executed: what their warps did.

    footprint : of the arrays, once each [B]; touched : of those that these blocks accessed
    sizes : of the arrays [B], by their numbers
    shared_bytes : of a block, static and dynamic
    together : how often two neighbouring blocks ask for what comes from L2 once
    unknown : instructions of the listing whose results were taken for zeros
    missing : part of what later blocks read that L2 has lost by then; None if the footprint says
    """

    code: Listing
    device: Device
    share: Share
    visits: Sequence[Visit]
    count: int
    warps: int  # of a block
    footprint: int
    touched: int
    shared_bytes: int
    together: float
    unknown: frozenset[int] = field(default=frozenset(), kw_only=True)
    missing: float | None = field(default=None, kw_only=True)
    sizes: Mapping[int, int] = field(default_factory=dict, kw_only=True)

    @cached_property
    def runs(self) -> Sequence[tuple[float, Executed]]:
        """What is simulated, and how often each counts: itself, or runs with fewer turns of loops.

        All that is counted in these, and their cycles, add up to what it would be for all turns.
        """
        if not any(isinstance(visit, Again) for visit in self.visits):
            return ((1.0, self),)
        return tuple((often, replace(self, visits=run)) for often, run in parts(self.visits))

    def of_all(self, of: Callable[[Executed], Any]) -> Any:
        """Return what `of` counts in a run, for all turns of its loops."""
        return sum(often * of(run) for often, run in self.runs)

    @property
    def lost(self) -> float:
        """The part of what the first round of blocks read that later ones miss in L2."""
        if self.missing is not None:
            return self.missing
        return float(self.footprint > (self.device.l2_bytes or 0))

    @lru_cache(maxsize=16)  # noqa: B019, the same runs are asked for with other effects, too
    def blocks(self, cold: bool, later: bool = False) -> list[list[Stream]]:
        """Make the streams of each block; what L2 does not hold comes from device memory.

        cold : the first round finds nothing in L2; later ones do if it keeps all arrays. But what
            any of them stores takes the place of lines that nobody has written back.
        later : these blocks are no first round
        """
        warp = np.arange(self.count * self.warps)
        first = self.share.resident * self.warps if cold and not later else 0
        turn = np.arange(TURNS)[:, None]
        misses = (warp < first) | (GOLDEN * (warp + turn + 1) % 1 < self.lost)
        levels = np.where(misses, int(Level.DRAM), int(Level.L2)).astype(np.int32)
        taken = self.share.resident * (self.shared_bytes + SHARED_START)
        cache = L1(facts(self.device.name).l1_bytes - taken)
        made = streams(
            self.visits, self.code, levels, cache,
            weights(self.device).times(l2_gain(self)),
            Level.L2 if not self.lost and not cold else Level.STORED, self.lacks(cold),
            Recent((self.device.l2_bytes or 0) / busy_sms(self) * self.count / self.share.resident),
        )  # fmt: skip
        return [made[i * self.warps : (i + 1) * self.warps] for i in range(self.count)]

    @lru_cache(maxsize=2)  # noqa: B019, its blocks and what memory moves for them both ask
    def lacks(self, cold: bool) -> Scattered:
        """Find what L2 lacks where lanes go anywhere."""
        times = math.prod(self.share.grid) / self.count
        return scattered(self.visits, self.sizes, times, self.device, cold)


def execute(
    code: Listing,
    target: Device,
    grid: int | Sequence[int],
    block: int | Sequence[int],
    *arguments: Any,
    shared_bytes: int = 0,
    rounds: int = ROUNDS,
    first: int = 0,
    lenient: bool = False,
    loops: bool = False,
) -> Executed:
    """Execute `rounds` of the blocks that an SM holds at once, or all that it gets.

    first : the number of its first block
    lenient : results of instructions that are not known are zeros
    loops : whether turns of loops that repeat may be left out
    """
    grid, block = dim(grid), dim(block)
    threads, used = math.prod(block), code.shared_bytes + shared_bytes
    mine = share(target, grid, threads, used, code.registers)
    count = min(mine.blocks, rounds * mine.resident)
    beside = neighbour(mine, first)
    machine = launch(
        code, grid, block, *arguments, shared_bytes=shared_bytes,
        blocks=[*mine.places(count, first), *beside], lenient=lenient, values=False, loops=loops,
    )  # fmt: skip
    try:
        visits, warps = machine.run(LONGEST), -(-threads // WARP)
    except MisjudgedError:
        return execute(
            code, target, grid, block, *arguments, shared_bytes=shared_bytes, rounds=rounds,
            first=first, lenient=lenient,
        )  # fmt: skip
    footprint = sum(a.nbytes for a in arguments if isinstance(a, np.ndarray))
    return Executed(
        code, target, mine, first_warps(visits, count * warps), count, warps, footprint,
        touched=machine.memory.footprint, shared_bytes=used,
        together=asked_together(visits, warps, (0, count)) if beside else 1.0,
        unknown=frozenset(machine.unknown),
        sizes={i + 1: s.size for i, s in enumerate(machine.memory.segments)},
    )  # fmt: skip


def busy_sms(executed: Executed) -> int:
    """Count the SMs that have blocks."""
    return min(executed.device.sms, math.prod(executed.share.grid))


def l2_share(executed: Executed, asked: float = 1.0) -> float:
    """Return the bytes that an SM gets from L2 in a cycle, each asked for so often."""
    known, device = facts(executed.device.name), executed.device
    of_all = known.l2_bytes_per_cycle * device.sms
    return min(of_all / busy_sms(executed) * asked, known.l2_bytes_at_most)


def l2_gain(executed: Executed) -> float:
    """Return how much more an SM reads from L2 because what two neighbours ask for comes once.

    It has no more for what it stores.
    """
    return l2_share(executed, executed.together) / l2_share(executed)


COPY = "copy"  # from global to shared memory, which Nsight Compute has among the loads


def counts(executed: Executed) -> Mapping[str, int]:
    """Count what all blocks of a launch do, by the names of `model.counters`."""
    found = Counter({"inst_executed": count(executed.visits), **_of(executed.visits)})
    times = math.prod(executed.share.grid) / executed.count
    return {name: round(times * number) for name, number in found.items()}


def _of(visits: Iterable[Visit]) -> Counter[str]:
    """Count requests, sectors and wavefronts, those that are done again as often as they are."""
    found: Counter[str] = Counter()
    for visit in visits:
        if isinstance(visit, Again):
            for name, number in _of(visit.period).items():
                found[name] += visit.times * number
            continue
        for _, cost in visit.costs:
            op = "load" if cost.op == COPY else cost.op
            if cost.space == "global" and cost.box is None:
                found[f"global_{op}_requests"] += len(cost.warps)
                found[f"global_{op}_sectors"] += int(cost.sectors.sum())
            elif cost.space == "shared" and op in ("load", "store"):
                found[f"shared_{op}_requests"] += len(cost.warps)
                found[f"shared_{op}_wavefronts"] += int(cost.cycles.sum())
    return found
