"""Kernels without a fault, and the launches that show it; each wrong kernel was made from one."""

from typing import Any, NamedTuple

import numpy as np
from numpy import float32, int32, uint32

from benchmarks import fragment_uses
from benchmarks.hardware.probes import products
from benchmarks.hardware.store import recorded
from gemmlab import cuda, kernels
from gemmlab.kernels import fragments
from gemmlab.kernels.fragments import matrices
from gemmlab.problem import Gemm
from gemmlab.tiling import Tiling

TILE, PADDED = 8, 8 + 1

# A ragged one first: with C poisoned, then with α and β; and one that fits its tiles.
PROBLEMS = (
    Gemm(20, 13, 11),
    Gemm(20, 13, 11, alpha=2, beta=-0.5),
    Gemm(16, 16, 16),
    Gemm(9, 8, 400),
)
# Shorter than a tile along k, which shows what is read beyond it; not run on a GPU.
SHORT = Gemm(20, 13, 5)
LADDER = {f"ladder_{rung.name}": rung for rung in kernels.LADDER}


class Trial(NamedTuple):
    """A launch: its grid, block and arguments, of which the last is the result."""

    grid: Any
    block: Any
    arguments: tuple
    is_right: Any  # whether the result is, called after the launch
    shared_bytes: int = 0
    kernel: Any = None  # where each problem has its own


def transpose(a, out):
    tile = cuda.shared.array((TILE, PADDED), float32)
    tx = cuda.threadIdx.x
    ty = cuda.threadIdx.y
    x = cuda.blockIdx.x * TILE + tx
    y = cuda.blockIdx.y * TILE + ty
    if y < a.shape[0] and x < a.shape[1]:
        tile[ty, tx] = a[y, x]
    cuda.syncthreads()
    x = cuda.blockIdx.y * TILE + tx
    y = cuda.blockIdx.x * TILE + ty
    if y < out.shape[0] and x < out.shape[1]:
        out[y, x] = tile[tx, ty]


def reduction(x, out):
    part = cuda.shared.array(64, float32)
    t = cuda.threadIdx.x
    i = cuda.grid(1)
    part[t] = x[i] if i < x.size else float32(0)
    cuda.syncthreads()
    half = 32
    while half > 0:
        if t < half:
            part[t] += part[t + half]
        cuda.syncthreads()
        half //= 2
    if t == 0:
        out[cuda.blockIdx.x] = part[0]


def stencil(x, out):
    tile = cuda.shared.array(34, float32)
    t = cuda.threadIdx.x
    i = cuda.grid(1)
    tile[t + 1] = x[i] if i < x.size else float32(0)
    if t == 0:
        tile[0] = x[i - 1] if 0 < i <= x.size else float32(0)
    if t == 31:
        tile[33] = x[i + 1] if i + 1 < x.size else float32(0)
    cuda.syncthreads()
    if i < x.size:
        out[i] = tile[t] + tile[t + 1] + tile[t + 2]


def last_block(x, parts, finished, out):
    """The block that finishes last adds up what each has stored."""
    part = cuda.shared.array(64, float32)
    is_last = cuda.shared.array(1, int32)
    t = cuda.threadIdx.x
    i = cuda.grid(1)
    part[t] = x[i] if i < x.size else float32(0)
    cuda.syncthreads()
    if t == 0:
        total = float32(0)
        for j in range(64):
            total += part[j]
        parts[cuda.blockIdx.x] = total
        cuda.threadfence()
        ticket = cuda.atomic.add(finished, 0, 1)
        is_last[0] = 1 if ticket == cuda.gridDim.x - 1 else 0
    cuda.syncthreads()
    if is_last[0] == 1 and t == 0:
        total = float32(0)
        for b in range(cuda.gridDim.x):
            total += parts[b]
        out[0] = total


def last_block_together(x, parts, finished, out):
    """The same where all threads store, fence, and wait, before one of them counts the block."""
    is_last = cuda.shared.array(1, int32)
    t = cuda.threadIdx.x
    i = cuda.grid(1)
    parts[i] = x[i] if i < x.size else float32(0)
    cuda.threadfence()
    cuda.syncthreads()
    if t == 0:
        ticket = cuda.atomic.add(finished, 0, 1)
        is_last[0] = 1 if ticket == cuda.gridDim.x - 1 else 0
    cuda.syncthreads()
    if is_last[0] == 1 and t == 0:
        total = float32(0)
        for j in range(cuda.gridDim.x * cuda.blockDim.x):
            total += parts[j]
        out[0] = total


