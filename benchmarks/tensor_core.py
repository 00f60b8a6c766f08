"""The ladder on Tensor Cores and cuBLAS side by side, on the GPU that is here.

    python -m benchmarks.tensor_core [N ...] [--dtype float16] [--out float32] [--layout nn]
                                     [--rounds 20] [--kernels mma_tuned,cublas] [--tilings]

Products of N×N matrices (default: 4096 8192). Kernels take turns and are checked, as in
`benchmarks.ladder`; the column "of cuBLAS" is a ratio of times of one run. Those by the TMA need
compute capability 9.0, and are left out elsewhere unless they are asked for.
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
from gemmlab.product import LAYOUTS
from gemmlab.recording import parse_kernels


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("sizes", nargs="*", type=int, default=[4096, 8192], metavar="N")
    parser.add_argument("--dtype", default="float16", choices=["float16", "bfloat16"])
    parser.add_argument("--out", default="float32", help="format of C (default: %(default)s)")
    parser.add_argument("--layout", default="nn", choices=LAYOUTS)
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="timed launches of each")
    parser.add_argument("--kernels", help="names with commas (default: all rungs and cublas)")
    parser.add_argument("--tilings", action="store_true", help="every recorded tiling of each")
    asked = parser.parse_args(argv)
    if not gpu_status().works:
        print(f"this needs a GPU: {gpu_status().reason}", file=sys.stderr)
        return 1
    device, right = detect(), True
    by_tma = kernels.TENSOR_CORE_TMA if device.compute_capability == (9, 0) else ()
    rungs = *kernels.TENSOR_CORE, *by_tma, kernels.REFERENCE
    chosen = parse_kernels(asked.kernels) if asked.kernels else rungs
    print(device.title, *(f"{k} {v}" for k, v in gpu.provenance().items()), sep="; ")
    for n in asked.sizes:
        problem = Gemm(n, n, n, dtype=asked.dtype, out_dtype=asked.out, layout=asked.layout)
        found = measure(chosen, problem, asked.rounds, asked.tilings)
        print(f"\n{problem}".replace("×", "x"))
        print(table(found, device), flush=True)
        right = right and all(m.passed for m in found)
    return 0 if right else 1


if __name__ == "__main__":
    sys.exit(main())
