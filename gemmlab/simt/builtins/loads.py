"""Loads of shared memory that are on their way to registers, and may be overtaken.

A load of a row by an `ldmatrix` is over when its value is used, not when the instruction has been
issued: a thread that goes on may arrive at an mbarrier first, and a copy by the TMA, which waited
for that, then overwrites what the load has not read yet. An ordinary store would come after it.
Seen on an H200 (`book/decisions/015-asynchronous-instructions.md`). So what is loaded is followed
to the elements of local arrays that it is put in, registers, until one of these is read; whatever
else is done with a value counts as its use.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from gemmlab.model.transactions import WARP
from gemmlab.simt.memory.array import Array
from gemmlab.simt.memory.batch import MemoryBatch
from gemmlab.simt.numbers.lanes import Mask
from gemmlab.simt.races.hazards import Touch
from gemmlab.simt.races.release import Releases
from gemmlab.simt.syntax.source import Source

NOT_YET = -1
LATEST = 4  # loads whose values may still be put in registers


@dataclass(eq=False)
class Load:
    """A load by the threads of a warp: thread i reads unit i, of 16 bytes, from element i on.

    used : the fences of the launch when a value of it was used; followed : whether values of it
        have been put in registers
    overtaken : the copy that has overwritten what it reads, and which element, before that
    """

    line: int
    source: Source
    threads: np.ndarray
    units: np.ndarray
    array: Array
    elements: np.ndarray
    used: int = NOT_YET
    followed: bool = False
    overtaken: tuple[Touch, int] | None = None


class Loads:
    """The loads of a block that a copy may overtake.

    latest : the last ones, with their values
    last : of each memory and warp, the number of the load that reads a unit last; `made` has them
    unused : those of which no value has been used
    """

    def __init__(self, releases: Releases) -> None:
        self.releases = releases
        self.latest: list[tuple[tuple, list[Load]]] = []
        self.made: list[Load | None] = []
        self.last: dict[int, dict[int, np.ndarray]] = {}
        self.unused: set[Load] = set()

    def begin(
        self, m: MemoryBatch, line: int, array: Array, at: Any, mask: Mask, memory: np.ndarray,
        unit: int, values: tuple,
    ) -> None:  # fmt: skip
        """Note a load of a unit by each thread, which has given `values`."""
        elements, threads = m.lanes.of(at, mask)
        units, found = elements * array.itemsize // unit, []
        of_memory = self.last.setdefault(id(memory), {})
        for warp in np.unique(threads // WARP).tolist():
            own = threads // WARP == warp
            load = Load(line, m.calls.source, threads[own], units[own], array, elements[own])
            if warp not in of_memory:
                of_memory[warp] = np.full(-(-memory.nbytes // unit), NOT_YET)
            of_memory[warp][load.units] = len(self.made)
            self.made.append(load)
            self.unused.add(load)
            found.append(load)
        if len(self.latest) == LATEST:  # whose values went elsewhere, and count as used
            for load in self.latest[0][1]:
                if not load.followed:
                    self._end(load)
        self.latest = [*self.latest[1 - LATEST :], (values, found)]

    def put(self, array: Array, at: Any, value: Any) -> None:
        """Note that a value is put in a register: what it was loaded by is still on its way."""
        for values, loads in self.latest:
            if any(value is one for one in values):
                if np.ndim(at) == 0:
                    array.owner.coming[int(at)] = loads
                    for load in loads:
                        load.followed = True
                return
        if np.ndim(at) == 0:
            array.owner.coming.pop(int(at), None)

    def use(self, m: MemoryBatch, array: Array, at: Any) -> None:
        """Note that registers are read: what was loaded to them has come, or comes too late."""
        coming = array.owner.coming
        for element in [int(at)] if np.ndim(at) == 0 else list(coming):
            for load in coming.pop(element, ()):
                if load.used == NOT_YET:
                    self._end(load)
                    if load.overtaken is not None:
                        self._report(m, load, *load.overtaken)

    def _end(self, load: Load) -> None:
        """Note that what a load reads is in its registers now."""
        load.used = self.releases.fences
        self.unused.discard(load)

    def fence(self, threads: np.ndarray) -> None:
        """Note that threads have waited for their loads."""
        for load in [one for one in self.unused if np.isin(one.threads, threads).any()]:
            self._end(load)

    def overwrite(
        self, m: MemoryBatch, memory: np.ndarray, units: np.ndarray, known: np.ndarray,
        copy: Touch,
    ) -> None:  # fmt: skip
        """Note that a copy overwrites units; known : what its thread knows of each thread."""
        for numbers in self.last.get(id(memory), {}).values():
            for number in np.unique(numbers[units]).tolist():
                load = self.made[number] if number != NOT_YET else None
                if load is None:
                    continue
                mine = np.flatnonzero(np.isin(load.units, units))
                if load.used == NOT_YET:
                    load.overtaken = copy, int(mine[0])
                    self.unused.discard(load)
                    self.made[number] = None
                    continue
                late = known[load.threads[mine]] <= load.used
                if late.any():
                    self._report(m, load, copy, int(mine[late.argmax()]))
                self.made[number] = None
            numbers[units] = NOT_YET

    def _report(self, m: MemoryBatch, load: Load, copy: Touch, i: int) -> None:
        frame, element = m.calls.frames[-1], load.array.element(load.elements[i])
        source, frame.source = frame.source, load.source
        text = (
            f"thread {{thread}} reads {element}, which the copy of line {copy.line} may overwrite "
        )
        text += "before: an arrival at an mbarrier overtakes a load whose value nothing has used; "
        text += "use it, or call fence_proxy_async(), before the arrival"
        m.findings.hazard(
            "shared-race", load.line, m.lanes.thread == int(load.threads[i]), text,
            element=element, op="read", against=copy,
        )  # fmt: skip
        frame.source = source
