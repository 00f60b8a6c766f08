"""Kernels that others published: predicted from their cubins with no GPU, then timed on one.

    python -m benchmarks.forecast.public --cubins FOLDER --predict FILE [--device h100_sxm]
    python -m benchmarks.forecast.public --cubins FOLDER --time FILE [--kernels spmv,rope]

Both write a file that is not there yet. What was predicted must be kept before anything is timed.
"""

from __future__ import annotations

import sys
from pathlib import Path

from benchmarks.forecast.compiled import timing
from benchmarks.forecast.compiled.predicting import predicted
from benchmarks.forecast.others.__main__ import rows
from benchmarks.forecast.others.timing import origin as timed_at
from benchmarks.forecast.public import CASES, built
from benchmarks.forecast.written import origin, parser, write


def main() -> int:
    asking, _ = parser("benchmarks.forecast.public", __doc__, "h100_sxm")
    asking.add_argument("--cubins", type=Path, metavar="FOLDER", required=True)
    asking.add_argument("--kernels", default=",".join(CASES), help="names with commas")
    asked = asking.parse_args()
    chosen = [CASES[name] for name in asked.kernels.split(",")]
    if asked.predict:
        said = origin(asked.device)
        made = rows(
            chosen,
            lambda case: predicted(case, asked.device, code=built(asked.cubins, case.name)),
        )
    else:
        said = timed_at()
        made = rows(chosen, lambda case: timing.timed(case, code=built(asked.cubins, case.name)))
    write(asked.predict or asked.time, said, made)
    return 0 if len(made) == len(chosen) else 1


if __name__ == "__main__":
    sys.exit(main())
