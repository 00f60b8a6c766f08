"""Work in a process of its own: a copy of this one, that may hang, crash or spoil what it likes.

The copy (`os.fork`) has everything that a notebook has defined, and what it does to it stays there.
What comes back is what the work yields, pickled, through a pipe. Where a process cannot be copied,
on Windows and in a browser, the work is done here: `guard` then stops it by its lines.
"""

from __future__ import annotations

import builtins
import contextlib
import faulthandler
import gc
import io
import logging
import os
import pickle
import selectors
import signal
import sys
import time
import traceback
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

SECONDS = 3.0  # from one result to the next; what is judged takes milliseconds
MEMORY = 1 << 30  # bytes, beyond those that this process has
CPU_SECONDS = 120  # so that a copy ends even where nobody is left to end it
PRINTED = 2_000  # characters that are passed on
GRACE = 0.2  # seconds in which a copy that is too late may say where it is


@dataclass(frozen=True)
class Ended:
    """The end of work that did not come to its end.

    how : "time", "exit", "memory", "crash" or "error"
    what : the signal or the error, in words; where : (file, line) of each frame, outermost first
    """

    how: str
    what: str = ""
    where: tuple[tuple[str, int], ...] = ()


def apart(work: Callable[[], Iterator[Any]], seconds: float = SECONDS) -> Iterator[Any]:
    """Yield what `work` yields in a copy of this process, and an `Ended` where it was cut short.

    seconds : how long the copy may take from one result to the next
    """
    if not copies():
        return work()
    return _of_a_copy(work, seconds)


@cache
def copies() -> bool:
    """Whether a copy of this process works: it can multiply, as not every BLAS can after a fork."""
    if not hasattr(os, "fork"):
        return False
    try:
        return list(_of_a_copy(_product, 5.0)) == [64.0]
    except OSError:
        return False


def _product() -> Iterator[float]:
    ones = np.ones((4, 4))
    yield float((ones @ ones).sum())


# ------------------------------------------------------------------------------------- this process


def _of_a_copy(work: Callable[[], Iterator[Any]], seconds: float) -> Iterator[Any]:
    reader, writer = os.pipe()
    with warnings.catch_warnings():  # the copy has one thread, which is what it warns of
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if not child:
        os.close(reader)
        _Copy(writer).run(work)
    os.close(writer)
    try:
        with os.fdopen(reader, "rb", buffering=0) as pipe:
            kind = "yielded"
            while kind != "done":
                message = _result(pipe, time.monotonic() + seconds)
                if message is None:
                    break
                kind, item = message
                if kind == "yielded":
                    yield item
            late = message is None and _is_running(child)
            where = _where(child, pipe) if late else ()
    finally:
        status = _end(child)
    if late:
        yield Ended("time", f"it was still running after {seconds:g} s", where)
    elif message is None:
        yield _ended(status)
    elif item is not None:
        yield item


def _result(pipe: io.RawIOBase, deadline: float) -> tuple[str, Any] | None:
    """The next message that is a result; None if the copy has ended, or is too late."""
    while (message := _next(pipe, deadline)) is not None:
        kind, item = message
        if kind == "interrupted":
            raise KeyboardInterrupt
        if kind != "printed":
            return message
        print(item, end="", flush=True)
    return None


def _next(pipe: io.RawIOBase, deadline: float) -> tuple[str, Any] | None:
    size = _read(pipe, 8, deadline)
    payload = size and _read(pipe, int.from_bytes(size, "little"), deadline)
    return pickle.loads(payload) if payload else None


def _read(pipe: io.RawIOBase, count: int, deadline: float) -> bytes | None:
    data = b""
    with selectors.DefaultSelector() as ready:
        ready.register(pipe, selectors.EVENT_READ)
        while len(data) < count:
            if not ready.select(max(0.0, deadline - time.monotonic())):
                return None
            part = pipe.read(count - len(data))
            if not part:
                return None
            data += part
    return data


