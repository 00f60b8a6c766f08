"""An mbarrier counts arrivals and expected bytes, phase after phase, and threads wait for a phase.

What those know who have arrived, those know who have waited. Threads of a cluster arrive at the
mbarriers of its other blocks, too: at the same place of their shared memory.
Source: PTX ISA 9.0, section "mbarrier".
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from gemmlab.instructions.instruction import Instruction
from gemmlab.simt.builtins.batch import BuiltinBatch
from gemmlab.simt.builtins.under_way import Operation, UnderWay, Visit, memory_of
from gemmlab.simt.memory import access, tracking
from gemmlab.simt.memory.array import Array
from gemmlab.simt.memory.indices import Place, find
from gemmlab.simt.races.hazards import Element


@dataclass
class Barrier:
    """An mbarrier: `pending` of `count` arrivals and `bytes` are missing in the present phase.

    phase : how many are complete; source : its column in `UnderWay.known`
    fenced : whether asynchronous copies see it; shown : whether the cluster has met since then, so
        that all its threads do; thread : who has initialised it, after so many fences of the launch
        as `since` says
    gathered : what those know who have arrived, of each block of the cluster; told : the same when
        the last phase was complete
    """

    element: Element
    count: int
    source: int
    thread: int
    since: int
    gathered: list[np.ndarray]
    told: list[np.ndarray]
    pending: int = 0
    bytes: int = 0
    phase: int = 0
    fenced: bool = False
    shown: bool = False

    def __post_init__(self) -> None:
        self.pending = self.count

    def hear(self, known: list[np.ndarray]) -> None:
        """Gather what a thread knows."""
        self.gathered = [_greater(*both) for both in zip(self.gathered, known, strict=True)]

    def arrive(self, known: list[np.ndarray]) -> None:
        """A thread arrives, with what it knows."""
        self.hear(known)
        self.pending -= 1
        self.look()

    def look(self) -> None:
        """Begin the next phase if this one is complete."""
        if self.pending == 0 and self.bytes == 0:
            self.phase, self.pending, self.told = self.phase + 1, self.count, self.gathered

    def passed(self, parity: int) -> bool:
        """Whether the last phase of this parity is complete: the present one is of the other."""
        return self.phase % 2 != parity

    @property
    def until(self) -> str:
        """A sentence says what completes the present phase."""
        return f"phase {self.phase} of {self.element} is complete"

    @property
    def lacks(self) -> str:
        """The same sentence, with what the present phase lacks."""
        lacks = [f"{self.pending} of {self.count} arrivals"] * bool(self.pending)
        lacks += [f"{self.bytes} bytes"] * bool(self.bytes)
        return f"{self.until}, which lacks {' and '.join(lacks)}"


def _greater(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return the greater of each number; the longer array has those that the other one lacks."""
    a, b = sorted((a, b), key=len)
    return np.maximum(np.pad(a, (0, len(b) - len(a))), b)


def init(m: BuiltinBatch, instruction: Instruction, bound: list, line: int) -> None:
    """`mbarrier_init`: the active lanes make mbarriers, each with its count of arrivals."""
    place = _place(m, instruction, bound, line)
    counts = m.lanes.spread(bound[1][1])[0]
    access.put(m, line, place.array, place.at, place.mask, np.uint64(0))
    nothing = [np.zeros(0, np.int64)] * len(m.cluster)
    for key, element, threads in _each(m, place):
        source = m.under_way.source(("mbarrier", *key))
        count, thread = int(counts[threads[0]]), int(threads[0])
        since = m.report.releases.fences
        m.under_way.barriers[key] = Barrier(element, count, source, thread, since, nothing, nothing)
        m.under_way.known[:, source] = 0


def arrive(m: BuiltinBatch, instruction: Instruction, bound: list, line: int) -> None:
    """`mbarrier_arrive` of the active threads; `mbarrier_arrive_expect` with bytes to come."""
    place = _place(m, instruction, bound, line)
    expected = m.lanes.spread(bound[1][1])[0] if len(bound) > 1 else None
    for barrier, threads in named(m, instruction, place, line):
        m.under_way.tell(threads)
        _check_phase(m, barrier, threads, line, m.under_way)
        for thread in threads:
            if expected is not None:
                barrier.bytes += int(expected[thread])
            barrier.arrive(m.under_way.knowledge(thread))


def arrive_remotely(m: BuiltinBatch, instruction: Instruction, bound: list, line: int) -> None:
    """`mbarrier_arrive_remote`: each active thread arrives in the block that it names by rank."""
    place, ranks = _place(m, instruction, bound, line), m.lanes.spread(bound[1][1])[0]
    if place.mask is False:
        return
    for key, element, threads in _each(m, place):
        m.under_way.tell(threads)
        for thread in threads:
            there = block_of(m, instruction, place.array, int(ranks[thread]), int(thread), line)
            barrier = there and barrier_of(m, there, key[1], element, int(thread), line)
            if not barrier:
                continue
            under_way = there.under_way
            _check_phase(m, barrier, np.array([thread]), line, under_way)
            if there is not m:
                text = "atomic", line, int(thread), "", "", barrier.element, m.calls.source
                found = Operation(*text, int(m.lanes.blocks[0, 0]))
                under_way.visits.append(Visit(found, barrier.source, barrier.phase + 1))
            barrier.arrive(m.under_way.knowledge(thread))


