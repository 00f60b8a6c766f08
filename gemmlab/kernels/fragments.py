"""Three uses of fragments: rows times a matrix that follows a rule, Y = X·M, on Tensor Cores.

A warp makes M anew for each matrix X of a batch. In the version `registers` of each use M is never
in memory: its fragments are made from the rule. The baselines write M to shared memory and load the
fragments from there: `shared` writes eight elements at a time, `shared, one by one` single ones, as
one would at first. Where X holds matrices stored by columns, as LAPACK does, Y = X·M is Mᵀ times
each of them, stored by columns too.

X : (batch, m, m / 2) uint32, the m×m matrices of float16 in pairs; Y : (batch, m, m) float32
M : m×m float16 (m = 16 or 32)

A fragment of M stands in registers b[s, t, w]: the 16 rows from 16·s on, the 8 columns from 8·t on,
word w of two.
"""

from collections.abc import Callable

import numpy as np
from numpy import float16, float32, int32, uint32

from gemmlab.instructions import (
    layout,
    ldmatrix_x4_trans,
    mma_m16n8k16_f32_f16,
    pack_f16x2,
    store_v2,
    store_v8,
)
from gemmlab.kernels.kernel import on_device
from gemmlab.simt import cuda
from gemmlab.tiling import WARP

SIZES = (16, 32)  # of M
WHERE = ("registers", "shared", "shared, one by one")  # where M is made
WARPS = 4  # of a block, each with its own matrix
A, B, C = (layout("m16n8k16", operand) for operand in "ABC")


