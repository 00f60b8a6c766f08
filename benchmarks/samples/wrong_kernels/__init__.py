"""Kernels with one fault each, and the misconception or slip that it stands for.

Each file holds a `kernel`, the `BASE` of `right_kernels` that it was made from, what is to be found
(`EXPECT`: a kind of hazard, or "values") and the mark `# fault` at the line of it.
"""

from importlib import import_module
from pathlib import Path
from types import ModuleType

import numpy as np

from benchmarks.samples.right_kernels import SHORT, trials
from gemmlab import simulate
from gemmlab.simt import HazardError

MAX_STEPS = 2000  # of the loops of a thread: enough for all that end

FILES = sorted(path for path in Path(__file__).parent.glob("*.py") if path.stem != "__init__")


def load(path: Path) -> ModuleType:
    """The module in one of `FILES`."""
    return import_module(f"{__name__}.{path.stem}")


def findings(kernel, base, launch=None, **options):
    """What each trial finds: a hazard, "values" for a wrong result, or None.

    Raises AssertionError where `simulate` collects a hazard and does not raise it.
    """
    for grid, block, args, is_right, shared_bytes, own in trials(base, launch, [SHORT]):
        kernel, options = own or kernel, {**options, "shared_bytes": shared_bytes}
        again = [a.copy() if isinstance(a, np.ndarray) else a for a in args]
        hazards = simulate(kernel, grid, block, *args, on_hazard="collect", **options).hazards
        if not hazards:
            yield None if is_right() else "values"
            continue
        try:
            simulate(kernel, grid, block, *again, **options)
        except HazardError as raised:
            found = raised.hazard
        else:
            raise AssertionError(f"collected, but not raised: {hazards[0]}")
        if (found.kind, found.line) != (hazards[0].kind, hazards[0].line):
            raise AssertionError(f"collected {hazards[0]}, but raised {found}")
        yield hazards[0]
