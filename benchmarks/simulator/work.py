"""What the simulator takes for works that GPU courses give: wall time, processor time, memory.

    python -m benchmarks.simulator.work [--numba] [NAME ...]

Each work runs in a Python of its own, with counters and hazards on, and its result is checked
against NumPy. Memory is the most that the process held during the launch beyond what it held
before, when the arguments were made. With --numba the same kernel runs in Numba's CUDA simulator
as well, at a size that takes it seconds; what is compared is the time per lane and turn: per
execution of the kernel's innermost statement.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

IN_NUMBA = os.environ.get("NUMBA_ENABLE_CUDASIM") == "1"
if IN_NUMBA:
    from numba import cuda
else:
    from gemmlab import cuda, simulate

LIMIT = 150  # seconds that a work may take
MASK = 0xFFFFFFFF
BINS = 256
OF_A_BLOCK = 1 << 16  # elements of a block whose threads walk: each does as much at any size
TPB = 16  # threads per block and direction, as in Numba's documentation
TILE, ROWS = 32, 8
PADDED = TILE + 1  # a shape in a kernel is made of names and literals, not of sums


@dataclass(frozen=True)
class Launch:
    """A kernel with its arguments, how to check what it left in them, and what it had to do."""

    kernel: Callable
    grid: int | tuple[int, int]
    block: int | tuple[int, int]
    arguments: tuple[Any, ...]
    is_right: Callable[[], bool]
    turns: int  # executions of the innermost statement, over all lanes


@dataclass(frozen=True)
class Work:
    """A launch of a given size: the size that is measured, and the one for Numba's simulator."""

    launch: Callable[[int], Launch]
    size: int
    size_of_numba: int


def recurrence(x, y):
    state = 1
    for i in range(x.size):
        state = (state * 1664525 + x[i]) & MASK
        y[i] = state


def one_thread(n: int) -> Launch:
    """One thread that runs a recurrence over n numbers."""
    x = np.random.default_rng(0).integers(0, 1 << 31, n)
    y = np.full(n, -1)

    def is_right() -> bool:
        state, expected = 1, []
        for value in x.tolist():
            state = (state * 1664525 + value) & MASK
            expected.append(state)
        return y.tolist() == expected

    return Launch(recurrence, 1, 1, (x, y), is_right, n)


def lock_around_sum(lock, x, total):
    while cuda.atomic.cas(lock, 0, 0, 1) != 0:
        pass
    cuda.threadfence()
    total[0] += x[cuda.grid(1)]
    cuda.threadfence()
    cuda.atomic.exch(lock, 0, 0)


def lock_with_flag(lock, x, total):
    waiting = True
    while waiting:
        if cuda.atomic.cas(lock, 0, 0, 1) == 0:
            cuda.threadfence()
            total[0] += x[cuda.grid(1)]
            cuda.threadfence()
            cuda.atomic.exch(lock, 0, 0)
            waiting = False


def _lock(kernel: Callable, blocks: int) -> Launch:
    lock, total = np.zeros(1, np.int32), np.zeros(1, np.int64)
    x = np.random.default_rng(0).integers(0, 1 << 40, blocks * 64)
    return Launch(
        kernel, blocks, 64, (lock, x, total), lambda: total[0] == x.sum() and not lock[0], x.size
    )


def spin_lock(blocks: int) -> Launch:
    """Threads that take one lock in turn, as on a GPU since Volta: the lanes of a warp go apart."""
    return _lock(lock_around_sum, blocks)


def spin_lock_flag(blocks: int) -> Launch:
    """The same with a flag, so that the lane that has the lock stays within the loop."""
    return _lock(lock_with_flag, blocks)


def axpy(a, x, y):
    i = cuda.grid(1)
    if i < x.size:
        y[i] = a * x[i] + y[i]


