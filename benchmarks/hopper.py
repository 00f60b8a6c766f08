"""Kernels by `wgmma` and the TMA beside cuBLAS: FP16 operands, FP32 sums and results.

    python -m benchmarks.hopper [N ...] [--rounds 20]

The products are square (default: 4096 8192), with B stored transposed; each kernel has each of its
recorded tilings. As in `benchmarks.ladder`, kernels take turns, L2 is cold for each launch, and
results are checked first.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from benchmarks.ladder import ROUNDS, measure, table
from gemmlab import Gemm, kernels
from gemmlab.backends import gpu
from gemmlab.detection import detect
from gemmlab.driver import gpu_status


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("sizes", nargs="*", type=int, default=[4096, 8192], metavar="N")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="timed launches of each")
    arguments = parser.parse_args(argv)
    if not gpu_status().works:
        print(f"this needs a GPU: {gpu_status().reason}", file=sys.stderr)
        return 1
    device = detect()
    print(device.title, *(f"{k} {v}" for k, v in gpu.provenance().items()), sep="; ")
    right = True
    for n in arguments.sizes:
        problem = Gemm(n, n, n, dtype="float16", out_dtype="float32", layout="nt")
        chosen = (*kernels.HOPPER, kernels.REFERENCE)
        found = measure(chosen, problem, arguments.rounds, every_tiling=True)
        print(f"\n{problem}".replace("×", "x"))
        print(table(found, device), flush=True)
        right = right and all(m.passed for m in found)
    return 0 if right else 1


if __name__ == "__main__":
    sys.exit(main())
