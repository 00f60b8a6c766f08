"""Local variables, which differ between lanes after an assignment by some of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gemmlab.simt.builtins.attributes import attribute
from gemmlab.simt.builtins.warps import Offered
from gemmlab.simt.memory.array import Array
from gemmlab.simt.memory.choice import Choice, chosen
from gemmlab.simt.memory.records import Record, Records
from gemmlab.simt.numbers.masks import Mask, either, without
from gemmlab.simt.numbers.no_numbers import NUMBER, Partly, Unassigned, shown
from gemmlab.simt.numbers.values import Range, like

if TYPE_CHECKING:
    from gemmlab.simt.machine.calls import Frame
    from gemmlab.simt.machine.machine import Machine


class Variables:
    """What the rewritten assignments of a kernel call."""

    def __init__(self, m: Machine) -> None:
        self.m, self.masks, self.calls = m, m.masks, m.calls

    def unassigned(self, name: str) -> Unassigned:
        """What a local variable holds before its first assignment."""
        return Unassigned(name)

    def assign(self, old: Any, new: Any, name: str) -> Any:
        """The value of variable `name` after an assignment by the active lanes."""
        if isinstance(new, Array):
            new.name = new.name or name
        elif isinstance(new, Records):
            new.call(name)
        if isinstance(new, Unassigned):
            raise NameError(f"{new.name!r} is read before it is assigned")
        mask, frame = self.masks[-1], self.calls.frames[-1]
        if mask is self.masks[frame.depth]:  # all that have not returned
            frame.only.pop(name, None)
            return new
        # A variable that lanes share with no others is theirs alone, and can stay one number.
        if isinstance(old, Unassigned):
            frame.only[name] = mask
        elif name in frame.only:
            if frame.only[name] is mask:
                return new
            if without(mask, frame.only[name]) is not False:
                del frame.only[name]
        return merged(mask, old, new, name)

    def assign_noted(self, old: Any, new: Any, name: str) -> Any:
        """The same of a variable that lanes may read without having assigned it."""
        assigned = self.calls.frames[-1].assigned
        assigned[name] = either(assigned.get(name, False), self.masks[-1])
        return self.assign(old, new, name)

    def read(self, value: Any, name: str, line: int) -> Any:
        """The value of such a variable; a hazard if a lane reads it that has not assigned it.

        What no lane reads is False, which changes the type of nothing that it is computed with.
        """
        return self._read(value, name, line, self.calls.frames[-1])

    def read_outer(self, value: Any, name: str, line: int) -> Any:
        """The same of a variable of the function in which the one that runs is defined."""
        return self._read(value, name, line, self.calls.frames[-1].outer)

    def _read(self, value: Any, name: str, line: int, frame: Frame) -> Any:
        missing = without(self.masks[-1], frame.assigned.get(name, False))
        if isinstance(value, Unassigned):
            if missing is not False and self.m.apart is None:
                return value  # nobody has assigned it: an error wherever it is used
            value = np.False_
        if missing is not False:
            text = f"thread {{thread}} reads {name}, which it has not assigned"
            self.m.findings.hazard("uninitialised-read", line, missing, text)
        return value

    def offered(self, value: Any, name: str) -> Offered:
        """The value of such a variable for other lanes to read, of those that have assigned it."""
        has = self.m.lanes.full(self.calls.frames[-1].assigned.get(name, False))
        return Offered(np.False_ if isinstance(value, Unassigned) else value, has)

    def returned(self, value: Any, line: int) -> Any:
        """What a device function returns; a hazard if it ended without a value in some lanes."""
        if value is None and self.masks[-1] is False:
            return np.False_  # no lane has entered one of its branches
        if not isinstance(value, Partly):
            return value
        text = f"thread {{thread}} uses the value of {value.function}, which returns none there"
        self.m.findings.hazard("uninitialised-read", line, value.missing, text)
        return np.False_ if value.value is None else value.value

    def attribute(self, value: Any, name: str, line: int) -> Any:
        """`value.name`, which depends on what the value is."""
        return attribute(self.m, value, name, line)

    def unpack(self, value: Any, count: int, line: int) -> tuple:
        """The `count` items of a tuple or of an array."""
        is_array = isinstance(value, (Array, Choice))
        if not is_array and not isinstance(value, tuple):
            raise TypeError(f"{shown(value)} cannot be unpacked into {count} names")
        sizes = value.shape[0] if is_array else len(value)
        if np.any(np.not_equal(sizes, count)):
            has = f"{int(np.max(sizes))} items"
            raise ValueError(f"{shown(value)} has {has}, which are not {count} names")
        if not is_array:
            return value
        return tuple(self.m.memory.load(value, np.int64(i), line) for i in range(count))


def merged(mask: Mask, old: Any, new: Any, name: str) -> Any:
    """The value `new` in the lanes of `mask`, and `old` in the others."""
    if mask is None or new is old or isinstance(old, Unassigned):
        return new
    if mask is False:
        return old
    if isinstance(new, NUMBER) and isinstance(old, NUMBER):
        return np.where(mask, new, old)
    for kind in (tuple, Range, Record, (Array, Choice)):
        if isinstance(old, kind) != isinstance(new, kind):
            raise TypeError(f"{name!r} changes its type between branches")
    if isinstance(new, tuple):
        if len(new) != len(old):
            raise TypeError(f"{name!r} changes its length between branches")
        return like(old, (merged(mask, *pair, name) for pair in zip(old, new, strict=True)))
    if isinstance(new, Range):
        pairs = zip(old.bounds, new.bounds, strict=True)
        return Range(*(merged(mask, *pair, name) for pair in pairs))
    if isinstance(new, Record) and new.records is old.records:
        return Record(new.records, merged(mask, old.index, new.index, name))
    if isinstance(new, (Array, Choice)):
        return _merged_view(mask, old, new, name)
    if (new is None) != (old is None):
        raise TypeError(f"{name!r} is None in some threads; give it a number in all")
    return np.where(mask, new, old)


def _merged_view(mask: Mask, old: Array, new: Array, name: str) -> Array | Choice:
    """A view of one array whose offset and shape may differ between lanes; or a choice of two."""
    if new.dtype != old.dtype or new.ndim != old.ndim:
        raise TypeError(f"{name!r} changes its type between branches")
    if new.space == old.space == "local":
        return chosen(mask, old, new)
    if new.space != old.space or new.buffer is not old.buffer or new.strides != old.strides:
        raise TypeError(
            f"{name!r} is one array in some threads and another one in others; "
            "choose between elements, not between arrays"
        )
    pairs = zip(old.shape, new.shape, strict=True)
    shape = tuple(merged(mask, *pair, name) for pair in pairs)
    return new.view(shape, new.strides, merged(mask, old.offset, new.offset, name))
