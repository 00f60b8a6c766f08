"""Asynchronous instructions that are under way, and who may touch what they read and write.

The data of a `cp.async` is in shared memory when its thread has waited for it, and for other
threads after a barrier as well (`Copies`). Hopper's instructions are followed more closely:

A copy by the TMA and a `wgmma` are complete at a *moment*: the end of a phase of an mbarrier, or of
a group of a warpgroup's `wgmma`s. A thread knows of a moment when it has waited for it; at a
barrier it learns what the others know, and at an mbarrier what those know who have arrived there.
Whoever touches what an operation writes, or overwrites what it reads, must know that it is over.
What threads do themselves is told in the same way: it is over for those who know of a moment after.
Source: PTX ISA 9.0, sections "Asynchronous copy", "Asynchronous Operations" and "Async proxy".
"""

from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from gemmlab.instructions.instruction import Instruction
from gemmlab.instructions.warpgroup import WARPGROUP
from gemmlab.model.transactions import WARP
from gemmlab.simt.builtins.loads import Loads
from gemmlab.simt.memory.array import Array
from gemmlab.simt.memory.batch import MemoryBatch
from gemmlab.simt.memory.tracking import track_shared
from gemmlab.simt.numbers.lanes import Lanes, Mask, both, without
from gemmlab.simt.races.hazards import Element
from gemmlab.simt.races.release import Releases
from gemmlab.simt.syntax.source import Source

UNIT = 16  # bytes: the least that the TMA copies or `wgmma` multiplies
COPIED = 4  # bytes: the least that `cp.async` copies
PART = 2  # bytes: the least of which it is known who has stored it
NEVER = np.iinfo(np.int64).max  # of a fence that has not been made
# What a touch that comes too early does to the element, in words.
VERBS = {"read": "reads", "write": "writes", "atomic": "updates", "copy": "overwrites"}


def memory_of(array: Array) -> np.ndarray:
    """Return the memory that an array is a view of, (blocks, …)."""
    return array.buffer if array.buffer.base is None else array.buffer.base


class Operation(NamedTuple):
    """A copy or a matrix product: its line, the thread that began it, what it waits for, in words.

    op : "copy", or "read" for a product and for a copy from shared memory; name : of these two
    element, source : of a copy, the first one in shared memory, and the function that begins it
    """

    op: str
    line: int
    thread: int
    until: str
    name: str = "wgmma"
    element: Element | None = None
    source: Source | None = None