def saxpy(blocks: int) -> Launch:
    """Sum a·x + y into y, in blocks of one warp."""
    rng = np.random.default_rng(0)
    x, y = rng.random(32 * blocks - 5, np.float32), rng.random(32 * blocks - 5, np.float32)
    a, before = np.float32(2.5), y[::101].copy()

    def is_right() -> bool:
        expected = float(a) * x[::101] + before
        return np.allclose(y[::101], expected, rtol=2**-23, atol=0)

    return Launch(axpy, blocks, 32, (a, x, y), is_right, x.size)


def sum_of_blocks(x, total):
    part = cuda.shared.array(256, np.float32)
    t = cuda.threadIdx.x
    i = cuda.grid(1)
    part[t] = x[i] if i < x.size else np.float32(0)
    cuda.syncthreads()
    s = cuda.blockDim.x // 2
    while s > 0:
        if t < s:
            part[t] += part[t + s]
        cuda.syncthreads()
        s //= 2
    if t == 0:
        cuda.atomic.add(total, 0, part[0])


def sum_by_strides(x, total):
    part = cuda.shared.array(256, np.float32)
    t = cuda.threadIdx.x
    own = np.float32(0)
    for i in range(cuda.grid(1), x.size, cuda.gridsize(1)):
        own += x[i]
    part[t] = own
    cuda.syncthreads()
    s = cuda.blockDim.x // 2
    while s > 0:
        if t < s:
            part[t] += part[t + s]
        cuda.syncthreads()
        s //= 2
    if t == 0:
        cuda.atomic.add(total, 0, part[0])


def _reduction(kernel: Callable, n: int, blocks: int) -> Launch:
    x = np.random.default_rng(0).integers(0, 100, n, np.uint8).astype(np.float32)
    total = np.zeros(1)
    return Launch(kernel, blocks, 256, (x, total), lambda: total[0] == x.sum(dtype=np.float64), n)