def launch(batch: int) -> tuple[int, int]:
    """Grid and block: a warp for each matrix of the batch."""
    return -(-batch // WARPS), WARPS * WARP


def matrices(rng: np.random.Generator, batch: int, m: int) -> tuple[np.ndarray, np.ndarray]:
    """Random X (batch, m, m) as float16, and the same in pairs as kernels take it."""
    x = rng.standard_normal((batch, m, m)).astype(float16)
    return x, x.view(uint32)


def multiplying(m: int) -> Callable:
    """Give the device function (X, one, b, Y, lane): Y[one] = X[one]·M, with M's fragments in b."""
    steps, across = m // 16, m // 8
    where_a, where_c = A.element, C.element

    @on_device
    def multiply(X, one, b, Y, lane):
        for high in range(steps):
            acc = cuda.local.array((across, 4), float32)
            for t in range(across):
                for x in range(4):
                    acc[t, x] = float32(0)
            for s in range(steps):
                a = cuda.local.array(4, uint32)
                for w in range(4):
                    i, j = where_a(lane, 2 * w)
                    a[w] = X[one, 16 * high + i, (16 * s + j) // 2]
                for t in range(across):
                    acc[t, 0], acc[t, 1], acc[t, 2], acc[t, 3] = mma_m16n8k16_f32_f16(
                        (a[0], a[1], a[2], a[3]),
                        (b[s, t, 0], b[s, t, 1]),
                        (acc[t, 0], acc[t, 1], acc[t, 2], acc[t, 3]),
                    )
            for t in range(across):
                for x in range(0, 4, 2):
                    i, j = where_c(lane, x)
                    store_v2(Y, one, 16 * high + i, 8 * t + j, (acc[t, x], acc[t, x + 1]))

    return multiply


def from_rule(m: int, rule: Callable) -> Callable:
    """Return the device function (data, one, p, q, b, lane) that makes M's fragments in registers.

    rule : a device function (data, one, p, q, i, j) -> element (i, j) of M, a float32
    The place of an element in its tile is computed once, for all tiles.
    """
    steps, across = m // 16, m // 8
    where_b = B.element

    @on_device
    def make(data, one, p, q, b, lane):
        for w in range(2):
            i, j = where_b(lane, 2 * w)
            for s in range(steps):
                for t in range(across):
                    b[s, t, w] = pack_f16x2(
                        float16(rule(data, one, p, q, i + 16 * s, j + 8 * t)),
                        float16(rule(data, one, p, q, i + 16 * s + 1, j + 8 * t)),
                    )

    return make


def from_shared(m: int) -> Callable:
    """Give the device function (tiles, warp, b, lane) that loads M's fragments from tiles[warp]."""
    steps, across = m // 16, m // 8

    @on_device
    def fetch(tiles, warp, b, lane):
        # Lanes name rows: 16 of them, and those 8 columns further on.
        for s in range(steps):
            for t in range(0, across, 2):
                row, column = 16 * s + lane % 16, 8 * t + 8 * (lane // 16)
                b[s, t, 0], b[s, t, 1], b[s, t + 1, 0], b[s, t + 1, 1] = ldmatrix_x4_trans(
                    tiles, int32(warp), row, column
                )

    return fetch


def writing(m: int, rule: Callable, where: str) -> Callable:
    """Give the device function (data, one, p, q, tiles, warp, lane): M to tiles[warp], by the rule.

    A lane stores eight neighbours of a row in one access of 128 bits, or single elements.
    """
    together = 1 if where == WHERE[2] else 8

    @on_device
    def of(data, one, p, q, i, j):
        return float16(rule(data, one, p, q, i, j))

    @on_device
    def write(data, one, p, q, tiles, warp, lane):
        for e in range(lane, m * m // together, WARP):
            if together == 8:
                # Neighbouring lanes write rows below each other: those fall on all banks.
                i, j = e % m, 8 * (e // m)
                eight = (
                    of(data, one, p, q, i, j), of(data, one, p, q, i, j + 1),
                    of(data, one, p, q, i, j + 2), of(data, one, p, q, i, j + 3),
                    of(data, one, p, q, i, j + 4), of(data, one, p, q, i, j + 5),
                    of(data, one, p, q, i, j + 6), of(data, one, p, q, i, j + 7),
                )  # fmt: skip
                store_v8(tiles, warp, i, j, eight)
            else:
                i, j = e // m, e % m
                tiles[warp, i, j] = of(data, one, p, q, i, j)

    return write


def built(m: int, where: str, make: Callable, write: Callable) -> Callable:
    """The kernel (X, data, p, q, Y) that makes M in registers by `make`, or in memory by `write`.

    Raises ValueError for an m that is not in SIZES, and for a `where` that is not in WHERE.
    """
    for name, value, known in (("m", m, SIZES), ("where", where, WHERE)):
        if value not in known:
            raise ValueError(f"{name}={value!r}; use one of {', '.join(map(repr, known))}")
    return _in_registers(m, make) if where == "registers" else _through_shared(m, write)


def _in_registers(m: int, make: Callable) -> Callable:
    steps, across = m // 16, m // 8
    multiply = multiplying(m)

    def registers(X, data, p, q, Y):
        lane = int32(cuda.threadIdx.x % WARP)
        one = cuda.blockIdx.x * WARPS + cuda.threadIdx.x // WARP
        if one < X.shape[0]:
            b = cuda.local.array((steps, across, 2), uint32)
            make(data, one, p, q, b, lane)
            multiply(X, one, b, Y, lane)

    return registers


def _through_shared(m: int, write: Callable) -> Callable:
    steps, across = m // 16, m // 8
    multiply, fetch = multiplying(m), from_shared(m)
    # Eight more in a row: the eight rows that a matrix load reads fall on all banks.
    row = m + 8

    def shared(X, data, p, q, Y):
        tiles = cuda.shared.array((WARPS, m, row), float16, alignment=16)
        warp, lane = cuda.threadIdx.x // WARP, int32(cuda.threadIdx.x % WARP)
        one = cuda.blockIdx.x * WARPS + warp
        if one < X.shape[0]:
            write(data, one, p, q, tiles, warp, lane)
            cuda.syncwarp()
            b = cuda.local.array((steps, across, 2), uint32)
            fetch(tiles, warp, b, lane)
            multiply(X, one, b, Y, lane)

    return shared


# ------------------------------------------------------------------------------------- prefix sums


@on_device
def _triangle(data, one, p, q, i, j):
    return float32(1) if i <= j else float32(0)


def prefix_sum(m: int, where: str) -> Callable:
    """The kernel (X, data, p, q, Y): Y[b, r, c] = Σ X[b, r, 0 … c]; data, p and q are not read.

    m : one of SIZES, where : one of WHERE, where M is made
    Raises ValueError for other m or where.
    """
    return built(m, where, from_rule(m, _triangle), writing(m, _triangle, where))


def prefix_sum_matrix(m: int) -> np.ndarray:
    """M, (m, m) float16."""
    return np.triu(np.ones((m, m), np.float16))


# ---------------------------------------------------------------------- Householder transformations


@on_device
def _reflection(v, one, p, q, i, j):
    product = float32(-2) * (float32(v[one, i]) * float32(v[one, j]))
    return float32(1) + product if i == j else product


def householder(m: int, where: str) -> Callable:
    """Return the kernel (X, v, p, q, Y): Y[b] = X[b]·(I − 2·v[b]·v[b]ᵀ); p and q are not read.

    v : (batch, m) float16; m : one of SIZES, where : one of WHERE, where M is made
    Raises ValueError for other m or where.
    """
    return built(m, where, from_rule(m, _reflection), writing(m, _reflection, where))


def vectors(rng: np.random.Generator, batch: int, m: int) -> np.ndarray:
    """Random vectors of length 1, rounded to float16, (batch, m)."""
    v = rng.standard_normal((batch, m))
    return (v / np.linalg.norm(v, axis=1, keepdims=True)).astype(np.float16)


def householder_matrix(v: np.ndarray) -> np.ndarray:
    """M = I − 2·v·vᵀ of each v, (batch, m, m) float16, in the kernels' order of operations."""
    wide = v.astype(float32)
    product = float32(-2) * (wide[:, :, None] * wide[:, None, :])
    one = np.eye(v.shape[1], dtype=float32)
    return np.where(one == 1, one + product, product).astype(np.float16)


# --------------------------------------------------------------------------------- Givens rotations


@on_device
def _identity(cs, one, p, q, i, j):
    return float32(1) if i == j else float32(0)


def givens(m: int, where: str, embedded: tuple[int, int] | None = None) -> Callable:
    """Return the kernel (X, cs, p, q, Y): Y[b] = X[b]·M, M of c, s = cs[b] and of columns p and q.

    M is the identity but for four elements: (p, p) and (q, q) are c = cos θ, (p, q) is s = sin θ
    and (q, p) is −s.
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


def givens_matrix(cs: np.ndarray, m: int, p: int, q: int) -> np.ndarray:
    """M of each pair of cosine and sine, (batch, m, m) float16."""
    out = np.tile(np.eye(m, dtype=np.float16), (len(cs), 1, 1))
    out[:, p, p] = out[:, q, q] = cs[:, 0]
    out[:, p, q], out[:, q, p] = cs[:, 1], -cs[:, 1]
    return out
