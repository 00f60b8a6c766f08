"""The simulated GPU: all threads of a batch of blocks, in lock-step.

A rewritten kernel calls the methods of a machine's parts: `variables`, `operations`, `branches`,
`loops`, `memory` and `calls`. Functions of `memory` and `builtins` take the machine itself, as a
protocol of those parts that they may use (`memory.batch`, `builtins.batch`). Lanes that run one by
one are counted as if the lanes of a warp had run together: what they do at one place of the source,
each for the k-th time, is one instruction and one access of the warp.
"""

from collections import defaultdict
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from gemmlab.model.transactions import WARP
from gemmlab.simt.builtins.async_copies import Copies
from gemmlab.simt.builtins.under_way import UnderWay
from gemmlab.simt.machine.calls import Calls, Frame, Variables
from gemmlab.simt.machine.loops import Loops
from gemmlab.simt.machine.operations import Branches, Operations
from gemmlab.simt.machine.scope import Scope
from gemmlab.simt.memory.array import Array
from gemmlab.simt.memory.counting import count_access
from gemmlab.simt.memory.memory import Memory
from gemmlab.simt.numbers.lanes import Lanes, Launch, Mask, Masks
from gemmlab.simt.races.visits import Waits
from gemmlab.simt.report.report import Report
from gemmlab.simt.report.tally import Findings, Tally
from gemmlab.simt.syntax.rewrite import Program
from gemmlab.simt.syntax.source import Source


class Control(NamedTuple):
    """The place of some lanes in the kernel, kept while other lanes of the machine run.

    masks : the stack; frames, place, line : of `calls`; others, open, steps : of branches and loops
    """

    masks: list[Mask]
    frames: list[Frame]
    place: tuple = ()
    line: int = 0
    others: Any = ()
    open: Any = ()
    steps: int = 0


class Machine:
    """One batch of blocks, by their linear indices, and what runs them.

    lanes : which blocks and threads; masks : which of them run; calls : of which function
    waits : what barriers have put in order; memory, copies : what is in memory, or on its way
    findings, tally : hazards and counts, on their way to the report
    variables, operations, branches, loops : what a rewritten kernel calls
    scope : what its names mean
    under_way : what asynchronous instructions do; None before the launch is known to have some
    apart : keeps the accesses of lanes that run one by one, to count them as those of warps
    cluster : the machines of the blocks of its cluster, by rank; None for one that has ended
    """

    apart: Any = None

    def __init__(
        self,
        launch: Launch,
        report: Report,
        program: Program,
        global_arrays: list[Array],
        blocks: np.ndarray,
    ) -> None:
        self.launch, self.report = launch, report
        self.lanes = Lanes(launch.grid, launch.block, blocks)
        self.masks = Masks([self.lanes.present])
        self.calls = Calls(self.masks, report.source)
        self.waits = Waits(*self.lanes.shape)
        self.findings = Findings(report, self.lanes, self.calls)
        self.tally = Tally(report, self.lanes, self.masks, self.calls, self.findings)
        self.operations = Operations(self.tally, launch)
        self.memory = Memory(self, global_arrays, self.operations.compare)
        self.copies = Copies()
        self.under_way: UnderWay | None = None
        self.cluster: list[Machine | None] = [self]
        self.variables = Variables(self)
        self.branches = Branches(self.masks, self.tally)
        self.loops = Loops(self.masks, self.tally, self.findings, self.memory, launch)
        self.scope = Scope(self, self.calls, program)

    def bound(self, function: Callable, source: Source, values: list) -> Callable[[], None]:
        """Return a kernel on the values of its parameters, to be called."""
        return partial(self.scope.bound(function, source), self, *values)

    def control(self) -> Control:
        """Return the place in the kernel of the lanes that run now."""
        calls, loops = self.calls, self.loops
        return Control(self.masks[:], calls.frames, calls.place, calls.line,
                       self.branches.others, loops.open, loops.steps)  # fmt: skip

    def go_on(self, at: Control) -> None:
        """Let other lanes run from where they are."""
        self.masks[:] = at.masks
        self.calls.frames, self.calls.place, self.calls.line = at.frames, at.place, at.line
        self.branches.others, self.loops.open = list(at.others), list(at.open)
        self.loops.steps = at.steps

    def take_apart(self) -> None:
        """Settle the counts and let go of all parts.

        They refer to each other; apart, they go at once, not at some later collection of cycles,
        so that memory stays that of one batch.
        """
        self.tally.settle()
        self.scope.take_apart()
        vars(self).clear()

    def alive(self) -> Mask:
        """Return the threads for which a barrier waits: those that have not returned."""
        return self.masks[0]


class LaneCounts(Tally):
    """A tally that keeps what each lane has done, until `finish` counts it by warps.

    ticks : by function, line and kind, how often each lane has executed it
    accesses : by function, line, operation and memory, an array, and of each lane the elements
    watchers : of accesses, told of those of whole warps
    """

    def __init__(self, m: Machine, watchers: list[Callable]) -> None:
        super().__init__(m.report, m.lanes, m.masks, m.calls, m.findings)
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
        places = self.lanes.places(self.masks[-1])
        if len(places) == 1:
            counts[places[0]] += 1
        else:
            counts[places] += 1

    def mark(self, line: int, what: str) -> None:
        """Leave out what is worth knowing of an operation: such launches are small."""

    def keep(self, line: int, op: str, array: Array, at: Any, mask: Mask) -> None:
        """Note an access of the lanes of `mask`."""
        key = self.calls.source, line, op, id(array.buffer), type(array), array.itemsize
        if key not in self.accesses:
            self.accesses[key] = array, defaultdict(list)
        threads = self.lanes.places(mask)
        if len(threads) == 1:
            thread = int(threads[0])
            self.accesses[key][1][thread].append(int(self.lanes.at(at, thread)))
            return
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
                elements = {thread: made[k] for thread, made in by_lane.items() if k < len(made)}
                at, on = (np.zeros(self.lanes.place.size, t) for t in (np.int64, bool))
                threads = list(elements)
                at[threads], on[threads] = list(elements.values()), True
                one = len({*elements.values()}) == 1
                where = at[threads[0]] if one else at.reshape(self.lanes.shape)
                count_access(self.m, line, op, array, where, on.reshape(self.lanes.shape))
        self.report.watchers[:] = spinning


def count_lanes(m: Machine, watchers: list[Callable]) -> LaneCounts:
    """Have a machine count by lanes, those of one block; `finish` must follow."""
    m.apart = m.tally = LaneCounts(m, watchers)
    for part in (m.operations, m.branches, m.loops):
        part.tally = m.tally
    return m.apart
