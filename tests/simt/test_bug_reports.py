"""What users of Numba's CUDA reported or asked, and what the simulated GPU says of it.

Each kernel is written anew, after a report that is public; a line that an answer names, or would,
is marked `# fault`. "Explained" is that line with its hazard, a note, a reason why it is slow, or
the value that Numba gives on a GPU.
"""

import sys
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest
from numpy import float32, float64, int32, int64

from gemmlab import last_report, simulate
from gemmlab.programs.forecasts import FirstCalls, forecasts
from gemmlab.simt import HazardError, cuda
from gemmlab.simt.cuda.kernels import watching

pytestmark = pytest.mark.measuring


class Report(NamedTuple):
    """A kernel with its launch, and the kind of hazard that is told of it, at its marked lines."""

    source: str
    kernel: Callable
    grid: Any
    block: Any
    arguments: Callable[[], tuple]
    kind: str
    shared_bytes: int = 0


# Races and barriers


def sum_of_two(out):
    total = cuda.shared.array(1, float64)
    t = cuda.threadIdx.x
    if t == 0:
        total[0] = 0
    cuda.syncthreads()
    total[0] += t + 1  # fault
    cuda.syncthreads()
    out[t] = total[0]


def skipped_by_some(marks, out):
    t = cuda.threadIdx.x
    if t < 14:
        if t == 3:
            marks[0] = 112211
        cuda.syncthreads()  # fault
    else:
        cuda.syncthreads()  # also
    if t == 17:
        out[0] = marks[0]


def checkerboard(a, steps):
    i, j = cuda.grid(2)
    for step in range(steps):
        mine = (i + j + step) % 2 == 0 and i + 1 < a.shape[0] and j < a.shape[1]
        if mine and a[i, j] < a[i + 1, j]:  # fault
            a[i, j] = a[i + 1, j]
        cuda.syncthreads()


def sessions(starts, labels):
    i = cuda.grid(1)
    if i < starts.size and starts[i]:
        labels[i] = i
        cuda.cg.this_grid().sync()  # fault
        k = i + 1
        while k < starts.size and not starts[k]:
            labels[k] = i
            k += 1


def any_of_two_places(x, out):
    t = cuda.threadIdx.x
    for step in range(3):
        if x[t] < step:
            cuda.syncthreads_or(0)  # fault
            continue
        out[t] = cuda.syncthreads_or(1 if x[t] > 1 else 0)  # also


def barrier_in_the_branch(x, out):
    part = cuda.shared.array(64, float64)
    t = cuda.threadIdx.x
    part[t] = x[t]
    cuda.syncthreads()
    step = 32
    while step > 0:
        if t < step:
            part[t] += part[t + step]
            cuda.syncthreads()  # fault
        step //= 2
    out[0] = part[0]


def no_barrier_before_the_tile_is_read(x, out):
    tile = cuda.shared.array(64, float64)
    t = cuda.threadIdx.x
    tile[t] = x[t]
    out[t] = tile[63 - t]  # fault


def back_projection(angles, image):
    ray = cuda.grid(1)
    for step in range(8):
        image[(ray * 3 + step) % image.size] += angles[ray]  # fault


def no_second_barrier(a, b, out):
    left = cuda.shared.array((4, 4), float64)
    right = cuda.shared.array((4, 4), float64)
    x, y = cuda.threadIdx.x, cuda.threadIdx.y
    total = 0.0
    for k in range(0, a.shape[1], 4):
        left[y, x] = a[y, k + x]  # fault
        right[y, x] = b[k + y, x]  # also
        cuda.syncthreads()
        for i in range(4):
            total += left[y, i] * right[i, x]
    out[y, x] = total


def scan_in_place(x):
    values = cuda.shared.array(1024, float64)
    t = cuda.threadIdx.x
    values[t] = x[t]
    cuda.syncthreads()
    step = 1
    while step < 1024:
        if t >= step:
            values[t] += values[t - step]  # fault
        cuda.syncthreads()
        step *= 2
    x[t] = values[t]


# Memory that is not there, or holds nothing


def without_a_bound(x):
    i = cuda.grid(1)
    x[i] = 2 * x[i]  # fault


def dynamic_and_unwritten(out):
    shared = cuda.shared.array(0, float64)
    t = cuda.threadIdx.x
    out[t] = shared[t]  # fault


def product_of_the_manual(a, b, c):
    left = cuda.shared.array((16, 16), float32)
    right = cuda.shared.array((16, 16), float32)
    x, y = cuda.grid(2)
    tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
    if x >= c.shape[0] and y >= c.shape[1]:
        return
    total = 0.0
    for i in range(cuda.gridDim.x):
        left[tx, ty] = a[x, ty + i * 16]  # fault
        right[tx, ty] = b[tx + i * 16, y]  # also
        cuda.syncthreads()
        for j in range(16):
            total += left[tx, j] * right[j, ty]
        cuda.syncthreads()
    c[x, y] = total  # fault


