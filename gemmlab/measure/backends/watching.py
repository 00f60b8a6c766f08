"""Stopping code where no other thread can, in the page of a browser: Python looks at the clock.

Where code jumps back and where a function begins, `sys.monitoring` calls a function of this module,
which looks at the clock now and then. A step that runs outside Python, such as a sum over a huge
range, is seen when it is over.
"""

import contextlib
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import CodeType
from typing import Any

TOOL = 4  # a number that Python leaves to tools; 0 to 2 and 5 are those of debuggers and profilers
EVERY = 200  # jumps and calls from one look at the clock to the next
# Code of these lets go of what it holds once it was stopped: it is stopped but once. Other code,
# which may have kept the error to itself, is stopped at its next step again.
_OURS = str(Path(__file__).resolve().parents[2])
_PYTHONS = contextlib.__file__, __file__


class _Watch:
    """How long code may go on, and what is raised in it then."""

    def __init__(self, seconds: float, error: type[BaseException]) -> None:
        self.end, self.error, self.struck = time.process_time() + seconds, error, False

    def look(self, code: CodeType) -> None:
        """Raise the error where it is late."""
        if code.co_filename in _PYTHONS or time.process_time() < self.end:
            return
        if self.struck and code.co_filename.startswith((_OURS, sys.prefix)):
            return
        self.struck = True
        raise self.error


_watches: list[_Watch] = []
_left = EVERY


def _step(code: CodeType, *place: Any) -> None:
    global _left
    _left -= 1
    if _left <= 0:
        _left = 0 if any(watch.struck for watch in _watches) else EVERY
        for watch in _watches[:]:
            watch.look(code)


@contextmanager
def watched(seconds: float, error: type[BaseException]) -> Iterator[None]:
    """Raise `error` in what runs inside once it has used its seconds of the processor.

    Nothing is raised in a Python that cannot tell of its jumps: before 3.12.
    """
    monitoring = getattr(sys, "monitoring", None)
    if monitoring is None:
        yield
        return
    watch = _Watch(seconds, error)
    if not _watches:
        monitoring.use_tool_id(TOOL, "gemmlab")
        events = monitoring.events.JUMP, monitoring.events.PY_START
        for event in events:
            monitoring.register_callback(TOOL, event, _step)
        monitoring.set_events(TOOL, sum(events))
    _watches.append(watch)
    try:
        yield
    finally:
        _watches.remove(watch)
        if not _watches:
            monitoring.set_events(TOOL, 0)
            monitoring.free_tool_id(TOOL)
