"""Notes on a kernel: behaviour that is no fault, but worth knowing."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from gemmlab.simt.numbers.lanes import Dim3
from gemmlab.simt.numbers.masks import Mask

if TYPE_CHECKING:
    from gemmlab.simt.machine.machine import Machine


@dataclass(frozen=True)
class Note:
    """Something to know about a line, such as that threads had returned before its barrier.

    line, code : the line of `file`, and its text; block, thread : where, as (x, y, z)
    kind : what it is about; a report has one of each kind for a line
    count : lanes concerned, over the whole launch
    """

    line: int
    code: str
    block: Dim3
    thread: Dim3
    message: str
    kind: str = field(repr=False)
    file: str = field(default="", repr=False)
    count: int = field(default=1, compare=False)

    def __str__(self) -> str:
        return f"note: {self.message}\n  line {self.line}: {self.code}"


def note_returned(m: Machine, arrived: np.ndarray, alive: Mask) -> None:
    """Note the threads, if any, that have returned before a barrier that others `arrived` at.

    Since compute capability 7.0 a barrier does not wait for them.
    Source: CUDA C++ Programming Guide, Compute Capability 7.x, Independent Thread Scheduling.
    """
    lanes = m.lanes
    x, y, z = lanes.block
    gone = (lanes.thread < x * y * z) & ~lanes.full(alive) & arrived.any(axis=1, keepdims=True)
    if not gone.any():
        return
    row, thread = lanes.first(gone)
    block, source, line = int(lanes.blocks[row, 0]), m.calls.source, m.calls.line
    text = (
        f"thread {lanes.thread_name(thread)} has returned before this barrier, which does not wait "
        f"for it since compute capability 7.0 [block {lanes.block_name(block)}, "
        f"{int(gone[row].sum())} of its threads]"
    )
    places = lanes.block_at(block), lanes.thread_at(thread)
    what = text, "returned", source.file, int(gone.sum())
    m.report.note(Note(line, source.code(line), *places, *what))
