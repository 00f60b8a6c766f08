"""A stand-in for the driver's queue: it reads arguments where it is pointed, and simulates."""

import ctypes
from types import SimpleNamespace

import numpy as np

from gemmlab import simulate
from gemmlab.instructions.tensor_copies import TensorMap

MAPS = {}  # what a tensor map says, by its bytes


class Array:
    """Numba's type of an array."""

    def __init__(self, dtype, ndim, layout):
        self.dtype, self.ndim, self.layout = dtype, ndim, layout

    def __eq__(self, other):
        return vars(self) == vars(other)

    def __hash__(self):
        return hash((self.dtype, self.ndim, self.layout))


TYPES = SimpleNamespace(
    Array=Array, UniTuple=lambda kind, count: (kind,) * count, int64="int64", float32="float32",
    float16="float16", int32="int32", uint8="uint8",
)  # fmt: skip


def described(address, shape, dtype, rows):
    """128 bytes that stand for the tensor map of a matrix."""
    told = f"{address} {shape} {dtype} {rows}".ljust(128).encode()
    MAPS[told] = TensorMap(at(address, shape, None, dtype), rows)
    return told


def at(address, shape, strides, dtype):
    """The array at an address."""
    told = {"data": (address, False), "shape": shape, "strides": strides, "version": 3}
    told["typestr"] = np.dtype(dtype).str
    return np.asarray(SimpleNamespace(__array_interface__=told))


class Words:
    """The arguments of a launch, read one after the other."""

    def __init__(self, pointers):
        self.pointers = ctypes.cast(pointers, ctypes.POINTER(ctypes.c_void_p))
        self.next = 0

    def word(self, kind=ctypes.c_int64):
        found = ctypes.cast(self.pointers[self.next], ctypes.POINTER(kind))[0]
        self.next += 1
        return found

    def argument(self, kind):
        """An argument of a type, as Numba's kernels take it from words."""
        if isinstance(kind, tuple):
            return tuple(self.argument(each) for each in kind)
        if not isinstance(kind, Array):
            return np.float32(self.word(ctypes.c_float)) if kind == "float32" else self.word()
        assert (self.word(), self.word()) == (0, 0)
        items, itemsize, address = (self.word() for _ in range(3))
        shape, strides = (tuple(self.word() for _ in range(kind.ndim)) for _ in range(2))
        assert items == np.prod(shape)
        assert itemsize == np.dtype(kind.dtype).itemsize
        found = at(address, shape, strides if kind.layout == "A" else None, kind.dtype)
        return MAPS[found.tobytes()] if kind.dtype == "uint8" else found


class Driver:
    """As much of `cuda.bindings.driver` as a plan asks for; `log` has what it was asked."""

    def __init__(self, log):
        self.log = log

    def CUstream(self, pointer):
        return pointer

    def cuCtxPushCurrent(self, context):
        self.log.append(("push", context))
        return (0,)

    def cuCtxPopCurrent(self):
        self.log.append(("pop",))
        return (0,)

    def cuMemsetD8Async(self, address, value, size, stream):
        self.log.append(("memset", size, stream))
        ctypes.memset(address, value, size)
        return (0,)

    def cuMemcpyHtoDAsync(self, address, held, size, stream):
        self.log.append(("copy", stream))
        ctypes.memmove(address, held, size)
        return (0,)

    def cuLaunchKernel(self, function, *told):
        *size, shared, stream, pointers, extra = told
        self.log.append(("launch", tuple(size), stream, shared))
        assert extra == 0
        words = Words(pointers)
        arguments = [words.argument(kind) for kind in function.types]
        simulate(function.function, size[:3], size[3:], *arguments, shared_bytes=shared)
        return (0,)
