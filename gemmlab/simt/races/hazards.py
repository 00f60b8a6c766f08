"""Hazards are what a kernel does wrong, notes what is no fault but worth knowing: both as data."""

from dataclasses import dataclass, field
from typing import NamedTuple

from gemmlab.simt.numbers.lanes import Dim3

# The kinds of hazards, each with what it means.
KINDS = {
    "out-of-bounds": (
        "an index outside the array's shape, in global, shared or local memory; a "
        "negative index counts from the end, as in Numba"
    ),
    "index-overflow": "an index that wrapped on its way, wherever it lands",
    "shared-race": (
        "two threads of a block touch an element of shared memory, one of them writes, "
        "and no barrier orders them"
    ),
    "global-race": "the same in global memory, of any two threads of the launch",
    "uninitialised-read": (
        "a read of memory that nobody has written, if it decides anything: shared, local, or of "
        "a `device_array`; of a variable, or of what a device function returns, in a lane that "
        "has no value for it; of a lane that takes no part in a shuffle"
    ),
    "divergent-barrier": (
        "a barrier that some threads of the block, of the grid, or lanes of the mask, do not reach "
        "although they have not returned"
    ),
    "async-not-waited": (
        "a touch of shared memory that a copy on its way has not filled yet, or of an accumulator "
        "that a `wgmma` still updates; a block that ends before the TMA has filled or read its "
        "shared memory"
    ),
    "missing-fence": (
        "an asynchronous instruction that nothing makes see what ordinary ones wrote: shared "
        "memory, an mbarrier, a tensor map, or the accumulators of a `wgmma`"
    ),
    "misaligned": (
        "an access of 8 or 16 bytes, or a copy by the TMA, at an address that is not a multiple "
        "of them"
    ),
    "deadlock": (
        "lanes that spin in a loop for a value that nobody is left to set, or wait for a phase of "
        "an mbarrier that nobody is left to complete: all other threads have ended or wait too"
    ),
    "step-limit": "more turns of `while` than `max_steps`, in a thread",
}


class Element(NamedTuple):
    """An element of an array.

    array : its name; space : the memory that it is in
    index : as the source writes it, perhaps outside; None for a dimension that a slice leaves open
    """

    array: str
    space: str
    index: tuple[int | None, ...]

    def __str__(self) -> str:
        return f"{self.array}[{', '.join(':' if i is None else str(i) for i in self.index)}]"


@dataclass(frozen=True)
class Touch:
    """One thread did this to an element.

    op : "read", "write", "atomic", or "copy" for an asynchronous copy from or to it
    line : where it did so; block, thread : who, as (x, y, z)
    """

    op: str
    line: int
    block: Dim3
    thread: Dim3


@dataclass(frozen=True)
class Hazard:
    """One thing that a kernel did wrong.

    kind : one of `KINDS`; line, code : the line of `file`, and its text
    block, threads : where, as (x, y, z); the threads involved, the one at fault first
    message : all of this in a sentence
    count : lanes at fault, over all the times that a simulation that collects found it
    array, index : the element concerned, "" and () where there is none; outside the array where
        that is what is wrong; None in `index` for a dimension that a slice leaves open
    space : the memory of the array: "global", "shared", "local", or "constant"
    touches : what clashed: what the thread at fault did to the element, then, of a race or a copy
        that was not waited for, what the other one did
    """

    kind: str
    line: int
    code: str
    block: Dim3
    threads: tuple[Dim3, ...]
    message: str
    file: str = field(default="", repr=False)
    count: int = field(default=1, compare=False)
    array: str = ""
    index: tuple[int | None, ...] = ()
    space: str = ""
    touches: tuple[Touch, ...] = ()

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise ValueError(f"kind={self.kind!r} is no hazard; use one of {', '.join(KINDS)}")

    @property
    def ops(self) -> tuple[str, ...]:
        """The kinds of the `touches`, such as ("read", "write"), the one at fault first."""
        return tuple(touch.op for touch in self.touches)

    def __str__(self) -> str:
        return f"{self.kind}: {self.message}\n  line {self.line}: {self.code}"


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


class HazardError(RuntimeError):
    """Raised at the first hazard of a simulation; `.hazard` describes it.

    place : its file, its line and its function, where it is raised after the kernel has ended
    """

    place: tuple[str, int, str] | None = None

    def __init__(self, hazard: Hazard) -> None:
        super().__init__(str(hazard))
        self.hazard = hazard
