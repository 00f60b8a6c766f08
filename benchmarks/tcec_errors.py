"""Errors of float32 products from Tensor Cores beside those of cuBLAS, and what else costs what.

    python -m benchmarks.tcec_errors OUT.json [--n 4096 8192] [--rounds 10]

Three tables. Ways: speed, error, range and memory of cuBLAS SGEMM, TF32 and emulation by BF16
(where the installed version has it for this GPU), of FP32 units, TCEC, and the policies of
`kernels.POLICIES` that a class compares. Flush interval: *tcec_split* adding its main products in
FP32 every so many of k; the bits of a part of C are compared with those of
`numerics.emulated_matmul`, which predicts the error. Errors: each way on each kind of data, k up to
65,536; a way of cuBLAS's with the bits of another one is left out. Errors are against float64, of
the first rows of C. Prints the tables and writes OUT.json, which `gemmlab.measure.benchmarks`
reads; what ships is gemmlab/recorded/<device>/tcec_errors.json.
"""

from __future__ import annotations

import argparse
import hashlib
import math
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from gemmlab import Gemm, Tiling, kernels
from gemmlab.formats import number_format
from gemmlab.here.detection import detect
from gemmlab.here.driver import gpu_status, stamp
from gemmlab.kernels import Kernel
from gemmlab.kernels.hashing import source_hash
from gemmlab.kernels.tcec.policies import BY_NAME, KERNELS
from gemmlab.measure import store
from gemmlab.measure.backends import gpu
from gemmlab.measure.benchmarks import REQUIRED
from gemmlab.numerics import Policy, emulated_matmul, forward_error, split_range
from gemmlab.problem import Operands

SIDES = (512, 2048)  # of C, whose errors are told: where cuBLAS divides k among blocks, or not
ROWS = 128  # of them, that are compared
PART = 16  # rows and columns of C that the emulator computes
DEPTHS = (256, 4096, 65536)
SIZES = (4096, 8192)  # of what is timed; intervals are timed at the last
INTERVALS = (16, 32, 64, 128, 256, 512, 1024)
FLUSHED = 4096  # of k, for the flush interval
BF16X9 = 78  # cublasComputeType_t, CUBLAS_COMPUTE_32F_EMULATED_16BFX9, since cuBLAS 12.9

Matrices = tuple[np.ndarray, np.ndarray]


# ------------------------------------------------------------------------------------------- data


def uniform(rng: np.random.Generator, m: int, n: int, k: int) -> Matrices:
    return rng.random((m, k), np.float32), rng.random((k, n), np.float32)


def normal(rng: np.random.Generator, m: int, n: int, k: int) -> Matrices:
    return rng.standard_normal((m, k), np.float32), rng.standard_normal((k, n), np.float32)


def hilbert(rng: np.random.Generator, m: int, n: int, k: int) -> Matrices:
    """Ill-conditioned: 1 / (i + p + 1) and 1 / (p + j + 1)."""
    p = np.arange(k)
    left, right = 1 / (np.arange(m)[:, None] + p + 1), 1 / (p[:, None] + np.arange(n) + 1)
    return left.astype(np.float32), right.astype(np.float32)


