"""The course's own kernels are predicted from their compiled code: times, and bounds of these.

`predict_rung` simulates short products. `count_rung` simulates no cycle: each part of an SM is
taken as if it were always busy and waited for nobody, so that it bounds the time. A source and a
tiling do not tell what is counted there: the instructions for addresses and loops, the pipes that
they need, and the registers that ptxas has chosen. Those of one bank share a port; with the best
choice there would always be room, since of an FMA's three operands most come from the cache.
"""

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from functools import lru_cache
from typing import Any

import numpy as np

from gemmlab import Device, Gemm, Tiling
from gemmlab.compiled.forecast.executed import Executed, execute
from gemmlab.compiled.forecast.kernel import (
    ALL,
    Forecast,
    at_its_clock,
    busiest,
    forecast,
    forecast_next,
    known_device,
)
from gemmlab.compiled.forecast.power import Load
from gemmlab.compiled.forecast.rung_listings import arguments, launch_listing, rung_listing
from gemmlab.compiled.forecast.whole_gpu import (
    FULL,
    clock,
    dram_time,
    sm_facts,
    stream_bandwidth,
)
from gemmlab.compiled.sass.listing import Listing
from gemmlab.compiled.sm.facts import Facts
from gemmlab.compiled.sm.pipes import Pipe, Unit, is_wait
from gemmlab.compiled.sm.program import Program, program
from gemmlab.compiled.sm.result import SCHEDULERS
from gemmlab.compiled.sm.streams import Effects, Stream
from gemmlab.formats import number_format
from gemmlab.kernels.kernel import Kernel, Launch
from gemmlab.model.transactions import SECTOR

SHORT = 8  # steps along k after which a loop is in its stride
SIMULATED = 2, 5  # periods: blocks are in or out of step by then
# What has to be held, as multiples of half of L2, and what part of it is lost: bytes of device
# memory by Nsight Compute on an H100, less each array once, of six products of *coalesced*,
# decisions 041 and 049. They judge no prediction.
HELD = 0.85, 0.92, 1.03, 1.12, 1.14, 1.27
LOST = 0.0, 0.12, 0.27, 0.42, 0.48, 1.0
ALIGNED = 32  # elements: rows of A whose lengths differ by multiples begin at sectors alike


def predict_rung(
    problem: Gemm,
    device: str | Device,
    kernel: Kernel,
    tiling: Tiling | None = None,
    effects: Effects = ALL,
) -> Forecast:
    """Predict the time of a rung of the ladder from its compiled code.

    The blocks of a product are alike, so that one round of resident blocks is executed and stands
    for all. Where k is long two shorter products are executed, whose difference is a period of the
    loop: some more periods are simulated, beyond which each one takes the same. The first round
    waits for device memory, if L2 keeps the matrices for the later ones. What further launches
    take is added, and the time from one to the next.
    Raises what `predict` and `predict_time` raise.
    """
    target = known_device(device)
    tiling = kernel.choose(tiling, problem, target)
    executed = execute_rung(problem, target, kernel, tiling)
    found = at_its_clock(
        lambda load: forecast_rung(problem, executed, effects, load), next(iter(executed.values()))
    )
    others = [forecast_other(problem, target, kernel, tiling, one, effects)
              for one in kernel.launches if one is not kernel]  # fmt: skip
    return replace(found, others=tuple(others))


def forecast_other(
    problem: Gemm,
    device: Device,
    kernel: Kernel,
    tiling: Tiling,
    one: Launch,
    effects: Effects = ALL,
) -> Forecast:
    """Forecast a launch before or after the one that multiplies; `launch` is the time between.

    Of all arrays it has to do with those alone that its blocks access: a split with A, B and the
    workspace, a sum with the workspace and C.
    """
    code = launch_listing(one, kernel, problem, tiling, device.compute_capability)
    executed = execute(
        code, device, *one.launch(problem, tiling, device), *arguments(kernel, problem, tiling),
        shared_bytes=one.dynamic_shared_bytes(problem, tiling),
    )  # fmt: skip
    return forecast_next(executed, cold=one in kernel.before, effects=effects)


