"""Replay of stored measurements: a GPU's times on a machine that has no GPU."""

from __future__ import annotations

from gemmlab.device import RECORDED
from gemmlab.kernels.kernel import Kernel
from gemmlab.measure import records
from gemmlab.measure.measurement import Measurement
from gemmlab.problem import Gemm
from gemmlab.tiling import Tiling


def run(
    kernel: Kernel,
    problem: Gemm,
    *,
    tiling: Tiling | None = None,
    device: str = RECORDED,
) -> Measurement:
    """The recorded measurement of `kernel` on `problem` and `device`.

    Raises LookupError, which lists the nearest that are recorded, where there is none.
    """
    return records.find(kernel, problem, tiling, device)
