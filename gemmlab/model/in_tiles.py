"""A product is computed in tiles of one size: its time, and which tile or split of k takes least.

Large tiles reuse what they load, small tiles occupy more processors. The bounds of `predict` are
taken for whole tiles: more of them than processors come one after the other, fewer leave processors
idle, and small ones load more. `in_tiles` takes a `Gemm` or a `Gemms`; nothing here knows how a
kernel is written. Source of the tiles: NVIDIA Matrix Multiplication Background User's Guide,
"Typical Tile Dimensions In cuBLAS And Performance".
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from gemmlab.device import Device, architecture
from gemmlab.formats import TENSOR_FORMATS, number_format
from gemmlab.model import bounds, limiter, occupancy
from gemmlab.model.quantization import Quantization, Tile, quantization, sums_fit
from gemmlab.problem import Gemm, Product
from gemmlab.tiling import WARP

# Tiles that cuBLAS has at least, the most efficient first. Source: as above.
TILES = ((256, 128), (128, 256), (128, 128), (256, 64), (64, 256), (128, 64), (64, 128), (64, 64))

# Registers that a thread has for sums of C: half of them, the rest is for operands and addresses.
# Source: the default warp tiles of CUTLASS, 64×64 sums in float32 for 32 threads.
FOR_SUMS = 128
HOPPER = architecture("sm_90").capability


class Feed(NamedTuple):
    """Operands reach the arithmetic in one of these ways, which decide how often they are loaded.

    readers : warps that read fragments from shared memory together
    cluster : tiles of a column of C that load their part of B once for all of them
    """

    readers: int = 1
    cluster: int = 1


ALONE = Feed()  # every warp reads for itself, every tile loads for itself


def feed(device: Device, dtype: str) -> Feed:
    """Hopper's Tensor Cores: `wgmma` of four warps, and multicast to pairs of blocks; else (1, 1).

    Source: PTX ISA, `wgmma.mma_async` and `cp.async.bulk.tensor` (.multicast::cluster); clusters of
    two blocks are CUTLASS's default for sm_90.
    """
    tensor = dtype in TENSOR_FORMATS and device.compute_capability == HOPPER
    return Feed(readers=4, cluster=2) if tensor else ALONE


def warp_tiles(tile: Tile, accumulate: str = "float32", readers: int = 1) -> tuple[int, Tile]:
    """Count the parts of a tile whose fragments are read separately, and size one.

    As few warps as hold the sums, but one for each scheduler of an SM; the longer side is halved.

    >>> [warp_tiles(tile) for tile in ((256, 128), (128, 128), (64, 64))]
    [(8, (64, 64)), (4, (64, 64)), (4, (32, 32))]
    """
    (wm, wn), parts = tile, 1
    registers = wm * wn * number_format(accumulate).bytes // 4
    warps = max(occupancy.SUBPARTITIONS, -(-registers // (WARP * FOR_SUMS)))
    while parts < -(-warps // readers):
        wm, wn = (-(-wm // 2), wn) if wm >= wn else (wm, -(-wn // 2))
        parts *= 2
    return parts, (wm, wn)


def loaded(tile: Tile, dtype: str, cluster: int = 1) -> float:
    """Bytes that a tile loads from L2 for each step of 1 along k [B], s·(bm + bn/cluster)."""
    return number_format(dtype).bytes * (tile[0] + tile[1] / cluster)


def passed(tile: Tile, dtype: str, accumulate: str = "float32", readers: int = 1) -> int:
    """Bytes through shared memory for each step of 1 along k [B]: all written, then read by parts.

    s·(bm + bn) + s·parts·(wm + wn), see `warp_tiles`.
    """
    parts, (wm, wn) = warp_tiles(tile, accumulate, readers)
    return number_format(dtype).bytes * (tile[0] + tile[1] + parts * (wm + wn))


def tile_intensity(tile: Tile, dtype: str, feed: Feed = ALONE) -> dict[str, float]:
    """Operations of a tile for each byte that a memory moves [FLOP/B], at "l2" and "shared".

    Sums are in float32.

    >>> {tile: round(tile_intensity(tile, "float16")["l2"], 1) for tile in TILES[::2]}
    {(256, 128): 85.3, (128, 128): 64.0, (64, 256): 51.2, (64, 128): 42.7}
    """
    flops = 2 * tile[0] * tile[1]
    return {
        "l2": flops / loaded(tile, dtype, feed.cluster),
        "shared": flops / passed(tile, dtype, readers=feed.readers),
    }


def tile_efficiency(tile: Tile, dtype: str, device: Device) -> float:
    """Return the most of the peak that full waves of such tiles reach, 0 to 1.

    The least of 1 and intensity / ops:byte ratio, at L2 where its bandwidth is known and at shared
    memory.

    >>> from gemmlab.device import device
    >>> a100 = device("a100_80gb")
    >>> {tile: round(tile_efficiency(tile, "float16", a100), 2) for tile in TILES[1::2]}
    {(128, 256): 1.0, (256, 64): 1.0, (128, 64): 0.89, (64, 64): 0.67}
    """
    found = tile_intensity(tile, dtype, feed(device, dtype))
    roofs = limiter.slopes(device, dtype)
    return min(1.0, *(found[level] / roofs[level].ridge for level in found if level in roofs))


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
        return bounds.slowest(self.times) + self.reduction

    @property
    def limiter(self) -> Any:
        """The limiter of the speed before the reduction, in words as in `Prediction`."""
        words = bounds.RESOURCES | {"l1": "shared memory"}  # which is all that L1 does here
        return bounds.longest({words[resource]: time for resource, time in self.times.items()})

    @property
    def flops_per_second(self) -> Any:
        """Predicted rate of useful operations [FLOP/s]."""
        return self.quantization.problem.flops / self.seconds


def in_tiles(
    problem: Product, device: Device, tile: Tile, split: int = 1, per_sm: int | None = None
) -> InTiles:
    """Return the bounds of `problem` in tiles (bm, bn), with k in `split` parts.

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
    """Return the workspace of a split of k [B]: split·m·n sums; 0 where k stays whole."""
    each = number_format(problem.accumulate).bytes
    return each * split * problem.m * problem.n if split > 1 else 0 * problem.m


def choose_tile(problem: Gemm, device: Device, tiles: Iterable[Tile] = TILES) -> InTiles:
    """Return the tile to use: the first of those predicted to take least time, within `RESOLUTION`.

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
    """Return the parts of k to use, 1 to one for each SM: the fewest that take least time.

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
    """Return the first whose time is the least, to within `RESOLUTION`."""
    found = list(candidates)
    least = min(candidate.seconds for candidate in found)
    return next(c for c in found if c.seconds <= (1 + RESOLUTION) * least)
