"""Answers to exercise 03.1."""

import numpy as np

from gemmlab import cuda
from gemmlab.course.ch03_threads_warps_blocks.q1_thread_map import build_transpose, grid
from gemmlab.course.judging import arrays_on_trial
from tests.course.answers import Wrong, edited, fooling, for_ever


def with_grid():
    def kernel(alpha, A, B):
        col, row = cuda.grid(2)
        if row >= A.shape[0] or col >= A.shape[1]:
            return
        B[col, row] = A[row, col] * alpha

    return kernel


def along_columns():
    def kernel(alpha, A, B):
        i, j = cuda.grid(2)
        if 0 <= i < A.shape[0] and 0 <= j < A.shape[1]:
            B[j, i] = alpha * A[i, j]

    return kernel


def grid_stride():
    def kernel(alpha, A, B):
        col, row = cuda.grid(2)
        across, down = cuda.gridsize(2)
        for i in range(row, A.shape[0], down):
            for j in range(col, A.shape[1], across):
                B[j, i] = alpha * A[i, j]

    return kernel


@cuda.jit(device=True)
def place(index, block, thread):
    return index * block + thread


def with_a_device_function():
    def kernel(alpha, A, B):
        row = place(cuda.blockIdx.y, cuda.blockDim.y, cuda.threadIdx.y)
        col = place(cuda.blockIdx.x, cuda.blockDim.x, cuda.threadIdx.x)
        height, width = A.shape
        if not (row < height):
            return
        if col < width:
            value = A[row, col]
            B[col, row] = value * alpha

    return kernel


