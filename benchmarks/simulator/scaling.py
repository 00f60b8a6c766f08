"""How the simulator's cost and memory grow with the work: tiled kernel, counters and hazards on.

    python -m benchmarks.simulator.scaling [--large]

Multiplies n×n matrices with 16×16 tiles, for n = 128, 256, 512, and 1024 with --large, each in a
Python of its own. Prints seconds, seconds per FMA and its ratio to the smallest problem's (at most
1 where cost grows no faster than work), and memory: the most that the launch held at once, next to
the operands.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
import tracemalloc

import numpy as np

from gemmlab import Gemm, kernels, simulate

SIZES, LARGE = (128, 256, 512), 1024


def launch(n: int) -> float:
    """Simulate n×n×n and check the result; wall time of the launch [s]."""
    problem, tiling = Gemm(n, n, n), kernels.tiled.default
    operands = problem.operands()
    c = np.full((n, n), np.nan, np.float32)
    arguments = (np.float32(1), operands.a, operands.b, np.float32(0), c)
    grid, block = kernels.tiled.configure(problem, tiling)
    start = time.perf_counter()
    report = simulate(kernels.tiled.build(tiling), grid, block, *arguments)
    seconds = time.perf_counter() - start
    error = problem.error(c, operands)
    assert error <= problem.tolerance, f"error {error:.1e} above {problem.tolerance:.1e}"
    assert not report.hazards
    return seconds


def traced(n: int) -> int:
    """Peak of the memory that Python and NumPy hold during the launch [B]."""
    tracemalloc.start()
    launch(n)
    return tracemalloc.get_traced_memory()[1]


def child(*arguments: str) -> float:
    """The number that this file prints in a Python of its own."""
    run = [sys.executable, "-m", "benchmarks.simulator.scaling", *arguments]
    return json.loads(subprocess.run(run, capture_output=True, text=True, check=True).stdout)


def main() -> None:
    sizes = (*SIZES, LARGE) if "--large" in sys.argv[1:] else SIZES
    first = None
    print("n      seconds   s/FMA      ratio   peak memory   operands")
    for n in sizes:
        seconds = child("seconds", str(n))
        peak = child("memory", str(n))
        per_fma = seconds / n**3
        first = first or per_fma
        print(
            f"{n:<5} {seconds:8.2f}   {per_fma:.2e}   {per_fma / first:5.2f}   "
            f"{peak / 2**20:7.0f} MiB   {3 * 4 * n * n / 2**20:5.1f} MiB",
            flush=True,
        )


if __name__ == "__main__":
    if sys.argv[1:2] == ["seconds"]:
        launch(32)  # imports and caches
        print(launch(int(sys.argv[2])))
    elif sys.argv[1:2] == ["memory"]:
        print(traced(int(sys.argv[2])))
    else:
        main()
