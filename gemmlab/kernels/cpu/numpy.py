"""On a CPU, the reference: NumPy's product, which calls an optimised BLAS."""

from collections.abc import Callable

import numpy as np

from gemmlab import Tiling
from gemmlab.kernels.kernel import ON_CPUS, Kernel


def build(tiling: Tiling | None) -> Callable:
    """Return a function of (alpha, A, B, beta, C), as the kernels are."""

    def cpu_numpy(alpha, A, B, beta, C):
        if beta == 0:
            np.matmul(A, B, out=C)
            C *= alpha
        else:
            C *= beta
            C += alpha * (A @ B)

    return cpu_numpy


cpu_numpy = Kernel(
    name="cpu_numpy",
    idea="NumPy's BLAS",
    default=None,
    build=build,
    arithmetic=ON_CPUS,
    machine="cpu",
    library=True,
)
