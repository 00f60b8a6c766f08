"""An access to memory, and what watches or counts it, may ask this of the machine.

A machine (`machine.machine`) has more parts than these, and its parts have more methods. Functions
that take a `Batch` or a `MemoryBatch` can reach nothing else, and import nothing above them.
"""

from collections.abc import Callable
from typing import Any, Protocol

from gemmlab.simt.numbers.lanes import IdentityCache, Lanes, Launch, Mask, Masks
from gemmlab.simt.races import hazards, memories, visits
from gemmlab.simt.races.release import Releases
from gemmlab.simt.syntax.source import Source

Lane = tuple[int, int]  # the linear indices of a block and of a thread of it


class Calls(Protocol):
    """The lanes that run are in these functions, and at this call.

    frames : the functions, the kernel first; source : of the last of them
    place, line : of the last call, as (file, line, column)
    """

    frames: list[Any]
    source: Source
    place: tuple
    line: int


class Findings(Protocol):
    """Hazards and notes are told here, by the lanes concerned (`report.tally`)."""

    hazard: Callable[..., None]
    note: Callable[..., None]
    unwritten: Callable[..., None]
    race: Callable[..., None]
    same_value: Callable[..., None]
    touch: Callable[..., hazards.Touch]


class Tally(Protocol):
    """Operations and amounts are counted here, by the active lanes (`report.tally`)."""

    tick: Callable[[int, Any], None]
    add: Callable[[int, tuple, tuple], None]
    active: Callable[[Mask], tuple[int, int]]


class Report(Protocol):
    """A launch has these once for all batches: its fences and atomics, and who sees accesses."""

    releases: Releases
    watchers: list[Callable]


class Batch(Protocol):
    """A batch of blocks whose lanes run: which ones, where, and who is told what they do."""

    lanes: Lanes
    masks: Masks
    calls: Calls
    waits: visits.Waits
    findings: Findings
    tally: Tally
    report: Report
    alive: Callable[[], Mask]


class Held(Protocol):
    """The arrays of a batch, and caches for accesses that loops repeat (`memory.memory`)."""

    shared: dict[tuple, Any]
    static_bytes: int
    dynamic: memories.SharedShadow | None
    watchers: list[Callable]
    again: IdentityCache
    located: IdentityCache
    extent: Callable[[Any], tuple[int, int]]


class Copies(Protocol):
    """Copies that are under way to elements which an access must not touch before they land."""

    check: Callable[..., None]


class Loads(Protocol):
    """Loads of shared memory whose values are on their way to registers."""

    put: Callable[..., None]
    use: Callable[..., None]


class UnderWay(Protocol):
    """Asynchronous instructions that are under way in a block."""

    loads: Loads
    check_registers: Callable[..., None]
    touch: Callable[..., None]
    store: Callable[..., None]


class Apart(Protocol):
    """Accesses of lanes that run one by one are kept here, to be counted as those of warps."""

    keep: Callable[..., None]
    finish: Callable[[], None]


class MemoryBatch(Batch, Protocol):
    """A batch of blocks with its memory, and with what is on its way to it."""

    launch: Launch
    memory: Held
    copies: Copies
    under_way: UnderWay | None
    apart: Apart | None
