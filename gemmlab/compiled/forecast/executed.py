"""An SM executes its share of a launch; what its warps did is made into what it simulates.

The share is which blocks the SM gets, and how many at once. At first every SM gets as many as the
others. Later ones go, one by one, to where a block has ended. Blocks of an SM that end together
make room for several, while other SMs, a little slower, wait with theirs; so the last blocks may go
to few SMs. Microbenchmark `blocks_that_load`.

Two blocks in a row run on the two SMs of a TPC, which ask L2 together: what both read comes once
for both, as if each had a larger share of L2. Microbenchmark `tma_together_by_2`, decision 020.
"""

import math
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from statistics import NormalDist
from typing import Any

import numpy as np

from gemmlab import Device
from gemmlab.compiled.forecast.repeated import parts, pass_by
from gemmlab.compiled.sass.execution.machine import Dim, Visit, dim, launch
from gemmlab.compiled.sass.execution.memory import SHARED_START, Cost
from gemmlab.compiled.sass.execution.stale import MisjudgedError
from gemmlab.compiled.sass.execution.visits import Again
from gemmlab.compiled.sass.listing import Listing
from gemmlab.compiled.sm.facts import facts
from gemmlab.compiled.sm.streams import Level, Stream
from gemmlab.model.occupancy import check_block, resident_blocks
from gemmlab.model.transactions import LINE, SECTOR
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


SECTORS = LINE // SECTOR  # of a line
L1_BYTES = 256 * 1024  # of an SM, shared memory included: NVIDIA H100 whitepaper v1.04, table 4
ROUNDS = 3  # of resident blocks: one that begins alone, one amid others, one that ends alone
LONGEST = 5_000_000  # steps that a sample may take to its end


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

    def load(self, sectors: Iterable[int]) -> tuple[int, bool]:
        """Ask for sectors: how many come from L2, and whether one asked for before is awaited."""
        missing, awaited, last, held = 0, False, None, []
        for sector in sectors:
            line, place = sector // SECTORS, sector % SECTORS
            if line != last:
                last, held = line, self._line(line)
            if not held[place]:
                missing += 1
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


def streams(
    visits: Sequence[Visit], listing: Listing, beyond: np.ndarray, cache: L1,
    written: float = 1.0, partial: float = 1.0, addition: float = 0.0,
    stored: Level = Level.STORED,
) -> list[Stream]:  # fmt: skip
    """Make a stream for each warp; `beyond` has the warps' `Level` of what `cache` lacks.

    written : as how many sectors one counts that is stored; partial : that is stored in part
    addition : as how many at least an atomic addition does
    stored : the `Level` of what is stored
    """
    parts: list[list[np.ndarray]] = [[] for _ in beyond]
    # A load looks into L1, except one that others must see at once.
    cached = [
        i.opcode.startswith(("LDG", "LD.")) and "STRONG" not in i.opcode
        for i in listing.instructions
    ]
    for visit in visits:
        cache.round += 1
        if isinstance(visit, Again):
            pass_by(cache, visit, cached)
            continue
        length = visit.stop - visit.start
        rows = np.zeros((6, len(visit.warps), length), np.int32)
        rows[0] = np.arange(visit.start, visit.stop)
        for at, cost in visit.costs:
            where = np.searchsorted(visit.warps, cost.warps)
            rows[1, where, at - visit.start] += cost.cycles
            if cost.mbarrier is not None:
                rows[4, where, at - visit.start] = cost.mbarrier
                rows[5, where, at - visit.start] = cost.amount
                rows[2, where, at - visit.start] = cost.sectors
                rows[3, where, at - visit.start] = beyond[cost.warps]
            if cost.space == "tensor":
                sectors = np.rint(written * cost.sectors).astype(np.int32)
                rows[2, where, at - visit.start] += sectors
                rows[3, where, at - visit.start] = int(stored)
            if cost.pieces is None:
                continue
            asked, waits = _asked(cost, cache if cached[at] else None)
            if cost.op == "store":
                asked = written * asked
            if cost.partial is not None:
                asked = asked + (partial - written) * cost.partial
            if cost.op == "atomic":
                additions = np.count_nonzero(cost.pieces >= 0, axis=1)
                asked = np.maximum(asked, addition * additions)
            rows[2, where, at - visit.start] += np.rint(asked).astype(np.int32)
            # L2 adds by itself. What is written takes the place of other lines, as what is read.
            of_op = {"atomic": int(Level.L2), "store": int(stored)}
            level = of_op.get(cost.op, beyond[cost.warps])
            rows[3, where, at - visit.start] = np.where(waits, level, int(Level.L1))
        for row, warp in enumerate(visit.warps):
            parts[warp].append(rows[:, row])
    return [
        Stream(whole[0], whole[1], whole[2], whole[3].astype(np.int8), whole[4], whole[5])
        for whole in (np.concatenate(part, axis=1) for part in parts if part)
    ]


