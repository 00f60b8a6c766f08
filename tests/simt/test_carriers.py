"""What the page of a browser and its Python do otherwise, as far as it is seen without one."""

import gc
import sys
from collections.abc import Mapping
from contextlib import contextmanager
from types import SimpleNamespace

import numpy as np
import pytest

from gemmlab import cuda, simulate
from gemmlab.simt.machine import carriers, loops
from tests.simt.suspicious.wrong_in_grids import WRONG


@pytest.mark.parametrize("threads", [True, False])
@pytest.mark.parametrize("before", [True, False])
def test_in_a_page_garbage_is_not_collected_meanwhile(monkeypatch, threads, before):
    monkeypatch.setattr(carriers, "THREADS", threads)
    try:
        if not before:
            gc.disable()
        with carriers.uncollected():
            assert gc.isenabled() is (threads and before)
        assert gc.isenabled() is before
        with pytest.raises(KeyError), carriers.uncollected():
            raise KeyError
        assert gc.isenabled() is before
    finally:
        gc.enable()


def handed_on(x):
    while cuda.threadIdx.x == 0 and cuda.atomic.add(x, 0, 0) == 0:
        cuda.nanosleep(1)
    if cuda.threadIdx.x == 1:
        cuda.atomic.add(x, 0, 1)


def test_fibers_are_carried_inside_of_that(monkeypatch):
    inside, seen, carrier = [], [], carriers.carrier

    @contextmanager
    def noted():
        inside.append(True)
        yield
        inside.pop()

    def started(*given):
        seen.append(bool(inside))
        return carrier(*given)

    monkeypatch.setattr(carriers, "uncollected", noted)
    monkeypatch.setattr(carriers, "carrier", started)
    simulate(handed_on, 1, 32, np.zeros(1, np.int32))
    assert set(seen) == {True}
    assert inside == []


class View(Mapping):
    """Local variables as Python has them since 3.13: their keys are a list, which no dict's are."""

    def __init__(self, known):
        self.known = known

    def __getitem__(self, name):
        return self.known[name]

    def __iter__(self):
        return iter(self.known)

    def __len__(self):
        return len(self.known)

    def keys(self):
        return list(self.known)


def test_a_deadlock_is_seen_where_local_variables_are_a_view(monkeypatch):
    def frame(depth):
        real = sys._getframe(depth + 1)
        return SimpleNamespace(f_locals=View(real.f_locals), f_globals=real.f_globals)

    monkeypatch.setattr(loops, "sys", SimpleNamespace(**{**vars(sys), "_getframe": frame}))
    trial = next(one for one in WRONG if one.name == "lock_taken_twice")
    given, options = trial.arguments(), {"on_hazard": "collect", "max_steps": 5000}
    report = simulate(trial.kernel, trial.grid, trial.block, *given, **options)
    assert [found.kind for found in report.hazards] == ["deadlock"]
