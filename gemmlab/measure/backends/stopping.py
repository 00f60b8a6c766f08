"""Stopping Python code in a thread that runs, and code that takes too long.

Time is counted in seconds of the processor, which a busy machine does not make more.
"""

import ctypes
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from gemmlab.here.detection import THREADS
from gemmlab.measure.backends import watching

# For each second of the processor, so many by the clock on the wall, which stop code that waits.
WAITING = 30


class OutOfTime(BaseException):
    """Its time is up: raised inside code; not an Exception, so that no handler swallows it."""


def raise_in(thread: int, exception: type[BaseException]) -> None:
    """Raise `exception` in a running thread.

    Source: Python/C API, PyThreadState_SetAsyncExc.
    """
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), ctypes.py_object(exception))


def swallow(exception: type[BaseException]) -> None:
    """Let an exception that may still be on its way to this thread arrive here.

    Taken back instead, it would leave CPython 3.11 looking for it for ever: code that is traced
    line by line, as answers to exercises are, would never end.
    """
    try:
        raise_in(threading.get_ident(), exception)  # in the place of one that is on its way
        while True:
            pass
    except exception:
        pass


@contextmanager
def limited(seconds: float, what: str) -> Iterator[None]:
    """Stop what this thread runs inside when this process has used its seconds: TimeoutError.

    A step that runs outside Python, such as a sum over a huge range, ends first. In the page of a
    browser such a step may have no end: there the reader restarts Python.
    """
    if not THREADS:
        try:
            with watching.watched(seconds, OutOfTime):
                yield
        except OutOfTime:
            spent = f"it was running after {seconds:g} s of the processor"
            raise TimeoutError(f"{what} was stopped: {spent}") from None
        return
    thread, left = threading.get_ident(), threading.Event()
    lock, struck, wall = threading.Lock(), "", WAITING * seconds
    used, end = time.process_time() + seconds, time.monotonic() + wall

    def watch() -> None:
        nonlocal struck
        while (more := used - time.process_time()) > 0 and (rest := end - time.monotonic()) > 0:
            if left.wait(min(max(more, 0.01), rest)):
                return
        with lock:
            if not left.is_set():
                spent = f"it was running after {seconds:g} s of the processor"
                struck = spent if more <= 0 else f"it had not ended after {wall:g} s"
                raise_in(thread, OutOfTime)

    watcher = threading.Thread(target=watch, daemon=True)
    try:
        try:
            watcher.start()  # it may strike before this returns
            yield
        finally:  # from here on it must not strike; it may have done so just now
            with lock:
                left.set()
            if struck:
                swallow(OutOfTime)
    except OutOfTime:
        raise TimeoutError(f"{what} was stopped: {struck}") from None
