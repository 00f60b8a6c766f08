"""Kernels of Y = X·M for a batch, a warp each: for any rule of M, and any place where it is made.

X : (batch, m, m / 2) uint32, the m×m matrices of float16 in pairs; Y : (batch, m, m) float32
M : m×m float16 (m = 16 or 32), made anew by each warp

A fragment of M stands in registers b[s, t, w]: the 16 rows from 16·s on, the 8 columns from 8·t on,
word w of two.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy import float16, float32, int32, uint32

from gemmlab.instructions import (
    layout,
    ldmatrix_x4_trans,
    mma_m16n8k16_f32_f16,
    pack_f16x2,
    store_v2,
    store_v8,
)
from gemmlab.kernels.kernel import on_device
from gemmlab.simt import cuda
from gemmlab.tiling import WARP

SIZES = (16, 32)  # of M
WHERE = ("registers", "shared", "shared, one by one")  # where M is made
WARPS = 4  # of a block, each with its own matrix
A, B, C = (layout("m16n8k16", operand) for operand in "ABC")


def launch(batch: int) -> tuple[int, int]:
    """Grid and block: a warp for each matrix of the batch."""
    return -(-batch // WARPS), WARPS * WARP


def matrices(rng: np.random.Generator, batch: int, m: int) -> tuple[np.ndarray, np.ndarray]:
    """Random X (batch, m, m) as float16, and the same in pairs as kernels take it."""
    x = rng.standard_normal((batch, m, m)).astype(float16)
    return x, x.view(uint32)


def multiplying(m: int) -> Callable:
    """The device function (X, one, b, Y, lane): Y[one] = X[one]·M, with M's fragments in b."""
    steps, across = m // 16, m // 8
    where_a, where_c = A.element, C.element

    @on_device
    def multiply(X, one, b, Y, lane):
        for high in range(steps):
            acc = cuda.local.array((across, 4), float32)
            for t in range(across):
                for x in range(4):
                    acc[t, x] = float32(0)
            for s in range(steps):
                a = cuda.local.array(4, uint32)
                for w in range(4):
                    i, j = where_a(lane, 2 * w)
                    a[w] = X[one, 16 * high + i, (16 * s + j) // 2]
                for t in range(across):
                    acc[t, 0], acc[t, 1], acc[t, 2], acc[t, 3] = mma_m16n8k16_f32_f16(
                        (a[0], a[1], a[2], a[3]),
                        (b[s, t, 0], b[s, t, 1]),
                        (acc[t, 0], acc[t, 1], acc[t, 2], acc[t, 3]),
                    )
            for t in range(across):
                for x in range(0, 4, 2):
                    i, j = where_c(lane, x)
                    store_v2(Y, one, 16 * high + i, 8 * t + j, (acc[t, x], acc[t, x + 1]))

    return multiply


def from_rule(m: int, rule: Callable) -> Callable:
    """The device function (data, one, p, q, b, lane) that makes M's fragments in registers.

    rule : a device function (data, one, p, q, i, j) -> element (i, j) of M, a float32
    The place of an element in its tile is computed once, for all tiles.
    """
    steps, across = m // 16, m // 8
    where_b = B.element

    @on_device
    def make(data, one, p, q, b, lane):
        for w in range(2):
            i, j = where_b(lane, 2 * w)
            for s in range(steps):
                for t in range(across):
                    b[s, t, w] = pack_f16x2(
                        float16(rule(data, one, p, q, i + 16 * s, j + 8 * t)),
                        float16(rule(data, one, p, q, i + 16 * s + 1, j + 8 * t)),
                    )

    return make


def from_shared(m: int) -> Callable:
    """The device function (tiles, warp, b, lane) that loads M's fragments from tiles[warp]."""
    steps, across = m // 16, m // 8

    @on_device
    def fetch(tiles, warp, b, lane):
        # Lanes name rows: 16 of them, and those 8 columns further on.
        for s in range(steps):
            for t in range(0, across, 2):
                row, column = 16 * s + lane % 16, 8 * t + 8 * (lane // 16)
                b[s, t, 0], b[s, t, 1], b[s, t + 1, 0], b[s, t + 1, 1] = ldmatrix_x4_trans(
                    tiles, int32(warp), row, column
                )

    return fetch


def writing(m: int, rule: Callable, where: str) -> Callable:
    """The device function (data, one, p, q, tiles, warp, lane): M to tiles[warp], by the rule.

    A lane stores eight neighbours of a row in one access of 128 bits, or single elements.
    """
    together = 1 if where == WHERE[2] else 8

    @on_device
    def of(data, one, p, q, i, j):
        return float16(rule(data, one, p, q, i, j))

    @on_device
    def write(data, one, p, q, tiles, warp, lane):
        for e in range(lane, m * m // together, WARP):
            if together == 8:
                # Neighbouring lanes write rows below each other: those fall on all banks.
                i, j = e % m, 8 * (e // m)
                eight = (
                    of(data, one, p, q, i, j), of(data, one, p, q, i, j + 1),
                    of(data, one, p, q, i, j + 2), of(data, one, p, q, i, j + 3),
                    of(data, one, p, q, i, j + 4), of(data, one, p, q, i, j + 5),
                    of(data, one, p, q, i, j + 6), of(data, one, p, q, i, j + 7),
                )  # fmt: skip
                store_v8(tiles, warp, i, j, eight)
            else:
                i, j = e // m, e % m
                tiles[warp, i, j] = of(data, one, p, q, i, j)

    return write


def built(m: int, where: str, make: Callable, write: Callable) -> Callable:
    """The kernel (X, data, p, q, Y) that makes M in registers by `make`, or in memory by `write`.

    Raises ValueError for an m that is not in SIZES, and for a `where` that is not in WHERE.
    """
    for name, value, known in (("m", m, SIZES), ("where", where, WHERE)):
        if value not in known:
            raise ValueError(f"{name}={value!r}; use one of {', '.join(map(repr, known))}")
    return _in_registers(m, make) if where == "registers" else _through_shared(m, write)


def _in_registers(m: int, make: Callable) -> Callable:
    steps, across = m // 16, m // 8
    multiply = multiplying(m)

    def registers(X, data, p, q, Y):
        lane = int32(cuda.threadIdx.x % WARP)
        one = cuda.blockIdx.x * WARPS + cuda.threadIdx.x // WARP
        if one < X.shape[0]:
            b = cuda.local.array((steps, across, 2), uint32)
            make(data, one, p, q, b, lane)
            multiply(X, one, b, Y, lane)

    return registers


def _through_shared(m: int, write: Callable) -> Callable:
    steps, across = m // 16, m // 8
    multiply, fetch = multiplying(m), from_shared(m)
    # Eight more in a row: the eight rows that a matrix load reads fall on all banks.
    row = m + 8

    def shared(X, data, p, q, Y):
        tiles = cuda.shared.array((WARPS, m, row), float16, alignment=16)
        warp, lane = cuda.threadIdx.x // WARP, int32(cuda.threadIdx.x % WARP)
        one = cuda.blockIdx.x * WARPS + warp
        if one < X.shape[0]:
            write(data, one, p, q, tiles, warp, lane)
            cuda.syncwarp()
            b = cuda.local.array((steps, across, 2), uint32)
            fetch(tiles, warp, b, lane)
            multiply(X, one, b, Y, lane)

    return shared
