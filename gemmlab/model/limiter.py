"""A rule of thumb tells in five steps what limits an operation: latency, math or memory.

Source: NVIDIA GPU Performance Background User's Guide, "Summary". `predict` answers the same
question from times; the rule needs nothing but a launch's size and two ratios.
"""

from dataclasses import dataclass

from gemmlab import Device, Gemm
from gemmlab.arguments import whole_number
from gemmlab.model.layers import DOT_PRODUCT, Batched, Layer

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
