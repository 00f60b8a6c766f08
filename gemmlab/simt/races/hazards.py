"""Hazards are what a kernel does wrong, notes what is no fault but worth knowing: both as data."""

import ast
import re
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
        "shared memory; an arrival that may count for the phase before"
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
    "step-limit": (
        "a thread never leaves a `while`, as nothing changes that decides about it; or it was "
        "stopped after `max_steps` turns, which is no fault if the loop ends later: raise the limit"
    ),
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


class AtStake(NamedTuple):
    """The values of a race, as text; "" is one that is not known.

    held : what the element holds as the thread at fault comes; first, other : what this thread and
        the other one write there now
    at_once : whether both write in the same execution of the same line
    """

    held: str
    first: str = ""
    other: str = ""
    at_once: bool = False

    @property
    def shown(self) -> str:
        """The values as a message shows them, in parentheses."""
        if self.at_once:
            return f" ({self.first} and {self.other})" if self.first else ""
        return f" ({self.held}, now {self.first})" if self.first else f" ({self.held})"


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
    values : of a race, those that the element has and gets
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
    values: AtStake | None = field(default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise ValueError(f"kind={self.kind!r} is no hazard; use one of {', '.join(KINDS)}")

    @property
    def ops(self) -> tuple[str, ...]:
        """The kinds of the `touches`, such as ("read", "write"), the one at fault first."""
        return tuple(touch.op for touch in self.touches)

    @property
    def story(self) -> str:
        """A race as a story: an order of few steps in which it goes wrong; "" for other hazards.

        The two threads of the hazard are all that it takes. That nothing orders their accesses
        means that a GPU may do them in this order, too.
        """
        steps = _steps(self) if len(self.touches) == 2 else []
        lines = [f"    {i}. {step}" for i, step in enumerate(steps, 1)]
        return "\n".join(["  an order in which it goes wrong:", *lines] if lines else [])

    @property
    def told(self) -> str:
        """The hazard as `str` gives it, with its story below."""
        return "\n".join(filter(None, (str(self), self.story)))

    def __str__(self) -> str:
        return f"{self.kind}: {self.message}\n  line {self.line}: {self.code}"


def _steps(hazard: Hazard) -> list[str]:
    """Return what the two threads of a race do in turn, each in a sentence."""
    first, other = hazard.touches
    values, ops = hazard.values, hazard.ops
    x = Element(hazard.array, hazard.space, hazard.index)
    a, b = _names(hazard)
    at_a, at_b = f" (line {first.line})", f" (line {other.line})"
    if ops[1] == "copy" and hazard.kind == "async-not-waited" and ops[0] in ("read", "write"):
        begun = f"{b} begins the copy to {x}{at_b}, and goes on before it is there"
        return [begun, _too_early(ops[0], f"{a} {ops[0]}s {x}{at_a}")]
    if values is None:
        return []
    added = _update(hazard.code)
    lost = "one addition is lost" if added == "Add" else "what {} has done to it is lost"
    held, mine = f" = {values.held}", f" = {values.first}" if values.first else ""
    if ops == ("write", "read") and values.other:
        return [
            f"{a} reads {x}{held}{at_b}",
            f"{b} reads {x}{held}{at_b}, too, for {a} has not written yet",
            f"{a} writes {x}{mine}{at_a}",
            f"{b} writes {x} = {values.other}{at_a}: {lost.format(a)}",
        ]
    if ops == ("read", "write") and first.line == other.line and added:
        return [
            f"{a} reads {x}{at_a}",
            f"{b} reads {x}{at_b}, and finds the same",
            f"{b} writes {x}{held}{at_b}",
            f"{a} writes what it has made of the old value{at_a}: {lost.format(b)}",
        ]
    if ops == ("write", "write"):
        theirs = f" = {values.other}" if values.at_once else held
        stay = (f"{end.removeprefix(' = ')} stays" for end in (mine, theirs))
        ends = ". In the other order, ".join(stay) if mine and theirs else "it stays"
        return [f"{b} writes {x}{theirs}{at_b}", f"{a} writes {x}{mine}{at_a}: {ends}"]
    return {
        ("read", "write"): [
            f"{a} reads {x}{at_a}, which holds what was there before",
            f"{b} writes {x}{held}{at_b}: too late for {a}, which nothing made wait",
        ],
        ("write", "read"): [
            f"{a} is ahead, and writes {x}{mine}{at_a}",
            f"{b} reads {x}{mine}{at_b}; it came for {values.held}, which is no longer there",
        ],
        ("read", "atomic"): [
            f"{a} reads {x}{at_a}, which is not {values.held} yet",
            f"{b} updates {x} by an atomic{at_b}: too late for {a}, which nothing made wait",
        ],
        ("atomic", "read"): [
            f"{a} is ahead, and updates {x} by an atomic{at_a}",
            f"{b} reads {x}{at_b}; it came for {values.held}, which is no longer there",
        ],
        ("write", "atomic"): [
            f"{b} updates {x} by an atomic{at_b}",
            f"{a} writes {x}{mine}{at_a}: what {b} has done to it is lost",
        ],
        ("atomic", "write"): [
            f"{a} is ahead, and updates {x} by an atomic{at_a}",
            f"{b} writes {x}{at_b}: what {a} has done to it is lost",
        ],
    }.get(ops, [])


def _too_early(op: str, done: str) -> str:
    """Return what a thread does that does not wait for a copy."""
    if op == "read":
        return f"{done}, which still holds what was there before the copy"
    return f"{done}; the copy arrives later, and replaces what it wrote"


def _names(hazard: Hazard) -> tuple[str, str]:
    """Return the two threads as messages name them: a number for each dimension of the launch."""
    dims = [part.count(",") + 1 for part in re.findall(r"\(([^()]*)\)", hazard.message)[-2:]]
    names = []
    for touch in hazard.touches:
        block, thread = (
            f"({', '.join(map(str, place[:n]))})"
            for place, n in zip((touch.block, touch.thread), dims, strict=True)
        )
        apart = len({one.block for one in hazard.touches}) > 1
        names.append(f"thread {thread}" + f" of block {block}" * apart)
    return names[0], names[1]


def _update(code: str) -> str:
    """Return the operator of a line of source such as `x[i] += 1`; "" for another line."""
    try:
        (statement,) = ast.parse(code.strip()).body
    except (SyntaxError, ValueError):  # a part of a statement
        return ""
    return type(statement.op).__name__ if isinstance(statement, ast.AugAssign) else ""


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
        super().__init__(hazard.told)
        self.hazard = hazard
