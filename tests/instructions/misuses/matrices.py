"""Matrices and whole warps."""

import numpy as np

from gemmlab import cuda
from gemmlab.instructions import (
    ldmatrix_x1,
    ldmatrix_x2,
    ldmatrix_x4,
    wmma_load_a_row,
    wmma_load_c_f32,
)
from tests.instructions.misuses.table import F16, F32, hazard, refused


@refused("takes an array in shared memory; a is in global memory", F16, compiled=None)
def matrices_of_global_memory(a):
    ldmatrix_x4(a, cuda.threadIdx.x, 0)  # fault


@hazard("misaligned", r"thread \(1\) accesses byte 18 of s; ldmatrix_x4 needs", F16, thread=1)
def rows_of_nine(a):
    s = cuda.shared.array((32, 9), np.float16, alignment=16)
    t = cuda.threadIdx.x
    for i in range(9):
        s[t, i] = i
    cuda.syncwarp()
    ldmatrix_x4(s, t, 0)  # fault


@hazard("divergent-barrier", r"ldmatrix_x2 needs all 32 lanes.*thread \(16\) does not get", F16)
def half_a_warp_loads(a):
    s = cuda.shared.array((32, 8), np.float16, alignment=16)
    t = cuda.threadIdx.x
    for i in range(8):
        s[t, i] = i
    cuda.syncwarp()
    if t < 16:
        ldmatrix_x2(s, t, 0)  # fault


@hazard("divergent-barrier", "the last one of a block of 16 threads has 16", F16, threads=16)
def a_block_of_half_a_warp(a):
    s = cuda.shared.array((16, 8), np.float16, alignment=16)
    t = cuda.threadIdx.x
    for i in range(8):
        s[t, i] = i
    cuda.syncwarp()
    ldmatrix_x1(s, t % 8, 0)  # fault


@hazard("divergent-barrier", r"thread \(40\) does not get here", F16, thread=32, threads=64)
def some_lanes_have_returned(a):
    if cuda.threadIdx.x >= 40:
        return
    wmma_load_a_row(a, 0, 0)  # fault


@hazard("divergent-barrier", r"thread \(16\) names another tile", F16, thread=16)
def two_tiles_for_a_warp(a):
    wmma_load_a_row(a, 0, cuda.threadIdx.x // 16 * 16)  # fault


@refused("takes a matrix of float16, not a, float32 of 2 dimensions", F32,
         compiled="takes a matrix of float16, not array.float32, 2d")  # fmt: skip
def a_tile_of_another_type(a):
    wmma_load_a_row(a, 0, 0)  # fault


@refused("takes a matrix of float16, not a, float16 of 1 dimensions", F16.ravel(),
         compiled="takes a matrix of float16, not array.float16, 1d")  # fmt: skip
def a_tile_of_a_vector(a):
    wmma_load_a_row(a, 0)  # fault


@refused("takes an array in global or shared memory; this is in local", F16, compiled=None)
def a_tile_of_local_memory(a):
    s = cuda.local.array((16, 16), np.float16)
    wmma_load_a_row(s, 0, 0)  # fault


@hazard(
    "out-of-bounds",
    r"dimension 0 of a, which has 32: wmma_load_a_row of a\[32, 0\]",
    F16,
    thread=28,
)
def a_tile_beyond_the_matrix(a):
    wmma_load_a_row(a, 17, 0)  # fault


@hazard("misaligned", "tiles at multiples of 16 B; this one begins at byte 2 of a", F16)
def a_tile_at_an_odd_column(a):
    wmma_load_a_row(a, 0, 1)  # fault


@hazard(
    "misaligned", "rows as far apart; those of a are 40 B apart", np.zeros((16, 20), np.float16)
)
def a_tile_of_odd_rows(a):
    wmma_load_a_row(a, 0, 0)  # fault


@hazard("misaligned", "s begins at a multiple of 4 B: declare it with alignment=16", F32)
def a_tile_that_is_not_aligned(a):
    s = cuda.shared.array((16, 16), np.float32)
    for i in range(8):
        s[cuda.threadIdx.x // 2, cuda.threadIdx.x % 2 * 8 + i] = 0
    cuda.syncthreads()
    wmma_load_c_f32(s, 0, 0)  # fault
