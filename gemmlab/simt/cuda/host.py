"""The host's half of `cuda` without a GPU: kernels that are launched, arrays that are copied."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gemmlab.simt.launch import simulate

FORALL_THREADS = 256  # of a block where the caller leaves the choice


class SimulatedKernel:
    """A kernel defined with the stand-in: launched as on a GPU, it runs on the simulator.

    Numbers and NumPy arrays of the scopes around it are those of its first launch, as Numba
    freezes them when it compiles; the memory of a `DeviceArray` is read anew.
    """

    def __init__(self, py_func: Callable) -> None:
        self.py_func = py_func
        self.program: dict = {}  # the function and its device functions, rewritten when first met
        self.__name__ = py_func.__name__
        self.__doc__ = py_func.__doc__

    def __getitem__(self, launch: tuple) -> Callable:
        """kernel[grid, block, stream, shared_bytes], to be called with the arguments."""
        if not isinstance(launch, tuple) or not 2 <= len(launch) <= 4:
            raise TypeError(
                f"{self.__name__}[{launch!r}] does not say how to launch; use [grid, block], or "
                "[grid, block, stream, shared_bytes]"
            )
        grid, block, _, shared_bytes = (*launch, 0, 0)[:4] if len(launch) < 4 else launch

        def run(*args: object) -> Any:
            return simulate(self, grid, block, *args, shared_bytes=shared_bytes)

        return run

    def forall(self, tasks: int, tpb: int = 0, stream: Any = 0, sharedmem: int = 0) -> Callable:
        """A launch of at least `tasks` threads, in blocks of `tpb`."""
        threads = tpb or FORALL_THREADS
        return self[max(1, -(-tasks // threads)), threads, stream, sharedmem]

    def __call__(self, *args: object) -> Any:
        raise TypeError(f"launch it as {self.__name__}[grid, block](...)")


class DeviceArray(np.ndarray):
    """An array of the simulated GPU: NumPy's, with the copies that a real one needs."""

    def copy_to_host(self, ary: np.ndarray | None = None, stream: Any = 0) -> np.ndarray:
        """A copy, in `ary` where that is given."""
        if ary is None:
            return np.array(self)
        ary[...] = self
        return ary

    def copy_to_device(self, ary: np.ndarray, stream: Any = 0) -> None:
        """Take the values of `ary`."""
        self[...] = ary


class Stream:
    """Launches and copies happen at once here: there is nothing to wait for."""

    def synchronize(self) -> None:
        """Wait for what was asked of the stream."""


def to_device(obj: Any, stream: Any = 0, copy: bool = True, to: Any = None) -> DeviceArray:
    """A copy of an array, in `to` where that is given."""
    if to is None:
        return np.array(obj).view(DeviceArray)
    to.copy_to_device(obj)
    return to


def device_array(
    shape: Any, dtype: Any = np.float64, strides: Any = None, order: str = "C", stream: Any = 0
) -> DeviceArray:
    """An array of zeros."""
    return np.zeros(shape, dtype, order).view(DeviceArray)


def device_array_like(ary: Any, stream: Any = 0) -> DeviceArray:
    """An array of zeros, of the shape and the type of another one."""
    return np.zeros_like(ary).view(DeviceArray)


def pinned_array(
    shape: Any, dtype: Any = np.float64, strides: Any = None, order: str = "C"
) -> np.ndarray:
    """An array of the host."""
    return np.zeros(shape, dtype, order)


def synchronize() -> None:
    """Wait for the simulated GPU, which has always finished."""


HOST = {
    f.__name__: f for f in (to_device, device_array, device_array_like, pinned_array, synchronize)
} | {"stream": Stream}
