"""Counts of the barriers that a batch has passed, which say what accesses are in order."""

from __future__ import annotations

from typing import Any

import numpy as np

from gemmlab.model.transactions import WARP
from gemmlab.simt.numbers.masks import Mask
from gemmlab.simt.races.visits import Now


class Waits:
    """The barriers that a batch of `blocks` blocks, of `threads` threads, has passed.

    epoch : barriers so far: a number, or one for each block, (blocks, 1), where they differ
    syncs : calls of `syncwarp` in each warp, (blocks, warps); None before the first one
    heard : the last of these calls of each lane that each lane of its warp knows of, directly or by
        others, (blocks · warps · 32, 32); None while all calls are for whole warps
    alike : whether all blocks have waited alike
    absent, line : the lanes that did not come to the last wait of the whole grid, and its line
    """

    def __init__(self, blocks: int, threads: int) -> None:
        self.blocks, self.threads = blocks, threads
        self.epoch: Any = 0
        self.syncs: np.ndarray | None = None
        self.heard: np.ndarray | None = None
        self.alike = True
        self.absent: Mask = False
        self.line = 0

    def epochs(self, row: np.ndarray) -> np.ndarray:
        """The barriers so far of the blocks in these rows."""
        return np.broadcast_to(self.epoch, (self.blocks, 1))[row, 0]

    def now(self, line: int, places: np.ndarray) -> Now:
        """The moment of an access in a line by the lanes at these places."""
        epoch = self.epoch if isinstance(self.epoch, int) else _one(self.epoch)
        if epoch is None:
            epoch = self.epochs(places // self.threads)
        if self.syncs is None:
            return Now(epoch, 0, line)
        sync = _one(self.syncs)
        if sync is None:
            sync = self.syncs.reshape(-1)[places // WARP]
        return Now(epoch, sync, line, self.heard, None if self.heard is None else places)

    def sync_warps(self, on: np.ndarray, named: np.ndarray, alike: bool) -> None:
        """Let the lanes `on`, (blocks, warps, 32), wait each for those that it has `named`.

        named : (blocks, warps, 32, 32), or True where all wait for all; alike : whether blocks are
        """
        if self.syncs is None:
            self.syncs = np.zeros(on.shape[:2], np.int64)
        if self.heard is None and named is not True:
            own = np.repeat(self.syncs.ravel(), WARP).reshape(-1, 1)
            self.heard = np.repeat(own, WARP, axis=1)
        self.alike &= alike
        self.syncs += on.any(axis=-1)
        if self.heard is not None:
            heard = self.heard.reshape(*on.shape, WARP)
            lanes = np.broadcast_to(named, heard.shape) & on[..., :, None]
            known = heard.copy()
            for lane in range(WARP):  # each lane tells those that name it what it knows
                told = np.where(lanes[..., lane, None], heard[..., lane, None, :], 0)
                np.maximum(known, told, out=known)
            np.copyto(heard, np.where(lanes, self.syncs[..., None, None], known))


def _one(counts: Any) -> int | None:
    """The number that all counts are, if they are all the same."""
    if np.ndim(counts) == 0:
        return int(counts)
    first = int(counts.flat[0])
    return first if (counts == first).all() else None