def reduction(n: int) -> Launch:
    """Sum in shared memory, one element a thread."""
    return _reduction(sum_of_blocks, n, -(-n // 256))


def reduction_strided(n: int) -> Launch:
    """Sum of n elements by blocks whose threads walk through them in strides of the grid."""
    return _reduction(sum_by_strides, n, -(-n // OF_A_BLOCK))


def count_bins(x, bins):
    own = cuda.shared.array(BINS, np.int32)
    t = cuda.threadIdx.x
    own[t] = 0
    cuda.syncthreads()
    for i in range(cuda.grid(1), x.size, cuda.gridsize(1)):
        cuda.atomic.add(own, x[i], 1)
    cuda.syncthreads()
    cuda.atomic.add(bins, t, own[t])


def histogram(n: int) -> Launch:
    """Histogram of n bytes by blocks that walk through them, with bins of their own."""
    x = np.random.default_rng(0).integers(0, BINS, n, np.uint8)
    bins = np.zeros(BINS, np.int32)
    return Launch(
        count_bins,
        -(-n // OF_A_BLOCK),
        BINS,
        (x, bins),
        lambda: bool(np.all(bins == np.bincount(x, minlength=BINS))),
        n,
    )


def escape_times(left, top, step, turns, times):
    column, row = cuda.grid(2)
    if row < times.shape[0] and column < times.shape[1]:
        real = left + column * step
        imaginary = top + row * step
        x = 0.0
        y = 0.0
        count = turns
        for i in range(turns):
            xx = x * x
            yy = y * y
            if xx + yy > 4.0:
                count = i
                break
            y = 2.0 * x * y + imaginary
            x = xx - yy + real
        times[row, column] = count


def mandelbrot(n: int) -> Launch:
    """Escape times of n×n points, at most 200 turns each."""
    left, top, step, turns = -2.0, -1.25, 2.5 / n, 200
    times = np.full((n, n), -1, np.int32)
    expected = np.full((n, n), turns, np.int32)
    for row in range(n):  # one at a time: the peak of memory is to be the launch's
        c = left + np.arange(n) * step + 1j * (top + row * step)
        z, inside = np.zeros_like(c), np.arange(n)
        for turn in range(turns):
            far = np.abs(z[inside]) > 2
            expected[row, inside[far]] = turn
            inside = inside[~far]
            z[inside] = z[inside] ** 2 + c[inside]

    def is_right() -> bool:  # a rounding decides only for points at the very edge
        return bool(np.mean(times != expected) < 1e-4)

    grid = (-(-n // 16), -(-n // 16))
    arguments = (left, top, step, turns, times)
    return Launch(escape_times, grid, (16, 16), arguments, is_right, int(expected.sum()))


def fast_matmul(A, B, C):
    sA = cuda.shared.array(shape=(TPB, TPB), dtype=np.float32)
    sB = cuda.shared.array(shape=(TPB, TPB), dtype=np.float32)

    x, y = cuda.grid(2)

    tx = cuda.threadIdx.x
    ty = cuda.threadIdx.y
    bpg = cuda.gridDim.x

    tmp = np.float32(0.0)
    for i in range(bpg):
        sA[ty, tx] = 0
        sB[ty, tx] = 0
        if y < A.shape[0] and (tx + i * TPB) < A.shape[1]:
            sA[ty, tx] = A[y, tx + i * TPB]
        if x < B.shape[1] and (ty + i * TPB) < B.shape[0]:
            sB[ty, tx] = B[ty + i * TPB, x]

        cuda.syncthreads()

        for j in range(TPB):
            tmp += sA[ty, j] * sB[j, tx]

        cuda.syncthreads()
    if y < C.shape[0] and x < C.shape[1]:
        C[y, x] = tmp


def gemm(n: int) -> Launch:
    """n×n×n product with tiles in shared memory: the kernel of Numba's documentation."""
    rng = np.random.default_rng(0)
    a, b = rng.random((n, n), np.float32), rng.random((n, n), np.float32)
    c = np.full((n, n), np.nan, np.float32)
    grid = (-(-n // TPB), -(-n // TPB))
    return Launch(
        fast_matmul,
        grid,
        (TPB, TPB),
        (a, b, c),
        lambda: np.allclose(c, a.astype(float) @ b.astype(float), rtol=n * 6e-8, atol=0),
        n**3,
    )


def copy_transposed(x, y):
    column, row = cuda.grid(2)
    if row < x.shape[0] and column < x.shape[1]:
        y[column, row] = x[row, column]


def copy_transposed_tiles(x, y):
    tile = cuda.shared.array((TILE, PADDED), np.float32)
    tx = cuda.threadIdx.x
    ty = cuda.threadIdx.y
    left = cuda.blockIdx.x * TILE
    top = cuda.blockIdx.y * TILE
    for r in range(0, TILE, ROWS):
        if top + ty + r < x.shape[0] and left + tx < x.shape[1]:
            tile[ty + r, tx] = x[top + ty + r, left + tx]
    cuda.syncthreads()
    for r in range(0, TILE, ROWS):
        if left + ty + r < y.shape[0] and top + tx < y.shape[1]:
            y[left + ty + r, top + tx] = tile[tx, ty + r]


def _transposition(kernel: Callable, n: int, block: tuple[int, int]) -> Launch:
    x = np.random.default_rng(0).random((n, n), np.float32)
    y = np.full((n, n), np.nan, np.float32)
    grid = (-(-n // TILE), -(-n // TILE))
    return Launch(kernel, grid, block, (x, y), lambda: np.array_equal(y, x.T), n * n)


def transposition(n: int) -> Launch:
    """n×n matrix transposed, one element a thread: stores of a warp go to 32 rows."""
    return _transposition(copy_transposed, n, (TILE, TILE))


def transposition_tiled(n: int) -> Launch:
    """The same through a padded tile in shared memory, four elements a thread."""
    return _transposition(copy_transposed_tiles, n, (TILE, ROWS))


WORKS = {
    "one_thread": Work(one_thread, 50_000, 50_000),
    "spin_lock": Work(spin_lock, 32, 1),
    "spin_lock_flag": Work(spin_lock_flag, 32, 1),
    "saxpy": Work(saxpy, 1_000_000, 100),
    "reduction": Work(reduction, 1 << 24, 1 << 10),
    "reduction_strided": Work(reduction_strided, 1 << 24, OF_A_BLOCK),
    "histogram": Work(histogram, 10_000_000, OF_A_BLOCK),
    "mandelbrot": Work(mandelbrot, 1024, 32),
    "gemm": Work(gemm, 1024, 32),
    "transposition": Work(transposition, 4096, 64),
    "transposition_tiled": Work(transposition_tiled, 4096, 64),
}


def processor_seconds() -> float:
    """Processor time of this process and of those that it started and waited for [s]."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in used)


def peak_bytes() -> int:
    """The most memory that this process, and the largest that it started, ever held [B]."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    unit = 1 if sys.platform == "darwin" else 1024
    return sum(usage.ru_maxrss for usage in used) * unit


def run(launch: Launch) -> None:
    if IN_NUMBA:
        cuda.jit(launch.kernel)[launch.grid, launch.block](*launch.arguments)
    else:
        simulate(launch.kernel, launch.grid, launch.block, *launch.arguments)


def measure(work: Work, size: int) -> dict[str, float]:
    """Cost of one launch after a small one, in this process; the result is checked."""
    run(axpy_of_one_warp())
    launch = work.launch(size)
    before, wall, processor = peak_bytes(), time.perf_counter(), processor_seconds()
    run(launch)
    cost = {
        "wall": time.perf_counter() - wall,
        "processor": processor_seconds() - processor,
        "bytes": peak_bytes() - before,
        "turns": launch.turns,
    }
    if not launch.is_right():
        raise AssertionError(f"{launch.kernel.__name__} left a wrong result")
    return cost


def axpy_of_one_warp() -> Launch:
    """A launch that loads what every launch needs."""
    return saxpy(1)


def measured_apart(name: str, size: int, numba: bool) -> dict[str, float] | str:
    """`measure` in a Python of its own, or the last line of its complaint."""
    run = [sys.executable, "-m", "benchmarks.simulator.work", "--apart", name, str(size)]
    environment = os.environ | {"NUMBA_ENABLE_CUDASIM": str(int(numba))}
    try:
        done = subprocess.run(run, env=environment, capture_output=True, text=True, timeout=LIMIT)
    except subprocess.TimeoutExpired:
        return f"takes more than {LIMIT} s"
    return json.loads(done.stdout) if done.returncode == 0 else done.stderr.splitlines()[-1]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(WORKS)}")
    parser.add_argument("--numba", action="store_true", help="beside Numba's simulator")
    parser.add_argument("--apart", nargs=2, metavar=("NAME", "SIZE"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.apart:
        name, size = arguments.apart
        print(json.dumps(measure(WORKS[name], int(size))))
        return

    header = f"{'work':<20} {'size':>9} {'wall s':>8} {'CPU s':>8} {'MB':>7} {'s/turn':>9}"
    print(header + (f" {'of Numba':>9} {'size':>6} {'ratio':>7}" if arguments.numba else ""))
    for name in arguments.names or WORKS:
        work = WORKS[name]
        here = measured_apart(name, work.size, numba=False)
        if isinstance(here, str):
            print(f"{name:<20} {work.size:>9} fails: {here}", flush=True)
            continue
        each = here["wall"] / here["turns"]
        row = f"{name:<20} {work.size:>9} {here['wall']:8.2f} {here['processor']:8.2f}"
        row += f" {here['bytes'] / 1e6:7.0f} {each:9.1e}"
        if arguments.numba:
            there = measured_apart(name, work.size_of_numba, numba=True)
            if isinstance(there, str):
                row += f" fails: {there}"
            else:
                other = there["wall"] / there["turns"]
                row += f" {other:9.1e} {work.size_of_numba:>6} {other / each:7.1f}"
        print(row, flush=True)


if __name__ == "__main__":
    main()
