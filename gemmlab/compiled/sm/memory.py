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
USES = 0.0, 0.25, 0.5, 0.75, 0.9  # of device memory, for which it is known how long it takes
LATELY = 2000.0  # cycles: two or three waits for device memory


class Lsu(NamedTuple):
    """The LSU keeps what is on its way to memory.

    queue : (schedulers, places, 3), warp, position in the flow, and cycle of entry
    head, length : (schedulers,), of each queue
    way : (schedulers,), when the way from a queue to the pipe is free
    pipe : (2,), when the pipe is free, and the scheduler that it took from last
    share : (2,), when L2, and device memory, have time for this SM's next sector
    ahead : (1,), by how many cycles it may be ahead of its share
    copies : (warps,), when all copies of a warp are done
    stores : (warps,), when the TMA has read all that a warp lets it store
    fetched : (warps,), when all has come that a warp asked of L2
    busy : (3,), a cycle, and for what part of the time lately device memory read and wrote then
    chance : (1,), the last number drawn, the same ones in each simulation
    """

    queue: np.ndarray
    head: np.ndarray
    length: np.ndarray
    way: np.ndarray
    pipe: np.ndarray
    share: np.ndarray
    ahead: np.ndarray
    copies: np.ndarray
    stores: np.ndarray
    fetched: np.ndarray
    busy: np.ndarray
    chance: np.ndarray


def idle_lsu(warps: int, facts: Facts) -> Lsu:
    """An LSU of which nothing has been asked."""
    return Lsu(
        np.zeros((SCHEDULERS, facts.lsu_queue + 1, 3), np.int64),
        *(np.zeros(n, np.int64) for n in (SCHEDULERS, SCHEDULERS, SCHEDULERS, 2)),
        share=np.zeros(2),
        ahead=np.zeros(1),
        copies=np.zeros(warps, np.int64),
        stores=np.zeros(warps, np.int64),
        fetched=np.zeros(warps, np.int64),
        busy=np.zeros(3),
        chance=np.ones(1, np.int64),
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
        _, sent = shares(lsu, facts, flow, position, t)
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
        began, _ = shares(lsu, facts, flow, position, t)
        cycles += int(began) - t
    cycles += facts.l2_latency if level == L2 else facts.dram_latency
    if on.l2 and level == DRAM:
        cycles += crowded(lsu, facts)
    lsu.fetched[warp] = max(lsu.fetched[warp], t + cycles)
    return cycles


@compiled
def shares(lsu, facts, flow, position, t):
    """Return when L2, and device memory if asked, begin and have sent what is asked in cycle t."""
    level = flow.levels[position]
    first = max(lsu.share[0], float(t))
    lsu.share[0] = first + flow.sectors[position] * SECTOR / facts.l2_bytes_per_cycle
    began, sent = max(float(t), first - lsu.ahead[0]), max(float(t), lsu.share[0] - lsu.ahead[0])
    if level in (DRAM, STORED):
        rate = facts.dram_bytes_per_cycle if level == DRAM else facts.dram_stored_per_cycle
        cycles = flow.moved[position] * SECTOR / rate
        first = max(lsu.share[1], float(t))
        lsu.share[1] = first + cycles
        began = max(began, first - lsu.ahead[0])
        sent = max(sent, lsu.share[1] - lsu.ahead[0])
        remember(lsu, level, cycles, t)
    return began, sent


@compiled
def be_ahead(lsu):
    """Blocks that follow others begin on each SM at a time of its own, so that one may be ahead."""
    lsu.ahead[0] = LATELY


@compiled
def remember(lsu, level, cycles, t):
    """Device memory is busy for so many of this SM's cycles; what is long ago counts less."""
    fading = np.exp((lsu.busy[0] - t) / LATELY)
    lsu.busy[0] = t
    lsu.busy[1] *= fading
    lsu.busy[2] *= fading
    lsu.busy[1 if level == DRAM else 2] += cycles / LATELY


@compiled
def crowded(lsu, facts):
    """Return how much longer device memory takes while all SMs ask of it what this one does.

    Reads wait for each other, and longer among writes. Once SMs are out of step, each wait is
    another: a line may be far, and those before it many.
    """
    use = lsu.busy[1] + lsu.busy[2]
    written = np.sqrt(min(1.0, 2 * lsu.busy[2] / use)) if use > 0 else 0.0
    use = min(use, USES[-1])
    at = 0
    while use > USES[at + 1]:
        at += 1
    part = (use - USES[at]) / (USES[at + 1] - USES[at])
    reads = facts.dram_read_crowd[at] * (1 - part) + facts.dram_read_crowd[at + 1] * part
    both = facts.dram_copy_crowd[at] * (1 - part) + facts.dram_copy_crowd[at + 1] * part
    mean = reads + (both - reads) * written
    if lsu.ahead[0] == 0:
        return int(mean)
    wait = -mean / 2 * np.log(drawn(lsu) * drawn(lsu))
    return int((2 * drawn(lsu) - 1) * facts.dram_spread + wait)


@compiled
def drawn(lsu):
    """Draw a number between 0 and 1: S. Park and K. Miller, Communications of the ACM 31, 1988."""
    lsu.chance[0] = lsu.chance[0] * 16807 % 2147483647
    return lsu.chance[0] / 2147483647
