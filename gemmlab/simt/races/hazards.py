"""What a kernel can do wrong: the kinds of hazards, and one that was found, as data."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from gemmlab.simt.numbers.lanes import Dim3

KINDS = (
    "out-of-bounds",
    "shared-race",
    "global-race",
    "divergent-barrier",
    "uninitialised-read",
    "async-not-waited",
    "misaligned",
    "index-overflow",
    "step-limit",
)


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
    """What one thread did to an element.

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

    @property
    def ops(self) -> tuple[str, ...]:
        """What each of the `touches` is, such as ("read", "write"), the one at fault first."""
        return tuple(touch.op for touch in self.touches)

    def __str__(self) -> str:
        return f"{self.kind}: {self.message}\n  line {self.line}: {self.code}"


class HazardError(RuntimeError):
    """Raised at the first hazard of a simulation; `.hazard` describes it."""

    def __init__(self, hazard: Hazard) -> None:
        super().__init__(str(hazard))
        self.hazard = hazard
