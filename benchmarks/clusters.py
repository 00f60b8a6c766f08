"""Products by blocks that share what they copy, and by cuBLAS: predicted first, then timed.

    python -m benchmarks.clusters --predict FILE [--set padded] [--device h100_sxm]
    python -m benchmarks.clusters --time FILE [--set padded]

Sizes, formats and layouts are drawn by a seed. In the first set rows begin at multiples of 16
bytes, as *tma_multicast* asks for; four squares are known from writing it, and are not blind. In
the second, of *tma_padded*, some do not. `rows` has a set for book/predictions.md.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator, Sequence
from statistics import median
from typing import NamedTuple

from benchmarks.forecast.written import Written, stored
from benchmarks.page_tables import mean, ms, percent, table
from benchmarks.power import blind
from benchmarks.power.page import RIGHT, Product, paired
from gemmlab import Gemm, kernels
from gemmlab.formats import number_format
from gemmlab.kernels.tensor_core.shared.shared_layouts import are_aligned

DEVICE, DRAWN = "h100_sxm", 16
SEEDS = {"clusters": 20261129, "padded": 20261130}  # by what the files of a set are called
KERNELS = {"clusters": "tma_multicast", "padded": "tma_padded"}
FORMATS = ("float16", "float32"), ("float16", "float16"), ("bfloat16", "bfloat16")
SMALLEST, LARGEST = 256, 8192
LEAST, MOST = 2e9, 1.2e12  # multiplications: less is a launch, more a second


class Case(NamedTuple):
    """A kernel, and a product."""

    kernel: str
    problem: Gemm


def drawn(which: str) -> Iterator[Gemm]:
    """Draw products; sizes are even on a logarithmic scale, and multiples of 8 but for *padded*."""
    rng, aligned = random.Random(SEEDS[which]), which != "padded"
    step = 8 if aligned else 1
    count = 0
    while count < DRAWN:
        m, n, k = (
            step * round(SMALLEST * (LARGEST / SMALLEST) ** rng.random() / step) for _ in range(3)
        )
        (dtype, out), layout = rng.choice(FORMATS), rng.choice(("nn", "nt", "tn", "tt"))
        problem = Gemm(m, n, k, dtype=dtype, out_dtype=out, layout=layout)
        if LEAST <= m * n * k <= MOST and are_aligned(problem) == aligned:
            count += 1
            yield problem


def square(size: int, out: str) -> Gemm:
    return Gemm(size, size, size, dtype="float16", out_dtype=out)


CHOSEN = {
    "clusters": [square(size, out) for size in (4096, 8192) for out in ("float32", "float16")],
    "padded": [square(4100, "float32"), square(4100, "float16"),
               Gemm(4096, 4096, 4100, dtype="float16"), Gemm(256, 4096, 479, dtype="float16")],
}  # fmt: skip
SETS = {
    which: [
        Case(kernel, problem)
        for problem in (*CHOSEN[which], *drawn(which)) for kernel in (KERNELS[which], "cublas")
    ]
    for which in SEEDS
}  # fmt: skip
# In a row, a shorter launch waits for the next one: Python needs 44 to 53 µs for one launch here,
# and up to 240 for two with a dozen arguments.
IN_TURN = {"clusters": 60e-6, "padded": 250e-6}


def written(which: str = "clusters") -> tuple[Written, Written]:
    """Return what was predicted of a set, and what was timed."""
    return stored(DEVICE, f"{which}_predicted"), stored(DEVICE, f"{which}_timed")


def products(which: str = "clusters") -> tuple[list[Product], list[tuple[float, float]]]:
    """Pair predictions and timings; and what cuBLAS took, alone and in a row [s]."""
    predictions, timings = written(which)
    by_library = [row for row in timings.rows if kernels.get(row["kernel"]).library]
    ours = [row for row in timings.rows if row not in by_library]
    allowed = {str(p): RIGHT + number_format(p.out_dtype).unit_roundoff for _, p in SETS[which]}
    found = paired(predictions.rows, ours, allowed)
    return found, [(median(row["ns"]) * 1e-9, row["sustained"]) for row in by_library]


def parts(
    found: Sequence[Product], which: str = "clusters"
) -> tuple[Sequence[Product], Sequence[Product]]:
    """Return the products that were chosen, and those that were drawn."""
    return found[: len(CHOSEN[which])], found[len(CHOSEN[which]) :]


def of_library(one: Product, library: tuple[float, float]) -> list[float]:
    """Return cuBLAS's time ÷ the kernel's, alone and in a row."""
    alone, in_a_row = one.alone[0], one.in_a_row[0]
    return [library[0] / alone, library[1] / in_a_row]


def rows(which: str = "clusters") -> tuple[str, str]:
    """Tell how far off predictions are in a sentence, and each product in a table."""
    found, library = products(which)
    head = ["product", "measured", "error", "of cuBLAS", "in a row", "error", "of cuBLAS"]
    cells = []
    for one, lib in zip(found, library, strict=True):
        quotient = [f"{part:.2f}" for part in of_library(one, lib)]
        told = [one.problem, ms(one.alone[0]), percent(one.errors[0]), quotient[0]]
        if one.alone[0] >= IN_TURN[which]:
            told += [ms(one.in_a_row[0]), percent(one.errors[1]), quotient[1]]
        cells.append(told + [""] * (len(head) - len(told)))
    chosen, blindly = parts(found, which)
    off = [
        f"{mean(o.errors[0] for o in part)} off on average, "
        f"{mean(o.errors[1] for o in part if o.alone[0] >= IN_TURN[which])} in a row"
        for part in (blindly, chosen)
    ]
    return (
        f"{len(blindly)} products that were drawn: {off[0]}; {len(chosen)} that were chosen: "
        f"{off[1]}"
    ), table(head, cells)


if __name__ == "__main__":
    sys.exit(blind.main("benchmarks.clusters", __doc__, SETS))
