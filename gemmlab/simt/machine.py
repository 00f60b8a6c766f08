"""The simulated GPU: all threads of a batch of blocks, in lock-step.

A rewritten kernel calls the methods of a `Machine`: control flow (`masks`), device functions, the
names of `cuda`, and memory (`memory_access`).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np

from gemmlab.device import Device
from gemmlab.model.transactions import WARP
from gemmlab.simt import (
    allocation,
    atomics,
    bits,
    elementwise,
    instructions,
    memory_access,
    printing,
    release,
    warp,
)
from gemmlab.simt.async_copies import Copies
from gemmlab.simt.control_flow import ControlFlow
from gemmlab.simt.hazards import Hazard
from gemmlab.simt.language import intrinsic_path, is_cuda
from gemmlab.simt.masks import Mask, without
from gemmlab.simt.memory import Array
from gemmlab.simt.operations import Operations
from gemmlab.simt.remembered import Remembered
from gemmlab.simt.report import Dim3, Report
from gemmlab.simt.rewrite import Program, rewrite
from gemmlab.simt.source import read_source, unsupported
from gemmlab.simt.updates import SharedShadow
from gemmlab.simt.values import ADVICE, translate
from gemmlab.simt.whole_grid import GridGroup

TOGETHER = (
    *("syncthreads", "syncthreads_count", "syncthreads_and", "syncthreads_or", "syncwarp"),
    *("all_sync", "any_sync", "eq_sync", "ballot_sync", "match_any_sync", "match_all_sync"),
    "activemask",
)
# Lock-step execution keeps the order of memory that these ask for; a nap changes nothing.
FENCES = ("threadfence_block", "nanosleep")


def _nothing(*_: Any) -> None:
    """An instruction without an effect on what is simulated."""


class Machine(Operations, ControlFlow):
    """State of one batch of blocks; `blocks` holds their linear indices."""

    def __init__(
        self,
        grid: Dim3,
        block: Dim3,
        blocks: np.ndarray,
        report: Report,
        shared_bytes: int,
        max_steps: int,
        contract: bool,
        program: Program,
        global_arrays: list[Array],
        gpu: Device | None = None,
    ) -> None:
        self.grid, self.block, self.report = grid, block, report
        self.shared_bytes, self.gpu = shared_bytes, gpu
        threads = block[0] * block[1] * block[2]
        self.blocks = blocks.reshape(-1, 1)
        self.threads = -(-threads // WARP) * WARP  # the last warp may have lanes without a thread
        self.thread = np.arange(self.threads).reshape(1, -1)
        self.row = np.arange(len(blocks)).reshape(-1, 1)
        base = None if threads == self.threads else self.thread < threads
        super().__init__(base, max_steps)
        self.contract = contract  # a float a·b + c is rounded once
        self.program, self.global_arrays = program, global_arrays
        self.running = {}
        self.whole_grid = GridGroup(self)
        self.absent, self.wait_line = False, 0  # who was not there when the whole grid waited
        self.enter(report.source)
        self.epoch: Any = 0  # barrier interval: a number, or one for each block
        self.shared: dict[tuple, Array] = {}
        self.static_bytes = 0  # of the shared arrays whose size the source states
        self.syncs: np.ndarray | None = None  # how often each warp has waited in syncwarp
        self.dynamic: SharedShadow | None = None  # of dynamic shared memory
        self.counted: dict[tuple, tuple[int, int, int]] = {}
        self.located, self.again = Remembered(256), Remembered(256)
        self.extents: dict[int, tuple[np.ndarray, int, int]] = {}
        self.copies = Copies()
        self.functions: dict[Any, Callable] = {}
        self.intrinsics = self._intrinsics()

    # Calls of device functions

    def translate(self, value: Any) -> Any:
        """A value of an enclosing scope; device functions are rewritten when first met."""
        path = intrinsic_path(value)
        if path is not None:
            return self.intrinsics[path]
        if isinstance(value, instructions.KINDS):
            return instructions.executed(self, value)
        if is_cuda(value):
            raise TypeError("use one of its names, such as cuda.grid")
        function = getattr(value, "py_func", value)
        if getattr(function, "__name__", "") not in ADVICE and hasattr(function, "__code__"):
            if function not in self.functions:
                self.functions[function] = self._device_function(function)
            return self.functions[function]
        if value is print:
            return partial(printing.print_lanes, self)
        if isinstance(value, np.ufunc):
            return partial(elementwise.call, self, value)
        if isinstance(value, np.ndarray):
            return Array("constant", np.ascontiguousarray(value).ravel(), value.shape)
        return translate(value)

    def _device_function(self, function: Callable) -> Callable:
        bound: list[Callable] = []

        def call(*args: Any, **keywords: Any) -> Any:
            if function not in self.program:
                source = read_source(function)
                self.program[function] = rewrite(function, source, self.translate)
            source = self.program[function].source
            if any(frame.source is source for frame in self.frames):
                caller, name = self.frames[-1].source, f"{function.__name__}, which calls itself,"
                raise unsupported(caller, self.line, name, "write a loop")
            if not bound:
                bound.append(self.program[function].bind(self.translate))
            self.masks.append(self.masks[-1])
            depth, loops, self.loops = len(self.masks) - 1, self.loops, []
            self.frames.append(SimpleNamespace(depth=depth, value=None))
            self.enter(source)
            bound[0](self, *args, **keywords)
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
            "lanemask_lt": partial(warp.lanemask_lt, self),
            "shared.array": partial(allocation.shared_array, self),
            "local.array": partial(allocation.local_array, self),
            "const.array_like": partial(allocation.constant_array, self),
            "atomic.cas": partial(atomics.exchange, self),
            "atomic.compare_and_swap": partial(atomics.compare_and_swap, self),
            "cg.this_grid": lambda: self.whole_grid,
            "selp": bits.selp,
            "fma": self.fma,
            "cbrt": np.cbrt,
            **{name: partial(getattr(warp, name), self) for name in TOGETHER},
            **{name: getattr(bits, name) for name in ("popc", "brev", "clz", "ffs")},
            **{name: partial(warp.shuffle, self, name) for name in warp.SHUFFLES},
            **{f"atomic.{name}": partial(atomics.update, self, name) for name in atomics.UPDATES},
            **dict.fromkeys(FENCES, _nothing),
            **dict.fromkeys(
                ("threadfence", "threadfence_system"), partial(release.threadfence, self)
            ),
        }

    def alive(self) -> Mask:
        """The threads that have not returned, and are not to be waited for in vain."""
        return without(self.masks[self.frames[0].depth], self.absent)

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
            return self.item(array, index, line)
        return memory_access.load(self, array, index, line)

    def store(self, array: Any, index: Any, value: Any, line: int) -> None:
        """Set `array[index]` in each active lane, counted and checked."""
        if not isinstance(array, Array):
            raise TypeError(f"line {line}: {array!r} does not support item assignment")
        if value is None:
            raise TypeError(f"line {line}: None is not a number, and cannot be stored")
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
        self.report.count(self.frames[-1].source, line, name, value)

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

    def thread_name(self, thread: int) -> str:
        """A thread's place as messages write it."""
        return short(self.thread_at(thread), self.block)

    def hazard(self, kind: str, line: int, lanes: Mask, other: int | None, text: str) -> None:
        """Report that the first of `lanes` is at fault, and `other`, a thread of its block."""
        where = self.full(lanes)
        row, thread = (int(v) for v in np.unravel_index(int(where.argmax()), where.shape))
        at = (kind, line, int(self.blocks[row, 0]), thread, other, text)
        self.report_hazard(*at, count=int(where.sum()))

    def report_hazard(
        self,
        kind: str,
        line: int,
        block: int,
        thread: int,
        other: int | None,
        text: str,
        count: int = 1,
    ) -> None:
        """Report that `thread` of `block` is at fault; `text` may name {thread} and {other}."""
        threads = tuple(self.thread_at(t) for t in (thread, other) if t is not None)
        message = text.format(
            thread=short(threads[0], self.block), other=short(threads[-1], self.block)
        )
        message += f" [block {self.block_name(block)}"
        message += f", thread {short(threads[0], self.block)}]"
        source = self.frames[-1].source
        place = (kind, line, source.code(line), self.block_at(block), threads, message)
        self.report.add(Hazard(*place, file=source.file, count=count))


def short(position: Dim3, extent: Dim3) -> str:
    """A position with as many of its coordinates as the launch has dimensions."""
    used = max([i + 1 for i, e in enumerate(extent) if e > 1], default=1)
    return "(" + ", ".join(str(p) for p in position[:used]) + ")"
