"""The arrays that the launches of a kernel share, beside A, B and C."""

from __future__ import annotations

import numpy as np

from gemmlab.formats import to_memory
from gemmlab.kernels.kernel import Kernel
from gemmlab.problem import Gemm
from gemmlab.tiling import Tiling


def workspace(kernel: Kernel, problem: Gemm, tiling: Tiling | None) -> tuple[np.ndarray, ...]:
    """They hold NaN: what reads more of them than was stored gives a wrong result."""
    stated = kernel.workspace(problem, tiling)
    return tuple(np.full(shape, to_memory(np.nan, dtype)) for shape, dtype in stated)