RIGHT = {
    "a device function": (with_a_device_function, grid),
    "cuda.grid, and leaving early": (with_grid, grid),
    "x along the rows of B": (
        along_columns,
        lambda m, n, block: [(m + block[0] - 1) // block[0], (n + block[1] - 1) // block[1]],
    ),
    "one block that goes round": (grid_stride, lambda m, n, block: (1, 1)),
}


def kernel_wrong(misconception, diagnosis, *edits):
    return Wrong(misconception, diagnosis, (edited(build_transpose, *edits), grid))


def grid_wrong(misconception, diagnosis, *edits):
    return Wrong(misconception, diagnosis, (build_transpose, edited(grid, *edits)))


GUARD = "row < m and col < n"
BLOCKS = "-(-n // block[0]), -(-m // block[1])"

WRONG = {
    "or in the guard": kernel_wrong(
        "one index inside is enough", "guard-or", (GUARD, "row < m or col < n")
    ),
    "no guard": kernel_wrong("the grid fits", "outside", (f"if {GUARD}:", "if True:")),
    "guard of the columns only": kernel_wrong("the rows fit", "outside", (GUARD, "col < n")),
    "guard with m and n swapped": kernel_wrong(
        "x is the row", "outside", (GUARD, "row < n and col < m")
    ),
    "at most instead of below": kernel_wrong(
        "indices run from 1", "outside", (GUARD, "row <= m and col <= n")
    ),
    "block left out": kernel_wrong(
        "a thread's index is unique", "two-writers", ("cuda.blockIdx.y * cuda.blockDim.y + ", "")
    ),
    "grid size for block size": kernel_wrong(
        "gridDim is the size of a block", "not-written",
        ("cuda.blockDim.x", "cuda.gridDim.x"), ("cuda.blockDim.y", "cuda.gridDim.y"),
    ),
    "x and y swapped": kernel_wrong(
        "x is the row", "not-written",
        ("blockIdx.y * cuda.blockDim.y + cuda.threadIdx.y",
         "blockIdx.X * cuda.blockDim.X + cuda.threadIdx.X"),
        ("blockIdx.x * cuda.blockDim.x + cuda.threadIdx.x",
         "blockIdx.y * cuda.blockDim.y + cuda.threadIdx.y"),
        ("blockIdx.X", "blockIdx.x"), ("blockDim.X", "blockDim.x"), ("threadIdx.X", "threadIdx.x"),
    ),
    "not transposed": kernel_wrong(
        "B has the shape of A", "not-transposed", ("B[col, row]", "B[row, col]")
    ),
    "alpha forgotten": kernel_wrong("a copy will do", "alpha-dropped", ("alpha * A", "A")),
    "one element too few": kernel_wrong(
        "the last index is m - 2", "not-written", (GUARD, "row < m - 1 and col < n")
    ),
    "one added": kernel_wrong(
        "alpha is added", "wrong-values", ("alpha * A[row, col]", "alpha + A[row, col]")
    ),
    "floor": grid_wrong(
        "division rounds as needed", "grid-rounded-down", (BLOCKS, "n // block[0], m // block[1]"),
    ),
    "floor, at least 1": grid_wrong(
        "only small matrices need care", "not-written",
        (BLOCKS, "max(1, (n - 1) // block[0]), max(1, (m - 1) // block[1])"),
    ),
    "no blocks": grid_wrong("blocks are counted from 0", "grid-empty", (BLOCKS, "0, 0")),
    "one more always": grid_wrong(
        "dividing and adding 1 rounds up", "grid-too-large",
        (BLOCKS, "n // block[0] + 1, m // block[1] + 1"),
    ),
    "one number": grid_wrong(
        "the grid is a number of blocks", "wrong-type", (BLOCKS, "m * n // block[0]")
    ),
    "floats": grid_wrong("a quotient is a size", "wrong-type", (BLOCKS, "n / block[0], 1.0")),
    "raises": grid_wrong("a block is a number", "raises", (BLOCKS, "n // block, m // block")),
    "unknown name": kernel_wrong("rows are called i", "raises", ("A[row, col]", "A[i, col]")),
}  # fmt: skip


def one_thread():
    def kernel(alpha, A, B):
        col, row = cuda.grid(2)
        if col == 0 and row == 0:
            for i in range(A.shape[0]):
                for j in range(A.shape[1]):
                    B[j, i] = alpha * A[i, j]

    return kernel


def a_thread_a_row():
    def kernel(alpha, A, B):
        col, row = cuda.grid(2)
        if col == 0 and row < A.shape[0]:
            for j in range(A.shape[1]):
                B[j, row] = alpha * A[row, j]

    return kernel


def clears_a():
    def kernel(alpha, A, B):
        col, row = cuda.grid(2)
        if row < A.shape[0] and col < A.shape[1]:
            B[col, row] = alpha * A[row, col]
            A[row, col] = 0

    return kernel


def clears_both():
    def kernel(alpha, A, B):
        col, row = cuda.grid(2)
        if row < A.shape[0] and col < A.shape[1]:
            A[row, col] = 0
            B[col, row] = 0

    return kernel


def without_a():
    def kernel(alpha, A, B):
        col, row = cuda.grid(2)
        if row < A.shape[0] and col < A.shape[1]:
            B[col, row] = alpha * (row * A.shape[1] + col + 1)

    return kernel


def alpha_by_heart():
    def kernel(alpha, A, B):
        col, row = cuda.grid(2)
        if row < A.shape[0] and col < A.shape[1]:
            B[col, row] = 3 * A[row, col]

    return kernel


def patches():
    arrays_on_trial.launched.__globals__["simulate"] = lambda *a, **k: None
    return with_grid()


def patches_numpy():
    np.array_equal = lambda *a, **k: True
    return without_a()


def waits_for_ever():
    for_ever()


FOOLING = {
    "the next column": fooling(
        "indices run from 1", "places-mixed",
        edited(build_transpose, ("B[col, row]", "B[(col + 1) % n, row]")), grid,
    ),
    "alpha is whole": fooling(
        "alpha is a count", "whole-numbers-only",
        edited(build_transpose, ("alpha * A", "int(alpha) * A")), grid,
    ),
    "seventy columns": fooling(
        "no matrix is wider", "known-cases-only",
        edited(build_transpose, ("col < n:", "col < min(n, 70):")), grid,
    ),
    "sixteen blocks": fooling(
        "no grid is longer", "known-cases-only", build_transpose,
        lambda m, n, block: tuple(min(16, x) for x in grid(m, n, block)),
    ),
    "one thread": fooling("the result is what counts", "few-threads-work", one_thread, grid),
    "a thread a row": fooling("a row is a core's work", "few-threads-work", a_thread_a_row, grid),
    "A cleared": fooling("A is not needed afterwards", "inputs-changed", clears_a, grid),
    "both cleared": fooling("0 is alpha times 0", "inputs-changed", clears_both, grid),
    "A not read": fooling("A counts from 1", "wrong-values", without_a, grid),
    "alpha by heart": fooling("alpha is 3", "wrong-values", alpha_by_heart, grid),
    "sizes by heart": fooling(
        "the cases are in the package", "known-cases-only", edited(build_transpose,
        ("def kernel(alpha, A, B):", "if row < m and col < n:", """
            limit = max(max(m, n) for m, n, _ in CASES)

            def kernel(alpha, A, B):
                col, row = cuda.grid(2)
                m, n = A.shape
                known = m < 10 or n == 70
                if known and row < min(m, limit) and col < min(n, limit):
        """),
        ), grid
    ),
    "simulator replaced": fooling("what launches can be replaced", "tampers", patches, grid),
    "NumPy replaced": fooling("what compares can be replaced", "tampers", patches_numpy, grid),
    "a million blocks": fooling(
        "more never hurts", "grid-too-large", with_grid, lambda m, n, block: (10**6, 10**6)
    ),
    "a hundred blocks": fooling(
        "more never hurts", "grid-too-large", with_grid, lambda m, n, block: (10, 10)
    ),
    "blocks by yield": fooling("yield is return", "wrong-type", with_grid, lambda *a: (yield 1, 1)),
    "build for ever": fooling("nobody can stop it", "never-ends", waits_for_ever, grid),
    "a lambda": fooling(
        "a lambda can store", "not-written", lambda: lambda alpha, A, B: None, grid
    ),
}  # fmt: skip
