"""Kernels that are no GEMM: predicted with no GPU, then timed on one.

    python -m benchmarks.forecast.others --predict FILE [--set second] [--device h100_sxm]
    python -m benchmarks.forecast.others --time FILE [--set second]

Both write a file that is not there yet. What was predicted must be kept before anything is timed.
`--kernels triad,matvec:4096` asks for some kernels instead, at their own size or at another.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from typing import Any

from benchmarks.forecast.others import timing
from benchmarks.forecast.others.case import Case
from benchmarks.forecast.others.predicting import predicted
from benchmarks.forecast.others.sets import SETS, asked
from benchmarks.forecast.written import origin, parser, write


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
    asking, _ = parser("benchmarks.forecast.others", __doc__, "h200")
    which = asking.add_mutually_exclusive_group()
    which.add_argument("--set", choices=SETS, default="first", help="(default: %(default)s)")
    which.add_argument("--kernels", help="some kernels instead: name or name:size, with commas")
    given = asking.parse_args()
    try:
        names = given.kernels.split(",") if given.kernels else SETS[given.set]
        chosen = [asked(name) for name in names]
    except ValueError as error:
        asking.error(str(error))
    if given.predict:
        said = origin(given.device)
        made = rows(chosen, lambda case: predicted(case, given.device))
    else:
        said = timing.origin()
        made = rows(chosen, timing.timed)
    write(given.predict or given.time, said, made)
    return 0 if len(made) == len(chosen) else 1


if __name__ == "__main__":
    sys.exit(main())
