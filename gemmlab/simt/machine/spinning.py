"""Loops that wait for other lanes: turns that change nothing, and what they wait for.

A turn of a loop that leaves all local variables and all memory as they were will be followed by
the same turn again, until somebody else changes an element that it looks at. Its lanes *spin*.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gemmlab.simt.memory.array import Array
from gemmlab.simt.numbers.masks import Mask, both
from gemmlab.simt.numbers.no_numbers import NUMBER

if TYPE_CHECKING:
    from gemmlab.simt.machine.machine import Machine

FIRST = 16  # the turn that is watched first, where nothing is known to spin
# From this turn on a loop is also said to spin that looks at the same elements in two turns, and
# changes variables of its own alone: it may count its turns. It may compute, too, and fibers of
# it would take longer.
PATIENCE = 1024


LANES = {"warpgroup": 128, "warp": 32}  # of a fiber, where there are asynchronous instructions


@dataclass(frozen=True)
class Grain:
    """Which lanes run together: those of a "batch" of blocks, of a "block", of a "group", or a
    "lane" alone; with asynchronous instructions those of a "warpgroup" or of a "warp".

    groups : of a block, by its linear index, the lanes that spin, (1, threads), and the others;
        blocks that are not there have the groups of the first one
    """

    name: str
    groups: dict[int, np.ndarray] = field(default_factory=dict)


class SpinsError(Exception):
    """Lanes that run together wait for each other; the launch must run again in `finer` grain."""

    def __init__(self, finer: Grain) -> None:
        super().__init__(finer.name)
        self.finer = finer


class Touched(NamedTuple):
    """Elements of an array that a turn touches, and what they held; awaited : others may set it."""

    array: Array
    where: tuple[np.ndarray, ...]
    values: np.ndarray
    awaited: bool

    @property
    def changed(self) -> bool:
        """Whether one of them holds another value now."""
        if len(self.values) == 1:  # asked often: whoever goes on may end any wait
            now = self.array.buffer.item(*[int(part[0]) for part in self.where])
            return now != self.values.item() and now == now
        return self.array.buffer[self.where].tobytes() != self.values.tobytes()

    def same(self, other: Touched) -> bool:
        """Whether `other` is a touch of the same elements."""
        return self.array.buffer is other.array.buffer and all(
            np.array_equal(*pair) for pair in zip(self.where, other.where, strict=True)
        )


@dataclass(frozen=True)
class Spin:
    """Lanes of `mask` that spin in the loop of `line`, and the elements that they look at.

    exact : whether they are sure to do so until one of these changes
    """

    line: int
    mask: Mask
    touched: list[Touched]
    exact: bool

    @property
    def ready(self) -> bool:
        """Whether another turn may be different."""
        if not self.exact:
            return True
        return any(touched.changed for touched in self.touched)

    @property
    def until(self) -> str:
        """What has to happen, in words."""
        touched = next(t for t in self.touched if t.awaited)
        element = touched.array.element(touched.where[-1][0])
        return f"{element} changes, which is {touched.values[0]}"


@dataclass(frozen=True)
class Awaited(Spin):
    """Lanes that wait in one instruction until a condition holds; words : which one."""

    condition: Callable[[], bool]
    words: Callable[[], str]

    @property
    def ready(self) -> bool:
        """Whether it holds."""
        return self.condition()

    @property
    def until(self) -> str:
        """What has to happen."""
        return self.words()


class Watch:
    """One turn of a loop: the lanes in it, their variables before it, and what it touches."""

    def __init__(self, m: Machine, variables: Mapping[str, Any]) -> None:
        self.m, self.mask = m, m.masks[-1]
        self.before = {name: _kept(value) for name, value in variables.items()}
        self.waits = _waits(m)
        self.touched: list[Touched] = []
        for watchers in (m.report.watchers, m.memory.watchers):
            watchers.append(self.see)

    def see(self, m: Machine, line: int, op: str, array: Array, at: Any, mask: Mask) -> None:
        """Keep what the elements of an access hold before it is made."""
        if m is not self.m:
            return
        elements, places = m.lanes.of(at, mask)
        where = (elements,)
        if array.space == "shared":
            where = places // m.lanes.threads, elements
        awaited = op != "store" and array.shadow is not None
        self.touched.append(Touched(array, where, array.buffer[where], awaited))

    def end(self) -> None:
        """See no more."""
        for watchers in (self.m.report.watchers, self.m.memory.watchers):
            watchers.remove(self.see)

    def idle(self) -> bool:
        """Whether the turn waited for others, and left memory as it was."""
        awaits = any(touched.awaited for touched in self.touched)
        if not awaits or self.waits != _waits(self.m) or not _same(self.mask, self.m.masks[-1]):
            return False
        return not any(touched.changed for touched in self.touched)

    def repeats(self, variables: Mapping[str, Any]) -> bool:
        """Whether the turn has left the variables as they were, too."""
        return self.before.keys() == variables.keys() and all(
            _unchanged(known, variables[name], self.mask) for name, known in self.before.items()
        )

    def looks_again(self, earlier: Watch | None) -> bool:
        """Whether the turn touched what an `earlier` one did, all of it open to others."""
        if earlier is None or len(earlier.touched) != len(self.touched):
            return False
        pairs = zip(self.touched, earlier.touched, strict=True)
        return all(now.awaited and now.same(before) for now, before in pairs)


def _waits(m: Machine) -> tuple:
    """What counts the barriers that lanes have passed."""
    syncs = m.waits.syncs
    return np.asarray(m.waits.epoch).tobytes(), None if syncs is None else syncs.tobytes()


def _kept(value: Any) -> Any:
    """A value that can be compared later; of a local array, also what it holds now."""
    if isinstance(value, tuple):
        return tuple(_kept(v) for v in value)
    if getattr(value, "space", "") == "local":
        return _Local(value, [a.buffer.copy() for a in _arrays(value)])
    return value


class _Local(NamedTuple):
    """A local array, or several of which lanes choose one, and what they hold."""

    value: Any
    held: list[np.ndarray]


def _arrays(value: Any) -> tuple[Array, ...]:
    return (value,) if isinstance(value, Array) else value.options


def _unchanged(known: Any, value: Any, mask: Mask) -> bool:
    """Whether a variable of the lanes of `mask` holds what was kept of it."""
    if known is value:
        return True
    if isinstance(known, _Local):
        held = [a.buffer for a in _arrays(value)] if value is known.value else []
        return len(held) == len(known.held) and all(
            a.tobytes() == b.tobytes() for a, b in zip(held, known.held, strict=True)
        )
    if isinstance(known, tuple) and isinstance(value, tuple) and len(known) == len(value):
        return all(_unchanged(*pair, mask) for pair in zip(known, value, strict=True))
    numbers = all(isinstance(v, NUMBER) for v in (known, value))
    if not numbers or known.dtype != value.dtype:
        return False
    differs = np.not_equal(known, value) & (np.equal(known, known) | np.equal(value, value))
    return both(mask, differs) is False


def _same(a: Mask, b: Mask) -> bool:
    return a is b or (isinstance(a, np.ndarray) and np.array_equal(a, b))
