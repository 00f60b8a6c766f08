"""Work in a process of its own: a copy of this one, that may hang, crash or spoil what it likes.

The copy (`os.fork`) has everything that a notebook has defined, and what it does to it stays there.
What comes back is what the work yields, through a pipe, as `messages` of data. Where a process
cannot be copied, on Windows and in a browser, the work is done here: `guard` then stops it by its
lines, and in a browser Python by the clock, at which it looks between two steps.

How long a copy may take is counted in seconds of the processor, of which a busy machine takes none
away. A copy that waits uses none: it is looked at again and again, and ended once it was seen
asleep often enough. The clock on the wall says nothing of an answer: at its far limit the answer is
`NotJudged`.
"""

from __future__ import annotations

import contextlib
import io
import os
import selectors
import signal
import time
import traceback
import warnings
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from gemmlab.course.judging import messages
from gemmlab.course.judging.copy_of_process import (
    CLOSED,
    Copy,
    Ended,
    Frames,
    end_started,
    spent,
    started,
)
from gemmlab.device import device, names
from gemmlab.here.detection import THREADS

SECONDS = 3.0  # of the processor, from one result to the next; what is judged takes milliseconds
IN_PAGE = 20.0  # the same in the page of a browser, where Python is five times slower
WALL = 600.0  # seconds by the clock on the wall, after which a copy is judged no more
LOOK = 0.05  # seconds from one look at a silent copy to the next
GRACE = 10.0  # seconds by the clock on the wall in which a copy may say where it is
PART = 1 << 16  # bytes that are taken from the pipe at once, as many as it holds


class NotJudged(BaseException):
    """Work was ended for a reason that says nothing of the answer: the machine is too busy.

    Not an Exception, so that no judge keeps it: `Exercise.check` makes a verdict of it that is
    neither for the answer nor against it.
    """

    def __init__(self, what: str, where: Frames = ()) -> None:
        super().__init__(what)
        self.where = where


def apart(work: Callable[[], Iterator[Any]], seconds: float = SECONDS) -> Iterator[Any]:
    """Yield what `work` yields in a copy of this process, and an `Ended` where it was cut short.

    seconds : from one result to the next, of the processor; a copy that waits has as many
    Raises NotJudged where the clock on the wall had to end it.
    """
    if not THREADS:
        return _in_page(work)
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
    except (OSError, NotJudged):
        return False


class Late(BaseException):
    """The time of an answer in a page is spent; not an Exception, as `guard.Endless` is none."""


def _in_page(work: Callable[[], Iterator[Any]]) -> Iterator[Any]:
    """Yield what `work` yields in the page of a browser, and an `Ended` where it took too long."""
    from gemmlab.measure.backends.watching import watched

    items, end = work(), object()
    while True:
        try:
            with watched(IN_PAGE, Late):
                item = next(items, end)
        except Late as late:
            frames = traceback.extract_tb(late.__traceback__)
            item, items = (
                spent(IN_PAGE, tuple((f.filename, f.lineno or 0) for f in frames)),
                iter(()),
            )
        if item is end:
            return
        yield item


@cache
def _load_once() -> None:
    """Load what each copy asks for and would load anew, since nothing of it comes back.

    The devices' files take longer to read than most launches: a block's residents are asked of all.
    """
    for name in names():
        device(name)


def _product() -> Iterator[float]:
    ones = np.ones((4, 4))
    yield float((ones @ ones).sum())


# ------------------------------------------------------------------------------------- this process


def _of_a_copy(work: Callable[[], Iterator[Any]], seconds: float) -> Iterator[Any]:
    _load_once()
    original = os.getpid()
    reader, writer = os.pipe()
    with warnings.catch_warnings():  # the copy has one thread, which is what it warns of
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if not child:
        os.close(reader)
        Copy(writer, seconds).run(work)
    os.close(writer)
    status = 0
    try:
        inbox = _Inbox(os.fdopen(reader, "rb", buffering=0, closefd=False))
        kind, item = _result(inbox, child, seconds)
        while kind == "yielded":
            yield item
            kind, item = _result(inbox, child, seconds)
    finally:
        # A copy that was made in between has this generator, too, and no part in its child.
        if os.getpid() == original:
            os.close(reader)
            status = _end(child)
    if kind == "cut off":
        yield _ended(status, seconds)
    elif item is not None:
        yield item


