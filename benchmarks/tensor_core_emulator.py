"""How long the emulated Tensor Core takes for a million dot products of 16 products, on one core.

    python -m benchmarks.tensor_core_emulator

Prints the median time of each case, after one run that does not count.
"""

from __future__ import annotations

import statistics
import time

import numpy as np

from gemmlab.numerics import fused_dot_add, round_to

COUNT, REPEATS = 10**6, 5
CASES = (
    ("float16", "float32", "sm_90"),
    ("float16", "float16", "sm_90"),
    ("bfloat16", "float32", "sm_90"),
    ("tf32", "float32", "sm_90"),
    ("float16", "float32", "sm_80"),
    ("float16", "float32", "sm_70"),
)


def seconds(dtype: str, out_dtype: str, arch: str) -> float:
    rng = np.random.default_rng(0)
    a, b = (round_to(rng.standard_normal((COUNT, 16), np.float32), dtype) for _ in range(2))
    c = round_to(rng.standard_normal(COUNT), out_dtype)
    samples = []
    for _ in range(REPEATS + 1):
        start = time.perf_counter()
        fused_dot_add(a, b, c, dtype=dtype, arch=arch, out_dtype=out_dtype)
        samples.append(time.perf_counter() - start)
    return statistics.median(samples[1:])


def main() -> None:
    print(f"{COUNT:,} dot products of 16 products, NumPy {np.__version__}, median of {REPEATS}")
    for case in CASES:
        print(f"{' '.join(case)}: {seconds(*case):.2f} s", flush=True)


if __name__ == "__main__":
    main()
