"""How long a launch takes, from its compiled code: one SM is simulated, with the GPU around it."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from gemmlab.device import Device
from gemmlab.device import device as load_device
from gemmlab.model.transactions import SECTOR
from gemmlab.prediction.compiling import listing as compiled
from gemmlab.prediction.l1 import L1
from gemmlab.prediction.launches import Share, share
from gemmlab.prediction.streams import streams
from gemmlab.sass.execution.launch import dim, launch
from gemmlab.sass.listing import Listing
from gemmlab.sm.effects import Effects
from gemmlab.sm.facts import facts
from gemmlab.sm.result import Result
from gemmlab.sm.simulation import simulate
from gemmlab.sm.streams import Level
from gemmlab.tiling import WARP

L1_BYTES = 256 * 1024  # of an SM, shared memory included: NVIDIA H100 whitepaper v1.04, table 4
SYSTEM_BYTES = 1024  # of shared memory that the system takes of each block
ALL = Effects()
ROUNDS = 3  # of resident blocks: one that begins alone, one amid others, one that ends alone
LONGEST = 5_000_000  # steps that a sample may take to its end


@dataclass(frozen=True, eq=False)
class Forecast:
    """What compiled code says of a launch.

    seconds : the longest of `times`
    times : what each part of the GPU needs [s]: "sm", "dram" (each array once, or as often as L2
        is asked where that is less), and where it is known "l2", and "blocks": to hand them out
    share : the blocks of one SM
    sampled : how many of these were simulated
    result : of the SM that was simulated: its issue slots, and why some were empty
    """

    device: str
    listing: Listing = field(repr=False)
    times: Mapping[str, float]
    share: Share
    sampled: int
    result: Result = field(repr=False)

    @property
    def seconds(self) -> float:
        """Predicted duration [s]."""
        return max(self.times.values())

    @property
    def bottleneck(self) -> str:
        """The part that needs longest, a key of `times`."""
        return max(self.times, key=self.times.__getitem__)

    def __str__(self) -> str:
        """The time, and what the issue slots of the SM were used for."""
        slots, done = self.result.slots, self.result
        told = sorted({**done.used, **done.empty}.items(), key=lambda item: -item[1])
        parts = ", ".join(f"{100 * n / slots:.0f}% {name}" for name, n in told[:5])
        return f"{self.seconds:.4g} s on {self.device}, by {self.bottleneck}; slots: {parts}"


def predict_time(
    function: Callable,
    grid: int | Sequence[int],
    block: int | Sequence[int],
    *arguments: Any,
    device: str | Device = "h200",
    shared_bytes: int = 0,
    effects: Effects = ALL,
    max_registers: int | None = None,
    **options: Any,
) -> Forecast:
    """Predict how long a launch of a Numba-CUDA kernel takes on a GPU that need not be here.

    The kernel is compiled for the GPU and executed for some of its blocks, with these arguments;
    what its warps executed runs on a simulated SM. Of a large launch a sample of blocks stands for
    the rest. The arguments stay as they are.

    shared_bytes : dynamic, of a block; options : of `numba.cuda.jit`, such as fastmath
    Raises ValueError for a device whose SM is not known and for a block that it cannot hold,
    RuntimeError where the compiler's tools are missing or the sample does not end, and
    NotImplementedError for an instruction whose meaning is not known.
    """
    target = known_device(device)
    code = compiled(
        function, arguments, "sm_{}{}".format(*target.compute_capability), max_registers,
        **{"launch_bounds": math.prod(dim(block)), **options},
    )  # fmt: skip
    return forecast(
        code, target, grid, block, *arguments, shared_bytes=shared_bytes, effects=effects
    )


def known_device(device: str | Device) -> Device:
    """The device; ValueError for one whose SM cannot be simulated."""
    target = load_device(device)
    facts(target.name)
    return target


def forecast(
    code: Listing,
    target: Device,
    grid: int | Sequence[int],
    block: int | Sequence[int],
    *arguments: Any,
    shared_bytes: int = 0,
    rounds: int = ROUNDS,
    cold: bool = True,
    effects: Effects = ALL,
) -> Forecast:
    """The same from a listing.

    rounds : of resident blocks that are simulated; after one alone, all rounds take as long
    cold : the first round finds nothing in L2
    """
    grid, block = dim(grid), dim(block)
    used = code.shared_bytes + shared_bytes
    mine = share(target, grid, math.prod(block), used, code.registers)
    sample = _Sample(code, mine, block, arguments, shared_bytes)
    count = min(mine.blocks, rounds * mine.resident)
    found = sample.run(count)
    footprint = sum(a.nbytes for a in arguments if isinstance(a, np.ndarray))
    fits = footprint <= (target.l2_bytes or 0)
    cache = L1_BYTES - mine.resident * (used + SYSTEM_BYTES)
    blocks = found.blocks(cache, mine.resident if cold else 0, fits)
    result = simulate(code, blocks, resident=mine.resident, on=target.name, effects=effects)
    cycles = total_cycles(result, mine)
    sectors = sum(int(s.sectors.sum()) for b in blocks for s in b) / count * math.prod(grid)
    times = {"sm": cycles / target.clock}
    if target.l2_bandwidth:
        times["l2"] = SECTOR * sectors / target.l2_bandwidth
    stream = target.dram_copy_bandwidth or target.dram_bandwidth
    times["dram"] = min(footprint, SECTOR * sectors) / stream
    if target.block_interval:
        times["blocks"] = target.block_interval * math.prod(grid)
    return Forecast(target.name, code, times, mine, count, result)


def total_cycles(result: Result, mine: Share) -> float:
    """Cycles of all blocks of an SM, from those that were simulated.

    Blocks start as others end: those that were not simulated follow at the pace of the round that
    had others before and after it. Where fewer than three rounds were simulated, all take as long.
    """
    ends = np.sort(result.block_ends)
    rest = mine.blocks - len(ends)
    if rest <= 0:
        return float(ends[-1])
    if len(ends) < 3 * mine.resident:
        return float(ends[-1] * mine.blocks / len(ends))
    pace = (ends[-1 - mine.resident] - ends[-1 - 2 * mine.resident]) / mine.resident
    return float(ends[-1] + rest * pace)


@dataclass(frozen=True)
class _Executed:
    """Blocks that were executed, and what they did."""

    code: Listing
    visits: list
    count: int
    warps: int  # of a block

    @property
    def length(self) -> int:
        """Warp instructions."""
        return sum((visit.stop - visit.start) * len(visit.warps) for visit in self.visits)

    def blocks(self, cache: int, first: int, fits: bool) -> list:
        """The streams of each block; what its first touch brings comes from device memory.

        first : blocks that start together, with nothing in L2 yet
        fits : whether L2 keeps all arrays, so that later blocks find there what they need
        """
        levels = np.full(self.count * self.warps, int(Level.DRAM), np.int32)
        if fits:
            levels[first * self.warps :] = int(Level.L2)
        made = streams(self.visits, self.code, levels, L1(cache))
        return [made[i * self.warps : (i + 1) * self.warps] for i in range(self.count)]


class _Sample:
    """Blocks of a launch, to be executed."""

    def __init__(
        self, code: Listing, mine: Share, block: tuple, arguments: tuple, shared_bytes: int
    ) -> None:
        self.code, self.mine, self.block = code, mine, block
        self.arguments, self.shared_bytes = arguments, shared_bytes

    def run(self, count: int) -> _Executed:
        """Execute the first `count` blocks of the share."""
        copies = [a.copy() if isinstance(a, np.ndarray) else a for a in self.arguments]
        machine = launch(
            self.code, self.mine.grid, self.block, *copies,
            shared_bytes=self.shared_bytes, blocks=self.mine.places(count),
        )  # fmt: skip
        warps = -(-math.prod(self.block) // WARP)
        return _Executed(self.code, machine.run(LONGEST), count, warps)
