"""A block of four warpgroups: two multiply tiles, one splits them, and one copies them."""

from __future__ import annotations

from collections.abc import Mapping

from gemmlab.instructions.warpgroup import WARPGROUP
from gemmlab.kernels.kernel import Dim
from gemmlab.kernels.tensor_core.warp_specialised import configure as configure_three
from gemmlab.kernels.tensor_core.warp_specialised import threads as threads_of_three
from gemmlab.problem import Gemm
from gemmlab.tiling import Tiling

# Registers of a thread that multiplies, splits or copies: 2·224 + 40 + 24 is four times the 128
# that all begin with.
MANY, FEW, FEWEST = 224, 40, 24


def threads(tiling: Tiling) -> int:
    """Threads of a block: as in *warp_specialised*, and a warpgroup more."""
    return threads_of_three(tiling) + WARPGROUP


def configure(problem: Gemm, tiling: Tiling) -> tuple[Dim, Dim]:
    """(grid, block): as many blocks as *warp_specialised* has."""
    grid, _ = configure_three(problem, tiling)
    return grid, (threads(tiling), 1)


def compile_options(tiling: Tiling) -> Mapping[str, object]:
    """Registers for one block of an SM, which `setmaxnreg` deals out anew."""
    return {"launch_bounds": (threads(tiling), 1)}
