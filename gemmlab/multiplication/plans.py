"""Plans: what a product does on a GPU, all but addresses. One is made for a kind of operands.

Making one takes Numba's compiler. With addresses it becomes calls of the driver, which are kept,
too, and become one CUDA graph where they come back. Their arguments do not change afterwards, so
that threads may share them. The driver itself is called, because Numba's own launches take ten
times as long. Source: CUDA Driver API, sections Execution Control, Memory Management and Graphs.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache, lru_cache
from threading import Lock
from typing import Any, NamedTuple

import numpy as np

from gemmlab.instructions import host
from gemmlab.instructions.tensor_copies import map_bytes
from gemmlab.multiplication.arrays import address_of, contiguous
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
        (status,) = _driver().cuCtxPushCurrent(_context(self.device))
        if status:
            raise refused("be used", status)

    def __exit__(self, *_: object) -> None:
        _driver().cuCtxPopCurrent()


def go(calls: Iterable[Call]) -> None:
    """Make the calls; RuntimeError tells which one the driver refuses."""
    for what, function, arguments in calls:
        (status,) = function(*arguments)
        if status:
            raise refused(what, status)


def refused(what: str, status: Any) -> RuntimeError:
    """Say what the driver would not do."""
    return RuntimeError(f"the GPU would not {what}: {status.name}")


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


def is_recording(stream: int) -> bool:
    """Whether what is queued on a stream is recorded for a graph of the caller's, and not done."""
    status, state = _driver().cuStreamIsCapturing(stream)
    return bool(status or state)


class Graph:
    """Recorded calls, which a single one launches on a stream; the driver forgets them with it."""

    def __init__(self, executable: Any, stream: Any) -> None:
        driver = _driver()
        self.calls = (Call("launch a graph", driver.cuGraphLaunch, (executable, stream)),)
        # At the end of a program the driver forgets everything by itself.
        weakref.finalize(self, driver.cuGraphExecDestroy, executable).atexit = False


def recorded_graph(calls_on: Callable[[int], Iterable[Call]], stream: int) -> Graph | None:
    """Record the calls on a stream as a graph; None where the driver will not.

    A stream of its own records them, so that the caller's is left alone.
    """
    driver = _driver()
    status, own = driver.cuStreamCreate(NON_BLOCKING)
    if status:
        return None
    try:
        (status,) = driver.cuStreamBeginCapture(own, driver.CUstreamCaptureMode(OF_THREAD))
        if status:
            return None
        try:
            go(calls_on(int(own)))
        finally:
            status, graph = driver.cuStreamEndCapture(own)
        if status:
            return None
        status, executable = driver.cuGraphInstantiate(graph, 0)
        driver.cuGraphDestroy(graph)
        return None if status else Graph(executable, driver.CUstream(stream))
    finally:
        driver.cuStreamDestroy(own)


@cache
def _driver() -> Any:
    from cuda.bindings import driver

    return driver


@cache
def _context(device: int) -> Any:
    """Return the context of a GPU that its libraries share."""
    return host.cuda().gpus[device].get_primary_context().handle