def block_of(
    m: BuiltinBatch, instruction: Instruction, array: Array, rank: int, thread: int, line: int
) -> Any:
    """Return the machine of a block of the cluster, by rank; None, with a hazard, if it has none.

    TypeError for an array that is no `shared_view`: other blocks need not have it at that place.
    """
    dynamic = m.memory.shared.get(("dynamic", None))
    if dynamic is None or memory_of(array) is not dynamic.buffer:
        raise TypeError(f"{instruction.name} reaches other blocks' arrays by shared_view alone")
    lanes, count = m.lanes.thread == thread, len(m.cluster)
    text = f"thread {{thread}} reaches for block {rank} of its cluster, which "
    if rank >= count:
        text += f"has {count}: the launch says so by cluster="
        m.findings.hazard("out-of-bounds", line, lanes, text, element=array.element(0), op="atomic")
        return None
    if m.cluster[rank] is None:
        text += "has ended: cluster_sync() has to come before the end"
        m.findings.hazard("out-of-bounds", line, lanes, text, element=array.element(0), op="atomic")
    return m.cluster[rank]


def barrier_of(
    m: BuiltinBatch, there: Any, byte: int, element: Element, thread: int, line: int
) -> Barrier | None:
    """Return the mbarrier of a block at a byte; a hazard where this thread does not know of it."""
    under_way = there.under_way
    memory = there.memory.shared.get(("dynamic", None))
    barrier = under_way.barriers.get((id(memory.buffer), byte)) if memory is not None else None
    row = under_way.rows(m.under_way, thread)
    known = barrier and (barrier.shown or under_way.known[row, barrier.thread] > barrier.since)
    if known or (barrier and there is m):
        return barrier
    text = f"thread {{thread}} arrives at {element} of block "
    text += f"{m.lanes.block_name(int(there.lanes.blocks[0, 0]))}, and does not know that it is an "
    text += "mbarrier: cluster_sync() has to come between mbarrier_init and this"
    lanes = m.lanes.thread == thread
    m.findings.hazard("uninitialised-read", line, lanes, text, element=element, op="atomic")
    return barrier


def _check_phase(
    m: BuiltinBatch, barrier: Barrier, threads: np.ndarray, line: int, there: UnderWay
) -> None:
    """Note an arrival that may count for the phase before, of which it is not known to be over.

    Here each copy is there at once, so that the phase is over; on a GPU bytes may still be missing.
    Mostly something else goes wrong then, which says more: it is reported when the block ends.
    """
    rows = there.rows(m.under_way, threads)
    early = threads[there.known[rows, barrier.source] < barrier.phase]
    if len(early):
        text = f"thread {{thread}} arrives at {barrier.element}, and does not know that its phase "
        text += f"{barrier.phase - 1} is complete: the arrival may count for that one"
        found = Operation("atomic", line, int(early[0]), text, "", barrier.element, m.calls.source)
        m.under_way.early.setdefault((m.calls.source, line), found)


def wait(m: BuiltinBatch, instruction: Instruction, bound: list, line: int) -> None:
    """`mbarrier_wait`: let others run until the phase of this parity is complete."""
    place, parity = _place(m, instruction, bound, line), m.lanes.spread(bound[1][1])[0]
    for barrier, threads in named(m, instruction, place, line):
        for value in np.unique(parity[threads] & 1):
            waiting = threads[parity[threads] & 1 == value]
            lanes = np.isin(m.lanes.thread, waiting)
            passed = partial(barrier.passed, int(value))
            m.loops.await_(line, lanes, passed, lambda barrier=barrier: barrier.lacks)
            m.under_way.learn_from(waiting, barrier.told)
            m.under_way.learn(waiting, barrier.source, barrier.phase)


def named(
    m: BuiltinBatch, instruction: Instruction, place: Place, line: int
) -> Iterator[tuple[Barrier, np.ndarray]]:
    """The mbarriers that the active lanes name, and the threads that do."""
    if place.mask is False:
        return
    for key, element, threads in _each(m, place):
        barrier = m.under_way.barriers.get(key)
        if barrier is None:
            text = f"{instruction.name}: {element} is no mbarrier before mbarrier_init"
            lanes = np.isin(m.lanes.thread, threads)
            m.findings.hazard("uninitialised-read", line, lanes, text, element=element, op="atomic")
            continue
        lookers = np.array([barrier.thread]) if barrier.shown else threads  # its maker sees it
        at = np.full(len(lookers), m.lanes.spread(place.at)[0, threads[0]])
        tracking.look_shared(m, line, "read", place.array, at, lookers)
        yield barrier, threads


def _place(m: BuiltinBatch, instruction: Instruction, bound: list, line: int) -> Place:
    operand, (array, index) = bound[0]
    m.tally.tick(line, f"inst_{instruction.kind}")
    return find(m, instruction, operand, array, index, line)


def _each(m: BuiltinBatch, place: Place) -> Iterator[tuple[tuple[int, int], Element, np.ndarray]]:
    """Each mbarrier that lanes name: its memory and byte, its element, the threads."""
    array: Array = place.array
    elements, threads = m.lanes.of(place.at, place.mask)
    memory = memory_of(array)
    for at in np.unique(elements):
        key = id(memory), int(at) * array.itemsize
        yield key, array.element(at), threads[elements == at]


def fence(m: BuiltinBatch, instruction: Instruction, bound: list, line: int) -> None:
    """`fence_mbarrier_init`: copies see the mbarriers that the active threads have initialised."""
    m.tally.tick(line, f"inst_{instruction.kind}")
    _, threads = m.lanes.of(0, m.masks[-1])
    for barrier in m.under_way.barriers.values():
        barrier.fenced |= barrier.thread in threads
