"""Tiles, or parts of them, are dealt out to the processors of a GPU, step after step.

A tile of C takes ⌈k/bk⌉ *steps* along k. A block has a list of pieces, each some steps of one tile;
`schedule` gives blocks to SMs in their order, the next one to whichever SM is free first. All steps
take equally long, and an SM computes one block at a time.

`sharing` bounds what a kernel whose blocks share k gains and pays. The product takes the bounds of
`in_tiles`, for the steps of the SM that has most. Then come the sums: through a workspace and a
second launch (`adding_up`), or by additions in L2.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from heapq import heapify, heapreplace
from itertools import pairwise

from gemmlab import Device, Gemm, Tiling
from gemmlab.arguments import whole_number
from gemmlab.formats import number_format
from gemmlab.model.bounds import slowest
from gemmlab.model.in_tiles import adding_up, in_tiles
from gemmlab.model.occupancy import waves


@dataclass(frozen=True)
class Piece:
    """The steps first … last − 1 of a tile, which takes `of` steps in all."""

    tile: int
    first: int
    last: int
    of: int

    @property
    def steps(self) -> int:
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
    """Give the blocks of a split of k, each with a part of one tile, in the order of their numbers.

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
    """Give the blocks of Stream-K: the steps of all tiles in one row, in shares equal to one step.

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
    """Return the share of the SMs' time until then in which they compute, 0 to 1."""
    return sum(one.piece.steps for one in placed) / (sms * ends(placed))


def sums_stored(placed: Iterable[Placed]) -> int:
    """Tiles of sums that are stored to be added up: pieces that are not whole tiles."""
    return sum(not one.piece.whole for one in placed)


def _whole(**sizes: int) -> list[int]:
    return [whole_number(name, size) for name, size in sizes.items()]


@dataclass(frozen=True)
class Sharing:
    """Blocks share the k of one product.

    blocks : of the launch that multiplies, those without a step left out
    waves : in which the SMs take them, one at a time each
    longest : steps along k of the SM that has most
    stored : bytes of sums that wait to be added up [B]; 0 where they are added in L2, or whole
    product, sums : time to multiply, and then to add up [s]
    """

    blocks: int
    waves: int
    longest: int
    stored: int
    product: float
    sums: float

    @property
    def seconds(self) -> float:
        """Predicted duration [s]: first the product, then the sums."""
        return self.product + self.sums


def sharing(kernel: str, problem: Gemm, device: Device, tiling: Tiling) -> Sharing:
    """Predict what a kernel of `gemmlab.kernels.SPLIT_K` gains and pays with `tiling`'s split.

    Raises ValueError for the name of another kernel, and as `in_tiles` does.

    >>> from gemmlab import Tiling, device
    >>> from gemmlab.problem import Gemm
    >>> p, four = Gemm(1024, 1024, 8192), Tiling(block=(128, 256, 16), split=4)
    >>> found = sharing("split_k", p, device("h200"), four)
    >>> found.blocks, found.waves, found.longest, found.stored
    (128, 1, 128, 16777216)
    """
    if kernel not in _CUTS:
        raise ValueError(f"{kernel!r} does not share k; use one of {', '.join(_CUTS)}")
    across, down = tiling.grid(problem)
    tiles, steps = across * down, tiling.steps(problem)
    bm, bn, _ = tiling.block
    blocks, pieces = _CUTS[kernel](tiles, steps, tiling.split)
    rounds = int(waves(device, blocks, 1))
    longest = rounds * -(-tiles * steps // blocks)
    if kernel != "stream_k":
        longest = rounds * -(-steps // tiling.split)
    whole = in_tiles(problem, device, (bm, bn))
    unsplit = steps * -(-tiles // device.sms)  # of the SM that has most
    of_steps = {name: whole.times[name] * longest / unsplit for name in ("math", "l1")}
    product = float(slowest({**whole.times, **of_steps}))
    if kernel == "split_k_atomics":
        # A launch scales C, and each sum of each part is an addition in L2.
        scaled, rate = device.launch_interval or 0.0, device.l2_additions or float("inf")
        additions = scaled + tiling.split * problem.m * problem.n / rate
        return Sharing(blocks, rounds, longest, 0, product, additions)
    stored = pieces * bm * bn * number_format(problem.accumulate).bytes
    sums = float(adding_up(stored, device)) if stored else 0.0
    return Sharing(blocks, rounds, longest, stored, product, sums)


def _parts(tiles: int, steps: int, split: int) -> tuple[int, int]:
    """Blocks that have a step, and tiles of sums: a part without a step stores zeros."""
    return tiles * min(split, steps), tiles * split if split > 1 else 0


def _shares(tiles: int, steps: int, split: int) -> tuple[int, int]:
    """Blocks that have a step, and pieces of tiles that they share."""
    dealt = stream_k(tiles, steps, split)
    return len(dealt), sum(not piece.whole for share in dealt for piece in share)


# How each kernel cuts the steps: (tiles, steps, split) -> (blocks, tiles of sums).
_CUTS: Mapping[str, Callable[[int, int, int], tuple[int, int]]] = {
    "split_k": _parts,
    "split_k_atomics": _parts,
    "stream_k": _shares,
}
