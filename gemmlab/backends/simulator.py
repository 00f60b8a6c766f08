"""Run a kernel on the simulated GPU: exact counts, no times."""

from __future__ import annotations

from gemmlab.kernels.kernel import Kernel
from gemmlab.measurement import Measurement
from gemmlab.problem import Gemm, Operands
from gemmlab.simt import simulate
from gemmlab.tiling import Tiling

# About a minute: above this, a notebook would look as if it hung.
LARGEST = Gemm(1024, 1024, 1024).flops


def check_size(problem: Gemm, tiling: Tiling) -> None:
    """Raise ValueError for a problem that would take longer than about a minute."""
    if tiling.padded_flops(problem) > LARGEST:
        raise ValueError(
            f"{problem} is too large to simulate with tiles of {tiling}: it takes "
            f"{tiling.padded_flops(problem):.3g} FLOP and at most {LARGEST:.3g} are run; "
            'use a smaller problem, or backend="recorded"'
        )


def run(kernel: Kernel, problem: Gemm, operands: Operands, tiling: Tiling) -> Measurement:
    """Simulate `kernel` and check its result; HazardError where it does something wrong.

    Raises ValueError as `check_size` does.
    """
    check_size(problem, tiling)
    a, b, c = operands
    (alpha, beta), result = problem.scalars(), problem.poisoned(c)
    report = simulate(
        kernel.function(problem, tiling),
        *kernel.launch(problem, tiling),
        alpha,
        # The reference is of what was given, whatever the kernel does to it.
        *kernel.operands(problem, tiling, a.copy(), b.copy()),
        beta,
        result,
        shared_bytes=kernel.dynamic_shared_bytes(problem, tiling),
    )
    return Measurement(
        kernel=kernel.name,
        problem=problem,
        tiling=tiling,
        backend="simulator",
        device="simulator",
        device_title="simulated GPU",
        error=problem.error(result, operands),
        tolerance=problem.tolerance,
        counters=report.counters,
    )
