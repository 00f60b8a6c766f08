"""Answers to exercise 03.1."""

from gemmlab import cuda
from gemmlab.exercises.thread_map import build_transpose, grid
from tests.support.exercise_answers.edits import Wrong, edited


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


def grid_along_columns(m, n, block):
    return [(m + block[0] - 1) // block[0], (n + block[1] - 1) // block[1]]


def grid_stride():
    def kernel(alpha, A, B):
        col, row = cuda.grid(2)
        across, down = cuda.gridsize(2)
        for i in range(row, A.shape[0], down):
            for j in range(col, A.shape[1], across):
                B[j, i] = alpha * A[i, j]

    return kernel


def one_block(m, n, block):
    return 1, 1


RIGHT = {
    "cuda.grid, and leaving early": (with_grid, grid),
    "x along the rows of B": (along_columns, grid_along_columns),
    "one block that goes round": (grid_stride, one_block),
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
    "guard of the columns only": kernel_wrong(
        "the rows fit", "outside", (GUARD, "col < n")
    ),
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
        "division rounds as needed", "grid-rounded-down",
        (BLOCKS, "n // block[0], m // block[1]"),
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
