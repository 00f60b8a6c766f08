"""Memory has the queues of four schedulers, the pipe of shared memory and L1, and a share of L2."""

from typing import NamedTuple

import numpy as np

from gemmlab.compiled.sm.compiled import compiled
from gemmlab.compiled.sm.facts import Facts
from gemmlab.compiled.sm.pipes import NEVER, Unit, complete, hold
from gemmlab.compiled.sm.result import SCHEDULERS
from gemmlab.compiled.sm.streams import Level

SHARED, COPY, COPIES = int(Unit.SHARED), int(Unit.COPY), int(Unit.COPIES)
L1, L2, DRAM, STORED = map(int, Level)
SECTOR = 32  # bytes


class Lsu(NamedTuple):
    """The LSU keeps what is on its way to memory.

    queue : (schedulers, places, 3), warp, position in the flow, and cycle of entry
    head, length : (schedulers,), of each queue
    way : (schedulers,), when the way from a queue to the pipe is free
    pipe : (2,), when the pipe is free, and the scheduler that it took from last
    share : (2,), when L2, and device memory, have time for this SM's next sector
    copies : (warps,), when all copies of a warp are done
    stores : (warps,), when the TMA has read all that a warp lets it store
    fetched : (warps,), when all has come that a warp asked of L2
    """

    queue: np.ndarray
    head: np.ndarray
    length: np.ndarray
    way: np.ndarray
    pipe: np.ndarray
    share: np.ndarray
    copies: np.ndarray
    stores: np.ndarray
    fetched: np.ndarray


def idle_lsu(warps: int, facts: Facts) -> Lsu:
    """An LSU of which nothing has been asked."""
    return Lsu(
        np.zeros((SCHEDULERS, facts.lsu_queue + 1, 3), np.int64),
        *(np.zeros(n, np.int64) for n in (SCHEDULERS, SCHEDULERS, SCHEDULERS, 2)),
        share=np.zeros(2),
        copies=np.zeros(warps, np.int64),
        stores=np.zeros(warps, np.int64),
        fetched=np.zeros(warps, np.int64),
    )


@compiled
def enqueue(lsu, boards, code, scheduler, warp, position, i, t):
    """A memory instruction takes its place in the queue of its scheduler."""
    hold(boards, warp, code.write[i], i)
    hold(boards, warp, code.read[i], i)
    place = (lsu.head[scheduler] + lsu.length[scheduler]) % lsu.queue.shape[1]
    entry = lsu.queue[scheduler, place]
    entry[0] = warp
    entry[1] = position
    entry[2] = t + 1
    lsu.length[scheduler] += 1


@compiled
def next_dispatch(lsu):
    """Return the cycle in which the pipe takes an instruction, and from which scheduler."""
    soon, chosen = NEVER, 0
    for k in range(1, SCHEDULERS + 1):
        scheduler = (lsu.pipe[1] + k) % SCHEDULERS
        if lsu.length[scheduler] > 0:
            entered = lsu.queue[scheduler, lsu.head[scheduler], 2]
            at = max(max(entered, lsu.way[scheduler]), lsu.pipe[0])
            if at < soon:
                soon, chosen = at, scheduler
    return soon, chosen


@compiled
def dispatch(lsu, boards, code, flow, facts, on, scheduler, t):
    """The pipe starts with an instruction in cycle t: now it is known when that is done."""
    entry = lsu.queue[scheduler, lsu.head[scheduler]]
    warp, position = entry[0], entry[1]
    lsu.head[scheduler] = (lsu.head[scheduler] + 1) % lsu.queue.shape[1]
    lsu.length[scheduler] -= 1
    i = flow.instructions[position]
    cycles = flow.cycles[position] * facts.wavefront_interval
    if cycles > 0:
        cycles = max(cycles, facts.lsu_interval)
    if on.lsu:
        lsu.pipe[0] = t + cycles
        lsu.pipe[1] = scheduler
        lsu.way[scheduler] = t + facts.lsu_wavefront * cycles
        if code.stores[i]:
            # one register a lane is sent with the address, and each further one after it
            registers = facts.store_interval * (code.words[i] + 1)
            lsu.way[scheduler] = max(lsu.way[scheduler], t + registers)
    unit = code.unit[i]
    if unit == COPIES:
        done = max(lsu.copies[warp], t)
    else:
        done = t - 1 + latency(lsu, code, flow, facts, on, i, position, warp, t)
    if unit == COPY:
        lsu.copies[warp] = max(lsu.copies[warp], done)
    boards.pending[warp, code.write[i]] -= code.write[i] >= 0
    boards.pending[warp, code.read[i]] -= code.read[i] >= 0
    complete(boards, warp, code.write[i], i, done)
    complete(boards, warp, code.read[i], i, t - 1 + facts.operands_latency)


@compiled
def read_matrices(lsu, cycles, t):
    """A product that begins in cycle t reads shared memory; return the cycle in which it has."""
    lsu.pipe[0] = max(lsu.pipe[0], t) + cycles
    return lsu.pipe[0]


@compiled
def store_box(lsu, flow, facts, on, position, warp, t):
    """The TMA stores a box: it reads shared memory as fast as L2 takes what it reads."""
    if on.l2 and flow.sectors[position] > 0:
        _, sent = shares(lsu, facts, flow.sectors[position], flow.levels[position], t)
        lsu.stores[warp] = max(lsu.stores[warp], int(sent))


@compiled
def latency(lsu, code, flow, facts, on, i, position, warp, t):
    """Return the cycles from an instruction that reaches the pipe now to one that waits for it.

    One that waits and asks L2 for nothing waits for what its warp has asked for before.
    """
    unit, level = code.unit[i], flow.levels[position]
    further = flow.cycles[position] - 1
    cycles = facts.wavefront_latency * further + facts.register_latency * (code.words[i] - 1)
    if unit == SHARED:
        return cycles + facts.shared_latency
    if unit == COPY:
        cycles += facts.copy_latency
    if level == L1:
        return cycles + facts.l1_latency
    if flow.sectors[position] == 0:
        return max(cycles + facts.l1_latency, lsu.fetched[warp] - t)
    if on.l2:
        began, _ = shares(lsu, facts, flow.sectors[position], level, t)
        cycles += int(began) - t
    cycles += facts.l2_latency if level == L2 else facts.dram_latency
    lsu.fetched[warp] = max(lsu.fetched[warp], t + cycles)
    return cycles


@compiled
def shares(lsu, facts, sectors, level, t):
    """Return when L2, and device memory if asked, begin and have sent what is asked in cycle t."""
    asked = sectors * SECTOR
    began = max(lsu.share[0], float(t))
    lsu.share[0] = began + asked / facts.l2_bytes_per_cycle
    sent = lsu.share[0]
    if level in (DRAM, STORED):
        rate = facts.dram_bytes_per_cycle if level == DRAM else facts.dram_stored_per_cycle
        first = max(lsu.share[1], float(t))
        lsu.share[1] = first + asked / rate
        began, sent = max(began, first), max(sent, lsu.share[1])
    return began, sent
