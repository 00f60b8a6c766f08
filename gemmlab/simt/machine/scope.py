"""Names of a kernel mean device functions, parts of `cuda`, instructions, or numbers."""

from collections.abc import Callable
from functools import cache, partial
from types import FunctionType
from typing import Any

import numpy as np

from gemmlab.model.transactions import WARP
from gemmlab.simt.builtins import atomics, barriers, functions, instructions, warps
from gemmlab.simt.builtins.barriers import GridGroup
from gemmlab.simt.builtins.batch import BuiltinBatch
from gemmlab.simt.machine.calls import Calls
from gemmlab.simt.memory import memory
from gemmlab.simt.memory.array import Array, Records
from gemmlab.simt.numbers import bits, half, libdevice, vectors
from gemmlab.simt.numbers.values import Triple, translate
from gemmlab.simt.syntax.names import intrinsic_path, is_cuda
from gemmlab.simt.syntax.rewrite import Program, rewrite
from gemmlab.simt.syntax.source import Source, read_source

WAITS = ("syncthreads", "syncthreads_count", "syncthreads_and", "syncthreads_or", "syncwarp")
VOTES = (
    *("all_sync", "any_sync", "eq_sync", "ballot_sync", "match_any_sync", "match_all_sync"),
    *("activemask", "lanemask_lt"),
)


# Loads and stores with a hint of what caches should keep, which changes nothing of values.
HINTED_LOADS = "ldca", "ldcg", "ldcs", "ldlu", "ldcv"
HINTED_STORES = "stcg", "stcs", "stwb", "stwt"


def _nothing(*_: Any) -> None:
    """An instruction without an effect on what is simulated: a nap changes nothing."""


class Scope:
    """The values of the enclosing scopes as one machine works with them.

    program : functions in lock-step form; each is rewritten when it is first met
    functions : device functions, by what the source names; made : lock-step functions so far
    """

    def __init__(self, m: BuiltinBatch, calls: Calls, program: Program) -> None:
        self.m, self.calls, self.program = m, calls, program
        self.functions: dict[Any, Callable] = {}
        self.made: list[Callable] = []
        self.cuda = _positions(m) | _calls(m)

    def translate(self, value: Any) -> Any:
        """Return a value as the rewritten kernel uses it; TypeError for what kernels cannot use."""
        if isinstance(value, (int, float, np.generic)):  # as most are
            return translate(value)
        path = intrinsic_path(value)
        if path is not None:
            return self.cuda[path] if path in self.cuda else families()[path]
        if isinstance(value, instructions.KINDS):
            return instructions.executed(self.m, value)
        if is_cuda(value):
            raise TypeError("use one of its names, such as cuda.grid")
        if value is breakpoint or getattr(value, "__name__", "") == "set_trace":  # of pdb or ipdb
            from gemmlab.simt.machine.debugger import breakpoints  # which few kernels need

            return breakpoints(self.m)
        function = getattr(value, "py_func", value)
        if isinstance(function, FunctionType):
            if function not in self.functions:
                self.functions[function] = self._device_function(function)
            return self.functions[function]
        found = functions.named(self.m, value)
        if found is not None:
            return found
        if isinstance(value, np.ndarray) and value.dtype.names:
            fields = {name: self.translate(np.asarray(value[name])) for name in value.dtype.names}
            return Records("", fields, value.ndim)
        if isinstance(value, np.ndarray):
            return Array("constant", np.ascontiguousarray(value).ravel(), value.shape)
        return translate(value)

    def bound(self, function: Callable, source: Source | None = None) -> Callable:
        """Return the lock-step form of a function, with the values of its scopes put in."""
        if function not in self.program:
            source = source or read_source(function)
            self.program[function] = rewrite(function, source, self.translate)
        self.made.append(self.program[function].bind(self.translate))
        return self.made[-1]

    def _device_function(self, function: Callable) -> Callable:
        bound: list[Callable] = []  # when it is first called

        def call(*args: Any, **keywords: Any) -> Any:
            if not bound:
                bound.append(self.bound(function))
            source = self.program[function].source
            return self.calls.run(source, bound[0], self.m, *args, **keywords)

        return call

    def take_apart(self) -> None:
        """Let go of all values; a function and the names that it works with refer to each other."""
        for function in self.made:
            function.__globals__.clear()
        vars(self).clear()


