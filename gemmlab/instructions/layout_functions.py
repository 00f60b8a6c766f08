"""`element` and `holds` of a layout: functions of Python, of kernels, and of the simulator."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gemmlab.instructions.fragments import Layout


@dataclass(frozen=True, eq=False)
class LayoutFunction:
    """A function of a layout, called with integers or arrays of them.

    A kernel names it as a variable outside: `element = layout.element`. With constant registers, in
    a loop that is unrolled, it costs a few operations on the lane's number, or none.
    """

    layout: Layout
    name: str

    @property
    def __name__(self) -> str:
        return self.name

    def __call__(self, lane: Any, register: Any, *ij: Any) -> Any:
        from gemmlab.instructions.fragments import _sum

        i, j = (_sum(self.layout.steps[axis], lane, register) for axis in range(2))
        return (i, j) if self.name == "element" else (i == ij[0]) & (j == ij[1])

    @cached_property
    def _numba_type_(self) -> Any:
        """The type by which Numba knows this function."""
        from gemmlab.instructions.layout_lowering import numba_type

        return numba_type(self)
