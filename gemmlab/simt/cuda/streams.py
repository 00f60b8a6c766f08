"""Streams and events: everything asked of the simulated GPU is done at once."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any


class SimulatedTimeWarning(UserWarning):
    """A time was asked for that is this computer's, not a GPU's."""


class Stream:
    """A queue of launches and copies, which are done at once here: there is nothing to wait for."""

    def synchronize(self) -> None:
        """Wait for what was asked of the stream."""

    @contextmanager
    def auto_synchronize(self) -> Iterator[Stream]:
        """The stream, to be waited for at the end of the body."""
        yield self

    def add_callback(self, callback: Callable, arg: Any = None) -> None:
        """Call `callback(stream, status, arg)` when what was asked is done, which is now."""
        callback(self, 0, arg)

    def __repr__(self) -> str:
        return "<simulated CUDA stream>"


class Event:
    """A moment of a stream. What is between two of them is the time of this computer."""

    def __init__(self, timing: bool = True) -> None:
        self.timing = timing
        self.moment: float | None = None

    def record(self, stream: Any = 0) -> None:
        """Keep this moment."""
        self.moment = time.perf_counter()

    def query(self) -> bool:
        """Whether what was asked before it is done, as it always is."""
        return True

    def synchronize(self) -> None:
        """Wait for what was asked before it."""

    def wait(self, stream: Any = 0) -> None:
        """Let a stream wait for it."""

    def elapsed_time(self, evtend: Event) -> float:
        """Time from this event to another one [ms]; see `event_elapsed_time`."""
        return event_elapsed_time(self, evtend)


def stream() -> Stream:
    """A new stream."""
    return Stream()


def default_stream() -> Stream:
    """The stream of launches that name none."""
    return Stream()


legacy_default_stream = per_thread_default_stream = default_stream


def external_stream(ptr: int) -> Stream:
    """A stream of another library."""
    return Stream()


def event(timing: bool = True) -> Event:
    """A new event."""
    return Event(timing)


def event_elapsed_time(evtstart: Event, evtend: Event) -> float:
    """Time that this computer took to simulate what lies between two events [ms].

    It says nothing about a GPU, and a SimulatedTimeWarning says so. Raises ValueError for events
    that were not recorded, or that keep no time.
    """
    for one in (evtstart, evtend):
        if not one.timing or one.moment is None:
            raise ValueError("an event has no time; make it with timing=True and record() it")
    warnings.warn(
        "this is the time that the simulation took on this computer, and not a GPU's; "
        "gemmlab.predict says how long a GPU would need",
        SimulatedTimeWarning,
        stacklevel=2,
    )
    return 1e3 * (evtend.moment - evtstart.moment)


def synchronize() -> None:
    """Wait for the simulated GPU, which has always finished."""


def profile_start() -> None:
    """Begin what a profiler is to see; none looks at a simulated GPU."""


def profile_stop() -> None:
    """End what a profiler is to see."""


@contextmanager
def profiling() -> Iterator[None]:
    """A profiler is to see the body; none looks at a simulated GPU."""
    yield
