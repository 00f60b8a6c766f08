"""Run a kernel on the GPU that is there: check it, then time it with CUDA events."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from functools import cache, lru_cache
from typing import Any

import numpy as np

from gemmlab.backends import timing
from gemmlab.device import detect
from gemmlab.driver import numba_cuda
from gemmlab.kernels.kernel import Kernel
from gemmlab.measurement import Measurement
from gemmlab.model.occupancy import check_block
from gemmlab.problem import DTYPES, Gemm, Operands
from gemmlab.records import UNKNOWN
from gemmlab.tiling import Tiling

# Above this size the float64 reference is computed on the GPU, where CuPy can do it.
HOST_REFERENCE_FLOPS = 2 * 1024**3
# Written between timed runs. Several times the L2 of any GPU so far, and long enough to write that
# the next launch is queued before it ends: the time Python takes to launch is then not measured.
FLUSH_BYTES = 1 << 29
LOAD_SECONDS = 0.3  # of back-to-back launches while clock and power are read


def run(
    kernel: Kernel,
    problem: Gemm,
    operands: Operands,
    tiling: Tiling | None,
    repeats: int | None = None,
) -> Measurement:
    """Check `kernel` on the GPU against the reference, then time it with a cold L2.

    Raises ValueError for a block that this GPU cannot run, RuntimeError where CuPy is needed and
    missing.
    """
    cuda = numba_cuda()
    device = detect()
    if tiling is not None and not kernel.library:
        check_block(device, tiling.threads)
    launch = _launcher(kernel, problem, tiling)
    a, b = (cuda.to_device(np.ascontiguousarray(x)) for x in (operands.a, operands.b))
    original = cuda.to_device(timing.poisoned(operands.c, problem.beta))
    c = cuda.device_array_like(original)
    scalar = operands.c.dtype.type
    arguments = scalar(problem.alpha), a, b, scalar(problem.beta), c

    c.copy_to_device(original)
    launch(*arguments)  # compiles it
    c.copy_to_device(original)
    launch(*arguments)
    result = c.copy_to_host()
    error = _error(problem, result, operands)

    start, end = cuda.event(timing=True), cuda.event(timing=True)
    flush, buffer = _flush(cuda)
    samples: list[float] = []
    warm_up, count = 2, 3
    while len(samples) < count:
        c.copy_to_device(original)
        flush[4096, 256](buffer)
        start.record()
        launch(*arguments)
        end.record()
        end.synchronize()
        samples.append(cuda.event_elapsed_time(start, end) * 1e-3)
        if len(samples) == warm_up:
            count = warm_up + timing.repetitions(min(samples), repeats)
    del samples[:warm_up]

    return Measurement(
        kernel=kernel.name,
        problem=problem,
        tiling=tiling,
        backend="gpu",
        device=device.name,
        device_title=device.title,
        error=error,
        tolerance=problem.tolerance,
        samples=tuple(samples),
        provenance={
            **timing.provenance(kernel),
            **_under_load(cuda, lambda: launch(*arguments), min(samples)),
            **_versions(),
            "l2": f"flushed by writing {FLUSH_BYTES} B before each run",
        },
    )


@lru_cache(maxsize=64)
def _compiled(kernel: Kernel, tiling: Tiling | None) -> Callable:
    return numba_cuda().jit(kernel.build(tiling))


def _launcher(kernel: Kernel, problem: Gemm, tiling: Tiling | None) -> Callable:
    """A function of the kernel's arguments that launches it."""
    if kernel.library:
        try:
            return kernel.build(tiling)
        except ImportError:
            raise RuntimeError(
                f"{kernel.name} needs CuPy, which is not installed; pip install cupy-cuda13x"
            ) from None
    grid, block = kernel.launch(problem, tiling)
    return _compiled(kernel, tiling)[grid, block]


def _error(problem: Gemm, result: np.ndarray, operands: Operands) -> float:
    """`Gemm.error`, in float64 on the GPU where that would take the host too long."""
    if problem.flops <= HOST_REFERENCE_FLOPS:
        return problem.error(result, operands)
    try:
        import cupy
    except ImportError:
        return problem.error(result, operands)
    # Row by row of blocks, so that the float64 copies of large matrices fit beside them.
    rows = max(1, 2**27 // max(problem.n, problem.k))
    b = cupy.asarray(operands.b, dtype=cupy.float64)
    worst = 0.0
    for i in range(0, problem.m, rows):
        a = cupy.asarray(operands.a[i : i + rows], dtype=cupy.float64)
        c = cupy.asarray(operands.c[i : i + rows], dtype=cupy.float64)
        expected = problem.alpha * (a @ b)
        scale = abs(problem.alpha) * (cupy.abs(a) @ cupy.abs(b))
        if problem.beta != 0:
            expected += problem.beta * c
            scale += abs(problem.beta) * cupy.abs(c)
        got = cupy.asarray(result[i : i + rows], dtype=cupy.float64)
        errors = cupy.abs(got - expected) / cupy.maximum(scale, cupy.finfo(cupy.float64).tiny)
        errors = cupy.where(cupy.isfinite(got), errors, cupy.inf)
        worst = max(worst, float(errors.max()))
    return worst


@cache
def _flush(cuda: Any) -> tuple[Callable, Any]:
    """A kernel that overwrites the L2, and the array that it writes."""

    @cuda.jit
    def flush(buffer):
        for i in range(cuda.grid(1), buffer.size, cuda.gridsize(1)):
            buffer[i] += 1

    items = FLUSH_BYTES // DTYPES["float32"].bytes
    return flush, cuda.to_device(np.zeros(items, np.float32))


def _under_load(cuda: Any, launch: Callable, seconds: float) -> dict[str, str]:
    """Clock and power while the kernel runs back to back, from the driver's own tool."""
    for _ in range(max(1, int(LOAD_SECONDS / seconds))):
        launch()
    clock, power, driver = _ask_driver("clocks.sm", "power.draw", "driver_version")
    cuda.synchronize()
    hertz = UNKNOWN if clock == UNKNOWN else str(int(float(clock) * 1e6))
    return {"sm_clock_hz": hertz, "power_watts": power, "driver": driver}


def _ask_driver(*fields: str) -> list[str]:
    """What the driver says of the first GPU; UNKNOWN for what it does not report."""
    tool = shutil.which("nvidia-smi")
    if tool is None:
        return [UNKNOWN] * len(fields)
    command = [tool, f"--query-gpu={','.join(fields)}", "--format=csv,noheader,nounits", "--id=0"]
    try:
        answer = subprocess.run(command, capture_output=True, text=True, timeout=20, check=True)
    except (OSError, subprocess.SubprocessError):
        return [UNKNOWN] * len(fields)
    values = [v.strip() for v in answer.stdout.strip().split(",")]
    return [UNKNOWN if v.startswith("[") else v for v in values]  # [N/A], [Not Supported]


@cache
def _versions() -> dict[str, str]:
    from numba import cuda

    major, minor = cuda.cudadrv.runtime.get_version()
    cupy = next((v for p in ("cupy-cuda13x", "cupy-cuda12x", "cupy")
                 if (v := timing.version(p)) != "not installed"), "not installed")  # fmt: skip
    return {
        "cuda": f"{major}.{minor}",
        "numba_cuda": timing.version("numba-cuda"),
        "cupy": cupy,
        "cublas": _cublas_version(),
    }


def _cublas_version() -> str:
    """As cuBLAS itself says it, such as "130100"."""
    try:
        import cupy
        from cupy_backends.cuda.libs import cublas
    except ImportError:
        return "not installed"
    return str(cublas.getVersion(cupy.cuda.device.get_cublas_handle()))
