"""Stopping Python code in a thread that runs, and code that takes too long."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Iterator
from contextlib import contextmanager


class OutOfTime(BaseException):
    """Raised inside code whose time is up; not an Exception, so that no handler swallows it."""


def raise_in(thread: int, exception: type[BaseException] | None) -> None:
    """Raise `exception` in a running thread, or take back one that has not been raised yet.

    Source: Python/C API, PyThreadState_SetAsyncExc.
    """
    ctypes.pythonapi.PyThreadState_SetAsyncExc(
        ctypes.c_ulong(thread), ctypes.py_object(exception) if exception else None
    )


@contextmanager
def limited(seconds: float, what: str) -> Iterator[None]:
    """Stop what this thread runs inside when its time is up: TimeoutError.

    A step that runs outside Python, such as a sum over a huge range, ends first.
    """
    thread, lock = threading.get_ident(), threading.Lock()
    inside, struck = True, False

    def strike() -> None:
        nonlocal struck
        with lock:
            if inside:
                struck = True
                raise_in(thread, OutOfTime)

    timer = threading.Timer(seconds, strike)
    timer.daemon = True
    try:
        try:
            timer.start()  # it may strike before this returns
            yield
        finally:  # from here on it must not strike; it may have done so just now
            with lock:
                inside = False
            timer.cancel()
            if struck:
                raise_in(thread, None)
    except OutOfTime:
        raise TimeoutError(f"{what} was stopped: it was running after {seconds:g} s") from None
