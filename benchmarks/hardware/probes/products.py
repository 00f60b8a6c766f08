"""Whole products made of warp instructions, on operands of wide range that are always the same."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy import float16, float32, uint32

from gemmlab import cuda, simulate
from gemmlab.device import Device
from gemmlab.instructions import (
    cp_async_16,
    cp_async_commit,
    cp_async_wait,
    cvt_rn_f16x2_f32,
    cvt_rna_tf32_f32,
    layout,
    ldmatrix_x4,
    ldmatrix_x4_trans,
    mma_m8n8k4_f32_f16,
    mma_m16n8k8_f32_tf32,
    mma_m16n8k16_f16_f16,
    mma_m16n8k16_f32_bf16,
    mma_m16n8k16_f32_f16,
    stmatrix_x2,
    store_v2,
    unpack_f16x2,
    wmma_load_a_row,
    wmma_load_b_row,
    wmma_load_c_f32,
    wmma_mma_row_row_f32,
    wmma_store_d_f32,
)
from gemmlab.instructions.instruction import registers
from gemmlab.numerics import round_to
from gemmlab.tiling import WARP

SIDE, STEP = 32, 32  # a block of four warps: SIDE×SIDE of C, STEP of k at a time
# Of a tile, from row to row: 8 elements more than there are, so that rows fall on different banks.
ROW, SHORT_ROW = SIDE + 8, 16 + 8

element_c = layout("m16n8k16", "C").element
tf32_a, tf32_b = (layout("m16n8k8", operand, "tf32").element for operand in "AB")
quad_a, quad_b, quad_c = (
    layout("m8n8k4", "A", major="row"),
    layout("m8n8k4", "B", major="col"),
    layout("m8n8k4", "C", "f32"),
)
element_qa, element_qb, element_qc = quad_a.element, quad_b.element, quad_c.element


def pipelined(A, B, C):
    """C = A·B, float16 → float32: copies run one step ahead, ldmatrix, m16n8k16."""
    a_tile = cuda.shared.array((2, SIDE, ROW), float16, alignment=16)
    b_tile = cuda.shared.array((2, STEP, ROW), float16, alignment=16)
    t, lane, warp = cuda.threadIdx.x, cuda.threadIdx.x % WARP, cuda.threadIdx.x // WARP
    i0, j0 = cuda.blockIdx.y * SIDE, cuda.blockIdx.x * SIDE
    row, column = t // 4, 8 * (t % 4)  # of a tile: eight elements each
    steps = A.shape[1] // STEP
    cp_async_16(a_tile, 0, row, column, A, i0 + row, column)
    cp_async_16(b_tile, 0, row, column, B, row, j0 + column)
    cp_async_commit()
    acc = cuda.local.array((2, 4), float32)
    for half in range(2):
        for x in range(4):
            acc[half, x] = float32(0)
    for step in range(steps):
        now, ahead = step % 2, STEP * (step + 1)
        if step + 1 < steps:
            cp_async_16(a_tile, 1 - now, row, column, A, i0 + row, ahead + column)
            cp_async_16(b_tile, 1 - now, row, column, B, ahead + row, j0 + column)
        cp_async_commit()
        cp_async_wait(1)
        cuda.syncthreads()
        for k in range(0, STEP, 16):
            a = ldmatrix_x4(a_tile, now, warp // 2 * 16 + lane % 16, k + lane // 16 * 8)
            b = ldmatrix_x4_trans(b_tile, now, k + lane % 16, warp % 2 * 16 + lane // 16 * 8)
            for half in range(2):
                c = acc[half, 0], acc[half, 1], acc[half, 2], acc[half, 3]
                right = (b[0], b[1]) if half == 0 else (b[2], b[3])
                acc[half, 0], acc[half, 1], acc[half, 2], acc[half, 3] = mma_m16n8k16_f32_f16(
                    a, right, c
                )
        cuda.syncthreads()
    for half in range(2):
        for x in range(0, 4, 2):
            i, j = element_c(lane, x)
            i, j = i0 + warp // 2 * 16 + i, j0 + warp % 2 * 16 + half * 8 + j
            store_v2(C, i, j, (acc[half, x], acc[half, x + 1]))


def in_half(A, B, C):
    """C = A·B, all float16, a warp for 16×8 of C, which goes back through stmatrix."""
    a_tile = cuda.shared.array((16, SHORT_ROW), float16, alignment=16)
    b_tile = cuda.shared.array((16, SHORT_ROW), float16, alignment=16)
    c_tile = cuda.shared.array((16, 16), float16, alignment=16)
    lane = cuda.threadIdx.x
    i0, j0 = cuda.blockIdx.y * 16, cuda.blockIdx.x * 8
    c = uint32(0), uint32(0)
    for p in range(0, A.shape[1], 16):
        for e in range(lane, 256, WARP):
            a_tile[e // 16, e % 16] = A[i0 + e // 16, p + e % 16]
            b_tile[e // 16, e % 16] = B[p + e // 16, j0 + e % 8]
        cuda.syncwarp()
        a = ldmatrix_x4(a_tile, lane % 16, lane // 16 * 8)
        b = ldmatrix_x4_trans(b_tile, lane % 16, lane // 16 * 8)
        c = mma_m16n8k16_f16_f16(a, (b[0], b[1]), c)
        cuda.syncwarp()
    stmatrix_x2(c_tile, lane % 16, 0, c)
    cuda.syncwarp()
    for e in range(lane, 128, WARP):
        C[i0 + e // 8, j0 + e % 8] = c_tile[e // 8, e % 8]


def in_bfloat16(A, B, C):
    """C = A·Bᵀ, pairs of bfloat16 → float32, fragments straight from global memory."""
    lane = cuda.threadIdx.x
    g, t = lane // 4, lane % 4
    i0, j0 = cuda.blockIdx.y * 16, cuda.blockIdx.x * 8
    c = float32(0), float32(0), float32(0), float32(0)
    for p in range(0, A.shape[1], 8):  # words of two
        a = A[i0 + g, p + t], A[i0 + g + 8, p + t], A[i0 + g, p + t + 4], A[i0 + g + 8, p + t + 4]
        c = mma_m16n8k16_f32_bf16(a, (B[j0 + g, p + t], B[j0 + g, p + t + 4]), c)
    for x in range(4):
        i, j = element_c(lane, x)
        C[i0 + i, j0 + j] = c[x]


def in_tf32(A, B, C):
    """C = A·B, float32 rounded to TF32 by the kernel."""
    lane = cuda.threadIdx.x
    i0, j0 = cuda.blockIdx.y * 16, cuda.blockIdx.x * 8
    c = float32(0), float32(0), float32(0), float32(0)
    a, b = cuda.local.array(4, float32), cuda.local.array(2, float32)
    for p in range(0, A.shape[1], 8):
        for x in range(4):
            i, j = tf32_a(lane, x)
            a[x] = cvt_rna_tf32_f32(A[i0 + i, p + j])
        for x in range(2):
            i, j = tf32_b(lane, x)
            b[x] = cvt_rna_tf32_f32(B[p + i, j0 + j])
        c = mma_m16n8k8_f32_tf32((a[0], a[1], a[2], a[3]), (b[0], b[1]), c)
    for x in range(4):
        i, j = element_c(lane, x)
        C[i0 + i, j0 + j] = c[x]


def by_wmma(A, B, C):
    """C += A·B, float16 → float32, a warp for 16×16 of C."""
    i, j = cuda.blockIdx.y * 16, cuda.blockIdx.x * 16
    c = wmma_load_c_f32(C, i, j)
    for p in range(0, A.shape[1], 16):
        c = wmma_mma_row_row_f32(wmma_load_a_row(A, i, p), wmma_load_b_row(B, p, j), c)
    wmma_store_d_f32(C, i, j, c)


def by_quads(A, B, C):
    """C[q] = A[q]·B[q]ᵀ for four 8×8 results of a warp, in pairs of float16, by m8n8k4."""
    lane = cuda.threadIdx.x
    q = lane // 4 % 4
    c = cuda.local.array(8, float32)
    for x in range(8):
        c[x] = float32(0)
    for p in range(0, A.shape[2], 2):  # words of two
        a, _ = element_qa(lane, 0)
        _, b = element_qb(lane, 0)
        c[0], c[1], c[2], c[3], c[4], c[5], c[6], c[7] = mma_m8n8k4_f32_f16(
            (A[q, a, p], A[q, a, p + 1]),
            (B[q, b, p], B[q, b, p + 1]),
            (c[0], c[1], c[2], c[3], c[4], c[5], c[6], c[7]),
        )
    for x in range(8):
        i, j = element_qc(lane, x)
        C[q, i, j] = c[x]


@cuda.jit(device=True, forceinline=True)
def halves(x, y):
    """Two float32 as pairs of float16: what they round to, and 2¹¹ times what that leaves."""
    high = cvt_rn_f16x2_f32(x, y)
    hx, hy = unpack_f16x2(high)
    scale = float32(2048)
    return high, cvt_rn_f16x2_f32((x - float32(hx)) * scale, (y - float32(hy)) * scale)


def corrected(A, B, C):
    """C = A·Bᵀ, float32 by three products of float16 parts; sums of blocks outside, to nearest."""
    lane = cuda.threadIdx.x
    g, t = lane // 4, 2 * (lane % 4)
    i0, j0 = cuda.blockIdx.y * 16, cuda.blockIdx.x * 8
    zeros = float32(0), float32(0), float32(0), float32(0)
    total = cuda.local.array(4, float32)
    for x in range(4):
        total[x] = float32(0)
    small = zeros
    for p in range(0, A.shape[1], 16):
        i, k = i0 + g, p + t
        a0, d0 = halves(A[i, k], A[i, k + 1])
        a1, d1 = halves(A[i + 8, k], A[i + 8, k + 1])
        a2, d2 = halves(A[i, k + 8], A[i, k + 9])
        a3, d3 = halves(A[i + 8, k + 8], A[i + 8, k + 9])
        b0, e0 = halves(B[j0 + g, k], B[j0 + g, k + 1])
        b1, e1 = halves(B[j0 + g, k + 8], B[j0 + g, k + 9])
        block = mma_m16n8k16_f32_f16((a0, a1, a2, a3), (b0, b1), zeros)
        small = mma_m16n8k16_f32_f16((d0, d1, d2, d3), (b0, b1), small)
        small = mma_m16n8k16_f32_f16((a0, a1, a2, a3), (e0, e1), small)
        for x in range(4):
            total[x] += block[x]
    for x in range(4):
        i, j = element_c(lane, x)
        C[i0 + i, j0 + j] = total[x] + small[x] / float32(2048)


class WarpGemm(NamedTuple):
    """A kernel, its launch, and its operands A, B and C before it runs."""

    kernel: Callable
    grid: tuple[int, int]
    threads: int
    operands: tuple[np.ndarray, np.ndarray, np.ndarray]


def wide(name: str, *shape: int) -> np.ndarray:
    """Random float32 with exponents from −6 to 6, other ones for each name."""
    rng = np.random.default_rng(zlib.crc32(name.encode()))
    return np.ldexp(rng.standard_normal(shape), rng.integers(-6, 7, shape)).astype(float32)


def gemms() -> dict[str, WarpGemm]:
    """Every product, by its kernel's name."""
    k = 160
    nan = float32("nan")
    a, b, bt = wide("A", 64, k), wide("B", k, 64), wide("Bᵀ", 64, k)
    quads = (wide(name, 4, 8, k).astype(float16).view(uint32) for name in ("A", "B"))
    pairs = (registers(round_to(x, "bfloat16", "RZ"), "bfloat16x2") for x in (a, bt))
    c = np.full((64, 64), nan)
    found = (
        WarpGemm(pipelined, (2, 2), 4 * WARP, (a.astype(float16), b.astype(float16), c)),
        WarpGemm(in_half, (8, 4), WARP, (a.astype(float16), b.astype(float16), c.astype(float16))),
        WarpGemm(in_bfloat16, (8, 4), WARP, (*pairs, c)),
        WarpGemm(in_tf32, (8, 4), WARP, (a, b, c)),
        WarpGemm(by_wmma, (4, 4), WARP, (a.astype(float16), b.astype(float16), wide("C", 64, 64))),
        WarpGemm(by_quads, (1, 1), WARP, (*quads, np.full((4, 8, 8), nan))),
        WarpGemm(corrected, (8, 4), WARP, (a, bt, c)),
    )
    return {one.kernel.__name__: one for one in found}


def simulated(one: WarpGemm, device: str | Device = "h200") -> np.ndarray:
    """C after a run on the simulator, which must find no hazard."""
    a, b, c = (x.copy() for x in one.operands)
    simulate(one.kernel, one.grid, one.threads, a, b, c, device=device)
    return c
