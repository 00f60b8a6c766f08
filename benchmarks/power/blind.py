"""Products at the limit of power, and some that L2 cannot hold: predicted first, then timed.

    python -m benchmarks.power.blind --predict FILE [--set power_2] [--device h100_sxm]
    python -m benchmarks.power.blind --time FILE [--set power_2]

No such product had been timed on an H100 when it was predicted. Operands are normal numbers, drawn
on the GPU; C is compared with cuBLAS' (relative, by norm). `sustained` is the time of a launch
among many in a row, for longer than a second.
"""

from __future__ import annotations

import multiprocessing
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from statistics import median
from types import MappingProxyType
from typing import Any, NamedTuple

from benchmarks import turns
from benchmarks.forecast.others.timing import origin as timed_at
from benchmarks.forecast.written import origin, parser, write
from gemmlab import Gemm, kernels
from gemmlab.compiled.forecast.rungs import predict_rung
from gemmlab.here.detection import detect
from gemmlab.kernels.hashing import source_hash
from gemmlab.measure.backends import gpu
from gemmlab.measure.backends.timing import repetitions

SECONDS = 1.2  # of launches in a row
COMPILERS = 14  # processes at most


class Case(NamedTuple):
    """A rung, with the tiling that it chooses, and a product: m, n, k, layout."""

    kernel: str
    m: int
    n: int
    k: int
    layout: str = "nn"

    @property
    def problem(self) -> Gemm:
        half = kernels.get(self.kernel) in kernels.TENSOR_CORE + kernels.TENSOR_CORE_TMA + HOPPER
        formats = {"dtype": "float16", "out_dtype": "float32"} if half else {}
        return Gemm(self.m, self.n, self.k, layout=self.layout, **formats)


HOPPER = (
    *(kernels.warp_specialised, kernels.wgmma_pipelined, kernels.tma_stored),
    *kernels.HOPPER_SPLIT_K,
)
CASES = (
    Case("wgmma_pipelined", 8192, 8192, 8192, "nt"),
    Case("wgmma_pipelined", 7168, 7168, 7168),
    Case("wgmma_pipelined", 6144, 9216, 8192),
    Case("wgmma_split_k", 7168, 7168, 7168),
    Case("wgmma_split_k", 4096, 8192, 10_240),
    Case("warp_specialised", 8192, 8192, 8192, "nt"),
    Case("warp_specialised", 7168, 7168, 7168),
    Case("warp_specialised", 10_240, 6144, 4096),
    Case("warp_specialised", 5120, 5120, 5120),
    Case("tma_stored", 8192, 8192, 8192),
    Case("tma_stored", 7168, 7168, 7168),
    Case("mma_tma", 7168, 7168, 7168),
    Case("mma_tma", 6144, 9216, 8192),
    Case("mma_tuned", 7168, 7168, 7168),
    Case("mma_pipelined", 8192, 8192, 8192),
    Case("mma_swizzled", 8192, 8192, 8192),
    Case("mma_shared", 8192, 8192, 8192),
    Case("tcec_fused", 5120, 5120, 5120),
    Case("tcec_fused", 7168, 7168, 7168),
    Case("tcec_mma_tma", 6144, 6144, 6144),
    Case("tcec_mma_tma", 8192, 8192, 8192),
    Case("tcec_registers", 4096, 4096, 4096),
    Case("tcec_stored", 4096, 4096, 4096),
    Case("pipelined", 8192, 8192, 8192),
    Case("pipelined", 6144, 6144, 6144),
    Case("coalesced", 5120, 4352, 1152),
    Case("coalesced", 3000, 3500, 1500),
    Case("coalesced", 6400, 3072, 2048),
    Case("coalesced", 2048, 6144, 1536),
    Case("coalesced", 128, 6400, 4096),
    Case("coalesced", 7000, 160, 2400),
    Case("coalesced", 1600, 1200, 6000),
    Case("coalesced", 4800, 2400, 2800),
)
SECOND = (  # of decision 049
    Case("warp_specialised", 9216, 7168, 6144),
    Case("warp_specialised", 4096, 6144, 10_240, "nt"),
    Case("tma_stored", 6144, 8192, 7168, "nt"),
    Case("tma_stored", 10_240, 5120, 4096),
    Case("wgmma_pipelined", 5120, 6144, 10_240),
    Case("mma_tma", 5120, 8192, 6144),
    Case("mma_tuned", 6144, 6144, 8192),
    Case("tcec_fused", 6144, 6144, 4096),
    Case("tcec_mma_tma", 4096, 8192, 6144),
    Case("coalesced", 3600, 4000, 1600),
    Case("coalesced", 2400, 5000, 2400),
    Case("coalesced", 5600, 3600, 1400),
    Case("coalesced", 4400, 2000, 3600),
    Case("coalesced", 6000, 2800, 2400),
)
SETS = {"power": CASES, "power_2": SECOND}  # by what their files are called


def said(case: Any, device: Any) -> dict[str, Any]:
    kernel = kernels.get(case.kernel)
    tiling = kernel.choose(None, case.problem, device)
    return {
        "kernel": case.kernel, "problem": str(case.problem), "tiling": str(tiling or ""),
        "source_sha256": source_hash(kernel),
    }  # fmt: skip


