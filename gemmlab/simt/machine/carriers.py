"""What carries fibers, of which one runs at a time: threads, or tasks in the page of a browser.

A page has no threads, but it can put a call of Python aside until a promise is kept (WebAssembly's
JavaScript Promise Integration; Pyodide calls it `run_sync`). A `Task` and an `Event` of the
page's own loop do what `threading.Thread` and `threading.Semaphore` do elsewhere, as far as fibers
need them.
"""

import asyncio
import gc
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from gemmlab.here.detection import THREADS

# What is advised where neither is there.
INSTEAD = (
    "run it where Python has threads"
    if THREADS
    else (
        "open this page in Chromium or Chrome since version 137, or run the course on your machine"
    )
)


class Turn:
    """A permission to go on, in the page of a browser: `threading.Semaphore(0)`."""

    def __init__(self) -> None:
        self._given, self._asked = 0, None

    def release(self) -> None:
        """Give one permission."""
        self._given += 1
        if self._asked is not None and not self._asked.done():
            self._asked.set_result(None)

    def acquire(self) -> None:
        """Take one; what else the page does goes on until there is one."""
        while not self._given:
            self._asked = asyncio.get_event_loop().create_future()
            _wait_for(self._asked)
        self._given -= 1


class Task:
    """A call that is put aside where it waits, in the page of a browser: `threading.Thread`."""

    def __init__(self, target: Callable, args: tuple) -> None:
        self._call = target, args
        self._task: Any = None

    def start(self) -> None:
        """Begin; RuntimeError where the browser puts no calls aside."""
        from pyodide.ffi import can_run_sync

        if not can_run_sync():
            raise RuntimeError("this browser cannot put a call aside")
        self._task = asyncio.ensure_future(self._run())

    async def _run(self) -> None:
        target, args = self._call
        target(*args)

    def join(self) -> None:
        """Wait for its end."""
        _wait_for(self._task)


def _wait_for(promise: Any) -> None:
    from pyodide.ffi import run_sync

    run_sync(promise)


def turn() -> Any:
    """Return a permission that has not been given yet."""
    return threading.Semaphore(0) if THREADS else Turn()


def carrier(target: Callable, *args: Any) -> Any:
    """Return what calls a function beside this one, once it is started."""
    if THREADS:
        return threading.Thread(target=target, args=args, daemon=True)
    return Task(target, args)


@contextmanager
def uncollected(anywhere: bool = False) -> Iterator[None]:
    """Keep Python's collector of garbage from running by itself while calls are put aside.

    In the page of a browser CPython 3.14's would follow the frames of a call that is put aside, of
    which parts lie elsewhere in the meantime: it reads what is there now, and the page's Python
    ends. `python -m benchmarks.live launches` ends so without this.

    anywhere : not in a page alone, for what keeps much and leaves no cycles
    """
    if (THREADS and not anywhere) or not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