def execute_rung(
    problem: Gemm, device: str | Device, kernel: Kernel, tiling: Tiling | None = None
) -> dict[int, Executed]:
    """Execute one round of blocks: k -> what was done, for `problem.k` or for two that are shorter.

    Of several launches it is the one that multiplies. Raises what `predict_rung` raises.
    """
    target = known_device(device)
    tiling = kernel.choose(tiling, problem, target)
    kernel.check_problem(problem)
    code = rung_listing(kernel, problem, tiling, target)
    found = {
        k: execute_whole(replace(problem, k=k), code, target, kernel, tiling)
        for k in depths(problem, kernel, tiling)
    }
    return {k: replace(one, missing=missing(problem, one, kernel)) for k, one in found.items()}


def missing(problem: Gemm, executed: Executed, kernel: Kernel) -> float | None:
    """Find what part of the matrices L2 has lost when the next blocks read it again.

    Blocks that run at once read some rows of A and columns of B; those that follow them read most
    of these columns again. Meanwhile L2 has to hold what all of them read and store, in both of its
    partitions. None where blocks do not follow each other along the rows of C.
    """
    mine, device = executed.share, executed.device
    if kernel.splits or kernel.persistent or not device.l2_bytes:
        return None
    every = math.prod(mine.grid)
    at_once = min(every, mine.sms * mine.resident)
    down, across = -(-at_once // mine.grid[0]) / mine.grid[1], min(1.0, at_once / mine.grid[0])
    a, b, c = problem.array_bytes
    if a + b + c <= device.l2_bytes:
        return 0.0
    held = a * min(1.0, down) + b * across + c * at_once / every
    full = held / (device.l2_bytes / device.l2_partitions)
    return float(np.interp(full, HELD, LOST))


def depths(problem: Gemm, kernel: Kernel, tiling: Tiling) -> list[int]:
    """Give the k of the products that are executed: of two that are shorter, or its own."""
    period = _period(kernel, tiling) * _parts(problem, kernel, tiling)
    shorter = [problem.k % period + period * n for n in (1, 2)]
    return shorter if problem.k > shorter[1] else [problem.k]


@lru_cache(maxsize=8)  # a chapter looks at the lines of a kernel, at its steps and at its time
def execute_whole(
    problem: Gemm, code: Listing, device: Device, kernel: Kernel, tiling: Tiling
) -> Executed:
    """Execute one round of blocks of a product, with all of its k."""
    executed = execute(
        code, device, *kernel.launch(problem, tiling, device), *arguments(kernel, problem, tiling),
        rounds=1,
        first=longest_share(problem, kernel, tiling) % device.sms,
        shared_bytes=kernel.dynamic_shared_bytes(problem, tiling),
    )  # fmt: skip
    return replace(executed, footprint=footprint(problem, kernel, tiling))


def longest_share(problem: Gemm, kernel: Kernel, tiling: Tiling) -> int:
    """Find the block that takes longest: one of two tiles, where equal shares end anywhere.

    It begins twice and stores twice. Where no share has parts of two tiles all blocks are alike.

    >>> from gemmlab import kernels
    >>> tiling = Tiling(block=(128, 128, 8), warp=(64, 32), thread=(8, 8), stages=3, split=7)
    >>> longest_share(Gemm(256, 256, 4096), kernels.stream_k, tiling)
    3
    """
    if not kernel.splits or kernel.persistent:
        return 0
    blocks = math.prod(kernel.configure(problem, tiling)[0])
    tiles = math.prod(tiling.grid(problem))

    def divided(block: int) -> int:
        """Return how far inside of its share a tile ends, in parts of a tile."""
        end = -block * tiles % blocks
        return max(0, min(end, tiles - end))

    return max(range(blocks), key=divided)


def footprint(problem: Gemm, kernel: Kernel, tiling: Tiling) -> int:
    """Count the bytes of all arrays, the workspace among them."""
    shared = kernel.workspace(problem, tiling)
    return sum(problem.array_bytes) + sum(
        math.prod(w.shape) * number_format(w.dtype).bytes for w in shared
    )


def forecast_rung(
    problem: Gemm, executed: Mapping[int, Executed], effects: Effects = ALL, load: Load = FULL
) -> Forecast:
    """Forecast a problem from `execute_rung`; the load sets the clock."""
    runs = _simulated(problem, executed)
    share, device = (getattr(next(iter(runs.values())), name) for name in ("share", "device"))
    found = [forecast(run, effects=effects, most=share.blocks, load=load) for run in runs.values()]
    ends = extended([np.sort(f.result.block_ends) for f in found], list(runs), problem.k)
    most = busiest(device, share, ends)
    if most != share.blocks:
        found = [forecast(run, effects=effects, most=most, load=load) for run in runs.values()]
    times = {
        name: extended([f.times[name] for f in found], list(runs), problem.k)
        for name in found[-1].times
    }
    times["dram"] = dram_time(moved(problem), device)
    busy, taken, of_chip, cycles = (
        extended([f.result.cycles * rate(f.load) for f in found], list(runs), problem.k)
        for rate in (lambda of: of.use, lambda of: of.watts, lambda of: of.chip, lambda of: 1)
    )
    # On a line through two short products a long one may take less than its Tensor Cores are busy.
    times["sm"] *= max(1.0, busy / cycles)
    load = Load(min(1.0, busy / cycles), taken / cycles, of_chip / cycles)
    return replace(found[-1], times=times, load=load)


def _simulated(problem: Gemm, executed: Mapping[int, Executed]) -> Mapping[int, Executed]:
    """Choose the products to simulate, by k: those executed, with more periods if they repeat.

    It is the problem itself where that has no more periods than `SIMULATED`. What was executed
    stays where a longer loop does other things than a shorter one.
    """
    if len(executed) == 1 or not repeats(*executed.values()):
        return executed
    (k, short), (after, long) = executed.items()
    wanted = (problem.k - k) // (after - k)
    counts = SIMULATED if wanted > max(SIMULATED) else (wanted,)
    return {k + (after - k) * n: longer(short, long, n) for n in counts}


def moved(problem: Gemm) -> int:
    """Count the bytes to move where each array is moved once, and C twice where it is read, too."""
    return problem.bytes + (problem.array_bytes[2] if problem.beta else 0)


def extended(values: list, sizes: list[int], k: int) -> Any:
    """Return the value at `k` on the line through those at `sizes`, or the only one there is."""
    if len(values) == 1:
        return values[0]
    return values[0] + (values[1] - values[0]) * (k - sizes[0]) / (sizes[1] - sizes[0])


def _period(kernel: Kernel, tiling: Tiling) -> int:
    """Return the steps along k after which a loop does the same again: mostly `SHORT` or more."""
    step = math.lcm(tiling.block[2] * kernel.period(tiling), ALIGNED)
    return step * max(1, SHORT * tiling.block[2] // step)


def _parts(problem: Gemm, kernel: Kernel, tiling: Tiling) -> int:
    """Return the steps along k for which blocks that divide it get a whole number more each."""
    if not kernel.splits:
        return 1
    pieces = math.prod(kernel.configure(problem, tiling)[0])
    return pieces // math.gcd(pieces, math.prod(tiling.grid(problem)))


@dataclass(frozen=True, eq=False)
class Longer(Executed):
    """A longer product has the blocks of `longer`, with what these have more repeated.

    shorter, longer : the same blocks of the two products
    periods : times that the stretch is executed; 0 for the shorter product, 1 for the longer one
    """

    shorter: Executed
    longer: Executed
    periods: int

    def blocks(self, cold: bool, later: bool = False) -> list[list[Stream]]:
        """Return the streams of each block, as `Executed.blocks` gives them."""
        waits = np.array([is_wait(one) for one in self.code.instructions])
        return [
            [repeated(*warps, self.periods, waits) for warps in zip(*blocks, strict=True)]
            for blocks in zip(
                self.shorter.blocks(cold, later), self.longer.blocks(cold, later), strict=True
            )
        ]


def longer(shorter: Executed, longer: Executed, periods: int) -> Longer:
    """Make the product with so many periods more than the shorter one; the longer one has one.

    Its blocks are known where `repeats` says so.
    """
    footprint = shorter.footprint + periods * (longer.footprint - shorter.footprint)
    known = {f.name: getattr(longer, f.name) for f in fields(Executed)} | {"footprint": footprint}
    return Longer(**known, shorter=shorter, longer=longer, periods=periods)


def repeats(shorter: Executed, longer: Executed) -> bool:
    """Say whether each warp of the longer product executes one stretch more, and else the same."""
    pairs = zip(shorter.blocks(cold=False), longer.blocks(cold=False), strict=True)
    return all(
        stretch(short, long) is not None
        for blocks in pairs
        for short, long in zip(*blocks, strict=True)
    )


def repeated(short: Stream, long: Stream, periods: int, waits: np.ndarray | None = None) -> Stream:
    """Make the stream with the stretch that `long` has more than `short`, `periods` times.

    waits : bool, by instruction of the listing, whether it waits for a phase of an mbarrier. Where
        a stretch waits for an odd number of them, the next one waits for the other parity

    >>> from gemmlab.compiled.sm.streams import stream
    >>> short, long = stream([0, 1, 2, 1, 2, 3]), stream([0, 1, 2, 1, 2, 1, 2, 3])
    >>> repeated(short, long, 3).instructions.tolist()
    [0, 1, 2, 1, 2, 1, 2, 1, 2, 1, 2, 3]
    """
    more = stretch(short, long)
    parts = slice(0, more.start), *[more] * periods, slice(more.stop, len(long))
    found = Stream(
        **{f.name: np.concatenate([getattr(long, f.name)[p] for p in parts]) for f in fields(long)}
    )
    if waits is None:
        return found
    turns = np.concatenate([
        np.full(len(range(*part.indices(len(long)))), turn)
        for part, turn in zip(parts, (0, *range(periods), periods - 1), strict=True)
    ])  # fmt: skip
    asks = waits[long.instructions] & (long.amounts > 0)
    phases = np.bincount(long.mbarriers[more][asks[more]], minlength=long.mbarriers.max() + 1)
    other = np.concatenate([asks[part] for part in parts]) & (
        turns * phases[found.mbarriers] % 2 == 1
    )
    return replace(found, amounts=np.where(other, 3 - found.amounts, found.amounts))


def stretch(short: Stream, long: Stream) -> slice | None:
    """Find what `long` has more than `short`; None where that is not in one place.

    A loop can be cut anywhere. It is cut in the middle, since what its first and last turns ask of
    memory differs: loads that are ahead end before the loop does.
    """
    done, more = long.instructions, len(long) - len(short)
    if more < 0:
        return None
    last = _alike(short.instructions, done[: len(short)])
    if not np.array_equal(done[last + more :], short.instructions[last:]):
        return None
    backwards = _alike(done[:last][::-1], done[more : last + more][::-1])
    cut = last - backwards // 2
    return slice(cut, cut + more)


def _alike(a: np.ndarray, b: np.ndarray) -> int:
    same = a == b
    return len(a) if same.all() else int(same.argmin())


PIPES = (Pipe.ALU, Pipe.FP64, Pipe.XU, Pipe.UNIFORM, Pipe.TENSOR)  # one of each a scheduler


def count_rung(
    problem: Gemm, device: str | Device, kernel: Kernel, tiling: Tiling | None = None
) -> dict[str, float]:
    """Count the time that each part needs for a rung of the ladder [s]; none can be done sooner.

    The parts are those of `cycles`, and "dram"; of several launches, of the one that multiplies.
    Raises what `predict_rung` raises.
    """
    target = known_device(device)
    rounds = execute_rung(problem, target, kernel, tiling)
    counted = [cycles(executed) for executed in rounds.values()]
    one = next(iter(rounds.values()))
    whole = {
        part: extended([c[part] for c in counted], list(rounds), problem.k) for part in counted[-1]
    }
    # L2 has a clock of its own, and was counted at the SMs' lowest one.
    use = {part: 1.0 if part == "l2" else whole["tensor"] / max(whole[part], 1) for part in whole}
    times = {part: one.share.blocks * whole[part] / clock(one, Load(use[part])) for part in whole}
    return times | {"dram": moved(problem) / stream_bandwidth(target)}


def cycles(executed: Executed) -> dict[str, float]:
    """Count the cycles that each part of an SM is busy with one block, the mean of those executed.

    "issue" : slots. "fma", "alu", … : the pipes of a scheduler; "registers" : the port of the bank
    that is read more often; "way" : of accesses from a scheduler to the LSU. "l1" : wavefronts of
    L1 and shared memory, and what `wgmma` reads there; "l2" : sectors from L2; "of_all",
    "barrier" : what the SM has once
    """
    known = sm_facts(executed)
    code = program(executed.code, known)
    total: Counter[str] = Counter()
    for block in executed.blocks(cold=False):
        for stream in block:
            total.update(of_warp(stream, code, known))
    return {part: count / executed.count for part, count in total.items()}


def of_warp(stream: Stream, code: Program, known: Facts) -> dict[str, float]:
    """Count what a warp asks of each part: a quarter of what each scheduler has, and the rest.

    FFMA runs on either of the two halves of "fma", IMAD on one alone.
    """
    taken = stream.instructions
    interval, pipe, unit = code.interval[taken], code.pipe[taken], code.unit[taken]
    heavy, either = (interval[pipe == p].sum() for p in (Pipe.FMA_HEAVY, Pipe.FMA_LITE))
    stored = np.where(code.stores[taken], known.store_interval * (code.words[taken] + 1), 0)
    way = np.maximum(known.lsu_wavefront * stream.cycles, stored)
    of_schedulers = {
        "issue": len(stream),
        "fma": max(heavy, (heavy + either) / 2),
        **{p.name.lower(): interval[pipe == p].sum() for p in PIPES},
        "registers": max(port_reads(taken, code)),
        "way": way[stream.cycles > 0].sum(),
    }
    return {part: count / SCHEDULERS for part, count in of_schedulers.items()} | {
        "l1": stream.cycles.sum() + code.matrices[taken].sum(),
        "l2": SECTOR * stream.sectors.sum() / known.l2_bytes_per_cycle,
        "of_all": interval[pipe == Pipe.OF_ALL].sum(),
        "barrier": known.barrier_interval * np.isin(unit, (Unit.BARRIER, Unit.ARRIVAL)).sum(),
    }


def port_reads(taken: np.ndarray, code: Program) -> tuple[int, int]:
    """Count the cycles in which a warp by itself reads the even and the odd bank of registers.

    A register is in the cache of operands if the one before, of its bank and at its place, is the
    same and was to stay; `sm.registers` has the source.
    """
    counts = [0, 0]
    for double in (0, 1):  # FP64 has a cache of its own, and reads pairs
        for place in range(code.registers.shape[1]):
            register = code.registers[taken, place]
            mine = (register >= 0) & (code.wide[taken] == double)
            for bank in (0, 1):
                here = mine & (register % 2 == bank)
                read, stays = register[here], code.reused[taken, place][here]
                cached = (read[1:] == read[:-1]) & (stays[:-1] == 1)
                count = len(read) - int(cached.sum())
                counts[bank] += count
                counts[1 - bank] += count * double
    return counts[0], counts[1]
