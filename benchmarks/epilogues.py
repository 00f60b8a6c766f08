"""Layers' products with what follows them in one launch, and by PyTorch: predicted, then timed.

    python -m benchmarks.epilogues --predict FILE [--device h100_sxm]
    python -m benchmarks.epilogues --time FILE

Y = f(X·Wᵀ + b), as torch.nn.functional.linear has it: W is stored as n×k. PyTorch runs it twice: as
programs say it, the linear function and then f, and in one call where it has one. Numbers are
normal, so that f gets such of about 1. C is compared with a product in FP32, by norm.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from statistics import median
from typing import Any, NamedTuple

import numpy as np

from benchmarks.beside_torch import array, foretold, launching, of_this_code, timed_ways, write_file
from benchmarks.forecast.written import Written, stored
from benchmarks.page_tables import mean, ms, percent, table
from gemmlab import Gemm, kernels
from gemmlab.compiled.forecast.rungs import predict_rung
from gemmlab.formats import number_format
from gemmlab.kernels import Kernel
from gemmlab.kernels.hashing import source_hash

DEVICE, PREDICTED, TIMED = "h100_sxm", "epilogues_predicted", "epilogues_timed"
WAYS = "ours", "torch", "torch_fused"


class Case(NamedTuple):
    """A product, what follows it, and whether that begins with a bias."""

    activation: str
    problem: Gemm
    bias: bool = True

    def __str__(self) -> str:
        return f"{self.activation}{' with a bias' * self.bias} {self.problem}"


def layer(m: int, n: int, k: int, dtype: str = "float16", **more: Any) -> Gemm:
    """Return the product of m rows by a layer from k to n features."""
    return Gemm(m, n, k, dtype=dtype, **({"layout": "nt", "beta": 1} | more))


SQUARES = 4096, 8192
CASES = (
    *(Case("linear", layer(s, s, s, beta=0), False) for s in SQUARES),
    *(Case(name, layer(s, s, s)) for s in SQUARES for name in ("linear", "relu", "gelu")),
    Case("gelu", layer(8192, 4096, 1024, "bfloat16")),  # of a transformer 1,024 wide
    Case("gelu", layer(4096, 11_008, 4096)),  # 4,096 wide
    Case("relu", layer(16_384, 3072, 768, "bfloat16")),  # 768 wide
    # Back through that one: a gradient passes where the layer gave more than 0.
    Case("relu_gradient", layer(16_384, 3072, 768, "bfloat16", layout="nn"), False),
)


def rung(case: Case, bias: Any = None) -> Kernel:
    """Return the kernel of a case; bias : zeros where None, for predictions."""
    if not case.bias:
        return kernels.with_epilogue(case.activation)
    if bias is None:
        one = np.zeros(case.problem.n, case.problem.memory[2])
        bias = np.broadcast_to(one, (case.problem.m, case.problem.n))
    return kernels.with_epilogue(case.activation, bias)


def said(case: Case) -> dict[str, Any]:
    """Say which case it is, of which source."""
    return {"case": str(case), "source_sha256": source_hash(rung(case))}


def predicted(device: str) -> Iterator[dict[str, Any]]:
    """Predict all cases."""
    for case in CASES:
        found = predict_rung(case.problem, device, rung(case))
        yield said(case) | foretold(found)


# ------------------------------------------------------------------------------------------ timing


def timed() -> Iterator[dict[str, Any]]:
    """Time all cases on the GPU that is here, each way in turn."""
    for case in CASES:
        calls, error = prepared(case)
        yield said(case) | {"ways": timed_ways(calls), "errors": error}


def prepared(case: Case) -> tuple[dict[str, Callable], dict[str, float]]:
    """Return a call for each way, and how far its result is off, by norm."""
    import torch

    p = case.problem
    kind = getattr(torch, p.dtype)
    draw = partial(torch.randn, device="cuda")
    a = draw(p.shapes[0]).to(kind)
    b = (draw(p.shapes[1]) / math.sqrt(p.k)).to(kind)
    c, bias = draw(p.m, p.n).to(kind), draw(p.n).to(kind)
    w = b.T if p.layout[1] == "t" else b
    added = bias.expand(p.m, p.n) if case.bias else None
    kernel = rung(case, None if added is None else array(added))
    ours = launching(kernel, p, (a, b, c))
    right = _right(case, a, w, c, bias)
    calls = {"ours": ours} | _by_torch(case, a, w, c, bias)
    errors = {}
    for way, call in calls.items():
        result = call()
        result = c if result is None else result
        errors[way] = float((result.float() - right).norm() / right.norm())
        if way == "ours":
            c.copy_(draw(p.m, p.n))
            right = _right(case, a, w, c, bias)
    return calls, errors


def _right(case: Case, a: Any, w: Any, c: Any, bias: Any) -> Any:
    """Return what is right, in FP32."""
    import torch

    product = a.float() @ w.float()
    if case.bias:
        product += bias.float()
    if case.activation == "relu_gradient":
        return torch.where(c.float() > 0, product, 0)
    return _functions()[case.activation](product)


def _functions() -> dict[str, Callable]:
    from torch.nn import functional

    return {
        "linear": lambda y: y, "relu": functional.relu,
        "gelu": partial(functional.gelu, approximate="tanh"),
    }  # fmt: skip


def _by_torch(case: Case, a: Any, w: Any, c: Any, bias: Any) -> dict[str, Callable]:
    """Return what PyTorch does: as programs say it, and in one call where there is one."""
    import torch

    if case.activation == "relu_gradient":
        return {"torch": lambda: torch.ops.aten.threshold_backward(a @ w, c, 0)}
    if not case.bias:
        return {"torch": lambda: a @ w}
    if case.activation == "linear":
        return {"torch": lambda: torch.nn.functional.linear(a, w.T, bias)}
    follows, fused = _functions()[case.activation], torch.ops.aten._addmm_activation
    return {
        "torch": lambda: follows(torch.nn.functional.linear(a, w.T, bias)),
        "torch_fused": lambda: fused(bias, a, w, use_gelu=case.activation == "gelu"),
    }


# ------------------------------------------------------------------------------------------- table


def written() -> tuple[Written, Written]:
    """Return what was predicted, and what was timed."""
    return stored(DEVICE, PREDICTED), stored(DEVICE, TIMED)


def pairs() -> list[tuple[float, float]]:
    """Return (predicted, measured) of each case alone [s]."""
    predictions, timings = written()
    return [(told["seconds"], median(found["ways"]["ours"]["ns"]) * 1e-9)
            for told, found in zip(predictions.rows, timings.rows, strict=True)]  # fmt: skip


def rows() -> tuple[str, str]:
    """Tell how far off predictions are, and how PyTorch does, and each case in a table."""
    predictions, timings = written()
    head = ["layer", "measured", "error", "of PyTorch", "of its one call", "in a row", "error",
            "of PyTorch", "of its one call"]  # fmt: skip
    cells, errors = [], []
    for case, told, found in zip(CASES, predictions.rows, timings.rows, strict=True):
        check(case, told, found)
        alone = {way: median(one["ns"]) * 1e-9 for way, one in found["ways"].items()}
        turns = {way: one["sustained"] for way, one in found["ways"].items()}
        off = told["seconds"] / alone["ours"] - 1, told["sustained"] / turns["ours"] - 1
        errors.append(off)
        cells.append([str(case), *(cell for times, error in zip((alone, turns), off, strict=True)
                                   for cell in _cells(times, error))])  # fmt: skip
    alone, turns = zip(*errors, strict=True)
    return f"{len(CASES)} layers: {mean(alone)} off on average, {mean(turns)} in a row", table(
        head, cells
    )


def _cells(times: dict[str, float], error: float) -> Sequence[str]:
    by = [f"{times[way] / times['ours']:.2f}" if way in times else "" for way in WAYS[1:]]
    return ms(times["ours"]), percent(error), *by


def check(case: Case, told: dict[str, Any], found: dict[str, Any]) -> None:
    """Raise ValueError unless this code was predicted and timed, and C was right."""
    of_this_code(said(case), told, found)
    most = 2 * number_format(case.problem.dtype).unit_roundoff
    for way, error in found["errors"].items():
        if not error < most:
            raise ValueError(f"{case}: C by {way} was off by {error}")


if __name__ == "__main__":
    sys.exit(write_file("benchmarks.epilogues", __doc__, DEVICE, predicted, timed))
