"""Microbenchmarks: kernels of one idea each, whose times are the facts of a GPU's model."""

from __future__ import annotations

from benchmarks.microbenchmarks import (
    arithmetic,
    asynchronous,
    beside_products,
    beside_wgmma,
    cold,
    control,
    exchange,
    global_memory,
    hand_out,
    launch,
    mixed,
    shared_memory,
    tensor_cores,
    together,
)
from benchmarks.microbenchmarks.launch import Launch
from benchmarks.microbenchmarks.loop import Loop

__all__ = ["LAUNCHES", "LOOPS", "Launch", "Loop", "microbenchmark"]

_KINDS = (
    *(arithmetic, shared_memory, global_memory, exchange, control, mixed, hand_out, tensor_cores),
    asynchronous,
    *(beside_products, beside_wgmma, together),
)
LOOPS: tuple[Loop, ...] = tuple(loop for kind in _KINDS for loop in kind.LOOPS)
LAUNCHES: tuple[Launch, ...] = (*launch.LAUNCHES, *cold.LAUNCHES)


def microbenchmark(name: str) -> Loop | Launch:
    """The microbenchmark called `name`; LookupError for another.

    >>> microbenchmark("ffma_latency").count
    64
    """
    for one in (*LOOPS, *LAUNCHES):
        if one.name == name:
            return one
    raise LookupError(f"no microbenchmark is called {name!r}; there are {len(LOOPS)} loops, from "
                      f"{LOOPS[0].name!r} on, and {len(LAUNCHES)} launches")  # fmt: skip
