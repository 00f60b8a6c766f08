"""The time of a cubin's kernel on this machine's GPU, taken as the ladder's is."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from benchmarks.forecast.compiled.case import Case
from benchmarks.forecast.compiled.cubins import Built, kept
from benchmarks.forecast.others.timing import sample, under_load
from benchmarks.samples.realistic import is_right
from gemmlab.compiled.sass import cubins
from gemmlab.compiled.sass.execution.machine import dim
from gemmlab.here.driver import answered
from gemmlab.instructions import host
from gemmlab.measure.backends import gpu
from gemmlab.measure.backends.timing import repetitions

HIDDEN = 2  # pointers that Triton's launchers pass behind the arguments


def timed(case: Case, size: int | None = None, code: Built | None = None) -> dict[str, Any]:
    """A row: the first launch's result is compared with NumPy's, then launches are timed.

    Each finds nothing of its arrays in L2, which is flushed before, and is queued behind the flush.
    size, code : the case's own where None
    """
    cuda, built = host.cuda(), code or kept()[case.name]
    grid, arguments = case.launch(size or case.size)
    on_gpu = [cuda.to_device(a) if _is_array(a) else a for a in arguments]
    call = _launcher(case, built, dim(grid), on_gpu)
    call()
    cuda.synchronize()
    after = [a.copy_to_host() if _is_array(b) else a
             for a, b in zip(on_gpu, arguments, strict=True)]  # fmt: skip
    right = is_right(list(case.check(*after)))
    warm = [sample(cuda, call) for _ in range(gpu.WARM_UP)]
    samples = [sample(cuda, call) for _ in range(repetitions(min(warm), None))]
    return {
        "kernel": case.name,
        "cubin_sha256": built.sha256,
        "right": right,
        "ns": [round(1e9 * s) for s in samples],
        **under_load(cuda, call, min(samples)),
    }


def _is_array(argument: Any) -> bool:
    return isinstance(argument, np.ndarray) and argument.ndim > 0


def _launcher(case: Case, built: Built, grid: Sequence[int], on_gpu: Sequence[Any]) -> Callable:
    """Return what launches the kernel by the driver, on the context of who launches here."""
    from cuda.bindings import driver

    most = driver.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
    module = answered(driver.cuModuleLoadData(built.cubin))
    function = answered(driver.cuModuleGetFunction(module, (built.entry or case.name).encode()))
    answered(driver.cuFuncSetAttribute(function, most, built.shared_bytes))
    block = dim(case.block) if case.block else _block(built)
    held = [_bytes(a) for a in on_gpu] + HIDDEN * [bytes(8)] * (case.made is not None)
    buffers = [ctypes.create_string_buffer(b, len(b)) for b in held]
    pointers = (ctypes.c_void_p * len(buffers))(*map(ctypes.addressof, buffers))
    shared = built.shared_bytes

    def call() -> None:
        answered(driver.cuLaunchKernel(
            function, *grid, *block, shared, 0, ctypes.addressof(pointers), 0
        ))  # fmt: skip

    call.held = module, buffers, pointers  # as long as it is called
    return call


def _block(built: Built) -> tuple[int, ...]:
    module = cubins.module(built.cubin, "sm_90")
    return cubins.parameters(module.cubin, module.one()).block


def _bytes(argument: Any) -> bytes:
    there = getattr(argument, "__cuda_array_interface__", None)
    return np.uint64(there["data"][0]).tobytes() if there else argument.tobytes()
