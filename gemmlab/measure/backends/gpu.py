"""Run a kernel on the GPU that is there: check it, then time it with CUDA events."""

import time
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from gemmlab import Tiling
from gemmlab.formats import number_format
from gemmlab.here.detection import detect
from gemmlab.here.driver import NOT_INSTALLED, stamp, version
from gemmlab.instructions import host
from gemmlab.kernels.kernel import Kernel
from gemmlab.measure.backends import checking, compiled, sensors, timing
from gemmlab.measure.measurement import Measurement
from gemmlab.problem import Gemm, Operands

# Written between timed runs. Several times the L2 of any GPU so far, and long enough to write that
# the next launch is queued before it ends: the time Python takes to launch is then not measured.
FLUSH_BYTES = 1 << 29
LOAD_SECONDS = 0.3  # of back-to-back launches while clock and power are read
READING_SECONDS = 0.02  # of launches between two readings
WARM_UP = 2  # timed runs that are not kept


def run(
    kernel: Kernel,
    problem: Gemm,
    operands: Operands,
    tiling: Tiling | None,
    repeats: int | None = None,
    data: str = timing.DATA,
    matrices: "Matrices | None" = None,
) -> Measurement:
    """Check `kernel` on the GPU, then time it with a cold L2.

    matrices : those of the problem on the GPU; new ones where None
    Raises ValueError for a block or for shared memory that this GPU cannot give, RuntimeError where
    CuPy is needed and missing.
    """
    runner = Runner(kernel, problem, tiling, matrices or Matrices(problem))
    checked = checking.check(problem, runner.compute, operands)
    samples = [runner.sample() for _ in range(WARM_UP)]
    samples = [runner.sample() for _ in range(timing.repetitions(min(samples), repeats))]
    return runner.measurement(
        samples,
        error=checked.error,
        provenance={
            **timing.provenance(kernel, data),
            **provenance(),
            **runner.under_load(min(samples)),
            "check": checked.how,
        },
    )


class Matrices:
    """A, B and C of one problem on the GPU, and C as it is before the update."""

    def __init__(self, problem: Gemm) -> None:
        cuda = host.cuda()
        self.a, self.b, self.c = map(cuda.device_array, problem.shapes, problem.memory)
        self.before = cuda.device_array_like(self.c)

    def load(self, problem: Gemm, operands: Operands) -> None:
        """Copy operands to the GPU; C is poisoned where β = 0 forbids to read it."""
        self.a.copy_to_device(np.ascontiguousarray(operands.a))
        self.b.copy_to_device(np.ascontiguousarray(operands.b))
        self.before.copy_to_device(problem.poisoned(operands.c))
        self.reset()

    def reset(self) -> None:
        """Give C its elements from before the update."""
        self.c.copy_to_device(self.before)


