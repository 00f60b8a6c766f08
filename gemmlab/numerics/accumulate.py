"""Dot products summed in different ways, and the error that each may have."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from gemmlab.formats.values import exact
from gemmlab.numerics.dot import fused_dot_add, tensor_core
from gemmlab.numerics.errors import fma_chain_bound, tensor_core_bound
from gemmlab.numerics.fma import fma_chain, leading_shape

__all__ = ["ACCUMULATIONS", "Accumulation", "accumulation", "running_sums"]


@dataclass(frozen=True)
class Accumulation:
    """A way to sum products.

    unit : "cuda": one FMA after the other in float32; "tensor": blocks on the Tensor Core
    out_dtype : the format of the running sum
    outside : each block starts from zero, and the CUDA cores add it to the sum in float32
    """

    name: str
    title: str
    unit: str
    out_dtype: str = "float32"
    outside: bool = False

    def bound(self, k: int, dtype: str = "float16", arch: str = "sm_90") -> float:
        """The backward error of k products cannot exceed this: see `numerics.errors`."""
        if self.unit == "cuda":
            return fma_chain_bound(k)
        return tensor_core_bound(k, dtype, arch, out_dtype=self.out_dtype, outside=self.outside)


ACCUMULATIONS = {
    a.name: a
    for a in (
        Accumulation("cuda", "CUDA cores, one FMA after the other", "cuda"),
        Accumulation("inside", "Tensor Core", "tensor"),
        Accumulation("outside", "Tensor Core, blocks added outside", "tensor", outside=True),
        Accumulation("float16", "Tensor Core, float16 sums", "tensor", "float16"),
    )
}


def accumulation(name: str) -> Accumulation:
    """The way called `name`; ValueError, listing what is known, for another."""
    if not isinstance(name, str) or name not in ACCUMULATIONS:
        known = ", ".join(ACCUMULATIONS)
        raise ValueError(f"accumulation={name!r} is not known; use one of {known}")
    return ACCUMULATIONS[name]


def running_sums(
    a: object,
    b: object,
    lengths: Sequence[int],
    way: str,
    *,
    dtype: str = "float16",
    arch: str = "sm_90",
) -> np.ndarray:
    """Σ a_i·b_i over the first `lengths` products, summed as `way` does; (len(lengths), …) float64.

    a, b : (…, K) numbers of format `dtype`; lengths : ascending, the last at most K
    way : a name in `ACCUMULATIONS`

    At a length that is no whole number of blocks a short block ends the sum so far. Raises
    ValueError for lengths that do not ascend from 1 to at most K, and what `fused_dot_add` refuses.

    >>> thirds, ones = np.full(4096, 1 / 3, np.float16), np.ones(4096, np.float16)
    >>> [running_sums(thirds, ones, [2048, 4096], way).tolist() for way in ("inside", "float16")]
    [[682.5, 1365.0], [684.5, 1355.0]]
    """
    chosen, core = accumulation(way), tensor_core(arch)
    source, target = core.formats(dtype, chosen.out_dtype)
    a, b = exact(a, source), exact(b, source)
    total = np.zeros(leading_shape(a, b, np.zeros(())), target.carrier)
    edges = [0, *lengths]
    whole = all(isinstance(n, (int, np.integer)) for n in edges)
    if len(edges) < 2 or not whole or sorted(set(edges)) != edges or edges[-1] > a.shape[-1]:
        raise ValueError(f"lengths={lengths!r} must ascend from 1 to at most {a.shape[-1]}")
    sums = []
    for first, last in pairwise(edges):
        x, y = a[..., first:last], b[..., first:last]
        if chosen.unit == "cuda":
            total = fma_chain(x.astype(np.float32), y.astype(np.float32), total)
        elif chosen.outside:
            for start in range(0, last - first, core.block[dtype]):
                part = np.s_[..., start : start + core.block[dtype]]
                block = fused_dot_add(x[part], y[part], 0.0, dtype=dtype, arch=arch)
                with np.errstate(over="ignore", invalid="ignore"):  # beyond float32; ∞ − ∞
                    total = total + block
        else:
            total = fused_dot_add(x, y, total, dtype=dtype, arch=arch, out_dtype=chosen.out_dtype)
        sums.append(np.asarray(total, np.float64))
    return np.stack(sums)
