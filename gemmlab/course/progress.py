"""What a learner has guessed, solved and reviewed, kept in a file beside the notebooks.

A line of the file is one event, and no line is ever changed: each is added whole, so that several
notebooks may write, and what was there stays there. A line that is damaged is passed over. Outside
of a notebook events are remembered until Python ends, and no file is made.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

FILE = "progress.jsonl"
KINDS = ("guess", "exercise", "review", "dealt")
MOST = 4 << 20  # bytes of a file that are read: the last ones
_REMEMBERED: list[Event] = []  # of this process, where there is no file


@dataclass(frozen=True)
class Event:
    """One thing that a learner did.

    kind : "guess", "exercise" or "review", which were right or not, or "dealt", a deck of questions
    key : such as "03.rows", "04.2", or the number of a chapter
    when : seconds since 1970; more : what else belongs to it
    """

    kind: str
    key: str
    right: bool
    when: float
    more: dict[str, Any] = field(default_factory=dict)

    @property
    def chapter(self) -> str:
        """The number of its chapter."""
        return self.key[:2]


def file() -> Path | None:
    """The file of the learner who runs this: in a notebook's folder; None outside of a notebook."""
    ipython = sys.modules.get("IPython")
    notebook = hasattr(ipython and ipython.get_ipython(), "kernel")
    return Path(FILE) if notebook else None


def events() -> list[Event]:
    """All that is kept, the oldest first."""
    path = file()
    if path is None:
        return list(_REMEMBERED)
    with contextlib.suppress(OSError), path.open("rb") as kept:
        kept.seek(max(0, path.stat().st_size - MOST))
        return list(_readable(kept.read().split(b"\n")))
    return []


def _readable(lines: Iterable[bytes]) -> Iterable[Event]:
    """The events of those lines that are whole."""
    for line in lines:
        with contextlib.suppress(ValueError, TypeError, RecursionError):
            event = Event(**json.loads(line))
            kinds = [type(x) for x in (event.key, event.right, event.when, event.more)]
            if event.kind in KINDS and kinds == [str, bool, float, dict]:
                yield event


def keep(kind: str, key: str, right: bool, **more: Any) -> None:
    """Add an event, unless the last one of this kind and key says the same.

    A folder in which nothing can be written costs the learner what would have been kept, and no
    more: nothing is raised.
    """
    made = Event(kind, key, bool(right), datetime.now(UTC).timestamp(), more)
    last = next((e for e in reversed(events()) if (e.kind, e.key) == (kind, key)), None)
    if last and (last.right, last.more) == (made.right, made.more):
        return
    path = file()
    if path is None:
        _REMEMBERED.append(made)
        return
    # A line of its own also after one that was cut off; one call adds it as a whole.
    line = b"\n" + json.dumps(asdict(made), ensure_ascii=False).encode() + b"\n"
    with contextlib.suppress(OSError):
        holder = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        try:
            os.write(holder, line)
        finally:
            os.close(holder)


def done(kept: Iterable[Event], kind: str) -> set[str]:
    """The keys of guesses that were made, or of exercises that were passed at least once."""
    return {e.key for e in kept if e.kind == kind and (e.right or kind == "guess")}
