"""Work in the background that can be watched and stopped, so that widgets stay alive."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

from gemmlab.measure.backends.stopping import raise_in, swallow

TICK = 0.25  # seconds between two reports of progress


class Stopped(BaseException):
    """Raised inside the work by `Job.stop`; not an Exception, so that no handler swallows it."""


class Job:
    """Runs `work()` in one thread and reports on it from a second, until it ends or is stopped.

    report : called with the seconds elapsed, every `TICK`
    done : called once with (result, None), or with (None, what was raised), `Stopped` included

    Two threads, because a stop may strike between any two steps of the thread that works: only
    `work` is exposed to it, never `report` or `done`, which may touch widgets. A step that runs
    outside Python, such as a compiled kernel, ends first.
    """

    def __init__(
        self,
        work: Callable[[], Any],
        report: Callable[[float], None],
        done: Callable[[Any, BaseException | None], None],
    ) -> None:
        self._work, self._report, self._done = work, report, done
        self._lock = threading.Lock()
        self._stoppable = False  # whether the worker is where a stop may strike
        self._stop_asked = False
        self._outcome: tuple[Any, BaseException | None] = None, None
        self._worker = threading.Thread(target=self._run, name="gemmlab-work", daemon=True)
        self._watcher = threading.Thread(target=self._watch, name="gemmlab-watch", daemon=True)

    def start(self) -> Job:
        """Begin; returns at once."""
        self._watcher.start()
        return self

    def stop(self) -> None:
        """Raise `Stopped` in the work at its next step; nothing happens if it has ended."""
        with self._lock:
            self._stop_asked = True
            if self._stoppable:
                raise_in(self._worker.ident, Stopped)

    def wait(self, seconds: float | None = None) -> bool:
        """Wait until `done` has returned; False if that took longer than `seconds`."""
        self._watcher.join(seconds)
        return not self._watcher.is_alive()

    def _run(self) -> None:
        try:
            try:
                with self._lock:
                    self._stoppable = not self._stop_asked
                if not self._stoppable:  # it was asked before this thread had begun
                    raise Stopped
                self._outcome = self._work(), None
            finally:
                with self._lock:
                    self._stoppable = False
                    if self._stop_asked:  # too late, perhaps: it must not strike what follows
                        swallow(Stopped)
        except BaseException as error:
            self._outcome = None, error

    def _watch(self) -> None:
        start = time.perf_counter()
        self._worker.start()
        while True:
            self._worker.join(TICK)
            if not self._worker.is_alive():
                break
            self._report(time.perf_counter() - start)
        self._done(*self._outcome)
