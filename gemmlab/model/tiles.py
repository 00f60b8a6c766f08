"""Tiles of C: how often they load what they multiply, and how much of the peak that leaves.

Large tiles reuse what they load, small tiles occupy more processors: `gemmlab.model.in_tiles`
weighs the two. Nothing here knows how a kernel is written.
Source: NVIDIA Matrix Multiplication Background User's Guide, "Typical Tile Dimensions In cuBLAS And
Performance".
"""

from typing import NamedTuple

from gemmlab.device import Device, architecture
from gemmlab.formats import TENSOR_FORMATS, number_format
from gemmlab.model.occupancy import SUBPARTITIONS
from gemmlab.model.quantization import Tile
from gemmlab.model.roofline import slopes
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
    warps = max(SUBPARTITIONS, -(-registers // (WARP * FOR_SUMS)))
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
    """The most of the peak that full waves of such tiles reach, 0 to 1.

    The least of 1 and intensity / ops:byte ratio, at L2 where its bandwidth is known and at shared
    memory.

    >>> from gemmlab.device import device
    >>> a100 = device("a100_80gb")
    >>> {tile: round(tile_efficiency(tile, "float16", a100), 2) for tile in TILES[1::2]}
    {(128, 256): 1.0, (256, 64): 1.0, (128, 64): 0.89, (64, 64): 0.67}
    """
    found = tile_intensity(tile, dtype, feed(device, dtype))
    roofs = slopes(device, dtype)
    return min(1.0, *(found[level] / roofs[level].ridge for level in found if level in roofs))
