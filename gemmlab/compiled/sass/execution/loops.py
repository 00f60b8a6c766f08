"""A loop whose turns repeat is not executed whole: some turns are, the next ones follow from them.

Turns repeat where a warp executes the same instructions, its accesses cost the same, and whatever
decides that is either as in the turn before or further on by the same step. How long that goes on
follows from what the loop compares: of numbers that grow by steps it is known when one is beyond
the other. So many turns, less one, are left out: registers are set to what they would have been.

Nothing is left out where a branch or an address of the loop depends on what it has loaded or
computed otherwise than by sums and products with constants; nor where one after it does (`stale`).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple, Protocol

import numpy as np

from gemmlab.compiled.sass.execution import notes, visits
from gemmlab.compiled.sass.execution.effects import FIRST, PREDICATES, Effect, bit_of
from gemmlab.compiled.sass.execution.lanes import Directions
from gemmlab.compiled.sass.execution.relevance import Relevance
from gemmlab.compiled.sass.execution.stale import MisjudgedError, Stale
from gemmlab.compiled.sass.execution.state import State
from gemmlab.compiled.sass.execution.visits import Again, Visit
from gemmlab.compiled.sass.listing import Listing
from gemmlab.model.transactions import SECTORS
from gemmlab.tiling import WARP

LONGEST = 8  # turns after which a loop does the same again
ALIKE = 3  # such periods, one after the other, before more are left out
LEAST = 2000  # instructions of a warp: fewer are executed
PATIENT = 64  # turns after which it is rarely looked whether they repeat


class Executing(Protocol):
    """What is seen and changed of a `machine.Machine`."""

    listing: Listing
    state: State
    directions: Directions
    visits: list[Visit]


@dataclass(eq=False)
class Head:
    """The head of a loop, to which its branch goes back, with what was found there each time.

    lanes : those that came back; the states are of the same ones
    starts : how many visits there had been; states : what registers had, as `Registers` reads them
    count : times; patient : times until which it is not looked whether turns repeat
    refused : periods whose turns seem to repeat, and do not
    """

    lanes: np.ndarray
    starts: list[int] = field(default_factory=list)
    states: list[np.ndarray] = field(default_factory=list)
    count: int = 0
    patient: int = 0
    refused: set[int] = field(default_factory=set)

    def add(self, start: int, state: np.ndarray) -> None:
        self.count += 1
        for kept, new in ((self.starts, start), (self.states, state)):
            kept.append(new)
            del kept[: -(ALIKE + 1) * LONGEST - 1]

    def steps(self, period: int, count: int) -> tuple[np.ndarray, np.ndarray]:
        """Return how far registers go in a period, and which go as far in the last `count`."""
        states = self.states[-1 - period * count :: period]
        steps = [after - before for before, after in pairwise(states)]
        alike = np.ones(len(states[0]), bool)
        for step in steps[1:]:
            alike &= (step == steps[0]).all(axis=1)
        return steps[-1], alike


@dataclass(eq=False)
class Candidate:
    """A loop that seems to repeat every `period` turns; `marks` are where its notes begin."""

    head: Head
    period: int
    marks: list[int]


class Expected(NamedTuple):
    """After turns were left out, so many of them do what `again` would do the next time."""

    at: int
    start: int
    turns: int
    again: Again


class Row(NamedTuple):
    """A register or a predicate of all lanes, and its bit."""

    bit: int
    values: np.ndarray


class Loops:
    """The loops of a machine: of those that repeat some turns are left out."""

    def __init__(self, machine: Executing, relevance: Relevance) -> None:
        self.machine, self.relevance = machine, relevance
        self.heads: dict[int, Head] = {}
        self.candidates: dict[int, Candidate] = {}
        self.notes: list[notes.Note] = []
        self.expected: list[Expected] = []
        self.readers: dict[int, Callable[[], list] | None] = {}
        self.rows: dict[int, list[Row]] = {}
        self.stale = Stale(machine.listing, relevance, machine.state.lanes)

    def follow(self, at: int, mask: np.ndarray | None) -> None:
        """Follow an instruction that is about to be executed, and note what it compares."""
        if self.stale.bits or self.stale.memories:
            self.stale.follow(at, mask)
        if not self.candidates:
            return
        if at not in self.readers:
            instruction = self.machine.listing.instructions[at]
            self.readers[at] = notes.reader(instruction, self.machine.state)
        read = self.readers[at]
        if read is not None:
            self.notes.append(notes.Note(at, mask, read()))

    def look(self) -> None:
        """Look whether a loop has turned, after each visit: all that go on are at its head."""
        ready, done = self.machine.directions.groups.ready, self.machine.visits
        if len(ready) != 1:
            return
        ((at, there),) = ready.items()
        if len(there) != 1 or at >= done[-1].stop:
            return
        head = self.heads.get(at)
        if head is None or not np.array_equal(head.lanes, there[0].lanes):
            head = self.heads[at] = Head(there[0].lanes)
            self.candidates.pop(at, None)
        head.add(len(done), self._state(at))
        self._check(at, head)
        candidate = self.candidates.get(at)
        if candidate is None:
            self._propose(at, head)
            return
        candidate.marks.append(len(self.notes))
        if len(candidate.marks) > ALIKE * candidate.period:
            del self.candidates[at]
            self._leave_out(at, candidate)
        if not self.candidates:
            self.notes.clear()

    def end(self) -> None:
        """Raise `MisjudgedError` where turns were left out that nothing followed."""
        if self.expected:
            raise MisjudgedError

    def _state(self, at: int) -> np.ndarray:
        """Copy the registers that decide what follows."""
        if at not in self.rows:
            state, bits = self.machine.state, self.relevance.live[at]
            files = {**state.registers, **state.predicates}
            self.rows[at] = [
                Row(first + i, files[file][i])
                for file, first in FIRST.items()
                for i in range(min(len(files[file]), 255))
                if bits >> (first + i) & 1
            ]
        rows = self.rows[at]
        found = np.empty((len(rows), self.machine.state.lanes), np.uint32)
        for kept, row in zip(found, rows, strict=True):
            kept[:] = row.values
        return found

    def _propose(self, at: int, head: Head) -> None:
        """Take a loop for one that repeats if its last two periods do the same."""
        turns = head.count - 1
        if turns < head.patient or (turns > PATIENT and turns % PATIENT):
            return
        for period in range(1, LONGEST + 1):
            many = turns >= 2 * period and turns % (2 * period) == 0
            if many and period not in head.refused and _repeat(self._periods(head, period, 2)):
                self.candidates[at] = Candidate(head, period, [len(self.notes)])
                return

    def _periods(self, head: Head, period: int, count: int) -> list[list[Visit]]:
        """Return the visits of the last periods."""
        starts = head.starts[-1 - period * count :: period]
        return [self.machine.visits[a:b] for a, b in pairwise(starts)]

    def _leave_out(self, at: int, candidate: Candidate) -> None:
        """Leave out the turns that repeat, if it is known how many do, and if they are many."""
        head, period = candidate.head, candidate.period
        steps, alike = head.steps(period, ALIKE)
        periods = self._periods(head, period, ALIKE)
        if not _repeat(periods):
            return
        unknown = self._unknown(at, steps, alike, periods[-1])
        marks = candidate.marks[::period]
        noted = [self.notes[a:b] for a, b in pairwise(marks)]
        left = notes.periods_left(noted)
        if unknown is None or not 0 < left < notes.FAR:
            longer = period * notes.missing(noted)
            head.refused |= {p for p in range(1, LONGEST + 1) if p % longer} | {period}
            return
        times, warps = left - 1, np.count_nonzero(head.lanes.reshape(-1, WARP).any(1))
        if times * visits.count(periods[-1]) < LEAST * warps:
            head.patient = 4 * head.count  # it is short
            return
        for row, step in zip(self.rows[at], steps, strict=True):
            if step.any() and not unknown >> row.bit & 1:
                row.values[:] = row.values + np.uint32(times & 0xFFFFFFFF) * step
        self.stale.mark(unknown, (i for visit in periods[-1] for i in visit.instructions))
        again = Again.of(periods[-2], periods[-1], times)
        self.machine.visits.append(again)
        del self.heads[at]
        self.expected.append(Expected(at, len(self.machine.visits), period, again))

    def _check(self, at: int, head: Head) -> None:
        """Compare what follows on turns that were left out with what was expected."""
        for one in [e for e in self.expected if e.at == at and head.count >= e.turns]:
            self.expected.remove(one)
            found = visits.steps(
                one.again.turn(one.again.times + 1),
                self.machine.visits[one.start : head.starts[-1]],
            )
            if found is None or any(step is not None and step.any() for step in found):
                raise MisjudgedError

    def _unknown(
        self, at: int, steps: np.ndarray, alike: np.ndarray, period: Sequence[Visit]
    ) -> int | None:
        """Return the registers of which nothing is known after further periods.

        None where what warps do, or where in memory, depends on them.
        """
        affine = unknown = 0
        for row, step, same in zip(self.rows[at], steps, alike, strict=True):
            if not same or (step.any() and 1 << row.bit & PREDICATES):
                unknown |= 1 << row.bit
            elif step.any():
                affine |= 1 << row.bit
        while True:
            kinds = self._kinds(period, affine, unknown)
            if kinds is None:
                return None
            live = self.relevance.live[at]
            if not live & (kinds[0] & ~affine | kinds[1] & ~unknown):
                return kinds[1] | unknown
            affine, unknown = affine | kinds[0] & live, unknown | kinds[1] & live

    def _kinds(self, period: Sequence[Visit], affine: int, unknown: int) -> tuple[int, int] | None:
        """Return which registers grow by steps after a period, and of which nothing is known.

        None where what a warp does, or where in memory, depends on some of these.
        """
        relevance, instructions = self.relevance, self.machine.listing.instructions
        views = Views((affine & ~unknown, unknown), period[-1].lanes)
        for visit in period:
            for i in visit.instructions:
                one = relevance.effects[i]
                grows, nothing = views.of(one.guard, visit.lanes)
                if one.control & nothing or (not one.known and one.control & grows):
                    return None
                if not one.known:
                    continue
                kind = "unknown"
                if relevance.needed[i] and not one.loads and not one.reads & nothing:
                    kind = notes.grows(instructions[i], grows) if one.reads & grows else "same"
                views.write(one, kind, visit.lanes)
        return views.all[views.whole]


Key = tuple[str, int]


class Views:
    """Registers are of some kinds, as lanes see them for which a guard holds, or that part.

    all : by a guard, "" for none, and the lanes: which grow by steps, of which nothing is known
    whole : what all lanes of the loop see
    """

    def __init__(self, kinds: tuple[int, int], lanes: int) -> None:
        self.whole = "", lanes
        self.all: dict[Key, tuple[int, int]] = {self.whole: kinds}

    def of(self, guard: str, lanes: int) -> tuple[int, int]:
        keys = (guard, lanes), ("", lanes), self.whole
        return next(self.all[key] for key in keys if key in self.all)

    def write(self, one: Effect, kind: str, lanes: int) -> None:
        """Note of what kind the values are that an instruction writes."""
        affine, unknown = {
            "affine": (one.writes & ~PREDICATES, 0), "unknown": (0, one.writes), "same": (0, 0),
        }[kind]  # fmt: skip
        self.all[one.guard, lanes] = self.of(one.guard, lanes)
        for guard, those in list(self.all):
            by_all = lanes in (self.whole[1], those) and one.guard in ("", guard)
            kept = ~one.writes if one.sure and by_all else -1
            grows, nothing = self.all[guard, those]
            self.all[guard, those] = grows & kept | affine, nothing & kept | unknown
        for guard, those in list(self.all):
            if guard and bit_of(guard) & one.writes:  # it is another guard from now on
                del self.all[guard, those]


def _repeat(periods: Sequence[Sequence[Visit]]) -> bool:
    """Say whether each period does as the one before, with accesses that go on by equal steps.

    What an access costs stays the same if it goes on by whole lines, or asks for one sector.
    """
    found = [visits.steps(a, b) for a, b in pairwise(periods)]
    if any(steps is None for steps in found):
        return False
    costs = [cost for visit in periods[-1] for _, cost in visit.costs]
    for cost, *steps in zip(costs, *found, strict=True):
        if steps[0] is None:
            continue
        if any(not np.array_equal(steps[0], step) for step in steps[1:]):
            return False
        if (steps[0] % SECTORS).any() and cost.sectors.max() > 1:
            return False
    return True
