"""The memory of a batch of blocks, as a rewritten kernel reads and writes it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from gemmlab.simt.memory import access, choice, records
from gemmlab.simt.memory.array import Array
from gemmlab.simt.memory.choice import Choice
from gemmlab.simt.memory.identity_cache import IdentityCache
from gemmlab.simt.memory.records import Record, Records
from gemmlab.simt.numbers.masks import Mask, both, either
from gemmlab.simt.numbers.no_numbers import NUMBER, NoNumber, shown
from gemmlab.simt.numbers.values import number
from gemmlab.simt.syntax.source import unsupported

if TYPE_CHECKING:
    from gemmlab.simt.machine.machine import Machine
    from gemmlab.simt.races.shared_shadow import SharedShadow


class Memory:
    """The arrays of a batch of blocks, and caches for accesses that loops repeat.

    global_arrays : the arguments that are arrays
    shared : shared arrays, by the place in the source that makes them, shape and type
    static_bytes : of the shared arrays whose size the source states
    dynamic : the shadow of dynamic shared memory
    again : transactions of accesses
    together : stores of the branches of an `if` that are counted as one, by its place
    watchers : called with each access that is not counted, before it is made
    located : elements by array and index; extents : least and greatest value of an index
    """

    def __init__(self, m: Machine, global_arrays: list[Array]) -> None:
        self.m, self.global_arrays = m, global_arrays
        self.shared: dict[tuple, Array] = {}
        self.watchers: list[Callable] = []
        self.static_bytes = 0
        self.dynamic: SharedShadow | None = None
        self.together: dict[tuple, list[tuple[int, Array, Any, Mask]]] = {}
        self.located, self.again = IdentityCache(256), IdentityCache(256)
        self.extents: dict[int, tuple[np.ndarray, int, int]] = {}

    def load(self, array: Any, index: Any, line: int) -> Any:
        """The element `array[index]` of each lane, counted and checked."""
        if isinstance(array, Array):
            return access.load(self.m, array, index, line)
        if isinstance(array, tuple):
            return self._item(array, index)
        if isinstance(array, Choice):
            return choice.load(self.m, array, index, line)
        if isinstance(array, (Records, Record)):
            return records.load(self, array, index, line)
        if isinstance(array, NoNumber):
            array.refuse()
        raise TypeError(f"{shown(array)} is no array, and has no elements")

    def load_again(self, array: Any, index: Any, line: int) -> Any:
        """An element that the thread has in a register: checked, but not counted."""
        if not isinstance(array, Array):
            return self.load(array, index, line)
        return access.load(self.m, array, index, line, counted=False)

    def load_once(self, array: Any, index: Any, line: int, loops: int) -> Any:
        """An element that is loaded in the first turn of so many loops around it."""
        first = all(loop.turns == 1 for loop in self.m.loops.open[-loops:])
        return (self.load if first else self.load_again)(array, index, line)

    def store(self, array: Any, index: Any, value: Any, line: int) -> None:
        """Set `array[index]` in each active lane, counted and checked."""
        if isinstance(array, (Records, Record)):
            return records.store(self, array, index, value, line)
        if isinstance(index, str):
            source, what = self.m.calls.source, f"an assignment to .{index}"
            raise unsupported(source, line, what, "assign to a name or an element")
        if not isinstance(array, (Array, Choice)):
            raise TypeError(f"{shown(array)} has no elements to be assigned")
        if not isinstance(value, NUMBER):
            value = _stored(value)
        (choice if isinstance(array, Choice) else access).store(self.m, array, index, value, line)

    def store_together(self, array: Any, index: Any, value: Any, line: int, place: tuple) -> None:
        """As `store`, of a branch whose store is one with that of the other branch."""
        if not isinstance(array, Array) or not isinstance(value, NUMBER):
            return self.store(array, index, value, line)
        at, mask = access.store(self.m, array, index, value, line, counted=False)
        if mask is not False:
            self.together.setdefault(place, []).append((line, array, at, mask))

    def count_together(self, place: tuple) -> None:
        """Count the stores of both branches of the `if` at `place` as one."""
        branches = self.together.pop(place, [])
        if branches:
            (line, array, at, mask), *others = branches
            for _, _, there, lanes in others:
                at, mask = np.where(self.m.lanes.full(mask), at, there), either(mask, lanes)
            access.count_store(self.m, array, at, mask, line)

    def _item(self, items: tuple, index: Any) -> Any:
        """The item of a tuple of each active lane; a negative index counts from its end."""
        count, lanes = len(items), self.m.lanes
        if np.ndim(index) == 0 and -count <= index < count:
            return items[int(index)]
        bad = np.less(index, -count) | np.greater_equal(index, count)
        outside = both(self.m.masks[-1], bad)
        if outside is not False:
            wrong = lanes.spread(index)[lanes.first(outside)]
            raise IndexError(f"there is no item {wrong} in a tuple of {count}")
        if len({np.asarray(item).dtype for item in items}) > 1:
            raise TypeError("lanes pick from a tuple whose items differ in type")
        return np.choose(index % count, items)

    def contains(self, value: Any, items: Any, line: int) -> Any:
        """`value in items`, of a tuple, or of an array, of which lanes look until they find it."""
        if not isinstance(items, (tuple, Array)):
            raise TypeError(f"`in` takes a tuple or an array, not {shown(items)}; write a loop")
        compare = self.m.operations.compare
        found: Any = np.bool_(False)
        if isinstance(items, tuple):
            for item in items:
                found = found | compare("Eq", value, item, line)
            return found
        masks = self.m.masks
        for i in range(int(np.max(items.shape[0]))):
            masks.append(both(masks[-1], np.less(i, items.shape[0]) & ~found))
            if masks[-1] is not False:
                same = compare("Eq", value, self.load(items, np.int64(i), line), line)
                found = found | (same & self.m.lanes.full(masks[-1]))
            masks.pop()
        return found

    def extent(self, index: Any) -> tuple[int, int]:
        """The least and the greatest value of an index; kept for the last few arrays."""
        if np.ndim(index) == 0:
            return int(index), int(index)
        known = self.extents.get(id(index))
        if known is None:  # keeping the array keeps its id from being used again
            if len(self.extents) >= 32:
                self.extents.clear()
            known = self.extents[id(index)] = (index, int(index.min()), int(index.max()))
        return known[1], known[2]


def _stored(value: Any) -> Any:
    """A number that Python has, such as `x.ndim`, as one of NumPy; an error for what is none."""
    if isinstance(value, NoNumber):
        value.refuse()
    if not isinstance(value, (bool, int, float, complex)):
        loop = "; write a loop over elements" if isinstance(value, (Array, Choice)) else ""
        none = "; what has no `return` gives None" if value is None else ""
        raise TypeError(f"{shown(value)} is not a number, and cannot be stored{none}{loop}")
    return number(value)
