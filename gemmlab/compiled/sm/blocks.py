"""Blocks: they start as others end, and their warps meet at barriers."""

from __future__ import annotations

from gemmlab.compiled.sm.compiled import compiled
from gemmlab.compiled.sm.pipes import Unit
from gemmlab.compiled.sm.result import SCHEDULERS
from gemmlab.compiled.sm.scoreboards import NEVER

MEETS = int(Unit.BARRIER)


@compiled
def start(blocks, warps, schedulers, flow, place, t):
    """The next block of the queue comes to a place, in cycle t."""
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
            start(blocks, warps, schedulers, flow, place, t)
    else:
        for number in range(blocks.arrived.shape[1]):
            if blocks.arrived[place, number] >= blocks.live[place]:
                open_barrier(blocks, warps, schedulers, facts, place, number)
