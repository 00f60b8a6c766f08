"""Branches, conditions, assignments and returns: which lanes run is a stack of masks.

Lanes that leave a loop or the kernel are dropped from every mask of the stack down to where they
come back.
"""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np

from gemmlab.simt.loops import Loops
from gemmlab.simt.masks import Mask, both, without
from gemmlab.simt.memory import Array
from gemmlab.simt.overflow import Wrapped
from gemmlab.simt.source import unsupported
from gemmlab.simt.values import Range, Unassigned


class ControlFlow(Loops):
    """What the rewritten `if`, loops, `and`, `or` and assignments of a kernel call."""

    def __init__(self, base: Mask, max_steps: int) -> None:
        super().__init__(max_steps)
        self.masks: list[Mask] = [base]
        self.others: list[Mask] = []  # for each open `if`, the lanes of its `else`
        self.frames = [SimpleNamespace(depth=0, value=None)]  # the kernel, then device functions
        self.place: tuple = ()  # of the last call: file, line, column
        self.line = 0

    def unassigned(self, name: str) -> Unassigned:
        """What a local variable holds before its first assignment."""
        return Unassigned(name)

    def call(self, place: tuple, function: Callable, /, *args: Any, **keywords: Any) -> Any:
        """Call a function of the kernel, and remember from where."""
        self.place, self.line = place, place[1]
        value = function(*args, **keywords)
        if type(value) is Wrapped and not value.line:
            value.line = place[1]
        return value

    def assign(self, old: Any, new: Any, name: str, line: int) -> Any:
        """The value of variable `name` after an assignment by the active lanes."""
        if isinstance(new, Array):
            new.name = new.name or name
        if isinstance(new, Unassigned):
            raise NameError(f"line {line}: {new.name!r} is read before it is assigned")
        if self.masks[-1] is self.masks[self.frames[-1].depth]:  # all that have not returned
            return new
        return self._merged(old, new, name, line)

    def _merged(self, old: Any, new: Any, name: str, line: int) -> Any:
        """The value `new` in the active lanes, and `old` in the others."""
        mask = self.masks[-1]
        if mask is None or new is old or isinstance(old, Unassigned):
            return new
        if mask is False:
            return old
        for kind in (tuple, Range, Array):
            if isinstance(old, kind) != isinstance(new, kind):
                raise TypeError(f"line {line}: {name!r} changes its type between branches")
        if isinstance(new, tuple):
            if len(new) != len(old):
                raise TypeError(f"line {line}: {name!r} changes its length between branches")
            return tuple(self._merged(*pair, name, line) for pair in zip(old, new, strict=True))
        if isinstance(new, Range):
            pairs = zip(old.bounds, new.bounds, strict=True)
            return Range(*(self._merged(*pair, name, line) for pair in pairs))
        if isinstance(new, Array):
            return self._assign_view(old, new, name, line)
        return np.where(mask, new, old)

    def _assign_view(self, old: Array, new: Array, name: str, line: int) -> Array:
        """A view whose place may differ from lane to lane; of one and the same memory."""
        if new.space == "local":
            return new
        if new.buffer is not old.buffer or new.strides != old.strides:
            raise TypeError(
                f"line {line}: {name!r} is one array in some threads and another one in others; "
                "choose between elements, not between arrays"
            )
        shape = (self._merged(*pair, name, line) for pair in zip(old.shape, new.shape, strict=True))
        offset = self._merged(old.offset, new.offset, name, line)
        return new.view(tuple(shape), new.strides, offset)

    def unpack(self, value: Any, count: int, line: int) -> tuple:
        """The `count` parts of a tuple."""
        if not isinstance(value, tuple) or len(value) != count:
            raise ValueError(f"line {line}: cannot unpack {value!r} into {count} names")
        return value

    def if_(self, test: Any, line: int) -> bool:
        """Enter the body of an `if`; whether any lane does."""
        self.tick(line, "inst_control")
        parent = self.masks[-1]
        then = both(parent, np.not_equal(test, 0))
        self.masks.append(then)
        self.others.append(without(parent, then))
        return then is not False

    def else_(self) -> bool:
        """Enter its `else`; whether any lane does."""
        self.masks[-1] = self.others[-1]
        return self.masks[-1] is not False

    def end_if(self) -> None:
        """Leave the `if`: the lanes of both branches run again."""
        self.masks.pop()
        self.others.pop()

    def return_(self, value: Any, line: int) -> None:
        """Stop the active lanes until the end of the function, which gets `value` for them."""
        frame = self.frames[-1]
        if value is not None:
            if len(self.frames) == 1:
                raise unsupported(frame.source, line, "a value that a kernel returns",
                                  "write it to an array")  # fmt: skip
            earlier = Unassigned("") if frame.value is None else frame.value
            frame.value = self._merged(earlier, value, "return value", line)
        self._drop(frame.depth)

    # Conditions

    def not_(self, value: Any) -> Any:
        """Lanes where `value` is zero."""
        return np.equal(value, 0)

    def and_(self, first: Any, second: Callable) -> Any:
        """The value of `first and second`; `second` is evaluated where `first` is true."""
        return self._short(first, second, np.not_equal(first, 0))

    def or_(self, first: Any, second: Callable) -> Any:
        """The value of `first or second`; `second` is evaluated where `first` is false."""
        return self._short(first, second, np.equal(first, 0))

    def _short(self, first: Any, second: Callable, go: Any) -> Any:
        """The second operand in the lanes that `go` on to evaluate it, and the first in others."""
        lanes = both(self.masks[-1], go)
        if lanes is False:
            return first
        self.masks.append(lanes)
        value = second()
        self.masks.pop()
        return np.where(go, value, first)[()]

    def select(self, test: Any, then: Callable, other: Callable, line: int) -> Any:
        """The value of `then if test else other`, each evaluated where it is chosen."""
        self.tick(line, "inst_control")
        yes = both(self.masks[-1], np.not_equal(test, 0))
        no = both(self.masks[-1], np.equal(test, 0))
        nobody = yes is False and no is False  # then any value will do
        values = []
        for lanes, branch, used in ((yes, then, yes is not False), (no, other, no is not False)):
            self.masks.append(lanes)
            values.append(branch() if used or (nobody and branch is other) else None)
            self.masks.pop()
        if yes is False:
            return values[1]
        return values[0] if no is False else _chosen(np.not_equal(test, 0), *values)


def _chosen(test: Any, then: Any, other: Any) -> Any:
    """A value, or each part of a tuple, by lane."""
    if isinstance(then, tuple) and isinstance(other, tuple) and len(then) == len(other):
        return tuple(_chosen(test, *pair) for pair in zip(then, other, strict=True))
    return np.where(test, then, other)
