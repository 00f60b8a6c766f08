"""A warp's tile of C as three products by `mma.sync`: the main one, and two that correct it.

    A·B ≈ A_high·B_high + (A_low·B_high + A_high·B_low) / 2^11

Tensor Cores round sums toward zero. Corrections are small, so that theirs may stay inside. Main
products begin with zero in each instruction and are added outside, in FP32 and to nearest.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from numpy import float32

from gemmlab.instructions import mma_m16n8k16_f32_f16
from gemmlab.kernels.kernel import on_device
from gemmlab.kernels.simt.shared.vector_access import FOUR
from gemmlab.kernels.tcec.shared.splitting import UNSCALE
from gemmlab.kernels.tensor_core.shared.warp_mma import STEP
from gemmlab.problem import Gemm
from gemmlab.tiling import Tiling

PRODUCTS = 3
ZEROS = (float32(0), float32(0), float32(0), float32(0))


def multiplying(tiling: Tiling) -> Callable:
    """The device function (a_high, a_low, b_high, b_low, x, main, cross): a row of fragments.

    That is row x of a warp's tile, and one step of 16 along k; a_high and a_low are of this row.
    Neighbours do not wait for each other: they are of different elements of C.
    """
    COLUMNS = tiling.warp[1] // 8

    @on_device
    def product(a, b, y, c):
        return mma_m16n8k16_f32_f16(
            (a[0], a[1], a[2], a[3]),
            (b[y // 2, y % 2 * 2], b[y // 2, y % 2 * 2 + 1]),
            c,
        )

    @on_device
    def correct(a, b, x, cross):
        for y in range(COLUMNS):
            c = cross[x, y, 0], cross[x, y, 1], cross[x, y, 2], cross[x, y, 3]
            c = product(a, b, y, c)
            cross[x, y, 0], cross[x, y, 1], cross[x, y, 2], cross[x, y, 3] = c

    @on_device
    def add(a, b, x, main):
        for y in range(COLUMNS):
            part = product(a, b, y, ZEROS)
            for e in range(4):
                main[x, y, e] += part[e]

    @on_device
    def multiply_row(a_high, a_low, b_high, b_low, x, main, cross):
        correct(a_low, b_high, x, cross)
        correct(a_high, b_low, x, cross)
        add(a_high, b_high, x, main)

    return multiply_row


def joining(tiling: Tiling) -> Callable:
    """The device function (main, cross) that adds the corrections to the main product."""
    ROWS, COLUMNS = tiling.warp[0] // STEP, tiling.warp[1] // 8

    @on_device
    def join(main, cross):
        for x in range(ROWS):
            for y in range(COLUMNS):
                for e in range(4):
                    main[x, y, e] += cross[x, y, e] * UNSCALE

    return join


def variant(problem: Gemm, capability: tuple[int, int] | None) -> Mapping[str, object]:
    """Keyword arguments of `build`, for a problem."""
    return {
        "layout": problem.layout,
        "aligned": are_aligned(problem),
        "paired": problem.n % 2 == 0,
    }


def are_aligned(problem: Gemm) -> bool:
    """Whether all rows of A and of B begin at multiples of 16 bytes."""
    return all(columns % FOUR == 0 for _, columns in problem.shapes[:2])


def flops(problem: Gemm, tiling: Tiling) -> dict[str, int]:
    """Operations of Tensor Cores, on whole tiles [FLOP]."""
    return {"float16": PRODUCTS * tiling.padded_flops(problem)}
