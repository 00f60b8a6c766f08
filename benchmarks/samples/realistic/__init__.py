"""Kernels of the kinds that GPU courses and textbooks have, a topic a file.

Each function of a topic whose parameter is `launch` is a case: it launches its kernels, as
`launch(kernel, grid, block, *arguments)`, and returns what they left beside what is right: pairs,
with the relative difference allowed as a third part where rounding decides.
"""

import inspect
from importlib import import_module
from pathlib import Path

import numpy as np

from gemmlab import simulate

MAX_STEPS = 2000  # of the loops of a thread: enough for all that end
TOPICS = [
    import_module(f"{__name__}.{p.stem}")
    for p in sorted(Path(__file__).parent.glob("*.py"))
    if p.stem != "__init__"
]
CASES = {
    f"{topic.__name__.rpartition('.')[2]}.{name}": function
    for topic in TOPICS
    for name, function in vars(topic).items()
    if inspect.isfunction(function) and list(inspect.signature(function).parameters) == ["launch"]
}

# Cases that have hazards which are no fault, and why.
BENIGN = {
    # threads of one level give a vertex the same number, whoever reads it in between
    "graphs.breadth_first_level_by_level": {"global-race"},
}


def pairs(result):
    """What a case returned, as (left, right, tolerance)."""
    for left, right, *tolerance in result if isinstance(result, list) else [result]:
        left, right = np.asarray(left), np.asarray(right)
        is_float = left.dtype.kind in "fc"
        default = 64 * np.finfo(left.dtype).eps if is_float else 0
        yield left, right, tolerance[0] if tolerance else default


def is_right(result) -> bool:
    """Whether all that a case returned is as it should be."""
    return all(
        left.shape == right.shape
        and (
            np.allclose(left, right, rtol=tolerance, atol=tolerance * np.abs(right).max())
            if tolerance
            else np.array_equal(left, right)
        )
        for left, right, tolerance in pairs(result)
    )


def simulated(case):
    """What a case returned, and the reports of its launches."""
    reports = []

    def launch(kernel, grid, block, *arguments, shared_bytes=0):
        options = {"shared_bytes": shared_bytes, "on_hazard": "collect", "max_steps": MAX_STEPS}
        reports.append(simulate(kernel, grid, block, *arguments, **options))

    return case(launch), reports
