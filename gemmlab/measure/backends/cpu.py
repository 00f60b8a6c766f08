"""Run a CPU kernel with Numba, timed on this machine."""

from collections.abc import Callable
from functools import lru_cache
from time import perf_counter

import numpy as np

from gemmlab import Tiling
from gemmlab.here.detection import host
from gemmlab.kernels.kernel import Kernel
from gemmlab.measure.backends import checking, timing
from gemmlab.measure.measurement import Measurement
from gemmlab.problem import Gemm, Operands

EVICTION_BYTES = 1 << 26  # written between runs, so that each finds its operands in memory


def run(
    kernel: Kernel,
    problem: Gemm,
    operands: Operands,
    tiling: Tiling | None,
    repeats: int | None = None,
    data: str = timing.DATA,
) -> Measurement:
    """Check `kernel`, then time it with its operands out of cache."""
    function = _compiled(kernel, tiling)
    alpha, beta = problem.scalars()

    def compute(problem: Gemm, operands: Operands) -> np.ndarray:
        (alpha, beta), result = problem.scalars(), problem.poisoned(operands.c)
        function(alpha, operands.a, operands.b, beta, result)
        return result

    checked = checking.check(problem, compute, operands)  # compiles it
    start = perf_counter()
    result = compute(problem, operands)
    first = perf_counter() - start

    a, b, c = operands
    evict = np.zeros(EVICTION_BYTES, np.uint8)
    samples = []
    for _ in range(timing.repetitions(first, repeats)):
        result[...] = c
        evict += 1
        start = perf_counter()
        function(alpha, a, b, beta, result)
        samples.append(perf_counter() - start)

    device = host()
    return Measurement(
        kernel=kernel.name,
        problem=problem,
        tiling=tiling,
        backend="cpu",
        device=device.name,
        device_title=device.title,
        error=checked.error,
        tolerance=kernel.tolerance(problem),
        samples=tuple(samples),
        provenance={**timing.provenance(kernel, data), "check": checked.how},
    )


@lru_cache(maxsize=32)
def _compiled(kernel: Kernel, tiling: Tiling | None) -> Callable:
    if kernel.library:
        return kernel.build(tiling)
    try:
        from numba import njit
    except ImportError:
        raise RuntimeError(
            f'{kernel.name} needs Numba, which is not installed; pip install "gemmlab[lab]"'
        ) from None
    function = kernel.build(tiling)
    # To compile takes seconds. What is kept on disk is found by one file, which for the kernels
    # here says all of it; one of somebody's own may call functions of others.
    kept = function.__module__.startswith("gemmlab.kernels.")
    return njit(parallel=True, fastmath=True, cache=kept)(function)
