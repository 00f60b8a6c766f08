"""Tilings that the simulator runs in an instant; the default of each rung is not one of them."""

from gemmlab import kernels
from gemmlab.tiling import Tiling

SMALL = {
    kernels.naive.name: (Tiling(block=(8, 8, 8)), Tiling(block=(16, 16, 16))),
    kernels.coalesced.name: (Tiling(block=(8, 8, 8)), Tiling(block=(16, 16, 16))),
    kernels.tiled.name: (Tiling.square(8), Tiling.square(16)),
    # Thread tiles that are high, wide, odd, and the whole block; one block is not of whole warps.
    kernels.register_tiled.name: (
        Tiling(block=(32, 16, 4), thread=(4, 2)),
        Tiling(block=(16, 32, 8), thread=(2, 8)),
        Tiling(block=(24, 20, 3), thread=(3, 5)),
        Tiling(block=(8, 8, 8), thread=(8, 8)),
    ),
    kernels.vectorised.name: (
        Tiling(block=(32, 32, 8), thread=(8, 4)),
        Tiling(block=(24, 40, 12), thread=(4, 8)),
        Tiling(block=(64, 32, 4), thread=(4, 4)),
    ),
    # One warp and two, side by side and below each other; both steps along k; rings of 2 to 4.
    kernels.warp_tiled.name: (
        Tiling(block=(32, 32, 8), warp=(32, 16), thread=(4, 4)),
        Tiling(block=(64, 32, 16), warp=(32, 32), thread=(8, 4)),
        Tiling(block=(32, 32, 8), warp=(32, 32), thread=(4, 8)),
    ),
    kernels.pipelined.name: (
        Tiling(block=(32, 32, 8), warp=(32, 16), thread=(4, 4), stages=2),
        Tiling(block=(64, 32, 16), warp=(32, 32), thread=(8, 4), stages=2),
        Tiling(block=(32, 32, 8), warp=(32, 32), thread=(4, 8), stages=4),
    ),
}
