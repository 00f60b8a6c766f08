"""Launches of kernels that were defined with the stand-in, and those who watch them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple

from gemmlab.simt.launch import simulate
from gemmlab.simt.report.report import Report


class Call(NamedTuple):
    """A launch as the program asks for it."""

    kernel: Any
    grid: Any
    block: Any
    arguments: tuple
    shared_bytes: int


class Watcher(NamedTuple):
    """What is called with each launch: before it begins, and when it is done."""

    before: Callable[[Call], None]
    after: Callable[[Launched], None]


@dataclass(frozen=True)
class Launched:
    """A launch that was watched: what it did, and how long this computer took to simulate it."""

    report: Report
    seconds: float


_watchers: list[Watcher] = []


@contextmanager
def watching(
    after: Callable[[Launched], None], before: Callable[[Call], None] = lambda call: None
) -> Iterator[None]:
    """Call both with each launch in the body, in which hazards are collected, not raised."""
    watcher = Watcher(before, after)
    _watchers.append(watcher)
    try:
        yield
    finally:
        _watchers.remove(watcher)


def launched(kernel: Any, grid: Any, block: Any, args: tuple, shared_bytes: int) -> Report:
    """Simulate a launch; HazardError at its first hazard, unless somebody watches."""
    __tracebackhide__ = True  # as in `told_at_the_kernel`
    for watcher in _watchers:
        watcher.before(Call(kernel, grid, block, args, shared_bytes))
    start = time.perf_counter()
    report = simulate(
        kernel,
        grid,
        block,
        *args,
        shared_bytes=shared_bytes,
        on_hazard="collect" if _watchers else "raise",
    )
    for watcher in _watchers:
        watcher.after(Launched(report, time.perf_counter() - start))
    return report
