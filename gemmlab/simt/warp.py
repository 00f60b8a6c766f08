"""What the threads of a block or a warp do together: barriers, votes and shuffles."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from gemmlab.model.transactions import WARP
from gemmlab.simt.notes import note_returned
from gemmlab.simt.tracking import spread

if TYPE_CHECKING:
    from gemmlab.simt.machine import Machine


def syncthreads(m: Machine) -> None:
    """Begin a new barrier interval in each block that gets here."""
    here, alive = m.masks[-1], m.alive()
    if here is False:
        return
    m.tick(m.line, "inst_barrier")
    shape = (len(m.blocks), m.threads)
    arrived = m.full(here)
    if alive is not None:
        note_returned(m, arrived, alive)
    waiting = m.full(alive) & ~arrived
    partial = arrived.any(axis=1) & waiting.any(axis=1) if waiting.any() else np.zeros(1, bool)
    if partial.any():
        b = int(partial.argmax())
        came, missing = int(arrived[b].argmax()), int(waiting[b].argmax())
        lanes = np.zeros(shape, bool)
        lanes[b, came] = True
        text = "thread {thread} waits at a barrier that thread {other} does not reach"
        m.hazard("divergent-barrier", m.line, lanes, missing, text)
    in_block = arrived.any(axis=1)
    if in_block.all():
        m.epoch = m.epoch + 1
    else:
        m.epoch = m.epoch + in_block.astype(np.int32).reshape(-1, 1)
    m.count(m.line, "barriers", int(in_block.sum()))


def syncwarp(m: Machine, mask: Any = 0xFFFFFFFF) -> None:
    """Wait for the lanes that `mask` names."""
    here = m.masks[-1]
    if here is False:
        return
    on = _taking_part(m, mask, "syncwarp")
    if m.syncs is None:
        m.syncs = np.zeros((len(m.blocks), m.threads // WARP), np.int64)
    shadows = [a.shadow for a in m.shared.values() if a.shadow is not None]
    for shadow in shadows:
        shadow.order(m.syncs)
        if np.ndim(here) == 2 and len(here) > 1:
            shadow.widen(len(m.blocks))
    m.syncs += on.any(axis=-1)


def _block_votes(m: Machine, predicate: Any) -> tuple[np.ndarray, np.ndarray]:
    """Of each block, how many threads arrive at a barrier, and how many of them say yes."""
    on = m.full(m.masks[-1])
    yes = on & spread(m, np.not_equal(predicate, 0))
    syncthreads(m)
    return on.sum(axis=1, keepdims=True), yes.sum(axis=1, keepdims=True)


def syncthreads_count(m: Machine, predicate: Any) -> Any:
    """A barrier, and for how many of the block's threads `predicate` holds."""
    return _block_votes(m, predicate)[1]


def syncthreads_and(m: Machine, predicate: Any) -> Any:
    """A barrier, and 1 if `predicate` holds for all of the block's threads."""
    here, yes = _block_votes(m, predicate)
    return (here == yes).astype(np.int64)


def syncthreads_or(m: Machine, predicate: Any) -> Any:
    """A barrier, and 1 if `predicate` holds for any of the block's threads."""
    return (_block_votes(m, predicate)[1] > 0).astype(np.int64)


def _by_warp(m: Machine, value: Any) -> np.ndarray:
    """A value of each lane as (blocks, warps, 32)."""
    return spread(m, value).reshape(len(m.blocks), -1, WARP)


