"""Copies by threads, `cp.async`: on their way until their thread has waited for their group.

Their data is in shared memory then, and for other threads after a barrier as well.
Source: PTX ISA 9.0, section "Asynchronous copy".
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from gemmlab.simt.builtins.under_way import VERBS, memory_of
from gemmlab.simt.memory.array import Array
from gemmlab.simt.memory.batch import MemoryBatch
from gemmlab.simt.memory.tracking import track_shared
from gemmlab.simt.numbers.lanes import Mask, both, without

COPIED = 4  # bytes: the least that `cp.async` copies


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
