"""A forecast is told in words: what a launch waits for, what it does, and on which lines.

An issue slot that stays empty counts for the line that was waited for: a load of which another line
needs the value.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from gemmlab.compiled.sass.compiling import Frame
from gemmlab.compiled.sass.listing import Listing
from gemmlab.compiled.sm.pipes import Kind
from gemmlab.compiled.sm.result import Reason, Result

DONE = {
    Kind.FMA: "float32 arithmetic",
    Kind.INTEGER: "integer arithmetic",
    Kind.FP64: "float64 arithmetic",
    Kind.SPECIAL: "conversions and special functions",
    Kind.TENSOR: "Tensor Core products",
    Kind.SHARED: "accesses to shared memory",
    Kind.GLOBAL: "accesses to global memory",
    Kind.COPY: "copies to shared memory",
    Kind.BARRIER: "barriers",
    Kind.BRANCH: "branches",
    Kind.UNIFORM: "arithmetic for a whole warp at once",
    Kind.OTHER: "other instructions",
}
MEMORIES = {Kind.SHARED: "shared memory", Kind.GLOBAL: "global memory"}
WAITS = {
    Reason.STALL: "the arithmetic before",
    Reason.BARRIER: "the other warps at a barrier",
    Reason.BANK: "a port of the registers",
    Reason.LSU: "a place in the queue of the load/store unit",
    Reason.FETCH: "instructions to be fetched",
    Reason.DISPATCH: "the issue of a Tensor Core product before",
    Reason.IDLE: "a warp: there is none",
}
PARTS = {
    "dram": "device memory",
    "l2": "the L2 cache",
    "atomics": "additions that meet at a few addresses",
    "blocks": "blocks to be handed out",
}
MOST = 3  # uses that are named
LITERATURE = "facts of this GPU are from the literature, not measured"


def uses(result: Result) -> dict[str, float]:
    """Say what slots issued, as shares of all slots, the largest first."""
    return {DONE[Kind[name.upper()]]: n / result.slots for name, n in _falling(result.used)}


def waits(result: Result) -> dict[str, float]:
    """Say what empty slots waited for, as shares of all slots, the largest first.

    A result is called after what it is the result of, a pipe after what runs on it.
    """
    found: Counter[str] = Counter()
    for reason in Reason:
        by_kind: Counter[Kind] = Counter()
        for kind, count in zip(result.kinds, result.lost[reason], strict=True):
            by_kind[Kind(kind)] += int(count)
        for kind, count in by_kind.items():
            found[cause(reason, kind)] += count
    return {cause: n / result.slots for cause, n in _falling(found) if n}


class Told(Protocol):
    """What is told of a `Forecast`."""

    listing: Listing
    times: Mapping[str, float]
    result: Result

    @property
    def bottleneck(self) -> str:
        """The part that needs longest."""

    @property
    def lines(self) -> list[LineTime]:
        """What each line of the source takes."""

    @property
    def measured(self) -> bool:
        """Whether the GPU's facts were measured on one."""


def sentence(forecast: Told) -> str:
    """Say what a launch waits for most, and what its issue slots are used for.

    Where the GPU's facts are from the literature it says so, too.
    """
    told = _most(forecast)
    return told if forecast.measured else f"{told} {LITERATURE[0].upper()}{LITERATURE[1:]}."


def _most(forecast: Told) -> str:
    if forecast.bottleneck != "sm":
        alone = forecast.times["sm"] / forecast.times[forecast.bottleneck]
        part = PARTS[forecast.bottleneck]
        return f"It waits mostly for {part}: an SM would be done after {alone:.0%} of that time."
    used = uses(forecast.result)
    most = [(name, share) for name, share in list(used.items())[:MOST] if share >= 0.005]
    told = ", ".join(f"{share:.0%} {name}" for name, share in most)
    does = f"{sum(used.values()):.0%} of the issue slots issue an instruction"
    does += f" ({told})" if told else ""
    for cause, share in waits(forecast.result).items():
        return f"{does}; the others wait mostly for {cause} ({share:.0%})."
    return f"{does}."


