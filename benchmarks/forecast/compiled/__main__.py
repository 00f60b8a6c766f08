"""Kernels of nvcc and Triton: compiled once, predicted with no GPU, then timed on one.

    python -m benchmarks.forecast.compiled --build PYTHON
    python -m benchmarks.forecast.compiled --predict FILE [--device h100_sxm] [--kernels saxpy,gelu]
    python -m benchmarks.forecast.compiled --time FILE [--kernels saxpy,gelu]

The first one keeps the cubins that PYTHON's Triton and nvcc make; the others write a file that is
not there yet. What was predicted must be kept before anything is timed.
"""

from __future__ import annotations

import sys
from pathlib import Path

from benchmarks.forecast.compiled import CASES, cubins, timing
from benchmarks.forecast.compiled.predicting import predicted
from benchmarks.forecast.others.__main__ import rows
from benchmarks.forecast.others.timing import origin as timed_at
from benchmarks.forecast.written import origin, parser, write


def main() -> int:
    asking, what = parser("benchmarks.forecast.compiled", __doc__, "h200")
    what.add_argument("--build", type=Path, metavar="PYTHON")
    asking.add_argument("--kernels", default=",".join(CASES), help="names with commas")
    asked = asking.parse_args()
    chosen = [CASES[name] for name in asked.kernels.split(",")]
    if asked.build:
        cubins.build(CASES.values(), asked.build)
        return 0
    if asked.predict:
        said = origin(asked.device)
        made = rows(chosen, lambda case: predicted(case, asked.device))
    else:
        said = timed_at()
        made = rows(chosen, timing.timed)
    write(asked.predict or asked.time, said, made)
    return 0 if len(made) == len(chosen) else 1


if __name__ == "__main__":
    sys.exit(main())
