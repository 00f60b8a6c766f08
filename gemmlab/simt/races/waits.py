"""Counts of the barriers that a batch has passed, which say what accesses are in order."""

from __future__ import annotations

from typing import Any

import numpy as np

from gemmlab.simt.numbers.masks import Mask


class Waits:
    """The barriers that a batch of `blocks` blocks has passed.

    epoch : barriers so far: a number, or one for each block, (blocks, 1), where they differ
    syncs : calls of `syncwarp` by each warp, (blocks, warps); None before the first one
    absent, line : the lanes that did not come to the last wait of the whole grid, and its line
    """

    def __init__(self, blocks: int) -> None:
        self.blocks = blocks
        self.epoch: Any = 0
        self.syncs: np.ndarray | None = None
        self.absent: Mask = False
        self.line = 0

    def epochs(self, row: np.ndarray) -> np.ndarray:
        """The barriers so far of the blocks in these rows."""
        return np.broadcast_to(self.epoch, (self.blocks, 1))[row, 0]
