"""Asynchronous instructions that are under way in a block, and what each thread knows of them.

A copy by the TMA and a `wgmma` are complete at a *moment*: the end of a phase of an mbarrier, or of
a group of a warpgroup's `wgmma`s. A thread knows of a moment when it has waited for it; at a
barrier it learns what the others know, and at an mbarrier what those know who have arrived there.
Whoever touches what an operation writes, or overwrites what it reads, must know that it is over.
What threads do themselves is told in the same way: it is over for those who know of a moment after.
Source: PTX ISA 9.0, sections "Asynchronous Operations" and "Async proxy".
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from gemmlab.instructions.instruction import Instruction
from gemmlab.instructions.warpgroup import WARPGROUP
from gemmlab.simt.memory.array import Array
from gemmlab.simt.memory.batch import MemoryBatch
from gemmlab.simt.numbers.lanes import Lanes, Mask
from gemmlab.simt.races.hazards import Touch
from gemmlab.simt.races.release import Releases

UNIT = 16  # bytes: the least that is copied or multiplied
PART = 2  # bytes: the least of which it is known who has stored it
VERBS = {"read": "reads", "write": "writes", "atomic": "updates", "copy": "overwrites"}


class Operation(NamedTuple):
    """A copy or a matrix product: its line, the thread that began it, what it waits for, in words.

    op : "copy", or "read" for a product and for a copy from shared memory; name : of these two
    """

    op: str
    line: int
    thread: int
    until: str
    name: str = "wgmma"


@dataclass
class Held:
    """Who touches each unit of a shared memory: the numbers of operations; -1: none.

    copies : the last copy to it; reads : of each warpgroup the last product that reads it, and of
        each thread the last copy from it
    stores, lines : of each part, the thread whose ordinary store no fence has followed yet, and its
        line
    """

    copies: np.ndarray
    stores: np.ndarray
    lines: np.ndarray
    reads: dict[Hashable, np.ndarray] = field(default_factory=dict)


class UnderWay:
    """The asynchronous operations of a block.

    known : how many moments of each source each thread knows to be past, (threads, sources); the
        first sources are the threads, whose moments `Releases` counts
    sources : the column of each; operations : all so far, with `moments`: source and number
    barriers : mbarriers by memory and byte
    fences, committed : of each warpgroup: its fences and its groups of products so far
    stored : of each thread: its groups of copies from shared memory so far
    mapped : threads that have fenced a tensor map
    undivided : whether warpgroups have executed something together
    registers : of a thread of each warpgroup; None before the first `setmaxnreg`
    """

    def __init__(self, lanes: Lanes, releases: Releases) -> None:
        self.lanes, groups = lanes, -(-lanes.threads // WARPGROUP)
        self.releases = releases
        releases.under_way[int(lanes.blocks[0, 0])] = self
        self.known = np.zeros((lanes.threads, lanes.threads + 16), np.int64)
        self.sources: dict[Hashable, int] = {}
        self.operations: list[Operation] = []
        self.moments = np.zeros((2, 64), np.int64)
        self.memories: dict[int, tuple[np.ndarray, Held]] = {}
        self.barriers: dict[tuple[int, int], Any] = {}
        self.fences, self.committed = np.zeros(groups, np.int64), np.zeros(groups, np.int64)
        self.stored = np.zeros(lanes.threads, np.int64)
        self.mapped: set[tuple[int, int]] = set()
        self.undivided = False
        self.registers: np.ndarray | None = None

    # Moments, and who knows of them

    def source(self, name: Hashable) -> int:
        """The column of what has moments besides threads: an mbarrier, or a warpgroup."""
        if name not in self.sources:
            self.sources[name] = self.lanes.threads + len(self.sources)
            if self.sources[name] == self.known.shape[1]:
                self.known = np.pad(self.known, ((0, 0), (0, len(self.sources))))
        return self.sources[name]

    def begin(self, operation: Operation, source: int, number: int) -> int:
        """Note an operation that is complete when `number` moments of a source are past."""
        if len(self.operations) == self.moments.shape[1]:
            self.moments = np.pad(self.moments, ((0, 0), (0, len(self.operations))))
        self.moments[:, len(self.operations)] = source, number
        self.operations.append(operation)
        return len(self.operations) - 1

    def learn(self, threads: np.ndarray, source: int, number: int) -> None:
        """Let threads know that so many moments are past."""
        self.known[threads, source] = np.maximum(self.known[threads, source], number)

    def tell(self, threads: np.ndarray) -> None:
        """Put what threads have done themselves among what they know to be over."""
        self.known[threads, threads] = self.releases.count()

    def told(self, lanes: list[int], by: int, fences: int) -> list[bool]:
        """Which lanes know that what another did after so many fences of the launch is over."""
        first = int(self.lanes.blocks[0, 0]) * self.lanes.threads
        return (self.known[np.array(lanes) - first, by - first] > fences).tolist()

    def meet(self, threads: np.ndarray) -> None:
        """Let threads know what each of them knows."""
        self.tell(threads)
        self.known[threads] = self.known[threads].max(axis=0)

    def unknown(self, numbers: np.ndarray, threads: np.ndarray) -> np.ndarray:
        """Which operations the threads do not know to be complete; -1 is none."""
        source, moment = self.moments[:, numbers]
        return (numbers >= 0) & (self.known[threads, source] < moment)

    # Memory

    def held(self, array: Array) -> Held:
        """Who touches the memory that an array is a view of."""
        memory = array.buffer if array.buffer.base is None else array.buffer.base
        if id(memory) not in self.memories:
            units = -(-memory.nbytes // UNIT)
            parts = units * (UNIT // PART)
            held = Held(np.full(units, -1), np.full(parts, -1), np.zeros(parts, np.int64))
            self.memories[id(memory)] = memory, held
        return self.memories[id(memory)][1]

    def touch(self, m: MemoryBatch, line: int, op: str, array: Array, at: Any, mask: Mask) -> None:
        """Check an ordinary access to shared memory, and note it if it is a store."""
        elements, threads = self.lanes.of(at, mask)
        units = elements * array.itemsize // UNIT
        self.check(m, line, op, array, elements, units, threads)
        if op != "read":
            self.store(line, array, at, mask)

    def store(self, line: int, array: Array, at: Any, mask: Mask) -> None:
        """Note an ordinary store, which asynchronous operations see after a fence of its thread."""
        elements, threads = self.lanes.of(at, mask)
        held, parts = self.held(array), parts_of(elements, array.itemsize)
        held.stores[parts], held.lines[parts] = threads[:, None], line

    def check_fenced(
        self, m: MemoryBatch, instruction: Instruction, array: Array, elements: np.ndarray,
        lanes: Any, line: int,
    ) -> None:  # fmt: skip
        """Report what ordinary stores have put there with no fence of their threads since."""
        held = self.held(array)
        parts = parts_of(elements, array.itemsize)[:, 0]
        unseen = held.stores[parts] >= 0
        if unseen.any():
            i = int(unseen.argmax())
            writer, at = int(held.stores[parts[i]]), int(held.lines[parts[i]])
            element = array.element(elements[i])
            text = f"{instruction.name} may not see {element}, which thread {{other}} has written "
            text += f"in line {at}: fence_proxy_async() has to follow there, before the barrier"
            m.findings.hazard(
                "missing-fence", line, lanes, text, other=writer, element=element, op="read",
                against=m.findings.touch("write", at, (int(m.lanes.blocks[0, 0]), writer)),
            )  # fmt: skip

    def fence(self, threads: np.ndarray) -> None:
        """Let asynchronous operations see what threads have stored."""
        for _, held in self.memories.values():
            held.stores[np.isin(held.stores, threads)] = -1

    def check(
        self, m: MemoryBatch, line: int, op: str, array: Array,
        elements: np.ndarray, units: np.ndarray, threads: np.ndarray,
    ) -> None:  # fmt: skip
        """Hazards where `threads` touch what operations that they do not know to be complete do."""
        held = self.held(array)
        coming = self.unknown(held.copies[units], threads)
        if coming.any():
            i = int(coming.argmax())
            found = self.operations[held.copies[units[i]]]
            place = array.element(elements[i])
            text = f"thread {{thread}} {VERBS[op]} {place}, which the copy of line {found.line} "
            text += f"may not have reached: it does not know that {found.until}"
            self._hazard(m, "async-not-waited", line, op, place, text, threads[i], found)
        if op == "read":
            return
        for reads in held.reads.values():
            reading = self.unknown(reads[units], threads)
            if reading.any():
                i = int(reading.argmax())
                found = self.operations[reads[units[i]]]
                place = array.element(elements[i])
                text = f"thread {{thread}} overwrites {place}, which the {found.name} of line "
                text += f"{found.line} may still read: it does not know that {found.until}"
                self._hazard(m, "shared-race", line, op, place, text, threads[i], found)
                return

    def _hazard(
        self, m: MemoryBatch, kind: str, line: int, op: str, place: Any, text: str, thread: int,
        found: Operation,
    ) -> None:  # fmt: skip
        other = self.touch_of(m, found)
        lanes = self.lanes.thread == thread
        m.findings.hazard(kind, line, lanes, text, element=place, op=op, against=other)

    def touch_of(self, m: MemoryBatch, operation: Operation) -> Touch:
        """What an operation does to an element."""
        lane = int(self.lanes.blocks[0, 0]), operation.thread
        return m.findings.touch(operation.op, operation.line, lane)

    # Registers

    def check_registers(
        self, m: MemoryBatch, line: int, op: str, array: Array, at: Any, mask: Mask
    ) -> None:
        """A hazard where an accumulator is touched that a product may still update."""
        owner = array.owner
        if op == "write":
            owner.stored = self.fences.copy()
        if owner.updating is None:
            return
        elements, threads = self.lanes.of(at, mask)
        place = array.element(elements[0])
        text = f"thread {{thread}} {VERBS[op]} {place}, which the wgmma of line "
        text += f"{owner.updating.line} may not have reached: no wgmma_wait since has named it"
        self._hazard(m, "async-not-waited", line, op, place, text, threads[0], owner.updating)
        owner.updating = None  # told once


def parts_of(elements: np.ndarray, itemsize: int) -> np.ndarray:
    """The parts of each element, (elements, parts)."""
    return elements[:, None] * itemsize // PART + np.arange(max(1, itemsize // PART))