def lock(x, mutex, out):
    """One thread after the other adds to a sum that is no atomic."""
    i = cuda.grid(1)
    waits = i < x.size
    while waits:
        if cuda.atomic.cas(mutex, 0, 0, 1) == 0:
            cuda.threadfence()
            out[0] += x[i]
            cuda.threadfence()
            cuda.atomic.exch(mutex, 0, 0)
            waits = False


def pairs(x, swap, out):
    """The lanes of a warp exchange values through global memory."""
    i = cuda.grid(1)
    swap[i] = x[i]
    cuda.syncwarp()
    out[i] = swap[i ^ 1]


def window(x, first, pitch, out):
    """The first element of each row; `x` holds a large matrix from row `first` on."""
    i = cuda.grid(1)
    if i < out.size:
        position = (first + i) * pitch
        out[i] = x[position - first * pitch]


def window_modulo(x, first, pitch, out):
    """The same with positions modulo 2³²: their difference is exact."""
    i = cuda.grid(1)
    if i < out.size:
        position = int32((first + i) * pitch)
        start = int32(first * pitch)
        out[i] = x[int32(position - start)]


def search(x, first, wanted, out):
    """Bisection in ascending `x`, which holds a long list from element `first` on."""
    i = cuda.grid(1)
    if i < out.size:
        low = first
        high = first + x.size
        while low < high:
            middle = (low + high) // 2
            if x[middle - first] < wanted[i]:
                low = middle + 1
            else:
                high = middle
        out[i] = low - first


def gather(x, order, out):
    """Elements in a given order, which goes through shared memory."""
    stage = cuda.shared.array(32, int32)
    t = cuda.threadIdx.x
    i = cuda.grid(1)
    stage[t] = order[i] if i < out.size else 0
    cuda.syncthreads()
    if i < out.size:
        out[i] = x[stage[t]]


