"""The roofline at each memory, and a rule of thumb, tell what limits work: math, memory or latency.

The roofline has a slope for each memory, which meets the peak at its ridge. The rule of thumb needs
nothing but a launch's size and two ratios; `predict` answers the same question from times.

Sources: NVIDIA GPU Performance Background User's Guide, "Summary"; S. Williams, A. Waterman, D.
Patterson, "Roofline: an insightful visual performance model for multicore architectures", CACM 52
(2009); C. Yang, T. Kurth, S. Williams, "Hierarchical roofline analysis for GPUs", CCPE 32 (2020).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from gemmlab import Gemm
from gemmlab.arguments import whole_number
from gemmlab.device import LEVELS, Device
from gemmlab.model import Prediction
from gemmlab.model.layers import DOT_PRODUCT, Batched, Layer

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
    """Return the memories of `device` whose bandwidth is known, the farthest first.

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
    """Return the time of arithmetic, "math", and of each memory, by amounts and rates alone [s].

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


BLOCKS_PER_SM = 4  # "at least roughly 4x higher than the number of SMs"
# "A few hundred threads each": the least that gives each of an SM's four schedulers a warp.
THREADS_PER_BLOCK = 128


@dataclass(frozen=True)
class Limiter:
    """The five steps of one case, each with its numbers.

    1. sms, ops_per_byte : the device's processors; its ratio of math to bandwidth [FLOP/B]
    2. intensity : of the operation [FLOP/B]
    3. blocks, threads : of the launch, and of a block; `parallel`: whether they suffice
    4. category : of the operation, in `gemmlab.model.layers.CATEGORIES`: what to expect
    5. `limiter` : "latency", "math" or "memory"
    """

    device: str
    sms: int
    ops_per_byte: float
    intensity: float
    blocks: int
    threads: int
    category: str

    @property
    def parallel(self) -> bool:
        """Whether blocks and threads are enough to saturate the device."""
        return self.blocks >= BLOCKS_PER_SM * self.sms and self.threads >= THREADS_PER_BLOCK

    @property
    def limiter(self) -> str:
        """The most likely limiter."""
        if not self.parallel:
            return "latency"
        return "math" if self.intensity > self.ops_per_byte else "memory"

    @property
    def steps(self) -> tuple[str, ...]:
        """The steps as sentences."""
        enough = "enough" if self.parallel else "not enough"
        side = "above" if self.intensity > self.ops_per_byte else "not above"
        usual = "memory, as a rule"
        if self.category == DOT_PRODUCT:
            usual = "math where they are large and by memory where they are small"
        return (
            f"{self.device} has {self.sms} SMs and an ops:byte ratio of {self.ops_per_byte:.1f} "
            "FLOP/B.",
            f"The operation's arithmetic intensity is {self.intensity:.4g} FLOP/B, {side} that "
            "ratio.",
            f"A launch of {self.blocks} × {self.threads} threads is {enough}: the rule asks for "
            f"{BLOCKS_PER_SM} blocks an SM, {BLOCKS_PER_SM * self.sms}, of {THREADS_PER_BLOCK} "
            "threads or more.",
            f"It is a case of: {self.category}. Such operations are limited by {usual}.",
            f"The most likely limiter is {self.limiter}.",
        )

    def __str__(self) -> str:
        return "\n".join(f"{i}. {step}" for i, step in enumerate(self.steps, 1))


def limiter(
    operation: Gemm | Batched | Layer,
    device: Device,
    blocks: int,
    threads: int,
    dtype: str = "float16",
    level: str = "dram",
) -> Limiter:
    """Go through the five steps for `operation`, launched as `blocks` of `threads` threads.

    dtype : the format whose peak counts for a `Layer`; a `Gemm` brings its own
    level : the memory that the operation's data comes from
    Raises ValueError for a level or a format without a rate on `device`.

    >>> from gemmlab.device import device
    >>> one_thread = Layer(flops=16000, bytes=16)
    >>> print(limiter(one_thread, device("v100"), blocks=1, threads=1))
    1. NVIDIA Tesla V100 SXM2 has 80 SMs and an ops:byte ratio of 138.9 FLOP/B.
    2. The operation's arithmetic intensity is 1000 FLOP/B, above that ratio.
    3. A launch of 1 × 1 threads is not enough: the rule asks for 4 blocks an SM, 320, of 128
    threads or more.
    4. It is a case of: elementwise. Such operations are limited by memory, as a rule.
    5. The most likely limiter is latency.
    """
    dtype = getattr(operation, "dtype", dtype)
    return Limiter(
        device=device.title,
        sms=device.sms,
        ops_per_byte=device.ops_per_byte(dtype, level),
        intensity=operation.intensity,
        blocks=whole_number("blocks", blocks),
        threads=whole_number("threads", threads),
        category=operation.category if isinstance(operation, Layer) else DOT_PRODUCT,
    )
