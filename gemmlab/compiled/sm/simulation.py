"""Simulating one SM: a listing and what its warps execute in, cycles and slots out."""

from __future__ import annotations

import math
from collections import namedtuple
from collections.abc import Sequence
from dataclasses import asdict, fields

import numpy as np

from gemmlab.compiled.sass.listing import Listing
from gemmlab.compiled.sm.effects import Effects
from gemmlab.compiled.sm.facts import UNITS, Facts, facts
from gemmlab.compiled.sm.program import lines, program
from gemmlab.compiled.sm.result import Result, Timeline
from gemmlab.compiled.sm.schedule import run
from gemmlab.compiled.sm.state import Flow, state
from gemmlab.compiled.sm.streams import Block, Stream

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
        math.ceil(now.lsu.share.max()),
    )


def _flow(blocks: Sequence[Block]) -> Flow:
    """Each stream once, however many warps execute it."""
    streams: dict[int, Stream] = {id(s): s for block in blocks for s in block}
    ends = dict(zip(streams, np.cumsum([len(s) for s in streams.values()]), strict=True))
    return Flow(
        *(
            np.concatenate([getattr(s, name) for s in streams.values()]).astype(np.int64)
            for name in (
                *("instructions", "cycles", "sectors", "levels"),
                *("mbarriers", "amounts"),
            )
        ),
        starts=np.array([[ends[id(s)] - len(s) for s in block] for block in blocks]),
        ends=np.array([[ends[id(s)] for s in block] for block in blocks]),
    )