class Runner:
    """A kernel that is compiled for one problem, to be launched on its matrices and timed.

    Raises ValueError and RuntimeError as `run` does.
    """

    def __init__(
        self, kernel: Kernel, problem: Gemm, tiling: Tiling | None, matrices: Matrices
    ) -> None:
        self.kernel, self.problem, self.tiling, self.matrices = kernel, problem, tiling, matrices
        self.cuda, self.device = host.cuda(), detect()
        self.operands = kernel.operands(problem, tiling, matrices.a, matrices.b)
        self.result = kernel.result(problem, tiling, matrices.c)
        # What the arrays that the launches share hold before the check, and these arrays.
        self.poison = checking.workspace(kernel, problem, tiling)
        self.workspace = tuple(map(self.cuda.to_device, self.poison))
        self.scratch = kernel.scratch(problem, tiling, *self.workspace)
        self.call, self.resources = compiled.launch(
            kernel, problem, tiling, self.device, self._arguments(problem)
        )
        self.events = [self.cuda.event(timing=True) for _ in range(2)]

    def _arguments(self, problem: Gemm) -> tuple:
        alpha, beta = problem.scalars()
        return alpha, *self.operands, beta, *self.result, *self.scratch

    def compute(self, problem: Gemm, operands: Operands) -> np.ndarray:
        """C of one run with the scalars of `problem`; the operands stay on the GPU."""
        self.matrices.load(problem, operands)
        for array, before in zip(self.workspace, self.poison, strict=True):
            array.copy_to_device(before)
        self.call(*self._arguments(problem))
        return self.matrices.c.copy_to_host()

    def sample(self) -> float:
        """Duration of one launch that finds nothing in L2 [s]."""
        start, end = self.events
        self.matrices.reset()
        flush(self.cuda)
        start.record()
        self.call(*self._arguments(self.problem))
        end.record()
        end.synchronize()
        return self.cuda.event_elapsed_time(start, end) * 1e-3

    def under_load(self, seconds: float) -> dict[str, str]:
        """Clock, power and throttling while the kernel runs back to back, `seconds` a launch."""
        read = sensors.sensors(self.cuda.get_current_device().uuid)
        if read is None:
            return sensors.summary(())
        return sensors.summary(self._readings(read, max(1, int(READING_SECONDS / seconds))))

    def _readings(self, read: Callable, batch: int) -> list[sensors.Reading]:
        """Readings between batches of launches, one of which is always queued behind another."""
        readings: list[sensors.Reading] = []
        behind, ahead = self.events
        deadline = time.monotonic() + LOAD_SECONDS
        while len(readings) < 3 or time.monotonic() < deadline:
            for _ in range(batch):
                self.call(*self._arguments(self.problem))
            ahead.record()
            if readings:
                behind.synchronize()
            readings.append(read())
            behind, ahead = ahead, behind
        self.cuda.synchronize()
        return readings[1:]  # the clock may still have been rising

    def measurement(
        self, samples: list[float], error: float, provenance: dict[str, str]
    ) -> Measurement:
        """Return the `Measurement` made of these samples."""
        return Measurement(
            kernel=self.kernel.name,
            problem=self.problem,
            tiling=self.tiling,
            backend="gpu",
            device=self.device.name,
            device_title=self.device.title,
            error=error,
            tolerance=self.kernel.tolerance(self.problem),
            samples=tuple(samples),
            resources=self.resources,
            provenance=provenance,
        )


def flush(cuda: Any) -> None:
    """Queue a launch that overwrites the L2: what is launched next finds nothing there."""
    kernel, buffer = _flush(cuda)
    kernel[4096, 256](buffer)


@cache
def _flush(cuda: Any) -> tuple[Callable, Any]:
    """Return a kernel that overwrites the L2, and the array that it writes."""

    @cuda.jit
    def flush(buffer):
        for i in range(cuda.grid(1), buffer.size, cuda.gridsize(1)):
            buffer[i] += 1

    items = FLUSH_BYTES // number_format("float32").bytes
    return flush, cuda.to_device(np.zeros(items, np.float32))


@cache
def provenance() -> dict[str, str]:
    """The provenance that all runs on this machine share: driver, versions, state of the L2."""
    major, minor = host.cuda().cudadrv.runtime.get_version()
    cupy = map(version, ("cupy-cuda13x", "cupy-cuda12x", "cupy"))
    return {
        **stamp("driver"),
        "cuda": f"{major}.{minor}",
        **stamp(host.package()),
        "cupy": next((one for one in cupy if one != NOT_INSTALLED), NOT_INSTALLED),
        "cublas": _cublas_version(),
        "l2": f"flushed by writing {FLUSH_BYTES} B before each run",
    }


def _cublas_version() -> str:
    """Return the version that cuBLAS reports, such as "130100"; "not installed" without CuPy."""
    try:
        import cupy
        from cupy_backends.cuda.libs import cublas
    except ImportError:
        return NOT_INSTALLED
    return str(cublas.getVersion(cupy.cuda.device.get_cublas_handle()))
