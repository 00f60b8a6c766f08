"""What an access to memory, and what watches or counts it, may ask of the machine.

A machine (`machine.machine`) has more parts than these, and its parts have more methods. Functions
that take a `Batch` or a `MemoryBatch` can reach nothing else, and import nothing above them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from gemmlab.simt.numbers.lanes import IdentityCache, Lanes, Launch, Mask, Masks
from gemmlab.simt.races.hazards import Element, Touch
from gemmlab.simt.races.release import Releases
from gemmlab.simt.races.shadow import Clash, Shadow
from gemmlab.simt.races.shared_shadow import SharedShadow
from gemmlab.simt.races.visits import Waits
from gemmlab.simt.syntax.source import Source

Lane = tuple[int, int]  # the linear indices of a block and of a thread of it


class Calls(Protocol):
    """Where the lanes are that run: in which functions, and at which call.

    frames : the functions, the kernel first; source : of the last of them
    place, line : of the last call, as (file, line, column)
    """

    frames: list[Any]
    place: tuple
    line: int

    @property
    def source(self) -> Source: ...


class Findings(Protocol):
    """Who is told of hazards, by the lanes at fault."""

    def hazard(
        self, kind: str, line: int, lanes: Mask, text: str, *, other: int | None = None,
        element: Element | None = None, op: str = "", against: Touch | None = None,
    ) -> None: ...  # fmt: skip

    def note(self, kind: str, line: int, lanes: Mask, text: str) -> None: ...

    def unwritten(self, line: int, lane: Lane, element: Element, op: str, count: int) -> None: ...

    def race(
        self, line: int, clash: Clash, lane: Lane, other: Lane, element: Element, count: int,
        values: str, unless: tuple[Shadow, int] | None = None,
    ) -> None: ...  # fmt: skip

    def same_value(
        self, line: int, lane: Lane, other: Lane, element: Element, count: int
    ) -> None: ...

    def touch(self, op: str, line: int, lane: Lane) -> Touch: ...


class Tally(Protocol):
    """Who counts: operations, amounts of any counter, and the active lanes of a mask."""

    def tick(self, line: int, kind: Any) -> None: ...

    def add(self, line: int, names: tuple[str, ...], amounts: tuple[int, ...]) -> None: ...

    def active(self, mask: Mask) -> tuple[int, int]: ...


class Report(Protocol):
    """What a launch has once for all batches: its fences and atomics, and who sees accesses."""

    releases: Releases
    watchers: list[Callable]


class Batch(Protocol):
    """A batch of blocks whose lanes run: which ones, where, and who is told what they do."""

    lanes: Lanes
    masks: Masks
    calls: Calls
    waits: Waits
    findings: Findings
    tally: Tally
    report: Report

    def alive(self) -> Mask: ...


class Held(Protocol):
    """The arrays of a batch, and caches for accesses that loops repeat (`memory.Memory`)."""

    shared: dict[tuple, Any]
    static_bytes: int
    dynamic: SharedShadow | None
    watchers: list[Callable]
    again: IdentityCache
    located: IdentityCache

    def extent(self, index: Any) -> tuple[int, int]: ...


class Copies(Protocol):
    """Copies to shared memory that are under way, which an access must not come before."""

    def check(
        self, m: MemoryBatch, line: int, op: str, array: Any, at: Any, mask: Mask
    ) -> None: ...


class UnderWay(Protocol):
    """Asynchronous instructions that are under way in a block."""

    def check_registers(
        self, m: MemoryBatch, line: int, op: str, array: Any, at: Any, mask: Mask
    ) -> None: ...

    def touch(
        self, m: MemoryBatch, line: int, op: str, array: Any, at: Any, mask: Mask
    ) -> None: ...

    def store(self, line: int, array: Any, at: Any, mask: Mask) -> None: ...


class Apart(Protocol):
    """Who keeps the accesses of lanes that run one by one, to count them as those of warps."""

    def keep(self, line: int, op: str, array: Any, at: Any, mask: Mask) -> None: ...

    def finish(self) -> None: ...


class MemoryBatch(Batch, Protocol):
    """A batch of blocks with its memory, and with what is on its way to it."""

    launch: Launch
    memory: Held
    copies: Copies
    under_way: UnderWay | None
    apart: Apart | None
