"""Every rung of the ladder and cuBLAS side by side, on the GPU that is here.

    python -m benchmarks.ladder [SIZE ...] [--rounds 20] [--kernels naive,tiled] [--tilings]

SIZE is n or mxnxk, with :nt, :tn or :tt for transposed operands (default: 4096 8192). The kernels
take turns, A B C A B C …, so that a clock that drifts meets them all alike; L2 is cold for each
launch. The results are checked first; nothing is asserted about times.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Sequence

import numpy as np

from gemmlab import Gemm, Measurement, kernels
from gemmlab.device import Device
from gemmlab.here.detection import detect
from gemmlab.here.driver import gpu_status
from gemmlab.kernels import Kernel
from gemmlab.measure.backends import gpu
from gemmlab.measure.backends.checking import check
from gemmlab.measure.recording import parse_kernels, parse_sizes

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


def has_gpu() -> bool:
    """Whether there is a GPU; says why not."""
    if not gpu_status().works:
        print(f"this needs a GPU: {gpu_status().reason}", file=sys.stderr)
    return gpu_status().works


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


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    names = ",".join(k.name for k in (*kernels.LADDER, kernels.REFERENCE))
    parser.add_argument("sizes", nargs="*", default=["4096", "8192"], metavar="SIZE")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="timed launches of each")
    parser.add_argument("--kernels", default=names, help="names with commas (default: %(default)s)")
    parser.add_argument("--tilings", action="store_true", help="every recorded tiling of each")
    arguments = parser.parse_args(argv)
    if not has_gpu():
        return 1
    chosen = parse_kernels(arguments.kernels)
    return compare(
        chosen, parse_sizes(",".join(arguments.sizes)), arguments.rounds, arguments.tilings
    )


if __name__ == "__main__":
    sys.exit(main())
