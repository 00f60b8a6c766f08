"""A rung of the ladder on the simulator, with everything that is to hold of a launch."""

import math

import numpy as np

from gemmlab import device as load_device, simulate
from gemmlab.device import RECORDED
from gemmlab.measure.backends.checking import workspace
from gemmlab.model.counters import TransactionCounters


def arguments(problem, operands):
    """The arguments of a kernel, with C poisoned where it must not be read."""
    alpha, beta = problem.scalars()
    return alpha, operands.a, operands.b, beta, problem.poisoned(operands.c)


def predicted(kernel, problem, tiling):
    """The counters that are predicted of a kernel on the GPU that is simulated."""
    blocks = math.prod(kernel.launch(problem, tiling, load_device(RECORDED))[0])
    return kernel.work(problem, tiling).with_blocks(blocks).counters


def simulated(kernel, problem, operands, tiling=None, capability=None, device=None):
    """C and the counters of launches without a hazard."""
    tiling = kernel.choose(tiling)
    args = arguments(problem, operands)
    shared, counted = workspace(kernel, problem, tiling), TransactionCounters()
    for one in kernel.launches:
        report = simulate(
            one.function(problem, tiling, capability),
            *one.launch(problem, tiling, load_device(RECORDED)),
            *args,
            *shared,
            shared_bytes=one.dynamic_shared_bytes(problem, tiling),
            device=device,
        )
        assert report.hazards == []
        counted.update(report.counters)
    return args[-1], counted


def check(kernel, problem, tiling=None, capability=None):
    """The counters of a launch that has no hazard, is exact on integers and counts as predicted."""
    tiling, operands = kernel.choose(tiling), problem.operands(kind="integers")
    result, counted = simulated(kernel, problem, operands, tiling, capability)
    told = f"{kernel.name} {problem} {tiling}"
    assert np.array_equal(result, problem.reference(operands)), told
    gpu = {} if capability is None else {"capability": capability}
    predicted = kernel.work(problem, tiling, **gpu).counters
    wrong = {
        name: (predicted[name], counted[name])
        for name in {*predicted, *counted}
        if predicted[name] != counted[name]
    }
    assert not wrong, f"{told}: (predicted, counted) = {wrong}"
    return counted
