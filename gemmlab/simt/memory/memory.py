"""The memory of a batch of blocks, as a rewritten kernel reads and writes it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gemmlab.simt.memory import access
from gemmlab.simt.memory.array import Array, Record, Records
from gemmlab.simt.memory.batch import MemoryBatch
from gemmlab.simt.memory.choice import Choice, chosen
from gemmlab.simt.numbers.lanes import IdentityCache, Mask, both, either
from gemmlab.simt.numbers.values import NUMBER, NoNumber, number, shown
from gemmlab.simt.races.shared_shadow import SharedShadow
from gemmlab.simt.syntax.source import unsupported


class Memory:
    """The arrays of a batch of blocks, and caches for accesses that loops repeat.

    global_arrays : the arguments that are arrays; compare : how lanes compare two values
    shared : shared arrays, by the place in the source that makes them, shape and type
    static_bytes : of the shared arrays whose size the source states
    dynamic : the shadow of dynamic shared memory
    again : transactions of accesses
    together : stores of the branches of an `if` that are counted as one, by its place
    watchers : called with each access that is not counted, before it is made
    located : elements by array and index; extents : least and greatest value of an index
    """

    def __init__(self, m: MemoryBatch, global_arrays: list[Array], compare: Callable) -> None:
        self.m, self.global_arrays, self.compare = m, global_arrays, compare
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
            return self._load_chosen(array, index, line)
        if isinstance(array, Record):
            return self.load(array.field(index), array.index, line)
        if isinstance(array, Records):
            return self._load_records(array, index, line)
        if isinstance(array, NoNumber):
            array.refuse()
        raise TypeError(f"{shown(array)} is no array, and has no elements")

    def load_again(self, array: Any, index: Any, line: int) -> Any:
        """An element that the thread has in a register: checked, but not counted."""
        if not isinstance(array, Array):
            return self.load(array, index, line)
        return access.load(self.m, array, index, line, counted=False)

    def _load_chosen(self, array: Choice, index: Any, line: int) -> Any:
        """The element of each lane's own array; a view where dimensions are left open."""
        result: Any = None
        for option, lanes in array.in_turn(self.m):
            value = access.load(self.m, option, index, line)
            if result is None:
                result = value
            elif isinstance(value, Array):
                result = chosen(lanes, result, value)
            else:
                result = np.where(lanes, value, result)
        return array.dtype.type(0) if result is None else result

    def _load_records(self, array: Records, index: Any, line: int) -> Any:
        """A record, a field of all records, or a view of some of them."""
        if isinstance(index, str):
            return array.field(index)
        parts = index if isinstance(index, tuple) else (index,)
        if len(parts) == array.ndim and not any(isinstance(part, slice) for part in parts):
            return Record(array, index)
        views = {name: self.load(field, index, line) for name, field in array.fields.items()}
        return Records(array.name, views)

    def store(self, array: Any, index: Any, value: Any, line: int) -> None:
        """Set `array[index]` in each active lane, counted and checked."""
        if isinstance(array, Record):
            return self.store(array.field(index), array.index, value, line)
        if isinstance(array, Records):
            return self._store_record(array, index, value, line)
        if isinstance(index, str):
            source, what = self.m.calls.source, f"an assignment to .{index}"
            raise unsupported(source, line, what, "assign to a name or an element")
        if not isinstance(array, (Array, Choice)):
            raise TypeError(f"{shown(array)} has no elements to be assigned")
        if not isinstance(value, NUMBER):
            value = _stored(value)
        if isinstance(array, Array):
            access.store(self.m, array, index, value, line)
            return
        for option, _ in array.in_turn(self.m):
            access.store(self.m, option, index, value, line)

    def _store_record(self, array: Records, index: Any, value: Any, line: int) -> None:
        """Copy a whole record to an element of an array of records."""
        if not isinstance(value, Record):
            first = next(iter(array.fields))
            raise TypeError(f"assign to one field at a time, as in {array.name}[i].{first}")
        for name, field in array.fields.items():
            self.store(field, index, self.load(value, name, line), line)

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
        found: Any = np.bool_(False)
        if isinstance(items, tuple):
            for item in items:
                found = found | self.compare("Eq", value, item, line)
            return found
        masks = self.m.masks
        for i in range(int(np.max(items.shape[0]))):
            masks.append(both(masks[-1], np.less(i, items.shape[0]) & ~found))
            if masks[-1] is not False:
                same = self.compare("Eq", value, self.load(items, np.int64(i), line), line)
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
