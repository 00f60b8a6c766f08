"""The backends on which a kernel runs: the GPU, the CPU, the simulator, or the records.

A backend is an argument, never a hidden mode.
"""

import sys
from functools import cache

from gemmlab import Tiling
from gemmlab.arguments import whole_number
from gemmlab.device import RECORDED, Device, names
from gemmlab.here.driver import gpu_status
from gemmlab.kernels.kernel import Kernel
from gemmlab.measure import records
from gemmlab.measure.backends import timing
from gemmlab.measure.measurement import BACKENDS, Measurement
from gemmlab.problem import Gemm, Operands

__all__ = ["available", "choose", "run"]


def run(
    kernel: Kernel,
    problem: Gemm,
    backend: str = "auto",
    *,
    tiling: Tiling | None = None,
    operands: Operands | None = None,
    data: str | None = None,
    device: str | Device = RECORDED,
    repeats: int | None = None,
) -> Measurement:
    """Run `kernel` on `problem` and return what is observed.

    backend : "gpu" and "cpu" time it, "simulator" counts, "recorded" replays a measurement made
        on `device`; "auto" is the GPU if one works, else the simulator, and the CPU for its kernels
    tiling : the kernel's own where None
    operands : A, B, C to use instead of random ones; C is not changed
    device : of recorded measurements: a name with a file in `gemmlab/devices`, or with records
    data : what these operands are, for the provenance; "given by the caller" where None
    repeats : timed runs; as many as a fraction of a second allows where None

    The result is checked in float64 before anything is timed: look at `.passed`, and at
    `gemmlab.measure.backends.checking` for what is done where a whole reference would take too
    long. Raises TypeError or ValueError for arguments that do not fit together, quoting them,
    RuntimeError where a GPU or a package is missing, and LookupError where nothing is recorded.
    """
    if not isinstance(kernel, Kernel):
        raise TypeError(f"kernel={kernel!r} is not a Kernel; use one of gemmlab.kernels")
    if not isinstance(problem, Gemm):
        raise TypeError(f"problem={problem!r} is not a Gemm; use Gemm(m, n, k)")
    kernel.check_problem(problem)
    if operands is not None:
        operands = Operands(*operands)
        problem.check_operands(operands)
    device, chosen = _known(device), choose(kernel, backend)
    if chosen == "gpu":
        from gemmlab.measure.backends import gpu
    tiling = kernel.choose(tiling, problem, gpu.detect() if chosen == "gpu" else device)
    if chosen == "recorded":
        return records.find(kernel, problem, tiling, device)
    if repeats is not None:
        whole_number("repeats", repeats)
    if chosen == "simulator":
        from gemmlab.measure.backends import simulator

        simulator.check_size(problem, tiling)  # before gigabytes of operands are drawn
    if operands is None:
        operands, data = problem.operands(), timing.DATA
    data = data or timing.OWN_DATA
    if chosen == "gpu":
        return gpu.run(kernel, problem, operands, tiling, repeats, data)
    if chosen == "cpu":
        from gemmlab.measure.backends import cpu

        return cpu.run(kernel, problem, operands, tiling, repeats, data)
    return simulator.run(kernel, problem, operands, tiling)


def _known(device: str | Device) -> str:
    """Give the name of a device; ValueError for a name without a file and without measurements."""
    if isinstance(device, Device):  # such as the GPU of this machine, which may have no file
        return device.name
    known = sorted({*names(), *records.devices()})
    if device not in known:
        raise ValueError(f"device={device!r} is not known; use one of {', '.join(known)}")
    return device


def choose(kernel: Kernel, backend: str = "auto") -> str:
    """Choose the backend as `run` does; ValueError or RuntimeError where it cannot be used."""
    if backend not in ("auto", *BACKENDS):
        raise ValueError(f"backend={backend!r} is not known; use auto, {', '.join(BACKENDS)}")
    fitting = available(kernel)
    if backend == "auto":
        if kernel.machine == "gpu" and "gpu" not in fitting:
            _say_once(f"no GPU is used ({gpu_status().reason}): kernels run on the simulator")
        return fitting[0]
    if backend not in fitting:
        if backend == "gpu" and kernel.machine == "gpu":
            raise RuntimeError(f"no GPU can be used: {gpu_status().reason}")
        raise ValueError(
            f"{kernel.name} cannot run on backend={backend!r}; use {', '.join(fitting)}"
        )
    return backend


def available(kernel: Kernel) -> tuple[str, ...]:
    """List the backends that can run `kernel` on this machine, the best first."""
    if kernel.machine == "cpu":
        return ("cpu",)
    backends = ("gpu",) if gpu_status().works else ()
    return (*backends, "recorded") if kernel.library else (*backends, "simulator", "recorded")


@cache
def _say_once(message: str) -> None:
    """Print a line on stderr; in a notebook, which shows that as an error, on stdout."""
    ipython = sys.modules.get("IPython")
    notebook = hasattr(ipython and ipython.get_ipython(), "kernel")
    print(f"gemmlab: {message}", file=sys.stdout if notebook else sys.stderr)
