"""Splits of k beside the same tiles unsplit and cuBLAS, on the GPU that is here.

    python -m benchmarks.split_k [SIZE ...] [--rounds 20]

SIZE is mxnxk, with :nt, :tn or :tt for transposed operands, :float16:to-float32 and the like for
Tensor Cores. Every kernel that divides k in these formats runs with each of its tilings and several
splits, and once with what it suggests. All take turns, A B C A B C
…, with a cold L2. Each result is compared with the float64 reference; nothing is asserted of times.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from gemmlab import Gemm, kernels, predict
from gemmlab.here.detection import detect
from gemmlab.here.driver import gpu_status
from gemmlab.kernels import Kernel
from gemmlab.measure.backends import gpu
from gemmlab.measure.recording import parse_sizes
from gemmlab.tiling import Tiling

SIZES = (
    "1024x1024x8192,512x512x16384,256x256x65536,128x128x16384,"
    "1024x1024x8192:float16:to-float32,512x512x16384:float16:to-float32,"
    "256x1024x32768:float16:to-float32,128x128x16384:float16:to-float32"
)
ROUNDS = 20
SPLITS = (2, 3, 4, 6, 8, 11, 12, 16, 22, 24, 33, 48, 66, 99, 132)
FEWEST, MOST = 0.4, 4.2  # blocks for each SM; fewer or more are not worth a run
WHOLE = {  # kernels that divide k -> the one with the same tiles that does not
    **dict.fromkeys(kernels.SPLIT_K, kernels.pipelined),
    **dict.fromkeys(kernels.TENSOR_CORE_SPLIT_K, kernels.mma_pipelined),
    **dict.fromkeys(kernels.HOPPER_SPLIT_K, kernels.warp_specialised),
}


class Run(NamedTuple):
    """One line of the table."""

    kernel: Kernel
    tiling: Tiling | None
    suggested: bool = False


def dividing(problem: Gemm) -> list[Kernel]:
    """The kernels that divide k, in the problem's formats."""
    return [kernel for kernel in WHOLE if problem.arithmetic in kernel.arithmetic]


def runs(problem: Gemm, sms: int) -> Iterator[Run]:
    """cuBLAS, every kernel that divides k, and those that do not in the same tilings."""
    yield Run(kernels.REFERENCE, None)
    chosen = dividing(problem)
    yield from dict.fromkeys(Run(WHOLE[k], tiling.unsplit) for k in chosen for tiling in k.tilings)
    for kernel in chosen:
        suggested = kernel.choose(None, problem, detect())
        yield Run(kernel, suggested, suggested=True)
        for tiling in kernel.tilings:
            for split in splits(kernel, problem, tiling, sms):
                if replace(tiling, split=split) != suggested:
                    yield Run(kernel, replace(tiling, split=split))


def splits(kernel: Kernel, problem: Gemm, tiling: Tiling, sms: int) -> tuple[int, ...]:
    """Splits that are tried: of each tile, or of all steps among as many blocks."""
    if kernel in (kernels.stream_k, kernels.mma_stream_k):
        return sms, 2 * sms
    across, down = tiling.grid(problem)
    tried = (s for s in SPLITS if FEWEST <= across * down * s / sms <= MOST)
    return tuple(s for s in tried if 2 * s <= tiling.steps(problem))


def measure(problem: Gemm, rounds: int) -> list[tuple[Run, np.ndarray, float]]:
    """Durations of each run [s], taken in turns, and its error."""
    operands, matrices = problem.operands(), gpu.Matrices(problem)
    wanted = list(runs(problem, detect().sms))
    runners = [gpu.Runner(run.kernel, problem, run.tiling, matrices) for run in wanted]
    right = problem.reference(operands)
    scale = np.abs(right).max()
    errors = [np.abs(r.compute(problem, operands) - right).max() / scale for r in runners]
    matrices.load(problem, operands)
    times = np.array([[r.sample() for r in runners] for _ in range(gpu.WARM_UP + rounds)])
    return list(zip(wanted, times[gpu.WARM_UP :].T, errors, strict=True))


def table(problem: Gemm, found: list[tuple[Run, np.ndarray, float]]) -> Iterator[str]:
    """Each kernel's runs, the fastest first, beside cuBLAS and the same tiles unsplit."""
    medians = {run: float(np.median(times)) for run, times, _ in found}
    cublas = medians[Run(kernels.REFERENCE, None)]
    yield f"{problem}: cuBLAS {cublas * 1e6:.1f} us, {problem.flops / cublas / 1e12:.1f} TFLOP/s"
    yield "      us  of cuBLAS  of unsplit  bound us    error  kernel, tile"
    order = sorted(found, key=lambda one: (one[0].kernel.name, medians[one[0]]))
    for run, _, error in order:
        seconds, tiling = medians[run], run.tiling
        if tiling is None:
            continue
        whole = WHOLE.get(run.kernel, run.kernel)
        unsplit = medians[Run(whole, tiling.unsplit)] / seconds
        bound = predict(problem, detect(), run.kernel, tiling).seconds
        yield (
            f"{seconds * 1e6:8.1f}{cublas / seconds:11.2f}{unsplit:12.2f}{bound * 1e6:10.1f}"
            f"{error:9.1e}  {run.kernel.name} {tiling}{' *' * run.suggested}"
        )
    for kernel in dividing(problem):
        of_it = {run: seconds for run, seconds in medians.items() if run.kernel is kernel}
        chosen, least = next(run for run in of_it if run.suggested), min(of_it.values())
        yield f"{kernel.name}: what it suggests takes {of_it[chosen] / least:.3f} of its best"


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("sizes", nargs="*", default=[SIZES], metavar="SIZE")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    arguments = parser.parse_args(argv)
    if not gpu_status().works:
        print(f"no GPU can be used: {gpu_status().reason}", file=sys.stderr)
        return 1
    for problem in parse_sizes(",".join(arguments.sizes)):
        print("\n".join(table(problem, measure(problem, arguments.rounds))), flush=True)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
