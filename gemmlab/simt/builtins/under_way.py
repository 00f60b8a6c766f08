"""Asynchronous instructions that are under way, and who may touch what they read and write.

A `cp.async` is its thread's own affair (`async_copies`). Hopper's instructions are followed more
closely:

A copy by the TMA and a `wgmma` are complete at a *moment*: the end of a phase of an mbarrier, or of
a group of a warpgroup's `wgmma`s. A thread knows of a moment when it has waited for it; at a
barrier it learns what the others know, and at an mbarrier what those know who have arrived there.
Whoever touches what an operation writes, or overwrites what it reads, must know that it is over.
What threads do themselves is told in the same way: it is over for those who know of a moment after.
Source: PTX ISA 9.0, sections "Asynchronous copy", "Asynchronous Operations" and "Async proxy".
"""

from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from gemmlab.instructions.instruction import Instruction
from gemmlab.instructions.warpgroup import WARPGROUP
from gemmlab.model.transactions import WARP
from gemmlab.simt.builtins.loads import Loads
from gemmlab.simt.memory.array import Array
from gemmlab.simt.memory.batch import MemoryBatch
from gemmlab.simt.numbers.lanes import Lanes, Mask
from gemmlab.simt.races.hazards import Element
from gemmlab.simt.races.release import Releases
from gemmlab.simt.syntax.source import Source

UNIT = 16  # bytes: the least that the TMA copies or `wgmma` multiplies
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
    block : whose thread it is
    """

    op: str
    line: int
    thread: int
    until: str
    name: str = "wgmma"
    element: Element | None = None
    source: Source | None = None
    block: int = -1


class Visit(NamedTuple):
    """An arrival at an mbarrier by a thread of another block: `operation`.

    It is over when `moment` moments of an mbarrier's column are past.
    """

    operation: Operation
    column: int
    moment: int


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

    peers : those of the blocks of its cluster, this one included, by rank
    known : how many moments of each source each thread knows to be past, (threads, sources); the
        first sources are the threads, whose moments `Releases` counts. Threads of other blocks of
        the cluster, who can send copies here, come behind its own: see `rows`
    visits : arrivals of other blocks' threads at mbarriers, since the cluster met last
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

    def __init__(self, lanes: Lanes, releases: Releases, blocks: int = 1) -> None:
        self.lanes, groups = lanes, -(-lanes.threads // WARPGROUP)
        self.peers, self.rank = [self], 0
        self.releases = releases
        releases.under_way[int(lanes.blocks[0, 0])] = self
        self.known = np.zeros((blocks * lanes.threads, lanes.threads + 16), np.int64)
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
        self.visits: list[Visit] = []

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
        """Lanes know that what lanes `by` did after so many fences of the launch is over.

        Lanes of blocks that are not of this cluster know nothing.
        """
        threads, known = self.lanes.threads, np.zeros(len(lanes), bool)
        first, (blocks, own) = int(self.lanes.blocks[0, 0]) * threads, np.divmod(lanes, threads)
        for peer in self.peers:
            of = np.flatnonzero(blocks == int(peer.lanes.blocks[0, 0]))
            known[of] = self.known[self.rows(peer, own[of]), by[of] - first] > fences[of]
        return known

    def meet(self, threads: np.ndarray) -> None:
        """Let threads know what each of them knows."""
        self.tell(threads)
        for peer in self.peers:
            rows = peer.rows(self, threads)
            peer.known[rows] = peer.known[rows].max(axis=0)

    def rows(self, block: "UnderWay", threads: Any) -> Any:
        """Return the rows of `known` for threads of a block of the cluster."""
        return threads + (block.rank - self.rank) % len(self.peers) * self.lanes.threads

    def knowledge(self, thread: int) -> list[np.ndarray]:
        """Return what a thread knows of each block of the cluster, by rank."""
        return [peer.known[peer.rows(self, thread)] for peer in self.peers]

    def over(self, thread: int) -> list[np.ndarray]:
        """Return what a copy of a thread that has come tells: the phases and groups that it knew.

        They were over when it began. What threads have done themselves it does not put in order.
        """
        known = [each.copy() for each in self.knowledge(thread)]
        for each in known:
            each[: self.lanes.threads] = 0
        return known

    def learn_from(self, threads: np.ndarray, told: list[np.ndarray]) -> None:
        """Let threads know what somebody's `knowledge` was."""
        for peer, known in zip(self.peers, told, strict=True):
            rows = peer.rows(self, threads)
            peer.known[rows, : len(known)] = np.maximum(peer.known[rows, : len(known)], known)

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
        known = self.known[: self.lanes.threads].max(axis=0)
        late = np.flatnonzero(known[source] < moment)
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
            text = f"the block ends while the copy of {self._who(found)} may still {does} "
            text += f"{found.element} and what follows it: no thread knows that {found.until}"
            m.findings.hazard(
                "async-not-waited", found.line, self.lanes.thread == found.thread, text,
                element=found.element, op=found.op,
            )  # fmt: skip
        visits = (v.operation for v in self.visits if known[v.column] < v.moment)
        for found in {(v.source, v.line): v for v in visits}.values():
            m.calls.frames[-1].source = found.source
            text = f"the block ends while {self._who(found)} may still arrive at {found.element}: "
            text += "cluster_sync() has to come before the end"
            m.findings.hazard(
                "async-not-waited", found.line, self.lanes.thread == found.thread, text,
                element=found.element, op=found.op,
            )  # fmt: skip

    def _who(self, found: Operation) -> str:
        """Name the thread of an operation, with its block where that is another one."""
        if found.block in (-1, int(self.lanes.blocks[0, 0])):
            return "thread {thread}"
        return f"thread {{thread}} of block {self.lanes.block_name(found.block)}"

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
        own = int(self.lanes.blocks[0, 0])
        lane = own if found.block < 0 else found.block, found.thread
        other = m.findings.touch(found.op, found.line, lane)
        lanes = m.lanes.thread == thread % m.lanes.threads  # it may be of another block
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


def meet(arrived: dict[UnderWay, np.ndarray]) -> None:
    """Let threads of the blocks of a cluster know what each of them knows: all have come."""
    for block in arrived:
        rows = np.concatenate([block.rows(*each) for each in arrived.items()])
        block.known[rows] = block.known[rows].max(axis=0)
        block.visits.clear()


def show(arrived: Iterable[UnderWay]) -> None:
    """Let all threads of a cluster see the mbarriers that were fenced: all have come."""
    for block in arrived:
        for barrier in block.barriers.values():
            barrier.shown |= barrier.fenced


def parts_of(elements: np.ndarray, itemsize: int) -> np.ndarray:
    """Return the parts of each element, (elements, parts)."""
    return elements[:, None] * itemsize // PART + np.arange(max(1, itemsize // PART))