def random_choice(x, out):
    """Random numbers whose products wrap on purpose, brought into range in four ways."""
    i = cuda.grid(1)
    if i < out.size:
        state = uint32(i + 1)
        signed = int32(i + 1)
        for _ in range(5):
            state = uint32(state * 1664525 + 1013904223)
            signed = int32(signed * 1103515245 + 12345)
        out[i] = x[state % x.size] + x[(state >> 16) & 31]
        out[i] += x[(signed & 0x7FFFFFFF) % x.size] + x[state // (1 << 27)]


# Products made of warp instructions, and matrices made from a rule.
PRODUCTS = {f"warp_{name}": one for name, one in products.gemms().items()}
FRAGMENTS = {
    f"fragments_{name.replace(' ', '_')}": name for name in ("prefix sum", "householder", "givens")
}

RIGHT = {
    "tiled": kernels.tiled.build(Tiling.square(TILE)),
    "naive": kernels.naive.build(Tiling(block=(TILE, TILE, 1))),
    **dict.fromkeys((*LADDER, *FRAGMENTS)),  # built for each problem
    **{name: one.kernel for name, one in PRODUCTS.items()},
    **{
        function.__name__: function
        for function in (
            *(transpose, reduction, stencil, last_block, last_block_together, lock, pairs),
            *(window, window_modulo, search, gather, random_choice),
        )
    },
}


def trials(base, launch=None, more=()):
    """The runs of a kernel; more : problems besides, of products by tiles."""
    rng = np.random.default_rng(0)
    if base in LADDER:
        rung, small = LADDER[base], PROBLEMS[:3]  # larger ones: tests/kernels
        for trial, problem in zip(gemms(rung, rung.default, small), small, strict=True):
            yield trial._replace(kernel=rung.function(problem, rung.default))
    elif base in ("tiled", "naive"):
        block = (TILE, TILE, TILE if base == "tiled" else 1)
        yield from gemms(kernels.get(base), Tiling(block=block), (*PROBLEMS, *more), launch)
    elif base in PRODUCTS:
        one = PRODUCTS[base]
        a, b, c = (x.copy() for x in one.operands)
        answer = recorded("h200", "products")[one.kernel.__name__].measured["C"]
        yield Trial(one.grid, one.threads, (a, b, c), lambda: equal(c, answer))
    elif base in FRAGMENTS:
        yield from made_from_rules(FRAGMENTS[base], rng)
    elif base == "transpose":
        for shape in ((13, 20), (16, 16), (16, 8)):
            a = rng.standard_normal(shape, np.float32)
            out = np.full(shape[::-1], np.nan, np.float32)
            grid = -(-shape[1] // TILE), -(-shape[0] // TILE)
            yield Trial(grid, (TILE, TILE), (a, out), lambda a=a, out=out: equal(out, a.T))
    else:
        yield vectors(base, rng.integers(-9, 10, 150).astype(np.float32), rng)


def gemms(rung, tiling, problems, launch=None):
    for problem in problems:
        operands = problem.operands()
        c = problem.poisoned(operands.c)
        grid, block = launch(problem) if launch else rung.configure(problem, tiling)
        alpha, beta = problem.scalars()
        args = (alpha, *operands[:2], beta, c)
        right = lambda p=problem, c=c, o=operands: p.error(c, o) <= p.tolerance  # noqa: E731
        yield Trial(grid, block, args, right, rung.dynamic_shared_bytes(problem, tiling))


def made_from_rules(name, rng, batch=5):
    """The last block has warps with nothing to do."""
    for m in fragments.SIZES:
        x, words = matrices(rng, batch, m)
        for use in fragment_uses.uses(rng, batch, m):
            for where in fragments.WHERE if use.name.startswith(name) else ():
                y = nans((batch, m, m))
                right = lambda y=y, x=x, use=use: (  # noqa: E731
                    fragment_uses.error(y, x, use.matrix) < fragment_uses.ALIKE
                )
                args = (words, use.data, *fragment_uses.COLUMNS, y)
                yield Trial(*fragments.launch(batch), args, right, kernel=use.build(where))


def vectors(base, x, rng):
    """The one trial of a kernel with vectors."""
    count = np.zeros(1, np.int32)
    if base == "reduction":
        out, expected = nans(3), [x[:64].sum(), x[64:128].sum(), x[128:].sum()]
        return Trial(3, 64, (x, out), lambda: equal(out, expected))
    if base == "stencil":
        out, expected = nans(150), np.convolve(x, np.ones(3, np.float32), "same")
        return Trial(5, 32, (x, out), lambda: equal(out, expected))
    if base.startswith("last_block"):
        out, parts = nans(1), nans(3 * 64)
        return Trial(3, 64, (x, parts, count, out), lambda: equal(out, [x.sum()]))
    if base == "lock":
        out = np.zeros(1, np.float32)
        return Trial(2, 32, (x[:50], count, out), lambda: equal(out, [x[:50].sum()]))
    if base == "pairs":
        out, x = nans(128), x[:128]
        expected = x.reshape(-1, 2)[:, ::-1].ravel()
        return Trial(2, 64, (x, nans(128), out), lambda: equal(out, expected))
    if base.startswith("window"):
        out, rows = nans(50), rng.standard_normal((50, 1000), np.float32)
        args = (rows.ravel(), 3_000_000, 1000, out)
        return Trial(2, 32, args, lambda: equal(out, rows[:, 0]))
    if base == "search":
        x, out = np.arange(0, 300, 2, np.float32), nans(40)
        wanted = rng.uniform(0, 298, 40).astype(np.float32)
        args = (x, 1_500_000_000, wanted, out)
        return Trial(2, 32, args, lambda: equal(out, np.searchsorted(x, wanted)))
    if base == "gather":
        x, out = rng.standard_normal(40_000, np.float32), nans(70)
        order = rng.integers(0, len(x), 70)
        return Trial(3, 32, (x, order, out), lambda: equal(out, x[order]))
    if base == "random_choice":
        out = nans(70)
        return Trial(3, 32, (x, out), lambda: bool(np.isfinite(out).all()))
    raise ValueError(f"there are no trials of {base!r}")


def nans(size):
    return np.full(size, np.nan, np.float32)


def equal(found, expected):
    return np.array_equal(found, np.asarray(expected, found.dtype))
