"""What a batch of blocks does is counted, line by line, and its hazards are put into words.

Each operation of the source counts as one instruction of every warp with an active lane:
`inst_executed`, and `thread_inst_executed` for the active lanes, as Nsight Compute's
smsp__inst_executed and smsp__thread_inst_executed. They are split by kind (`model.counters`). A
compiler emits more for some operations (a division), fewer for others (what it hoists out of a
loop, merges or leaves out), so these compare lines and kernels with each other, not with the
hardware's counts.
"""

from typing import NamedTuple

import numpy as np

from gemmlab.model.counters import MARKS, Counters
from gemmlab.model.transactions import WARP
from gemmlab.simt.memory.batch import Calls, Lane
from gemmlab.simt.memory.counting import OneAddress
from gemmlab.simt.numbers.lanes import Lanes, Mask, Masks
from gemmlab.simt.races.hazards import AtStake, Element, Hazard, Note, Touch
from gemmlab.simt.races.shadow import Clash, Shadow
from gemmlab.simt.report.report import Report
from gemmlab.simt.syntax.source import Source


class Findings:
    """Reports hazards by the lanes at fault; `text` may name {thread} and {other}."""

    def __init__(self, report: Report, lanes: Lanes, calls: Calls) -> None:
        self.report, self.lanes, self.calls = report, lanes, calls

    def hazard(
        self,
        kind: str,
        line: int,
        lanes: Mask,
        text: str,
        *,
        other: int | None = None,
        element: Element | None = None,
        op: str = "",
        against: Touch | None = None,
        in_doubt: bool = False,
    ) -> None:
        """Report that the first of `lanes` is at fault, and `other`, a thread of its block.

        element, op : what it touches, and how; against : what the other one does to it
        in_doubt : whether it is a fault only if what was read decides anything
        """
        if kind == "step-limit":  # perhaps because of what is undecided
            self.report.decide()
        row, thread = self.lanes.first(lanes)
        block = int(self.lanes.blocks[row, 0])
        threads = (thread,) if other is None else (thread, other)
        touches = self.touch(op, line, (block, thread)) if op else None, against
        count = int(self.lanes.full(lanes).sum())
        hazard = self._hazard(kind, line, text, block, threads, element, touches, count)
        self.report.add(hazard, in_doubt)

    def note(self, kind: str, line: int, lanes: Mask, text: str) -> None:
        """Note what the first of `lanes` does, which is no fault."""
        row, thread = self.lanes.first(lanes)
        block, source = int(self.lanes.blocks[row, 0]), self.calls.source
        name, where = self.lanes.thread_name(thread), self.lanes.block_name(block)
        message = f"{text.format(thread=name)} [block {where}, thread {name}]"
        places = self.lanes.block_at(block), self.lanes.thread_at(thread)
        count = int(self.lanes.full(lanes).sum())
        what = message, kind, source.file, count
        self.report.note(Note(line, source.code(line), *places, *what))

    def unwritten(self, line: int, lane: Lane, element: Element, op: str, count: int) -> None:
        """Report that a lane reads or updates an element that nobody has written."""
        block, thread = lane
        verb = {"read": "reads", "atomic": "updates"}[op]
        text = f"thread {{thread}} {verb} {element}, which nobody has written"
        touches = (self.touch(op, line, lane),)
        kind = "uninitialised-read"
        hazard = self._hazard(kind, line, text, block, (thread,), element, touches, count)
        self.report.add(hazard, in_doubt=op == "read")

    def race(
        self,
        line: int,
        clash: Clash,
        lane: Lane,
        other: Lane,
        element: Element,
        count: int,
        values: AtStake,
        unless: tuple[Shadow, int] | None = None,
    ) -> None:
        """Report that `lane` clashes with `other` at an element; values : that it has and gets.

        unless : the array and the line of a read; no hazard if it is the first one of a CAS loop
        """
        (block, thread), (other_block, other_thread) = lane, other
        name, why = "thread {other}", "with no barrier"
        if block != other_block:
            name += f" of block {self.lanes.block_name(other_block)}"
            why = "and nothing orders the two blocks"
        else:
            why += " or syncwarp" if thread // WARP == other_thread // WARP else ""
            why += " between them"
        text = f"thread {{thread}} {clash.text.format(name)}, {element}{values.shown}, {why}"
        (op, other_op), threads = clash.ops, (thread, other_thread)
        touches = self.touch(op, line, lane), self.touch(other_op, clash.line, other)
        kind = f"{element.space}-race"
        hazard = self._hazard(kind, line, text, block, threads, element, touches, count, values)
        if unless is None:
            self.report.add(hazard)
            return
        self.report.postpone(*unless, hazard)

    def same_value(self, line: int, lane: Lane, other: Lane, element: Element, count: int) -> None:
        """Note that two lanes that nothing orders write one value to an element."""
        (block, thread), (other_block, other_thread) = lane, other
        lanes, source = self.lanes, self.calls.source
        name = f"thread {lanes.thread_name(other_thread)}"
        if block != other_block:
            name += f" of block {lanes.block_name(other_block)}"
        text = (
            f"thread {lanes.thread_name(thread)} and {name} write the same value to {element}, "
            f"and nothing orders the two [block {lanes.block_name(block)}]"
        )
        place = lanes.block_at(block), lanes.thread_at(thread)
        note = Note(line, source.code(line), *place, text, "same-value", source.file, count)
        self.report.note(note)

    def touch(self, op: str, line: int, lane: Lane) -> Touch:
        """Return a lane's touch of an element, as a hazard shows it."""
        return Touch(op, line, self.lanes.block_at(lane[0]), self.lanes.thread_at(lane[1]))

    def _hazard(
        self,
        kind: str,
        line: int,
        text: str,
        block: int,
        threads: tuple[int, ...],
        element: Element | None,
        touches: tuple[Touch | None, ...],
        count: int,
        values: AtStake | None = None,
    ) -> Hazard:
        names = [self.lanes.thread_name(t) for t in threads]
        message = text.format(thread=names[0], other=names[-1])
        message += f" [block {self.lanes.block_name(block)}, thread {names[0]}]"
        source, element = self.calls.source, element or Element("", "", ())
        return Hazard(
            kind=kind,
            line=line,
            code=source.code(line),
            block=self.lanes.block_at(block),
            threads=tuple(self.lanes.thread_at(t) for t in threads),
            message=message,
            file=source.file,
            count=count,
            array=element.array,
            index=element.index,
            space=element.space,
            touches=tuple(touch for touch in touches if touch),
            values=values,
        )


