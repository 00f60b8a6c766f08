"""Each rule of why a kernel may be slow: a kernel that it is about, and its twin that is right."""

import json

import numpy as np
import pytest
from numpy import float32, float64

from gemmlab.programs import formats, running
from gemmlab.simt import cuda, simulate


def half(x):
    i = cuda.grid(1)
    for _ in range(16):
        x[i] = x[i] * 0.5


def half_of_an_argument(x, factor):
    i = cuda.grid(1)
    for _ in range(16):
        x[i] = x[i] * factor


def half_in_float32(x):
    i = cuda.grid(1)
    for _ in range(16):
        x[i] = x[i] * float32(0.5)


def half_by_integers(x):
    i = cuda.grid(1)
    for k in range(16):
        x[i] = x[i] / (k + 1)


def rows(a, out):
    i = cuda.grid(1)
    for k in range(a.shape[1]):
        out[i] = a[i, k]


def columns(a, out):
    i = cuda.grid(1)
    for k in range(a.shape[0]):
        out[i] = a[k, i]


def to_rows(out):
    i = cuda.grid(1)
    for k in range(out.shape[1]):
        out[i, k] = k


def bytes_of_rows(x):
    j, i = cuda.grid(2)
    x[i, j] += 1


def bytes_of_columns(x):
    i, j = cuda.grid(2)
    x[i, j] += 1


def column_of_a_tile(out):
    tile = cuda.shared.array((32, 32), float32)
    t = cuda.threadIdx.x
    for k in range(32):
        tile[t, k] = k
    out[t] = tile[t, 0]


def column_of_a_padded_tile(out):
    tile = cuda.shared.array((32, 33), float32)
    t = cuda.threadIdx.x
    for k in range(32):
        tile[t, k] = k
    out[t] = tile[t, 0]


def long_for_one(x):
    i = cuda.grid(1)
    turns = 40 if i % 32 == 0 else 4
    for k in range(turns):
        x[i] += k


def long_for_a_warp(x):
    i = cuda.grid(1)
    turns = 40 if i < 32 else 4
    for k in range(turns):
        x[i] += k


def all_by_each(x):
    for i in range(x.size):
        x[i] = 2


def all_by_all(x):
    for i in range(cuda.grid(1), x.size, cuda.gridsize(1)):
        x[i] = 2


def digits(x, base):
    i = cuda.grid(1)
    for _ in range(16):
        x[i] = x[i] % base + i


def last_digits(x):
    i = cuda.grid(1)
    for _ in range(16):
        x[i] = x[i] % 10 + i


def first_ones(x, n):
    i = cuda.grid(1)
    if i < n:
        for _ in range(16):
            x[i] += 1


def one_does_all(x):
    if cuda.grid(1) == 0:
        for i in range(x.size):
            x[i] += 1


def many_turns(x, turns):
    i = cuda.grid(1)
    s = x[i]
    for _ in range(turns):
        s += 1
    x[i] = s


def ones(n, kind=float64):
    return np.ones(n, kind)


