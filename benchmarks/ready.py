"""Record what the warps of rungs do, for explorers that simulate an SM at once, and the outcomes.

    python -m benchmarks.ready

Executes the recorded listings of all rungs that the timelines show and writes
gemmlab/recorded/h200/ready.json, and what an SM then did, for a Python without Numba, outcomes.json
beside it; without a GPU, in about a minute. To be run again after a change of a rung, of the
emulator of compiled code or of the simulated SM or its facts: a test compares.
"""

from collections.abc import Mapping
from itertools import chain
from typing import Any
from unittest.mock import patch

from gemmlab import Gemm, kernels
from gemmlab.compiled.forecast import kernel as kernel_times, ready, steps
from gemmlab.compiled.forecast.rung_listings import usual
from gemmlab.compiled.forecast.rungs import execute_rung, forecast_rung
from gemmlab.compiled.sm import outcomes, simulation
from gemmlab.compiled.sm.result import Result
from gemmlab.device import RECORDED
from gemmlab.explorers.stage_timeline import KERNELS
from gemmlab.explorers.timeline import LADDERS, PROBLEM
from gemmlab.here.driver import stamp
from gemmlab.kernels import Kernel
from gemmlab.measure import store

IN_CHAPTER = Gemm(4096, 4096, 4096)  # whose time chapter 6 predicts
RUNGS = tuple(dict.fromkeys([*chain(*LADDERS), *KERNELS]))


def main() -> None:
    """Execute all rungs and write the file."""
    shown = {}
    for kernel in RUNGS:
        problem = usual(kernel, PROBLEM)
        shown[kernel, problem] = ready.executed_rung(kernel, problem)
        print(f"{kernel.name}: {shown[kernel, problem].seconds:.3e} s", flush=True)
    told = stamp("date", "gemmlab")
    ready.write(shown, told, store.ROOT)
    print(f"wrote {ready.path_of()}")
    outcomes.write(outcomes_of(shown), told)
    print(f"wrote {outcomes.path_of()}")


def outcomes_of(shown: Mapping[tuple[Kernel, Gemm], ready.Shown]) -> dict[str, Result]:
    """Simulate what the chapters show of rungs, and keep each outcome under its key."""
    found = {}

    def simulate(*given: Any, **options: Any) -> Result:
        result = simulation.simulate(*given, **options)
        found[simulation.outcome_key(*given, **options)] = result
        return result

    with (
        patch.object(steps, "simulate", simulate),
        patch.object(kernel_times, "simulate", simulate),
    ):
        for (kernel, problem), one in shown.items():
            steps.steps(one.runs, kernel.choose(None, problem).block[2])
        kernel_times.simulated.cache_clear()
        forecast_rung(IN_CHAPTER, execute_rung(IN_CHAPTER, RECORDED, kernels.register_tiled))
    return found


if __name__ == "__main__":
    main()
