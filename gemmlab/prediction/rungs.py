"""The time of the course's own kernels, from their compiled code."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from gemmlab.device import Device
from gemmlab.device import device as load_device
from gemmlab.kernels.kernel import Kernel
from gemmlab.prediction.time import Forecast, extended, forecast
from gemmlab.prediction.compiling import listing
from gemmlab.problem import Gemm
from gemmlab.sass.listing import Listing
from gemmlab.sm.effects import Effects
from gemmlab.tiling import Tiling

SHORT, LONG = 8, 16  # steps along k after which a loop is in its stride, and twice as many
ALIGNED = 32  # elements: rows of A whose lengths differ by multiples begin at sectors alike


def rung_listing(
    kernel: Kernel, problem: Gemm, tiling: Tiling | None = None, device: str | Device = "h200"
) -> Listing:
    """The listing of a rung for a problem, a tiling and a GPU."""
    target, tiling = load_device(device), kernel.choose(tiling)
    capability = target.compute_capability
    options = {
        "launch_bounds": math.prod(kernel.launch(problem, tiling)[1]),
        **kernel.compile(tiling),
    }
    return listing(
        kernel.function(problem, tiling, capability), _arguments(problem),
        "sm_{}{}".format(*capability), options.pop("max_registers", None), **options,
    )  # fmt: skip


def predict_rung(
    problem: Gemm,
    device: str | Device,
    kernel: Kernel,
    tiling: Tiling | None = None,
    effects: Effects = Effects(),
) -> Forecast:
    """Predict the time of a rung of the ladder from its compiled code.

    Two shorter products are simulated where k is long: beyond them, each step takes the same.
    Raises what `predict` and `predict_time` raise.
    """
    target, tiling = load_device(device), kernel.choose(tiling)
    kernel.check_problem(problem)
    code = rung_listing(kernel, problem, tiling, target)
    step = math.lcm(tiling.block[2] * max(1, tiling.stages), ALIGNED)
    short, longer = (problem.k % step + step * n * _steps(step, tiling) for n in (1, 2))

    def at(k: int) -> Forecast:
        shape = replace(problem, k=k)
        return forecast(
            code, target, *kernel.launch(shape, tiling), *_arguments(shape),
            shared_bytes=kernel.dynamic_shared_bytes(shape, tiling), effects=effects,
        )  # fmt: skip

    if problem.k <= longer:
        return at(problem.k)
    return extended(at(short), at(longer), (problem.k - short) / (longer - short))


def _steps(step: int, tiling: Tiling) -> int:
    """Multiples of `step` that make `SHORT` steps of the block along k."""
    return max(1, SHORT * tiling.block[2] // step)


def _arguments(problem: Gemm) -> tuple:
    """Scalars and matrices of zeros, which take no memory until they are written to."""
    alpha, beta = problem.scalars()
    a, b, c = map(np.zeros, problem.shapes, problem.memory)
    return alpha, a, b, beta, c
