"""Jobs in the background: results, errors, stops and reports."""

import threading
import time

import pytest

from gemmlab.explorers.shared import running
from gemmlab.explorers.shared.running import Job, Stopped
from tests.support.waiting import SECONDS, until


def outcome_of(work, then=lambda job: None):
    ends = []
    job = Job(work, lambda seconds: None, lambda *end: ends.append(end)).start()
    then(job)
    assert job.wait(SECONDS)
    (end,) = ends
    return end


def test_a_job_hands_over_its_result():
    assert outcome_of(lambda: 42) == (42, None)


def test_a_job_hands_over_its_error():
    result, error = outcome_of(lambda: 1 / 0)
    assert result is None
    assert isinstance(error, ZeroDivisionError)


def test_a_stop_is_not_swallowed_by_an_except():
    started = threading.Event()

    def stubborn():
        started.set()
        while True:
            try:
                time.sleep(0.001)
            except Exception:
                continue

    def stop(job):
        started.wait(SECONDS)
        job.stop()

    assert isinstance(outcome_of(stubborn, stop)[1], Stopped)


def test_a_stop_right_after_the_start():
    def forever():
        while True:
            time.sleep(0.001)

    assert isinstance(outcome_of(forever, Job.stop)[1], Stopped)


def test_a_stop_while_the_thread_begins(monkeypatch):
    begun, stopped = threading.Event(), threading.Event()

    class Slow(threading.Thread):
        def run(self):
            if self.name == "gemmlab-work":
                begun.set()
                assert stopped.wait(SECONDS)
            super().run()

    monkeypatch.setattr(threading, "Thread", Slow)

    def stop(job):
        assert begun.wait(SECONDS)
        job.stop()
        stopped.set()

    assert isinstance(outcome_of(lambda: "done", stop)[1], Stopped)


@pytest.mark.parametrize("stops", [0, 1, 2])
def test_a_stop_that_may_be_on_its_way_has_to_arrive_before_the_end(stops, monkeypatch):
    sent, arrived = [], []
    monkeypatch.setattr(running, "raise_in", lambda thread, kind: sent.append((thread, kind)))
    monkeypatch.setattr(running, "swallow", arrived.append)
    begun, asked = threading.Event(), threading.Event()

    def work():
        begun.set()
        return asked.wait(SECONDS) and threading.get_ident()

    def stop(job):
        assert begun.wait(SECONDS)
        for _ in range(stops):
            job.stop()
        asked.set()

    thread, error = outcome_of(work, stop)
    assert error is None
    assert sent == [(thread, Stopped)] * stops
    assert arrived == [Stopped] * (stops > 0)


def test_stops_that_race_with_the_end_do_no_harm():
    def twice(job):
        job.stop()
        job.stop()

    for _ in range(50):
        result, error = outcome_of(lambda: "done", twice)
        assert (result, error) == ("done", None) or isinstance(error, Stopped)


def test_progress_is_reported():
    seen, release = [], threading.Event()
    job = Job(lambda: release.wait(SECONDS), seen.append, lambda *_: None).start()
    until(lambda: len(seen) >= 2)
    release.set()
    job.wait(SECONDS)
    assert seen == sorted(seen)
    assert seen[0] > 0
