"""Batched Householder transformations: M = I − 2·v·vᵀ for a vector v of length 1 each.

M is symmetric: where X holds matrices stored by columns, as LAPACK does, Y = X·M is M times each of
them, stored by columns too.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy import float32

from gemmlab.kernels.fragments.product import built, from_rule, writing
from gemmlab.kernels.kernel import on_device


@on_device
def _reflection(v, one, p, q, i, j):
    product = float32(-2) * (float32(v[one, i]) * float32(v[one, j]))
    return float32(1) + product if i == j else product


def householder(m: int, where: str) -> Callable:
    """The kernel (X, v, p, q, Y): Y[b] = X[b]·(I − 2·v[b]·v[b]ᵀ); p and q are not read.

    v : (batch, m) float16; m : one of SIZES, where : one of WHERE, where M is made
    Raises ValueError for other m or where.
    """
    return built(m, where, from_rule(m, _reflection), writing(m, _reflection, where))


def vectors(rng: np.random.Generator, batch: int, m: int) -> np.ndarray:
    """Random vectors of length 1, rounded to float16, (batch, m)."""
    v = rng.standard_normal((batch, m))
    return (v / np.linalg.norm(v, axis=1, keepdims=True)).astype(np.float16)


def matrix(v: np.ndarray) -> np.ndarray:
    """M of each v, (batch, m, m) float16, in the order of operations of the kernels."""
    wide = v.astype(float32)
    product = float32(-2) * (wide[:, :, None] * wide[:, None, :])
    one = np.eye(v.shape[1], dtype=float32)
    return np.where(one == 1, one + product, product).astype(np.float16)
