"""Products by blocks that share what they copy, and by cuBLAS: predicted first, then timed.

    python -m benchmarks.clusters --predict FILE [--device h100_sxm]
    python -m benchmarks.clusters --time FILE

Sizes, formats and layouts are drawn by a seed; rows begin at multiples of 16 bytes, as the rung
asks for. Four squares are known from writing it, and are not blind.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator
from typing import NamedTuple

from benchmarks.power import blind
from gemmlab import Gemm

SEED, DRAWN = 20261127, 16
FORMATS = ("float16", "float32"), ("float16", "float16"), ("bfloat16", "bfloat16")
SMALLEST, LARGEST = 256, 8192
LEAST, MOST = 2e9, 1.2e12  # multiplications: less is a launch, more a second


class Case(NamedTuple):
    """A kernel, and a product."""

    kernel: str
    problem: Gemm


def drawn() -> Iterator[Gemm]:
    """Draw products; sizes are even on a logarithmic scale, multiples of 8."""
    rng = random.Random(SEED)
    count = 0
    while count < DRAWN:
        m, n, k = (8 * round(SMALLEST * (LARGEST / SMALLEST) ** rng.random() / 8) for _ in range(3))
        (dtype, out), layout = rng.choice(FORMATS), rng.choice(("nn", "nt", "tn", "tt"))
        if LEAST <= m * n * k <= MOST:
            count += 1
            yield Gemm(m, n, k, dtype=dtype, out_dtype=out, layout=layout)


SQUARES = [
    Gemm(size, size, size, dtype="float16", out_dtype=out)
    for size in (4096, 8192) for out in ("float32", "float16")
]  # fmt: skip
KERNELS = "tma_multicast", "cublas"
CASES = [Case(kernel, problem) for problem in (*SQUARES, *drawn()) for kernel in KERNELS]


if __name__ == "__main__":
    sys.exit(blind.main("benchmarks.clusters", __doc__, CASES))
