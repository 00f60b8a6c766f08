"""Kernels and launches whose counters are compared: a profiler's on a GPU, and the simulator's.

Each is an ordinary Numba-CUDA function. `CASES` is the one list of them; `checks/counters.py`
launches and simulates all of it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy import float32, float64

from gemmlab import cuda, kernels
from gemmlab.problem import Gemm
from gemmlab.tiling import Tiling

THREADS = 128  # of a block, in the one-dimensional kernels
T = 32  # side of the transpositions' tiles


@dataclass(frozen=True)
class Case:
    """One launch.

    name : unique, a Python identifier: the compiled kernel bears it
    group : what it varies
    arguments : builds fresh host arrays and numbers
    differs : counters in which the hardware may differ, each with its relation to what the
        simulator counts ("less" or "more") and the reason
    """

    name: str
    group: str
    kernel: Callable
    grid: tuple[int, ...]
    block: tuple[int, ...]
    arguments: Callable[[], tuple[Any, ...]]
    differs: dict[str, tuple[str, str]] = field(default_factory=dict)


# Global memory: one load and one store for each thread.


def copy_strided(x, y, stride):
    i = cuda.grid(1)
    if i < y.size:
        y[i] = x[i * stride]


def scatter_strided(x, y, stride):
    i = cuda.grid(1)
    if i < x.size:
        y[i * stride] = x[i]


def copy_offset(x, y, offset):
    i = cuda.grid(1)
    if i < y.size:
        y[i] = x[i + offset]


def copy_reversed(x, y):
    i = cuda.grid(1)
    if i < y.size:
        y[i] = x[y.size - 1 - i]


def copy_permuted(x, y, factor):
    i = cuda.grid(1)
    if i < y.size:
        y[i] = x[i // 32 * 32 + i * factor % 32]


def broadcast(x, y):
    i = cuda.grid(1)
    if i < y.size:
        y[i] = x[i // 32]


def every_other_lane(x, y):
    i = cuda.grid(1)
    if i < y.size and i % 2 == 0:
        y[i] = x[i]


def some_warps(x, y):
    i = cuda.grid(1)
    if i < y.size and i // 32 % 2 == 0:
        y[i] = x[i]


def gather(x, at, y):
    i = cuda.grid(1)
    if i < y.size:
        y[i] = x[at[i]]


def rows_and_columns(a, out):
    x, y = cuda.grid(2)
    if x < a.shape[0] and y < a.shape[1]:
        out[y, x] = a[x, y]


# Transposition: without shared memory, and through it.


def transpose_naive(a, out):
    x, y = cuda.grid(2)
    if y < a.shape[0] and x < a.shape[1]:
        out[x, y] = a[y, x]


def build_transpose(pad: int) -> Callable:
    """Through a tile whose rows have `pad` elements more than the tile is wide."""
    width = T + pad

    def transpose(a, out):
        tile = cuda.shared.array((T, width), float32)
        tx = cuda.threadIdx.x
        ty = cuda.threadIdx.y
        x = cuda.blockIdx.x * T + tx
        y = cuda.blockIdx.y * T + ty
        if y < a.shape[0] and x < a.shape[1]:
            tile[ty, tx] = a[y, x]
        cuda.syncthreads()
        x = cuda.blockIdx.y * T + tx
        y = cuda.blockIdx.x * T + ty
        if y < out.shape[0] and x < out.shape[1]:
            out[y, x] = tile[tx, ty]

    return transpose


def transpose_swizzled(a, out):
    tile = cuda.shared.array((T, T), float32)
    tx = cuda.threadIdx.x
    ty = cuda.threadIdx.y
    x = cuda.blockIdx.x * T + tx
    y = cuda.blockIdx.y * T + ty
    if y < a.shape[0] and x < a.shape[1]:
        tile[ty, tx ^ ty] = a[y, x]
    cuda.syncthreads()
    x = cuda.blockIdx.y * T + tx
    y = cuda.blockIdx.x * T + ty
    if y < out.shape[0] and x < out.shape[1]:
        out[y, x] = tile[tx, ty ^ tx]


# Shared memory: one store and one load for each thread, `stride` elements apart.


def build_banks(dtype: Any, stride: int) -> Callable:
    """Stores a row, loads every `stride`-th element of a tile of 32 · `stride` elements."""
    size = 32 * stride

    def banks(x, y):
        tile = cuda.shared.array(size, dtype)
        t = cuda.threadIdx.x
        start = cuda.blockIdx.x * size
        for p in range(t, size, 32):
            tile[p] = x[start + p]
        cuda.syncthreads()
        y[cuda.blockIdx.x * 32 + t] = tile[t * stride]

    return banks


def build_bank_stores(stride: int) -> Callable:
    """Stores every `stride`-th element, loads them as they were stored, one lane further."""
    size = 32 * stride

    def bank_stores(x, y):
        tile = cuda.shared.array(size, float32)
        t = cuda.threadIdx.x
        i = cuda.blockIdx.x * 32 + t
        tile[t * stride] = x[i]
        cuda.syncthreads()
        y[i] = tile[(t + 1) % 32 * stride]

    return bank_stores


def shared_broadcast(x, y):
    tile = cuda.shared.array(THREADS, float32)
    t = cuda.threadIdx.x
    i = cuda.grid(1)
    tile[t] = x[i]
    cuda.syncthreads()
    y[i] = tile[t // 8]


def reduction(x, out):
    part = cuda.shared.array(THREADS, float32)
    t = cuda.threadIdx.x
    i = cuda.grid(1)
    part[t] = x[i] if i < x.size else float32(0)
    cuda.syncthreads()
    half = THREADS // 2
    while half > 0:
        if t < half:
            part[t] += part[t + half]
        cuda.syncthreads()
        half //= 2
    if t == 0:
        out[cuda.blockIdx.x] = part[0]


# Cases


def _one(
    name, group, kernel, size, *rest, dtype=np.float32, span=None, block=THREADS, differs=None
):
    """A one-dimensional case: `size` threads' worth of y, and an x of `span` elements."""

    def arguments():
        x = np.arange(span or size).astype(dtype)
        return (x, np.zeros(size, dtype), *rest)

    return Case(name, group, kernel, (-(-size // block),), (block,), arguments, differs or {})


def _transpose(name, kernel, rows, cols, differs=None):
    def arguments():
        a = np.arange(rows * cols, dtype=np.float32).reshape(rows, cols)
        return a, np.zeros((cols, rows), np.float32)

    grid = (-(-cols // T), -(-rows // T))
    return Case(name, "transpose", kernel, grid, (T, T), arguments, differs or {})


def _banks(stride, dtype, name):
    blocks = 3

    def arguments():
        return np.arange(blocks * 32 * stride).astype(dtype), np.zeros(blocks * 32, dtype)

    kernel = build_banks(dtype, stride)
    return Case(f"banks_{name}_{stride}", "banks", kernel, (blocks,), (32,), arguments)


def _bank_stores(stride):
    blocks = 3

    def arguments():
        return np.arange(blocks * 32, dtype=np.float32), np.zeros(blocks * 32, np.float32)

    kernel = build_bank_stores(stride)
    return Case(f"bank_stores_{stride}", "banks", kernel, (blocks,), (32,), arguments)


def _rung(kernel, tiling, problem, tag, differs=None):
    def arguments():
        a, b, c = problem.operands()
        return np.float32(problem.alpha), a, b, np.float32(problem.beta), c.copy()

    grid, block = kernel.configure(problem, tiling)
    name = f"{kernel.name}_{tag}"
    return Case(name, "rungs", kernel.build(tiling), grid, block, arguments, differs or {})


def _gather():
    def arguments():
        at = np.random.default_rng(0).integers(0, 5000, 1000).astype(np.int32)
        return np.arange(5000, dtype=np.float32), at, np.zeros(1000, np.float32)

    return Case("gather", "indirect", gather, (8,), (THREADS,), arguments)


def _columns():
    def arguments():
        a = np.arange(100 * 70, dtype=np.float32).reshape(100, 70)
        return a, np.zeros((70, 100), np.float32)

    return Case("rows_and_columns", "transpose", rows_and_columns, (13, 9), (8, 8), arguments)


def _scatter(stride):
    def arguments():
        return np.arange(1000, dtype=np.float32), np.zeros(1000 * stride, np.float32), stride

    return Case(f"scatter_{stride}", "strided", scatter_strided, (8,), (THREADS,), arguments)


# The loop over p has a constant length: the compiler unrolls it and merges four neighbouring
# loads As[y, p], As[y, p + 1], … into one of 16 bytes a lane. The simulator counts the source's.
MERGED = "the compiler merges four neighbouring loads of As into one of 16 bytes a lane"
FEWER = dict.fromkeys(("shared_load_requests", "shared_load_wavefronts"), ("less", MERGED))
EVEN, RAGGED = Gemm(64, 64, 64), Gemm(53, 37, 45, alpha=2, beta=0.5)
SQUARE = Tiling(block=(16, 16, 1))

CASES = [
    *(_one(f"strided_{s}", "strided", copy_strided, 1024, s, span=1024 * s)
      for s in (1, 2, 4, 8, 32, 33)),
    *(_scatter(s) for s in (2, 8, 33)),
    *(_one(f"offset_{o}", "offset", copy_offset, 1000, o, span=1064) for o in (1, 7, 8, 32)),
    _one("ragged", "ragged", copy_offset, 1001, 0),
    _one("ragged_block", "ragged", copy_offset, 1000, 0, block=100),
    _one("reversed_lanes", "permuted", copy_reversed, 1024),
    _one("permuted_lanes", "permuted", copy_permuted, 1024, 7),
    _one("broadcast", "permuted", broadcast, 1024),
    _one("every_other_lane", "masked", every_other_lane, 1024),
    _one("some_warps", "masked", some_warps, 1024),
    _one("lanes_of_1_byte", "width", copy_offset, 1000, 3, span=1064, dtype=np.uint8),
    _one("lanes_of_2_bytes", "width", copy_offset, 1000, 3, span=1064, dtype=np.int16),
    _one("lanes_of_8_bytes", "width", copy_offset, 1000, 3, span=1064, dtype=np.float64),
    _one("lanes_of_8_bytes_strided", "width", copy_strided, 1000, 3, span=3000, dtype=np.int64),
    _gather(),
    _transpose("transpose_naive", transpose_naive, 96, 64),
    _transpose("transpose_naive_ragged", transpose_naive, 77, 50),
    _transpose("transpose_shared", build_transpose(0), 96, 64),
    _transpose("transpose_shared_ragged", build_transpose(0), 77, 50),
    _transpose("transpose_padded", build_transpose(1), 96, 64),
    _transpose("transpose_padded_ragged", build_transpose(1), 77, 50),
    _transpose("transpose_swizzled", transpose_swizzled, 96, 64),
    _transpose("transpose_swizzled_ragged", transpose_swizzled, 77, 50),
    _columns(),
    *(_banks(s, float32, "float32") for s in (1, 2, 4, 8, 16, 32, 33)),
    *(_banks(s, float64, "float64") for s in (1, 2, 3, 16)),
    *(_banks(s, np.int16, "int16") for s in (1, 2, 3, 64)),
    *(_bank_stores(s) for s in (2, 16, 33)),
    _one("shared_broadcast", "banks", shared_broadcast, 1024),
    Case("reduction", "reduction", reduction, (8,), (THREADS,),
         lambda: (np.arange(1000, dtype=np.float32), np.zeros(8, np.float32))),
    *(_rung(k, SQUARE, p, tag)
      for k in (kernels.naive, kernels.coalesced)
      for p, tag in ((EVEN, "even"), (RAGGED, "ragged"))),
    *(_rung(kernels.tiled, Tiling.square(t), p, f"{t}_{tag}", FEWER)
      for t in (8, 16, 32)
      for p, tag in ((EVEN, "even"), (RAGGED, "ragged"))),
]  # fmt: skip
