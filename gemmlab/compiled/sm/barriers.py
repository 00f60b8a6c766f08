"""Blocks start as others end, and their warps meet at barriers and at mbarriers.

An mbarrier has phases, which threads' arrivals and copied bytes complete. The TMA takes copies one
after the other, at the SM's share of L2. When a copy begins it is known when its bytes have come;
with the last arrival it is known when the phase is complete.
"""

from typing import NamedTuple

import numpy as np

from gemmlab.compiled.sm.compiled import compiled
from gemmlab.compiled.sm.memory import crowded, shares
from gemmlab.compiled.sm.pipes import NEVER, Unit
from gemmlab.compiled.sm.result import SCHEDULERS
from gemmlab.compiled.sm.streams import Level

MEETS = int(Unit.BARRIER)


@compiled
def start(blocks, warps, schedulers, flow, facts, place, t):
    """The next block of the queue comes to a place, from cycle t on; one after the other does."""
    t = max(t, blocks.handed[0])
    blocks.handed[0] = t + facts.block_interval
    number = blocks.count[0]
    blocks.count[0] += 1
    each = flow.starts.shape[1]
    blocks.number[place] = number
    blocks.live[place] = each
    for k in range(each):
        warp = place * each + k
        warps.block[warp] = place
        warps.position[warp] = flow.starts[number, k]
        warps.end[warp] = flow.ends[number, k]
        warps.ready[warp] = t
        warps.fetched[warp] = t
        warps.following[warp] = t
        warps.order[warp] = k - number * each
        warps.barrier[warp] = -1
        warps.opens[warp] = 0
        schedulers.next[warp % SCHEDULERS] = min(schedulers.next[warp % SCHEDULERS], t)


@compiled
def arrive(blocks, warps, schedulers, code, facts, warp, i, t):
    """A warp comes to a barrier in cycle t; the last one opens it."""
    place, number = warps.block[warp], code.barrier[i]
    blocks.unit[0] = max(blocks.unit[0], t) + facts.barrier_interval
    blocks.arrived[place, number] += 1
    if code.unit[i] == MEETS:
        warps.barrier[warp] = number
        warps.blocked[warp] = t + facts.barrier_delay
        warps.opens[warp] = NEVER
    expected = code.expected[i] if code.expected[i] > 0 else blocks.live[place]
    if blocks.arrived[place, number] >= expected:
        open_barrier(blocks, warps, schedulers, facts, place, number)


@compiled
def open_barrier(blocks, warps, schedulers, facts, place, number):
    """All that wait at a barrier go on."""
    at = blocks.unit[0] + facts.barrier_latency
    blocks.arrived[place, number] = 0
    each = warps.block.shape[0] // blocks.live.shape[0]
    for warp in range(place * each, place * each + each):
        if warps.barrier[warp] == number:
            warps.barrier[warp] = -1
            warps.opens[warp] = at
            schedulers.next[warp % SCHEDULERS] = min(schedulers.next[warp % SCHEDULERS], at)


@compiled
def leave(blocks, warps, schedulers, account, flow, facts, warp, t):
    """A warp ends before cycle t; with the last one its block does, and another one starts."""
    place = warps.block[warp]
    blocks.live[place] -= 1
    if blocks.live[place] == 0:
        account.block_ends[blocks.number[place]] = t
        account.issued_then[blocks.number[place]] = account.total[0]
        blocks.count[1] += 1
        if blocks.count[0] < flow.starts.shape[0]:
            start(blocks, warps, schedulers, flow, facts, place, t + facts.block_latency)
    else:
        for number in range(blocks.arrived.shape[1]):
            if blocks.arrived[place, number] >= blocks.live[place]:
                open_barrier(blocks, warps, schedulers, facts, place, number)


INIT, EXPECTS, WAIT = int(Unit.MBARRIER_INIT), int(Unit.MBARRIER_EXPECTS), int(Unit.MBARRIER_WAIT)
BULK, REMOTE = int(Unit.BULK), int(Unit.REMOTE_STORE)
# Cycles from an SM to another of its cluster. Source: W. Luo et al., "Benchmarking and Dissecting
# the Nvidia Hopper GPU Architecture via Microbenchmarking", arXiv:2402.13499.
AWAY = 180
L2 = int(Level.L2)


