"""A ring has stages: each is asked for, full, read and free, as the simulated SM runs a block.

The producer is a warp that asks the TMA for tiles. Two mbarriers a stage are all that it shares
with the consumers: at *full* the bytes arrive, and at *empty* the consumers, who have read them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from gemmlab.compiled.sass.listing import Listing
from gemmlab.compiled.sm.facts import Facts
from gemmlab.compiled.sm.pipes import Kind, Unit, Use, use
from gemmlab.compiled.sm.result import Timeline
from gemmlab.compiled.sm.streams import Block, Stream

WARPGROUP = 4  # warps; the first of a warpgroup of consumers stands for the others
PAUSE = 32  # cycles: products that are nearer to each other are drawn as one


class Turn(NamedTuple):
    """One use of a stage, each a cycle: its copies are asked for, all bytes are there, a consumer
    begins to read, and all consumers have read.
    """

    stage: int
    asked: int
    full: int
    read: int
    free: int


class Doing(NamedTuple):
    """Something that lasts from one cycle to another: "wait" for a stage, "store", "multiply"."""

    what: str
    start: int
    end: int


@dataclass(frozen=True)
class Ring:
    """A ring tells what a block does with the stages that its tiles pass through.

    turns : in the order in which they are asked for, those that have come to their end
    roles : waits of the producer, waits and stores of the consumers, products of the Tensor Cores
    """

    turns: Sequence[Turn]
    roles: Mapping[str, Sequence[Doing]]

    @property
    def stages(self) -> int:
        """Tiles that there is room for."""
        return 1 + max(turn.stage for turn in self.turns)


class _Warp:
    """A warp of a ring: what it executes, and when.

    cycles : of each instruction of its stream
    waits : places in the stream where it waits at mbarriers; copies : where it first asks the TMA
        to copy after each of them
    """

    def __init__(self, stream: Stream, issued: np.ndarray, uses: Sequence[Use]) -> None:
        units = np.array([int(one.unit) for one in uses])[stream.instructions]
        self.cycles = np.flatnonzero(issued >= 0)[: len(stream)]
        self.kinds = np.array([int(one.kind) for one in uses])[stream.instructions]
        self.busy = np.array([one.interval for one in uses])[stream.instructions]
        self.mbarriers = stream.mbarriers
        self.waits = np.flatnonzero((units == Unit.MBARRIER_WAIT) & (stream.amounts > 0))
        copies = np.flatnonzero(units == Unit.BULK)
        after = np.searchsorted(self.waits, copies)
        self.copies = copies[np.diff(after, prepend=-1) > 0]

    def passed(self, mbarrier: int) -> np.ndarray:
        """Return the cycles in which its waits for phases of an mbarrier end."""
        return self.cycles[self.waits[self.mbarriers[self.waits] == mbarrier]]

    def does(self) -> list[Doing]:
        """List its waits, each from the cycle after the instruction before, and what it stores."""
        starts, ends = np.append(-1, self.cycles)[self.waits] + 1, self.cycles[self.waits]
        found = [Doing("wait", *span) for span in zip(starts.tolist(), ends.tolist(), strict=True)]
        stores = np.flatnonzero(self.kinds == Kind.GLOBAL)
        of = np.searchsorted(self.waits, stores)  # between which two waits; what is before is none
        for turn in np.unique(of[of > 0]):
            cycles = self.cycles[stores[of == turn]]
            found.append(Doing("store", int(cycles[0]), int(cycles[-1])))
        return sorted(found, key=lambda one: one.start)


def ring(code: Listing, block: Block, timeline: Timeline, facts: Facts) -> Ring:
    """Find the ring of the block that runs first, from the timeline of its whole run.

    Raises ValueError for code in which no TMA copies: a thread's copies do not tell when they end.
    """
    uses = [use(i, facts) for i in code.instructions]
    warps = [_Warp(stream, timeline.issued[w], uses) for w, stream in enumerate(block)]
    producers = [warp for warp in warps if len(warp.copies)]
    if timeline.first or not producers:
        raise ValueError(
            "a timeline from cycle 0 of code whose tiles the TMA copies is needed; this one is "
            f"from cycle {timeline.first}, and {len(producers)} warps ask for copies"
        )
    producer = producers[0]
    consumers = [warp for warp in warps if len(warp.waits) and warp is not producer]
    leaders = consumers[::WARPGROUP]
    return Ring(
        _turns(producer, consumers, timeline.opened[0]),
        {"producer": producer.does()}
        | {f"consumer {i + 1}": warp.does() for i, warp in enumerate(leaders)}
        | {"Tensor Cores": _products(consumers)},
    )


def _turns(producer: _Warp, consumers: Sequence[_Warp], opened: np.ndarray) -> list[Turn]:
    """Find all turns; `opened` has the cycles in which phases of mbarriers are complete."""
    full = producer.mbarriers[producer.copies].tolist()
    empty = producer.mbarriers[producer.waits].tolist()
    stages, turns = list(dict.fromkeys(full)), []
    for at, (there, left) in enumerate(zip(full, empty, strict=True)):
        turn = full[:at].count(there)
        phases = (np.flatnonzero(opened[number]) for number in (there, left))
        events = *phases, *(warp.passed(there) for warp in consumers)
        if all(len(cycles) > turn for cycles in events):
            arrived, freed, *read = (int(cycles[turn]) for cycles in events)
            asked = int(producer.cycles[producer.copies[at]])
            turns.append(Turn(stages.index(there), asked, arrived, min(read), freed))
    return turns


def _products(consumers: Sequence[_Warp]) -> list[Doing]:
    """Find when any of the SM's Tensor Cores multiplies."""
    chosen = [warp.kinds == Kind.TENSOR for warp in consumers]
    starts = np.concatenate([w.cycles[c] for w, c in zip(consumers, chosen, strict=True)])
    lasts = np.concatenate([w.busy[c] for w, c in zip(consumers, chosen, strict=True)])
    if not len(starts):
        return []
    order = np.argsort(starts)
    starts, ends = starts[order], np.maximum.accumulate((starts + lasts)[order])
    new = np.flatnonzero(starts[1:] > ends[:-1] + PAUSE) + 1
    begins, stops = starts[[0, *new]], ends[[*(new - 1), -1]]
    return [Doing("multiply", *s) for s in zip(begins.tolist(), stops.tolist(), strict=True)]
