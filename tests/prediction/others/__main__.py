"""Kernels that are no GEMM: predicted with no GPU, then timed on one.

    python -m tests.prediction.others --predict FILE [--device h100_sxm] [--kernels triad,scan]
    python -m tests.prediction.others --time FILE [--kernels triad,scan]

Both write a file that is not there yet. What was predicted must be kept before anything is timed.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from tests.prediction.others import timing
from tests.prediction.others.case import Case, cases
from tests.prediction.others.predicting import predicted
from tests.prediction.written import origin, write


def rows(chosen: Iterable[Case], of: Callable[[Case], dict[str, Any]]) -> list[dict[str, Any]]:
    """What `of` says of each kernel, printed as it comes."""
    made = []
    for case in chosen:
        made.append(of(case))
        shown = {key: value for key, value in made[-1].items() if key != "ns"}
        print(shown, flush=True)
    return made


def main() -> None:
    known = cases()
    parser = argparse.ArgumentParser(
        "tests.prediction.others", description=__doc__.partition("\n")[0]
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
        write(asked.predict, said, rows(chosen, lambda case: predicted(case, asked.device)))
    else:
        write(asked.time, timing.origin(), rows(chosen, timing.timed))


if __name__ == "__main__":
    main()
