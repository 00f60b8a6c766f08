"""Where threads wait for each other: barriers of a block and of a warp, and fences."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gemmlab.model.transactions import WARP
from gemmlab.simt.builtins.warps import check_predicate, taking_part
from gemmlab.simt.report.notes import note_returned

if TYPE_CHECKING:
    from gemmlab.simt.machine.machine import Machine

FULL = (1 << WARP) - 1  # a mask that names all lanes of a warp


def syncthreads(m: Machine) -> None:
    """Wait for the block: a new barrier interval begins in each block that gets here."""
    here, alive = m.masks[-1], m.alive()
    if here is False:
        return
    m.tally.tick(m.calls.line, "inst_barrier")
    arrived = m.lanes.full(here)
    if alive is not None:
        note_returned(m, arrived, alive)
    waiting = m.lanes.full(alive) & ~arrived
    partial = arrived.any(axis=1) & waiting.any(axis=1) if waiting.any() else np.zeros(1, bool)
    if partial.any():
        b = int(partial.argmax())
        came, missing = int(arrived[b].argmax()), int(waiting[b].argmax())
        lanes = np.zeros(m.lanes.shape, bool)
        lanes[b, came] = True
        text = "thread {thread} waits at a barrier that thread {other} does not reach"
        m.findings.hazard("divergent-barrier", m.calls.line, lanes, text, other=missing)
    in_block = arrived.any(axis=1)
    if in_block.all():
        m.waits.epoch = m.waits.epoch + 1
    else:
        m.waits.epoch = m.waits.epoch + in_block.astype(np.int32).reshape(-1, 1)
    m.tally.counters(m.calls.line)["barriers"] += int(in_block.sum())
    if m.under_way is not None:
        m.under_way.meet(np.flatnonzero(arrived[0]))


def _block_votes(m: Machine, name: str, predicate: Any) -> tuple[np.ndarray, np.ndarray]:
    """Threads of each block that arrive at a barrier, and those for which `predicate` holds."""
    check_predicate(name, predicate, "iu")
    on = m.lanes.full(m.masks[-1])
    yes = on & m.lanes.spread(np.not_equal(predicate, 0))
    syncthreads(m)
    return on.sum(axis=1, keepdims=True), yes.sum(axis=1, keepdims=True)


def syncthreads_count(m: Machine, predicate: Any) -> Any:
    """A barrier; returns the number of the block's threads for which `predicate` holds."""
    return _block_votes(m, "syncthreads_count", predicate)[1]


def syncthreads_and(m: Machine, predicate: Any) -> Any:
    """A barrier; returns 1 if `predicate` holds for all of the block's threads."""
    here, yes = _block_votes(m, "syncthreads_and", predicate)
    return (here == yes).astype(np.int64)


def syncthreads_or(m: Machine, predicate: Any) -> Any:
    """A barrier; returns 1 if `predicate` holds for any of the block's threads."""
    return (_block_votes(m, "syncthreads_or", predicate)[1] > 0).astype(np.int64)


def syncwarp(m: Machine, mask: Any = FULL) -> None:
    """Wait for the lanes that `mask` names."""
    here = m.masks[-1]
    if here is False:
        return
    on = taking_part(m, mask, "syncwarp", "inst_syncwarp")
    m.waits.sync_warps(on, _named(m, mask), alike=np.ndim(here) < 2 or len(here) == 1)
    if m.under_way is not None:
        for warp in np.flatnonzero(on[0].any(axis=-1)):
            m.under_way.meet(warp * WARP + np.flatnonzero(on[0, warp]))


def _named(m: Machine, mask: Any) -> Any:
    """Which lanes of its warp the mask of each lane names; True where it is all that are there."""
    bits = np.asarray(mask).astype(np.int64)
    if (bits & FULL == FULL).all():
        return True
    named = m.lanes.in_warps(bits)[..., :, None] >> np.arange(WARP) & 1 == 1
    alive = m.lanes.in_warps(m.lanes.full(m.alive()))
    return True if (named | ~alive[..., None, :]).all() else named


def threadfence(m: Machine) -> None:
    """`cuda.threadfence`: earlier accesses of the active lanes come before their later atomics."""
    _fence(m, of_block=False)


def threadfence_block(m: Machine) -> None:
    """`cuda.threadfence_block`: the same, as other threads of the block see it."""
    _fence(m, of_block=True)


def _fence(m: Machine, of_block: bool) -> None:
    row, thread = np.nonzero(m.lanes.full(m.masks[-1]))
    if len(row):
        lanes = m.lanes.blocks[row, 0] * m.lanes.threads + thread
        m.report.releases.fence(lanes, m.lanes.threads, m.waits.epochs(row), of_block)