def _result(inbox: _Inbox, child: int, seconds: float) -> tuple[str, Any]:
    """The next message that is a result; "cut off" where the copy has ended without one."""
    patience = _Patience(child, seconds, WALL)
    try:
        while (message := inbox.next(patience)) is not None:
            kind, item = message
            if kind != "printed":
                return message
            print(item, end="", flush=True)
        while _is_running(child):  # a pipe closes a moment before its process ends
            time.sleep(LOOK)
            patience.spend()
    except messages.UnreadableError as error:
        return "done", Ended("error", str(error))
    except _AsleepError:
        if _is_running(child):
            what = "it was waiting for something that did not come"
            return "done", Ended("time", what, _where(inbox, child))
    except _LateError:
        if _is_running(child):
            what = f"it had not ended after {WALL:g} s by the clock on the wall"
            raise NotJudged(what, _where(inbox, child)) from None
    return "cut off", None


class _AsleepError(Exception):
    """The copy was seen asleep too often."""


class _LateError(Exception):
    """The clock on the wall has passed the far limit."""


class _Patience:
    """How long a copy that says nothing is waited for.

    asleep : seconds, counted in looks and not by a clock; wall : seconds by the clock
    """

    def __init__(self, child: int, asleep: float, wall: float) -> None:
        self.child, self.looks = child, asleep / LOOK
        self.end = time.monotonic() + wall

    def spend(self) -> None:
        """Note that there is still no message; _AsleepError or _LateError when that is enough."""
        self.looks -= _is_asleep(self.child)
        if self.looks < 0:
            raise _AsleepError
        if time.monotonic() > self.end:
            raise _LateError


class _Inbox:
    """The messages of a copy; what has come of one waits for the rest of it."""

    def __init__(self, pipe: io.RawIOBase) -> None:
        self.pipe, self.come = pipe, bytearray()

    def next(self, patience: _Patience) -> tuple[str, Any] | None:
        """The next message; None if there comes no more; UnreadableError for what is none."""
        if not self._has(8, patience):
            return None
        size = int.from_bytes(self.come[:8], "little")
        if size > messages.MOST:
            raise messages.UnreadableError(messages.too_long(size))
        if not self._has(8 + size, patience):
            return None
        payload = bytes(self.come[8 : 8 + size])
        del self.come[: 8 + size]
        return messages.read(payload)

    def _has(self, count: int, patience: _Patience) -> bool:
        """Wait for so many bytes; whether they came."""
        with selectors.DefaultSelector() as ready:
            ready.register(self.pipe, selectors.EVENT_READ)
            while len(self.come) < count:
                while not ready.select(LOOK):
                    patience.spend()
                part = self.pipe.read(max(count - len(self.come), PART))
                if not part:
                    return False
                self.come += part
        return True


def _is_running(child: int) -> bool:
    """Whether it has not ended; its status stays to be asked for."""
    return os.waitid(os.P_PID, child, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None


def _is_asleep(child: int) -> bool:
    """Whether the copy waits, and is not merely kept waiting for its turn on a processor.

    Only Linux tells the two apart in a file; elsewhere no copy is known to be asleep.
    """
    try:
        return set(_states(child)) <= {"S", "Z"}
    except OSError:
        return False


def _states(process: int | str) -> Iterator[str]:
    """The states of the threads of a process and of those that it has started, as Linux has them.

    "R" runs or would like to, "S" sleeps, "Z" has ended. Source: proc_pid_stat(5).
    """
    for one in (process, *started(process)):
        for thread in Path(f"/proc/{one}/task").iterdir():
            yield (thread / "stat").read_text().rpartition(")")[2].split()[0]


def _where(inbox: _Inbox, child: int) -> Frames:
    """Ask the copy where it is; empty if it does not get round to saying so."""
    os.kill(child, signal.SIGUSR1)
    patience = _Patience(child, 5 * LOOK, GRACE)
    with contextlib.suppress(_AsleepError, _LateError, messages.UnreadableError):
        while (message := inbox.next(patience)) is not None:
            if message[0] == "where":
                return message[1]
    return ()


def _end(child: int) -> int:
    """End the copy, and whatever it has started; its exit status, negative for a signal."""
    end_started(child)
    with contextlib.suppress(ProcessLookupError):
        if _is_running(child):
            os.kill(child, signal.SIGKILL)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def _ended(status: int, seconds: float) -> Ended:
    if status == CLOSED:
        return Ended("crash", "it closed a file that was not its own")
    if status >= 0:
        return Ended("exit", f"it ended the program, with status {status}")
    name = signal.Signals(-status).name
    if -status == signal.SIGXCPU:
        return spent(seconds)
    how = "memory" if -status == signal.SIGKILL else "crash"
    return Ended(how, f"the process was ended by the signal {name}")
