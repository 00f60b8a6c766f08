"""The time of a kernel that is no GEMM on this machine's GPU, taken as the ladder's is."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.forecast.others.case import Case
from benchmarks.forecast.others.sets import entry
from benchmarks.forecast.written import compilers
from benchmarks.samples.realistic import is_right
from gemmlab.compiled.sass.execution.machine import dim
from gemmlab.here.detection import detect
from gemmlab.here.driver import stamp
from gemmlab.instructions import host
from gemmlab.measure.backends import gpu, sensors
from gemmlab.measure.backends.timing import repetitions


def timed(case: Case, size: int | None = None) -> dict[str, Any]:
    """A row: the first launch's result is compared with NumPy's, then launches are timed.

    Each finds nothing of its arrays in L2, which is flushed before, and is queued behind the flush.
    size : the case's own where None
    """
    cuda = host.cuda()
    grid, block, arguments = case.launch(size or case.size)
    on_gpu = [cuda.to_device(a) if isinstance(a, np.ndarray) else a for a in arguments]
    kernel = cuda.jit(launch_bounds=math.prod(dim(block)), **case.options)(case.kernel)
    taken = host.loaded(kernel.compile(tuple(map(kernel.typeof_pyval, on_gpu))))
    launch = kernel[grid, block, 0, 0]

    def call() -> None:
        launch(*on_gpu)

    call()
    after = [a.copy_to_host() if isinstance(b, np.ndarray) else a
             for a, b in zip(on_gpu, arguments, strict=True)]  # fmt: skip
    right = is_right(list(case.check(*after)))
    warm = [sample(cuda, call) for _ in range(gpu.WARM_UP)]
    samples = [sample(cuda, call) for _ in range(repetitions(min(warm), None))]
    return {
        "kernel": entry(case),
        "source_sha256": case.source_sha256,
        "right": right,
        "ns": [round(1e9 * s) for s in samples],
        "registers": taken.registers,
        "local_bytes": taken.local_bytes,
        **under_load(cuda, call, min(samples)),
    }


def sample(cuda: Any, call: Callable) -> float:
    """Duration of one launch after a flush of L2 [s]."""
    start, end = (cuda.event(timing=True) for _ in range(2))
    gpu.flush(cuda)
    start.record()
    call()
    end.record()
    end.synchronize()
    return cuda.event_elapsed_time(start, end) * 1e-3


def under_load(cuda: Any, call: Callable, seconds: float) -> dict[str, str]:
    """Clock, power and throttling while launches that take `seconds` are queued back to back."""
    read = sensors.sensors(cuda.get_current_device().uuid)
    readings = []
    for _ in range(math.ceil(gpu.LOAD_SECONDS / gpu.READING_SECONDS)):
        for _ in range(max(1, int(gpu.READING_SECONDS / seconds))):
            call()
        readings += [read()] if read else []
        cuda.synchronize()
    return sensors.summary(readings[1:])  # the clock may still have been rising


def origin() -> dict[str, str]:
    """Where, when and by what kernels are timed; the state of L2 is that of the ladder's runs."""
    here = detect()
    return {
        "device": here.name,
        "device_title": here.title,
        **stamp("date"),
        **gpu.provenance(),
        **compilers(),
    }
