"""Cooperative groups: `cuda.cg.this_grid().sync()`, where all blocks of a launch wait.

Such a kernel is simulated with all of its blocks at once, as it runs on a GPU: each must be
resident, so that the device bounds the grid, and with it the memory that a simulation takes.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from gemmlab.device import Device, device, names
from gemmlab.model.occupancy import resident_blocks
from gemmlab.simt.numbers.masks import without

if TYPE_CHECKING:
    from gemmlab.simt.machine.machine import Machine


def waits_for_grid(function: Callable, seen: frozenset = frozenset()) -> bool:
    """Whether a kernel, or a device function that it names, asks for the whole grid."""
    if "this_grid" in function.__code__.co_names:
        return True
    scope = inspect.getclosurevars(function)
    named = [getattr(v, "py_func", v) for v in (*scope.globals.values(), *scope.nonlocals.values())]
    functions = {f for f in named if inspect.isfunction(f)} - seen - {function}
    return any(waits_for_grid(f, seen | functions | {function}) for f in functions)


def held_at_once(threads: int, shared_bytes: int, gpu: Device | None) -> tuple[int, str]:
    """How many such blocks `gpu`, or the largest GPU that is known, holds at once, and its name."""
    candidates = [gpu] if gpu else [device(name) for name in names()]
    return max(
        (
            (d.sms * resident_blocks(d, threads, shared_bytes), d.title)
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

    def __init__(self, machine: Machine) -> None:
        self.machine = machine

    def sync(self) -> None:
        """Wait for all blocks: every earlier access comes before every later one.

        Threads that do not come must have nothing left to do.
        """
        m, line = self.machine, self.machine.calls.line
        here = m.masks[-1]
        if here is False:
            return
        m.tally.tick(line, "inst_barrier")
        in_block = m.lanes.full(here).any(axis=1)
        if not in_block.all():
            block = m.lanes.block_name(int(m.lanes.blocks[int(in_block.argmin()), 0]))
            text = f"thread {{thread}} waits for the whole grid, but block {block} does not"
            m.findings.hazard("divergent-barrier", line, here, text)
        m.waits.absent, m.waits.line = without(m.alive(), here), line
        m.tally.settle()  # who may run has changed
        m.waits.epoch = int(np.max(m.waits.epoch)) + 1
        for array in m.memory.global_arrays:
            if array.shadow is not None:
                array.shadow.order()
        m.tally.counters(line)["barriers"] += len(m.lanes.blocks)
