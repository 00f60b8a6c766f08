"""Code in the one thread of a page is stopped by Python itself.

`python -m benchmarks.live answers` tries it in Pyodide.
"""

import sys
import time

import pytest

from gemmlab.measure.backends import stopping, watching
from gemmlab.measure.backends.stopping import OutOfTime, limited

needs_jumps = pytest.mark.skipif(
    not hasattr(sys, "monitoring"), reason="Python tells of its jumps since 3.12"
)


def turns():
    while True:
        pass


def keeps_errors():
    while True:
        try:  # noqa: SIM105
            time.perf_counter()
        except BaseException:
            pass


@needs_jumps
@pytest.mark.parametrize("endless", [turns, keeps_errors])
def test_a_loop_without_end_is_stopped(endless):
    with pytest.raises(OutOfTime), watching.watched(0.1, OutOfTime):
        endless()
    assert sys.monitoring.get_tool(watching.TOOL) is None


@needs_jumps
def test_of_two_limits_the_shorter_one_stops():
    short = watching.watched(0.05, OutOfTime)
    with watching.watched(60, KeyError), pytest.raises(OutOfTime), short:
        turns()


def test_in_a_page_a_limit_is_watched_and_told_as_elsewhere(monkeypatch):
    asked = []

    class Watched:
        def __init__(self, seconds, error):
            asked.append((seconds, error))

        def __enter__(self):
            return self

        def __exit__(self, *_):
            return False

    monkeypatch.setattr(stopping, "THREADS", False)
    monkeypatch.setattr(watching, "watched", Watched)
    told = "the loop was stopped: it was running after 2 s"
    with pytest.raises(TimeoutError, match=told), limited(2, "the loop"):
        raise OutOfTime
    assert asked == [(2, OutOfTime)]