def cause(reason: Reason, kind: Kind) -> str:
    """Say for what a slot stayed empty: a reason, and the kind of instruction that was it."""
    if reason is Reason.SCOREBOARD:
        return MEMORIES.get(kind, DONE[kind])
    if reason is Reason.PIPE:
        return f"the pipe of {DONE[kind]}"
    return WAITS.get(reason, reason.name.lower().replace("_", " "))


def _falling(counts: dict[str, int]) -> list[tuple[str, int]]:
    return sorted(counts.items(), key=lambda item: -item[1])


@dataclass(frozen=True, eq=False)
class LineTime:
    """A line of the source takes a share of the issue slots, which are a launch's time on an SM.

    place : None for what belongs to no line
    used : shares of all slots, by what was issued in them; waits : of those that stayed empty, by
        what was waited for; the largest first
    instructions : places of its instructions in the listing
    """

    place: Frame | None
    used: Mapping[str, float]
    waits: Mapping[str, float]
    instructions: tuple[int, ...]

    @property
    def share(self) -> float:
        return sum(self.used.values()) + sum(self.waits.values())

    @property
    def told(self) -> dict[str, float]:
        """All of it by name, the largest first."""
        both = Counter(self.waits)
        both.update(self.used)
        return dict(both.most_common())


QUEUED = Kind.SHARED, Kind.GLOBAL, Kind.COPY  # they go through the queue of the LSU
LIBRARIES = "site-packages", "/include/", "lib/python"  # in paths of files that are nobody's own


def own_frame(frames: Sequence[Frame]) -> Frame | None:
    """Return the innermost frame in a file that somebody wrote for this kernel.

    >>> own_frame((Frame("/usr/include/math.h", 5), Frame("a.cu", 7), Frame("a.cu", 20)))
    Frame(file='a.cu', number=7)
    """
    for frame in frames:
        if frame.number and not any(part in frame.file for part in LIBRARIES):
            return frame
    return frames[-1] if frames and frames[-1].number else None


def lines(result: Result, frames: Iterable[Sequence[Frame]]) -> list[LineTime]:
    """Return what each line costs, the dearest first; `frames` are of each instruction."""
    places = [own_frame(one) for one in frames]
    used: dict[Frame | None, Counter[str]] = {place: Counter() for place in places}
    empty: dict[Frame | None, Counter[str]] = {place: Counter() for place in places}
    at: dict[Frame | None, list[int]] = {place: [] for place in places}
    lost = lost_by(result)
    for i, place in enumerate(places):
        at[place].append(i)
        kind = Kind(result.kinds[i])
        used[place][DONE[kind]] += int(result.issued[i])
        for reason in Reason:
            empty[place][cause(reason, kind)] += lost[reason][i]
    found = [
        LineTime(place, _shares(used[place], result), _shares(empty[place], result),
                 tuple(at[place]))
        for place in used
    ]  # fmt: skip
    return sorted(found, key=lambda line: -line.share)


def lost_by(result: Result) -> np.ndarray:
    """Return the empty slots by reason and instruction, as `Result.lost`, for a source's lines.

    Without a warp nobody waits. A full queue stops any instruction; it is full of accesses to
    memory, among which it is divided as they were issued.
    """
    lost = result.lost.astype(float)
    lost[Reason.IDLE] = 0
    queued = np.where(np.isin(result.kinds, QUEUED), result.issued, 0)
    if queued.any():
        lost[Reason.LSU] = lost[Reason.LSU].sum() * queued / queued.sum()
    return lost


def slots_of(result: Result) -> np.ndarray:
    """Return the slots in which each instruction was issued or was waited for."""
    return result.issued + lost_by(result).sum(axis=0)


def _shares(counts: Counter[str], result: Result) -> dict[str, float]:
    return {name: float(n / result.slots) for name, n in counts.most_common() if n}
