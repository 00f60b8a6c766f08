"""Jobs in the background: results, errors, stops and reports."""

import threading
import time

from gemmlab.explorers.job import Job, Stopped
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
