"""Which lanes run: a stack of masks, pushed by branches and loops.

A mask is None for all lanes, False for none, else a boolean array that broadcasts to (blocks,
threads). Lanes that leave a loop or the kernel are dropped from every mask of the stack down to
where they come back.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np

from gemmlab.simt.memory import Array
from gemmlab.simt.values import Range, Unassigned

Mask = Any  # None, False, or a boolean array (blocks | 1, threads | 1)


def both(a: Mask, b: Any) -> Mask:
    """The lanes of mask `a` for which the condition `b` holds."""
    if b is None or a is False:
        return a
    if np.ndim(b) == 0:
        return a if b else False
    lanes = b if a is None else a & b
    if not lanes.any():
        return False
    return None if lanes.all() else lanes


def without(a: Mask, lanes: Mask) -> Mask:
    """The lanes of mask `a` that are not among `lanes`."""
    if lanes is False or a is False:
        return a
    return False if lanes is None else both(a, ~lanes)


class StepLimitError(Exception):
    """A loop ran longer than the step budget allows."""


class ControlFlow:
    """What the rewritten `if`, loops, `and`, `or` and assignments of a kernel call."""

    def __init__(self, base: Mask, max_steps: int) -> None:
        self.masks: list[Mask] = [base]
        self.others: list[Mask] = []  # for each open `if`, the lanes of its `else`
        self.loops: list[int] = []  # for each open loop, the depth of its mask
        self.turns: list[list[int]] = []  # for each open loop, its iterations so far and its line
        self.frames = [SimpleNamespace(depth=0, value=None)]  # the kernel, then device functions
        self.max_steps, self.steps = max_steps, 0
        self.place: tuple = ()  # of the last call: file, line, column
        self.line = 0

    def hazard(self, kind: str, line: int, lanes: Mask, other: int | None, text: str) -> None:
        """Report that the first of `lanes` is at fault, and `other`, a thread of its block."""
        raise NotImplementedError

    def load(self, array: Any, index: Any, line: int) -> Any:
        """The value of an element for each lane."""
        raise NotImplementedError

    def unassigned(self, name: str) -> Unassigned:
        """What a local variable holds before its first assignment."""
        return Unassigned(name)

    def call(self, place: tuple, function: Callable, /, *args: Any, **keywords: Any) -> Any:
        """Call a function of the kernel, and remember from where."""
        self.place, self.line = place, place[1]
        return function(*args, **keywords)

    def assign(self, old: Any, new: Any, name: str, line: int) -> Any:
        """The value of variable `name` after an assignment by the active lanes."""
        if isinstance(new, Array):
            new.name = new.name or name
        if isinstance(new, Unassigned):
            raise NameError(f"line {line}: {new.name!r} is read before it is assigned")
        mask = self.masks[-1]
        if mask is None or isinstance(old, Unassigned):
            return new
        if mask is False:
            return old
        for kind in (tuple, Range, Array):
            if isinstance(old, kind) != isinstance(new, kind):
                raise TypeError(f"line {line}: {name!r} changes its type between branches")
        if isinstance(new, tuple):
            if len(new) != len(old):
                raise TypeError(f"line {line}: {name!r} changes its length between branches")
            return tuple(self.assign(*pair, name, line) for pair in zip(old, new, strict=True))
        if isinstance(new, Range):
            pairs = zip(old.bounds, new.bounds, strict=True)
            return Range(*(self.assign(*pair, name, line) for pair in pairs))
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
        shape = (self.assign(*pair, name, line) for pair in zip(old.shape, new.shape, strict=True))
        offset = self.assign(old.offset, new.offset, name, line)
        return new.view(tuple(shape), new.strides, offset)

    def unpack(self, value: Any, count: int, line: int) -> tuple:
        """The `count` parts of a tuple."""
        if not isinstance(value, tuple) or len(value) != count:
            raise ValueError(f"line {line}: cannot unpack {value!r} into {count} names")
        return value

    def tick(self, line: int, kind: str) -> None:
        """Count a warp instruction of the active lanes."""
        raise NotImplementedError

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

    def begin_loop(self) -> None:
        """Enter a loop."""
        self.masks.append(self.masks[-1])
        self.loops.append(len(self.masks) - 1)
        self.turns.append([0, 0])

    def while_(self, test: Any, line: int) -> bool:
        """Whether any lane begins another iteration."""
        self._step(line)
        self.masks[-1] = both(self.masks[-1], np.not_equal(test, 0))
        self.masks.append(self.masks[-1])
        if self.masks[-1] is False:
            self.masks.pop()
            return False
        return True

    def iterate(self, values: Any, line: int) -> Iterator[Any]:
        """The values of the variable of a `for` loop, one iteration after the other."""
        if not isinstance(values, Range):
            values = values if isinstance(values, tuple) else self._elements(values, line)
            for value in values:
                if self.masks[-1] is False:
                    return
                self.masks.append(self.masks[-1])
                yield value
            return
        start, stop, step = values.start, values.stop, values.step
        if np.ndim(start) == np.ndim(stop) == np.ndim(step) == 0:
            if step == 0:
                raise ValueError(f"line {line}: the step of range is 0")
            for value in range(int(start), int(stop), int(step)):
                if self.masks[-1] is False:
                    return
                self._step(line)
                self.masks.append(self.masks[-1])
                yield np.int64(value)
            return
        value = np.asarray(start)
        while True:
            more = np.where(np.greater(step, 0), value < stop, value > stop)
            self.masks[-1] = both(self.masks[-1], more)
            if self.masks[-1] is False:
                return
            self._step(line)
            self.masks.append(self.masks[-1])
            yield value
            value = value + step

    def _elements(self, array: Any, line: int) -> Iterator[Any]:
        if not isinstance(array, Array):
            raise TypeError(f"line {line}: cannot iterate over {array!r}; use range")
        return (self.load(array, np.int64(i), line) for i in range(int(array.shape[0])))

    def end_iteration(self) -> None:
        """Let the lanes that met `continue` run again."""
        self.masks.pop()

    def end_loop(self) -> None:
        """Leave the loop: the lanes that met `break` run again."""
        self.masks.pop()
        self.loops.pop()
        self.turns.pop()

    def break_(self) -> None:
        """Stop the active lanes until the end of the loop."""
        self._drop(self.loops[-1])

    def continue_(self) -> None:
        """Stop the active lanes until the end of the iteration."""
        self._drop(self.loops[-1] + 1)

    def return_(self, value: Any, line: int) -> None:
        """Stop the active lanes until the end of the function, which gets `value` for them."""
        frame = self.frames[-1]
        if value is not None:
            earlier = Unassigned("") if frame.value is None else frame.value
            frame.value = self.assign(earlier, value, "return value", line)
        self._drop(frame.depth)

    def _drop(self, depth: int) -> None:
        lanes = self.masks[-1]
        for i in range(depth, len(self.masks)):
            self.masks[i] = without(self.masks[i], lanes)

    def _step(self, line: int) -> None:
        self.tick(line, "inst_control")
        self.steps += 1
        self.turns[-1] = [self.turns[-1][0] + 1, line]
        if self.steps > self.max_steps:
            _, line = max(self.turns, key=lambda turn: turn[0])  # not a short loop inside it
            text = f"more than max_steps={self.max_steps} loop iterations: does this loop end?"
            self.hazard("step-limit", line, self.masks[-1], None, text)
            raise StepLimitError

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
        return values[0] if no is False else np.where(np.not_equal(test, 0), *values)
