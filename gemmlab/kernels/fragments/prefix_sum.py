"""Prefix sums of the rows of X: its product with the triangle u_ij = 1 for i ≤ j, else 0."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy import float32

from gemmlab.kernels.fragments.product import built, from_rule, writing
from gemmlab.kernels.kernel import on_device


@on_device
def _triangle(data, one, p, q, i, j):
    return float32(1) if i <= j else float32(0)


def prefix_sum(m: int, where: str) -> Callable:
    """The kernel (X, data, p, q, Y): Y[b, r, c] = Σ X[b, r, 0 … c]; data, p and q are not read.

    m : one of SIZES, where : one of WHERE, where M is made
    Raises ValueError for other m or where.
    """
    return built(m, where, from_rule(m, _triangle), writing(m, _triangle, where))


def matrix(m: int) -> np.ndarray:
    """M, (m, m) float16."""
    return np.triu(np.ones((m, m), np.float16))