def _is_running(child: int) -> bool:
    """Whether it has not ended; its status stays to be asked for."""
    time.sleep(0.01)  # a pipe closes a moment before its process ends
    return os.waitid(os.P_PID, child, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None


def _where(child: int, pipe: io.RawIOBase) -> tuple[tuple[str, int], ...]:
    """Ask the copy where it is; empty if it does not get round to saying so."""
    os.kill(child, signal.SIGUSR1)
    while (message := _next(pipe, time.monotonic() + GRACE)) is not None:
        if message[0] == "where":
            return message[1]
    return ()


def _end(child: int) -> int:
    with contextlib.suppress(ProcessLookupError):
        if os.waitid(os.P_PID, child, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
            os.kill(child, signal.SIGKILL)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def _ended(status: int) -> Ended:
    if status >= 0:
        return Ended("exit", f"it ended the program, with status {status}")
    name = signal.Signals(-status).name
    if -status == signal.SIGXCPU:
        return Ended("time", f"it used more than {CPU_SECONDS} s of the processor")
    how = "memory" if -status == signal.SIGKILL else "crash"
    return Ended(how, f"the process was ended by the signal {name}")


# ----------------------------------------------------------------------------------------- the copy


class _Copy:
    """The copy's side of the pipe."""

    def __init__(self, writer: int) -> None:
        self.writer, self.pid = writer, os.getpid()
        self.sending = False
        self.printed = _Printed(self._send)

    def run(self, work: Callable[[], Iterator[Any]]) -> NoReturn:
        """Do the work, and end: nothing of this process's frames is ever returned to."""
        try:
            self._confine()
            for item in work():
                self.printed.flush()
                self._send("yielded", item)
            self._send("done", None)
        except KeyboardInterrupt:
            self._send("interrupted", None)
        except BaseException as error:  # not the answer's, which `guard` catches
            self._send("done", Ended("error", "".join(traceback.format_exception_only(error))))
        finally:
            os._exit(0)

    def _send(self, kind: str, item: Any) -> None:
        if os.getpid() != self.pid:  # a copy of the copy, which an answer made
            os._exit(0)
        payload = pickle.dumps((kind, item), protocol=5)
        data = memoryview(len(payload).to_bytes(8, "little") + payload)
        self.sending = True
        while data:
            data = data[os.write(self.writer, data) :]
        self.sending = False

    def _confine(self) -> None:
        """Keep the copy from the notebook's files, terminal and signals, and within its memory."""
        gc.freeze()  # what the notebook owns is not this process's to finalise
        faulthandler.disable()
        null = os.open(os.devnull, os.O_RDWR)
        for stream in range(3):
            os.dup2(null, stream)
        sys.stdin, sys.stdout = io.StringIO(), self.printed
        sys.stderr = sys.__stdout__ = sys.__stderr__ = sys.stdout
        logging.disable()
        builtins.input = _nobody_answers
        with contextlib.suppress(ValueError):  # not in the main thread
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            signal.signal(signal.SIGUSR1, self._say_where)
        import resource  # where there is no fork there is none of this either

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS, CPU_SECONDS + 1))
        with contextlib.suppress(OSError, ValueError):  # /proc is Linux's
            pages = int(Path("/proc/self/statm").read_text().split()[0])
            most = pages * resource.getpagesize() + MEMORY
            resource.setrlimit(resource.RLIMIT_AS, (most, most))

    def _say_where(self, number: int, frame: Any) -> None:
        if self.sending:
            return
        frames = traceback.walk_stack(frame)
        self._send("where", tuple((f.f_code.co_filename, line) for f, line in frames)[::-1])


class _Printed(io.TextIOBase):
    """Passes on the beginning of what is printed."""

    def __init__(self, send: Callable[[str, Any], None]) -> None:
        self.send, self.left, self.waiting = send, PRINTED, ""

    def write(self, text: str) -> int:
        """Take all of `text`, and pass on whole lines of what is within the allowance."""
        part = str(text)[: self.left]
        self.left -= len(part)
        self.waiting += part + ("" if self.left or not part else "\n… (and more)\n")
        if "\n" in self.waiting:
            self.flush()
        return len(text)

    def flush(self) -> None:
        """Pass on what is left of a line."""
        if self.waiting:
            self.send("printed", self.waiting)
            self.waiting = ""


def _nobody_answers(prompt: object = "") -> NoReturn:
    raise EOFError("a check cannot answer input(); take what you need from the parameters")
