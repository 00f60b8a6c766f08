"""Kernels that are no GEMM: predicted with no GPU, then timed on one.

    python -m benchmarks.forecast.others --predict FILE [--device h100_sxm] [--kernels triad,scan]
    python -m benchmarks.forecast.others --time FILE [--kernels triad,scan]

Both write a file that is not there yet. What was predicted must be kept before anything is timed.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from benchmarks.forecast.others import timing
from benchmarks.forecast.others.case import Case, cases
from benchmarks.forecast.others.predicting import predicted
from benchmarks.forecast.written import origin, write


def rows(chosen: Iterable[Case], of: Callable[[Case], dict[str, Any]]) -> list[dict[str, Any]]:
    """What `of` says of each kernel, printed as it comes; one that fails does not end the rest."""
    made = []
    for case in chosen:
        try:
            made.append(of(case))
        except Exception as error:
            print(f"failed: {case.name}: {type(error).__name__}: {error}", flush=True)
        else:
            print(made[-1], flush=True)
    return made


def main() -> int:
    known = cases()
    parser = argparse.ArgumentParser(
        "benchmarks.forecast.others", description=__doc__.partition("\n")[0]
    )
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--predict", type=Path, metavar="FILE")
    what.add_argument("--time", type=Path, metavar="FILE")
    parser.add_argument("--device", default="h200", help="to predict for (default: %(default)s)")
    parser.add_argument("--kernels", default=",".join(known), help="names with commas")
    asked = parser.parse_args()
    chosen = [known[name] for name in asked.kernels.split(",")]
    if asked.predict:
        said = origin(asked.device)
        made = rows(chosen, lambda case: predicted(case, asked.device))
    else:
        said = timing.origin()
        made = rows(chosen, timing.timed)
    write(asked.predict or asked.time, said, made)
    return 0 if len(made) == len(chosen) else 1


if __name__ == "__main__":
    sys.exit(main())