def a_variable_of_some(a, out):
    rows = cuda.shared.array((1, 3), float64)
    x, y = cuda.threadIdx.x, cuda.threadIdx.y
    if y > 3:
        return
    step = (0, 2, 3)[y]
    if step > 0:
        value = a[0]
    if value < a[0]:  # fault
        out[0] = 1.0
    elif value < a[a.size - 1]:  # also
        out[0] = 2.0
    rows[x, y] = -999.0
    cuda.syncthreads()
    if y == 0:
        for k in range(3):
            out[k] = rows[0, k]


def numbers():
    return np.random.default_rng(5).random(64)


def board():
    """Cells of which each has neighbours like itself, and larger ones further down."""
    return np.arange(32).repeat(32).reshape(32, 32) // 4


REPORTS = [
    Report("numba#4907", sum_of_two, 1, 2, lambda: (np.zeros(2),), "shared-race"),
    Report("numba#1626", a_variable_of_some, 1, (1, 3), lambda: (np.zeros(3), np.zeros(3)),
           "uninitialised-read"),
    Report("numba#2655", skipped_by_some, 1, 20, lambda: (np.zeros(1), np.zeros(1)),
           "divergent-barrier"),
    Report("numba#7502", checkerboard, (4, 4), (8, 8), lambda: (board(), 6), "global-race"),
    Report("numba#8874", sessions, 2, 32,
           lambda: (np.arange(64) % 7 == 0, np.zeros(64, int64)), "divergent-barrier"),
    Report("numba#9770", any_of_two_places, 1, 32, lambda: (np.arange(32) % 3, np.zeros(32)),
           "divergent-barrier"),
    Report("numba#1891", barrier_in_the_branch, 1, 64, lambda: (numbers(), np.zeros(1)),
           "divergent-barrier"),
    Report("numba#9389", no_barrier_before_the_tile_is_read, 1, 64,
           lambda: (numbers(), np.zeros(64)), "shared-race"),
    Report("discourse.numba 2479", back_projection, 2, 32, lambda: (numbers(), np.zeros(64)),
           "global-race"),
    Report("srush/GPU-Puzzles#14", no_second_barrier, 1, (4, 4),
           lambda: (np.ones((4, 8)), np.ones((8, 4)), np.zeros((4, 4))), "shared-race"),
    Report("an in-place scan", scan_in_place, 1, 1024, lambda: (np.ones(1024),), "shared-race"),
    Report("numba#5576", dynamic_and_unwritten, 1, 32, lambda: (np.zeros(32),),
           "uninitialised-read", 256),
    Report("stackoverflow 64197780", product_of_the_manual, (2, 2), (16, 16),
           lambda: (np.ones((24, 20), float32), np.ones((20, 22), float32), np.zeros((24, 22))),
           "out-of-bounds"),
]  # fmt: skip


@pytest.mark.parametrize("report", REPORTS, ids=lambda r: r.source)
def test_a_fault_is_told_at_the_line_of_the_answer(report):
    told = simulate(report.kernel, report.grid, report.block, *report.arguments(),
                    on_hazard="collect", shared_bytes=report.shared_bytes)  # fmt: skip
    lines = enumerate(told.source.lines, told.source.first_line)
    marked = {i for i, text in lines if "# fault" in text or "# also" in text}
    assert marked
    assert marked <= {h.line for h in told.hazards if h.kind == report.kind}


def test_for_all_elements_begins_whole_blocks():
    """numba#7284: `forall` without a look at the bound."""
    with pytest.raises(HazardError) as caught:
        cuda.jit(without_a_bound).forall(1000)(np.ones(1000))
    assert caught.value.hazard.kind == "out-of-bounds"
    assert "# fault" in caught.value.hazard.code


# What is no hazard


def test_a_function_that_depends_on_the_order():
    """numba#2480: a reduction whose result differs from that on the host."""
    cuda.reduce(lambda a, b: a - 2 * b)(numbers())
    [note] = last_report().notes
    assert "is not what a reduction needs" in note.message


def test_a_grid_that_covers_a_part():
    """ENCCS/gpu-programming#41: an index of rows and columns, and a grid that is too small."""

    def scale(u):
        i, j = cuda.grid(2)
        if i < u.shape[0] and j < u.shape[1]:
            u[i, j] *= 2

    [note] = simulate(scale, (2, 2), (16, 16), np.ones((40, 100))).notes
    assert note.message.startswith("2,976 of 4,000 elements of u are never stored")


def test_blocks_of_two_dimensions_wait_for_the_grid():
    """numba#8740: a compiler's fault then; the values are those that were expected."""

    def handed_over(a, b, c):
        i = 4 * cuda.blockIdx.x + 2 * cuda.threadIdx.y + cuda.threadIdx.x
        b[i] = a[i] + 1
        cuda.cg.this_grid().sync()
        c[i] = b[7 - i]

    c = np.zeros(8)
    assert simulate(handed_over, (2, 1), (2, 2), np.arange(8.0), np.zeros(8), c).hazards == []
    assert c.tolist() == [8, 7, 6, 5, 4, 3, 2, 1]


