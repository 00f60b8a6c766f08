"""Threads wait for each other here: at barriers of a block, of a warp and of the grid; fences.

A kernel that waits for the whole grid, `cuda.cg.this_grid().sync()`, is simulated with all of its
blocks at once, as it runs on a GPU: each must be resident, so that the device bounds the grid, and
with it the memory that a simulation takes.
"""

import ast
import inspect
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np

from gemmlab.device import Device, device, names
from gemmlab.instructions.instruction import Instruction
from gemmlab.model import occupancy, transactions
from gemmlab.simt.builtins.batch import BuiltinBatch
from gemmlab.simt.builtins.warps import check_predicate, taking_part
from gemmlab.simt.numbers.lanes import Mask
from gemmlab.simt.races.hazards import Note
from gemmlab.simt.syntax.source import read_source

FULL = (1 << transactions.WARP) - 1  # a mask that names all lanes of a warp


def syncthreads(m: BuiltinBatch) -> None:
    """Wait for the block: a new barrier interval begins in each block that gets here."""
    _wait(m, "at a barrier")


def cluster_sync(m: BuiltinBatch, instruction: Instruction, bound: list, line: int) -> None:
    """`cluster_sync`: wait for the block; `machine.fibers` has the blocks of a cluster meet."""
    _wait(m, "at a barrier of the cluster")


def cluster_sync_relaxed(m: BuiltinBatch, instruction: Instruction, bound: list, line: int) -> None:
    """`cluster_sync_relaxed`: the same, but what threads have stored may come later."""
    _wait(m, "at a barrier of the cluster", stores=False)


def _wait(m: BuiltinBatch, where: str, stores: bool = True) -> None:
    """Wait for the block. stores : what its threads have stored before is there afterwards."""
    here, alive = m.masks[-1], m.alive()
    if here is False:
        return
    m.tally.tick(m.calls.line, "inst_barrier")
    arrived = m.lanes.full(here)
    if alive is not None:
        _note_returned(m, arrived, alive)
    _check_all_come(m, arrived, where)
    in_block = arrived.any(axis=1)
    if stores and in_block.all():
        m.waits.epoch = m.waits.epoch + 1
    elif stores:
        m.waits.epoch = m.waits.epoch + in_block.astype(np.int32).reshape(-1, 1)
    m.tally.counters(m.calls.line)["barriers"] += int(in_block.sum())
    if stores and m.under_way is not None:
        m.under_way.meet(np.flatnonzero(arrived[0]))


def _check_all_come(m: BuiltinBatch, arrived: np.ndarray, where: str) -> None:
    """Report a thread that waits for another one of its block that does not come."""
    waiting = m.lanes.full(m.alive()) & ~arrived
    partial = arrived.any(axis=1) & waiting.any(axis=1) if waiting.any() else np.zeros(1, bool)
    if partial.any():
        b = int(partial.argmax())
        came, missing = int(arrived[b].argmax()), int(waiting[b].argmax())
        lanes = np.zeros(m.lanes.shape, bool)
        lanes[b, came] = True
        text = f"thread {{thread}} waits {where} that thread {{other}} does not reach"
        m.findings.hazard("divergent-barrier", m.calls.line, lanes, text, other=missing)


def _note_returned(m: BuiltinBatch, arrived: np.ndarray, alive: Mask) -> None:
    """Note the threads, if any, that have returned before a barrier that others `arrived` at.

    Since compute capability 7.0 a barrier does not wait for them.
    Source: CUDA C++ Programming Guide, Compute Capability 7.x, Independent Thread Scheduling.
    """
    lanes = m.lanes
    x, y, z = lanes.block
    gone = (lanes.thread < x * y * z) & ~lanes.full(alive) & arrived.any(axis=1, keepdims=True)
    if not gone.any():
        return
    row, thread = lanes.first(gone)
    block, source, line = int(lanes.blocks[row, 0]), m.calls.source, m.calls.line
    text = (
        f"thread {lanes.thread_name(thread)} has returned before this barrier, which does not wait "
        f"for it since compute capability 7.0 [block {lanes.block_name(block)}, "
        f"{int(gone[row].sum())} of its threads]"
    )
    places = lanes.block_at(block), lanes.thread_at(thread)
    what = text, "returned", source.file, int(gone.sum())
    m.report.note(Note(line, source.code(line), *places, *what))


def _block_votes(m: BuiltinBatch, name: str, predicate: Any) -> tuple[np.ndarray, np.ndarray]:
    """Threads of each block that arrive at a barrier, and those for which `predicate` holds."""
    check_predicate(name, predicate, "iu")
    on = m.lanes.full(m.masks[-1])
    yes = on & m.lanes.spread(np.not_equal(predicate, 0))
    syncthreads(m)
    return on.sum(axis=1, keepdims=True), yes.sum(axis=1, keepdims=True)


def syncthreads_count(m: BuiltinBatch, predicate: Any) -> Any:
    """A barrier; returns the number of the block's threads for which `predicate` holds."""
    return _block_votes(m, "syncthreads_count", predicate)[1]


def syncthreads_and(m: BuiltinBatch, predicate: Any) -> Any:
    """A barrier; returns 1 if `predicate` holds for all of the block's threads."""
    here, yes = _block_votes(m, "syncthreads_and", predicate)
    return (here == yes).astype(np.int64)


def syncthreads_or(m: BuiltinBatch, predicate: Any) -> Any:
    """A barrier; returns 1 if `predicate` holds for any of the block's threads."""
    return (_block_votes(m, "syncthreads_or", predicate)[1] > 0).astype(np.int64)


