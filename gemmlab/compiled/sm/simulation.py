"""One SM is simulated: a listing and what its warps execute in, cycles and slots out."""

import math
from collections import namedtuple
from collections.abc import Sequence
from dataclasses import asdict, fields
from typing import NamedTuple

import numpy as np

from gemmlab.compiled.sass.listing import Listing
from gemmlab.compiled.sm import outcomes
from gemmlab.compiled.sm.barriers import Mbarriers, idle_mbarriers
from gemmlab.compiled.sm.compiled import COMPILED
from gemmlab.compiled.sm.facts import UNITS, Facts, facts
from gemmlab.compiled.sm.fetching import Lines, empty_lines
from gemmlab.compiled.sm.memory import Lsu, idle_lsu
from gemmlab.compiled.sm.pipes import Pipe, Scoreboards, free_scoreboards
from gemmlab.compiled.sm.program import lines, program
from gemmlab.compiled.sm.registers import Ports, free_ports
from gemmlab.compiled.sm.result import SCHEDULERS, Reason, Result, Timeline
from gemmlab.compiled.sm.schedule import run
from gemmlab.compiled.sm.streams import Block, Effects, Stream

NAMED = 16  # barriers of a block


class Flow(NamedTuple):
    """The flow has all streams one after the other, and where those of each block begin and end.

    instructions, cycles, sectors, levels, mbarriers, amounts, moved : as in `Stream`
    starts, ends : (blocks, warps)
    """

    instructions: np.ndarray
    cycles: np.ndarray
    sectors: np.ndarray
    levels: np.ndarray
    mbarriers: np.ndarray
    amounts: np.ndarray
    moved: np.ndarray
    starts: np.ndarray
    ends: np.ndarray


class Warps(NamedTuple):
    """The warps are arrays by the place for a warp; place w belongs to scheduler w mod 4.

    position, end : in the flow
    block : the place of its block
    ready : the cycle from which its next instruction may issue, for all that it knows itself
    fetched : the cycle from which that instruction is there
    following : after a branch, the cycle from which the line after its target's is there
    order : its rank: the highest goes first
    barrier : the one that it has come to and that is not open, -1 for none
    blocked, opens : from which cycle it waits there, and until which
    """

    position: np.ndarray
    end: np.ndarray
    block: np.ndarray
    ready: np.ndarray
    fetched: np.ndarray
    following: np.ndarray
    order: np.ndarray
    barrier: np.ndarray
    blocked: np.ndarray
    opens: np.ndarray


class Schedulers(NamedTuple):
    """The schedulers are arrays by scheduler.

    next : the cycle in which it looks for a warp again
    since, reason, by : since when it has issued nothing, why, and by which instruction
    last : the warp that it issued from last
    busy : (schedulers, pipes), until which cycle
    issuing : until which cycle what issued last takes the slots
    """

    next: np.ndarray
    since: np.ndarray
    reason: np.ndarray
    by: np.ndarray
    last: np.ndarray
    busy: np.ndarray
    issuing: np.ndarray


class Blocks(NamedTuple):
    """The blocks are arrays by the place for a block.

    number : in the order of the queue
    live : its warps that have not ended
    arrived : (places, barriers), warps at a barrier
    count : (2,), blocks that have started, and that have ended
    unit : (1,), when the unit that counts arrivals is free
    handed : (1,), when the next block can be handed out
    """

    number: np.ndarray
    live: np.ndarray
    arrived: np.ndarray
    count: np.ndarray
    unit: np.ndarray
    handed: np.ndarray


class Account(NamedTuple):
    """The account becomes the `Result`.

    shown, reasons : `issued` and `reasons` of its `Timeline`
    total : (1,), instructions that were issued
    why : the `Reason` why each warp did not issue when its scheduler looked last, -1 for none
    """

    issued: np.ndarray
    lost: np.ndarray
    block_ends: np.ndarray
    issued_then: np.ndarray
    total: np.ndarray
    shown: np.ndarray
    reasons: np.ndarray
    why: np.ndarray


class State(NamedTuple):
    """The state of the SM is all that changes from cycle to cycle."""

    warps: Warps
    boards: Scoreboards
    schedulers: Schedulers
    lsu: Lsu
    ports: Ports
    lines: Lines
    blocks: Blocks
    mbarriers: Mbarriers
    account: Account


