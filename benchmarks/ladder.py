"""The kernels of one table of the ladder and cuBLAS side by side, on the GPU that is here.

    python -m benchmarks.ladder simt [SIZE ...] [--rounds 20] [--kernels naive,tiled] [--tilings]
    python -m benchmarks.ladder tensor_core [N ...] [--dtype float16] [--out float32] [--layout nn]
    python -m benchmarks.ladder tcec [N ...] [--layout nn]
    python -m benchmarks.ladder split_k [SIZE ...] [--rounds 20]

SIZE is n or mxnxk, with :nt, :tn or :tt for transposed operands; N is for products of N×N matrices
(default: 4096 8192). The kernels take turns, A B C A B C …, so that a clock that drifts meets them
all alike; L2 is cold for each launch. The results are checked first; nothing is asserted about
times. The options of the first table are those of the next two as well.

tensor_core : rungs by the TMA and by `wgmma` need compute capability 9.0, and are left out
    elsewhere unless they are asked for
tcec : FP32 products from Tensor Cores. What splits operands beforehand is timed with it. Errors are
    of some rows of C: relative in the Frobenius norm, and the largest one relative to |A||B|
split_k : every kernel that divides k in a problem's formats, such as :float16:to-float32, with each
    of its tilings and several splits, and once with what it suggests, beside the same tiles unsplit
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from gemmlab import Gemm, Measurement, Tiling, kernels, predict
from gemmlab.device import Device
from gemmlab.here.detection import detect
from gemmlab.here.driver import gpu_status
from gemmlab.kernels import Kernel
from gemmlab.measure.backends import gpu
from gemmlab.measure.backends.checking import check
from gemmlab.measure.recording import parse_kernels, parse_sizes
from gemmlab.numerics import backward_error, forward_error
from gemmlab.problem import LAYOUTS

ROUNDS = 20
HEAD = (
    *("kernel", "tile", "TFLOP/s", "p10-p90", "of cuBLAS", "of peak", "error/tol."),
    *("regs", "local B", "shared B", "warps/SM", "MHz", "W", "throttle"),
)


def measure(
    chosen: Iterable[Kernel], problem: Gemm, rounds: int, every_tiling: bool
) -> list[Measurement]:
    """One measurement of each kernel, and of each of its tilings if asked for, taken in turns."""
    operands, matrices = problem.operands(), gpu.Matrices(problem)
    runners = [
        gpu.Runner(kernel, problem, tiling, matrices)
        for kernel in chosen
        if problem.layout in kernel.layouts
        for tiling in dict.fromkeys((kernel.default, *(kernel.tilings if every_tiling else ())))
    ]
    checks = [check(problem, runner.compute, operands) for runner in runners]
    times = np.array(
        [[runner.sample() for runner in runners] for _ in range(gpu.WARM_UP + rounds)]
    )[gpu.WARM_UP :]
    return [
        runner.measurement(samples.tolist(), checked.error, runner.under_load(samples.min()))
        for runner, samples, checked in zip(runners, times.T, checks, strict=True)
    ]


def table(measurements: Sequence[Measurement], device: Device) -> str:
    """The measurements of one problem in columns, rates also relative to cuBLAS and to the peak."""
    reference = next((m for m in measurements if m.kernel == kernels.REFERENCE.name), None)
    rows = [HEAD, *(_row(m, reference, device) for m in measurements)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join(
        "  ".join(text.ljust(w) if i < 2 else text.rjust(w) for i, (text, w) in enumerate(pairs))
        for pairs in (list(zip(row, widths, strict=True)) for row in rows)
    )


def _row(m: Measurement, reference: Measurement | None, device: Device) -> tuple[str, ...]:
    r, told = m.resources, m.provenance
    rates = [m.flops / m.percentile(p) / 1e12 for p in (90, 10)]
    peak = device.peak.get(m.problem.accumulate)
    clock = told["sm_clock_hz"]
    shared = f"{r['static_shared_bytes'] + r['dynamic_shared_bytes']}" if r else "-"
    return (
        m.kernel,
        str(m.tiling or "-").replace("×", "x"),
        f"{m.flops_per_second / 1e12:.3f}",
        f"{rates[0]:.2f}-{rates[1]:.2f}",
        f"{reference.seconds / m.seconds:.3f}" if reference else "-",
        f"{m.flops_per_second / peak:.3f}" if peak else "-",
        f"{m.error / m.tolerance:.1e}" + ("" if m.passed else " WRONG"),
        str(r.get("registers", "-")),
        str(r.get("local_bytes", "-")),
        shared,
        str(r.get("warps_per_sm", "-")),
        f"{float(clock) / 1e6:.0f}" if clock.isdecimal() else clock,
        told["power_watts"],
        told["throttle"],
    )


def compare(
    chosen: Sequence[Kernel], problems: Iterable[Gemm], rounds: int, every_tiling: bool
) -> int:
    """Print the table of each problem; returns 0 if every result is right, else 1."""
    device, right = detect(), True
    print(device.title, *(f"{k} {v}" for k, v in gpu.provenance().items()), sep="; ")
    for problem in problems:
        found = measure(chosen, problem, rounds, every_tiling)
        print(f"\n{problem}".replace("×", "x"))
        print(table(found, device), flush=True)
        right = right and all(m.passed for m in found)
    return 0 if right else 1


ROWS = 128  # of C, whose errors are told


def errors(kernel: Kernel, problem: Gemm, tiling: Tiling | None) -> tuple[float, float]:
    """The errors of a kernel's result in the first rows of C."""
    operands = problem.operands()
    found = gpu.Runner(kernel, problem, tiling, gpu.Matrices(problem)).compute(problem, operands)
    a, b, _ = (x.astype(np.float64) for x in problem.values(operands))
    a, found = a[:ROWS], found[:ROWS]
    right = a @ b
    return forward_error(found, right), backward_error(found, right, a, b)


