"""Loops, and the lanes that leave them, one iteration after the other for all lanes at once."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from gemmlab.simt.masks import Mask, both, either, without
from gemmlab.simt.memory import Array
from gemmlab.simt.values import Range, Together


class StepLimitError(Exception):
    """A loop ran longer than the step budget allows."""


class Loops:
    """What the rewritten loops of a kernel call; a part of `ControlFlow`."""

    masks: list[Mask]
    others: list[Mask]

    def __init__(self, max_steps: int) -> None:
        self.loops: list[int] = []  # for each open loop, the depth of its mask
        self.broken: list[Mask] = []  # for each open loop, the lanes that met `break`
        self.turns: list[list[int]] = []  # for each open loop, its iterations so far and its line
        self.max_steps, self.steps = max_steps, 0

    def hazard(self, kind: str, line: int, lanes: Mask, other: int | None, text: str) -> None:
        """Report that the first of `lanes` is at fault, and `other`, a thread of its block."""
        raise NotImplementedError

    def load(self, array: Any, index: Any, line: int) -> Any:
        """The value of an element for each lane."""
        raise NotImplementedError

    def tick(self, line: int, kind: str) -> None:
        """Count a warp instruction of the active lanes."""
        raise NotImplementedError

    def begin_loop(self) -> None:
        """Enter a loop."""
        self.masks.append(self.masks[-1])
        self.loops.append(len(self.masks) - 1)
        self.broken.append(False)
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
            for value in self._items(values, line):
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

    def _items(self, values: Any, line: int) -> Iterator[Any]:
        """What a tuple, an array, `enumerate` or `zip` gives, one after the other."""
        if isinstance(values, tuple):
            return iter(values)
        if isinstance(values, Together):
            return zip(*(self._items(source, line) for source in values.sources), strict=False)
        if isinstance(values, Range) and all(np.ndim(b) == 0 for b in values.bounds):
            return (np.int64(i) for i in range(*(int(b) for b in values.bounds)))
        if not isinstance(values, Array):
            raise TypeError(f"line {line}: cannot iterate over {values!r}; use range")
        return (self.load(values, np.int64(i), line) for i in range(int(values.shape[0])))

    def end_iteration(self) -> None:
        """Let the lanes that met `continue` run again."""
        self.masks.pop()

    def end_loop(self) -> None:
        """Leave the loop: the lanes that met `break` run again."""
        self.masks.pop()
        self.loops.pop()
        self.turns.pop()
        self.broken.pop()

    def loop_else(self) -> bool:
        """Leave the loop for its `else`, which ends as an `if` does; whether any lane enters."""
        broken = self.broken[-1]
        self.end_loop()
        self.masks.append(without(self.masks[-1], broken))
        self.others.append(False)
        return self.masks[-1] is not False

    def break_(self) -> None:
        """Stop the active lanes until the end of the loop."""
        self.broken[-1] = either(self.broken[-1], self.masks[-1])
        self._drop(self.loops[-1])

    def continue_(self) -> None:
        """Stop the active lanes until the end of the iteration."""
        self._drop(self.loops[-1] + 1)

    def _drop(self, depth: int) -> None:
        lanes, before, after = self.masks[-1], None, None
        for i in range(depth, len(self.masks)):  # the same masks stay the same
            if i == depth or self.masks[i] is not before:
                before, after = self.masks[i], without(self.masks[i], lanes)
            self.masks[i] = after

    def _step(self, line: int) -> None:
        self.tick(line, "inst_control")
        self.steps += 1
        self.turns[-1] = [self.turns[-1][0] + 1, line]
        if self.steps > self.max_steps:
            _, line = max(self.turns, key=lambda turn: turn[0])  # not a short loop inside it
            text = f"more than max_steps={self.max_steps} loop iterations: does this loop end?"
            self.hazard("step-limit", line, self.masks[-1], None, text)
            raise StepLimitError
