"""Functions that kernels call by name, and how a compiler learns of them."""

from __future__ import annotations

from functools import cached_property
from typing import Any


class KernelFunction:
    """An instruction, a function of a layout, or a view of shared memory.

    What it does is said without a compiler. How a compiler does it lies in a folder of its own:
    `numba_cuda` for Numba-CUDA, which asks for the attribute below when it first meets the name.
    """

    @cached_property
    def _numba_type_(self) -> Any:
        """The type by which Numba-CUDA knows this function."""
        from gemmlab.instructions.numba_cuda import numba_type

        return numba_type(self)