# ---------------------------------------------------------------------------------- splits of k

SPLIT_SIZES = (
    "1024x1024x8192,512x512x16384,256x256x65536,128x128x16384,"
    "1024x1024x8192:float16:to-float32,512x512x16384:float16:to-float32,"
    "256x1024x32768:float16:to-float32,128x128x16384:float16:to-float32"
)
SPLITS = (2, 3, 4, 6, 8, 11, 12, 16, 22, 24, 33, 48, 66, 99, 132)
FEWEST, MOST = 0.4, 4.2  # blocks for each SM; fewer or more are not worth a run
WHOLE = {  # kernels that divide k -> the one with the same tiles that does not
    **dict.fromkeys(kernels.SPLIT_K, kernels.pipelined),
    **dict.fromkeys(kernels.TENSOR_CORE_SPLIT_K, kernels.mma_pipelined),
    **dict.fromkeys(kernels.HOPPER_SPLIT_K, kernels.warp_specialised),
}


class Run(NamedTuple):
    """One line of the table of splits."""

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


def measure_splits(problem: Gemm, rounds: int) -> list[tuple[Run, np.ndarray, float]]:
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


def split_table(problem: Gemm, found: list[tuple[Run, np.ndarray, float]]) -> Iterator[str]:
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


# ----------------------------------------------------------------------------------- the tables


def simt(asked: argparse.Namespace) -> int:
    """The rungs on FP32 units."""
    chosen = parse_kernels(asked.kernels) if asked.kernels else (*kernels.LADDER, kernels.REFERENCE)
    return compare(chosen, parse_sizes(",".join(asked.sizes)), asked.rounds, asked.tilings)


def tensor_core(asked: argparse.Namespace) -> int:
    """The rungs on Tensor Cores."""
    hopper = detect().compute_capability == (9, 0)
    rungs = *kernels.TENSOR_CORE, *(kernels.TENSOR_CORE_TMA + kernels.HOPPER if hopper else ())
    chosen = parse_kernels(asked.kernels) if asked.kernels else (*rungs, kernels.REFERENCE)
    formats = {"dtype": asked.dtype, "out_dtype": asked.out}
    problems = (Gemm(n, n, n, layout=asked.layout, **formats) for n in asked.sizes)
    return compare(chosen, problems, asked.rounds, asked.tilings)


def tcec(asked: argparse.Namespace) -> int:
    """Corrected products, and their errors after the times."""
    chosen = parse_kernels(asked.kernels) if asked.kernels else (*kernels.TCEC, kernels.REFERENCE)
    problems = [Gemm(n, n, n, layout=asked.layout) for n in asked.sizes]
    wrong = compare(chosen, problems, asked.rounds, asked.tilings)
    for problem in problems:
        print(f"\n{problem}".replace("×", "x"))
        for kernel in chosen:
            by_norm, largest = errors(kernel, problem, kernel.default)
            print(f"{kernel.name}: error {by_norm:.2e} by norm, at most {largest:.2e} of |A||B|")
    return wrong


def split_k(asked: argparse.Namespace) -> int:
    """Splits of k beside the same tiles unsplit."""
    for problem in parse_sizes(",".join(asked.sizes)):
        print("\n".join(split_table(problem, measure_splits(problem, asked.rounds))), flush=True)
    return 0


def arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    """What is asked for: `table` is the function that prints it."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    tables = parser.add_subparsers(required=True, metavar="TABLE")
    for table in (simt, tensor_core, tcec, split_k):
        options = tables.add_parser(table.__name__, help=table.__doc__)
        options.set_defaults(table=table)
        options.add_argument("--rounds", type=int, default=ROUNDS, help="timed launches of each")
        if table is split_k:
            options.add_argument("sizes", nargs="*", default=[SPLIT_SIZES], metavar="SIZE")
            continue
        options.add_argument("--kernels", help="names with commas (default: all rungs and cublas)")
        options.add_argument("--tilings", action="store_true", help="every recorded one of each")
        if table is simt:
            options.add_argument("sizes", nargs="*", default=["4096", "8192"], metavar="SIZE")
            continue
        options.add_argument("sizes", nargs="*", type=int, default=[4096, 8192], metavar="N")
        options.add_argument("--layout", default="nn", choices=LAYOUTS)
        if table is tensor_core:
            options.add_argument("--dtype", default="float16", choices=["float16", "bfloat16"])
            options.add_argument("--out", default="float32", help="format of C (default: float32)")
    return parser.parse_args(argv)


def main(argv: Sequence[str] | None = None) -> int:
    asked = arguments(argv)
    if not gpu_status().works:
        print(f"this needs a GPU: {gpu_status().reason}", file=sys.stderr)
        return 1
    return asked.table(asked)


if __name__ == "__main__":
    sys.exit(main())
