"""A launch takes so long: one SM is simulated with compiled code, and the GPU around it counted."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from itertools import cycle, islice
from pathlib import Path
from typing import Any, Self

import numpy as np

from gemmlab import device as load_device
from gemmlab.compiled.forecast.executed import (
    ROUNDS,
    Executed,
    Share,
    busy_sms,
    counts,
    execute,
    l2_gain,
    most_blocks,
)
from gemmlab.compiled.forecast.meeting import meeting_time
from gemmlab.compiled.forecast.power import Load, energy, power
from gemmlab.compiled.forecast.source_page import as_html
from gemmlab.compiled.forecast.telling import LITERATURE, LineTime, lines, slots_of
from gemmlab.compiled.forecast.unsure import Unsure, unsure
from gemmlab.compiled.forecast.waiting import tell, waiting
from gemmlab.compiled.forecast.whole_gpu import (
    FULL,
    at_the_limit,
    clock,
    dram_bytes,
    dram_time,
    full_clock,
    launch_latency,
    sm_facts,
    with_memory,
)
from gemmlab.compiled.sass.cubins import Code, Frames, code_of
from gemmlab.compiled.sass.listing import Listing
from gemmlab.compiled.sm.facts import Facts, facts
from gemmlab.compiled.sm.pipes import Kind
from gemmlab.compiled.sm.program import program
from gemmlab.compiled.sm.result import SCHEDULERS, Result
from gemmlab.compiled.sm.simulation import simulate
from gemmlab.compiled.sm.streams import Block, Effects
from gemmlab.device import Device, name_of
from gemmlab.model.transactions import SECTOR

ALL = Effects()


@dataclass(frozen=True, eq=False)
class Forecast:
    """A forecast is what compiled code says of a launch: its time, and what it waits for.

    times : what each part of the GPU needs [s]: "sm", "dram" (each array once, or as often as L2
        is asked where that is less), and where it is known "l2", "atomics": for additions that meet
        at a few addresses, and "blocks": to hand them out
    launch : what a launch takes that does nothing [s], 0 where that was not measured
    others : of a kernel's further launches, whose `launch` is the time from one to the next
    share : the blocks of one SM
    sampled : how many of these were simulated
    result : of the SM that was simulated: its issue slots, and why some were empty
    load : what it keeps an SM, and the board, busy with
    slower : how much longer an SM takes where one launch follows another, at the limit of power
    unsure : what hangs on instructions that are not known; None where all are
    frames : finds the line of each instruction, and those where it is inlined; none where the
        compiler has kept no lines
    counts : what all blocks do, by the names of `model.counters`, of a launch with its own code
    """

    device: str
    listing: Listing = field(repr=False)
    times: Mapping[str, float]
    launch: float
    share: Share
    sampled: int
    result: Result = field(repr=False)
    load: Load = FULL
    slower: float = 1.0
    others: tuple[Self, ...] = ()
    unsure: Unsure | None = None
    frames: Callable[[], Frames] = field(default=lambda: (), repr=False)
    counts: Mapping[str, int] = field(default_factory=dict, repr=False)

    @property
    def seconds(self) -> float:
        """Predicted duration [s], as two events around the launch, or all launches, would tell."""
        return self.launch + max(self.times.values()) + sum(other.seconds for other in self.others)

    @property
    def sustained(self) -> float:
        """The time of a launch among many in a row [s], where no pause gives the board a rest."""
        most = max(self.slower * t if name == "sm" else t for name, t in self.times.items())
        return self.launch + most + sum(other.sustained for other in self.others)

    @property
    def bottleneck(self) -> str:
        """The part that needs longest, a key of `times`."""
        return max(self.times, key=self.times.__getitem__)

    @property
    def measured(self) -> bool:
        """Whether the facts of the GPU were measured; else they are from the literature."""
        return facts(self.device).measured

    @cached_property
    def lines(self) -> list[LineTime]:
        """The lines of the source, the dearest first, with what they wait for; maybe none."""
        return lines(self.result, self.frames())

    def _repr_html_(self) -> str:
        return as_html(self)

    def __str__(self) -> str:
        slots, done = self.result.slots, self.result
        told = sorted({**done.used, **done.empty}.items(), key=lambda item: -item[1])
        parts = ", ".join(f"{100 * n / slots:.0f}% {name}" for name, n in told[:5])
        told = f"{self.seconds:.4g} s on {self.device}, by {self.bottleneck}; slots: {parts}"
        return told if self.measured else f"{told}; {LITERATURE}"


def predict_time(
    function: Callable | bytes | str | Path,
    grid: int | Sequence[int],
    block: int | Sequence[int] | None,
    *arguments: Any,
    device: str | Device = "h200",
    shared_bytes: int | None = None,
    effects: Effects = ALL,
    max_registers: int | None = None,
    kernel: str | None = None,
    **options: Any,
) -> Forecast:
    """Predict how long a launch of a kernel takes on a GPU that need not be here.

    The kernel is compiled for the GPU and executed for some of its blocks, with these arguments;
    what its warps executed runs on a simulated SM. Of a large launch a sample of blocks stands for
    the rest, and of a loop whose turns repeat some turns: it is executed whole where branches or
    addresses depend on what it computes. No constant is fitted. The arguments stay as they are and
    are not copied. Where it takes longer than two seconds, a bar shows how far it is.

    function : a kernel of Numba-CUDA as one writes it, with or without `cuda.jit`; or what any
        other compiler made: a cubin's bytes, PTX, the path of a file with either, or what
        `triton.compile` or `cute.compile` returns
    grid, block, arguments : as it is launched, `function[grid, block](*arguments)`; of arrays the
        values matter where branches or addresses depend on them. Other compilers' kernels take
        arguments as C does: arrays are pointers, NumPy's numbers have their sizes, records are
        structs. With block=None the block is what the compiler wrote down, as Triton does
    device : a GPU whose SM is known: "h200" and "h100_sxm", whose facts are measured, those of
        which the literature tells (`gemmlab.compiled.sm.facts.known`), or one of these with other
        numbers
    shared_bytes : dynamic shared memory of a block [B]; None for what Triton says, or else none
    effects : what may keep a warp from issuing; without one of them one sees what that costs
    max_registers : of a thread, where Numba compiles; None for as many as the compiler likes
    kernel : its name, where a module has several
    options : of `numba.cuda.jit`, such as fastmath; and `compiler`, "numba-cuda",
        "numba-cuda-mlir", or "auto" for what is installed

    >>> from gemmlab import cuda, predict_time
    >>> def doubled(x, y):
    ...     i = cuda.grid(1)
    ...     if i < x.size:
    ...         y[i] = 2 * x[i]
    >>> x, y = np.zeros((2, 1 << 24), np.float32)
    >>> forecast = predict_time(doubled, x.size // 256, 256, x, y, device="h200")
    >>> print(forecast)  # "lsu", "scoreboard", …: why other issue slots stayed empty
    5...e-05 s on h200, by sm; slots: ...% scoreboard, ...% integer, 11% stall, ...
    >>> 2 * x.nbytes / forecast.seconds / 1e12  # TB/s; the device's memory reaches 4.2 at most
    2...

    The result of an instruction that is not known here is zero; `Forecast.unsure` says what hangs
    on it.
    Raises ValueError for a device whose SM is not known, for a block that it cannot hold and for
    arguments that compiled code does not take, and RuntimeError where the compiler's tools are
    missing (it says how to get them) or the sample does not end.
    """
    with waiting():
        executed, code = _execute(
            function, grid, block, *arguments, device=device, shared_bytes=shared_bytes,
            max_registers=max_registers, kernel=kernel, lenient=True, **options,
        )  # fmt: skip
        found = at_its_clock(lambda load: forecast(executed, effects=effects, load=load), executed)
    shares = slots_of(found.result) / found.result.slots
    known = unsure(code.listing, shares, executed.unknown)
    return replace(found, unsure=known, frames=code.frames, counts=counts(executed))


def _execute(
    function: Callable | bytes | str | Path,
    grid: int | Sequence[int],
    block: int | Sequence[int] | None,
    *arguments: Any,
    device: str | Device,
    shared_bytes: int | None,
    max_registers: int | None,
    kernel: str | None = None,
    lenient: bool = False,
    **options: Any,
) -> tuple[Executed, Code]:
    """Compile a kernel, or read what a compiler made of it, and execute some of its blocks."""
    target = known_device(device)
    tell(0.05, "the kernel is compiled")
    code = code_of(
        function, block, arguments, name_of(target.compute_capability), kernel, max_registers,
        **options,
    )  # fmt: skip
    if shared_bytes is None:
        shared_bytes = code.shared_bytes or 0
    tell(0.2, "some of its blocks are executed")
    executed = execute(
        code.listing, target, grid, _block(block, code), *arguments, shared_bytes=shared_bytes,
        lenient=lenient, loops=True,
    )  # fmt: skip
    return executed, code


def _block(block: int | Sequence[int] | None, code: Code) -> int | Sequence[int]:
    """Return the block of a launch; ValueError where neither caller nor compiler says it."""
    if block is None and code.block is None:
        raise ValueError("the compiler has not written down the block: say how many threads it has")
    return code.block if block is None else block


def execute_launch(
    function: Callable,
    grid: int | Sequence[int],
    block: int | Sequence[int],
    *arguments: Any,
    device: str | Device,
    shared_bytes: int = 0,
    max_registers: int | None = None,
    **options: Any,
) -> Executed:
    """Compile a kernel for a device and execute some of its blocks.

    Raises what `predict_time` raises, and NotImplementedError for an instruction whose meaning is
    not known.
    """
    executed, _ = _execute(
        function, grid, block, *arguments, device=device, shared_bytes=shared_bytes,
        max_registers=max_registers, **options,
    )  # fmt: skip
    return executed


def forecast_next(executed: Executed, cold: bool = False, effects: Effects = ALL) -> Forecast:
    """Forecast a launch that follows another one; its `launch` is the time between the two.

    Of all arrays it has to do with those alone that its blocks access. What the launch before it
    wrote is in L2, if that holds it, unless it is `cold`.
    """
    executed = replace(executed, footprint=executed.touched)
    found = at_its_clock(lambda load: forecast(executed, cold, effects, load=load), executed)
    return replace(found, launch=executed.device.launch_interval or found.launch)


def known_device(device: str | Device) -> Device:
    """Return the device; ValueError for one whose SM cannot be simulated."""
    target = load_device(device)
    facts(target.name)
    return target


def at_its_clock(forecast_at: Callable[[Load], Forecast], executed: Executed) -> Forecast:
    """Forecast a launch at the clock that its own use of Tensor Cores, and its power, leave.

    forecast_at : makes a forecast of the load on which the clock depends
    """
    found = forecast_at(FULL)
    load = with_memory(executed.device, found.load, found.times)
    if load.use or clock(executed, load) < full_clock(executed):
        found = forecast_at(load)
    seconds = at_the_limit(executed, load, found.times["sm"])
    in_a_row = at_the_limit(executed, load, found.times["sm"], in_a_row=True)
    return replace(
        found, times={**found.times, "sm": seconds}, load=load, slower=in_a_row / seconds
    )


def forecast(
    executed: Executed, cold: bool = True, effects: Effects = ALL, most: int | None = None,
    load: Load = FULL,
) -> Forecast:  # fmt: skip
    """Forecast a launch from those of its blocks that were executed.

    Where they are too few to see how blocks follow each other, they run again.
    cold : the first round finds nothing in L2
    most : blocks of the SM that gets most; None to find out from when they end
    load : on which the clock depends
    """
    tell(0.6, "an SM is simulated")
    target, mine = executed.device, executed.share
    enough, on = ROUNDS * mine.resident, sm_facts(executed, load)
    if most is None:
        count = min(mine.blocks, enough)
        ends = executed.of_all(lambda run: np.sort(_ends(run, count, cold, effects, on)))
        most = busiest(target, mine, ends)
    tell(0.8, "an SM is simulated")
    mine = replace(mine, blocks=most)
    results = {
        run: simulated(run, min(most, enough), cold, effects, on) for _, run in executed.runs
    }
    all_blocks = math.prod(mine.grid)
    sectors = executed.of_all(lambda run: _sectors(run.blocks(cold))) * all_blocks
    cycles = executed.of_all(lambda run: _cycles(results[run], mine))
    times = {"sm": cycles / clock(executed, load)}
    if target.l2_bandwidth:
        times["l2"] = SECTOR * sectors / target.l2_bandwidth / l2_gain(executed)
    once, anywhere = dram_bytes(executed, cold)
    times["dram"] = dram_time(min(once, SECTOR * sectors) + anywhere, target)
    if most > executed.share.blocks and of_memory(times):
        apart = executed.of_all(lambda run: _last_alone(run, most, enough, cold, effects, on))
        times["sm"] = min(cycles, apart) / clock(executed, load)
    if seconds := meeting_time(executed):
        times["atomics"] = seconds
    if target.hand_out_interval:
        times["blocks"] = target.hand_out_interval * all_blocks
    busy = executed.of_all(lambda run: tensor_cycles(run, results[run]))
    whole = executed.of_all(lambda run: results[run].cycles)
    taken = executed.of_all(lambda run: _energies(run, results[run], cold))
    until = executed.of_all(lambda run: max(results[run].cycles, results[run].drained))
    watts, chip = (
        float(each) for each in taken / until * full_clock(executed) * busy_sms(executed)
    )
    return Forecast(
        target.name, executed.code, times, launch_latency(target), mine, executed.count,
        results[executed.runs[-1][1]], Load(busy / whole, watts, chip),
    )  # fmt: skip


def _ends(run: Executed, count: int, cold: bool, effects: Effects, on: Facts) -> np.ndarray:
    return simulated(run, count, cold, effects, on).block_ends


def of_memory(times: Mapping[str, float]) -> bool:
    """Say whether L2 or device memory needs more than half of the time of an SM."""
    return max(times.get("l2", 0.0), times["dram"]) > times["sm"] / 2


def _last_alone(
    run: Executed, most: int, enough: int, cold: bool, effects: Effects, on: Facts
) -> float:
    """Return an SM's cycles where what it gets beyond its share has memory to itself.

    Memory gives no more because one SM is ahead of others: that one has more of it, and they less.
    Its last blocks begin in places that become free, and have at the end what the others had.
    """
    mine = run.share
    alike = simulated(run, min(mine.blocks, enough), cold, effects, on)
    more = replace(mine, blocks=min(most - mine.blocks, mine.resident))
    alone = replace(effects, l2=False)
    last = total_cycles(simulated(run, more.blocks, cold, alone, on), more)
    ends = np.sort(alike.block_ends)
    before = float(ends[-1] - ends[len(ends) - mine.resident + more.blocks - 1])
    whole = _cycles(alike, mine)
    return max(whole, whole - before + last)


def _energies(run: Executed, result: Result, cold: bool) -> np.ndarray:
    """Count the energy of what an SM did [J]: as recorded, and at its clock's voltage.

    Both are 0 where it is not known what that takes.
    """
    board = power(run.device.name)
    if board is None:
        return np.zeros(2)
    blocks, together = run.blocks(cold), l2_gain(run)
    tables = board.energies, board.at(full_clock(run))
    return np.array([energy(run.code, result, blocks, each, together) for each in tables])


def _sectors(blocks: Sequence[Block]) -> float:
    """Count the sectors that a block asks of L2, in the mean."""
    return sum(int(s.sectors.sum()) for block in blocks for s in block) / len(blocks)


def _cycles(result: Result, mine: Share) -> float:
    """Return the cycles until L2 has taken all that the blocks of an SM ask of it."""
    return total_cycles(result, mine) + max(0, result.drained - result.cycles)


def tensor_cycles(executed: Executed, result: Result) -> float:
    """Count the cycles for which an SM's Tensor Cores, one of each scheduler, were busy."""
    code = program(executed.code, facts(executed.device.name))
    taken = np.where(code.kind == Kind.TENSOR, code.interval, 0)
    return float((taken * result.issued).sum()) / SCHEDULERS


@lru_cache(maxsize=8)  # few or many blocks for each SM may be all the same to a sample
def simulated(executed: Executed, count: int, cold: bool, effects: Effects, on: Facts) -> Result:
    """Simulate one SM with `count` blocks; where fewer were executed, they run again."""
    blocks = executed.blocks(cold)
    missing = count - len(blocks)
    if missing > 0:
        blocks = [*blocks, *islice(cycle(executed.blocks(cold, later=True)), missing)]
    return simulate(executed.code, blocks, resident=executed.share.resident, on=on, effects=effects)


def busiest(device: Device, share: Share, ends: np.ndarray) -> int:
    """Return the blocks of the SM that gets most, where it is known how far SMs are apart."""
    if device.block_spread is None:
        return share.blocks
    return most_blocks(share, ends, device.block_spread)


def total_cycles(result: Result, mine: Share) -> float:
    """Return the cycles of all blocks of an SM, from those that were simulated.

    Blocks start as others end: those that were not simulated take as long for each instruction as
    all did from the first end of a block to the last start of one.
    """
    order = np.argsort(result.block_ends, kind="stable")
    ends, issued = result.block_ends[order], result.issued_then[order]
    rest = mine.blocks - len(ends)
    if rest <= 0:
        return float(ends[-1])
    last = -1 - mine.resident
    pace = (ends[last] - ends[0]) / (issued[last] - issued[0])
    return float(ends[-1] + rest * pace * issued[-1] / len(ends))
