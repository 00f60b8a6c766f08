"""Fibers, and their meetings: calls that are made once all lanes that they wait for have come."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from gemmlab.model.transactions import WARP
from gemmlab.simt.machine.machine import Control, Machine
from gemmlab.simt.machine.variables import merged


@dataclass(eq=False)
class Fiber:
    """Lanes of a block that run together: those of `mask`, (1, threads).

    kernel : what they run; at : where they are in it, while they wait; wait : for what
    baton : released when it is their turn
    """

    machine: Machine
    mask: np.ndarray
    kernel: Callable[[], None]
    at: Control | None = None
    wait: Any = None
    baton: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))


@dataclass(eq=False)
class Meeting:
    """A call that is made when all have come: lanes of a block, of a warp, or of the grid.

    key : the machine, None for the grid; the `moment` of the call; which warp, if one
    fibers, calls : who has come, and with what arguments; here : their lanes
    named : the lanes that they wait for; None for all of the block
    """

    key: tuple
    here: Any = False
    named: Any = None
    fibers: list[Fiber] = field(default_factory=list)
    calls: list[tuple] = field(default_factory=list)
    held: bool = False
    result: Any = None

    def join(self, fiber: Fiber, named: Any, call: tuple) -> None:
        """Add a fiber."""
        m = fiber.machine
        self.fibers.append(fiber)
        self.calls.append(call)
        self.here = self.here | m.lanes.full(
            m.masks[-1] if fiber.at is None else fiber.at.masks[-1]
        )
        if named is not None:
            self.named = named if self.named is None else self.named | named


def moment(m: Machine) -> tuple:
    """Where lanes are that run: the calls that they are in, and the turns of their loops.

    Lanes in lock-step come to it together. A barrier that some of them leave out in one turn is
    not the one of the next turn, nor that of the same function called elsewhere.
    """
    calls = (frame.place for frame in m.calls.frames[1:])
    return (m.calls.place, *calls, *(loop.turns for loop in m.loops.open))


def held(meeting: Meeting, function: Callable, alive: np.ndarray) -> Any:
    """What `function` returns for all lanes that have come."""
    m = meeting.key[0]
    own = m.masks[:]
    (args, keywords), *others = meeting.calls
    for fiber, (more, named) in zip(meeting.fibers[1:], others, strict=True):
        lanes = fiber.mask
        args = tuple(merged(lanes, *p, "") for p in zip(args, more, strict=True))
        keywords = {k: merged(lanes, v, named[k], k) for k, v in keywords.items()}
    m.masks[:] = [alive, meeting.here]
    result = function(*args, **keywords)
    m.masks[:] = own
    return result


def named_lanes(m: Machine, mask: Any) -> np.ndarray:
    """The lanes that the active ones name by a mask of their warp."""
    bits = m.lanes.in_warps(np.asarray(mask).astype(np.int64))
    on = m.lanes.in_warps(m.lanes.full(m.masks[-1]))
    named = ((bits[..., :, None] >> np.arange(WARP)) & 1 == 1) & on[..., :, None]
    return named.any(axis=-2).reshape(m.lanes.shape)
