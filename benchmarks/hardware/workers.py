"""Processes that each take one task after the other; one that dies takes only its task along."""

from __future__ import annotations

import signal
import sys
import time
import traceback
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from typing import Any, NamedTuple

LIMIT = 600.0  # seconds that one task may take
GRACE = 5.0  # seconds for a process to end what it has begun


class Done(NamedTuple):
    """A task and what came of it: an answer, or why there is none."""

    task: Any
    answer: Any = None
    failed: str = ""


def spread(
    function: Callable[[Any], Any],
    tasks: Iterable[Any],
    count: int,
    until: float = float("inf"),
    limit: float = LIMIT,
) -> Iterator[Done]:
    """Call `function` with every task in `count` processes; each task as it is done.

    After `until`, a time of `time.monotonic`, no task is begun. A process whose task raised is
    replaced, since what it holds of a GPU may be broken; so is one that died, or took longer than
    `limit` seconds.
    """
    context = get_context("spawn")
    waiting = deque(tasks)
    busy: dict[Connection, tuple[Any, Any, float]] = {}  # process, task, when it is too late

    def begin() -> None:
        ours, theirs = context.Pipe()
        process = context.Process(target=_serve, args=(function, theirs), daemon=True)
        process.start()
        theirs.close()
        give(ours, process)

    def give(connection: Connection, process: Any) -> None:
        if waiting and time.monotonic() < until:
            task = waiting.popleft()
            connection.send(task)
            busy[connection] = process, task, time.monotonic() + limit
        else:
            connection.close()  # its process ends

    def replace() -> None:
        if waiting and time.monotonic() < until:
            begin()

    try:
        for _ in range(count):
            replace()
        while busy:
            ready = wait(list(busy), timeout=1.0)
            late = [c for c, (*_, end) in busy.items() if time.monotonic() > end and c not in ready]
            for connection in late:
                process, task, _ = busy.pop(connection)
                _end(process)
                connection.close()
                replace()
                yield Done(task, failed=f"it took more than {limit:.0f} s")
            for connection in ready:
                process, task, _ = busy.pop(connection)
                try:
                    answer, failed = connection.recv()
                except EOFError:
                    process.join()
                    answer, failed = None, f"its process ended with status {process.exitcode}"
                if failed:
                    connection.close()
                    replace()
                else:
                    give(connection, process)
                yield Done(task, answer, failed)
    finally:
        for process, *_ in busy.values():
            process.terminate()
        for process, *_ in busy.values():
            _end(process)


def _end(process: Any) -> None:
    """End a process, which ends what it has started."""
    process.terminate()
    process.join(GRACE)
    process.kill()


def _serve(function: Callable[[Any], Any], connection: Connection) -> None:
    """Answer tasks until there are no more, or one fails."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    failed = ""
    while not failed:
        try:
            task = connection.recv()
        except (EOFError, KeyboardInterrupt):
            return
        try:
            answer = function(task)
        except KeyboardInterrupt:
            return
        except Exception as error:
            answer, failed = None, "".join(traceback.format_exception(error, limit=-6))
        connection.send((answer, failed))
