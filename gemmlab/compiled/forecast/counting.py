"""Compiled code bounds a launch's time: no part of an SM does what is counted here faster.

No cycle is simulated: each part is taken as if it were always busy and waited for nobody. A source
and a tiling do not tell what is counted here: the instructions for addresses and loops, the pipes
that they need, and the registers that ptxas has chosen. Those of one bank share a port; with the
best choice there would always be room, since of an FMA's three operands most come from the cache.
"""

from collections import Counter

import numpy as np

from gemmlab import Device, Gemm, Tiling
from gemmlab.compiled.forecast.executed import Executed
from gemmlab.compiled.forecast.kernel import known_device
from gemmlab.compiled.forecast.rungs import execute_rung, extended, moved
from gemmlab.compiled.forecast.whole_gpu import clock, sm_facts, stream_bandwidth
from gemmlab.compiled.sm.facts import Facts
from gemmlab.compiled.sm.pipes import Pipe, Unit
from gemmlab.compiled.sm.program import Program, program
from gemmlab.compiled.sm.result import SCHEDULERS
from gemmlab.compiled.sm.streams import Stream
from gemmlab.kernels.kernel import Kernel
from gemmlab.model.transactions import SECTOR

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
    times = {part: one.share.blocks * whole[part] / clock(one, use[part]) for part in whole}
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