@dataclass
class Held:
    """For each unit of a shared memory, the numbers of the operations that touch it; -1 is none.

    copies : the last copy to it; reads : of each warpgroup the last product that reads it, and of
        each thread the last copy from it
    stores, lines : of each part, the thread whose ordinary store is the last one, and its line
    fenced : how many fences the launch had made when that thread fenced the store; NEVER before
    """

    copies: np.ndarray
    stores: np.ndarray
    lines: np.ndarray
    fenced: np.ndarray
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
    loads : those on their way to registers
    early : by line, an arrival at an mbarrier that may count for the phase before, and the words
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
        self.loads = Loads(releases)
        self.early: dict[tuple, Operation] = {}

    # Moments, and who knows of them

    def source(self, name: Hashable) -> int:
        """Return the column of what has moments besides threads: an mbarrier, or a warpgroup."""
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

    def told(self, lanes: np.ndarray, by: np.ndarray, fences: np.ndarray) -> np.ndarray:
        """Lanes know that what lanes `by` did after so many fences of the launch is over."""
        first = int(self.lanes.blocks[0, 0]) * self.lanes.threads
        return self.known[lanes - first, by - first] > fences

    def meet(self, threads: np.ndarray) -> None:
        """Let threads know what each of them knows."""
        self.tell(threads)
        self.known[threads] = self.known[threads].max(axis=0)

    def unknown(self, numbers: np.ndarray, threads: np.ndarray) -> np.ndarray:
        """Threads do not know that these operations are complete; number -1 is no operation."""
        source, moment = self.moments[:, numbers]
        return (numbers >= 0) & (self.known[threads, source] < moment)

    # Memory

    def held(self, array: Array) -> Held:
        """Return the operations that touch the memory of which an array is a view."""
        memory = memory_of(array)
        if id(memory) not in self.memories:
            units = -(-memory.nbytes // UNIT)
            parts = units * (UNIT // PART)
            last = np.full(units, -1), np.full(parts, -1), np.zeros(parts, np.int64)
            held = Held(*last, np.full(parts, NEVER))
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
        held.fenced[parts] = NEVER

    def check_fenced(
        self, m: MemoryBatch, instruction: Instruction, array: Array, elements: np.ndarray,
        threads: np.ndarray, line: int,
    ) -> None:  # fmt: skip
        """Report what ordinary stores have put there and `threads`, which read it, may not see.

        The thread that stored must have fenced since, and have told each of these about it. A warp
        that acts as one has come together: it knows what its own lanes have fenced.
        """
        held = self.held(array)
        parts = parts_of(elements, array.itemsize)[:, 0]
        writers = held.stores[parts]
        if writers.max(initial=-1) < 0:
            return
        known = self.known[threads, : self.lanes.threads]
        size = WARP if len(threads) > 1 else 1
        own = threads[:, None] // size == np.arange(self.lanes.threads) // size
        least = np.where(own, NEVER, known).min(axis=0)
        fenced = held.fenced[parts]
        unseen = (writers >= 0) & ((fenced == NEVER) | (least[writers] <= fenced))
        if unseen.any():
            i = int(unseen.argmax())
            writer, at = int(writers[i]), int(held.lines[parts[i]])
            element = array.element(elements[i])
            text = f"{instruction.name} may not see {element}, which thread {{other}} has written "
            text += f"in line {at}: fence_proxy_async() has to follow there, before the barrier"
            m.findings.hazard(
                "missing-fence", line, m.lanes.thread == int(threads[0]), text, other=writer,
                element=element, op="read",
                against=m.findings.touch("write", at, (int(m.lanes.blocks[0, 0]), writer)),
            )  # fmt: skip

    def fence(self, threads: np.ndarray) -> None:
        """Let asynchronous operations see what threads have stored, once others are told of it."""
        for _, held in self.memories.values():
            now = np.isin(held.stores, threads) & (held.fenced == NEVER)
            held.fenced[now] = self.releases.fences
        self.loads.fence(threads)

    def finish(self, m: MemoryBatch) -> None:
        """Report the copies that nobody knows to be complete, when all threads have ended.

        The shared memory of a block belongs to another one then.
        """
        count = len(self.operations)
        source, moment = self.moments[:, :count]
        late = np.flatnonzero(self.known.max(axis=0)[source] < moment)
        firsts: dict[tuple, Operation] = {}  # of those that a line has begun
        for found in (self.operations[i] for i in late):
            if found.element is not None:
                firsts.setdefault((found.source, found.line), found)
        for found in self.early.values():
            m.calls.frames[-1].source = found.source
            m.findings.hazard(
                "async-not-waited", found.line, self.lanes.thread == found.thread, found.until,
                element=found.element, op=found.op,
            )  # fmt: skip
        for found in firsts.values():
            m.calls.frames[-1].source = found.source
            does = "fill" if found.op == "copy" else "read"
            text = f"the block ends while the copy of thread {{thread}} may still {does} "
            text += f"{found.element} and what follows it: no thread knows that {found.until}"
            m.findings.hazard(
                "async-not-waited", found.line, self.lanes.thread == found.thread, text,
                element=found.element, op=found.op,
            )  # fmt: skip

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
        lane = int(self.lanes.blocks[0, 0]), found.thread
        other = m.findings.touch(found.op, found.line, lane)
        lanes = self.lanes.thread == thread
        m.findings.hazard(kind, line, lanes, text, element=place, op=op, against=other)

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
    """Return the parts of each element, (elements, parts)."""
    return elements[:, None] * itemsize // PART + np.arange(max(1, itemsize // PART))


@dataclass
class Copy:
    """One executed copy: lanes of `mask` move `values` to the elements `at`, `at` + 1, … of `to`.

    group : for each lane, how many groups it had committed before; line : of the kernel
    source : the array that is copied from, from the elements `origin` on; read : for each of
        `values`, the lanes that get it from there
    """

    to: Array
    at: Any
    mask: Mask
    values: tuple
    group: Any
    line: int
    source: Array
    origin: Any
    read: tuple


class Copies:
    """The copies of a batch of blocks that have not been waited for."""

    def __init__(self) -> None:
        self.pending: list[Copy] = []
        self.committed: Any = np.int64(0)  # groups, of all lanes or of each
        # Of each shared memory, by identity: copies on their way to each unit of it, (blocks | 1,
        # units); and the memory itself, whose identity is thus not used again.
        self.coming: dict[int, np.ndarray] = {}
        self.memories: list[np.ndarray] = []

    def begin(self, m: MemoryBatch, copy: Copy) -> None:
        """Start a copy; what it overwrites must not be in use."""
        for i in range(len(copy.values)):
            self.check(m, copy.line, "copy", copy.to, copy.at + i, copy.mask)
            track_shared(m, copy.line, "write", copy.to, copy.at + i, copy.mask)
        self._mark(m, copy, copy.mask, 1)
        self.pending.append(copy)

    def commit(self, m: MemoryBatch) -> None:
        """Close a group: the copies of the active lanes since their last commit."""
        mask = m.masks[-1]
        if mask is not False:
            one = 1 if mask is None or mask is m.masks[0] else m.lanes.full(mask).astype(np.int64)
            self.committed = self.committed + one

    def wait(self, m: MemoryBatch, groups: int, line: int) -> None:
        """Let all but the last `groups` groups of the active lanes land."""
        active, waiting, self.pending = m.masks[-1], self.pending, []
        for copy in waiting:
            done = np.less(copy.group, self.committed - groups)
            lanes = both(both(copy.mask, done), True if active is None else active)
            rest = without(copy.mask, lanes)
            if lanes is not False:
                self._mark(m, copy, lanes, -1)
                if copy.source.written:
                    _check_source(m, copy, lanes, line)
                for i, value in enumerate(copy.values):
                    track_shared(m, line, "write", copy.to, copy.at + i, lanes, value)
                    if m.under_way is not None:
                        m.under_way.store(line, copy.to, copy.at + i, lanes)
                    _land(m, copy, i, lanes, value)
            if rest is not False:
                copy.mask = rest
                self.pending.append(copy)

    def check(self, m: MemoryBatch, line: int, op: str, array: Array, at: Any, mask: Mask) -> None:
        """A hazard where lanes touch an element that a copy is on its way to; `op` as in VERBS."""
        if m.under_way is not None:
            m.under_way.touch(m, line, op, array, at, mask)
        if not self.pending:
            return
        coming = self.coming.get(id(memory_of(array)))
        if coming is None:
            return
        row = m.lanes.row if len(coming) > 1 else 0
        unit = np.asarray(at) * array.itemsize // COPIED
        hit = both(mask, coming[row, unit] > 0)
        if hit is not False:
            lane = m.lanes.first(hit)
            self._report(m, line, op, array, int(m.lanes.spread(at)[lane]), hit, lane)

    def check_all(
        self, m: MemoryBatch, line: int, op: str, array: Array, elements: np.ndarray, thread: int
    ) -> None:
        """Check elements that an instruction of a thread touches asynchronously."""
        coming = self.coming.get(id(memory_of(array)))
        if not self.pending or coming is None:
            return
        late = elements[coming[0, elements * array.itemsize // COPIED] > 0]
        if len(late):
            lanes = m.lanes.thread == thread
            self._report(m, line, op, array, int(late[0]), lanes, (0, thread))

    def _report(
        self, m: MemoryBatch, line: int, op: str, array: Array, flat: int, hit: Mask, lane: tuple
    ) -> None:
        """Report a touch of element `flat` by the lanes of `hit`, of which `lane` is the first."""
        copy, copying = self._on_its_way(m, array, flat, lane[0])
        committed = m.lanes.spread(np.less(copy.group, self.committed))
        why = "its thread has not waited for it"
        if not committed[lane[0], copying]:
            why += ", nor committed it to a group"
        place, block = array.element(flat), int(m.lanes.blocks[lane[0], 0])
        text = f"thread {{thread}} {VERBS[op]} {place}, which the copy of line {copy.line} may not "
        text += f"have reached: {why}"
        other = m.findings.touch("copy", copy.line, (block, copying))
        m.findings.hazard("async-not-waited", line, hit, text, element=place, op=op, against=other)

    def _mark(self, m: MemoryBatch, copy: Copy, mask: Mask, by: int) -> None:
        """Add `by` to the copies on their way to the elements of this one."""
        memory, size = memory_of(copy.to), copy.to.itemsize
        key = id(memory)
        if key not in self.coming:
            self.memories.append(memory)
            self.coming[key] = np.zeros((1, memory.nbytes // len(memory) // COPIED + 1), np.int16)
        per_block = any(isinstance(x, np.ndarray) and x.ndim == 2 and len(x) > 1
                        for x in (copy.at, mask))  # fmt: skip
        if per_block and len(self.coming[key]) == 1:
            self.coming[key] = np.repeat(self.coming[key], len(m.lanes.blocks), axis=0)
        coming = self.coming[key]
        shape = (len(coming), m.lanes.threads)
        on = np.ones(shape, bool) if mask is None else np.broadcast_to(mask, shape)
        rows, threads = np.nonzero(on)
        first = np.broadcast_to(copy.at, shape)[rows, threads] * size // COPIED
        for unit in range(max(1, len(copy.values) * size // COPIED)):
            np.add.at(coming, (rows, first + unit), by)

    def _on_its_way(self, m: MemoryBatch, array: Array, flat: int, row: int) -> tuple[Copy, int]:
        """The copy that goes to element `flat` of `array` in the block of this row; its thread."""
        byte = flat * array.itemsize
        for copy in self.pending:
            if memory_of(copy.to) is memory_of(array):
                start = m.lanes.spread(copy.at)[row] * copy.to.itemsize
                there = (start <= byte) & (byte < start + len(copy.values) * copy.to.itemsize)
                there &= m.lanes.full(copy.mask)[row]
                if there.any():
                    return copy, int(there.argmax())
        return self.pending[0], 0


def _check_source(m: MemoryBatch, copy: Copy, lanes: Mask, line: int) -> None:
    """A hazard where what `lanes` copy has changed since: the copy may read either."""
    for i, value in enumerate(copy.values):
        reading = both(lanes, True if copy.read[i] is None else copy.read[i])
        if reading is False:
            continue
        now = copy.source.buffer[np.where(m.lanes.full(reading), copy.origin + i, 0)]
        changed = both(reading, (now != value) & ((now == now) | np.equal(value, value)))
        if changed is not False:
            lane = m.lanes.first(changed)
            place = copy.source.element(int(m.lanes.spread(copy.origin)[lane]) + i)
            text = f"the copy of line {copy.line} may read {place} until it is waited for, and "
            text += f"somebody has written it ({m.lanes.spread(value)[lane]}, now {now[lane]})"
            who = int(m.lanes.blocks[lane[0], 0]), lane[1]
            copies = m.findings.touch("copy", copy.line, who)
            m.findings.hazard(
                "async-not-waited", line, changed, text, element=place, against=copies
            )
            return


def _land(m: MemoryBatch, copy: Copy, i: int, lanes: Mask, value: Any) -> None:
    """Put element `i` of a copy where it belongs."""
    rows, threads = np.nonzero(m.lanes.full(lanes))
    at = m.lanes.spread(copy.at)[rows, threads] + i
    copy.to.buffer[rows, at] = m.lanes.spread(value)[rows, threads]