def _asked(cost: Cost, cache: L1 | None) -> tuple[np.ndarray, np.ndarray]:
    """Return the sectors that each warp's access asks of L2, and whether it waits for L2."""
    if cache is None or cost.op != "load":
        return cost.sectors, cost.sectors > 0
    asked, waits = np.empty(len(cost.pieces), np.int64), np.empty(len(cost.pieces), bool)
    first = cost.pieces >= 0
    first[:, 1:] &= cost.pieces[:, 1:] != cost.pieces[:, :-1]  # they ascend
    sectors, ends = cost.pieces[first].tolist(), first.sum(axis=1).cumsum().tolist()
    begin = 0
    for i, end in enumerate(ends):
        asked[i], late = cache.load(sectors[begin:end])
        waits[i] = late or asked[i] > 0
        begin = end
    return asked, waits


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
    shared_bytes : of a block, static and dynamic
    together : how often two neighbouring blocks ask for what comes from L2 once
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

    @cached_property
    def runs(self) -> Sequence[tuple[float, "Executed"]]:
        """What is simulated, and how often each counts: itself, or runs with fewer turns of loops.

        All that is counted in these, and their cycles, add up to what it would be for all turns.
        """
        if not any(isinstance(visit, Again) for visit in self.visits):
            return ((1.0, self),)
        return tuple((often, replace(self, visits=run)) for often, run in parts(self.visits))

    def of_all(self, of: Callable[["Executed"], Any]) -> Any:
        """Return what `of` counts in a run, for all turns of its loops."""
        return sum(often * of(run) for often, run in self.runs)

    @lru_cache(maxsize=16)  # noqa: B019, the same runs are asked for with other effects, too
    def blocks(self, cold: bool, later: bool = False) -> list[list[Stream]]:
        """Make the streams of each block; what L2 does not hold comes from device memory.

        cold : the first round finds nothing in L2; later ones do if it keeps all arrays. But what
            any of them stores takes the place of lines that nobody has written back.
        later : these blocks are no first round
        """
        kept = self.footprint <= (self.device.l2_bytes or 0)
        levels = np.full(self.count * self.warps, int(Level.DRAM), np.int32)
        if kept:
            first = self.share.resident * self.warps if cold and not later else 0
            levels[first:] = int(Level.L2)
        taken = self.share.resident * (self.shared_bytes + SHARED_START)
        cache = L1(L1_BYTES - taken)
        made = streams(
            self.visits, self.code, levels, cache,
            *(l2_gain(self) * weight(self.device)
              for weight in (written_sector, partial_sector, addition_sectors)),
            stored=Level.L2 if kept and not cold else Level.STORED,
        )  # fmt: skip
        return [made[i * self.warps : (i + 1) * self.warps] for i in range(self.count)]


def execute(
    code: Listing,
    target: Device,
    grid: int | Sequence[int],
    block: int | Sequence[int],
    *arguments: Any,
    shared_bytes: int = 0,
    rounds: int = ROUNDS,
    first: int = 0,
    loops: bool = False,
) -> Executed:
    """Execute `rounds` of the blocks that an SM holds at once, or all that it gets.

    first : the number of its first block
    loops : whether turns of loops that repeat may be left out
    """
    grid, block = dim(grid), dim(block)
    threads, used = math.prod(block), code.shared_bytes + shared_bytes
    mine = share(target, grid, threads, used, code.registers)
    count = min(mine.blocks, rounds * mine.resident)
    beside = neighbour(mine, first)
    machine = launch(
        code, grid, block, *arguments, shared_bytes=shared_bytes,
        blocks=[*mine.places(count, first), *beside], values=False, loops=loops,
    )  # fmt: skip
    try:
        visits, warps = machine.run(LONGEST), -(-threads // WARP)
    except MisjudgedError:
        return execute(
            code, target, grid, block, *arguments, shared_bytes=shared_bytes, rounds=rounds,
            first=first,
        )  # fmt: skip
    footprint = sum(a.nbytes for a in arguments if isinstance(a, np.ndarray))
    return Executed(
        code, target, mine, first_warps(visits, count * warps), count, warps, footprint,
        touched=machine.memory.footprint, shared_bytes=used,
        together=asked_together(visits, warps, (0, count)) if beside else 1.0,
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


def written_sector(device: Device) -> float:
    """A sector that is stored counts as so many: L2 takes more slowly than it gives."""
    if not (device.l2_bandwidth and device.l2_write_bandwidth):
        return 1.0
    return device.l2_bandwidth / device.l2_write_bandwidth


def partial_sector(device: Device) -> float:
    """A sector that is stored in part counts as so many: L2 reads it before it writes it."""
    if not (device.l2_bandwidth and device.l2_partial_writes):
        return 1.0
    return device.l2_bandwidth / SECTOR / device.l2_partial_writes


def addition_sectors(device: Device) -> float:
    """An atomic addition counts as so many sectors, by the time that L2 takes for it."""
    if not (device.l2_bandwidth and device.l2_additions):
        return 0.0
    return device.l2_bandwidth / SECTOR / device.l2_additions
