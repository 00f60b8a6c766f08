"""FP32 products from Tensor Cores beside cuBLAS SGEMM: speed, and error against float64.

    python -m benchmarks.tcec [N ...] [--layout nn] [--rounds 20] [--kernels tcec_split,cublas]
                              [--tilings]

Products of N×N matrices (default: 4096 8192), normal numbers. As in `benchmarks.ladder`, kernels
take turns, L2 is cold for each launch, and results are checked first. What splits operands
beforehand is timed with it. Errors are of some rows of C: relative in the Frobenius norm, and the
largest one relative to |A||B|.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

import numpy as np

from benchmarks.ladder import ROUNDS, compare, has_gpu
from gemmlab import Gemm, Tiling, kernels
from gemmlab.kernels import Kernel
from gemmlab.measure.backends import gpu
from gemmlab.measure.recording import parse_kernels
from gemmlab.numerics import backward_error, forward_error
from gemmlab.problem import LAYOUTS

ROWS = 128  # of C, whose errors are told


def errors(kernel: Kernel, problem: Gemm, tiling: Tiling | None) -> tuple[float, float]:
    """The errors of a kernel's result in the first rows of C."""
    operands = problem.operands()
    found = gpu.Runner(kernel, problem, tiling, gpu.Matrices(problem)).compute(problem, operands)
    a, b, _ = (x.astype(np.float64) for x in problem.values(operands))
    a, found = a[:ROWS], found[:ROWS]
    right = a @ b
    return forward_error(found, right), backward_error(found, right, a, b)


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    names = ",".join(k.name for k in (*kernels.TCEC, kernels.REFERENCE))
    parser.add_argument("sizes", nargs="*", type=int, default=[4096, 8192], metavar="N")
    parser.add_argument("--layout", default="nn", choices=LAYOUTS)
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="timed launches of each")
    parser.add_argument("--kernels", default=names, help="names with commas (default: %(default)s)")
    parser.add_argument("--tilings", action="store_true", help="every recorded tiling of each")
    asked = parser.parse_args(argv)
    if not has_gpu():
        return 1
    chosen = parse_kernels(asked.kernels)
    problems = [Gemm(n, n, n, layout=asked.layout) for n in asked.sizes]
    wrong = compare(chosen, problems, asked.rounds, asked.tilings)
    for problem in problems:
        print(f"\n{problem}".replace("×", "x"))
        for kernel in chosen:
            by_norm, largest = errors(kernel, problem, kernel.default)
            print(f"{kernel.name}: error {by_norm:.2e} by norm, at most {largest:.2e} of |A||B|")
    return wrong


if __name__ == "__main__":
    sys.exit(main())