SIZE = 1


def test_a_global_is_that_of_the_signature(monkeypatch):
    """numba#3265: a size that changes after a kernel with a signature is defined."""

    @cuda.jit("void(float64[:])")
    def last(out):
        own = cuda.local.array(SIZE, float64)
        for i in range(SIZE):
            own[i] = i
        out[0] = own[SIZE - 1]

    monkeypatch.setattr(sys.modules[__name__], "SIZE", 10)
    out = np.full(1, -1.0)
    last[1, 1](out)
    assert out[0] == 0


def test_floats_in_an_array_of_integers_are_cut():
    """numba#3912."""

    def store(x):
        x[cuda.grid(1)] = cuda.grid(1) * 0.75

    x = np.zeros(8, int32)
    simulate(store, 1, 8, x)
    assert x.tolist() == [0, 0, 1, 2, 3, 3, 4, 5]


def test_a_tuple_is_stored_to_a_slice():
    """numba#4800."""

    @cuda.jit
    def pair(d):
        d[:] = (10, 10)

    d = cuda.to_device([1, 2])
    pair[1, 1](d)
    assert d.copy_to_host().tolist() == [10, 10]


# Why is it slow?


def literals(x, y):
    i = cuda.grid(1)
    if i < x.size:
        y[i] = 0.5 * x[i] + 1.5 * x[i] * x[i]


def along_rows(x, y):
    i, j = cuda.grid(2)
    if i < x.shape[0] and j < x.shape[1]:
        y[i, j] = x[i, j]


def transposed(x, y):
    tile = cuda.shared.array((32, 32), float32)
    tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
    left, top = 32 * cuda.blockIdx.x, 32 * cuda.blockIdx.y
    tile[ty, tx] = x[top + ty, left + tx]
    cuda.syncthreads()
    y[left + ty, top + tx] = tile[tx, ty]


def of_one_thread(x, y):
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            y[i, j] = x[i, j] * float32(2)


@pytest.mark.parametrize(
    ("kernel", "grid", "block", "kind"),
    [
        (along_rows, (4, 4), (32, 32), "strided access"),  # a question that is asked often
        (transposed, (4, 4), (32, 32), "bank conflicts"),  # another one
        (of_one_thread, 1, 1, "small blocks"),  # numba#6554
    ],
)
def test_a_reason_why_it_is_slow(kernel, grid, block, kind):
    x, y = np.ones((2, 128, 128), float32)
    report = simulate(kernel, grid, block, x, y)
    assert kind in {reason.kind for reason in report.why_slow()}


def test_literals_are_float64():
    """numba#5737."""
    x, y = np.ones((2, 1 << 12), float32)
    [reason] = simulate(literals, 16, 256, x, y).why_slow()
    assert reason.kind == "float64"
    assert "the literals 0.5 and 1.5" in reason.text


def all_of_all(x):
    for i in range(x.size):
        x[i] = 1.5


def test_threads_that_each_do_the_work_of_all():
    """numba#6554."""
    report = simulate(all_of_all, 1, 256, np.ones(256), on_hazard="collect")
    assert "same work" in {reason.kind for reason in report.why_slow()}


@cuda.jit
def pairs(x1, y1, w1, x2, y2, w2, edges, result):
    for i in range(cuda.grid(1), x1.shape[0], cuda.gridsize(1)):
        for j in range(x2.shape[0]):
            dx = x1[i] - x2[j]
            dy = y1[i] - y2[j]
            d = dx * dx + dy * dy
            k = edges.shape[0] - 1
            while d <= edges[k]:
                cuda.atomic.add(result, k - 1, w1[i] * w2[j])
                k -= 1
                if k <= 0:
                    break


@cuda.jit
def mixed(x, n):
    i = cuda.grid(1)
    h = x[i]
    for k in range(n):
        h = (h * 31 + k) ^ (h >> 7)
        h = h ^ (h >> 11) ^ (k * 17)
    x[i] = h


@pytest.mark.ptxas
@pytest.mark.parametrize("kernel", [pairs, mixed])  # numba#4647, numba-cuda#801
def test_integers_of_64_bits_are_told_from_compiled_code(kernel):
    """Of launches that fill a GPU: others wait for other things."""
    first = FirstCalls()
    with watching(lambda launched: None, first.keep):
        if kernel is pairs:
            rng = np.random.default_rng(1)
            points = [rng.random(n).astype(float32) for n in 3 * [264 * 256] + 3 * [24]]
            kernel[264, 256](*points, np.linspace(0, 1e-6, 9, dtype=float32), np.zeros(8, float32))
        else:
            kernel[64, 128](np.arange(64 * 128, dtype=int32), 64)
    [found] = forecasts(first.calls.values(), "h200")
    assert any("are for 64-bit integers" in line for line in found.code)
