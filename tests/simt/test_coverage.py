"""A grid that ends before an array is noted; what is left out for another reason is not."""

import numpy as np
import pytest

from gemmlab.programs import running
from gemmlab.simt import cuda, simulate
from gemmlab.simt.report.coverage import KIND


def scaled(x):
    i = cuda.grid(1)
    if i < x.size:
        x[i] *= 2


def scaled_2d(x):
    i, j = cuda.grid(2)
    if i < x.shape[0] and j < x.shape[1]:
        x[i, j] *= 2


def by_row(x):
    j, i = cuda.grid(2)
    if i < x.shape[0] and j < x.shape[1]:
        x[i, j] = i


def inner(u, x):
    i, j = cuda.grid(2)
    if 0 < i < x.shape[0] - 1 and 0 < j < x.shape[1] - 1:
        x[i, j] = u[i - 1, j] + u[i + 1, j]


def smoothed(x):
    i = cuda.grid(1) + 1
    left, right = x[i - 1], x[i + 1]
    cuda.syncthreads()
    x[i] = left + right


def four_each(x):
    i = 4 * cuda.grid(1)
    for k in range(4):
        x[i + k] = k


def of_a_block(x):
    x[cuda.threadIdx.x] = 1


def of_the_first_block(x):
    if cuda.blockIdx.x == 0:
        x[cuda.threadIdx.x] = 1


def upper(x):
    i, j = cuda.grid(2)
    if i < j < x.shape[1]:
        x[i, j] = 1


def counted(bins, x):
    bins[x[cuda.grid(1)]] = 1


def halved(x):
    i = cuda.grid(1)
    x[i] += x[i + x.size // 2]


def strided(x):
    for i in range(cuda.grid(1), x.size, cuda.gridsize(1)):
        x[i] = 1


def totals(out):
    if cuda.threadIdx.x == 0:
        out[cuda.blockIdx.x] = 1


def added(x):
    cuda.atomic.add(x, cuda.grid(1), 1)


def after_all(x):
    x[cuda.grid(1)] = 1
    cuda.cg.this_grid().sync()


def notes(kernel, grid, block, *arguments):
    report = simulate(kernel, grid, block, *arguments, on_hazard="collect")
    return [note for note in report.notes if note.kind == KIND]


@pytest.mark.parametrize(
    ("kernel", "grid", "block", "shapes", "told"),
    [
        (scaled, 2, 16, [100], "68 of 100 elements of x are never stored: the grid ends at 32 of"),
        (scaled_2d, (2, 2), (16, 16), [(40, 100)], "32 of 40 along axis 0, and 32 of 100 along"),
        (scaled_2d, (3, 2), (16, 16), [(40, 100)], "the grid ends at 32 of 100 along axis 1"),
        (by_row, (1, 2), (8, 8), [(20, 8)], "the grid ends at 16 of 20 along axis 0"),
        (inner, (2, 2), (8, 8), [(40, 40), (40, 40)], "16 of 40 along axis 0, and 16 of 40"),
        (smoothed, 1, 32, [64], "32 of 64 elements of x are never stored"),
        (of_a_block, 4, 16, [64], "leaves out cuda.blockIdx, and ends where a block does"),
        (four_each, 2, 32, [1024], "768 of 1,024 elements of x are never stored"),
    ],
)  # fmt: skip
def test_a_grid_that_ends_before_the_array_is_noted(kernel, grid, block, shapes, told):
    [note] = notes(kernel, grid, block, *map(np.ones, shapes))
    assert told in note.message
    assert " = " in note.code or " *= " in note.code


@pytest.mark.parametrize(
    ("kernel", "grid", "block", "arguments"),
    [
        (scaled, 7, 16, [np.ones(100)]),
        (scaled, 2, 16, [np.ones(32)]),
        (inner, (5, 5), (8, 8), [np.ones((40, 40)), np.ones((40, 40))]),
        (smoothed, 1, 32, [np.ones(34)]),
        (upper, (2, 2), (8, 8), [np.ones((16, 16))]),
        (counted, 1, 32, [np.ones(64), np.arange(32)[::-1] * 3 % 32]),
        (halved, 1, 32, [np.ones(64)]),
        (strided, 2, 16, [np.ones(100)]),
        (totals, 4, 32, [np.ones(64)]),
        (of_the_first_block, 4, 16, [np.ones(64)]),
        (added, 1, 32, [np.ones(64)]),
        (after_all, 1, 32, [np.ones(64)]),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_what_is_left_out_for_another_reason_is_not(kernel, grid, block, arguments):
    assert notes(kernel, grid, block, *arguments) == []


def test_launches_that_each_store_to_a_part_leave_nothing(tmp_path):
    path = tmp_path / "parts.py"
    path.write_text(
        "import numpy as np\nfrom numba import cuda\n\n@cuda.jit\ndef part(x, first):\n"
        "    x[first + cuda.grid(1)] = 1\n\nx = np.zeros(64)\n"
        "for first in (0, 32):\n    part[1, 32](x, first)\npart[1, 16](x, 0)\n",
        "utf-8",
    )
    rows = running.run(str(path)).account.rows
    assert [len(row.report.notes) for row in rows] == [0, 1]
