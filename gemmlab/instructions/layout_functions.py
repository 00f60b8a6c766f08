"""`element` and `holds` of a layout: functions of Python, of kernels, and of the simulator."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from gemmlab.instructions.fragments import Layout

ARGUMENTS = {"element": 2, "holds": 4}


@dataclass(frozen=True, eq=False)
class LayoutFunction:
    """A function of a layout, called with integers or arrays of them.

    Of the lane's number the lower five bits count. Raises TypeError for other arguments, IndexError
    for a register that the layout does not have.
    A kernel names it as a variable outside: `element = layout.element`. With constant registers, in
    a loop that is unrolled, it costs a few operations on the lane's number, or none.
    """

    layout: Layout
    name: str

    @property
    def __name__(self) -> str:
        return self.name

    def refusal(self, register: int) -> str | None:
        """Why there is no register of this number, or None."""
        if 0 <= register < self.layout.registers:
            return None
        last = self.layout.registers - 1
        return f"{self.name}: register {register} of a fragment; use 0 to {last}"

    def __call__(self, *args: Any) -> Any:
        from gemmlab.instructions.fragments import _sum

        types = [getattr(a, "dtype", np.dtype(type(a))) for a in args]
        if len(args) != ARGUMENTS[self.name] or any(t.kind not in "iu" for t in types):
            given = ", ".join(map(str, types))
            raise TypeError(f"{self.name} takes {ARGUMENTS[self.name]} integers, not ({given})")
        lane, register, *ij = args
        refusal = self.refusal(register) if np.ndim(register) == 0 else None
        if refusal:
            raise IndexError(refusal)
        i, j = (_sum(self.layout.steps[axis], lane, register) for axis in range(2))
        return (i, j) if self.name == "element" else (i == ij[0]) & (j == ij[1])

    @cached_property
    def _numba_type_(self) -> Any:
        """The type by which Numba knows this function."""
        from gemmlab.instructions.layout_lowering import numba_type

        return numba_type(self)
