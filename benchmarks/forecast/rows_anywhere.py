"""cuBLAS's products in FP16 whose rows begin anywhere: predicted first, then timed.

    python -m benchmarks.forecast.rows_anywhere SET --predict FILE [--device h100_sxm]
    python -m benchmarks.forecast.rows_anywhere SET --time FILE

Sizes are drawn as those of the held-out sets are (`benchmarks.held_out`); of a draw those count
whose rows do begin anywhere. Timing takes a second, on a GPU with CuPy.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

from benchmarks.forecast.library import Library
from benchmarks.forecast.others.timing import origin as timed_at
from benchmarks.forecast.written import Written, first_and_since, origin, parser, stored, write
from benchmarks.held_out import LARGE, RAGGED, SHORT, SMALL, Drawn, problems
from benchmarks.page_tables import mean, ms, percent, table
from gemmlab import Gemm
from gemmlab.compiled.forecast.library import kind, predict_library
from gemmlab.model.alignment import WIDEST

SETS = {"rows_anywhere": 20261127, "rows_anywhere_2": 20261128}  # from which each is drawn
RULE = (
    Drawn(16, (LARGE, LARGE, LARGE), RAGGED),
    Drawn(4, (SHORT, LARGE, LARGE), RAGGED),
    Drawn(4, (LARGE, SHORT, LARGE), RAGGED),
    Drawn(4, (SMALL, SMALL, SMALL), RAGGED),
)
DEVICE = "h100_sxm"


def cases(which: str) -> list[Gemm]:
    """Return the products, in the order of the rule."""
    drawn = (
        Gemm(p.m, p.n, p.k, dtype="float16", layout=p.layout) for p in problems(SETS[which], RULE)
    )
    return [p for p in drawn if kind(p).aligned < WIDEST]


def predicted(which: str, device: str) -> Iterator[dict[str, Any]]:
    for p in cases(which):
        found = predict_library(p, device)
        yield {
            "problem": str(p), "aligned": kind(p).aligned, "seconds": found.seconds,
            "by": found.limiter, "kernel": found.row.name, "parts": found.split,
        }  # fmt: skip


def timed(which: str) -> Iterator[dict[str, Any]]:
    todo = cases(which)
    library = Library(todo)
    for _ in range(200):
        library.call(todo[0])()
    for p in todo:
        yield {"problem": str(p), "seconds": library.seconds(p)}


def written(which: str) -> list[Written]:
    """Return what was predicted first, and what later code says if it was asked."""
    return first_and_since(DEVICE, f"{which}_predicted")


def timings(which: str) -> Written | None:
    """Return what was timed of a set; None while nobody has."""
    return stored(DEVICE, f"{which}_timed")


def pairs(which: str, predictions: Written) -> list[tuple[float, float]]:
    """Return each product's predicted and measured time [s]; ValueError if others were timed."""
    found = list(zip(predictions.rows, timings(which).rows, strict=True))
    if any(said["problem"] != seen["problem"] for said, seen in found):
        raise ValueError(f"{which}: other products were timed than predicted")
    return [(said["seconds"], seen["seconds"]) for said, seen in found]


def errors(which: str, predictions: Written) -> list[float]:
    """Return predicted ÷ measured − 1 of each product."""
    return [said / seen - 1 for said, seen in pairs(which, predictions)]


def rows(which: str) -> tuple[str, str]:
    """Tell a set's mean error in a sentence, and each product in a table."""
    every = written(which)
    off = [errors(which, predictions) for predictions in every]
    first = every[0]
    names = ("error", "since")[: len(every)]
    cells = [
        [said["problem"], ms(seen), *map(percent, each), f"`{said['kernel']}`", said["parts"]]
        for said, (_, seen), *each in zip(first.rows, pairs(which, first), *off, strict=True)
    ]
    how = ("off on average", "since")[: len(off)]
    told = "; ".join(f"{mean(each)} {of}" for each, of in zip(off, how, strict=True))
    head = ["product", "measured", *names, "kernel", "parts of k"]
    return f"{len(cells)} products, {told}", table(head, cells)


def main() -> int:
    asking, _ = parser("benchmarks.forecast.rows_anywhere", __doc__, DEVICE)
    asking.add_argument("set", choices=SETS)
    asked = asking.parse_args()
    before = origin(asked.device) if asked.predict else timed_at()
    rows = list(predicted(asked.set, asked.device) if asked.predict else timed(asked.set))
    write(asked.predict or asked.time, before, rows)
    print(f"{len(rows)} products in {asked.predict or asked.time}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
