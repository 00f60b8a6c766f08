"""Plans: what a product does on a GPU, all but addresses. One is made for a kind of operands.

Making one takes Numba's compiler. With addresses it becomes calls of the driver, which are kept,
too: who multiplies again and again mostly gets the same memory. Neither changes afterwards, so that
threads may share them. The driver itself is called, because Numba's own launches take ten times as
long. Source: CUDA Driver API, sections Execution Control and Memory Management.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any, NamedTuple

import numpy as np

from gemmlab.here.driver import numba_cuda
from gemmlab.instructions.tensor_copies import map_bytes
from gemmlab.multiplication.arrays import contiguous
from gemmlab.multiplication.choosing import Choice


class Call(NamedTuple):
    """A call of the driver: what it is to do, in words, its function and arguments."""

    what: str
    function: Callable
    arguments: tuple


class Current:
    """The GPU where memory is taken and launches are queued meanwhile, in this thread.

    A class, because a generator of `contextlib` takes three times as long, and calls are short.
    """

    def __init__(self, device: int) -> None:
        self.device = device

    def __enter__(self) -> None:
        go([Call("be used", _driver().cuCtxPushCurrent, (_context(self.device),))])

    def __exit__(self, *_: object) -> None:
        _driver().cuCtxPopCurrent()


def go(calls: Iterable[Call]) -> None:
    """Make the calls; RuntimeError tells which one the driver refuses."""
    for what, function, arguments in calls:
        (status,) = function(*arguments)
        if status:
            raise RuntimeError(f"the GPU would not {what}: {status.name}")


def launching(name: str, function: Any, size: tuple[int, ...], stream: int, pointers: int) -> Call:
    """Return a launch of a kernel; size : of the grid and of a block, and shared memory [B].

    pointers : the address of the addresses of its arguments, which a launch reads before it returns
    """
    driver = _driver()
    arguments = (function, *size, driver.CUstream(stream), pointers, 0)
    return Call(f"launch {name}", driver.cuLaunchKernel, arguments)


def filling(address: int, size: int, stream: int) -> Call:
    """Zeros for so many bytes."""
    driver = _driver()
    return Call("fill memory", driver.cuMemsetD8Async, (address, 0, size, driver.CUstream(stream)))


def copying(address: int, held: bytes, stream: int) -> Call:
    """Return a copy of bytes of the host, which the driver has read when it returns."""
    driver = _driver()
    arguments = (address, held, len(held), driver.CUstream(stream))
    return Call("copy memory", driver.cuMemcpyHtoDAsync, arguments)


def function_of(compiled: Any) -> Any:
    """Return a kernel that Numba compiled, as `launch` takes it, loaded on the current GPU."""
    compiled.bind()
    return _driver().CUfunction(int(compiled.library.get_cufunc().handle))


@cache
def _driver() -> Any:
    from cuda.bindings import driver

    return driver


@cache
def _context(device: int) -> Any:
    """Return the context of a GPU that its libraries share."""
    return numba_cuda().gpus[device].get_primary_context().handle


WORKSPACE = 3  # among the addresses of a call: those of A, B and C, and of the memory beside them
KEPT = 512  # addresses and streams with their calls
LONG = 100  # calls, beyond which they are made anew: queueing them takes longer
WORD = 8  # bytes of an argument, as Numba's kernels take arrays apart


@dataclass(frozen=True)
class Block:
    """An array that a launch is given, from one of the call's addresses on.

    of : which address; offset : from there on [B]; strides : [B]
    """

    of: int
    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: str

    @classmethod
    def rows_after_rows(cls, of: int, offset: int, shape: tuple[int, ...], dtype: str) -> Block:
        """Make a block without gaps."""
        return cls(of, offset, shape, contiguous(shape, np.dtype(dtype).itemsize), dtype)

    @property
    def itemsize(self) -> int:
        return np.dtype(self.dtype).itemsize

    @property
    def bytes(self) -> int:
        return int(np.prod(self.shape)) * self.itemsize

    @property
    def is_contiguous(self) -> bool:
        """Whether there are no gaps; a stride along one element does not count."""
        expected = contiguous(self.shape, self.itemsize)
        return all(
            size == 1 or stride == whole
            for size, stride, whole in zip(self.shape, self.strides, expected, strict=True)
        )

    def __getitem__(self, rows: slice) -> Block:
        """Take the rows of a matrix from rows.start to rows.stop."""
        shape = (rows.stop - rows.start, *self.shape[1:])
        offset = self.offset + rows.start * self.strides[0]
        return Block(self.of, offset, shape, self.strides, self.dtype)

    def words(self) -> list[int]:
        """The array as Numba's kernels take it: two pointers of its own, sizes, the address, and
        shape and strides.
        """
        items = int(np.prod(self.shape))
        return [0, 0, items, self.itemsize, self.offset, *self.shape, *self.strides]


ADDRESS = 4  # of the words of an array


@dataclass(frozen=True, eq=False)
class Zeros:
    """Bytes of the workspace that become zero."""

    offset: int
    size: int

    def call(self, stream: int, pointers: int, workspace: int) -> Call:
        return filling(workspace + self.offset, self.size, stream)


@dataclass(frozen=True, eq=False)
class Maps:
    """Tensor maps, written to the workspace: of matrices there, and the rows of their boxes."""

    offset: int
    matrices: tuple[tuple[Block, int], ...]

    def call(self, stream: int, pointers: int, workspace: int) -> Call:
        held = [
            map_bytes(workspace + x.offset, x.shape, x.dtype, rows) for x, rows in self.matrices
        ]
        return copying(workspace + self.offset, b"".join(held), stream)


@dataclass(frozen=True, eq=False)
class Launch:
    """A launch of a compiled kernel.

    name : of the kernel; owner : what keeps it loaded; function : as the driver knows it
    size : of the grid, of a block, and dynamic shared memory [B]
    first : the number of its first word among the plan's
    """

    name: str
    owner: Any
    function: Any
    size: tuple[int, ...]
    first: int

    def call(self, stream: int, pointers: int, workspace: int) -> Call:
        at = pointers + WORD * self.first
        return launching(self.name, self.function, self.size, stream, at)


@dataclass(frozen=True, eq=False)
class Plan:
    """A product queues these works on a stream, in this order.

    words : the arguments of all launches; at, of : where to add which of the addresses
    size : of the workspace [B]
    """

    choice: Choice
    works: tuple[Zeros | Maps | Launch, ...]
    words: np.ndarray
    at: np.ndarray
    of: np.ndarray
    size: int

    def bound(self, stream: int, addresses: tuple[int, ...]) -> Bound:
        """Return the calls of the driver for operands, result and workspace at these addresses."""
        bind = _bound if len(self.works) <= LONG else _bound.__wrapped__
        return bind(self, stream, addresses)


@dataclass(frozen=True, eq=False)
class Bound:
    """Calls of the driver, and what their arguments point to."""

    calls: tuple[Call, ...]
    words: np.ndarray
    pointers: np.ndarray


@lru_cache(maxsize=KEPT)
def _bound(plan: Plan, stream: int, addresses: tuple[int, ...]) -> Bound:
    words = plan.words.copy()
    words[plan.at] += np.array(addresses, np.int64)[plan.of]
    pointers = words.ctypes.data + WORD * np.arange(len(words))  # the driver asks for these
    start, workspace = pointers.ctypes.data, addresses[WORKSPACE]
    return Bound(tuple(work.call(stream, start, workspace) for work in plan.works), words, pointers)
