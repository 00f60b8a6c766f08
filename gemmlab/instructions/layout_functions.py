"""`element` and `holds` of a layout: functions of Python, of kernels, and of the simulator."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from gemmlab.instructions.kernel_function import KernelFunction

if TYPE_CHECKING:
    from gemmlab.instructions.fragments import Layout

ARGUMENTS = {"element": 2, "holds": 4}


@dataclass(frozen=True, eq=False)
class LayoutFunction(KernelFunction):
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
        types = [getattr(a, "dtype", np.dtype(type(a))) for a in args]
        if len(args) != ARGUMENTS[self.name] or any(t.kind not in "iu" for t in types):
            given = ", ".join(map(str, types))
            raise TypeError(f"{self.name} takes {ARGUMENTS[self.name]} integers, not ({given})")
        lane, register, *ij = args
        refusal = self.refusal(register) if np.ndim(register) == 0 else None
        if refusal:
            raise IndexError(refusal)
        i, j = (place(self.layout.steps[axis], lane, register) for axis in range(2))
        return (i, j) if self.name == "element" else (i == ij[0]) & (j == ij[1])


def place(steps: tuple[int, ...], lane: Any, register: Any) -> Any:
    """Where `register` of `lane` is along one axis: the sum of what each bit of the two adds."""
    total = (lane & 0) + (register & 0)
    for bit, step in enumerate(steps):
        number, shift = (lane, bit) if bit < 5 else (register, bit - 5)
        total = total + (number >> shift & 1) * step
    return total
