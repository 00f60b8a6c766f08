"""Tiles, or parts of them, are dealt out to the processors of a GPU, step after step.

A tile of C takes ⌈k/bk⌉ *steps* along k. A block has a list of pieces, each some steps of one tile;
`schedule` gives blocks to SMs in their order, the next one to whichever SM is free first. All steps
take equally long, and an SM computes one block at a time.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from heapq import heapify, heapreplace
from itertools import pairwise

from gemmlab.arguments import whole_number


@dataclass(frozen=True)
class Piece:
    """The steps first … last − 1 of a tile, which takes `of` steps in all."""

    tile: int
    first: int
    last: int
    of: int

    @property
    def steps(self) -> int:
        """The number of steps of the piece."""
        return self.last - self.first

    @property
    def whole(self) -> bool:
        """Whether it is all of its tile, so that no sums are left to be added."""
        return self.steps == self.of


@dataclass(frozen=True)
class Placed:
    """A piece of a block on an SM, from `start` on; times are in steps."""

    sm: int
    block: int
    start: int
    piece: Piece

    @property
    def end(self) -> int:
        """When its last step is done."""
        return self.start + self.piece.steps


def split_k(tiles: int, steps: int, split: int = 1) -> list[list[Piece]]:
    """The blocks of a split of k, each with a part of one tile, in the order of their numbers.

    With a split of 1 they are whole tiles, which is called data-parallel. Parts without a step,
    where there are more parts than steps, are left out.

    >>> [(p.tile, p.first, p.last) for (p,) in split_k(tiles=2, steps=5, split=2)]
    [(0, 0, 2), (1, 0, 2), (0, 2, 5), (1, 2, 5)]
    """
    tiles, steps, split = _whole(tiles=tiles, steps=steps, split=split)
    cuts = [part * steps // split for part in range(split + 1)]
    return [
        [Piece(tile, first, last, steps)]
        for first, last in pairwise(cuts)
        if last > first
        for tile in range(tiles)
    ]


def stream_k(tiles: int, steps: int, blocks: int) -> list[list[Piece]]:
    """The blocks of Stream-K: the steps of all tiles in one row, in shares equal to one step.

    >>> [[(p.tile, p.first, p.last) for p in pieces] for pieces in stream_k(3, 4, blocks=2)]
    [[(0, 0, 4), (1, 0, 2)], [(1, 2, 4), (2, 0, 4)]]
    """
    tiles, steps, blocks = _whole(tiles=tiles, steps=steps, blocks=blocks)
    total, dealt = tiles * steps, []
    blocks = min(blocks, total)  # none without a step
    for block in range(blocks):
        at, end = block * total // blocks, (block + 1) * total // blocks
        pieces = []
        while at < end:
            tile, first = divmod(at, steps)
            last = min(steps, first + end - at)
            pieces.append(Piece(tile, first, last, steps))
            at += last - first
        dealt.append(pieces)
    return dealt


def schedule(blocks: Iterable[list[Piece]], sms: int) -> list[Placed]:
    """Place every piece on an SM and in time, in the order of the blocks.

    >>> whole = split_k(tiles=3, steps=4)
    >>> [(placed.sm, placed.start, placed.end) for placed in schedule(whole, sms=2)]
    [(0, 0, 4), (1, 0, 4), (0, 4, 8)]
    """
    (sms,) = _whole(sms=sms)
    free = [(0, sm) for sm in range(sms)]
    heapify(free)
    placed = []
    for block, pieces in enumerate(blocks):
        time, sm = free[0]
        for piece in pieces:
            placed.append(Placed(sm, block, time, piece))
            time = placed[-1].end
        heapreplace(free, (time, sm))
    return placed


def ends(placed: Iterable[Placed]) -> int:
    """When the last piece is done [steps]."""
    return max(one.end for one in placed)


def busy(placed: list[Placed], sms: int) -> float:
    """The share of the SMs' time until then in which they compute, 0 to 1."""
    return sum(one.piece.steps for one in placed) / (sms * ends(placed))


def sums_stored(placed: Iterable[Placed]) -> int:
    """Tiles of sums that are stored to be added up: pieces that are not whole tiles."""
    return sum(not one.piece.whole for one in placed)


def _whole(**sizes: int) -> list[int]:
    return [whole_number(name, size) for name, size in sizes.items()]
