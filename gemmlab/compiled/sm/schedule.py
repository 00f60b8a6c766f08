"""The loop over cycles says which warp each scheduler issues from, and what follows from that.

A scheduler stays with its warp while that can go on. Else it takes the warp that comes first: of
the block that started first, and in it the one with the highest number (`warp_order_ffma`,
`phases_of_8_blocks`: one block after the other comes to its end, two at a time). So blocks fall
out of step, and one computes while the other loads.

Two things hold all warps of a scheduler: operands that have to wait for a port of the registers
(pauses that the compiler wrote last longer by that), and a memory instruction before a full queue.

What a warp waits for has a cycle in which it ends, or something else has to happen first (`NEVER`):
a place in a queue, the last warp at a barrier. So cycles in which nothing happens are left out.
"""

from gemmlab.compiled.sass.listing import BARRIERS
from gemmlab.compiled.sm.barriers import arrive, ask, leave, passes, start
from gemmlab.compiled.sm.compiled import VERSION, compiled, kept
from gemmlab.compiled.sm.fetching import enter
from gemmlab.compiled.sm.memory import (
    be_ahead,
    dispatch,
    enqueue,
    next_dispatch,
    read_matrices,
    store_box,
)
from gemmlab.compiled.sm.pipes import NEVER, Pipe, Unit, complete, free
from gemmlab.compiled.sm.registers import delay_product, read_operands
from gemmlab.compiled.sm.result import SCHEDULERS, Reason

STALL, SCOREBOARD, BARRIER, BANK, PIPE, LSU, FETCH, DISPATCH, IDLE, NOT_SELECTED = map(int, Reason)
LAST = NEVER  # a rank above those of all warps
OF_ALL, NO_PIPE, TENSOR = int(Pipe.OF_ALL), int(Pipe.NONE), int(Pipe.TENSOR)
MBARRIERS, MBARRIER_WAIT = int(Unit.MBARRIER_INIT), int(Unit.MBARRIER_WAIT)
BULK, BULK_STORE, BULK_STORES = int(Unit.BULK), int(Unit.BULK_STORE), int(Unit.BULK_STORES)
FIRST_QUEUED, LAST_QUEUED, COPIES = int(Unit.SHARED), int(Unit.COPY), int(Unit.COPIES)
MEETS, ARRIVES, WAITS = int(Unit.BARRIER), int(Unit.ARRIVAL), int(Unit.WAIT)


@compiled
def is_queued(code, flow, i, position):
    """Say whether an instruction asks something of memory, or waits for what was asked of it."""
    unit = code.unit[i]
    return unit == COPIES or (FIRST_QUEUED <= unit <= LAST_QUEUED and flow.cycles[position] > 0)


@compiled
def waited_for(boards, code, warp, i, t):
    """Return the cycle in which all scoreboards of instruction i are free, and the last one."""
    at, last = t, -1
    for board in range(BARRIERS):
        if code.waits[i] >> board & 1:
            cycle = free(boards, warp, board, 0)
            if cycle > at:
                at, last = cycle, board
    if code.unit[i] == WAITS and code.board[i] >= 0:
        cycle = free(boards, warp, code.board[i], code.left[i])
        if cycle > at:
            at, last = cycle, code.board[i]
    return at, last


@compiled
def pipe_free(schedulers, code, facts, scheduler, i):
    """Return the cycle in which a pipe is free for instruction i, and the pipe."""
    pipe, other = code.pipe[i], code.other[i]
    if pipe == OF_ALL:
        return schedulers.busy[0, pipe] - facts.of_all_queue, pipe
    if other != NO_PIPE and schedulers.busy[scheduler, other] < schedulers.busy[scheduler, pipe]:
        pipe = other
    return schedulers.busy[scheduler, pipe], pipe


