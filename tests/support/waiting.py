"""Waiting for what another thread does."""

import time

SECONDS = 600  # by the clock on the wall, after which what is waited for is held to hang


def until(condition):
    end = time.perf_counter() + SECONDS
    while not condition():
        assert time.perf_counter() < end
        time.sleep(0.01)


def ran(explorer):
    """Let an explorer run what its controls say, to the end; what it then says."""
    explorer.start()
    assert explorer.wait(SECONDS)
    return explorer.message
