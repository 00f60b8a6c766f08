"""Products of FP8 with scales, by the course's rung and by cuBLASLt: predicted, then timed.

    python -m benchmarks.fp8 --predict FILE [--device h100_sxm]
    python -m benchmarks.fp8 --time FILE

Numbers are normal; each row of A and each column of B, or all of a matrix, is divided by the scale
with which its largest element is E4M3's. PyTorch's `_scaled_mm` hands them to cuBLASLt. Two errors
are taken by norm: of the sum, against a product in FP32 of what the bytes are, and of all of it,
against one of what they were rounded from.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Callable, Iterator
from functools import cache, partial
from statistics import median
from typing import Any, NamedTuple

from benchmarks.beside_torch import array, foretold, launching, of_this_code, timed_ways, write_file
from benchmarks.forecast.written import Written, stored
from benchmarks.page_tables import mean, ms, percent, table
from gemmlab import Gemm, kernels
from gemmlab.compiled.forecast.rungs import predict_rung
from gemmlab.formats import FORMATS
from gemmlab.kernels import Kernel
from gemmlab.kernels.hashing import source_hash

DEVICE, PREDICTED, TIMED = "h100_sxm", "fp8_predicted", "fp8_timed"
DTYPE = "float8_e4m3fn"
SEED, DRAWN = 20261148, 12
SMALLEST, LARGEST = 512, 8192
LEAST, MOST = 4e9, 1.2e12  # multiplications: less is a launch, more a second


class Case(NamedTuple):
    """A product, whether each line has a scale, and whether Tensor Cores sum all of k."""

    problem: Gemm
    lines: bool
    fast: bool

    def __str__(self) -> str:
        scales = "scales by line" if self.lines else "one scale"
        return f"{self.problem}, {scales}{', fast' * self.fast}"


def product(m: int, n: int, k: int, out: str = "bfloat16") -> Gemm:
    """Return a product of FP8."""
    return Gemm(m, n, k, dtype=DTYPE, out_dtype=out, layout="nt")


def drawn() -> Iterator[Case]:
    """Draw products; sizes are even on a logarithmic scale, multiples of 32."""
    rng = random.Random(SEED)
    count = 0
    while count < DRAWN:
        m, n, k = (
            32 * round(SMALLEST * (LARGEST / SMALLEST) ** rng.random() / 32) for _ in range(3)
        )
        lines, fast = rng.random() < 0.5, rng.random() < 0.5
        out = "bfloat16" if lines else rng.choice(("bfloat16", "float32"))
        if LEAST <= m * n * k <= MOST:
            count += 1
            yield Case(product(m, n, k, out), lines, fast)


KNOWN = [
    Case(product(size, size, size, out), lines, fast)
    for size in (4096, 8192)
    for out, lines in (("bfloat16", False), ("bfloat16", True), ("float32", False))
    for fast in (False, True)
    if size > 4096 or out == "bfloat16"
]
CASES = [*KNOWN, *drawn()]
WAYS = "ours", "torch"
MOST_ERROR = 1.2  # times PyTorch's, of sums
# In a row, a shorter launch waits for the next one, for which Python needs 44 to 53 µs here.
IN_TURN = 60e-6


def rung(case: Case, rows: Any = None, columns: Any = None) -> Kernel:
    """Return the kernel of a case."""
    return kernels.with_scales(rows, columns, fast=case.fast)


@cache
def source(fast: bool) -> str:
    """Return the hash of the kernel's source."""
    return source_hash(kernels.with_scales(fast=fast))


def said(case: Case) -> dict[str, Any]:
    """Say which case it is, of which source."""
    return {"case": str(case), "source_sha256": source(case.fast)}


def predicted(device: str) -> Iterator[dict[str, Any]]:
    """Predict all cases."""
    seen: dict[tuple, Any] = {}  # scales are multiplied with, whatever they are
    for case in CASES:
        kind = case.problem, case.fast
        if kind not in seen:
            seen[kind] = predict_rung(case.problem, device, rung(case))
        found = seen[kind]
        yield said(case) | foretold(found)


# ------------------------------------------------------------------------------------------ timing


def timed() -> Iterator[dict[str, Any]]:
    """Time all cases on the GPU that is here, each way in turn."""
    for case in CASES:
        calls, errors = prepared(case)
        yield said(case) | {"ways": timed_ways(calls), "errors": errors}


