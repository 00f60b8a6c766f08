"""Where the launches of a product run: on a GPU, in the order of a stream, or on the simulator."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np

from gemmlab.backends import compiled
from gemmlab.detection import detect
from gemmlab.driver import numba_cuda
from gemmlab.instructions import tensor_map
from gemmlab.kernels.kernel import Dim
from gemmlab.multiplication.stacks import Stack
from gemmlab.simt import simulate


@dataclass(frozen=True)
class Step:
    """A launch: what builds its kernel, from what, and how it is launched.

    frozen : keyword arguments of `build`; options : of `cuda.jit`, beside the bound on threads
    shared_bytes : dynamic shared memory of a block [B]
    """

    build: Callable[..., Callable]
    frozen: dict[str, Any]
    grid: Dim
    block: Dim
    shared_bytes: int = 0
    options: dict[str, Any] = field(default_factory=dict)


class Simulated:
    """The simulated GPU, with NumPy's arrays as its memory."""

    capability = None  # it has every instruction

    def empty(self, shape: tuple[int, ...], dtype: str) -> np.ndarray:
        """An array; it holds NaN or the like, so that what nobody wrote shows."""
        return np.full(shape, np.array(np.nan, dtype) if dtype != "int32" else -1, dtype)

    def zeros(self, shape: tuple[int, ...], dtype: str) -> np.ndarray:
        """An array of zeros."""
        return np.zeros(shape, dtype)

    def view(self, stack: Stack, dimensions: int = 3) -> np.ndarray:
        """A stack, or a matrix alone, as an argument of kernels."""
        return np.asarray(_Exported(stack, "__array_interface__", dimensions))

    def map(self, array: np.ndarray, rows: int) -> Any:
        """The tensor map of an array."""
        return tensor_map(array, rows)

    def launch(self, step: Step, *arguments: Any) -> None:
        """Run a kernel; HazardError where it does something wrong."""
        kernel = step.build(**step.frozen)
        simulate(kernel, step.grid, step.block, *arguments, shared_bytes=step.shared_bytes)


class Gpu:
    """A GPU, by Numba-CUDA, on a stream.

    allocate : (shape, dtype) -> an array of the caller's library, from its pool of memory
    stream : the address of a CUDA stream; 0 is the default one
    """

    def __init__(self, allocate: Callable[[tuple[int, ...], str], Any], stream: int = 0) -> None:
        self.cuda, self.allocate = numba_cuda(), allocate
        self.capability = detect().compute_capability
        self.stream = self.cuda.external_stream(stream) if stream else 0

    def empty(self, shape: tuple[int, ...], dtype: str) -> Any:
        """An array on the GPU that holds anything."""
        return self.cuda.as_cuda_array(self.allocate(shape, dtype), sync=False)

    def zeros(self, shape: tuple[int, ...], dtype: str) -> Any:
        """An array of zeros on the GPU."""
        array = self.empty(shape, dtype)
        self.cuda.cudadrv.driver.device_memset(array, 0, array.nbytes, self.stream)
        return array

    def view(self, stack: Stack, dimensions: int = 3) -> Any:
        """A stack, or a matrix alone, as an argument of kernels."""
        exported = _Exported(stack, "__cuda_array_interface__", dimensions)
        return self.cuda.as_cuda_array(exported, sync=False)

    def map(self, array: Any, rows: int) -> Any:
        """The tensor map of an array, made once for the same place and shape."""
        place = array.__cuda_array_interface__["data"][0], array.shape, array.dtype.str
        return _map(self.cuda.get_current_device().id, *place, rows)

    def launch(self, step: Step, *arguments: Any) -> None:
        """Queue a launch on the stream."""
        frozen, options = (tuple(sorted(d.items())) for d in (step.frozen, step.options))
        kernel = _kernel(step.build, frozen, math.prod(step.block), options)
        if step.shared_bytes:
            _allow(kernel, tuple(map(kernel.typeof_pyval, arguments)), step.shared_bytes)
        kernel[step.grid, step.block, self.stream, step.shared_bytes](*arguments)


class _Exported:
    """An object with an array interface, and what keeps its memory."""

    def __init__(self, stack: Stack, name: str, dimensions: int) -> None:
        self.owner = stack.owner
        setattr(self, name, stack.interface(dimensions))


class _Matrix:
    """A matrix in a GPU's memory, row by row, as `tensor_map` asks for one."""

    def __init__(self, address: int, shape: tuple[int, int], dtype: str) -> None:
        self.shape, self.dtype, self.ndim = shape, np.dtype(dtype), 2
        self.strides = shape[1] * self.dtype.itemsize, self.dtype.itemsize
        self.__cuda_array_interface__ = {"data": (address, False)}


@lru_cache(maxsize=512)
def _map(device: int, address: int, shape: tuple[int, int], dtype: str, rows: int) -> Any:
    """A map says where a matrix is and what shape it has, nothing of what is in it."""
    return tensor_map(_Matrix(address, shape, dtype), rows)


@lru_cache(maxsize=256)
def _kernel(build: Callable, frozen: tuple, threads: int, options: tuple) -> Callable:
    """A kernel for Numba to compile, made once for these arguments."""
    bounds = {"launch_bounds": threads, **dict(options)}
    return numba_cuda().jit(**bounds)(build(**dict(frozen)))


@lru_cache(maxsize=256)
def _allow(kernel: Callable, signature: tuple, shared_bytes: int) -> None:
    """Let a kernel be launched with more than 48 KB of shared memory a block."""
    function = kernel.compile(signature).library.get_cufunc()
    compiled.allow_shared(function, detect(), shared_bytes)
