"""The ladder on Tensor Cores and cuBLAS side by side, on the GPU that is here.

    python -m benchmarks.tensor_core [N ...] [--dtype float16] [--out float32] [--layout nn]
                                     [--rounds 20] [--kernels mma_tuned,cublas] [--tilings]

Products of N×N matrices (default: 4096 8192). Kernels take turns and are checked, as in
`benchmarks.ladder`; the column "of cuBLAS" is a ratio of times of one run. Those by the TMA and by
`wgmma` need compute capability 9.0, and are left out elsewhere unless they are asked for.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from benchmarks.ladder import ROUNDS, compare, has_gpu
from gemmlab import Gemm, kernels
from gemmlab.here.detection import detect
from gemmlab.measure.recording import parse_kernels
from gemmlab.problem import LAYOUTS


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
    if not has_gpu():
        return 1
    hopper = (
        (*kernels.TENSOR_CORE_TMA, *kernels.HOPPER) if detect().compute_capability == (9, 0) else ()
    )
    rungs = *kernels.TENSOR_CORE, *hopper, kernels.REFERENCE
    problems = (
        Gemm(n, n, n, dtype=asked.dtype, out_dtype=asked.out, layout=asked.layout)
        for n in asked.sizes
    )
    chosen = parse_kernels(asked.kernels) if asked.kernels else rungs
    return compare(chosen, problems, asked.rounds, asked.tilings)


if __name__ == "__main__":
    sys.exit(main())