def prepared(case: Case, tiling: Any = None) -> tuple[dict[str, Callable], dict[str, list[float]]]:
    """Return a call for each way, and how far its result is off, of the sum and of all of it."""
    import torch

    p = case.problem
    draw = partial(torch.randn, device="cuda")
    a, b = draw(p.m, p.k), draw(p.n, p.k)
    (x, r), (y, s) = (_scaled(v, case.lines) for v in (a, b))
    c = torch.zeros(p.m, p.n, device="cuda", dtype=getattr(torch, p.out_dtype))
    kernel = rung(case, array(r[:, 0]), array(s[:, 0]))
    ours = launching(kernel, p, (x, y, c), tiling)
    by_torch = partial(
        torch._scaled_mm, x, y.T, r if case.lines else r[0, 0], s.T if case.lines else s[0, 0],
        out_dtype=c.dtype, use_fast_accum=case.fast,
    )  # fmt: skip
    calls = {"ours": ours, "torch": by_torch}
    sums, whole = (x.float() * r) @ (y.float() * s).T, a @ b.T
    errors = {}
    for way, call in calls.items():
        result = call()
        result = (c if result is None else result).float()
        errors[way] = [float((result - right).norm() / right.norm()) for right in (sums, whole)]
    return calls, errors


def _scaled(x: Any, lines: bool) -> tuple[Any, Any]:
    """Return bytes in FP8, and their scales, as a column."""
    import torch

    most = x.abs().amax(1, keepdim=True) if lines else x.abs().amax().expand(len(x), 1)
    scale = (most / FORMATS[DTYPE].largest).contiguous()
    return (x / scale).to(getattr(torch, DTYPE)), scale


# ------------------------------------------------------------------------------------------- table


class Timed(NamedTuple):
    """A case was predicted and timed, alone and among many in a row: ours and PyTorch's [s].

    errors : of the sum, by norm, ours and PyTorch's
    """

    case: Case
    predicted: tuple[float, float]
    ours: tuple[float, float]
    torch: tuple[float, float]
    errors: tuple[float, float]

    @property
    def off(self) -> tuple[float, float]:
        """How far off the predictions are."""
        alone, turns = (p / m - 1 for p, m in zip(self.predicted, self.ours, strict=True))
        return alone, turns

    @property
    def of_torch(self) -> tuple[float, float]:
        """PyTorch's time ÷ ours."""
        alone, turns = (t / o for t, o in zip(self.torch, self.ours, strict=True))
        return alone, turns

    @property
    def long(self) -> bool:
        """Whether a launch in a row does not wait for Python."""
        return self.ours[0] >= IN_TURN


def written() -> tuple[Written, Written]:
    """Return what was predicted, and what was timed."""
    return stored(DEVICE, PREDICTED), stored(DEVICE, TIMED)


def cases() -> list[Timed]:
    """Return all cases; ValueError where other code was predicted or timed, or C was wrong."""
    predictions, timings = written()
    rows = zip(CASES, predictions.rows, timings.rows, strict=True)
    return [_timed(case, told, found) for case, told, found in rows]


def _timed(case: Case, told: dict[str, Any], found: dict[str, Any]) -> Timed:
    of_this_code(said(case), told, found)
    ours, torch = (found["errors"][way][0] for way in WAYS)
    if not ours <= MOST_ERROR * torch:
        raise ValueError(f"{case}: the sums were off by {ours}, PyTorch's by {torch}")
    times = (
        (median(found["ways"][way]["ns"]) * 1e-9, found["ways"][way]["sustained"]) for way in WAYS
    )
    return Timed(case, (told["seconds"], told["sustained"]), *times, (ours, torch))


def pairs() -> list[tuple[float, float]]:
    """Return (predicted, measured) of each case that was drawn, alone [s]."""
    return [(one.predicted[0], one.ours[0]) for one in cases()[len(KNOWN) :]]


def rows() -> tuple[str, str]:
    """Tell how far off predictions are in a sentence, and each case in a table."""
    head = ["product", "measured", "error", "of PyTorch", "in a row", "error", "of PyTorch",
            "error of sums", "PyTorch's"]  # fmt: skip
    cells = []
    for one in (found := cases()):
        told = [str(one.case), ms(one.ours[0]), percent(one.off[0]), f"{one.of_torch[0]:.2f}"]
        if one.long:
            told += [ms(one.ours[1]), percent(one.off[1]), f"{one.of_torch[1]:.2f}"]
        told += [""] * (len(head) - 2 - len(told))
        cells.append([*told, *(f"{error:.2g}" for error in one.errors)])
    known, blindly = found[: len(KNOWN)], found[len(KNOWN) :]
    return (
        f"{len(blindly)} products that were drawn: {mean(o.off[0] for o in blindly)} off on "
        f"average, {mean(o.off[1] for o in blindly if o.long)} in a row; {len(known)} squares: "
        f"{mean(o.off[0] for o in known)}, {mean(o.off[1] for o in known)}"
    ), table(head, cells)


if __name__ == "__main__":
    sys.exit(write_file("benchmarks.fp8", __doc__, DEVICE, predicted, timed))
