"""Blocks that share k gain and pay: the bound of each kernel that does so, over its split.

The product takes the bounds of `in_tiles`, for the steps of the SM that has most. Then come the
sums: through a workspace and a second launch (`adding_up`), or by additions in L2.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from gemmlab.device import Device
from gemmlab.formats import number_format
from gemmlab.model import schedule
from gemmlab.model.bounds import slowest
from gemmlab.model.in_tiles import adding_up, in_tiles
from gemmlab.model.occupancy import waves
from gemmlab.problem import Gemm
from gemmlab.tiling import Tiling


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
        return Sharing(blocks, rounds, longest, 0, product, _additions(problem, device, tiling))
    stored = pieces * bm * bn * number_format(problem.accumulate).bytes
    sums = float(adding_up(stored, device)) if stored else 0.0
    return Sharing(blocks, rounds, longest, stored, product, sums)


def _additions(problem: Gemm, device: Device, tiling: Tiling) -> float:
    """Time of a launch that scales C, and of an addition in L2 for each sum of each part [s]."""
    rate = device.l2_additions or float("inf")
    return (device.launch_interval or 0.0) + tiling.split * problem.m * problem.n / rate


def _parts(tiles: int, steps: int, split: int) -> tuple[int, int]:
    """Blocks that have a step, and tiles of sums: a part without a step stores zeros."""
    return tiles * min(split, steps), tiles * split if split > 1 else 0


def _shares(tiles: int, steps: int, split: int) -> tuple[int, int]:
    """Blocks that have a step, and pieces of tiles that they share."""
    dealt = schedule.stream_k(tiles, steps, split)
    return len(dealt), sum(not piece.whole for share in dealt for piece in share)


# How each kernel cuts the steps: (tiles, steps, split) -> (blocks, tiles of sums).
_CUTS: Mapping[str, Callable[[int, int, int], tuple[int, int]]] = {
    "split_k": _parts,
    "split_k_atomics": _parts,
    "stream_k": _shares,
}
