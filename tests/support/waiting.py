"""Waiting for what another thread does."""

import time

SECONDS = 60  # that anything may take


def until(condition):
    end = time.perf_counter() + SECONDS
    while not condition():
        assert time.perf_counter() < end
        time.sleep(0.01)
