"""What carries fibers in the page of a browser, as far as it can be seen without one."""

import gc
from contextlib import contextmanager

import numpy as np
import pytest

from gemmlab import cuda, simulate
from gemmlab.simt.machine import carriers


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
    while cuda.threadIdx.x == 1 and cuda.atomic.add(x, 0, 0) == 0:
        cuda.nanosleep(1)
    if cuda.threadIdx.x == 0:
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
