"""Groups of four neighbours in a row: read, updated and copied, at the edges of a matrix too.

A matrix is aligned if its rows begin at multiples of 16 bytes. A group then lies inside of it, or
outside, as a whole, and moves in one access of 128 bits. Else its elements are looked at one by
one. Each function here makes device functions for the kernels that ask for them.
"""

from __future__ import annotations

from collections.abc import Callable

from numpy import float32

from gemmlab import cuda
from gemmlab.instructions import (
    cp_async_4,
    cp_async_16,
    cp_async_commit,
    cp_async_wait,
    load_v4,
    store_v4,
)

ZEROS = (float32(0), float32(0), float32(0), float32(0))


def on_device(function: Callable) -> Callable:
    """A device function that becomes a part of the kernel that calls it."""
    return cuda.jit(device=True, forceinline=True)(function)


def reading(aligned: bool) -> Callable:
    """(X, i, j) -> X[i, j] and its three neighbours; zeros outside of X."""

    @on_device
    def read_one(X, i, j):
        return X[i, j] if i < X.shape[0] and j < X.shape[1] else float32(0)

    @on_device
    def read_four(X, i, j):
        if aligned:
            return load_v4(X, i, j) if i < X.shape[0] and j < X.shape[1] else ZEROS
        return (
            read_one(X, i, j), read_one(X, i, j + 1), read_one(X, i, j + 2), read_one(X, i, j + 3)
        )  # fmt: skip

    return read_four


def updating(aligned: bool, tm: int, tn: int) -> Callable:
    """(C, i, j, down, across, alpha, acc, beta): C ← α·acc + β·C for a thread's tm×tn results.

    They stand in groups of four rows, `down` apart, and four columns, `across` apart, from C[i, j]
    on. Nothing is written outside of C, and C is not read where β = 0.
    """
    read_four = reading(aligned)

    @on_device
    def update_four(C, i, j, alpha, v, beta):
        c = ZEROS if beta == 0 else read_four(C, i, j)
        new = (
            alpha * v[0] + beta * c[0], alpha * v[1] + beta * c[1],
            alpha * v[2] + beta * c[2], alpha * v[3] + beta * c[3],
        )  # fmt: skip
        if aligned:
            if i < C.shape[0] and j < C.shape[1]:
                store_v4(C, i, j, new)
        else:
            for e in range(4):
                if i < C.shape[0] and j + e < C.shape[1]:
                    C[i, j + e] = new[e]

    @on_device
    def update_tile(C, i, j, down, across, alpha, acc, beta):
        for r in range(tm):
            for c in range(0, tn, 4):
                v = acc[0, c], acc[0, c + 1], acc[0, c + 2], acc[0, c + 3]
                update_four(C, i + r // 4 * down + r % 4, j + c // 4 * across, alpha, v, beta)
            # A register has no index that could vary: each row in turn moves up to be row 0.
            for y in range(tm - 1):
                for x in range(tn):
                    acc[y, x] = acc[y + 1, x]

    return update_tile


def copying(aligned: bool, asynchronous: bool, pending: int) -> tuple[Callable, ...]:
    """Device functions (copy_one, copy_four, commit, wait) that fill a tile of shared memory.

    The first two (tile, q, x, X, i, j) put X[i, j], or the group that begins there, at tile[q, x];
    zeros outside of X. If `asynchronous`, which needs compute capability 8.0, they only begin to:
    `commit()` closes a batch, and `wait()` lets all but the last `pending` batches arrive.
    """
    read_four = reading(aligned)

    @on_device
    def copy_one(tile, q, x, X, i, j):
        inside = i < X.shape[0] and j < X.shape[1]
        if asynchronous:
            cp_async_4(tile, q, x, X, i, j, inside)
        else:
            tile[q, x] = X[i, j] if inside else float32(0)

    @on_device
    def copy_four(tile, q, x, X, i, j):
        if not asynchronous:
            store_v4(tile, q, x, read_four(X, i, j))
        elif aligned:
            cp_async_16(tile, q, x, X, i, j, i < X.shape[0] and j < X.shape[1])
        else:
            for e in range(4):
                copy_one(tile, q, x + e, X, i, j + e)

    @on_device
    def commit():
        if asynchronous:
            cp_async_commit()

    @on_device
    def wait():
        if asynchronous:
            cp_async_wait(pending)

    return copy_one, copy_four, commit, wait