def cancelling(rng: np.random.Generator, m: int, n: int, k: int) -> Matrices:
    """Ill-conditioned: the second half of each sum takes the first away, but for a thousandth."""
    (a, b), nearly = normal(rng, m, n, k // 2), np.float32(0.999)
    return np.concatenate([a, -nearly * a], axis=1), np.concatenate([b, b])


def wide(rng: np.random.Generator, m: int, n: int, k: int) -> Matrices:
    """All exponents that a split into FP16 represents fully, below 2^7 so that sums are finite."""
    return _of_exponents(rng, np.log2(split_range()[0]), 7, m, n, k)


def too_wide(rng: np.random.Generator, m: int, n: int, k: int) -> Matrices:
    """Adversarial: exponents down to 2^-40, far below what the split represents."""
    return _of_exponents(rng, -40, 7, m, n, k)


def small(rng: np.random.Generator, m: int, n: int, k: int) -> Matrices:
    """Adversarial: all exponents below what FP16 represents."""
    return _of_exponents(rng, -40, -26, m, n, k)


def alike(rng: np.random.Generator, m: int, n: int, k: int) -> Matrices:
    """Adversarial: all elements are 1/3, so that roundings do not average out."""
    third = np.float32(1 / 3)
    return np.full((m, k), third), np.full((k, n), third)


def _of_exponents(
    rng: np.random.Generator, low: float, high: float, m: int, n: int, k: int
) -> Matrices:
    def draw(shape: tuple[int, int]) -> np.ndarray:
        sizes = 2.0 ** rng.uniform(low, high, shape)
        return (sizes * rng.choice([-1, 1], shape)).astype(np.float32)

    return draw((m, k)), draw((k, n))


DATA = (uniform, normal, hilbert, cancelling, wide, too_wide, small, alike)


# ------------------------------------------------------------------------------------------- ways


def emulating(tiling: Tiling | None, **variant: Any) -> Callable:
    """A function of (alpha, A, B, beta, C) by which cuBLAS emulates FP32 by BF16."""
    import cupy
    from cupy.cuda import runtime
    from cupy_backends.cuda.libs import cublas as lib

    def cublas(alpha, A, B, beta, C):
        (m, n), k = C.shape, A.shape[1]
        scalars = np.array([alpha, beta], np.float32)
        a, b, c = (x.__cuda_array_interface__["data"][0] for x in (A, B, C))
        lib.gemmEx(
            cupy.cuda.device.get_cublas_handle(), lib.CUBLAS_OP_N, lib.CUBLAS_OP_N, n, m, k,
            scalars.ctypes.data, b, runtime.CUDA_R_32F, n, a, runtime.CUDA_R_32F, k,
            scalars.ctypes.data + 4, c, runtime.CUDA_R_32F, n, BF16X9, lib.CUBLAS_GEMM_DEFAULT,
        )  # fmt: skip

    return cublas


POLICIES = {
    KERNELS[name].name: BY_NAME[name]
    for name in ("fp16", "tf32", "markidis", "tcec_fp16_inside", "tcec_tf32")
}
OWN = ("pipelined", "tcec_split", "tcec_registers", "tcec_stored", *POLICIES)
WAYS: dict[str, tuple[Kernel, str]] = {
    "cublas_sgemm": (kernels.cublas, "float32"),
    "cublas_tf32": (kernels.cublas, "tf32"),
    "cublas_bf16x9": (replace(kernels.cublas, build=emulating), "float32"),
    **{name: (kernels.get(name), "float32") for name in OWN},
}


def runner_of(way: str, m: int, n: int, k: int, tiling: Tiling | None = None) -> gpu.Runner:
    """A way, compiled for a product."""
    kernel, dtype = WAYS[way]
    problem = Gemm(m, n, k, dtype=dtype)
    chosen = tiling or kernel.choose(None, problem, detect())
    return gpu.Runner(kernel, problem, chosen, gpu.Matrices(problem))


def computed(runner: gpu.Runner, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """C = AB, by a way."""
    c = np.zeros((a.shape[0], b.shape[1]), np.float32)
    return runner.compute(runner.problem, Operands(a, b, c))


def range_of(way: str) -> tuple[float, float]:
    """Between which magnitudes elements are represented as well as the way can."""
    if way.startswith("tcec"):
        return split_range()
    policy = POLICIES.get(way)
    if policy and policy.products > 1:
        return split_range(policy.mma.dtype, policy.scale)
    form = number_format(policy.mma.dtype if policy else WAYS[way][1])
    return form.smallest_normal, form.largest


# ------------------------------------------------------------------------------------------ tables


class Exact:
    """The first rows of AB in float64, with which results are compared."""

    def __init__(self, a: np.ndarray, b: np.ndarray) -> None:
        self.a, self.b = a[:ROWS].astype(np.float64), b.astype(np.float64)
        self.c, self.scale = self.a @ self.b, abs(self.a) @ abs(self.b)

    def errors_of(self, c: np.ndarray) -> dict[str, float]:
        """The errors of a result."""
        wrong = abs(c[:ROWS] - self.c)
        largest = np.max(wrong / self.scale) if np.isfinite(wrong).all() else np.inf
        by_norm = forward_error(c[:ROWS], self.c)
        return {"by_norm": float(f"{by_norm:.4g}"), "largest": float(f"{largest:.4g}")}


def errors(
    compute: Mapping[str, Callable], sides: Sequence[int], depths: Sequence[int]
) -> list[dict]:
    """Rows of the table of errors; compute: by the name of a way, (a, b) -> C."""
    rows = []
    for side, k in product(sides, depths):
        for draw in DATA:
            a, b = draw(np.random.default_rng(k), side, side, k)
            exact = Exact(a, b)
            for way, go in compute.items():
                found = exact.errors_of(go(a, b))
                rows.append({"way": way, "data": draw.__name__, "side": side, "k": k, **found})
                print("{way:<20} {data:<11} {side:>5} {k:>6} {by_norm:9.2e} {largest:9.2e}".format(
                    **rows[-1]), flush=True)  # fmt: skip
    return rows


def flush(
    at: Callable[[int], tuple[Callable, float]], intervals: Sequence[int], side: int, k: int
) -> list[dict]:
    """Rows of the table of flush intervals.

    at : interval -> (the function (a, b) -> C, seconds of a large product)
    """
    rows = []
    a, b = uniform(np.random.default_rng(k), side, side, k)
    left, right, exact = a[:PART], b[:, :PART], Exact(a, b)
    part = exact.c[:PART, :PART]
    for interval in intervals:
        go, seconds = at(interval)
        c = go(a, b)
        predicted = emulated_matmul(left, right, Policy(every=interval // 16))
        rows.append({
            "interval": interval, **exact.errors_of(c),
            "predicted": float(f"{forward_error(predicted, part):.4g}"),
            "measured": float(f"{forward_error(c[:PART, :PART], part):.4g}"),
            "same_bits": bool(np.array_equal(c[:PART, :PART], predicted)),
            "seconds": float(f"{seconds:.4g}"),
        })  # fmt: skip
        print("every {interval:>5} of k: {measured:9.2e}, predicted {predicted:9.2e}, bits "
              "{same_bits}, {seconds:.3e} s".format(**rows[-1]), flush=True)  # fmt: skip
    return rows


@cache
def operands_of(n: int) -> Operands:
    """Random normal A, B and C of n×n."""
    return Gemm(n, n, n).operands()


def timed(way: str, n: int, rounds: int, tiling: Tiling | None = None) -> tuple[Any, float]:
    """A way, compiled for n×n×n, and the median of its samples [s]."""
    runner = runner_of(way, n, n, n, tiling)
    runner.matrices.load(runner.problem, operands_of(n))
    samples = [runner.sample() for _ in range(gpu.WARM_UP + rounds)][gpu.WARM_UP :]
    return runner, float(np.median(samples))


def ways(n: int, rounds: int) -> list[dict]:
    """Rows of the table of ways to a product of n×n×n."""
    rows = []
    problem = Gemm(n, n, n)
    a, b, _ = operands_of(n)
    exact, seen = Exact(a, b), {}
    for way, (kernel, _) in WAYS.items():
        least, most = range_of(way)
        beside = kernel.workspace(problem, kernel.default)
        taken = sum(math.prod(shape) * number_format(dtype).bytes for shape, dtype in beside)
        row = {
            "way": way, "n": n, "seconds": None, "by_norm": None, "largest": None,
            "least_magnitude": float(least), "largest_magnitude": float(most),
            "workspace_bytes": taken, "note": "",
            "shared_bytes": kernel.default and kernel.shared_bytes(problem, kernel.default),
        }  # fmt: skip
        try:
            runner, seconds = timed(way, n, rounds)
            c = computed(runner, a, b)
            row |= {"seconds": float(f"{seconds:.4g}"), **exact.errors_of(c)}
            row["note"] = told_before(way, c, seen)
        except Exception as error:  # what the library says of a way that it does not have here
            row["note"] = f"{type(error).__name__}: {error}"[:120]
        rows.append(row)
        print(row, flush=True)
    return rows


def told_before(way: str, c: np.ndarray, seen: dict[bytes, str]) -> str:
    """What is to be said of a result that another way has had; seen: ways by their results."""
    rows = np.ascontiguousarray(c[:ROWS]).tobytes()
    first = seen.setdefault(hashlib.sha256(rows).digest(), way)
    return "" if first == way else f"the bits of {first}"


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("out", type=Path)
    parser.add_argument("--n", type=int, nargs="+", default=SIZES, help="sizes of what is timed")
    parser.add_argument("--rounds", type=int, default=10, help="timed launches of each")
    asked = parser.parse_args(argv)
    if not gpu_status().works:
        print(f"this needs a GPU: {gpu_status().reason}", file=sys.stderr)
        return 1
    table_of_ways = [row for n in asked.n for row in ways(n, asked.rounds)]
    largest, told = asked.n[-1], table_of_ways[-len(WAYS) :]
    here = [r["way"] for r in told if r["seconds"] and (not r["note"] or r["way"] in OWN)]

    def computing(way: str, tiling: Tiling | None = None) -> Callable:
        def go(a: np.ndarray, b: np.ndarray) -> np.ndarray:
            return computed(runner_of(way, a.shape[0], b.shape[1], a.shape[1], tiling), a, b)

        return go

    def at(interval: int) -> tuple[Callable, float]:
        tiling = replace(kernels.tcec_split.default, block=(128, 128, interval))
        seconds = timed("tcec_split", largest, asked.rounds, tiling)[1]
        return computing("tcec_split", tiling), seconds

    intervals = flush(at, INTERVALS, SIDES[-1], FLUSHED)
    table_of_errors = errors({way: computing(way) for way in here}, SIDES, DEPTHS)
    device, known = detect(), gpu.provenance()
    provenance = {
        "device": device.name, "device_title": device.title,
        **stamp("date", "python", "numpy", "numba"),
        **{x: known[x] for x in ("driver", "cuda", "numba_cuda", "cupy", "cublas", "l2")},
        "rounds": asked.rounds, "side": SIDES[-1], "rows": ROWS, "flushed": [largest, FLUSHED],
        "policies": {way: str(policy) for way, policy in POLICIES.items()},
        "source_sha256": {k.name: source_hash(k) for k, _ in WAYS.values() if not k.library},
    }  # fmt: skip
    tables = {"errors": table_of_errors, "flush": intervals, "ways": table_of_ways}
    store.write(asked.out, provenance, tables, REQUIRED)
    return 0 if all(row["same_bits"] for row in intervals) else 1


if __name__ == "__main__":
    sys.exit(main())