class Mbarriers(NamedTuple):
    """The mbarriers are arrays by the place of a block and the number of an mbarrier in it.

    count : arrivals of a phase; pending, bytes : what this phase still waits for
    complete : phases that are complete, or of which it is known when they will be
    opens : the cycle in which the last of these is; latest : of what has come in this phase
    cause : the instruction that has come last
    seen : by warp, the phase that it has waited for
    opened : by cycle, as far as cycles are shown, whether a phase is complete from then on
    """

    count: np.ndarray
    pending: np.ndarray
    bytes: np.ndarray
    complete: np.ndarray
    opens: np.ndarray
    latest: np.ndarray
    cause: np.ndarray
    seen: np.ndarray
    opened: np.ndarray


def idle_mbarriers(places: int, numbers: int, shown: int, warps: int) -> Mbarriers:
    """Make mbarriers that nobody has made; of `shown` cycles it is kept which of them open."""
    rest = (np.zeros((places, numbers), np.int64) for _ in range(7))
    seen = np.zeros((warps, numbers), np.int64)
    return Mbarriers(*rest, seen, np.zeros((places, numbers, shown), np.bool_))


@compiled
def ask(mbarriers, lsu, schedulers, code, flow, facts, place, warp, i, position, t):
    """An instruction makes an mbarrier, waits or arrives at one, or begins a copy, in cycle t."""
    number, amount, unit = flow.mbarriers[position], flow.amounts[position], code.unit[i]
    if amount == 0:
        return
    at = place, number
    if unit == WAIT:
        has, parity = mbarriers.complete[at], amount - 1
        if mbarriers.seen[warp, number] & 1 == parity:
            mbarriers.seen[warp, number] += 1
        else:
            mbarriers.seen[warp, number] = has - (has & 1 == parity)
    elif unit == INIT:
        each = mbarriers.seen.shape[0] // mbarriers.count.shape[0]
        mbarriers.seen[place * each : place * each + each, number] = 0
        mbarriers.count[at] = amount
        mbarriers.pending[at] = amount
        mbarriers.bytes[at] = 0
        mbarriers.complete[at] = 0
        mbarriers.opens[at] = t
        mbarriers.latest[at] = t
    elif unit == BULK:
        _, sent = shares(lsu, facts, flow, position, t)
        mbarriers.bytes[at] -= amount
        late = facts.l2_latency
        if flow.levels[position] != L2:
            late = facts.dram_latency + crowded(lsu, facts)
        come(mbarriers, schedulers, at, i, int(sent) + late)
    elif unit == REMOTE:
        mbarriers.bytes[at] -= amount
        come(mbarriers, schedulers, at, i, t + AWAY)
    elif unit == EXPECTS:
        mbarriers.pending[at] -= 1
        mbarriers.bytes[at] += amount
        come(mbarriers, schedulers, at, i, t + facts.mbarrier_latency)
    else:
        mbarriers.pending[at] -= amount
        come(mbarriers, schedulers, at, i, t + facts.mbarrier_latency)


@compiled
def come(mbarriers, schedulers, at, i, cycle):
    """Something that a phase waits for comes in a cycle; with the last of it the phase is known."""
    mbarriers.latest[at] = max(mbarriers.latest[at], cycle)
    mbarriers.cause[at] = i
    if mbarriers.pending[at] == 0 and mbarriers.bytes[at] == 0:
        mbarriers.complete[at] += 1
        mbarriers.opens[at] = mbarriers.latest[at]
        mbarriers.pending[at] = mbarriers.count[at]
        if mbarriers.opens[at] < mbarriers.opened.shape[2]:
            mbarriers.opened[at[0], at[1], mbarriers.opens[at]] = True
        for scheduler in range(SCHEDULERS):
            schedulers.next[scheduler] = min(schedulers.next[scheduler], mbarriers.opens[at])


@compiled
def passes(mbarriers, flow, place, warp, position, t):
    """Return the cycle in which a wait for a parity is over, as known in cycle t; else `NEVER`.

    The phase before the last one that is known is over until that one is complete. Here a warp may
    fall behind the others of its warpgroup, whose products it has to take part in on hardware: what
    it waits for is then long over.
    """
    number, parity = flow.mbarriers[position], flow.amounts[position] - 1
    at = place, number
    if mbarriers.complete[at] & 1 != parity:
        return mbarriers.opens[at]
    seen = mbarriers.seen[warp, number]
    late = seen & 1 == parity and mbarriers.complete[at] > seen + 1
    return t if late or mbarriers.opens[at] > t else NEVER
