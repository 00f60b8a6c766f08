"""Tasks in processes of their own: answers, failures, time limits, and the processes' ends."""

import os
import time
from itertools import chain, repeat
from multiprocessing import active_children
from types import SimpleNamespace

import pytest

from benchmarks.hardware import workers
from benchmarks.hardware.workers import Done, spread
from tests.support.waiting import until

pytestmark = pytest.mark.measuring


def work(task):
    """Do what a task says."""
    if task == "raise":
        raise ValueError("no such thing")
    if task == "die":
        os._exit(7)
    if task == "sleep":
        time.sleep(600)
    return task * 2, os.getpid()


def done(tasks, count, **options):
    return {one.task: one for one in spread(work, tasks, count, **options)}


def test_every_task_is_answered_by_few_processes():
    found = done(range(6), 2)
    assert {task: one.answer[0] for task, one in found.items()} == {n: 2 * n for n in range(6)}
    assert len({one.answer[1] for one in found.values()}) <= 2
    assert os.getpid() not in {one.answer[1] for one in found.values()}


def test_a_task_that_fails_takes_no_other_along():
    found = done(["raise", "die", 1, 2], 1)
    assert "ValueError: no such thing" in found["raise"].failed
    assert found["die"] == Done("die", failed="its process ended with status 7")
    assert [found[n].answer[0] for n in (1, 2)] == [2, 4]
    assert found[1].answer[1] == found[2].answer[1]


def test_a_task_that_takes_too_long_is_ended(monkeypatch):
    clock = chain([0.0] * 3, repeat(10.0))  # it jumps once the first task has been given out
    monkeypatch.setattr(workers, "time", SimpleNamespace(monotonic=lambda: next(clock)))
    found = done(["sleep", 1], 1, limit=4.0)
    assert found["sleep"].failed == "it took more than 4 s"
    assert found[1].answer[0] == 2


def test_nothing_is_begun_too_late():
    assert done([1, 2], 2, until=time.monotonic()) == {}


def test_no_process_is_left_when_nobody_waits_any_more():
    results = spread(work, [1, 2, "sleep", "sleep"], 2)
    next(results)
    assert active_children()
    results.close()
    until(lambda: active_children() == [])
