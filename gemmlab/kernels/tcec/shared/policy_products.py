"""What a policy makes of a warp's operands: parts, their products, and where those are summed.

    A·B ≈ A_high·B_high + (A_low·B_high + A_high·B_low) / scale

One product rounds the operands, three correct that, and a fourth, A_low·B_low, goes first where it
is asked for. Tensor Cores round sums toward zero. What is summed *inside* goes on in them; what is
summed *outside* begins with zero in each instruction and is added by CUDA cores, to nearest. See
`numerics.Policy`.
"""

from __future__ import annotations

from collections.abc import Callable

from numpy import float32, uint32

from gemmlab.instructions import mma_m16n8k8_f32_tf32, mma_m16n8k16_f32_f16
from gemmlab.kernels.kernel import on_device
from gemmlab.kernels.tcec.shared.product_sums import ZEROS
from gemmlab.kernels.tcec.shared.splitting import (
    round_one,
    round_two,
    split_one,
    split_two,
    split_unscaled,
)
from gemmlab.kernels.tensor_core.shared.warp_mma import STEP
from gemmlab.numerics import Policy
from gemmlab.tiling import Tiling


def run_of(policy: Policy) -> int:
    """Neighbours along k that a lane has of a row of A, or a column of B, for one instruction."""
    return policy.mma.k // 4


def parting(policy: Policy) -> tuple[Callable, type]:
    """The device function (run) -> (high, low, high, low), and the type of these words.

    They are two words of a fragment: of two float16 each, or of one TF32.
    """
    corrected = policy.products > 1
    if policy.mma.dtype == "tf32":
        one = split_one if corrected else round_one

        @on_device
        def part_singles(v):
            high, low = one(v[0])
            next_high, next_low = one(v[1])
            return high, low, next_high, next_low

        return part_singles, float32

    split = split_two if policy.scale > 1 else split_unscaled
    two = split if corrected else round_two

    @on_device
    def part_pairs(v):
        high, low = two(v[0], v[1])
        next_high, next_low = two(v[2], v[3])
        return high, low, next_high, next_low

    return part_pairs, uint32


def multiplying(tiling: Tiling, policy: Policy) -> Callable:
    """The device function (a_high, a_low, b_high, b_low, x, main, cross): a row of fragments.

    That is row x of a warp's tile, and one instruction along k; a_high and a_low are of this row.
    Neighbours do not wait for each other: they are of different elements of C.
    """
    COLUMNS = tiling.warp[1] // 8
    mma = mma_m16n8k8_f32_tf32 if policy.mma.dtype == "tf32" else mma_m16n8k16_f32_f16

    @on_device
    def product(a, b, y, c):
        return mma(
            (a[0], a[1], a[2], a[3]),
            (b[y // 2, y % 2 * 2], b[y // 2, y % 2 * 2 + 1]),
            c,
        )

    @on_device
    def inside(a, b, x, sums):
        for y in range(COLUMNS):
            c = sums[x, y, 0], sums[x, y, 1], sums[x, y, 2], sums[x, y, 3]
            c = product(a, b, y, c)
            sums[x, y, 0], sums[x, y, 1], sums[x, y, 2], sums[x, y, 3] = c

    @on_device
    def outside(a, b, x, sums):
        for y in range(COLUMNS):
            part = product(a, b, y, ZEROS)
            for e in range(4):
                sums[x, y, e] += part[e]

    @on_device
    def nothing(a, b, x, sums):
        pass

    lowest = inside if policy.products == 4 else nothing
    correct = inside if policy.products > 1 else nothing
    add = outside if policy.outside else inside

    @on_device
    def multiply_row(a_high, a_low, b_high, b_low, x, main, cross):
        lowest(a_low, b_low, x, cross)
        correct(a_low, b_high, x, cross)
        correct(a_high, b_low, x, cross)
        add(a_high, b_high, x, main)

    @on_device
    def multiply_to_one(a_high, a_low, b_high, b_low, x, main, cross):
        multiply_row(a_high, a_low, b_high, b_low, x, main, main)

    return multiply_to_one if policy.one_sum else multiply_row


def joining(tiling: Tiling, policy: Policy) -> Callable:
    """The device function (main, cross) that adds the corrections to the main product."""
    ROWS, COLUMNS = tiling.warp[0] // STEP, tiling.warp[1] // 8
    UNSCALE = float32(1 / policy.scale)

    @on_device
    def join(main, cross):
        for x in range(ROWS):
            for y in range(COLUMNS):
                for e in range(4):
                    main[x, y, e] += cross[x, y, e] * UNSCALE

    @on_device
    def nothing(main, cross):
        pass

    return nothing if policy.products == 1 or policy.one_sum else join
