"""The copy's side of `apart`: it confines itself, does the work and says what came of it.

It is a copy of the process that judges, and begins by forgetting what only a judge needs to know
(`forget`): the results that are expected, the functions that they come from, and a class's seed.
"""

import builtins
import contextlib
import ctypes
import faulthandler
import gc
import inspect
import io
import logging
import math
import os
import signal
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, NoReturn

from gemmlab.course.judging import drawing, messages

with contextlib.suppress(ImportError):  # where there is no fork there is none of this either
    import resource

_COURSE = str(Path(__file__).resolve().parents[1])
MEMORY = 1 << 30  # bytes, beyond those that this process has
PRINTED = 2_000  # characters that are passed on
CLOSED = 74  # the status of a copy that cannot write to its judge any more; EX_IOERR of sysexits.h
_SUBREAPER = 36  # PR_SET_CHILD_SUBREAPER of prctl(2)

Frames = tuple[tuple[str, int], ...]


@dataclass(frozen=True)
class Ended:
    """The end of work that did not come to its end.

    how : "time", "exit", "memory", "crash" or "error"
    what : the signal or the error, in words; where : (file, line) of each frame, outermost first
    """

    how: str
    what: str = ""
    where: Frames = ()


def _open_files() -> set[int]:
    """The descriptors that this process has, the notebook's files and sockets among them."""
    try:
        return set(map(int, os.listdir("/dev/fd")))
    except OSError:
        return set(range(256))


def uninterrupted() -> bool:
    """Whether this is a copy, which no keyboard interrupts: only an answer does that."""
    return signal.getsignal(signal.SIGINT) is signal.SIG_IGN


def spent(seconds: float, where: Frames = ()) -> Ended:
    """The end of work that used the processor for too long."""
    return Ended("time", f"it used more than {seconds:g} s of the processor", where)


def end_started(process: int) -> None:
    """End the processes that `process` has started, theirs too, and what is of its group.

    Those of a group of their own are found by Linux's list of a process's children alone.
    """
    for child in started(process):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(child, signal.SIGKILL)
    if process != os.getpid():
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process, signal.SIGKILL)


def started(process: int) -> Iterator[int]:
    """The children of a process and theirs, the youngest first. Source: proc_pid_task(5)."""
    with contextlib.suppress(OSError):
        for thread in Path(f"/proc/{process}/task").iterdir():
            for child in map(int, (thread / "children").read_text().split()):
                yield from started(child)
                yield child


class Copy:
    """The copy's side of the pipe."""

    def __init__(self, writer: int, seconds: float) -> None:
        self.writer, self.pid = writer, os.getpid()
        self.seconds, self.begun = seconds, 0.0
        self.sending = False
        self.printed = _Printed(self._send)

    def run(self, work: Callable[[], Iterator[Any]]) -> NoReturn:
        """Do the work, and end: nothing of this process's frames is ever returned to."""
        try:
            self._confine()
            drawing.forget()
            forget(inspect.currentframe(), work)
            self._allow()
            for item in work():
                if _used() - self.begun > self.seconds:  # those that it has started count, too
                    self._send("done", spent(self.seconds))
                    break
                self.printed.flush()
                self._send("yielded", item)
                self._allow()
            else:
                self._send("done", None)
        except BaseException as error:  # not the answer's, which `guard` catches
            self._send("done", Ended("error", "".join(traceback.format_exception_only(error))))
        finally:
            end_started(self.pid)
            os._exit(0)

    def _send(self, kind: str, item: Any) -> None:
        if os.getpid() != self.pid:  # a copy of the copy, which an answer made
            os._exit(0)
        data = memoryview(messages.written(kind, item))
        self.sending = True
        try:
            while data:
                data = data[os.write(self.writer, data) :]
        except OSError:
            end_started(self.pid)
            os._exit(CLOSED)
        self.sending = False

    def _confine(self) -> None:
        """Keep the copy from the notebook's files, terminal and signals, and within its memory.

        It has a group of processes of its own, and what its children leave behind becomes its own
        child, so that all of them can be found and ended with it.
        """
        os.setsid()
        if sys.platform == "linux":
            ctypes.CDLL(None).prctl(_SUBREAPER, 1, 0, 0, 0)
        gc.freeze()  # what the notebook owns is not this process's to finalise
        faulthandler.disable()
        for file in _open_files() - {0, 1, 2, self.writer}:
            with contextlib.suppress(OSError):
                os.close(file)
        null = os.open(os.devnull, os.O_RDWR)
        for stream in range(3):
            os.dup2(null, stream)
        sys.stdin, sys.stdout = io.StringIO(), self.printed
        sys.stderr = sys.__stdout__ = sys.__stderr__ = sys.stdout
        logging.disable()
        builtins.input = _nobody_answers
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # the only thread of a copy is its main one
        signal.signal(signal.SIGUSR1, self._say_where)
        signal.signal(signal.SIGPROF, self._say_spent)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        with contextlib.suppress(OSError, ValueError):  # /proc is Linux's
            pages = int(Path("/proc/self/statm").read_text().split()[0])
            most = pages * resource.getpagesize() + MEMORY
            resource.setrlimit(resource.RLIMIT_AS, (most, most))

    def _allow(self) -> None:
        """Let the copy use the processor for so many seconds from now on.

        The timer strikes between two steps of Python, and strikes again where it came amiss. The
        system's limit ends what never comes to such a step, and each process that the copy starts.
        """
        self.begun = _used()
        signal.setitimer(signal.ITIMER_PROF, self.seconds, 0.1)
        hard = resource.getrlimit(resource.RLIMIT_CPU)[1]
        soft = math.ceil(time.process_time() + self.seconds) + 1
        if hard != resource.RLIM_INFINITY:
            soft = min(soft, hard)
        resource.setrlimit(resource.RLIMIT_CPU, (soft, hard))

    def _say_spent(self, number: int, frame: Any) -> None:
        if not self.sending:
            self._send("done", spent(self.seconds, _frames(frame)))
            os._exit(0)

    def _say_where(self, number: int, frame: Any) -> None:
        if not self.sending:
            self._send("where", _frames(frame))


