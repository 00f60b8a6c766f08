"""`cuda.fp16`: functions of float16, each rounded once; comparisons give a truth value."""

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from gemmlab.simt.numbers import arithmetic
from gemmlab.simt.numbers.overflow import convert

HALF = np.dtype(np.float16)
ONE: dict[str, Callable] = {
    **{
        f"h{name}": getattr(np, name)
        for name in (
            "sin",
            "cos",
            "log",
            "log2",
            "log10",
            "exp",
            "exp2",
            "sqrt",
            "ceil",
            "floor",
            "trunc",
            "rint",
        )
    },
    "hexp10": lambda x: np.power(10.0, x.astype(np.float64)),
    "hrsqrt": lambda x: 1 / np.sqrt(x.astype(np.float64)),
    "hrcp": lambda x: 1 / x.astype(np.float64),
    "hneg": operator.neg,
    "habs": np.abs,
}
TWO: dict[str, Callable] = {
    **{"hadd": operator.add, "hsub": operator.sub, "hmul": operator.mul, "hdiv": operator.truediv},
    **{"hmax": np.fmax, "hmin": np.fmin},
}
COMPARED: dict[str, Callable] = {
    f"h{name}": getattr(operator, name) for name in ("eq", "ne", "ge", "gt", "le", "lt")
}
TABLE = {**dict.fromkeys(ONE, 1), **dict.fromkeys((*TWO, *COMPARED), 2), "hfma": 3}


def function(name: str) -> Callable:
    """Return a function of `cuda.fp16` as a kernel calls it: arguments become float16."""
    compute = {**ONE, **TWO, **COMPARED, "hfma": arithmetic.fma}[name]

    def call(*values: Any) -> Any:
        if len(values) != TABLE[name]:
            raise TypeError(f"cuda.fp16.{name} takes {TABLE[name]} arguments, not {len(values)}")
        result = compute(*(convert(value, HALF) for value in values))
        return result if name in COMPARED else convert(result, HALF)

    return call
