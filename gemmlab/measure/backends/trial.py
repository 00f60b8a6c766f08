"""Judging a kernel that nobody has checked: on the simulator first, then where it is to run.

On a GPU an index out of bounds costs the process its CUDA context, an endless loop never comes
back, and a race may give the right result today. So a kernel runs there only once it has passed
on the simulator, on small problems whose edges fill no tile.
"""

import math
import re
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from gemmlab import Tiling, device as load_device
from gemmlab.device import RECORDED, Device
from gemmlab.formats import from_memory
from gemmlab.here.driver import UNKNOWN
from gemmlab.kernels.kernel import Kernel
from gemmlab.measure import backends
from gemmlab.measure.backends import simulator, stopping
from gemmlab.measure.measurement import Measurement
from gemmlab.problem import Gemm, Operands
from gemmlab.simt import HazardError

BUILDING = 2.0  # seconds of the processor that Python code around a kernel may take
ENDLESS = ("step-limit", "deadlock")  # hazards of kernels that do not end
# Turns of a thread's `while`: many times the multiply-adds that fall to one thread.
STEPS, STEPS_PER_FMA = 4_000, 16
LINES = 6  # of a compiler's message
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")


class RejectedError(RuntimeError):
    """A kernel is wrong; the text says what is wrong with it, and where."""


class Judgement(NamedTuple):
    """The result of a kernel that was tried, and a remark on how it was tried."""

    measurement: Measurement
    remark: str


@dataclass(frozen=True)
class Fault:
    """A fault of a kernel on a small problem.

    runs : whether it runs to its end at all, if to a wrong one
    """

    text: str
    runs: bool = False


def judge(
    kernel: Kernel,
    problem: Gemm,
    backend: str = "auto",
    *,
    tiling: Tiling | None = None,
    device: str | Device = RECORDED,
) -> Judgement:
    """Try `kernel` on small problems, then run it as `gemmlab.run` does.

    Raises RejectedError for a kernel that does not run to its end, for one that is wrong on the
    small problems and was to run on a GPU, and for one with a hazard on `problem`. ValueError
    and RuntimeError for arguments, as `gemmlab.run` has.
    """
    tiling, backend = kernel.choose(tiling), backends.choose(kernel, backend)
    fault = rehearse(kernel, tiling)
    if fault and (backend == "gpu" or not fault.runs):
        not_run = " It was not run on the GPU." if backend == "gpu" else ""
        raise RejectedError(f"{fault.text}{not_run}")
    try:
        made = backends.run(kernel, problem, backend, tiling=tiling, device=device)
    except Exception as error:
        raise RejectedError(f"on {problem}: {told(error)}") from error
    small, _ = problems(tiling)  # both have the same sizes
    remark = fault.text if fault else (
        f"It passed the simulator on {small.m}×{small.n}×{small.k}, which fills no tile, "
        "with β = 0 and β ≠ 0: no hazard, no wrong element."
    )  # fmt: skip
    if "source_sha256" in made.provenance:  # the hash is of what is around the function
        made = replace(made, provenance={**made.provenance, "source_sha256": UNKNOWN})
    return Judgement(made, remark)


def problems(tiling: Tiling) -> tuple[Gemm, Gemm]:
    """Make two problems of several tiles each way that fill none of them: β = 0, and β ≠ 0.

    >>> print(*problems(Tiling.square(16)))
    25×19×33 float32 25×19×33 float32
    """
    bm, bn, bk = tiling.block
    sizes = bm + bm // 2 + 1, bn + 3, max(2 * bk + 1, 19)
    return Gemm(*sizes), Gemm(*sizes, alpha=2.0, beta=-3.0)


def rehearse(kernel: Kernel, tiling: Tiling) -> Fault | None:
    """Run `kernel` on the simulated `problems`; the first fault, or None."""
    return next(filter(None, (_fault(kernel, tiling, p) for p in problems(tiling))), None)


def _fault(kernel: Kernel, tiling: Tiling, problem: Gemm) -> Fault | None:
    """Simulate a kernel on one problem; its fault, or None."""
    scalars = "" if problem.beta == 0 else f" with α = {problem.alpha:g}, β = {problem.beta:g}"
    where = f"on {problem.m}×{problem.n}×{problem.k}{scalars}, simulated: "
    given = problem.operands()
    a, b, c = given.a.copy(), given.b.copy(), problem.poisoned(given.c)
    alpha, beta = problem.scalars()
    try:
        with stopping.limited(BUILDING, "build(tiling)"):
            kernel.function(problem, tiling)
            grid, block = kernel.launch(problem, tiling, load_device(RECORDED))
        per_thread = tiling.padded_flops(problem) / 2 / (math.prod(grid) * math.prod(block))
        steps = STEPS + int(STEPS_PER_FMA * per_thread)
        simulator.launches(kernel, problem, tiling, (alpha, a, b, beta, c), max_steps=steps)
    except HazardError as error:
        endless = error.hazard.kind in ENDLESS
        return Fault(where + told(error), runs=not endless)
    except Exception as error:
        return Fault(where + told(error))
    for name, now, before in (("A", a, given.a), ("B", b, given.b)):
        if not np.array_equal(now, before):
            return Fault(f"{where}it changes {name}, which belongs to the caller.", runs=True)
    return _wrong_value(kernel, problem, c, given, where)


def _wrong_value(
    kernel: Kernel, problem: Gemm, result: np.ndarray, given: Operands, where: str
) -> Fault | None:
    """Look for elements outside the tolerance; the fault names the first."""
    wrong = np.argwhere(~(problem.errors(result, given) <= kernel.tolerance(problem)))
    if not len(wrong):
        return None
    i, j = wrong[0]
    found = from_memory(result, problem.out_dtype)[i, j]
    right = problem.reference(given)[i, j]
    return Fault(
        f"{where}{len(wrong)} of {result.size} elements are wrong; the first is C[{i}, {j}] = "
        f"{found:.6g}, and {right:.6g} is right.",
        runs=True,
    )


# ------------------------------------------------------------------------------ what was raised


def told(error: BaseException) -> str:
    """Put an error into words for whoever wrote the kernel."""
    home, text = type(error).__module__, _COLOUR.sub("", str(error))
    if isinstance(error, HazardError):
        told_ = "it was stopped. " if error.hazard.kind in ENDLESS else ""
        return told_ + text
    if "cudadrv" in home or home.startswith("cuda"):
        return (
            f"the GPU stopped it: {text}. Its CUDA context may be lost: restart the notebook's "
            "kernel before you go on"
        )
    if home.startswith("numba"):
        lines = [line.strip() for line in text.splitlines() if line.strip()]
        return "Numba cannot compile it for the GPU: " + "\n".join(lines[:LINES])
    return f"{type(error).__name__}: {text}"
