"""Mbarriers in a block's shared memory: arrivals, expected bytes, phases, and waits for them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from gemmlab.instructions.instruction import Instruction
from gemmlab.simt.memory.access import put
from gemmlab.simt.memory.array import Array
from gemmlab.simt.memory.wide import Place, find
from gemmlab.simt.races.hazards import Element
from gemmlab.simt.races.tracking import look_shared

if TYPE_CHECKING:
    from gemmlab.simt.machine.machine import Machine


@dataclass
class Barrier:
    """An mbarrier: `pending` of `count` arrivals and `bytes` are missing in the present phase.

    phase : how many are complete; source : its column in `UnderWay.known`
    fenced : whether asynchronous copies see it; thread : who has initialised it
    gathered : what those know who have arrived; told : the same when the last phase was complete
    """

    element: Element
    count: int
    source: int
    thread: int
    gathered: np.ndarray
    told: np.ndarray
    pending: int = 0
    bytes: int = 0
    phase: int = 0
    fenced: bool = False

    def __post_init__(self) -> None:
        self.pending = self.count

    def arrive(self, known: np.ndarray) -> None:
        """A thread arrives, with what it knows."""
        self.gathered = _greater(self.gathered, known)
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
        """What completes the present phase, in words."""
        return f"phase {self.phase} of {self.element} is complete"

    @property
    def lacks(self) -> str:
        """The same with what the present phase lacks."""
        lacks = [f"{self.pending} of {self.count} arrivals"] * bool(self.pending)
        lacks += [f"{self.bytes} bytes"] * bool(self.bytes)
        return f"{self.until}, which lacks {' and '.join(lacks)}"


def _greater(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The greater of each number; the longer array has those that the other one lacks."""
    a, b = sorted((a, b), key=len)
    return np.maximum(np.pad(a, (0, len(b) - len(a))), b)


def init(m: Machine, instruction: Instruction, bound: list, line: int) -> None:
    """`mbarrier_init`."""
    place = _place(m, instruction, bound, line)
    counts = m.lanes.spread(bound[1][1])[0]
    put(m, line, place.array, place.at, place.mask, np.uint64(0))
    nothing = np.zeros(0, np.int64)
    for key, element, threads in _each(m, place):
        source = m.under_way.source(("mbarrier", *key))
        count, thread = int(counts[threads[0]]), int(threads[0])
        m.under_way.barriers[key] = Barrier(element, count, source, thread, nothing, nothing)
        m.under_way.known[:, source] = 0


def arrive(m: Machine, instruction: Instruction, bound: list, line: int) -> None:
    """`mbarrier_arrive`, and `mbarrier_arrive_expect` with a number of bytes."""
    place = _place(m, instruction, bound, line)
    expected = m.lanes.spread(bound[1][1])[0] if len(bound) > 1 else None
    for barrier, threads in barriers(m, instruction, place, line):
        m.under_way.tell(threads)
        for thread in threads:
            if expected is not None:
                barrier.bytes += int(expected[thread])
            barrier.arrive(m.under_way.known[thread])


def wait(m: Machine, instruction: Instruction, bound: list, line: int) -> None:
    """`mbarrier_wait`: let others run until the phase of this parity is complete."""
    place, parity = _place(m, instruction, bound, line), m.lanes.spread(bound[1][1])[0]
    for barrier, threads in barriers(m, instruction, place, line):
        for value in np.unique(parity[threads] & 1):
            waiting = threads[parity[threads] & 1 == value]
            lanes = np.isin(m.lanes.thread, waiting)
            passed = partial(barrier.passed, int(value))
            m.loops.await_(line, lanes, passed, lambda barrier=barrier: barrier.lacks)
            known = m.under_way.known
            told = np.pad(barrier.told, (0, known.shape[1] - len(barrier.told)))
            known[waiting] = np.maximum(known[waiting], told)
            m.under_way.learn(waiting, barrier.source, barrier.phase)


def barriers(
    m: Machine, instruction: Instruction, place: Place, line: int
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
        at = np.full(len(threads), m.lanes.spread(place.at)[0, threads[0]])
        look_shared(m, line, "read", place.array, at, threads)
        yield barrier, threads


def _place(m: Machine, instruction: Instruction, bound: list, line: int) -> Place:
    operand, (array, index) = bound[0]
    m.tally.tick(line, f"inst_{instruction.kind}")
    return find(m, instruction, operand, array, index, line)


def _each(m: Machine, place: Place) -> Iterator[tuple[tuple[int, int], Element, np.ndarray]]:
    """Each mbarrier that lanes name: its memory and byte, its element, the threads."""
    array: Array = place.array
    elements, threads = m.lanes.of(place.at, place.mask)
    memory = array.buffer if array.buffer.base is None else array.buffer.base
    for at in np.unique(elements):
        key = id(memory), int(at) * array.itemsize
        yield key, array.element(at), threads[elements == at]


def fence_init(m: Machine, instruction: Instruction, bound: list, line: int) -> None:
    """`fence_mbarrier_init`: copies see the mbarriers that the active threads have initialised."""
    m.tally.tick(line, f"inst_{instruction.kind}")
    _, threads = m.lanes.of(0, m.masks[-1])
    for barrier in m.under_way.barriers.values():
        barrier.fenced |= barrier.thread in threads


def fence_proxy(m: Machine, instruction: Instruction, bound: list, line: int) -> None:
    """`fence_proxy_async`: copies and products see what the active threads have stored."""
    m.tally.tick(line, f"inst_{instruction.kind}")
    m.under_way.fence(m.lanes.of(0, m.masks[-1])[1])
