"""Who does how much: the bytes that each thread loads and stores, array by array."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gemmlab.simt.memory.array import Array
from gemmlab.simt.numbers.lanes import Dim3
from gemmlab.simt.numbers.masks import Mask

if TYPE_CHECKING:
    from gemmlab.simt.machine.machine import Machine


class Shares:
    """The share of each thread in the traffic of a launch.

    bytes : (op, array's name) -> bytes by block and thread, (blocks, threads)
    shared_bytes : shared arrays of a fixed size that a block has
    """

    def __init__(self, grid: Dim3, block: Dim3) -> None:
        self.shape = (int(np.prod(grid)), int(np.prod(block)))
        self.bytes: dict[tuple[str, str], np.ndarray] = {}
        self.shared_bytes = 0

    def watch(self, m: Machine, line: int, op: str, array: Array, at: Any, mask: Mask) -> None:
        """Add one access."""
        key = (op, array.name)
        if key not in self.bytes:
            self.bytes[key] = np.zeros(self.shape, np.int64)
        threads = m.lanes.full(mask)[:, : self.shape[1]]
        self.bytes[key][m.lanes.blocks[:, 0]] += threads * array.itemsize
        self.shared_bytes = m.memory.static_bytes

    def of(self, op: str, *arrays: str) -> np.ndarray:
        """The bytes that each thread loads from or stores to `arrays`, (blocks, threads)."""
        found = [self.bytes[op, name] for name in arrays if (op, name) in self.bytes]
        return sum(found, np.zeros(self.shape, np.int64))
