"""The ladder: each rung one idea, each rung one file. This is the only list of kernels."""

from __future__ import annotations

from gemmlab.kernels.kernel import Kernel
from gemmlab.kernels.naive import naive
from gemmlab.kernels.tiled import tiled

LADDER = (naive, tiled)

__all__ = ["LADDER", "Kernel", "naive", "tiled"]
