"""Kernels in which all blocks of a launch wait for each other."""

import re

import numpy as np
import pytest
from numpy import float64

from gemmlab import device, simulate
from gemmlab.simt import HazardError, cuda


def total(x, parts, out, waits):
    shared = cuda.shared.array(64, float64)
    t, i = cuda.threadIdx.x, cuda.grid(1)
    shared[t] = x[i]
    half = 32
    while half:
        cuda.syncthreads()
        if t < half:
            shared[t] += shared[t + half]
        half //= 2
    if t == 0:
        parts[cuda.blockIdx.x] = shared[0]
    if waits:
        cuda.cg.this_grid().sync()
    s = 0.0
    for b in range(cuda.gridDim.x):
        s += parts[b]  # fault
    if i == 0:
        out[0] = s


def test_a_sum_over_all_blocks(monkeypatch):
    monkeypatch.setattr("gemmlab.simt.launch.LANES", 64)  # batches of one block, for other kernels
    x, parts, out = np.arange(640.0), np.zeros(10), np.zeros(1)
    report = simulate(total, 10, 64, x, parts, out, True)
    assert out[0] == x.sum()
    assert report.hazards == []
    line = next(n for n, text in enumerate(report.source.lines, report.source.first_line)
                if "this_grid" in text)  # fmt: skip
    assert report.by_line[line]["barriers"] == 10
    with pytest.raises(HazardError, match="global-race") as caught:
        simulate(total, 10, 64, x, parts, out, False)
    assert "# fault" in caught.value.hazard.code


def swap(x):
    i, n = cuda.grid(1), x.size
    grid = cuda.cg.this_grid()
    value = x[n - 1 - i]
    grid.sync()
    x[i] = value


def add_then_read(x, out):
    i = cuda.grid(1)
    cuda.atomic.add(x, 0, 1)
    cuda.cg.this_grid().sync()
    out[i] = x[0]


def test_reads_and_atomics_before_the_wait_are_over():
    x, out = np.arange(256.0), np.zeros(256)
    simulate(swap, 4, 64, x)
    np.testing.assert_array_equal(x, np.arange(255, -1, -1))
    simulate(add_then_read, 4, 64, x[:1], out)
    assert (out == 255 + 256).all()


def wait_everywhere():
    cuda.cg.this_grid().sync()


def two_writers(x):
    wait_everywhere()
    x[cuda.threadIdx.x] = cuda.blockIdx.x  # fault


def block_stays_away(x):
    if cuda.blockIdx.x > 0:
        cuda.cg.this_grid().sync()  # fault


def block_has_returned(x):
    if cuda.grid(1) >= 64:
        return
    cuda.cg.this_grid().sync()  # fault


def thread_goes_on(x):
    t = cuda.threadIdx.x
    if t != 5:
        cuda.cg.this_grid().sync()  # fault
    x[cuda.grid(1)] = t


@pytest.mark.parametrize(
    ("kernel", "kind", "text"),
    [
        (two_writers, "global-race", "thread"),
        (block_stays_away, "divergent-barrier", r"waits for the whole grid, but block \(0\)"),
        (block_has_returned, "divergent-barrier", r"waits for the whole grid, but block \(1\)"),
        (
            thread_goes_on,
            "divergent-barrier",
            r"grid at a barrier that thread \(5\) does not",
        ),
    ],
)
def test_hazards(kernel, kind, text):
    for on_hazard in ("raise", "collect"):
        try:
            hazard = simulate(kernel, 2, 64, np.zeros(128), on_hazard=on_hazard).hazards[0]
        except HazardError as error:
            hazard = error.hazard
        assert hazard.kind == kind
        assert "# fault" in hazard.code
        assert re.search(text, hazard.message)


def some_have_finished(x, y):
    t, i = cuda.threadIdx.x, cuda.grid(1)
    if t % 2:
        return
    x[i] = 1
    cuda.cg.this_grid().sync()
    cuda.syncthreads()
    y[i] = x[i] + x[x.size - 2 - i]


def test_threads_that_have_returned_are_a_note():
    x, y = np.zeros((2, 128))
    report = simulate(some_have_finished, 2, 64, x, y)
    assert report.hazards == []
    assert [note.kind for note in report.notes] == ["returned", "returned"]
    assert y.tolist() == [2, 0] * 64


def static_memory(x):
    s = cuda.shared.array(6000, float64)
    s[cuda.threadIdx.x] = 0
    cuda.cg.this_grid().sync()


def test_a_grid_must_fit():
    h200 = device("h200")
    blocks = h200.sms * h200.threads_per_sm // 1024
    simulate(two_writers, 1, 1024, np.zeros(1024), device=h200)
    for chosen in (h200, None):
        with pytest.raises(ValueError, match=rf"grid of {2 * blocks} blocks .* holds \d+ blocks"):
            simulate(two_writers, 2 * blocks, 1024, np.zeros(1024), device=chosen)
    with pytest.raises(ValueError, match=r"529 .* holds 528 blocks .* 48000 B at once(.|\n)*sync"):
        simulate(static_memory, 529, 64, np.zeros(64), device=h200)
    simulate(static_memory, 528, 64, np.zeros(64), device=h200)
    with pytest.raises(ValueError, match="holds 264 blocks of 64 threads and 100000 B"):
        simulate(two_writers, 265, 64, np.zeros(64), shared_bytes=100_000, device=h200)
