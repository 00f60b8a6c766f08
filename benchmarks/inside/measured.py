"""The clock that a GPU's SMs show at the marks, and how long the launches take."""

from __future__ import annotations

import ctypes
import math
import re
from collections.abc import Callable, Iterator, Mapping
from statistics import median
from typing import Any

import numpy as np

from benchmarks.inside.cases import DEVICE, Case
from benchmarks.inside.marks import FIRST, SM, TIME
from gemmlab.compiled.sass.execution.machine import dim
from gemmlab.here.driver import answered, numba_cuda
from gemmlab.kernels.kernel import Kernel
from gemmlab.measure.backends import checking, gpu

LAUNCHES = 40  # of each kernel, in turn; after two that are not kept
WARM = 400  # launches, so that the clock rises


class Launcher:
    """A cubin's kernel is launched on matrices, as Numba passes them."""

    def __init__(
        self, case: Case, kernel: Kernel, cubin: bytes, matrices: gpu.Matrices, *more: Any
    ) -> None:
        from cuda.bindings import driver

        problem, tiling = case.problem, case.tiling
        self.cuda, self.driver, self.matrices = numba_cuda(), driver, matrices
        self.operands = kernel.operands(problem, tiling, matrices.a, matrices.b)
        self.result = kernel.result(problem, tiling, matrices.c)
        self.more, self.shared = more, kernel.dynamic_shared_bytes(problem, tiling)
        self.sizes = tuple(map(dim, kernel.launch(problem, tiling, DEVICE)))
        self.module = answered(driver.cuModuleLoadData(cubin))
        (name,) = set(re.findall(rb"\.text\.([\w$]+)\0", cubin))
        self.function = answered(driver.cuModuleGetFunction(self.module, name))
        most = driver.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
        answered(driver.cuFuncSetAttribute(self.function, most, self.shared))
        self.events = [self.cuda.event(timing=True) for _ in range(2)]
        self.held = self._parameters(problem)

    def _parameters(self, problem: Any) -> tuple:
        alpha, beta = problem.scalars()
        given = (alpha, *self.operands, beta, *self.result, *self.more)
        parts = [part for one in given for part in flat(one)]
        buffers = [ctypes.create_string_buffer(part, len(part)) for part in parts]
        return buffers, (ctypes.c_void_p * len(buffers))(*map(ctypes.addressof, buffers))

    def launch(self) -> None:
        grid, block = self.sizes
        answered(self.driver.cuLaunchKernel(
            self.function, *grid, *block, self.shared, 0, ctypes.addressof(self.held[1]), 0
        ))  # fmt: skip

    def compute(self, problem: Any, operands: Any) -> np.ndarray:
        """C of one launch with the scalars of `problem`."""
        self.matrices.load(problem, operands)
        usual, self.held = self.held, self._parameters(problem)
        self.launch()
        self.cuda.synchronize()
        self.held = usual
        return self.matrices.c.copy_to_host()

    def sample(self) -> float:
        """Duration of one launch that finds nothing in L2 [s]."""
        start, end = self.events
        self.matrices.reset()
        gpu.flush(self.cuda)
        start.record()
        self.launch()
        end.record()
        end.synchronize()
        return self.cuda.event_elapsed_time(start, end) * 1e-3


def flat(argument: Any) -> Iterator[bytes]:
    """Yield the parameters that Numba makes of an argument, an array on the GPU or a number."""
    there = getattr(argument, "__cuda_array_interface__", None)
    if there:
        sizes = argument.size, argument.dtype.itemsize, there["data"][0]
        for word in (0, 0, *sizes, *argument.shape, *argument.strides):
            yield np.uint64(word).tobytes()
    else:
        yield (np.int64(argument) if isinstance(argument, int) else argument).tobytes()


def measured(
    case: Case, cubins: Mapping[str, bytes], say: Callable[[str], None] = print
) -> tuple[dict[str, Any], list[np.ndarray]]:
    """Time a case's kernel without and with its marks; what each SM's clock says of the blocks."""
    cuda = numba_cuda()
    matrices = gpu.Matrices(case.problem)
    marks = cuda.to_device(np.zeros(case.blocks * case.warps * case.each, np.int64))
    bare = Launcher(case, case.kernel, cubins["bare"], matrices)
    marked = Launcher(case, case.kernel, cubins["marked"], matrices, marks)
    operands = case.problem.operands()
    errors = {
        name: checking.check(case.problem, one.compute, operands).error
        for name, one in (("bare", bare), ("marked", marked))
    }
    matrices.load(case.problem, operands)
    for _ in range(WARM):
        bare.launch()
    cuda.synchronize()
    times: dict[str, list[float]] = {"bare": [], "marked": []}
    found, spans = [], []
    for turn in range(LAUNCHES + gpu.WARM_UP):
        pair = {"bare": bare.sample(), "marked": marked.sample()}
        if turn < gpu.WARM_UP:
            continue
        for name, seconds in pair.items():
            times[name].append(seconds)
        rows = marks.copy_to_host().reshape(case.blocks, case.warps, case.each)
        found.append(by_sm(rows))
        spans.append(in_time(rows))
    told = {
        **{f"{name}_seconds": float(f"{median(of):.4g}") for name, of in times.items()},
        **{f"{name}_error": float(f"{error:.3g}") for name, error in errors.items()},
        **{name: float(f"{median(s[name] for s in spans):.4g}") for name in spans[0]},
    }
    say(f"{case.name}: {told}")
    return told, [clocks for one in found for clocks in one]


def by_sm(rows: np.ndarray) -> list[np.ndarray]:
    """Return the clocks of each SM's blocks (blocks, warps, marks), in the order of their begin.

    Cycles from the SM's first mark on; a mark that a warp has not made is -1.
    """
    sms = rows[:, 0, SM]
    found = []
    for sm in np.unique(sms):
        clocks = rows[sms == sm][:, :, FIRST:]
        clocks = clocks[np.argsort(clocks[:, :, 0].min(axis=1))]
        found.append(np.where(clocks > 0, clocks - clocks[:, :, 0].min(), -1))
    return found


def in_time(rows: np.ndarray) -> dict[str, float]:
    """Tell the SMs' clock of a launch [Hz], and how long its blocks were there [s].

    An SM's clock follows from its first and its last warp to end, by the time of the GPU. When its
    first block begins, from when that ends.
    """
    last = np.where(rows[:, :, FIRST:] > 0, rows[:, :, FIRST:], 0).max(axis=2)
    clocks, begins, ends = [], [], []
    for sm in np.unique(rows[:, 0, SM]):
        on = rows[:, 0, SM] == sm
        cycles, times = last[on].ravel(), rows[on][:, :, TIME].ravel()
        first, end = np.argmin(cycles), np.argmax(cycles)
        if cycles[end] - cycles[first] > 10_000:
            clocks.append((cycles[end] - cycles[first]) / (times[end] - times[first]) * 1e9)
        begins.append((times[first], cycles[first] - rows[on][:, :, FIRST].min()))
        ends.append(times[end])
    clock = median(clocks) if clocks else math.nan
    starts = [time - 1e9 * cycles / clock for time, cycles in begins]
    return {
        "clock": clock,
        "inside_seconds": 1e-9 * (max(ends) - min(starts)),
        "first_blocks_seconds": 1e-9 * (max(starts) - min(starts)),
        "last_blocks_seconds": 1e-9 * (max(ends) - min(ends)),
    }
