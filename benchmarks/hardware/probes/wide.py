"""Single accesses of a warp, of 4 to 16 bytes a lane: their kernels, and the row of each lane."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from gemmlab import cuda
from gemmlab.instructions import (
    cp_async_4,
    cp_async_16,
    cp_async_commit,
    cp_async_wait,
    ldmatrix_x1,
    ldmatrix_x2,
    ldmatrix_x4,
    load_v2,
    load_v4,
    store_v2,
    store_v4,
)

ROWS = 512


def shared_load_4(x, at, out):
    """One 16-byte load of shared memory; x is not read."""
    s = cuda.shared.array((512, 4), np.float32, alignment=16)
    lane = cuda.threadIdx.x
    row = at[lane]
    s[row % 512, 0] = 1
    cuda.syncwarp()
    if row >= 0:
        store_v4(out, lane, 0, load_v4(s, row, 0))


def shared_load_2(x, at, out):
    """One 8-byte load of shared memory."""
    s = cuda.shared.array((1024, 2), np.float32, alignment=16)
    lane = cuda.threadIdx.x
    row = at[lane]
    s[row % 1024, 0] = 1
    cuda.syncwarp()
    if row >= 0:
        store_v2(out, lane, 0, load_v2(s, row, 0))


def shared_store_4(x, at, out):
    """One 16-byte store to shared memory, and a 4-byte load to use it."""
    s = cuda.shared.array((512, 4), np.float32, alignment=16)
    lane = cuda.threadIdx.x
    row = at[lane]
    if row >= 0:
        store_v4(s, row, 0, load_v4(x, lane, 0))
    cuda.syncwarp()
    out[lane, 0] = s[lane, 0]


def global_load_4(x, at, out):
    """One 16-byte load of global memory, beside that of `at`."""
    lane = cuda.threadIdx.x
    row = at[lane]
    if row >= 0:
        store_v4(out, lane, 0, load_v4(x, row, 0))


def copy_16(x, at, out):
    """One 16-byte copy to consecutive rows of shared memory."""
    s = cuda.shared.array((32, 4), np.float32, alignment=16)
    lane = cuda.threadIdx.x
    row = at[lane]
    if row >= 0:
        cp_async_16(s, lane, 0, x, row, 0)
    cp_async_commit()
    cp_async_wait(0)
    cuda.syncwarp()
    out[lane, 0] = s[31 - lane, 0]


def scatter_16(x, at, out):
    """One 16-byte copy of consecutive rows to scattered ones of shared memory."""
    s = cuda.shared.array((512, 4), np.float32, alignment=16)
    lane = cuda.threadIdx.x
    row = at[lane]
    if row >= 0:
        cp_async_16(s, row, 0, x, lane, 0)
    cp_async_commit()
    cp_async_wait(0)
    cuda.syncwarp()
    out[lane, 0] = s[lane, 0]


def copy_4(x, at, out):
    """One 4-byte copy."""
    s = cuda.shared.array((32, 4), np.float32, alignment=16)
    lane = cuda.threadIdx.x
    row = at[lane]
    if row >= 0:
        cp_async_4(s, lane, 0, x, row, 0)
    cp_async_commit()
    cp_async_wait(0)
    cuda.syncwarp()
    out[lane, 0] = s[31 - lane, 0]


def matrix_load(instruction: Callable, count: int) -> Callable:
    """A kernel with one `ldmatrix`."""

    def kernel(x, at, out):
        s = cuda.shared.array((512, 4), np.float32, alignment=16)
        lane = cuda.threadIdx.x
        row = at[lane]
        s[row, 0] = 1
        cuda.syncwarp()
        words = instruction(s, row, 0)
        for i in range(count):
            out[lane, i] = words[i]

    return kernel


def one_matrix(x, at, out):
    """A kernel with one `ldmatrix` of one matrix."""
    s = cuda.shared.array((512, 4), np.float32, alignment=16)
    lane = cuda.threadIdx.x
    row = at[lane]
    s[row, 0] = 1
    cuda.syncwarp()
    out[lane, 0] = ldmatrix_x1(s, row, 0)


KERNELS = {
    "shared_load_4": shared_load_4,
    "shared_load_2": shared_load_2,
    "shared_store_4": shared_store_4,
    "global_load_4": global_load_4,
    "copy_16": copy_16,
    "scatter_16": scatter_16,
    "copy_4": copy_4,
    "ldmatrix_x4": matrix_load(ldmatrix_x4, 4),
    "ldmatrix_x2": matrix_load(ldmatrix_x2, 2),
    "ldmatrix_x1": one_matrix,
}


class Case(NamedTuple):
    """A kernel and the row that each lane accesses, -1 for none."""

    kernel: str
    pattern: str
    rows: np.ndarray


def patterns() -> dict[str, np.ndarray]:
    """Rows of 16 bytes by lane."""
    lane = np.arange(32)
    found = {
        "contiguous": lane,
        "all one": lane * 0,
        "halves": lane // 16,
        "4 rows by lane // 8": lane // 8,
        "8 rows by lane // 4": lane // 4,
        "4 rows by lane % 4": lane % 4,
        "8 rows by lane % 8": lane % 8,
        "reversed": 31 - lane,
        "8×4 tiles": lane // 8 * 2 + lane % 2,  # what the lanes of a warp tile share
        "4×8 tiles": lane // 2 % 4,
        "8 rows, 8 apart": lane % 8 * 8,
        "quarters apart": lane // 8 * 8 + lane % 8 // 2,
    }
    found |= {f"stride {s}": lane * s for s in (2, 3, 4, 8)}
    found |= {f"first {n}": np.where(lane < n, lane, -1) for n in (4, 16)}
    found |= {f"every {n}th": np.where(lane % n == 0, lane, -1) for n in (2, 4)}
    rng = np.random.default_rng(0)
    found |= {f"random, {rows} rows": rng.integers(0, rows, 32) for rows in (4, 16, 64, 512)}
    return found


def cases() -> list[Case]:
    """Every pattern with every kernel; all lanes of `ldmatrix` take part, stores do not collide.

    Kernels take turns, so that the first launches have some of each.
    """
    found = []
    for name, rows in patterns().items():
        for kernel in KERNELS:
            distinct = len(set(rows[rows >= 0])) == (rows >= 0).sum()
            if kernel.startswith("ldmatrix") and rows.min() < 0:
                continue
            if kernel in ("shared_store_4", "scatter_16") and not distinct:
                continue
            found.append(Case(kernel, name, rows.astype(np.int32)))
    return found


def arguments(case: Case) -> list[np.ndarray]:
    """x, at and out; `ldmatrix` gives words."""
    kind = np.uint32 if case.kernel.startswith("ldmatrix") else np.float32
    return [np.ones((ROWS, 4), np.float32), case.rows, np.zeros((32, 4), kind)]