def predicted(device: str, cases: Sequence[Any] = CASES) -> Iterator[dict[str, Any]]:
    """Predict cases, each with a kernel's name and a problem; a library is timed alone."""
    for case in (one for one in cases if not kernels.get(one.kernel).library):
        found = predict_rung(case.problem, device, kernels.get(case.kernel))
        yield said(case, device) | {
            "seconds": found.seconds, "by": found.bottleneck, "times": dict(found.times),
            "sustained": found.sustained, "watts": found.load.watts,
        }  # fmt: skip


def timed(cases: Sequence[Any] = CASES) -> Iterator[dict[str, Any]]:
    """Time them on the GPU that is here: processes compile side by side, and one at a time runs."""
    spawned = multiprocessing.get_context("spawn")
    with spawned.Pool(min(COMPILERS, len(cases)), turns.share, (spawned.Lock(),)) as pool:
        yield from pool.imap(_timed, cases, chunksize=1)


def _timed(case: Any) -> dict[str, Any]:
    device, kernel = detect(), kernels.get(case.kernel)
    like = small(case.problem)  # its kernel is compiled, and kept
    gpu.Runner(kernel, like, kernel.choose(None, case.problem, device), gpu.Matrices(like))
    with turns.mine():
        runner = _runner(case, device)
        error = _error(runner)
        warm = [runner.sample() for _ in range(gpu.WARM_UP)]
        samples = [runner.sample() for _ in range(repetitions(min(warm), None))]
        return said(case, device) | {
            "ns": [round(1e9 * s) for s in samples], "error": error,
            "sustained": _sustained(runner, median(samples)),
            **runner.under_load(min(samples)),
        }  # fmt: skip


def small(problem: Gemm) -> Gemm:
    """Return a product like another, whose rows begin where those of the other do.

    >>> print(small(Gemm(4100, 8192, 13)))
    260×256×13 float32
    """
    m, n, k = (min(size, 256 + size % 8) for size in (problem.m, problem.n, problem.k))
    return replace(problem, m=m, n=n, k=k)


def _runner(case: Any, device: Any) -> gpu.Runner:
    import cupy

    problem, kernel = case.problem, kernels.get(case.kernel)
    matrices = gpu.Matrices(problem)
    for array in map(cupy.asarray, (matrices.a, matrices.b)):
        for row in range(0, len(array), 1024):
            part = array[row : row + 1024]
            part[...] = _stored(cupy.random.standard_normal(part.shape, cupy.float32), part.dtype)
    cupy.asarray(matrices.before)[...] = 0
    return gpu.Runner(kernel, problem, kernel.choose(None, problem, device), matrices)


def _error(runner: gpu.Runner) -> float:
    """How far the first launch's C is from cuBLAS' product."""
    import cupy

    runner.call(*runner._arguments(runner.problem))
    a, b, c = map(cupy.asarray, (runner.matrices.a, runner.matrices.b, runner.matrices.c))
    a = a.T if runner.problem.layout[0] == "t" else a
    b = b.T if runner.problem.layout[1] == "t" else b
    right = _numbers(a) @ _numbers(b)
    return float(cupy.linalg.norm(_numbers(c) - right) / cupy.linalg.norm(right))


def _stored(numbers: Any, dtype: Any) -> Any:
    """Numbers as they lie in memory: words of 16 bits are the upper halves of those in FP32."""
    if dtype != "uint16":
        return numbers.astype(dtype)
    return (numbers.view("uint32") >> 16).astype(dtype)


def _numbers(array: Any) -> Any:
    """Return what an array holds, in FP32."""
    if array.dtype != "uint16":
        return array.astype("float32")
    return (array.astype("uint32") << 16).view("float32")


def _sustained(runner: gpu.Runner, seconds: float) -> float:
    """The time of a launch in the last part of many in a row [s]."""
    start, end = runner.events
    count = max(4, round(SECONDS / seconds / 2))
    for _ in range(count):
        runner.call(*runner._arguments(runner.problem))
    start.record()
    for _ in range(count):
        runner.call(*runner._arguments(runner.problem))
    end.record()
    end.synchronize()
    return 1e-3 * runner.cuda.event_elapsed_time(start, end) / count


def main(
    program: str = "benchmarks.power.blind",
    text: str = __doc__,
    sets: Mapping[str, Sequence[Any]] = MappingProxyType(SETS),
) -> int:
    """Predict or time the cases of a program, as its options say; of sets the first, if none."""
    asking, _ = parser(program, text, "h100_sxm")
    asking.add_argument("--set", choices=sets, default=next(iter(sets)), help="(%(default)s)")
    asked = asking.parse_args()
    cases = sets[asked.set]
    begun = time.perf_counter()
    before = origin(asked.device) if asked.predict else timed_at()
    rows = []
    for row in predicted(asked.device, cases) if asked.predict else timed(cases):
        shown = median(row["ns"]) * 1e-9 if asked.time else row["seconds"]
        print(f"{row['kernel']} {row['problem']}: {1e3 * shown:.4g} ms, in a row "
              f"{1e3 * row['sustained']:.4g} ms", flush=True)  # fmt: skip
        rows.append(row)
    write(asked.predict or asked.time, before, rows)
    print(f"{len(rows)} rows in {time.perf_counter() - begun:.0f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