def _positions(m: BuiltinBatch) -> dict[str, Any]:
    """Return the names of `cuda` that say where a thread stands, and how large the launch is."""
    lanes = m.lanes
    (x, y, _), (gx, gy, _), thread, block = lanes.block, lanes.grid, lanes.thread, lanes.blocks
    here = Triple("threadIdx", thread % x, thread // x % y, thread // (x * y))
    at = Triple("blockIdx", block % gx, block // gx % gy, block // (gx * gy))
    threads = Triple("blockDim", *map(np.int64, lanes.block))
    blocks = Triple("gridDim", *map(np.int64, lanes.grid))
    axes = [[getattr(part, axis) for part in (at, threads, here, blocks)] for axis in "xyz"]
    position = [at * threads + here for at, threads, here, _ in axes]
    extent = [threads * blocks for _, threads, _, blocks in axes]

    def leading(values: list) -> Callable:
        def pick(ndim: Any = None) -> Any:
            if ndim is None:
                raise TypeError("tell the number of dimensions, as in cuda.grid(1)")
            count = int(ndim)
            if not 1 <= count <= 3:
                raise ValueError(f"{count} dimensions; use 1, 2 or 3")
            return values[0] if count == 1 else tuple(values[:count])

        return pick

    return {
        "threadIdx": here,
        "blockIdx": at,
        "blockDim": threads,
        "gridDim": blocks,
        "grid": leading(position),
        "gridsize": leading(extent),
        "laneid": thread % WARP,
        "warpsize": np.int64(WARP),
    }


@cache
def families() -> dict[str, Callable]:
    """Return the names of `cuda` whose functions need nothing but numbers."""
    return {
        **{f"libdevice.{name}": libdevice.function(name) for name in libdevice.TABLE},
        **{f"fp16.{name}": half.function(name) for name in half.TABLE},
        **{name: vector.make for name, vector in vectors.BY_NAME.items()},
    }


def _calls(m: BuiltinBatch) -> dict[str, Callable]:
    """Return the names of `cuda` that are called."""
    whole_grid = GridGroup(m)
    return {
        "shared.array": partial(memory.shared_array, m),
        "local.array": partial(memory.local_array, m),
        "const.array_like": partial(memory.constant_array, m),
        "atomic.cas": partial(atomics.exchange, m),
        "atomic.compare_and_swap": partial(atomics.compare_and_swap, m),
        **{f"atomic.{name}": partial(atomics.update, m, name) for name in atomics.UPDATES},
        **{name: partial(getattr(barriers, name), m) for name in WAITS},
        "threadfence": partial(barriers.threadfence, m),
        "threadfence_system": partial(barriers.threadfence, m),
        "threadfence_block": partial(barriers.threadfence_block, m),
        "nanosleep": _nothing,
        "cg.this_grid": lambda: whole_grid,
        **{name: partial(getattr(warps, name), m) for name in VOTES},
        **{name: partial(warps.shuffle, m, name) for name in warps.SHUFFLES},
        **{name: getattr(bits, name) for name in ("selp", "popc", "brev", "clz", "ffs")},
        "fma": lambda a, b, c: m.operations.fma(a, b, c, m.calls.line),
        "cbrt": np.cbrt,
        **dict.fromkeys(HINTED_LOADS, lambda array, i: m.memory.load(array, i, m.calls.line)),
        **dict.fromkeys(
            HINTED_STORES, lambda array, i, value: m.memory.store(array, i, value, m.calls.line)
        ),
    }
