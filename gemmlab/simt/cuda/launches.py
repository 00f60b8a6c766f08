"""Launches of kernels that were defined with the stand-in, and those who watch them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from gemmlab.simt.launch import simulate
from gemmlab.simt.report.report import Report


@dataclass(frozen=True)
class Launched:
    """A launch that was watched: what it did, and how long this computer took to simulate it."""

    report: Report
    seconds: float


_watchers: list[Callable[[Launched], None]] = []


@contextmanager
def watching(watcher: Callable[[Launched], None]) -> Iterator[None]:
    """Call `watcher` with each launch in the body, in which hazards are collected, not raised."""
    _watchers.append(watcher)
    try:
        yield
    finally:
        _watchers.remove(watcher)


def launched(kernel: Any, grid: Any, block: Any, args: tuple, shared_bytes: int) -> Report:
    """Simulate a launch; HazardError at its first hazard, unless somebody watches."""
    __tracebackhide__ = True  # as in `machine.failures`
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
        watcher(Launched(report, time.perf_counter() - start))
    return report