@compiled
def obstacle(now, code, flow, facts, on, warp, t):
    """Return the cycle from which a warp may issue, why not before, and by which instruction."""
    scheduler = warp % SCHEDULERS
    position = now.warps.position[warp]
    i = flow.instructions[position]
    if now.lsu.length[scheduler] == now.lsu.queue.shape[1]:
        return NEVER, LSU, i
    at, reason, by = max(t, now.warps.ready[warp]), STALL, i
    if on.scoreboards:
        cycle, board = waited_for(now.boards, code, warp, i, t)
        if cycle > at:
            at, reason, by = cycle, SCOREBOARD, now.boards.cause[warp, board]
    if on.fetch and now.warps.fetched[warp] > at:
        at, reason, by = now.warps.fetched[warp], FETCH, i
    if on.banks and now.ports.free[scheduler] > at:
        at, reason, by = now.ports.free[scheduler], BANK, i
    if now.schedulers.issuing[scheduler] > at:
        at, reason, by = now.schedulers.issuing[scheduler], DISPATCH, i
    if on.pipes and code.pipe[i] != NO_PIPE:
        cycle, _ = pipe_free(now.schedulers, code, facts, scheduler, i)
        if cycle > at:
            at, reason, by = cycle, PIPE, i
    if on.barriers and code.unit[i] == MBARRIER_WAIT and flow.amounts[position] > 0:
        place = now.warps.block[warp]
        cycle = passes(now.mbarriers, flow, place, warp, position, t)
        if cycle > at:
            by = now.mbarriers.cause[place, flow.mbarriers[position]]
            at, reason = cycle, BARRIER
            if code.unit[by] == BULK:
                reason = SCOREBOARD
            else:
                by = i
    if now.warps.blocked[warp] <= at < now.warps.opens[warp]:
        at, reason, by = now.warps.opens[warp], BARRIER, i
    return at, reason, by


@compiled
def look(now, code, flow, facts, on, scheduler, t):
    """Return the warp that a scheduler issues from in cycle t, or -1, and when it looks again."""
    last = now.schedulers.last[scheduler]
    chosen, first = -1, -NEVER
    soon, reason, by = NEVER, IDLE, 0
    shown = now.account.reasons.shape[1] > 0
    for warp in range(scheduler, now.warps.position.shape[0], SCHEDULERS):
        now.account.why[warp] = -1
        if now.warps.position[warp] == now.warps.end[warp]:
            continue
        if chosen >= 0 and not shown and warp != last and now.warps.order[warp] <= first:
            continue  # another one goes before it in any case
        at, why, what = obstacle(now, code, flow, facts, on, warp, t)
        if at > t:
            if at < soon or reason == IDLE:
                soon, reason, by = at, why, what
        else:
            order = LAST if warp == last else now.warps.order[warp]
            if order > first:
                chosen, first = warp, order
        now.account.why[warp] = NOT_SELECTED if at <= t else why
    if chosen < 0:
        now.schedulers.next[scheduler] = soon
        now.schedulers.reason[scheduler] = reason
        now.schedulers.by[scheduler] = by
    return chosen


@compiled
def issue(now, code, flow, facts, on, warp, t):
    """An instruction of a warp issues in cycle t."""
    scheduler = warp % SCHEDULERS
    position = now.warps.position[warp]
    i = flow.instructions[position]
    now.account.issued[i] += 1
    now.account.total[0] += 1
    now.schedulers.last[scheduler] = warp
    pause = 1
    if on.stalls:
        pause = code.stall[i]
    now.warps.ready[warp] = t + pause
    now.warps.position[warp] = position + 1
    late = 0  # cycles for which a product waits for what it reads from shared memory
    if on.lsu and code.matrices[i] > 0:
        late = max(0, read_matrices(now.lsu, code.matrices[i], t) - t - code.interval[i])
    if code.pipe[i] != NO_PIPE:
        take_pipe(now, code, facts, on, warp, i, late, t)
    if is_queued(code, flow, i, position):
        enqueue(now.lsu, now.boards, code, scheduler, warp, position, i, t)
        if not on.lsu:
            dispatch(now.lsu, now.boards, code, flow, facts, on, scheduler, t + 1)
    elif code.unit[i] == BULK_STORES:
        complete(now.boards, warp, code.read[i], i, max(now.lsu.stores[warp], t + 2))
    else:
        if code.unit[i] == BULK_STORE:
            store_box(now.lsu, flow, facts, on, position, warp, t)
        complete(now.boards, warp, code.write[i], i, t + code.latency[i])
        complete(now.boards, warp, code.read[i], i, t + 2)
        complete(now.boards, warp, code.group[i], i, t + code.latency[i] + late)
    if on.barriers and code.unit[i] >= MBARRIERS:
        place = now.warps.block[warp]
        ask(now.mbarriers, now.lsu, now.schedulers, code, flow, facts, place, warp, i, position, t)
    if on.barriers and (code.unit[i] == MEETS or code.unit[i] == ARRIVES):
        arrive(now.blocks, now.warps, now.schedulers, code, facts, warp, i, t)
    if position + 1 == now.warps.end[warp]:
        leave(now.blocks, now.warps, now.schedulers, now.account, flow, facts, warp, t + 1)
        if now.blocks.count[1] > 0:
            be_ahead(now.lsu)
    elif on.fetch:
        go_on(now, code, facts, warp, i, flow.instructions[position + 1], t)


