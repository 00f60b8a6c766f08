"""`gemmlab.matmul` beside cuBLAS SGEMM by CuPy: one product or many, the GPU's time and Python's.

    python -m benchmarks.matmul OUT.json [N ...] [--batch 256] [--side 1024]
                                [--depths 64,256,1024,4096] [--rounds 10] [--drawn 0]

Products of N×N matrices (default: 256 512 1024 1536 2048 4096 8192), then `batch` products of
side×k and k×side matrices, as in Figure 8 of Ootomo and Yokota, "Reducing shared memory footprint
to leverage high throughput on Tensor Cores and its flexible API extension library" (2023). Normal
numbers. Three times of a call, with all of scaling, splitting and multiplying:

  gpu   queued behind launches that overwrite L2 and take longer than Python, by events
  host  of Python, for calls that follow each other into a queue that has room
  loop  of a call, where many follow each other and the last one is waited for

With `--drawn 60`, instead of these, products of sizes that nobody chose: m, n and k of 1 to 65536,
drawn evenly by their logarithms, half of them multiples of eight.

Then what each thing takes that is queued for the last product of k = side. Prints the tables and
writes OUT.json, which `gemmlab.measure.benchmarks` reads; what ships is
gemmlab/recorded/<device>/matmul.json, and `python -m benchmarks.readme` shows it.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from gemmlab import matmul, matmul_choice
from gemmlab.here.detection import detect
from gemmlab.here.driver import gpu_status, numba_cuda, stamp
from gemmlab.measure import store
from gemmlab.measure.backends.gpu import flush, provenance
from gemmlab.measure.benchmarks import REQUIRED, Part, Product
from gemmlab.multiplication import arrays, calling, plans
from gemmlab.numerics import backward_error

SIZES = (256, 512, 1024, 1536, 2048, 4096, 8192)
ROWS = 32  # of C, whose errors are told
LARGEST = 65_536  # of a size that is drawn
MOST_BYTES, MOST_FLOPS = 4e9, 4e12  # of a product that is drawn
WARM_UP = 2
AHEAD = 4  # launches that overwrite L2, before what is timed: a millisecond
FILLED = 30  # calls at most whose launches the driver queues without waiting
LASTS = 0.03  # seconds of calls that follow each other, about


def on_gpu(cupy: Any, call: Callable) -> float:
    """Seconds of the GPU for a call that finds nothing in L2."""
    start, end = cupy.cuda.Event(), cupy.cuda.Event()
    for _ in range(AHEAD):
        flush(numba_cuda())
    start.record()
    call()
    end.record()
    end.synchronize()
    return cupy.cuda.get_elapsed_time(start, end) * 1e-3


def following(cupy: Any, call: Callable, count: int) -> tuple[float, float]:
    """Seconds of Python for each of so many calls, and of each until all are done."""
    cupy.cuda.Device().synchronize()
    begun = time.perf_counter()
    for _ in range(count):
        call()
    queued = time.perf_counter()
    cupy.cuda.Device().synchronize()
    return (queued - begun) / count, (time.perf_counter() - begun) / count


def times(cupy: Any, calls: Sequence[Callable], rounds: int) -> list[tuple[float, float, float]]:
    """Medians of the three times of each call; calls take turns."""
    rows = [[on_gpu(cupy, call) for call in calls] for _ in range(WARM_UP + rounds)]
    medians = np.median(rows[WARM_UP:], axis=0)
    found = []
    for call, gpu in zip(calls, medians, strict=True):
        few = max(2, min(FILLED, int(LASTS / gpu)))
        host = np.median([following(cupy, call, few)[0] for _ in range(rounds)])
        loop = following(cupy, call, max(few, int(LASTS / max(gpu, host))))[1]
        found.append((float(gpu), float(host), float(loop)))
    return found


def error(cupy: Any, c: Any, a: Any, b: Any) -> float:
    """The largest error of the first rows of the last product."""
    c, a, b = (cupy.asnumpy(x[-1] if x.ndim == 3 else x) for x in (c, a, b))
    a, b = a[:ROWS].astype(np.float64), b.astype(np.float64)
    return float(backward_error(c[:ROWS], a @ b, a, b))


def product(cupy: Any, a: Any, b: Any, rounds: int) -> Product:
    """The row of one problem."""
    calls = (lambda: matmul(a, b)), (lambda: cupy.matmul(a, b))
    wrong = [error(cupy, call(), a, b) for call in calls]
    own, library = times(cupy, calls, rounds)
    choice = matmul_choice(a, b)
    found = Product(
        choice.batch, choice.m, choice.n, choice.k, choice.kernel, *own, *library, *wrong
    )
    print(
        f"{found.name:<22} {found.kernel:<13} {found.flops / found.gpu / 1e12:6.1f} TFLOP/s, "
        f"{found.cublas_gpu / found.gpu:5.2f} x cuBLAS on the GPU, "
        f"{found.cublas_loop / found.loop:5.2f} x in a loop; gpu {found.gpu * 1e6:.1f}, host "
        f"{found.host * 1e6:.1f}, loop {found.loop * 1e6:.1f} µs; cuBLAS "
        f"{found.cublas_gpu * 1e6:.1f}, {found.cublas_host * 1e6:.1f}, "
        f"{found.cublas_loop * 1e6:.1f} µs; errors {wrong[0]:.1e} and {wrong[1]:.1e}",
        flush=True,
    )
    return found


def parts(cupy: Any, a: Any, b: Any, rounds: int) -> list[Part]:
    """What each thing takes that a product queues, one after the other."""
    place, _ = arrays.check(a, b)
    c, bound, kept = calling.ready(place, a, b, None)
    events = [cupy.cuda.Event() for _ in range(len(bound.calls) + 1)]
    rows = []
    for _ in range(WARM_UP + rounds):
        for _ in range(AHEAD):
            flush(numba_cuda())
        events[0].record()
        for call, event in zip(bound.calls, events[1:], strict=True):
            plans.go([call])
            event.record()
        events[-1].synchronize()
        rows.append([cupy.cuda.get_elapsed_time(*two) for two in pairwise(events)])
    del c, kept
    medians = 1e-3 * np.median(rows[WARM_UP:], axis=0)
    name = f"{a.shape[0]} of {a.shape[1]}×{b.shape[2]}×{a.shape[2]}"
    found = [Part(name, call.what, float(t)) for call, t in zip(bound.calls, medians, strict=True)]
    for part in found:
        print(f"{part.seconds * 1e6:10.1f} µs  {part.what}")
    return found


def drawn(count: int, seed: int = 0) -> list[tuple[int, int, int]]:
    """Draw m, n and k of so many products that fit into memory and end soon.

    >>> drawn(2)
    [(1168, 16, 8), (8262, 24904, 835)]
    """
    rng, found = np.random.default_rng(seed), []
    while len(found) < count:
        sizes = np.rint(LARGEST ** rng.uniform(size=3)).astype(int)
        if rng.random() < 0.5:
            sizes = np.maximum(8, 8 * (sizes // 8))
        m, n, k = map(int, sizes)
        if 4 * (m * k + k * n + m * n) < MOST_BYTES and 2 * m * n * k < MOST_FLOPS:
            found.append((m, n, k))
    return found


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("out", type=Path)
    parser.add_argument("sizes", nargs="*", type=int, default=list(SIZES), metavar="N")
    parser.add_argument("--batch", type=int, default=256)
    parser.add_argument("--side", type=int, default=1024, help="rows and columns of C in a batch")
    parser.add_argument("--depths", default="64,256,1024,4096", help="k of batches, with commas")
    parser.add_argument("--rounds", type=int, default=10, help="timed calls of each")
    parser.add_argument(
        "--drawn", type=int, default=0, help="so many products of drawn sizes alone"
    )
    asked = parser.parse_args(argv)
    if not gpu_status().works:
        print(f"this needs a GPU: {gpu_status().reason}", file=sys.stderr)
        return 1
    import cupy

    rng = cupy.random.default_rng(0)

    def normal(*shape: int) -> Any:
        return rng.standard_normal(shape, dtype=cupy.float32)

    batch, side = asked.batch, asked.side
    if asked.drawn:
        sizes = drawn(asked.drawn)
        products = [product(cupy, normal(m, k), normal(k, n), asked.rounds) for m, n, k in sizes]
        write(asked, products, [])
        return 0
    products = [product(cupy, normal(n, n), normal(n, n), asked.rounds) for n in asked.sizes]
    for k in map(int, filter(None, asked.depths.split(","))):
        a, b = normal(batch, side, k), normal(batch, k, side)
        products.append(product(cupy, a, b, asked.rounds))
        del a, b
    queued = parts(cupy, normal(batch, side, side), normal(batch, side, side), asked.rounds)
    write(asked, products, queued)
    return 0


def write(asked: argparse.Namespace, products: list[Product], queued: list[Part]) -> None:
    """Keep what was measured, with its provenance."""
    device, known = detect(), provenance()
    told = {
        "device": device.name, "device_title": device.title,
        **stamp("date", "python", "numpy", "numba"),
        **{x: known[x] for x in ("driver", "cuda", "numba_cuda", "cupy", "cublas")},
        "rounds": asked.rounds, "rows": ROWS, "data": "normal, seed 0",
    }  # fmt: skip
    store.write(asked.out, told, {"products": products, "parts": queued}, REQUIRED)


if __name__ == "__main__":
    sys.exit(main())
