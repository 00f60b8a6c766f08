"""Every statement and expression of the language: what a kernel stores on the GPU and simulated."""

import types
from collections.abc import Callable, Mapping

import numpy as np

from benchmarks.hardware import machine
from benchmarks.hardware.check import Check, Comparison, Measured
from benchmarks.samples.language_kernels import LANGUAGE, LAUNCHES, integers
from gemmlab import simulate
from gemmlab.device import Device
from gemmlab.instructions import host

KERNELS = {kernel.__name__: kernel for kernel in LANGUAGE}
FAULTS = {
    "views": "numba-cuda-mlir does not cut slices off at the array's ends",
    "casts_and_functions": "numba-cuda-mlir knows no max of three numbers",
}


def operands() -> tuple[np.ndarray, np.ndarray]:
    """The arrays of each launch: x, and an `out` full of a number that no kernel stores."""
    return integers(100), np.full(100, -77, np.float32)


def pieces(device: Device) -> Mapping[str, str]:
    return machine.left_out(KERNELS, FAULTS)


def measure(piece: str, device: Device) -> Measured:
    kernel = with_device_functions(KERNELS[piece])
    return {str(launch): machine.launch(kernel, *launch, operands())[-1] for launch in LAUNCHES}


def with_device_functions(kernel: Callable) -> Callable:
    """A kernel whose plain functions are device functions, which a GPU needs to be told."""
    scope = dict(kernel.__globals__)
    for name in kernel.__code__.co_names:
        if isinstance(scope.get(name), types.FunctionType):
            scope[name] = host.cuda().jit(device=True)(scope[name])
    return types.FunctionType(kernel.__code__, scope, kernel.__name__, None, kernel.__closure__)


def compare(piece: str, measured: Measured, device: Device) -> Comparison:
    found = Comparison()
    for launch in LAUNCHES:
        x, out = operands()
        simulate(KERNELS[piece], *launch, x, out)
        stored = measured[str(launch)]
        same = (stored == out) | (np.isnan(stored) & np.isnan(out))
        found.elements(str(launch), ~same, stored, out)
    return found


CHECK = Check(
    "language",
    "every construct of the language: the GPU's results and the simulator's",
    pieces,
    measure,
    compare,
    quick=("while_break_continue", "negative_indices", "arithmetic"),
)