def forget(frame: FrameType | None, work: Callable) -> None:
    """Empty the course's frames below `frame`, which nobody returns to.

    Of the functions of the exercise's module only those are left that its answers, its classes and
    `work` name.
    """
    while frame := frame and frame.f_back:
        if not frame.f_code.co_filename.startswith(_COURSE):
            continue
        names = frame.f_locals
        for name in set(frame.f_code.co_varnames) & set(names):
            names[name] = None
        if sys.version_info < (3, 13):  # `f_locals` is a copy there, which this writes back
            ctypes.pythonapi.PyFrame_LocalsToFast(ctypes.py_object(frame), ctypes.c_int(0))
        module = frame.f_globals
        if "TASK" in module:
            done = work.func if isinstance(work, partial) else work
            own = {name: f for name, f in module.items() if _is_of(module, f)}
            for name in own.keys() - _named([*module["TASK"].answers, done], module):
                del module[name]


def _is_of(module: dict[str, Any], value: Any) -> bool:
    """Whether a value is a function, a property or a decorated function of this module."""
    return getattr(_function(value), "__globals__", None) is module


def _function(value: Any) -> Any:
    """The function behind a property or a decorator; other values as they are."""
    return inspect.unwrap(getattr(value, "fget", value))


def _named(functions: list[Callable], module: dict[str, Any]) -> set[str]:
    """The names that these functions and the module's classes use, directly or by others of it."""
    members = [m for c in module.values() if inspect.isclass(c) for m in vars(c).values()]
    names: set[str] = set()
    codes = [_function(f).__code__ for f in (*functions, *members) if _is_of(module, f)]
    while codes:
        code = codes.pop()
        codes += [c for c in code.co_consts if isinstance(c, CodeType)]
        found = set(code.co_names) - names
        names |= found
        of_module = (module.get(name) for name in found)
        codes += [_function(f).__code__ for f in of_module if _is_of(module, f)]
    return names


def _used() -> float:
    """Seconds of the processor that this process, and those it started and waited for, have had."""
    return sum(os.times()[:4])


def _frames(frame: Any) -> Frames:
    frames = traceback.walk_stack(frame)
    return tuple((f.f_code.co_filename, line) for f, line in frames)[::-1]


class _Printed(io.TextIOBase):
    """Passes on the beginning of what is printed."""

    def __init__(self, send: Callable[[str, Any], None]) -> None:
        self.send, self.left, self.waiting = send, PRINTED, ""

    def write(self, text: str) -> int:
        """Take all of `text`, and pass on whole lines of what is within the allowance."""
        part = str(text)[: self.left].encode("utf-8", "replace").decode()  # half a character
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
