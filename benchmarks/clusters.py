"""Products by blocks that share what they copy, and by cuBLAS: predicted first, then timed.

    python -m benchmarks.clusters --predict FILE [--device h100_sxm]
    python -m benchmarks.clusters --time FILE

Sizes, formats and layouts are drawn by a seed; rows begin at multiples of 16 bytes, as the rung
asks for. Four squares are known from writing it, and are not blind. `rows` has both for
book/predictions.md.
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

DEVICE, PREDICTED, TIMED = "h100_sxm", "clusters_predicted", "clusters_timed"
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
# In a row, a shorter launch waits for the next one, for which Python needs 44 to 53 µs here.
IN_TURN = 60e-6


def written() -> tuple[Written, Written]:
    """Return what was predicted, and what was timed."""
    return stored(DEVICE, PREDICTED), stored(DEVICE, TIMED)


def products() -> tuple[list[Product], list[tuple[float, float]]]:
    """Pair predictions and timings; and what cuBLAS took, alone and in a row [s]."""
    predictions, timings = written()
    by_library = [row for row in timings.rows if kernels.get(row["kernel"]).library]
    ours = [row for row in timings.rows if row not in by_library]
    allowed = {str(p): RIGHT + number_format(p.out_dtype).unit_roundoff for _, p in CASES}
    found = paired(predictions.rows, ours, allowed)
    return found, [(median(row["ns"]) * 1e-9, row["sustained"]) for row in by_library]


def parts(found: Sequence[Product]) -> tuple[Sequence[Product], Sequence[Product]]:
    """Return the squares that were known, and the products that were drawn."""
    return found[: len(SQUARES)], found[len(SQUARES) :]


def of_library(one: Product, library: tuple[float, float]) -> list[float]:
    """Return cuBLAS's time ÷ the kernel's, alone and, where that is known, in a row."""
    alone, in_a_row = one.alone[0], one.in_a_row[0]
    return [library[0] / alone, *([library[1] / in_a_row] if alone >= IN_TURN else [])]


def rows() -> tuple[str, str]:
    """Tell how far off predictions are in a sentence, and each product in a table."""
    found, library = products()
    head = ["product", "measured", "error", "of cuBLAS", "in a row", "error", "of cuBLAS"]
    cells = []
    for one, lib in zip(found, library, strict=True):
        quotient = [f"{part:.2f}" for part in of_library(one, lib)]
        told = [one.problem, ms(one.alone[0]), percent(one.errors[0]), quotient[0]]
        if one.alone[0] >= IN_TURN:
            told += [ms(one.in_a_row[0]), percent(one.errors[1]), quotient[1]]
        cells.append(told + [""] * (len(head) - len(told)))
    known, blindly = parts(found)
    long = [one for one in blindly if one.alone[0] >= IN_TURN]
    return (
        f"{len(blindly)} products that were drawn: {mean(o.errors[0] for o in blindly)} off on "
        f"average, {mean(o.errors[1] for o in long)} in a row; {len(known)} squares: "
        f"{mean(o.errors[0] for o in known)}, {mean(o.errors[1] for o in known)}"
    ), table(head, cells)


if __name__ == "__main__":
    sys.exit(blind.main("benchmarks.clusters", __doc__, {"clusters": CASES}))
