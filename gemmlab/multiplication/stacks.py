"""Stacks of matrices where they are: an address, a shape and strides, of any library's memory."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

ITEM = 4  # bytes of a float32
SECTOR = 16  # bytes of the widest access


@dataclass(frozen=True, eq=False)
class Stack:
    """Matrices of float32, (batch, rows, columns), as strides lead through memory.

    owner : what keeps the memory, or what the address counts from; address : of the first element
    strides : [B], of matrices, rows and columns; transposing and cutting change nothing else
    """

    owner: Any
    address: int
    shape: tuple[int, int, int]
    strides: tuple[int, int, int]

    @classmethod
    def of(
        cls, owner: Any, address: int, shape: tuple[int, ...], strides: tuple[int, ...]
    ) -> Stack:
        """An array of two or three dimensions."""
        if len(shape) == 2:
            shape, strides = (1, *shape), (shape[0] * strides[0], *strides)
        return cls(owner, address, shape, strides)

    @property
    def transposed(self) -> Stack:
        """The transposed matrices, in the same place."""
        (batch, rows, columns), (far, down, across) = self.shape, self.strides
        return replace(self, shape=(batch, columns, rows), strides=(far, across, down))

    @property
    def is_transposed(self) -> bool:
        """Whether neighbours in memory are neighbours in a column."""
        _, down, across = self.strides
        return 0 < abs(down) < abs(across) and self.shape[2] > 1

    @property
    def aligned(self) -> bool:
        """Whether rows begin at multiples of 16 bytes, and their elements are neighbours."""
        far, down, across = self.strides
        starts = self.address, down, far if self.shape[0] > 1 else 0
        return across == ITEM and all(s % SECTOR == 0 for s in starts) and (
            self.shape[2] * ITEM % SECTOR == 0
        )  # fmt: skip

    def cut(self, *parts: tuple[int, int]) -> Stack:
        """The part from `begin` to `end` along each of the three dimensions."""
        begins = [begin for begin, _ in parts]
        address = self.address + sum(b * s for b, s in zip(begins, self.strides, strict=True))
        return replace(self, address=address, shape=tuple(end - begin for begin, end in parts))

    @property
    def matrices(self) -> list[Stack]:
        """Each matrix alone."""
        whole = [(0, size) for size in self.shape[1:]]
        return [self.cut((i, i + 1), *whole) for i in range(self.shape[0])]

    def interface(self, dimensions: int) -> dict[str, Any]:
        """The array interface of it, version 3, of NumPy's kind and of CUDA's.

        dimensions : 3, or 2 of one matrix alone
        """
        return {
            "shape": self.shape[-dimensions:],
            "strides": self.strides[-dimensions:],
            "typestr": np.dtype(np.float32).str,
            "data": (self.address, False),
            "version": 3,
        }


def contiguous(shape: tuple[int, ...], itemsize: int = ITEM) -> tuple[int, ...]:
    """Strides of rows without gaps [B]."""
    return tuple(itemsize * math.prod(shape[axis + 1 :]) for axis in range(len(shape)))
