"""The simulated GPU: all threads of a batch of blocks, in lock-step.

A rewritten kernel calls the methods of a `Machine`: control flow (`masks`), device functions, the
names of `cuda`, and memory (`memory_access`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np

from gemmlab.model.transactions import WARP
from gemmlab.simt import memory_access
from gemmlab.simt.hazards import Hazard, Shadow
from gemmlab.simt.language import intrinsic_path, is_cuda
from gemmlab.simt.masks import ControlFlow, Mask
from gemmlab.simt.memory import Array
from gemmlab.simt.report import Dim3, Report
from gemmlab.simt.rewrite import rewrite
from gemmlab.simt.source import UnsupportedError
from gemmlab.simt.values import as_dtype, translate

# Shared arrays of a fixed size may take 48 KB a block together: CUDA C++ Programming Guide,
# Compute Capabilities (more must be allocated dynamically, by opting in).
STATIC_SHARED_BYTES = 48 * 1024
MAX_CALLS = 50  # device functions inside each other


class Machine(ControlFlow):
    """State of one batch of blocks; `blocks` holds their linear indices."""

    def __init__(
        self,
        grid: Dim3,
        block: Dim3,
        blocks: np.ndarray,
        report: Report,
        shared_bytes: int,
        max_steps: int,
    ) -> None:
        self.grid, self.block, self.report = grid, block, report
        self.shared_bytes = shared_bytes
        threads = block[0] * block[1] * block[2]
        self.blocks = blocks.reshape(-1, 1)
        self.threads = -(-threads // WARP) * WARP  # the last warp may have lanes without a thread
        self.thread = np.arange(self.threads).reshape(1, -1)
        self.row = np.arange(len(blocks)).reshape(-1, 1)
        base = None if threads == self.threads else self.thread < threads
        super().__init__(base, max_steps)
        self.epoch: Any = 0  # barrier interval: a number, or one for each block
        self.shared: dict[tuple, Array] = {}
        self.static_bytes = 0  # of the shared arrays whose size the source states
        self.counted: dict[tuple, tuple[int, int, int]] = {}
        self.extents: dict[int, tuple[np.ndarray, int, int]] = {}
        self.functions: dict[Any, Callable] = {}
        self.intrinsics = self._intrinsics()

    # Calls of device functions

    def translate(self, value: Any) -> Any:
        """A value of an enclosing scope; device functions are rewritten when first met."""
        path = intrinsic_path(value)
        if path is not None:
            return self.intrinsics[path]
        if is_cuda(value):
            raise TypeError("use one of its names, such as cuda.grid")
        function = getattr(value, "py_func", value)
        if hasattr(function, "__code__"):
            if function not in self.functions:
                self.functions[function] = self._device_function(function)
            return self.functions[function]
        if isinstance(value, np.ndarray):
            return Array("constant", np.ascontiguousarray(value).ravel(), value.shape)
        return translate(value)

    def _device_function(self, function: Callable) -> Callable:
        body: list[Callable] = []

        def call(*args: Any, **keywords: Any) -> Any:
            if len(self.frames) > MAX_CALLS:
                raise UnsupportedError(f"{function.__name__} calls itself: write a loop instead")
            if not body:
                body.append(rewrite(function, self.translate).bind(self.translate))
            self.masks.append(self.masks[-1])
            depth, loops, self.loops = len(self.masks) - 1, self.loops, []
            self.frames.append(SimpleNamespace(depth=depth, value=None))
            body[0](self, *args, **keywords)
            self.loops = loops
            del self.masks[depth:]
            return self.frames.pop().value

        return call

    # What `cuda` offers

    def _intrinsics(self) -> dict[str, Any]:
        x, y, _ = self.block
        thread = self.thread
        gx, gy, _ = self.grid
        tid = SimpleNamespace(x=thread % x, y=thread // x % y, z=thread // (x * y))
        bid = SimpleNamespace(
            x=self.blocks % gx, y=self.blocks // gx % gy, z=self.blocks // (gx * gy)
        )
        one = [SimpleNamespace(**{a: np.int64(v) for a, v in zip("xyz", d, strict=True)})
               for d in (self.block, self.grid)]  # fmt: skip
        position = [getattr(bid, a) * getattr(one[0], a) + getattr(tid, a) for a in "xyz"]
        extent = [getattr(one[0], a) * getattr(one[1], a) for a in "xyz"]

        def leading(values: list) -> Callable:
            def pick(ndim: Any) -> Any:
                count = int(ndim)
                if not 1 <= count <= 3:
                    raise ValueError(f"line {self.line}: {count} dimensions; use 1, 2 or 3")
                return values[0] if count == 1 else tuple(values[:count])

            return pick

        return {
            "threadIdx": tid,
            "blockIdx": bid,
            "blockDim": one[0],
            "gridDim": one[1],
            "grid": leading(position),
            "gridsize": leading(extent),
            "laneid": thread % WARP,
            "warpsize": np.int64(WARP),
            "syncthreads": self.syncthreads,
            "shared.array": self.shared_array,
            "local.array": self.local_array,
        }

    def shared_array(self, shape: Any, dtype: Any) -> Array:
        """The block's shared array of this place in the source; the same at every call."""
        sizes = shape if isinstance(shape, tuple) else (shape,)
        dynamic = sizes == (0,)  # every dynamic array is one and the same memory
        key = ("dynamic" if dynamic else self.place, sizes, as_dtype(dtype))
        if key not in self.shared:
            if dynamic:
                sizes = (np.int64(self.shared_bytes // as_dtype(dtype).itemsize),)
            size = int(np.prod(sizes))
            buffer = np.zeros((len(self.blocks), size), as_dtype(dtype))
            shape = tuple(np.int64(s) for s in sizes)
            self.shared[key] = Array("shared", buffer, shape, shadow=Shadow(size))
            if not dynamic:
                self.static_bytes += size * buffer.itemsize
            if self.static_bytes > STATIC_SHARED_BYTES:
                raise ValueError(
                    f"line {self.line}: shared arrays of {self.static_bytes} B a block are too "
                    f"large; use at most {STATIC_SHARED_BYTES} B, or shape 0 with shared_bytes="
                )
        return self.shared[key]

    def local_array(self, shape: Any, dtype: Any) -> Array:
        """An array of each thread's own, not yet written."""
        sizes = shape if isinstance(shape, tuple) else (shape,)
        size = int(np.prod(sizes))
        buffer = np.zeros((size, len(self.blocks), self.threads), as_dtype(dtype))
        array = Array("local", buffer, tuple(np.int64(s) for s in sizes))
        array.shadow = np.zeros((size, 1, 1), bool)  # which elements have been written
        return array

    def syncthreads(self) -> None:
        """Begin a new barrier interval in each block that gets here."""
        here, alive = self.masks[-1], self.masks[self.frames[0].depth]
        if here is False:
            return
        shape = (len(self.blocks), self.threads)
        arrived = self.full(here)
        waiting = self.full(alive) & ~arrived
        partial = arrived.any(axis=1) & waiting.any(axis=1) if waiting.any() else np.zeros(1, bool)
        if partial.any():
            b = int(partial.argmax())
            came, missing = int(arrived[b].argmax()), int(waiting[b].argmax())
            lanes = np.zeros(shape, bool)
            lanes[b, came] = True
            text = "thread {thread} waits at a barrier that thread {other} does not reach"
            self.hazard("divergent-barrier", self.line, lanes, missing, text)
        in_block = arrived.any(axis=1)
        if in_block.all():
            self.epoch = self.epoch + 1
        else:
            self.epoch = self.epoch + in_block.astype(np.int32).reshape(-1, 1)
        self.count(self.line, "barriers", int(in_block.sum()))

    def full(self, mask: Mask) -> np.ndarray:
        """A mask as an array (blocks, threads)."""
        shape = (len(self.blocks), self.threads)
        if mask is None or mask is False:
            return np.full(shape, mask is None)
        return np.broadcast_to(mask, shape)

    # Memory

    def load(self, array: Any, index: Any, line: int) -> Any:
        """The element `array[index]` of each lane, counted and checked."""
        if isinstance(array, tuple):
            return array[int(index)]
        return memory_access.load(self, array, index, line)

    def store(self, array: Any, index: Any, value: Any, line: int) -> None:
        """Set `array[index]` in each active lane, counted and checked."""
        if not isinstance(array, Array):
            raise TypeError(f"line {line}: {array!r} does not support item assignment")
        memory_access.store(self, array, index, value, line)

    def extent(self, index: Any) -> tuple[int, int]:
        """The least and the greatest value of an index; remembered for the last few arrays."""
        if np.ndim(index) == 0:
            return int(index), int(index)
        known = self.extents.get(id(index))
        if known is None:  # keeping the array keeps its id from being used again
            if len(self.extents) >= 32:
                self.extents.clear()
            known = self.extents[id(index)] = (index, int(index.min()), int(index.max()))
        return known[1], known[2]

    # Findings

    def count(self, line: int, name: str, value: int) -> None:
        """Add `value` to a counter of `line`."""
        self.report.by_line.setdefault(line, Counter())[name] += value

    def thread_at(self, thread: int) -> Dim3:
        """A thread's place in its block, from its linear index."""
        x, y, _ = self.block
        return (thread % x, thread // x % y, thread // (x * y))

    def block_at(self, block: int) -> Dim3:
        """A block's place in the grid, from its linear index."""
        x, y, _ = self.grid
        return (block % x, block // x % y, block // (x * y))

    def block_name(self, block: int) -> str:
        """A block's place as messages write it."""
        return short(self.block_at(block), self.grid)

    def hazard(self, kind: str, line: int, lanes: Mask, other: int | None, text: str) -> None:
        """Report that the first of `lanes` is at fault, and `other`, a thread of its block."""
        where = self.full(lanes)
        row, thread = (int(v) for v in np.unravel_index(int(where.argmax()), where.shape))
        self.report_hazard(kind, line, int(self.blocks[row, 0]), thread, other, text)

    def report_hazard(
        self, kind: str, line: int, block: int, thread: int, other: int | None, text: str
    ) -> None:
        """Report that `thread` of `block` is at fault; `text` may name {thread} and {other}."""
        threads = tuple(self.thread_at(t) for t in (thread, other) if t is not None)
        message = text.format(
            thread=short(threads[0], self.block), other=short(threads[-1], self.block)
        )
        message += f" [block {self.block_name(block)}"
        message += f", thread {short(threads[0], self.block)}]"
        code = self.report.source.code(line)
        self.report.add(Hazard(kind, line, code, self.block_at(block), threads, message))


def short(position: Dim3, extent: Dim3) -> str:
    """A position with as many of its coordinates as the launch has dimensions."""
    used = max([i + 1 for i, e in enumerate(extent) if e > 1], default=1)
    return "(" + ", ".join(str(p) for p in position[:used]) + ")"
