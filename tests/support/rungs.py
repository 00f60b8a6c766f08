"""A rung of the ladder on the simulator, with everything that is to hold of a launch."""

import numpy as np

from gemmlab import simulate
from gemmlab.model import traffic

TURING = (7, 5)  # the last capability without asynchronous copies


def arguments(problem, operands):
    """The arguments of a kernel, with C poisoned where it must not be read."""
    scalar = problem.numpy_dtype.type
    c = operands.c.copy() if problem.beta != 0 else np.full_like(operands.c, np.nan)
    return scalar(problem.alpha), operands.a, operands.b, scalar(problem.beta), c


def simulated(kernel, problem, operands, tiling=None, capability=None):
    """C and the counters; a hazard is an error."""
    tiling = kernel.choose(tiling)
    args = arguments(problem, operands)
    report = simulate(
        kernel.function(problem, tiling, capability),
        *kernel.launch(problem, tiling),
        *args,
        shared_bytes=kernel.shared(problem, tiling),
    )
    assert report.hazards == []
    return args[-1], report.counters


def check(kernel, problem, tiling=None, capability=None):
    """Without a hazard, a rung is exact on whole numbers, and counts what is predicted."""
    tiling = kernel.choose(tiling)
    operands = problem.operands(kind="integers")
    result, counted = simulated(kernel, problem, operands, tiling, capability)
    told = f"{kernel.name} {problem} {tiling} {capability}"
    assert np.array_equal(result, problem.reference(operands)), told
    work = kernel.work(problem, tiling)
    if capability == TURING:
        work = traffic.warp_tiled(problem, tiling, asynchronous=False)
    predicted = work.counters
    wrong = {
        name: (predicted[name], counted[name])
        for name in {*predicted, *counted}
        if predicted[name] != counted[name]
    }
    assert not wrong, f"{told}: (predicted, counted) = {wrong}"
    return counted