# What a lane does for itself alone, and with a barrier for nobody.
ALONE = frozenset(
    ("inst_integer", "inst_fp", "inst_control", "inst_barrier", "inst_syncwarp", *MARKS)
)


# About how many seconds an operation of all lanes takes in lock-step, and how many more for each
# lane of the batch; an access to memory takes longer. They were measured once, so that what follows
# from them is the same on each machine.
OPERATION, ACCESS = (3e-6, 1e-9), (3e-5, 6e-9)


class Running(NamedTuple):
    """A mask, its warps with an active lane and its active lanes; operations by source and line."""

    mask: Mask
    warps: int
    lanes: int
    ticks: dict[Source, dict[tuple[int, str | OneAddress], int]]


class Tally:
    """Adds to the counters of the report, for the lanes that run.

    An operation adds 1 to `ticks`, its count with the present mask, in the present function; the
    warps and lanes of the mask are multiplied in when the counts are settled.
    running : recent masks, with their warps, lanes and `ticks`, by the mask's identity
    busy : lanes that have touched memory or told others something; None once all have
    sums : how often the counters of a line, by name, got the same amounts; a loop adds the same
    settled : operations and accesses, whatever the mask, that are in the report already
    """

    def __init__(
        self,
        report: Report,
        lanes: Lanes,
        masks: Masks,
        calls: Calls,
        findings: Findings,
    ) -> None:
        self.report, self.lanes, self.masks, self.calls = report, lanes, masks, calls
        self.findings = findings
        self.running: dict[int, Running] = {}
        self.mask: Mask = object()  # the mask and the function that `ticks` belong to
        self.frame: object = None
        self.ticks: dict[tuple[int, str | OneAddress], int] = {}
        self.sums: dict[tuple[Source, int, tuple, tuple], int] = {}
        self.busy: np.ndarray | None = np.zeros(lanes.shape, bool)
        self.settled = 0, 0

    def counters(self, line: int) -> Counters:
        known = self.calls.frames[-1].counters
        counters = known.get(line)
        if counters is None:
            counters = known[line] = self.report.counters_of(self.calls.source, line)
        return counters

    def tick(self, line: int, kind: str | OneAddress) -> None:
        """Count an operation of `line` as one instruction of each warp with an active lane.

        Or what an access to one address adds to that.
        """
        if self.masks[-1] is not self.mask or self.calls.frames[-1] is not self.frame:
            self._turn_to(self.masks[-1])
        key, ticks = (line, kind), self.ticks
        ticks[key] = ticks.get(key, 0) + 1

    def mark(self, line: int, what: str) -> None:
        """Count an operation, which `tick` has counted, among those of one more kind."""
        key, ticks = (line, what), self.ticks
        ticks[key] = ticks.get(key, 0) + 1

    def add(self, line: int, names: tuple[str, ...], amounts: tuple[int, ...]) -> None:
        """Add amounts to the counters of `line` with these names."""
        key, sums = (self.calls.frames[-1].source, line, names, amounts), self.sums
        sums[key] = sums.get(key, 0) + 1
        if len(sums) > 1 << 9:  # of accesses that differ from turn to turn
            self.settle()

    def _turn_to(self, mask: Mask) -> None:
        """Count with this mask, in the function that runs, from now on."""
        running, source = self._running(mask), self.calls.source
        self.ticks = running.ticks.setdefault(source, {})
        self.mask, self.frame = mask, self.calls.frames[-1]

    def active(self, mask: Mask) -> tuple[int, int]:
        """Warps with an active lane, and active lanes."""
        running = self._running(mask)
        return running.warps, running.lanes

    def _running(self, mask: Mask) -> Running:
        found = self.running.get(id(mask))
        if found is None:  # keeping the mask keeps its id from being used again
            if len(self.running) >= 64:
                self.settle()
            found = self.running[id(mask)] = Running(mask, *self._active(mask), {})
        return found

    def seconds(self, lanes: int = 0) -> float:
        """Return about how long lock-step takes for what was counted so far, by counts alone.

        lanes : of so many at once; 0 for those that there are
        """
        lanes = lanes or self.lanes.place.size
        costs = (each + more * lanes for each, more in (OPERATION, ACCESS))
        return sum(c * n for c, n in zip(costs, self._counted(), strict=True))

    def _counted(self) -> tuple[int, int]:
        """Return the operations and the accesses to memory so far, whatever the mask."""
        operations, accesses = self.settled
        for running in self.running.values():
            for ticks in running.ticks.values():
                for (_, kind), times in ticks.items():
                    if isinstance(kind, OneAddress) or kind in MARKS:
                        continue
                    operations += times * (kind in ALONE)
                    accesses += times * (kind not in ALONE)
        return operations, accesses

    def settle(self) -> None:
        """Add what was counted to the report, and forget the masks."""
        self.settled = self._counted()
        for running in self.running.values():
            for source, ticks in running.ticks.items() if running.warps else ():
                if self.busy is not None and any(kind not in ALONE for _, kind in ticks):
                    self._note_busy(running.mask)
                for (line, kind), times in ticks.items():
                    if kind in MARKS:
                        self.report.marks[source.file, line, kind] += times * running.warps
                        continue
                    counters = self.report.counters_of(source, line)
                    warps, lanes = times * running.warps, times * running.lanes
                    if isinstance(kind, OneAddress):
                        added = dict(
                            zip(kind.names, (warps, warps, lanes * kind.itemsize), strict=True)
                        )
                    else:
                        added = {"inst_executed": warps, "thread_inst_executed": lanes, kind: warps}
                    for name, amount in added.items():
                        counters[name] += amount
        for (source, line, names, amounts), times in self.sums.items():
            counters = self.report.counters_of(source, line)
            for name, amount in zip(names, amounts, strict=True):
                counters[name] += times * amount
        self.sums.clear()
        self.running.clear()
        self.mask = object()  # which no mask is

    def _note_busy(self, mask: Mask) -> None:
        """Note that lanes do what others may notice; None in `busy` is all of them."""
        if mask is None:
            self.busy = None
        elif self.busy is not None:
            self.busy |= mask

    def idle(self) -> int:
        """Return how many threads have touched no memory so far."""
        threads = int(self.lanes.full(self.lanes.present).sum())
        return 0 if self.busy is None else threads - int(self.busy.sum())

    def _active(self, mask: Mask) -> tuple[int, int]:
        if mask is False:
            return 0, 0
        blocks, threads = self.lanes.shape
        if mask is None:
            return blocks * threads // WARP, blocks * threads
        on = mask if mask.shape[1] == threads else np.broadcast_to(mask, (len(mask), threads))
        times = blocks // mask.shape[0]
        warps = np.packbits(on).view(np.uint32)  # of 32 lanes each
        return int(np.count_nonzero(warps)) * times, int(np.count_nonzero(on)) * times