def _per_lane(m: Machine, value: np.ndarray) -> np.ndarray:
    """A value of each warp, (blocks, warps, 1 or 32), for each lane."""
    return np.broadcast_to(value, (len(m.blocks), m.threads // WARP, WARP)).reshape(
        len(m.blocks), m.threads
    )


def _taking_part(m: Machine, mask: Any, name: str) -> np.ndarray:
    """The active lanes, (blocks, warps, 32); a hazard where `mask` names none or leaves out one."""
    m.tick(m.line, "inst_vote" if name.startswith(("all", "any", "eq", "ball", "mat"))
           else "inst_shuffle")  # fmt: skip
    on = _by_warp(m, m.full(m.masks[-1]))
    bits = _by_warp(m, np.asarray(mask).astype(np.int64))
    own = (bits >> np.arange(WARP)) & 1 == 1
    if (on & ~own).any():
        lanes = (on & ~own).reshape(len(m.blocks), m.threads)
        text = f"thread {{thread}} calls cuda.{name} with a mask that leaves it out"
        m.hazard("divergent-barrier", m.line, lanes, None, text)
    named = ((bits[..., :, None] >> np.arange(WARP)) & 1 == 1) & on[..., :, None]
    alive = _by_warp(m, m.full(m.alive()))
    missing = named & (alive & ~on)[..., None, :]
    if missing.any():
        b, w, i, other = (int(v) for v in np.argwhere(missing)[0])
        lanes = np.zeros((len(m.blocks), m.threads), bool)
        lanes[b, w * WARP + i] = True
        text = f"thread {{thread}} waits in cuda.{name} for thread {{other}}, which is not there"
        m.hazard("divergent-barrier", m.line, lanes, w * WARP + other, text)
    return on


# Where a shuffle reads: from the lane and the operand to a lane, itself where that is outside.
def _up(lane: np.ndarray, delta: np.ndarray) -> np.ndarray:
    return np.where(lane - delta >= 0, lane - delta, lane)


def _down(lane: np.ndarray, delta: np.ndarray) -> np.ndarray:
    return np.where(lane + delta < WARP, lane + delta, lane)


SHUFFLES: dict[str, Callable] = {
    "shfl_sync": lambda lane, source: np.broadcast_to(source % WARP, lane.shape),
    "shfl_up_sync": _up,
    "shfl_down_sync": _down,
    "shfl_xor_sync": lambda lane, bits: (lane ^ bits) % WARP,
}


def shuffle(m: Machine, name: str, mask: Any, value: Any, where: Any) -> Any:
    """The `value` of another lane of the warp; a hazard where that lane does not take part."""
    on = _taking_part(m, mask, name)
    operand = _by_warp(m, np.asarray(where).astype(np.int64))
    lane = np.broadcast_to(np.arange(WARP), operand.shape)
    source = SHUFFLES[name](lane, operand)
    present = np.take_along_axis(on, source, axis=-1)
    lost = (on & ~present).reshape(len(m.blocks), m.threads)
    if lost.any():
        row, thread = (int(v) for v in np.argwhere(lost)[0])
        other = int(source.reshape(lost.shape)[row, thread])
        text = f"thread {{thread}} reads lane {other} in cuda.{name}, which does not take part"
        m.hazard("uninitialised-read", m.line, lost, None, text)
    return _per_lane(m, np.take_along_axis(_by_warp(m, value), source, axis=-1))


def all_sync(m: Machine, mask: Any, predicate: Any) -> Any:
    """Whether `predicate` holds in all lanes that take part."""
    on = _taking_part(m, mask, "all_sync")
    yes = _by_warp(m, np.not_equal(predicate, 0))
    return _per_lane(m, (yes | ~on).all(axis=-1, keepdims=True))


def any_sync(m: Machine, mask: Any, predicate: Any) -> Any:
    """Whether `predicate` holds in any lane that takes part."""
    on = _taking_part(m, mask, "any_sync")
    yes = _by_warp(m, np.not_equal(predicate, 0))
    return _per_lane(m, (yes & on).any(axis=-1, keepdims=True))


def eq_sync(m: Machine, mask: Any, predicate: Any) -> Any:
    """Whether `predicate` is the same in all lanes that take part."""
    on = _taking_part(m, mask, "eq_sync")
    yes = _by_warp(m, np.not_equal(predicate, 0))
    same = (yes | ~on).all(axis=-1, keepdims=True) | ~(yes & on).any(axis=-1, keepdims=True)
    return _per_lane(m, same)


def _ballot(lanes: np.ndarray) -> np.ndarray:
    """Lanes as the bits of an integer, (…, 1); unsigned 32-bit, as the hardware's register."""
    return (lanes << np.arange(WARP)).sum(axis=-1, keepdims=True).astype(np.uint32)


def ballot_sync(m: Machine, mask: Any, predicate: Any) -> Any:
    """A bit for each lane that takes part and for which `predicate` holds."""
    on = _taking_part(m, mask, "ballot_sync")
    ballot = _ballot(_by_warp(m, np.not_equal(predicate, 0)) & on)
    return _per_lane(m, ballot.astype(np.int32))


def match_any_sync(m: Machine, mask: Any, value: Any) -> Any:
    """A bit for each lane that takes part and has the same value."""
    on = _taking_part(m, mask, "match_any_sync")
    values = _by_warp(m, value)
    same = (values[..., :, None] == values[..., None, :]) & on[..., None, :]
    return _per_lane(m, _ballot(same)[..., 0].astype(np.int32))


def match_all_sync(m: Machine, mask: Any, value: Any) -> tuple:
    """The lanes that take part, or 0, and whether all of them have the same value."""
    on = _taking_part(m, mask, "match_all_sync")
    values = _by_warp(m, value)
    first = np.take_along_axis(values, on.argmax(axis=-1)[..., None], axis=-1)
    same = ((values == first) | ~on).all(axis=-1, keepdims=True)
    lanes = np.where(same, _ballot(on), 0).astype(np.int32)
    return _per_lane(m, lanes), _per_lane(m, same)


def lanemask_lt(m: Machine) -> Any:
    """A bit for each lane of the warp below the own one."""
    return ((np.int64(1) << m.thread % WARP) - 1).astype(np.uint32)


def activemask(m: Machine) -> Any:
    """A bit for each active lane of the warp."""
    return _per_lane(m, _ballot(_by_warp(m, m.full(m.masks[-1]))))