SINGLE, DOUBLE = ones(64, float32), ones(64)
HAVE = [
    (half, 2, 32, [SINGLE], "float64", "the literal 0.5 is, np.float32(0.5) is not"),
    (half_of_an_argument, 2, 32, [SINGLE, 0.5], "float64", "the argument factor is, "),
    (half_by_integers, 2, 32, [SINGLE], "float64", "an integer with a float32 makes one"),
    (rows, 2, 32, [ones((64, 16)), DOUBLE], "strided access", "32.0 sectors for each load of a "),
    (to_rows, 2, 32, [ones((64, 16))], "strided access", "where 8.0 would do"),
    (bytes_of_columns, 16, (8, 8), [np.ones((128, 64), np.uint8)], "strided access", "where 4.0"),
    (column_of_a_tile, 1, 32, [SINGLE], "bank conflicts", "31.0 for each access"),
    (long_for_one, 2, 32, [DOUBLE], "divergence", "of a warp's 32 threads"),
    (all_by_each, 2, 32, [DOUBLE], "same work", "each does the work of all"),
    (all_by_each, 1, 1, [ones(600)], "small blocks", "blocks of 1 thread leave the other 31 of a"),
    (digits, 2, 32, [np.ones(64, np.int32), 10], "integer division", "40 or more"),
    (first_ones, 4, 32, [DOUBLE, 32], "idle threads", "of 128 threads 96 did nothing"),
    (one_does_all, 2, 32, [DOUBLE], "idle threads", "of 64 threads 63 did nothing"),
    (many_turns, 2, 256, [ones(512), 1500], "few blocks", "2 blocks for the 132 SMs"),
    (many_turns, 512, 32, [ones(1 << 14), 1], "small blocks", "blocks of 32 threads"),
    (many_turns, 250, 68, [ones(17000), 1], "small blocks", "the last warp of each block has 4 "),
]  # fmt: skip
HAVE_NOT = [
    (half_in_float32, 2, 32, [SINGLE], "float64"),
    (half, 2, 32, [DOUBLE], "float64"),
    (half_of_an_argument, 2, 32, [SINGLE, float32(0.5)], "float64"),
    (columns, 2, 32, [ones((16, 64)), DOUBLE], "strided access"),
    (bytes_of_rows, (4, 4), (8, 8), [np.ones((32, 32), np.uint8)], "strided access"),
    (column_of_a_padded_tile, 1, 32, [SINGLE], "bank conflicts"),
    (long_for_a_warp, 2, 32, [DOUBLE], "divergence"),
    (first_ones, 3, 24, [DOUBLE, 64], "divergence"),
    (all_by_all, 2, 32, [ones(640)], "same work"),
    (last_digits, 2, 32, [np.ones(64, np.int32)], "integer division"),
    (first_ones, 2, 32, [DOUBLE, 50], "idle threads"),
    (many_turns, 64, 32, [ones(2048), 1500], "few blocks"),
    (many_turns, 2, 256, [ones(512), 10], "few blocks"),
    (many_turns, 128, 128, [ones(1 << 14), 1], "small blocks"),
]


def named(value):
    """Name a case by its kernel and its kind."""
    return getattr(value, "__name__", value if isinstance(value, str) and len(value) < 20 else "")


@pytest.mark.parametrize(("kernel", "grid", "block", "arguments", "kind", "told"), HAVE, ids=named)
def test_a_reason_is_told_with_its_line(kernel, grid, block, arguments, kind, told):
    report = simulate(kernel, grid, block, *arguments)
    [found] = [reason for reason in report.why_slow() if reason.kind == kind]
    assert told in found.text
    launch = kind in ("idle threads", "few blocks", "small blocks")
    assert bool(found.code) != launch
    assert str(found).startswith(f"{kind}: ")
    assert 0 < found.part <= 1


@pytest.mark.parametrize(("kernel", "grid", "block", "arguments", "kind"), HAVE_NOT, ids=named)
def test_a_kernel_without_it_is_not_accused(kernel, grid, block, arguments, kind):
    report = simulate(kernel, grid, block, *arguments)
    assert kind not in [reason.kind for reason in report.why_slow()]


def test_the_weightiest_comes_first_and_a_tiny_launch_has_none():
    report = simulate(rows, 2, 32, ones((64, 16), float32), DOUBLE)
    parts = [reason.part for reason in report.why_slow()]
    assert parts == sorted(parts, reverse=True)
    assert simulate(one_does_all, 2, 32, ones(1)).why_slow() == ()


PROGRAM = """
import numpy as np
from numba import cuda

@cuda.jit
def first_ones(x, n):
    i = cuda.grid(1)
    if i < n:
        for _ in range(16):
            x[i] += 1

for n in (64, 64, 64):
    first_ones[8, 32](np.ones(64), n)
"""


def test_launches_that_are_added_up_are_judged_as_one(tmp_path):
    path = tmp_path / "program.py"
    path.write_text(PROGRAM, "utf-8")
    outcome = running.run(str(path))
    [row] = outcome.account.rows
    assert [reason.text[:40] for reason in row.report.why_slow()] == [
        "of 256 threads 192 did nothing but test "
    ]
    text = formats.as_text(outcome)
    assert "Why first_ones (program.py:5) may be slow:\n  the launch\n    idle threads: of " in text
    assert "<pre>Why first_ones" in formats.as_html(outcome)
    [launch] = json.loads(formats.as_json(outcome))["launches"]
    assert launch["why_slow"][0]["kind"] == "idle threads"
