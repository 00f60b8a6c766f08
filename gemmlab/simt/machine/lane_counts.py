"""Counts of lanes that run one by one, as if the lanes of a warp had run together.

What lanes of a warp do at one place of the source, each for the k-th time, is one instruction and
one access of the warp: that is what they do where they are not apart.
"""

from collections import defaultdict
from collections.abc import Callable
from typing import Any

import numpy as np

from gemmlab.model.transactions import WARP
from gemmlab.simt.machine.calls import Frame
from gemmlab.simt.machine.machine import Machine
from gemmlab.simt.memory.array import Array
from gemmlab.simt.memory.counting import count_access
from gemmlab.simt.numbers.lanes import Mask
from gemmlab.simt.report.tally import Tally


class LaneCounts(Tally):
    """A tally that keeps what each lane of a block has done, until `finish` counts it by warps.

    ticks : by function, line and kind, how often each lane has executed it
    accesses : by function, line, operation and memory, an array, and of each lane the elements
    watchers : of accesses, told of those of whole warps
    """

    def __init__(self, m: Machine, watchers: list[Callable]) -> None:
        super().__init__(m.report, m.lanes, m.masks, m.calls, m.waits, m.findings)
        self.m, self.watchers = m, watchers
        self.ticks: dict[tuple, np.ndarray] = {}
        self.accesses: dict[tuple, tuple[Array, dict[int, list[int]]]] = {}

    def tick(self, line: int, kind: str) -> None:
        """Note an operation of the lanes that run."""
        if self.masks[-1] is False:
            return
        key = self.calls.source, line, kind
        counts = self.ticks.get(key)
        if counts is None:
            counts = self.ticks[key] = np.zeros(self.lanes.threads, np.int64)
        counts += self.lanes.full(self.masks[-1])[0]

    def keep(self, line: int, op: str, array: Array, at: Any, mask: Mask) -> None:
        """Note an access of the lanes of `mask`."""
        key = self.calls.source, line, op, id(array.buffer), type(array), array.itemsize
        if key not in self.accesses:
            self.accesses[key] = array, defaultdict(list)
        elements, threads = self.lanes.of(at, mask)
        for element, thread in zip(elements.tolist(), threads.tolist(), strict=True):
            self.accesses[key][1][thread].append(element)

    def finish(self) -> None:
        """Count what was kept, warp by warp."""
        for (source, line, kind), counts in self.ticks.items():
            counters = self.report.counters_of(source, line)
            warps = int(counts.reshape(-1, WARP).max(axis=1).sum())
            counters["inst_executed"] += warps
            counters["thread_inst_executed"] += int(counts.sum())
            counters[kind] += warps
        self.m.apart, spinning = None, self.report.watchers[:]
        self.report.watchers[:] = self.watchers
        for (source, line, op, *_), (array, by_lane) in self.accesses.items():
            self.calls.frames = [Frame(source, depth=0)]
            for k in range(max(len(made) for made in by_lane.values())):
                at, on = (np.zeros(self.lanes.shape, t) for t in (np.int64, bool))
                for thread, made in by_lane.items():
                    if k < len(made):
                        at[0, thread], on[0, thread] = made[k], True
                count_access(self.m, line, op, array, at, on)
        self.report.watchers[:] = spinning


def count_lanes(m: Machine, watchers: list[Callable]) -> LaneCounts:
    """Have machine `m`, of one block, count by lanes; `finish` must follow."""
    m.apart = m.tally = LaneCounts(m, watchers)
    for part in (m.operations, m.branches, m.loops):
        part.tally = m.tally
    return m.apart
