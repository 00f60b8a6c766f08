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


def words_of(kind):
    """How many words an argument of a type has."""
    if isinstance(kind, tuple):
        return sum(map(words_of, kind))
    return 5 + 2 * kind.ndim if isinstance(kind, Array) else 1


class Words:
    """The arguments of a launch, as the driver has read them when it returns."""

    def __init__(self, pointers, kinds):
        found = ctypes.cast(pointers, ctypes.POINTER(ctypes.POINTER(ctypes.c_int64)))
        self.held = np.array([found[n][0] for n in range(sum(map(words_of, kinds)))], np.int64)
        self.next = 0

    def word(self, dtype=np.int64):
        self.next += 1
        return self.held[self.next - 1 : self.next].view(dtype)[0].item()

    def argument(self, kind):
        """An argument of a type, as Numba's kernels take it from words."""
        if isinstance(kind, tuple):
            return tuple(self.argument(each) for each in kind)
        if not isinstance(kind, Array):
            return np.float32(self.word(np.float32)) if kind == "float32" else self.word()
        assert (self.word(), self.word()) == (0, 0)
        items, itemsize, address = (self.word() for _ in range(3))
        shape, strides = (tuple(self.word() for _ in range(kind.ndim)) for _ in range(2))
        assert items == np.prod(shape)
        assert itemsize == np.dtype(kind.dtype).itemsize
        found = at(address, shape, strides if kind.layout == "A" else None, kind.dtype)
        return MAPS[found.tobytes()] if kind.dtype == "uint8" else found


class Driver:
    """As much of `cuda.bindings.driver` as a plan asks for; `log` has what it was asked.

    capturing : a stream of the caller's that records; recording : what a stream of ours records
    """

    CUstreamCaptureMode = staticmethod(lambda mode: mode)
    capturing = recording = None

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
        self.queue(("memset", size, stream), lambda: ctypes.memset(address, value, size))
        return (0,)

    def cuLaunchKernel(self, function, *told):
        *size, shared, stream, pointers, extra = told
        assert extra == 0
        words = Words(pointers, function.types)

        def go():
            words.next = 0
            arguments = [words.argument(kind) for kind in function.types]
            simulate(function.function, size[:3], size[3:], *arguments, shared_bytes=shared)

        self.queue(("launch", tuple(size), stream, shared), go)
        return (0,)

    def queue(self, told, go):
        if self.recording is not None and told[2] == OWN:
            self.recording.append(go)
            return
        self.log.append(told)
        go()

    def cuStreamIsCapturing(self, stream):
        return 0, int(stream == self.capturing)

    def cuStreamCreate(self, flags):
        return 0, OWN

    def cuStreamDestroy(self, stream):
        return (0,)

    def cuStreamBeginCapture(self, stream, mode):
        self.recording = []
        return (0,)

    def cuStreamEndCapture(self, stream):
        found, self.recording = self.recording, None
        return 0, found

    def cuGraphInstantiate(self, graph, flags):
        return 0, graph

    def cuGraphDestroy(self, graph):
        return (0,)

    def cuGraphExecDestroy(self, graph):
        return (0,)

    def cuGraphLaunch(self, graph, stream):
        self.log.append(("graph", len(graph), stream))
        for go in graph:
            go()
        return (0,)


OWN = 4242  # a stream that records for a graph
