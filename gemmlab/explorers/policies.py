"""One warp's product by any policy: as a kernel, and the error that it cannot exceed."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy import float32, uint32

from gemmlab.instructions import (
    cvt_rn_f16x2_f32,
    layout,
    mma_m16n8k16_f32_f16,
    unpack_f16x2,
)
from gemmlab.numerics import FORMATS, Policy, fma_chain_bound, split, tensor_core_bound
from gemmlab.simt import cuda, simulate

M, N, STEP = 16, 8, 16  # of C, and of one `mma` along k
UNIT = FORMATS["float32"].unit_roundoff
A_AT, B_AT, C_AT = (layout("m16n8k16", operand).element for operand in "ABC")


def build(policy: Policy) -> Callable:
    """The kernel (A, B, C) that stores A·B in C; all are float32, k a multiple of 16.

    One warp on Tensor Cores, a thread for each element on CUDA cores. It does what
    `numerics.emulated_matmul` says, in the same order: to the bit.
    """
    return _by_chains() if policy.mma is None else _by_products(policy)


def _by_chains() -> Callable:
    def chains(A, B, C):
        i, j = cuda.threadIdx.y, cuda.threadIdx.x
        total = float32(0)
        for p in range(A.shape[1]):
            total = cuda.fma(A[i, p], B[p, j], total)
        C[i, j] = total

    return chains


def _by_products(policy: Policy) -> Callable:
    SCALE, INVERSE = float32(policy.scale), float32(1 / policy.scale)
    CORRECTED, FOURTH = policy.products > 1, policy.products == 4
    OUTSIDE, ONE_SUM, OFTEN = policy.outside, policy.one_sum, policy.every * STEP
    ZERO = (float32(0), float32(0), float32(0), float32(0))
    mma = mma_m16n8k16_f32_f16

    @cuda.jit(device=True)
    def split_two(x, y):
        high = cvt_rn_f16x2_f32(x, y)
        u, v = unpack_f16x2(high)
        return high, cvt_rn_f16x2_f32((x - u) * SCALE, (y - v) * SCALE)

    def products(A, B, C):
        lane = cuda.threadIdx.x
        ah, al = cuda.local.array(4, uint32), cuda.local.array(4, uint32)
        bh, bl = cuda.local.array(2, uint32), cuda.local.array(2, uint32)
        main = cuda.local.array(4, float32)
        for x in range(4):
            main[x] = 0
        part = cross = lowest = ZERO
        k = A.shape[1]
        for p in range(0, k, STEP):
            for r in range(4):
                i, q = A_AT(lane, 2 * r)
                ah[r], al[r] = split_two(A[i, p + q], A[i, p + q + 1])
            for r in range(2):
                q, j = B_AT(lane, 2 * r)
                bh[r], bl[r] = split_two(B[p + q, j], B[p + q + 1, j])
            a_high, a_low = (ah[0], ah[1], ah[2], ah[3]), (al[0], al[1], al[2], al[3])
            b_high, b_low = (bh[0], bh[1]), (bl[0], bl[1])
            if ONE_SUM:
                cross = lowest = part
            if FOURTH:
                lowest = mma(a_low, b_low, lowest)
                if ONE_SUM:
                    cross = lowest
            if CORRECTED:
                cross = mma(a_low, b_high, cross)
                cross = mma(a_high, b_low, cross)
            if ONE_SUM:
                part = cross
            elif OUTSIDE and p % OFTEN == 0:
                part = ZERO
            part = mma(a_high, b_high, part)
            if OUTSIDE and ((p + STEP) % OFTEN == 0 or p + STEP == k):
                for x in range(4):
                    main[x] += part[x]
        for x in range(4):
            i, j = C_AT(lane, x)
            total = main[x] if OUTSIDE else part[x]
            if CORRECTED and not ONE_SUM:
                total += (cross[x] + lowest[x] * INVERSE) * INVERSE
            C[i, j] = total

    return products


def simulated(policy: Policy, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """A·B, (16, 8), by the kernel on the simulator."""
    c = np.full((M, N), np.nan, np.float32)
    block = (N, M) if policy.mma is None else (32,)
    with np.errstate(all="ignore"):  # beyond the range of float16
        simulate(build(policy), (1,), block, a, b, c)
    return c


def bound(policy: Policy, a: np.ndarray, b: np.ndarray) -> float:
    """What |C − A·B| / |A||B| cannot exceed, over all elements, while no sum is subnormal.

    What splits lose and what is left out is taken from A and B; for the sums, see
    `numerics.tensor_core_bound`: parts of `every` instructions in the Tensor Core, added outside.
    Infinity where an operand is beyond the format.
    """
    k = a.shape[1]
    if policy.mma is None:
        return fma_chain_bound(k)
    x, y = (split(v, policy.mma.dtype, policy.scale) for v in (a[:, None], b.T[None]))
    exact = a[:, None].astype(np.float64) * b.T[None]
    if not (np.isfinite(x.high).all() and np.isfinite(y.high).all()):
        return np.inf
    (ah, al, s), (bh, bl, _) = x, y
    ah, al, bh, bl = (part.astype(np.float64) for part in (ah, al, bh, bl))
    if not (np.isfinite(al).all() and np.isfinite(bl).all()):
        return np.inf if policy.products > 1 else _of_sums(policy, k)
    counted, cross = ah * bh, np.zeros_like(exact)
    if policy.products > 1:
        cross = np.abs(al * bh / s) + np.abs(ah * bl / s)
        counted = counted + (al * bh + ah * bl) / s
    if policy.products == 4:
        counted = counted + al * bl / s**2
    size = np.abs(exact).sum(-1)
    lost = (np.abs(exact - counted).sum(-1) / size).max()
    corrections = (cross.sum(-1) / size).max() * tensor_core_bound(3 * k)
    return float(lost + (1 + lost) * (_of_sums(policy, k) + corrections + 3 * UNIT))


def _of_sums(policy: Policy, k: int) -> float:
    """The bound of the main products' sum, relative to their magnitudes."""
    if policy.one_sum:
        return tensor_core_bound(policy.products * k)
    if not policy.outside:
        return tensor_core_bound(k)
    inside = min(k, policy.every * STEP)
    return float(np.expm1(np.log1p(tensor_core_bound(inside)) + -(-k // inside) * np.log1p(UNIT)))
