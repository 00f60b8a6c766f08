"""The simulator against Numba's own CUDA simulator: the same kernel source, the same operands.

    python -m benchmarks.simulator.throughput

Multiplies 128×128 matrices with the tiled kernel and 16×16 tiles, first here with all counters and
hazards on, then in a second Python with ``NUMBA_ENABLE_CUDASIM=1`` (about a minute), checks both
results against NumPy, and prints how many times faster the first is. Then 256×256, here alone.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import time

import numpy as np

from benchmarks import ROOT
from gemmlab import kernels, simulate
from gemmlab.problem import Gemm

REPEATS = 5


def setup(n: int) -> tuple:
    problem = Gemm(n, n, n)
    operands = problem.operands()
    tiling = kernels.tiled.default
    c = np.full((n, n), np.nan, np.float32)
    one, zero = np.float32(1), np.float32(0)
    arguments = (one, operands.a, operands.b, zero, c)
    return (
        problem,
        operands,
        kernels.tiled.build(tiling),
        kernels.tiled.configure(problem, tiling),
        arguments,
    )


def check(problem: Gemm, operands: tuple, c: np.ndarray) -> None:
    error = problem.error(c, operands)
    assert error <= problem.tolerance, f"error {error:.1e} above {problem.tolerance:.1e}"


def seconds_here(n: int) -> float:
    """Median wall time of a simulated launch [s], rewriting of the source included."""
    samples = []
    for _ in range(REPEATS):
        problem, operands, kernel, (grid, block), arguments = setup(n)
        start = time.perf_counter()
        report = simulate(kernel, grid, block, *arguments)
        samples.append(time.perf_counter() - start)
        check(problem, operands, arguments[-1])
        assert not report.hazards
        assert report.counters == kernels.tiled.work(problem, kernels.tiled.default).counters
    return statistics.median(samples)


def seconds_of_numba(n: int) -> float:
    """Wall time of one launch on Numba's simulator [s], in the Python that was started for it."""
    from numba import config, cuda

    assert config.ENABLE_CUDASIM
    problem, operands, kernel, (grid, block), arguments = setup(n)
    compiled = cuda.jit(kernel)
    start = time.perf_counter()
    compiled[grid, block](*arguments)
    elapsed = time.perf_counter() - start
    check(problem, operands, arguments[-1])
    return elapsed


def main() -> None:
    here = seconds_here(128)
    print(f"128³, gemmlab, counters and hazards: {here * 1e3:.0f} ms (median of {REPEATS})")
    print(f"256³, gemmlab, counters and hazards: {seconds_here(256) * 1e3:.0f} ms", flush=True)
    environment = {**os.environ, "NUMBA_ENABLE_CUDASIM": "1", "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "benchmarks.simulator.throughput", "numba", "128"]
    run = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if run.returncode:
        raise SystemExit(f"Numba's simulator did not run:\n{run.stderr}")
    numba = json.loads(run.stdout.splitlines()[-1])
    print(f"128³, Numba's simulator, no counters: {numba:.1f} s")
    print(f"ratio: {numba / here:.0f}")


if __name__ == "__main__":
    if sys.argv[1:2] == ["numba"]:
        print(json.dumps(seconds_of_numba(int(sys.argv[2]))))
    else:
        main()
