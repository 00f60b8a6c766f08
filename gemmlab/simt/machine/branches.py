"""Branches and conditions: each puts the mask of its lanes on the stack while it lasts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gemmlab.simt.machine.variables import merged
from gemmlab.simt.numbers.masks import Mask, Masks, both, without
from gemmlab.simt.numbers.no_numbers import truth
from gemmlab.simt.report.tally import Tally


class Branches:
    """What the rewritten `if`, `and`, `or` and conditional expressions of a kernel call.

    others : for each open `if`, the lanes of its `else`
    """

    def __init__(self, masks: Masks, tally: Tally) -> None:
        self.masks, self.tally = masks, tally
        self.others: list[Mask] = []

    def if_(self, test: Any, line: int) -> bool:
        """Enter the body of an `if`; returns whether any lane does."""
        self.tally.tick(line, "inst_control")
        parent = self.masks[-1]
        then = both(parent, truth(test))
        self.masks.append(then)
        self.others.append(without(parent, then))
        return then is not False

    def else_(self) -> bool:
        """Enter its `else`; returns whether any lane does."""
        self.masks[-1] = self.others[-1]
        return self.masks[-1] is not False

    def end_if(self) -> None:
        """Leave the `if`: the lanes of both branches run again."""
        self.masks.pop()
        self.others.pop()

    def and_(self, first: Any, second: Callable) -> Any:
        """The value of `first and second`; `second` is evaluated where `first` is true."""
        return self._short(first, second, truth(first))

    def or_(self, first: Any, second: Callable) -> Any:
        """The value of `first or second`; `second` is evaluated where `first` is false."""
        return self._short(first, second, ~truth(first))

    def _short(self, first: Any, second: Callable, go: Any) -> Any:
        """The second operand in the lanes where `go` holds, and the first in the others."""
        lanes = both(self.masks[-1], go)
        if lanes is False:
            return first
        self.masks.append(lanes)
        value = second()
        self.masks.pop()
        return np.where(go, value, first)[()]

    def select(self, test: Any, then: Callable, other: Callable, line: int) -> Any:
        """The value of `then if test else other`, each evaluated where it is chosen."""
        self.tally.tick(line, "inst_control")
        holds = truth(test)
        yes, no = both(self.masks[-1], holds), both(self.masks[-1], ~holds)
        nobody = yes is False and no is False  # then any value will do
        values = []
        for lanes, branch, used in ((yes, then, yes is not False), (no, other, no is not False)):
            self.masks.append(lanes)
            values.append(branch() if used or (nobody and branch is other) else None)
            self.masks.pop()
        if yes is False:
            return values[1]
        return values[0] if no is False else merged(holds, *values[::-1], "the value", line)