@compiled
def take_pipe(now, code, facts, on, warp, i, late, t):
    """Instruction i of a warp reads its operands and keeps a pipe busy, `late` cycles longer."""
    scheduler = warp % SCHEDULERS
    _, pipe = pipe_free(now.schedulers, code, facts, scheduler, i)
    interval = code.interval[i] + late
    if on.banks:
        reading = read_operands(now.ports, code, facts, i, scheduler, warp, t)
        interval = max(interval, reading)
        read = now.ports.free[scheduler] - 1  # the cycle in which it could begin to
        hold_all(now.warps, scheduler, read - t, t)
        now.schedulers.issuing[scheduler] = read + code.slots[i]
        longer = delay_product(now.ports, code, facts, i, scheduler, warp, t)
        now.schedulers.busy[scheduler, TENSOR] += longer
        now.ports.products[scheduler] += longer
    row = 0 if pipe == OF_ALL else scheduler
    now.schedulers.busy[row, pipe] = max(now.schedulers.busy[row, pipe], t) + interval
    if code.slots[i] > 1:
        now.ports.products[scheduler] = now.schedulers.busy[row, pipe]


@compiled
def go_on(now, code, facts, warp, i, j, t):
    """A warp that has issued instruction i in cycle t needs j, which may be in another line."""
    jumps = j != i + 1
    if not jumps and code.line[j] == code.line[i]:
        return
    at = enter(now.lines, facts, warp % SCHEDULERS, code.line[j], jumps, t)
    if jumps:
        now.warps.following[warp] = at + facts.line_latency
    else:
        at = max(at, now.warps.following[warp])
    now.warps.fetched[warp] = at


@compiled
def hold_all(warps, scheduler, cycles, t):
    """An instruction that has to wait for ports holds all: the pauses of all warps last longer."""
    for warp in range(scheduler, warps.ready.shape[0], SCHEDULERS):
        if warps.ready[warp] > t:
            warps.ready[warp] += cycles


@compiled
def show(now, scheduler, first, end):
    """In the timeline's cycles from `first` to `end`, warps wait for what they waited for."""
    reasons = now.account.reasons
    for cycle in range(max(first, 0), min(end, reasons.shape[1])):
        for warp in range(scheduler, reasons.shape[0], SCHEDULERS):
            reasons[warp, cycle] = now.account.why[warp]


@compiled
def charge(now, scheduler, first, t):
    """The slots before cycle t that a scheduler left empty get the reason that it had."""
    schedulers, account = now.schedulers, now.account
    since = schedulers.since[scheduler]
    if t > since:
        account.lost[schedulers.reason[scheduler], schedulers.by[scheduler]] += t - since
        show(now, scheduler, since - first, t - first)


@compiled
def earliest(schedulers):
    """Return the cycle in which the next scheduler looks."""
    t = NEVER
    for scheduler in range(SCHEDULERS):
        t = min(t, schedulers.next[scheduler])
    return t


def _run(version):
    """Make the loop; what Numba keeps of it on disk is found by its source and by `version`."""

    def run(now, code, flow, facts, on, first, limit):
        """Return the cycles until all blocks have ended; -1 where that takes more than `limit`.

        first : the first cycle that is shown
        """
        assert version
        for place in range(now.blocks.live.shape[0]):
            start(now.blocks, now.warps, now.schedulers, flow, facts, place, 0)
        cycles = 0
        while now.blocks.count[1] < flow.starts.shape[0]:
            t = earliest(now.schedulers)
            at, scheduler = next_dispatch(now.lsu)
            if at <= t and at < NEVER:
                dispatch(now.lsu, now.boards, code, flow, facts, on, scheduler, at)
                now.schedulers.next[scheduler] = min(now.schedulers.next[scheduler], at)
                continue
            if t >= limit:
                return -1
            for scheduler in range(SCHEDULERS):
                if now.schedulers.next[scheduler] == t:
                    charge(now, scheduler, first, t)
                    now.schedulers.since[scheduler] = t
                    warp = look(now, code, flow, facts, on, scheduler, t)
                    if warp >= 0:
                        now.schedulers.since[scheduler] = t + 1
                        now.schedulers.next[scheduler] = t + 1
                        show(now, scheduler, t - first, t + 1 - first)
                        if 0 <= t - first < now.account.shown.shape[1]:
                            i = flow.instructions[now.warps.position[warp]]
                            now.account.shown[warp, t - first] = i
                            now.account.reasons[warp, t - first] = -1
                        issue(now, code, flow, facts, on, warp, t)
                        cycles = t + 1
        for scheduler in range(SCHEDULERS):
            now.schedulers.reason[scheduler] = IDLE
            now.schedulers.by[scheduler] = 0
            charge(now, scheduler, first, cycles)
        return cycles

    return kept(run)


run = _run(VERSION)
