"""Fibers none of which can go on: in a finer grain they might, or it is a deadlock."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gemmlab.simt.machine.loops import StepLimitError
from gemmlab.simt.machine.meetings import Fiber
from gemmlab.simt.machine.spinning import LANES, Grain, Spin, SpinsError
from gemmlab.simt.numbers.masks import without

if TYPE_CHECKING:
    from gemmlab.simt.machine.fibers import Fibers


def give_up(fibers: Fibers) -> None:
    """Nobody can go on: run in finer fibers if that may help, else report a deadlock."""
    finer = finer_grain(fibers)
    if finer:
        raise SpinsError(finer)
    firsts: dict[tuple, Fiber] = {}  # of those that spin in a line
    for fiber in fibers.spinning:
        source = fiber.at.frames[-1].source
        firsts.setdefault((source.file, fiber.wait.line), fiber)
    for (_, line), first in firsts.items():
        m = first.machine
        m.go_on(first.at)
        m.findings.hazard("deadlock", line, first.wait.mask, _why(fibers, first))
    raise StepLimitError


def finer_grain(fibers: Fibers) -> Grain | None:
    """The grain in which lanes that are out of a loop do not wait for those that spin in it."""
    if fibers.grain.name in LANES:
        whole = any(m.under_way.undivided for m in fibers.open)
        return Grain("warp") if fibers.grain.name == "warpgroup" and not whole else None
    groups = {}
    for fiber in (*fibers.spinning, *fibers.patient):
        lanes = fiber.machine.lanes
        if without(fiber.at.masks[0], fiber.wait.mask) is not False:
            groups[int(lanes.blocks[0, 0])] = lanes.full(fiber.wait.mask)
    if not groups:
        return None
    return Grain("group", groups) if fibers.grain.name == "block" else Grain("lane")


def _why(fibers: Fibers, fiber: Fiber) -> str:
    """What a fiber that spins waits for, and why nobody will set it."""
    text = f"thread {{thread}} spins until {fiber.wait.until}, "
    waiting = [f for meeting in fibers.meetings.values() for f in meeting.fibers]
    others = [f for f in (*fibers.spinning, *waiting) if f is not fiber]
    left = fibers.blocks - fibers.begun
    if left:
        return text + (
            f"and {fibers.holder} holds {fibers.at_once} such blocks at once: "
            f"{left} do not begin before others have ended"
        )
    if not others:
        return text + "and all other threads have ended"
    other = others[0]
    m, thread = other.machine, other.machine.lanes.first(other.at.masks[-1])[1]
    does = "spins in" if isinstance(other.wait, Spin) else "waits at"
    line = other.wait.line if isinstance(other.wait, Spin) else other.at.line
    return text + (
        f"and all others have ended or wait too: thread {m.lanes.thread_name(thread)} of "
        f"block {m.lanes.block_name(int(m.lanes.blocks[0, 0]))} {does} line {line}"
    )