def syncwarp(m: BuiltinBatch, mask: Any = FULL) -> None:
    """Wait for the lanes that `mask` names."""
    here = m.masks[-1]
    if here is False:
        return
    on = taking_part(m, mask, "syncwarp", "inst_syncwarp")
    m.waits.sync_warps(on, _named(m, mask), alike=np.ndim(here) < 2 or len(here) == 1)
    if m.under_way is not None:
        for warp in np.flatnonzero(on[0].any(axis=-1)):
            m.under_way.meet(warp * transactions.WARP + np.flatnonzero(on[0, warp]))


def _named(m: BuiltinBatch, mask: Any) -> Any:
    """Each lane's mask names these lanes of its warp; True where it names all that are there."""
    bits = np.asarray(mask).astype(np.int64)
    if (bits & FULL == FULL).all():
        return True
    named = m.lanes.in_warps(bits)[..., :, None] >> np.arange(transactions.WARP) & 1 == 1
    alive = m.lanes.in_warps(m.lanes.full(m.alive()))
    return True if (named | ~alive[..., None, :]).all() else named


def threadfence(m: BuiltinBatch) -> None:
    """`cuda.threadfence`: earlier accesses of the active lanes come before their later atomics."""
    _fence(m, of_block=False)


def threadfence_block(m: BuiltinBatch) -> None:
    """`cuda.threadfence_block`: the same, as other threads of the block see it."""
    _fence(m, of_block=True)


def _fence(m: BuiltinBatch, of_block: bool) -> None:
    if m.masks[-1] is not False:
        places = m.lanes.places(m.masks[-1])
        row, lanes = places // m.lanes.threads, places + m.lanes.first_lane
        syncs = m.waits.of_warps(places)
        m.report.releases.fence(lanes, m.lanes.threads, m.waits.epochs(row), of_block, syncs)


def waits_for_grid(function: Callable) -> bool:
    """Say whether a kernel, or a device function that it names, asks for the whole grid."""
    return any("this_grid" in f.__code__.co_names for f in _functions(function))


def may_wait(function: Callable) -> bool:
    """Say whether a kernel may wait for other blocks: a `while` of it looks at elements."""
    return any(
        isinstance(node, ast.While) and any(map(_looks, ast.walk(node)))
        for f in _functions(function)
        for node in ast.walk(read_source(f).tree)
    )


def _looks(node: ast.AST) -> bool:
    """Whether source loads or updates elements, perhaps in a function that it calls."""
    return isinstance(node, (ast.Subscript, ast.Call))


def _functions(function: Callable) -> set[Callable]:
    """Return a kernel, and the functions of Python that it names, directly or by others."""
    left, seen = [function], {function}
    while left:
        scope = inspect.getclosurevars(left.pop())
        named = (*scope.globals.values(), *scope.nonlocals.values())
        new = {f for v in named if inspect.isfunction(f := getattr(v, "py_func", v))} - seen
        seen |= new
        left += new
    return seen


@lru_cache(256)
def held_at_once(threads: int, shared_bytes: int, gpu: Device | None) -> tuple[int, str]:
    """The number of such blocks that `gpu`, or the largest GPU known, holds at once; its name."""
    candidates = [gpu] if gpu else [device(name) for name in names()]
    return max(
        (
            (d.sms * occupancy.resident_blocks(d, threads, shared_bytes), d.title)
            for d in candidates
            if d.sms and threads <= d.threads_per_block and shared_bytes <= d.shared_bytes_per_block
        ),
        default=(0, "no GPU"),
    )


def check_resident(blocks: int, threads: int, shared_bytes: int, gpu: Device | None) -> None:
    """ValueError if `gpu`, or the largest GPU that is known, does not hold the blocks at once."""
    most, holder = held_at_once(threads, shared_bytes, gpu)
    if blocks > most:
        raise ValueError(
            f"a grid of {blocks} blocks cannot wait for all of its blocks: {holder} holds {most} "
            f"blocks of {threads} threads and {shared_bytes} B at once; use fewer blocks and a "
            "loop in each thread"
        )


class GridGroup:
    """`cuda.cg.this_grid()` in a kernel."""

    def __init__(self, machine: BuiltinBatch) -> None:
        self.machine = machine

    def sync(self) -> None:
        """Wait for all blocks: every earlier access comes before every later one."""
        m, line = self.machine, self.machine.calls.line
        here = m.masks[-1]
        if here is False:
            return
        m.tally.tick(line, "inst_barrier")
        launch = m.launch
        shared_bytes = launch.shared_bytes + m.memory.static_bytes
        check_resident(launch.blocks, launch.threads, shared_bytes, launch.gpu)
        arrived = m.lanes.full(here)
        _note_returned(m, arrived, m.alive())
        in_block = arrived.any(axis=1)
        if not in_block.all():
            block = m.lanes.block_name(int(m.lanes.blocks[int(in_block.argmin()), 0]))
            text = f"thread {{thread}} waits for the whole grid, but block {block} does not"
            m.findings.hazard("divergent-barrier", line, here, text)
        _check_all_come(m, arrived, "for the whole grid at a barrier")
        m.waits.epoch = int(np.max(m.waits.epoch)) + 1
        for array in m.memory.global_arrays:
            if array.shadow is not None:
                array.shadow.order()
        m.tally.counters(line)["barriers"] += len(m.lanes.blocks)
