"""The time of a product in tiles of one size, and which tile or split of k takes least.

The bounds of `predict`, for whole tiles: more of them than processors come one after the other,
fewer leave processors idle, and small ones load more. `in_tiles` takes a `Gemm` or a `Gemms`.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from gemmlab import Device
from gemmlab.formats import number_format
from gemmlab.model.bounds import RESOURCES, longest, slowest
from gemmlab.model.quantization import Quantization, Tile, quantization, sums_fit
from gemmlab.model.tiles import TILES, feed, passed
from gemmlab.problem import Gemm, Product

RESOLUTION = 0.05  # bounds that differ by less say nothing of which kernel is the faster


@dataclass(frozen=True, eq=False)
class InTiles:
    """The model says this of one product, or of many, in tiles of one size.

    times : what each resource needs alone [s], as in `Prediction`
    workspace : bytes of the partial sums that a split of k stores [B]
    reduction : time to store them and to add them up by another launch [s]; both are 0 where k is
        not split
    """

    quantization: Quantization
    times: Mapping[str, Any]
    workspace: Any
    reduction: Any

    @property
    def tile(self) -> Tile:
        return self.quantization.tile

    @property
    def split(self) -> int:
        return self.quantization.split

    @property
    def seconds(self) -> Any:
        """Predicted duration [s]: the longest of `times`, and then the reduction."""
        return slowest(self.times) + self.reduction

    @property
    def limiter(self) -> Any:
        """The limiter of the speed before the reduction, in words as in `Prediction`."""
        words = RESOURCES | {"l1": "shared memory"}  # which is all that L1 does here
        return longest({words[resource]: time for resource, time in self.times.items()})

    @property
    def flops_per_second(self) -> Any:
        """Predicted rate of useful operations [FLOP/s]."""
        return self.quantization.problem.flops / self.seconds


def in_tiles(
    problem: Product, device: Device, tile: Tile, split: int = 1, per_sm: int | None = None
) -> InTiles:
    """The bounds of `problem` in tiles (bm, bn), with k in `split` parts.

    "math" : whole tiles, ⌈tiles / SMs⌉ of them on the SM that has most, each at 1/SMs of the peak
    "l1" : likewise what these tiles pass through shared memory, see `passed`
    "l2" : A once for each column of tiles, B once for each row of clusters, C once; left out where
        L2's bandwidth is not known
    "dram" : the compulsory bytes
    "latency" : a round trip to DRAM for each wave
    What a split of k takes on top of the longest of them says `adding_up`.

    Raises ValueError for a format without a rate on `device`, and as `quantization` does.

    >>> from gemmlab.device import device
    >>> p = Gemm(6912, 2048, 4096, dtype="float16")
    >>> for tile in ((256, 128), (64, 64)):
    ...     print(round(float(in_tiles(p, device("a100_80gb"), tile).flops_per_second) / 1e12))
    312
    208
    """
    q = quantization(problem, device, tile, per_sm, split)
    (bm, bn), m, n, k = q.tile, problem.m, problem.n, problem.k
    s, way = number_format(problem.dtype).bytes, feed(device, problem.dtype)
    steps = -(-k // split) * -(-q.tiles // device.sms)  # along k, of the SM that has most tiles
    each = passed(q.tile, problem.dtype, problem.accumulate, way.readers)
    round_trip = device.dram_latency or 0.0
    workspace = partial_sums(problem, split)
    moved = s * (q.across * m * k + -(-q.down // way.cluster) * k * n) + problem.array_bytes[2]
    times = {
        "math": 2 * bm * bn * steps * device.sms / device.peak_of(problem.dtype),
        "l1": each * steps * device.sms / device.shared_bandwidth,
        "dram": problem.dram_bytes / device.dram_bandwidth,
        "latency": q.waves * round_trip,
    }
    if device.l2_bandwidth:
        times["l2"] = moved / device.l2_bandwidth
    return InTiles(q, times, workspace, adding_up(workspace, device) if split > 1 else 0.0)


def adding_up(workspace: Any, device: Device) -> Any:
    """Time to store partial sums and to add them up by another launch [s].

    Tiles store them when they have nothing left to multiply, to L2 if that holds the `workspace`
    [B], else to DRAM. The launch begins `launch_interval` after the one before has ended, reads
    the workspace, and takes a round trip at least.
    """
    near = (workspace <= (device.l2_bytes or 0)) * bool(device.l2_bandwidth)
    bandwidth = near * (device.l2_bandwidth or 0) + (1 - near) * device.dram_bandwidth
    passing, round_trip = workspace / bandwidth, device.dram_latency or 0.0
    return passing + (device.launch_interval or 0.0) + np.maximum(passing, round_trip)


def partial_sums(problem: Product, split: int) -> Any:
    """The workspace of a split of k [B]: split·m·n sums; 0 where k stays whole."""
    each = number_format(problem.accumulate).bytes
    return each * split * problem.m * problem.n if split > 1 else 0 * problem.m


def choose_tile(problem: Gemm, device: Device, tiles: Iterable[Tile] = TILES) -> InTiles:
    """The tile to use: the first of those predicted to take least time, within `RESOLUTION`.

    >>> from gemmlab.device import device
    >>> for n in (512, 1024, 4096):
    ...     print(n, choose_tile(Gemm(n, n, n, dtype="float16"), device("a100_80gb")).tile)
    512 (64, 64)
    1024 (128, 128)
    4096 (256, 128)
    """
    sizes = _that_fit(tiles, problem, device)
    return _fastest(in_tiles(problem, device, tile) for tile in sizes)


def choose_split(problem: Gemm, device: Device, tile: Tile) -> InTiles:
    """The parts of k to use, 1 to one for each SM: the fewest that take least time.

    It is the least itself: of one tile in more or fewer parts the bounds say which is the faster.
    """
    parts = range(1, min(device.sms, problem.k) + 1)
    return min((in_tiles(problem, device, tile, s) for s in parts), key=lambda one: one.seconds)


def choose(problem: Gemm, device: Device, tiles: Iterable[Tile] = TILES) -> InTiles:
    """The tile and the parts of k to use together: as few parts, then as large a tile as can be.

    >>> from gemmlab.device import device
    >>> for shape in ((4096, 4096, 4096), (64, 64, 8192)):
    ...     best = choose(Gemm(*shape), device("h200"))
    ...     print(best.tile, best.split > 1)
    (256, 128) False
    (64, 64) True
    """
    sizes, parts = _that_fit(tiles, problem, device), range(1, min(device.sms, problem.k) + 1)
    return _fastest(in_tiles(problem, device, tile, split) for split in parts for tile in sizes)


def _that_fit(tiles: Iterable[Tile], problem: Gemm, device: Device) -> list[Tile]:
    """The tiles whose sums an SM can hold: in float64 those of 256×128 take all its registers."""
    return [tile for tile in tiles if sums_fit(device, tile, problem.accumulate)]


def _fastest(candidates: Iterable[InTiles]) -> InTiles:
    """The first whose time is the least, to within `RESOLUTION`."""
    found = list(candidates)
    least = min(candidate.seconds for candidate in found)
    return next(c for c in found if c.seconds <= (1 + RESOLUTION) * least)