def state(
    flow: Flow, resident: int, code_size: int, lines: int, first: int, shown: int, facts: Facts
) -> State:
    """Make an SM before the first cycle, with places for `resident` blocks.

    code_size, lines : instructions of the listing, and lines of them
    first, shown : the first cycle of the timeline, and its cycles
    """
    blocks, each = flow.starts.shape
    warps = resident * each

    def zeros(*shape: int) -> np.ndarray:
        return np.zeros(shape, np.int64)

    return State(
        Warps(*(zeros(warps) for _ in range(10))),
        free_scoreboards(warps),
        Schedulers(
            next=zeros(SCHEDULERS),
            since=zeros(SCHEDULERS),
            reason=zeros(SCHEDULERS) + Reason.IDLE,
            by=zeros(SCHEDULERS),
            last=zeros(SCHEDULERS) - 1,
            busy=zeros(SCHEDULERS, len(Pipe) - 1),
            issuing=zeros(SCHEDULERS),
        ),
        idle_lsu(warps, facts),
        free_ports(facts),
        empty_lines(lines, facts),
        Blocks(
            zeros(resident),
            zeros(resident),
            zeros(resident, NAMED),
            *(zeros(n) for n in (2, 1, 1)),
        ),
        idle_mbarriers(
            resident, int(flow.mbarriers.max()) + 1, (first + shown) * bool(shown), warps
        ),
        Account(
            zeros(code_size),
            zeros(len(Reason), code_size),
            zeros(blocks),
            zeros(blocks),
            zeros(1),
            np.full((warps, shown), -1, np.int32),
            np.full((warps, shown), -1, np.int8),
            zeros(warps) - 1,
        ),
    )


Numbers = namedtuple("Numbers", list(UNITS))  # of `Facts`, as compiled code takes them
Switches = namedtuple("Switches", [f.name for f in fields(Effects)])
LIMIT = 100_000_000  # cycles
ALL = Effects()


def simulate(
    listing: Listing,
    blocks: Sequence[Block],
    resident: int | None = None,
    on: str | Facts = "h200",
    effects: Effects = ALL,
    window: tuple[int, int] | None = None,
    limit: int = LIMIT,
) -> Result:
    """Run blocks of warps on one SM.

    blocks : in the order in which they start, all of the same number of warps
    resident : blocks at a time; the others start as these end. None for all
    on : the device whose SM it is, or the facts of one
    window : first cycle and number of cycles for which a `Timeline` is kept
    Raises ValueError for blocks of different sizes, for indices that are none of the listing, and
    where it takes more than `limit` cycles or cannot end.
    """
    known = on if isinstance(on, Facts) else facts(on)
    sizes = {len(block) for block in blocks}
    if len(sizes) != 1 or 0 in sizes:
        raise ValueError(f"blocks of the same number of warps are needed, not of {sorted(sizes)}")
    if not COMPILED:
        found = outcomes.find(outcome_key(listing, blocks, resident, known, effects, window))
        if found is not None:
            return found
    flow = _flow(blocks)
    if not 0 <= flow.instructions.min() <= flow.instructions.max() < len(listing.instructions):
        raise ValueError(
            f"streams execute instructions {flow.instructions.min()} to "
            f"{flow.instructions.max()}, the listing has {len(listing.instructions)}"
        )
    first, shown = window or (0, 0)
    code = program(listing, known)
    places = min(len(blocks), resident or len(blocks))
    now = state(flow, places, len(code.kind), lines(listing, known), first, shown, known)
    numbers = Numbers(**{name: getattr(known, name) for name in UNITS})
    cycles = run(now, code, flow, numbers, Switches(**asdict(effects)), first, limit)
    if cycles < 0:
        raise ValueError(f"the blocks do not end within {limit} cycles")
    account = now.account
    opened = now.mbarriers.opened[..., first:]
    timeline = Timeline(first, account.shown, account.reasons, opened) if window else None
    return Result(
        int(cycles),
        account.issued,
        account.lost,
        code.kind,
        account.block_ends,
        account.issued_then,
        timeline,
        math.ceil(now.lsu.share.max() - now.lsu.ahead[0]),
    )


def outcome_key(
    listing: Listing,
    blocks: Sequence[Block],
    resident: int | None = None,
    on: str | Facts = "h200",
    effects: Effects = ALL,
    window: tuple[int, int] | None = None,
) -> str:
    """Hash what the outcome of a simulation follows from."""
    known = on if isinstance(on, Facts) else facts(on)
    places = min(len(blocks), resident or len(blocks))
    parts = (str(listing), tuple(_flow(blocks)), places, known, effects, window)
    return outcomes.key(parts + ((known.others,) if known.others else ()))


def _flow(blocks: Sequence[Block]) -> Flow:
    """Put each stream into the flow once, however many warps execute it."""
    streams: dict[int, Stream] = {id(s): s for block in blocks for s in block}
    ends = dict(zip(streams, np.cumsum([len(s) for s in streams.values()]), strict=True))
    return Flow(
        *(
            np.concatenate([getattr(s, name) for s in streams.values()]).astype(np.int64)
            for name in (
                *("instructions", "cycles", "sectors", "levels"),
                *("mbarriers", "amounts", "moved"),
            )
        ),
        starts=np.array([[ends[id(s)] - len(s) for s in block] for block in blocks], np.int64),
        ends=np.array([[ends[id(s)] for s in block] for block in blocks], np.int64),
    )
