"""Predictions: what a GEMM must do, divided by what a device can do. NumPy alone, no fitting."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from gemmlab import Device, Gemm, Tiling, device as load_device
from gemmlab.model import occupancy
from gemmlab.model.bounds import RESOURCES, Predictions, Rates, least_times, predict_all
from gemmlab.model.counters import TransactionCounters
from gemmlab.model.traffic import Work
from gemmlab.model.transactions import LINE, SECTOR

__all__ = ["Prediction", "Predictions", "predict", "predict_all"]


class Predictable(Protocol):
    """The parts of a kernel that `predict` uses; `gemmlab.kernels.Kernel` has them."""

    name: str
    splits: bool

    def check_problem(self, problem: Gemm) -> None: ...

    def choose(
        self, tiling: Tiling | None, problem: Gemm | None = None, device: Device | None = None
    ) -> Tiling: ...

    def launch(
        self, problem: Gemm, tiling: Tiling, device: Device
    ) -> tuple[tuple[int, ...], tuple[int, ...]]: ...

    @property
    def configure(self) -> Callable[[Gemm, Tiling], tuple[tuple[int, ...], tuple[int, ...]]]: ...

    @property
    def shared_bytes(self) -> Callable[[Gemm, Tiling], int]: ...

    @property
    def work(self) -> Callable[[Gemm, Tiling], Work] | None: ...


MOST_TILES = 1 << 22  # along an edge of C, each of which the model looks at


@dataclass(frozen=True)
class Prediction(Rates):
    """The model says this of one problem on one device; fields are named as in `Measurement`.

    flops : of the product, 2mnk [FLOP]
    bytes : traffic by memory level [B]: "dram", and with a kernel "l2", "global" (sectors
        that threads ask L1 for) and "shared" too
    seconds : the longest of `times`: parts that overlap perfectly [s]
    times : what each resource needs alone [s]: "math", "dram", "latency" (the longest chain of
        dependent steps, or one SM's work where there are fewer blocks than SMs), and with a kernel
        "l1" (L1 and shared memory, one unit), "issue" (slots of the schedulers, for instructions
        that no compiler leaves out) and "l2", the last two where the device's rate is known
    shared : the part of times["l1"] in which that unit serves shared memory, from 0 to 1
    limiter : what sets the time, in words; `bottleneck` names the entry of `times`
    counters : exact transactions, by the names that the simulator uses; empty without a kernel, and
        0 for what does not occur
    """

    problem: Gemm
    device: str
    kernel: str | None
    tiling: Tiling | None
    flops: int
    bytes: Mapping[str, int]
    times: Mapping[str, float]
    counters: Mapping[str, int] = field(default_factory=TransactionCounters)
    shared: float = 0.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "counters", TransactionCounters(self.counters))

    @property
    def bottleneck(self) -> str:
        """The resource that takes longest, a key of `times`."""
        return max(self.times, key=self.times.__getitem__)

    @property
    def limiter(self) -> str:
        """The limiter is "math", "issue", "latency", "DRAM", "L2", "L1" or "shared memory".

        The last two are one unit, which is called after what it serves for most of its time.
        """
        if self.bottleneck == "l1" and self.shared > 0.5:
            return "shared memory"
        return RESOURCES[self.bottleneck]

    @property
    def seconds(self) -> float:
        """Predicted duration [s]."""
        return self.times[self.bottleneck]


def predict(
    problem: Gemm,
    device: str | Device,
    kernel: Predictable | None = None,
    tiling: Tiling | None = None,
) -> Prediction:
    """Predict how long `problem` takes on `device`, by an ideal implementation or by `kernel`.

    seconds = max(flops / peak, bytes / bandwidth at each memory level, latency). Without a kernel
    the bytes are compulsory and the latency is one round trip to DRAM. No constant is fitted.
    Raises ValueError for an unknown device, a format without a rate there, a kernel without a
    model, a kernel on a device that is no GPU, a problem that the kernel does not compute, and a
    tiling that kernel or device cannot run.

    >>> predict(Gemm(8192, 128, 8192, dtype="float16"), "v100").limiter
    'DRAM'
    >>> predict(Gemm(8192, 8192, 8192, dtype="float16"), "v100").limiter
    'math'
    """
    if not isinstance(problem, Gemm):
        raise TypeError(f"problem={problem!r} is not a Gemm; use Gemm(m, n, k)")
    if not (kernel is None or hasattr(kernel, "work")):
        raise TypeError(f"kernel={kernel!r} is not a Kernel; use one of gemmlab.kernels")
    target = load_device(device)
    if kernel is None:
        if tiling is not None:
            raise ValueError(f"tiling={tiling} was given without a kernel; pass kernel= as well")
        times, traffic = least_times(problem, target), {"dram": problem.dram_bytes}
        return Prediction(problem, target.name, None, None, problem.flops, traffic, times)

    if kernel.work is None:
        raise ValueError(f"there is no model of {kernel.name}; leave out kernel= for the ideal one")
    if target.kind != "gpu":
        raise ValueError(f"{kernel.name} runs on GPUs and {target.title} is none; use a GPU's name")
    kernel.check_problem(problem)
    return _of_kernel(problem, target, kernel, kernel.choose(tiling, problem, target))


def _of_kernel(problem: Gemm, device: Device, kernel: Predictable, tiling: Tiling) -> Prediction:
    """Give the prediction for a kernel that has a model and can run the problem in this tiling."""
    if (most := max(tiling.grid(problem))) > MOST_TILES:
        raise ValueError(
            f"{problem} has {most:,} tiles of {tiling} along one edge; the model of {kernel.name} "
            f"counts up to {MOST_TILES:,}. Leave out kernel= for the ideal one"
        )
    grid, block = kernel.launch(problem, tiling, device)
    launch = _Launch(math.prod(grid), math.prod(block), kernel.shared_bytes(problem, tiling))
    work = kernel.work(problem, tiling).with_blocks(launch.blocks)
    occupancy.check_block(device, launch.threads, launch.shared_bytes)
    count = work.counters
    shared = count["shared_load_wavefronts"] + count["shared_store_wavefronts"]
    traffic = {
        "dram": problem.dram_bytes,
        "l2": work.l2_bytes,
        "global": SECTOR * (count["global_load_sectors"] + count["global_store_sectors"]),
        "shared": LINE * shared,
    }
    # Blocks come whole, and tiles, or parts of them, where blocks take several: the SM with most of
    # them decides when its own resources are done.
    tiles = 0 if kernel.splits else math.prod(tiling.grid(problem))
    pieces = max(math.prod(kernel.configure(problem, tiling)[0]), tiles)
    imbalance = occupancy.waves(device, pieces, 1) * device.sms / pieces
    times = _times(traffic["dram"], work, launch, device, imbalance)
    return Prediction(
        problem, device.name, kernel.name, tiling, problem.flops, traffic, times, work.counters,
        shared / work.l1_wavefronts if work.l1_wavefronts else 0.0,
    )  # fmt: skip


class _Launch(NamedTuple):
    """Blocks of a grid; threads and shared memory [B] of a block."""

    blocks: int
    threads: int
    shared_bytes: int


def _times(
    dram: int, work: Work, launch: _Launch, device: Device, imbalance: float
) -> dict[str, float]:
    """Divide the work by what each resource gives; the busiest SM has `imbalance` of the mean."""
    on_sm = {
        "math": max(flops / device.peak_of(pipe) for pipe, flops in work.flops.items()) * imbalance,
        # L1 and shared memory are one unit: together they pass one 128-byte wavefront a cycle.
        "l1": work.l1_wavefronts / (device.sms * device.clock) * imbalance,
    }
    if device.issue_per_cycle_per_sm and work.instructions:
        slots = device.sms * device.clock * device.issue_per_cycle_per_sm
        on_sm["issue"] = work.instructions / slots * imbalance
    latency = _latency(work, launch, device)
    times = {**on_sm, "dram": dram / device.dram_bandwidth, "latency": latency}
    if launch.blocks < device.sms:  # too little work to fill the device: no resource of it is short
        times["latency"] = max(times["latency"], *on_sm.values())
        times |= {name: seconds / imbalance for name, seconds in on_sm.items()}
    if device.l2_bandwidth:
        # L2 gives more where the TMA copies, for which lines come whole.
        by_tma = work.counters["tensor_copy_bytes"] and device.l2_tma_bandwidth
        times["l2"] = work.l2_bytes / (by_tma or device.l2_bandwidth)
    return times


def _latency(work: Work, launch: _Launch, device: Device) -> float:
    """The time of a thread's longest chain of dependent steps, once for each wave of blocks [s]."""
    loads, fmas = work.chain
    fma_latency = (device.fma_latency_cycles or 0) / device.clock
    chain = loads * (device.dram_latency or 0.0) + fmas * fma_latency
    resident = occupancy.resident_blocks(device, launch.threads, launch.shared_bytes)
    return chain * occupancy.waves(device, launch.blocks, resident)
