"""Hazards of a batch of blocks, put into words and handed to the report of the launch."""

from gemmlab.model.transactions import WARP
from gemmlab.simt.memory.batch import Calls, Lane
from gemmlab.simt.numbers.lanes import Lanes, Mask
from gemmlab.simt.races.hazards import Element, Hazard, Note, Touch
from gemmlab.simt.races.shadow import Clash, Shadow
from gemmlab.simt.report.report import Report


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
    ) -> None:
        """Report that the first of `lanes` is at fault, and `other`, a thread of its block.

        element, op : what it touches, and how; against : what the other one does to it
        """
        if kind == "step-limit":  # perhaps because of what is undecided
            self.report.decide()
        row, thread = self.lanes.first(lanes)
        block = int(self.lanes.blocks[row, 0])
        threads = (thread,) if other is None else (thread, other)
        touches = self.touch(op, line, (block, thread)) if op else None, against
        count = int(self.lanes.full(lanes).sum())
        hazard = self._hazard(kind, line, text, block, threads, element, touches, count)
        self.report.add(hazard)

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
        self.report.add(hazard)

    def race(
        self,
        line: int,
        clash: Clash,
        lane: Lane,
        other: Lane,
        element: Element,
        count: int,
        values: str,
        unless: tuple[Shadow, int] | None = None,
    ) -> None:
        """Report that `lane` clashes with `other` at an element, which holds `values`.

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
        text = f"thread {{thread}} {clash.text.format(name)}, {element}{values}, {why}"
        (op, other_op), threads = clash.ops, (thread, other_thread)
        touches = self.touch(op, line, lane), self.touch(other_op, clash.line, other)
        kind = f"{element.space}-race"
        hazard = self._hazard(kind, line, text, block, threads, element, touches, count)
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
        )