# Among the addresses of a call: those of A, B and C, of the memory beside them, and of B's halves.
WORKSPACE, HALVES = 3, 4
KEPT = 256  # addresses and streams with their calls
OFTEN = 3  # calls, after which a graph is made: it takes as long as ten of them
NON_BLOCKING, OF_THREAD = 1, 1  # flags of a stream, and of what may be called while it records
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

    def words(self, package: str) -> tuple[list[int], tuple[int, ...]]:
        """The array as kernels of a compiler take it, and which of these words are addresses.

        Numba-CUDA: two pointers of its own, sizes, the address, shape and strides.
        numba-cuda-mlir: the address twice, an offset, shape and strides in elements.
        """
        if package == "numba_cuda":
            items = int(np.prod(self.shape))
            return [0, 0, items, self.itemsize, self.offset, *self.shape, *self.strides], (4,)
        steps = [stride // self.itemsize for stride in self.strides]
        return [self.offset, self.offset, 0, *self.shape, *steps], (0, 1)


@dataclass(frozen=True, eq=False)
class Zeros:
    """Bytes of the workspace that become zero."""

    offset: int
    size: int

    def call(self, stream: int, pointers: int, workspace: int) -> Call:
        return filling(workspace + self.offset, self.size, stream)


@dataclass(frozen=True, eq=False)
class Maps:
    """Tensor maps among the words of a plan, from `first` on: of matrices of the workspace, and the
    rows of their boxes.
    """

    first: int
    matrices: tuple[tuple[Block, int], ...]

    def words(self, addresses: tuple[int, ...]) -> np.ndarray:
        """Return them for operands, result and workspace at these addresses."""
        held = [
            map_bytes(addresses[x.of] + x.offset, x.shape, x.dtype, rows)
            for x, rows in self.matrices
        ]
        return np.frombuffer(b"".join(held), np.int64)


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
    maps : tensor maps among them; size : of the workspace [B]
    """

    choice: Choice
    works: tuple[Zeros | Launch, ...]
    words: np.ndarray
    at: np.ndarray
    of: np.ndarray
    maps: tuple[Maps, ...]
    size: int

    def bound(self, stream: int, addresses: tuple[int, ...]) -> Bound:
        """Return the calls of the driver for operands, result and workspace at these addresses."""
        bind = _bound if len(self.works) <= LONG else _bound.__wrapped__
        return bind(self, stream, addresses)


class Bound:
    """Calls of the driver for one stream, and what their arguments point to.

    Who multiplies again and again mostly gets the same memory. The calls of a product that comes
    back are then recorded as a CUDA graph, whose launch is a single call: a third of the time.
    """

    def __init__(
        self, plan: Plan, stream: int, addresses: tuple[int, ...], lock: Lock | None = None
    ) -> None:
        words = plan.words.copy()
        words[plan.at] += np.array(addresses, np.int64)[plan.of]
        for maps in plan.maps:
            held = maps.words(addresses)
            words[maps.first : maps.first + len(held)] = held
        pointers = words.ctypes.data + WORD * np.arange(len(words))  # the driver asks for these
        self.words, self.pointers, self.stream = words, pointers, stream
        self.works, self.workspace = plan.works, addresses[WORKSPACE]
        self.calls = self._calls(stream)
        self.times, self.graph, self.one_by_one = 0, None, lock or Lock()

    def _calls(self, stream: int) -> tuple[Call, ...]:
        start = self.pointers.ctypes.data
        return tuple(work.call(stream, start, self.workspace) for work in self.works)

    def queue(self, records: bool) -> None:
        """Queue everything on the stream.

        records : whether the stream records a graph itself: it gets the calls, since a graph in it
            is not allowed
        """
        with self.one_by_one:  # a graph is launched by one thread at a time
            if self.graph is not None and not records:
                go(self.graph.calls)
                return
            go(self.calls)
            self.times += not records
            if self.times == OFTEN and not records:
                self.graph = recorded_graph(self._calls, self.stream)


@lru_cache(maxsize=KEPT)
def _bound(plan: Plan, stream: int, addresses: tuple[int, ...]) -> Bound:
    return Bound(plan, stream, addresses)


# Of a workspace that is kept: PyTorch keeps 32 MiB for cuBLAS on such a GPU, and halves of two
# matrices of 2048×2048 take that, and their scales a little. Whatever takes more takes the GPU
# longer than Python. And of streams that have one, on all GPUs.
MOST_KEPT, STREAMS = 33 << 20, 8
PER_THREAD = 2  # the driver's name for a stream that is another one in each thread


class Workspace:
    """Memory beside A, B and C that products on a stream use, one after the other.

    bounds : calls whose arguments point to it; they are forgotten with it
    lock : who holds it queues all launches of a product, between which no other one may write
    """

    def __init__(self, memory: Any, size: int) -> None:
        self.memory, self.address, self.size = memory, address_of(memory), size
        self.bounds: dict[tuple, Bound] = {}
        self.lock = Lock()

    def keep(self, found_by: tuple, plan: Plan, stream: int, addresses: tuple[int, ...]) -> Bound:
        """Return the calls of a plan for A, B, C and halves at these addresses, and keep them."""
        *operands, halves = addresses
        if len(self.bounds) >= KEPT:
            self.bounds.clear()
        bound = Bound(plan, stream, (*operands, self.address, halves), self.lock)
        self.bounds[found_by] = bound
        return bound


# By GPU and stream. One that is replaced goes back to its library, which gives it to what the same
# stream does afterwards.
WORKSPACES: dict[tuple[int, int], Workspace] = {}


def workspace(at: tuple[int, int], size: int, taken: Callable[[int], Any]) -> Workspace | None:
    """Return the workspace of a GPU and a stream; None where more would be kept than is allowed.

    taken : bytes -> memory
    """
    if size > MOST_KEPT or at[1] == PER_THREAD:
        return None
    found = WORKSPACES.get(at)
    if found is None or found.size < size:
        if len(WORKSPACES) >= STREAMS:
            WORKSPACES.clear()
        found = WORKSPACES[at] = Workspace(taken(size), size)
    return found
