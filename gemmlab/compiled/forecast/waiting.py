"""Who waits longer than two seconds for a forecast sees how far it is, and it goes away at the end.

On a terminal that is a line with a bar; in a notebook that somebody looks at, a small line of text.
Where output goes to a file, or a notebook is executed by a program, nothing is shown.
"""

import shutil
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TextIO

PATIENCE, TICK = 2.0, 0.25  # seconds before something is shown, and between two of its states
WIDTH = 24  # of a bar

Show = Callable[[str], None]  # a line, "" for none


class Waiting:
    """A forecast has come so far, told in a thread of its own."""

    def __init__(self, show: Show) -> None:
        self.show, self.part, self.does = show, 0.0, ""
        self.start, self.end = time.monotonic(), threading.Event()
        self.thread = threading.Thread(target=self._tell, daemon=True)
        self.thread.start()

    def _tell(self) -> None:
        if self.end.wait(PATIENCE):
            return
        while not self.end.wait(TICK):
            self.show(self.line())
        self.show("")

    def line(self) -> str:
        bar = ("#" * int(self.part * WIDTH)).ljust(WIDTH, ".")
        return f"[{bar}] {time.monotonic() - self.start:.0f} s  {self.does}"

    def close(self) -> None:
        self.end.set()
        self.thread.join()


_CURRENT: ContextVar[Waiting | None] = ContextVar("_CURRENT", default=None)


@contextmanager
def waiting(stream: TextIO | None = None) -> Iterator[None]:
    """Show how far a forecast is that is made meanwhile, if somebody waits for it."""
    show = _shown(stream or sys.stderr)
    if show is None or _CURRENT.get() is not None:
        yield
        return
    one = Waiting(show)
    token = _CURRENT.set(one)
    try:
        yield
    finally:
        _CURRENT.reset(token)
        one.close()


def tell(part: float, does: str) -> None:
    """Say how far the forecast is of which somebody waits for the end, and what it does."""
    one = _CURRENT.get()
    if one is not None:
        one.part, one.does = part, does


def _shown(stream: TextIO) -> Show | None:
    """Return what shows a line here; None where nobody looks, or a widget has a thread for it."""
    if threading.current_thread() is not threading.main_thread():
        return None
    shell = sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None
    kernel = getattr(shell, "kernel", None)
    if kernel is not None:
        # Programs that execute notebooks do not let a kernel ask for input.
        return _in_notebook() if getattr(kernel, "_allow_stdin", False) else None
    return (lambda line: _on_terminal(stream, line)) if stream.isatty() else None


def _on_terminal(stream: TextIO, line: str) -> None:
    room = shutil.get_terminal_size().columns - 1
    print("\r" + line[:room].ljust(room), end="" if line else "\r", file=stream, flush=True)


def _in_notebook() -> Show:
    from IPython.display import HTML, display

    handles: list[Any] = []

    def show(line: str) -> None:
        text = HTML(f"<small><code>{line}</code></small>" if line else "")
        if handles:
            handles[0].update(text)
        else:
            handles.append(display(text, display_id=True))

    return show
