"""Record what the warps of rungs do, for explorers that simulate an SM at once.

    python -m benchmarks.ready

Executes the recorded listings of all rungs that the timelines show and writes
gemmlab/recorded/h200/ready.json, without a GPU, in about a minute. To be run again after a change
of a rung, of the emulator of compiled code or of the facts of the SM: a test compares.
"""

from itertools import chain

from gemmlab.compiled.forecast import ready
from gemmlab.compiled.forecast.rung_listings import usual
from gemmlab.explorers.stage_timeline import KERNELS
from gemmlab.explorers.timeline import LADDERS, PROBLEM
from gemmlab.here.driver import stamp
from gemmlab.measure import store

RUNGS = tuple(dict.fromkeys([*chain(*LADDERS), *KERNELS]))


def main() -> None:
    """Execute all rungs and write the file."""
    shown = {}
    for kernel in RUNGS:
        problem = usual(kernel, PROBLEM)
        shown[kernel, problem] = ready.executed_rung(kernel, problem)
        print(f"{kernel.name}: {shown[kernel, problem].seconds:.3e} s", flush=True)
    ready.write(shown, stamp("date", "gemmlab"), store.ROOT)
    print(f"wrote {ready.path_of()}")


if __name__ == "__main__":
    main()
