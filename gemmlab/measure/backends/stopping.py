"""Stopping Python code in a thread that runs, and code that takes too long."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Iterator
from contextlib import contextmanager


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
                swallow(OutOfTime)
    except OutOfTime:
        raise TimeoutError(f"{what} was stopped: it was running after {seconds:g} s") from None
