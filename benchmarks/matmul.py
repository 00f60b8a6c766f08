"""What a user calls beside what CuPy calls: `gemmlab.matmul` and cuBLAS SGEMM, one product or many.

    python -m benchmarks.matmul [N ...] [--batch 256] [--side 1024] [--depths 64,256,1024,4096]
                                [--rounds 10]

Products of N×N matrices (default: 1024 2048 4096 8192), then `batch` products of side×k and k×side
matrices, as in Figure 8 of Ootomo and Yokota, "Reducing shared memory footprint to leverage high
throughput on Tensor Cores and its flexible API extension library" (2023). Normal numbers. The whole
call is timed on the GPU: scaling, splitting, multiplying. Calls take turns with CuPy's and are
queued behind a launch that overwrites L2, so that the time of Python is hidden where the GPU is
busy for longer; `host` is that time. Errors are of the first rows, relative to |A||B|.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gemmlab import matmul, matmul_choice
from gemmlab.backends.gpu import flush, provenance
from gemmlab.detection import detect
from gemmlab.driver import gpu_status, numba_cuda
from gemmlab.numerics import backward_error

SIZES = (1024, 2048, 4096, 8192)
ROWS = 32  # of C, whose errors are told
WARM_UP = 2


def sample(cupy: Any, call: Callable) -> tuple[float, float]:
    """Seconds of the GPU, and of Python, for a call that finds nothing in L2."""
    start, end = cupy.cuda.Event(), cupy.cuda.Event()
    flush(numba_cuda())
    start.record()
    begun = time.perf_counter()
    call()
    taken = time.perf_counter() - begun
    end.record()
    end.synchronize()
    return cupy.cuda.get_elapsed_time(start, end) * 1e-3, taken


def error(cupy: Any, c: Any, a: Any, b: Any) -> float:
    """The largest error of the first rows of the last product."""
    c, a, b = (cupy.asnumpy(x[-1] if x.ndim == 3 else x) for x in (c, a, b))
    a, b = a[:ROWS].astype(np.float64), b.astype(np.float64)
    return backward_error(c[:ROWS], a @ b, a, b)


def one(cupy: Any, name: str, a: Any, b: Any, rounds: int) -> str:
    """The line of one problem."""
    calls = (lambda: matmul(a, b)), (lambda: cupy.matmul(a, b))
    wrong = [error(cupy, call(), a, b) for call in calls]
    times = np.array([[sample(cupy, call) for call in calls] for _ in range(WARM_UP + rounds)])
    (own, host), (theirs, _) = np.median(times[WARM_UP:], axis=0)
    rate = 2 * a.size * b.shape[-1] / 1e12
    return (
        f"{name:<22} {matmul_choice(a, b).kernel:<15} {rate / own:7.1f} TFLOP/s, cuBLAS "
        f"{rate / theirs:6.1f}, {theirs / own:5.2f} x; host {host * 1e3:.3f} of "
        f"{own * 1e3:.3f} ms; errors {wrong[0]:.1e} and {wrong[1]:.1e}"
    )


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("sizes", nargs="*", type=int, default=list(SIZES), metavar="N")
    parser.add_argument("--batch", type=int, default=256)
    parser.add_argument("--side", type=int, default=1024, help="rows and columns of C in a batch")
    parser.add_argument("--depths", default="64,256,1024,4096", help="k of batches, with commas")
    parser.add_argument("--rounds", type=int, default=10, help="timed calls of each")
    asked = parser.parse_args(argv)
    if not gpu_status().works:
        print(f"this needs a GPU: {gpu_status().reason}", file=sys.stderr)
        return 1
    import cupy

    rng = cupy.random.default_rng(0)
    print(detect().title, *(f"{k} {v}" for k, v in provenance().items()), sep="; ")
    problems = [((n, n), (n, n), f"{n}") for n in asked.sizes]
    batch, side = asked.batch, asked.side
    for k in map(int, filter(None, asked.depths.split(","))):
        problems.append(((batch, side, k), (batch, k, side), f"{batch} of {side}x{side}x{k}"))
    for left, right, name in problems:
        a, b = (rng.standard_normal(shape, dtype=cupy.float32) for shape in (left, right))
        print(one(cupy, name, a, b, asked.rounds), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
