"""The order in which blocks go through C: down a band of tiles, then to the right.

Blocks that run at one time then share rows of A and columns of B, and L2 is asked for less.
"""

from collections.abc import Callable

from gemmlab import Tiling
from gemmlab.kernels.kernel import on_device

BAND = 8  # tiles that a band is high


@on_device
def place_in_bands(number, down, across):
    """Row and column, in tiles, of the tile with this number; C has `down` × `across` tiles."""
    top = number // (BAND * across) * BAND
    height, within = min(down - top, BAND), number % (BAND * across)
    return top + within % height, within // height


def corners(tiling: Tiling) -> Callable:
    """Return the device function (tile, m, n) -> row and column of C where that tile begins."""
    BM, BN, _ = tiling.block

    @on_device
    def corner(tile, m, n):
        y, x = place_in_bands(tile, (m + BM - 1) // BM, (n + BN - 1) // BN)
        return y * BM, x * BN

    return corner
