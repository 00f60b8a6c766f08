"""An image filtered by 5×5 weights, a thread a point, all read from global memory."""

import numpy as np
from numpy import float32

from benchmarks.forecast.others.case import Case, Launch, compared
from gemmlab import cuda

BLOCK = (32, 8)
WIDTH, REACH = 5, 2


def convolution(image, weights, out):
    j, i = cuda.grid(2)
    rows, columns = image.shape
    if REACH <= i < rows - REACH and REACH <= j < columns - REACH:
        total = float32(0)
        for di in range(WIDTH):
            for dj in range(WIDTH):
                total += weights[di, dj] * image[i + di - REACH, j + dj - REACH]
        out[i, j] = total


def launch(size):
    rng = np.random.default_rng(21)
    image, weights = rng.random((size, size), float32), rng.random((WIDTH, WIDTH), float32)
    grid = -(-size // BLOCK[0]), -(-size // BLOCK[1])
    return Launch(grid, BLOCK, (image, weights, np.zeros_like(image)))


def check(image, weights, out):
    inside = image.shape[0] - 2 * REACH
    expected = np.zeros_like(image)
    for di in range(WIDTH):
        for dj in range(WIDTH):
            of = image[di : di + inside, dj : dj + inside]
            expected[REACH:-REACH, REACH:-REACH] += weights[di, dj] * of
    yield compared(out, expected, float32(WIDTH * WIDTH), WIDTH * WIDTH)


CASE = Case(convolution, launch, check, size=4096, small=36)
