"""The roofline at each memory: how fast work of some intensity can run.

Sources: S. Williams, A. Waterman, D. Patterson, "Roofline: an insightful visual performance model
for multicore architectures", CACM 52 (2009); C. Yang, T. Kurth, S. Williams, "Hierarchical roofline
analysis for GPUs", CCPE 32 (2020).
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from gemmlab.device import LEVELS, Device
from gemmlab.model import Prediction

# The entry of `Prediction.bytes` that counts a memory's traffic; L1 is asked for global memory.
TRAFFIC = {"dram": "dram", "l2": "l2", "l1": "global", "shared": "shared"}


class Slope(NamedTuple):
    """A memory has a slope in a roofline: its bandwidth [B/s], up to the roof [FLOP/B]."""

    bandwidth: float
    ridge: float

    @property
    def bytes_per_flop(self) -> float:
        """Bytes that arrive in the time of one operation at the peak, 1 / ridge [B/FLOP]."""
        return 1 / self.ridge


def slopes(device: Device, dtype: str) -> dict[str, Slope]:
    """The memories of `device` whose bandwidth is known, the farthest first.

    Raises ValueError where the device has no rate for `dtype`.

    >>> from gemmlab.device import device
    >>> {level: round(s.ridge, 1) for level, s in slopes(device("v100"), "float16").items()}
    {'dram': 138.9, 'l2': 40.3, 'l1': 8.0, 'shared': 8.0}
    """
    return {
        level: Slope(device.bandwidth_of(level), device.ops_per_byte(dtype, level))
        for level in LEVELS
        if getattr(device, f"{level}_bandwidth") is not None
    }


def attainable(device: Device, dtype: str, intensity: Any, level: str = "dram") -> Any:
    """The roof over `intensity` [FLOP/B], a number or an array: min(peak, intensity × bandwidth).

    >>> from gemmlab.device import device
    >>> float(attainable(device("v100"), "float16", 124.1)) / 1e12      # TFLOP/s, of 125
    111.69
    """
    return np.minimum(device.peak_of(dtype), intensity * device.bandwidth_of(level))


def intensities(prediction: Prediction) -> Mapping[str, float]:
    """Useful operations for each byte that a memory moves [FLOP/B], where it moves any.

    Without a kernel there is "dram" alone: how often data is moved again nearer to the arithmetic
    depends on the kernel.
    """
    moved = {level: prediction.bytes.get(TRAFFIC[level], 0) for level in LEVELS}
    return {level: prediction.flops / count for level, count in moved.items() if count}


def clocks(prediction: Prediction, device: Device) -> dict[str, float]:
    """The time of arithmetic, "math", and of each memory, by amounts and rates alone [s].

    W / P, and Q / B of every memory that moves bytes and whose bandwidth is known. The longest is a
    bound; `predict` counts L1's requests as well, which may take longer than their bytes.

    >>> from gemmlab import device, kernels, predict
    >>> from gemmlab.problem import Gemm
    >>> h200 = device("h200")
    >>> found = clocks(predict(Gemm(4096, 4096, 4096), h200, kernels.tiled), h200)
    >>> max(found, key=found.get), round(found["shared"] * 1e3, 1)
    ('shared', 17.5)
    """
    known = slopes(device, prediction.problem.dtype)
    moved = {level: prediction.bytes.get(TRAFFIC[level], 0) for level in known}
    memories = {level: count / known[level].bandwidth for level, count in moved.items() if count}
    return {"math": prediction.flops / device.peak_of(prediction.problem.dtype), **memories}
