"""Loops: all lanes make an iteration together, and a loop ends when no lane is left in it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from gemmlab.simt.machine.spinning import (
    FIRST,
    PATIENCE,
    Awaited,
    Grain,
    Spin,
    SpinsError,
    Watch,
)
from gemmlab.simt.memory.array import Array
from gemmlab.simt.memory.memory import Memory
from gemmlab.simt.numbers.masks import Mask, Masks, both, either, without
from gemmlab.simt.numbers.no_numbers import shown, truth
from gemmlab.simt.numbers.values import Range, Together
from gemmlab.simt.report.findings import Findings
from gemmlab.simt.report.tally import Tally


class StepLimitError(Exception):
    """A loop ran longer than the step budget allows."""


@dataclass
class Loop:
    """An open loop: the depth of its mask in the stack; the lanes that have met `break`.

    turns, line : its iterations so far, and where it stands; endless : whether it is a `while`
    look : the turn that is to be watched; gap : turns from one to the next, more each time
    watch, earlier : the turn that is watched, and one before
    """

    depth: int
    gap: int
    broken: Mask = False
    turns: int = 0
    line: int = 0
    endless: bool = False
    look: int = 0
    watch: Watch | None = None
    earlier: Watch | None = None

    def unwatch(self) -> None:
        """Watch no turn, for now."""
        if self.watch is not None:
            self.watch.end()
            self.watch, self.look = None, self.turns + self.gap


def spins(_: Spin) -> None:
    """What a whole batch does about lanes that spin: have the launch run again, block by block."""
    raise SpinsError(Grain("block"))


class Loops:
    """What the rewritten loops of a kernel call.

    open : the loops that run, the innermost last; steps : the turns of a `while`, with those of
        every `while` in it
    wait : called where lanes spin; returns when another turn may be different
    first : the turn of a `while` that is watched first; patience : the turn from which on it may
        spin although its variables change
    """

    def __init__(
        self, masks: Masks, tally: Tally, findings: Findings, memory: Memory, max_steps: int
    ) -> None:
        self.masks, self.tally, self.findings, self.memory = masks, tally, findings, memory
        self.max_steps, self.steps = max_steps, 0
        self.open: list[Loop] = []
        self.wait: Callable[[Spin], None] = spins
        self.first, self.patience = FIRST, PATIENCE

    def await_(
        self, line: int, mask: Mask, condition: Callable[[], bool], words: Callable[[], str]
    ) -> None:
        """Let others run until a condition holds for the lanes of `mask`; words : which one."""
        while not condition():
            self.wait(Awaited(line, mask, [], True, condition, words))

    def divide(self) -> None:
        """Have the launch run again with each warpgroup by itself."""
        raise SpinsError(Grain("warpgroup"))

    def begin(self) -> None:
        """Enter a loop."""
        self.masks.append(self.masks[-1])
        self.open.append(Loop(len(self.masks) - 1, self.first, look=self.first))

    def while_(self, test: Any, line: int) -> bool:
        """Whether any lane begins another iteration."""
        loop = self._step(line)
        self.masks[-1] = both(self.masks[-1], truth(test))
        if self.masks[-1] is False:
            return False
        if loop.turns >= loop.look:
            self._look(loop, sys._getframe(1).f_locals)
        self.masks.append(self.masks[-1])
        return True

    def _look(self, loop: Loop, variables: Mapping[str, Any]) -> None:
        """Watch the next turn, or judge the last one, after which lanes may have to wait."""
        watch, loop.watch = loop.watch, None
        if watch is None:
            self._watch(loop, variables)
            return
        watch.end()
        idle = watch.idle()
        if idle and watch.repeats(variables):
            self.wait(Spin(loop.line, watch.mask, watch.touched, exact=True))
            loop.gap = 1
            self._watch(loop, variables)
        elif idle and loop.turns >= self.patience and loop.earlier is None:
            loop.earlier = watch
            self._watch(loop, variables)
        else:
            loop.gap *= 2
            if idle and watch.looks_again(loop.earlier):
                self.wait(Spin(loop.line, watch.mask, watch.touched, exact=False))
                loop.gap = FIRST
            loop.look, loop.earlier = loop.turns + loop.gap, None

    def _watch(self, loop: Loop, variables: Mapping[str, Any]) -> None:
        loop.watch, loop.look = Watch(self.memory.m, variables), loop.turns + 1

    def iterate(self, values: Any, line: int) -> Iterator[Any]:
        """The values of the variable of a `for` loop, one iteration after the other."""
        if not isinstance(values, Range):
            for value in self._items(values, line):
                if self.masks[-1] is False:
                    return
                self.open[-1].turns += 1
                self.masks.append(self.masks[-1])
                yield value
            return
        start, stop, step = values.start, values.stop, values.step
        if np.ndim(start) == np.ndim(stop) == np.ndim(step) == 0:
            if step == 0:
                raise ValueError("the step of range is 0")
            for value in range(int(start), int(stop), int(step)):
                if self.masks[-1] is False:
                    return
                self._turn(line)
                self.masks.append(self.masks[-1])
                yield np.int64(value)
            return
        value = np.asarray(start)
        while True:
            more = np.where(np.greater(step, 0), value < stop, value > stop)
            self.masks[-1] = both(self.masks[-1], more)
            if self.masks[-1] is False:
                return
            self._turn(line)
            self.masks.append(self.masks[-1])
            yield value
            value = value + step

    def _items(self, values: Any, line: int) -> Iterator[Any]:
        """The items of a tuple, an array, `enumerate` or `zip`."""
        if isinstance(values, tuple):
            return iter(values)
        if isinstance(values, Together):
            return zip(*(self._items(source, line) for source in values.sources), strict=False)
        if isinstance(values, Range) and all(np.ndim(b) == 0 for b in values.bounds):
            return (np.int64(i) for i in range(*(int(b) for b in values.bounds)))
        if not isinstance(values, Array):
            raise TypeError(f"cannot iterate over {shown(values)}; use range")
        return (self.memory.load(values, np.int64(i), line) for i in range(int(values.shape[0])))

    def end_iteration(self) -> None:
        """Let the lanes that met `continue` run again."""
        self.masks.pop()

    def end(self) -> Mask:
        """Leave the loop: the lanes that met `break` run again; returns their mask."""
        self.masks.pop()
        loop = self.open.pop()
        loop.unwatch()
        if not any(around.endless for around in self.open):
            self.steps = 0
        return loop.broken

    def else_(self) -> bool:
        """Leave the loop for its `else`; returns whether any lane enters."""
        broken = self.end()
        self.masks.append(without(self.masks[-1], broken))
        return self.masks[-1] is not False

    def end_else(self) -> None:
        """Leave the `else` of a loop."""
        self.masks.pop()

    def break_(self) -> None:
        """Stop the active lanes until the end of the loop."""
        loop = self.open[-1]
        loop.broken = either(loop.broken, self.masks[-1])
        self.masks.drop(loop.depth)

    def continue_(self) -> None:
        """Stop the active lanes until the end of the iteration."""
        self.masks.drop(self.open[-1].depth + 1)

    def _turn(self, line: int) -> Loop:
        """Count a turn of the innermost loop."""
        self.tally.tick(line, "inst_control")
        loop = self.open[-1]
        loop.turns, loop.line = loop.turns + 1, line
        return loop

    def _step(self, line: int) -> Loop:
        """Count a turn of the innermost loop, a `while`, which must not make too many."""
        loop = self._turn(line)
        self.steps, loop.endless = self.steps + 1, True
        if self.steps > self.max_steps:
            whiles = [loop for loop in self.open if loop.endless]
            longest = max(whiles, key=lambda loop: loop.turns)  # not a short loop inside it
            text = f"more than max_steps={self.max_steps} loop iterations: does this loop end?"
            self.findings.hazard("step-limit", longest.line, self.masks[-1], text)
            raise StepLimitError
        return loop
