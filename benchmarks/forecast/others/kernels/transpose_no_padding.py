"""A transposition by tiles in shared memory without padding: 32 lanes read of one bank."""

import numpy as np
from numpy import float32

from benchmarks.forecast.others.case import Case, Launch
from gemmlab import cuda

TILE = 32
ROWS = 8  # of a tile that a block moves at a time


def transpose(source, target):
    tile = cuda.shared.array((TILE, TILE), float32)
    x, y = cuda.threadIdx.x, cuda.threadIdx.y
    row, column = cuda.blockIdx.y * TILE, cuda.blockIdx.x * TILE
    for r in range(0, TILE, ROWS):
        if row + y + r < source.shape[0] and column + x < source.shape[1]:
            tile[y + r, x] = source[row + y + r, column + x]
    cuda.syncthreads()
    for r in range(0, TILE, ROWS):
        if column + y + r < target.shape[0] and row + x < target.shape[1]:
            target[column + y + r, row + x] = tile[x, y + r]


def launch(size):
    source = np.random.default_rng(39).random((size, size + 96), float32)
    grid = -(-source.shape[1] // TILE), -(-size // TILE)
    return Launch(grid, (TILE, ROWS), (source, np.zeros(source.shape[::-1], float32)))


def check(source, target):
    yield target, source.T


CASE = Case(transpose, launch, check, size=8000, small=45)
