"""Batched Givens rotations of columns p and q, each by its own angle.

M is the identity but for four elements: (p, p) and (q, q) are c = cos θ, (p, q) is s = sin θ and
(q, p) is −s. Where X holds matrices stored by columns, Y = X·M is the rotation Mᵀ times each.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy import float16, float32

from gemmlab.instructions import pack_f16x2
from gemmlab.kernels.fragments.product import B, built, writing
from gemmlab.kernels.kernel import on_device
from gemmlab.simt import cuda


@on_device
def _identity(cs, one, p, q, i, j):
    return float32(1) if i == j else float32(0)


def givens(m: int, where: str, embedded: tuple[int, int] | None = None) -> Callable:
    """The kernel (X, cs, p, q, Y): Y[b] = X[b]·M, M of c, s = cs[b] and of columns p and q.

    cs : (batch, 2) float32; m : one of SIZES, where : one of WHERE, where M is made
    embedded : p and q frozen into the kernel, whose arguments p and q are then not read
    Raises ValueError for other m, where or embedded.
    """
    if embedded is not None and not 0 <= min(embedded) < max(embedded) < m:
        raise ValueError(f"embedded={embedded}; use two different columns from 0 to {m - 1}")
    fixed = embedded is not None
    first, second = embedded or (0, 0)
    setting = _setting(m, fixed, first, second)
    return built(m, where, setting, _writing(m, where, fixed, first, second))


def _setting(m: int, fixed: bool, first: int, second: int) -> Callable:
    """Ones along the diagonal, then single elements, in whichever registers hold them."""
    steps, across = m // 16, m // 8
    where_b, holds = B.element, B.holds

    @on_device
    def value(lane, x, s, t, p, q, c, sine):
        i, j = where_b(lane, x)
        found = float32(1) if i + 16 * s == j + 8 * t else float32(0)
        if holds(lane, x, p - 16 * s, p - 8 * t) or holds(lane, x, q - 16 * s, q - 8 * t):
            found = c
        if holds(lane, x, p - 16 * s, q - 8 * t):
            found = sine
        if holds(lane, x, q - 16 * s, p - 8 * t):
            found = -sine
        return float16(found)

    @on_device
    def make(cs, one, p, q, b, lane):
        left, right = (first, second) if fixed else (p, q)
        c, sine = cs[one, 0], cs[one, 1]
        for s in range(steps):
            for t in range(across):
                for w in range(2):
                    b[s, t, w] = pack_f16x2(
                        value(lane, 2 * w, s, t, left, right, c, sine),
                        value(lane, 2 * w + 1, s, t, left, right, c, sine),
                    )

    return make


def _writing(m: int, where: str, fixed: bool, first: int, second: int) -> Callable:
    """The identity, then four elements over it."""
    identity = writing(m, _identity, where)

    @on_device
    def write(cs, one, p, q, tiles, warp, lane):
        left, right = (first, second) if fixed else (p, q)
        c, sine = cs[one, 0], cs[one, 1]
        identity(cs, one, p, q, tiles, warp, lane)
        cuda.syncwarp()
        if lane == 0:
            tiles[warp, left, left] = float16(c)
            tiles[warp, right, right] = float16(c)
            tiles[warp, left, right] = float16(sine)
            tiles[warp, right, left] = float16(-sine)

    return write


def angles(rng: np.random.Generator, batch: int) -> np.ndarray:
    """Cosine and sine of random angles, (batch, 2) float32."""
    theta = rng.uniform(0, 2 * np.pi, batch)
    return np.stack([np.cos(theta), np.sin(theta)], axis=1).astype(float32)


def matrix(cs: np.ndarray, m: int, p: int, q: int) -> np.ndarray:
    """M of each pair of cosine and sine, (batch, m, m) float16."""
    out = np.tile(np.eye(m, dtype=np.float16), (len(cs), 1, 1))
    out[:, p, p] = out[:, q, q] = cs[:, 0]
    out[:, p, q], out[:, q, p] = cs[:, 1], -cs[:, 1]
    return out
