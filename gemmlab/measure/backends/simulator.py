"""Run a kernel on the simulated GPU: exact counts, no times."""

from typing import Any

from gemmlab import Tiling
from gemmlab.device import RECORDED, device
from gemmlab.kernels.kernel import Kernel
from gemmlab.measure.backends.checking import workspace
from gemmlab.measure.measurement import Measurement
from gemmlab.model.counters import TransactionCounters
from gemmlab.problem import Gemm, Operands
from gemmlab.simt import simulate

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
    # The reference is of what was given, whatever the kernel does to it.
    counters = launches(kernel, problem, tiling, (alpha, a.copy(), b.copy(), beta, result))
    return Measurement(
        kernel=kernel.name,
        problem=problem,
        tiling=tiling,
        backend="simulator",
        device="simulator",
        device_title="simulated GPU",
        error=problem.error(result, operands),
        tolerance=kernel.tolerance(problem),
        counters=counters,
    )


def launches(
    kernel: Kernel, problem: Gemm, tiling: Tiling, arguments: tuple, **options: Any
) -> TransactionCounters:
    """Simulate all launches of a kernel on (alpha, A, B, beta, C): the sums of their counters.

    Persistent launches have a block for each SM of the GPU whose measurements come with gemmlab.
    options : of `simulate`; HazardError where a launch does something wrong
    """
    alpha, a, b, beta, c = arguments
    operands, result = kernel.operands(problem, tiling, a, b), kernel.result(problem, tiling, c)
    shared, total = workspace(kernel, problem, tiling), TransactionCounters()
    gpu = device(RECORDED)
    scratch = kernel.scratch(problem, tiling, *shared)
    for one in kernel.launches:
        report = simulate(
            one.function(problem, tiling),
            *one.launch(problem, tiling, gpu),
            alpha,
            *operands,
            beta,
            *result,
            *scratch,
            shared_bytes=one.dynamic_shared_bytes(problem, tiling),
            cluster=one.cluster,
            **options,
        )
        total.update(report.counters)
    return total
