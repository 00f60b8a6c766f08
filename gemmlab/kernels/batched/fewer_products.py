"""A tile of C as one or two products of halves by `wgmma`, for whoever can do with less.

    one    A·B ≈ A_high·B_high                            both operands as FP16 has them
    two    A·B ≈ A_high·B_high + A_low·B_high / 2^11      B alone as FP16 has it

Sums are those of three products (`tcec.shared.warpgroup_tiles`): main products are added in FP32
every bk of k, and what corrects them has a sum of its own. Halves that nobody reads are neither
written nor copied.
"""

from collections.abc import Callable
from functools import partial

from numpy import uint32

from gemmlab import Tiling
from gemmlab.instructions import (
    WGMMA,
    WGMMA_WAIT,
    mbarrier_arrive,
    mbarrier_arrive_expect,
    mbarrier_wait,
    wgmma_commit,
    wgmma_fence,
)
from gemmlab.instructions.tensor_copies import ROW
from gemmlab.instructions.warpgroup import WARPGROUP, K
from gemmlab.kernels.kernel import on_device
from gemmlab.kernels.tcec.shared.warpgroup_tiles import (
    adding,
    clearing,
    further_k_blocks,
    joining,
)
from gemmlab.kernels.tensor_core.shared.tma_tiles import DEPTH, multiplying_16, turning

WHOLE = 3  # products: both operands as FP32 has them


def has_low(products: int, side: int) -> bool:
    """Whether the low half of A (side 0) or of B is read."""
    return products > 1 + side


def copying_halves(tiling: Tiling, copy_a: Callable, copy_b: Callable, products: int) -> Callable:
    """Return the device function that lets the TMA copy what is read, as `copying_parts` does."""
    bm, bn, _ = tiling.block
    CORRECTS = has_low(products, 0)
    STAGE_BYTES = (bm * (2 if CORRECTS else 1) + bn) * ROW

    @on_device
    def copy(Ah, Al, Bh, Bl, stage, to_Ah, to_Al, to_Bh, to_Bl, row, col, p, q, full):
        mbarrier_arrive_expect(full, stage, STAGE_BYTES)
        copy_a(Ah, stage, to_Ah, row, p, full)
        copy_b(Bh, stage, to_Bh, col, q, full)
        if CORRECTS:
            copy_a(Al, stage, to_Al, row, p, full)

    return copy


def multiplying_fewer(tiling: Tiling, layout: str, products: int) -> Callable:
    """Return the device function (main, part, cross, Ah, Al, Bh, Bl, full, empty, step, k, thread).

    As `warpgroup_tiles.multiplying_tiles`, of which this leaves out products.
    """
    _, BN, BK = tiling.block
    ACCUMULATORS = BN // 2  # elements of C that a thread has
    CORRECTS = has_low(products, 0)
    multiply_add, wgmma_wait = multiplying_16(WGMMA[BN, layout], layout), WGMMA_WAIT[BN]
    stage_of, parity_of = turning(tiling.stages)
    clear, add, join = clearing(ACCUMULATORS), adding(ACCUMULATORS), joining(ACCUMULATORS)
    block = min(BK, DEPTH)
    multiplying = partial(multiplying_k_block, block, CORRECTS, multiply_add, wgmma_wait)
    begin, go_on = multiplying(0), further_k_blocks(block, block, multiplying, add)

    @on_device
    def multiply_tile(main, part, cross, Ah, Al, Bh, Bl, full, empty, step, k, thread):
        group, leads = thread // WARPGROUP, thread % WARPGROUP == 0  # group: of 64 rows
        clear(main)
        for p in range(0, k, DEPTH):
            stage = stage_of(step)
            mbarrier_wait(full, stage, parity_of(step))
            begin(part, cross, Ah, Al, Bh, Bl, stage, group, p % BK > 0, p > 0)
            if leads and p > 0:
                mbarrier_arrive(empty, stage_of(step - uint32(1)))
            if (p + DEPTH) % BK == 0 or p + DEPTH >= k:
                add(main, part)
            go_on(main, part, cross, Ah, Al, Bh, Bl, stage, group)
            step += uint32(1)
        if CORRECTS:
            wgmma_wait(0, cross)
        if leads:
            mbarrier_arrive(empty, stage_of(step - uint32(1)))
        if CORRECTS:
            join(main, cross)
        return step

    return multiply_tile


def multiplying_k_block(
    block: int, corrects: bool, multiply_add: Callable, wgmma_wait: Callable, q: int
) -> Callable:
    """Return the device function that multiplies a block of a stage; its corrections go on."""
    BEHIND = 1 if corrects else 0  # groups of products that go on while sums are added
    multiply = products_from(q, q + block, multiply_add)

    @on_device
    def begin(part, cross, Ah, Al, Bh, Bl, stage, group, more, more_cross):
        wgmma_fence()
        multiply(part, Ah, Bh, stage, group, more)
        wgmma_commit()
        if corrects:
            multiply(cross, Al, Bh, stage, group, more_cross)
            wgmma_commit()
        wgmma_wait(BEHIND, part)

    return begin


def products_from(q: int, end: int, multiply_add: Callable) -> Callable:
    """Return the device function that adds products of a stage, from q of k to `end`."""
    others = products_from(q + K, end, multiply_add) if q + K < end else no_products

    @on_device
    def multiply(sums, A, B, stage, group, more):
        multiply_add(sums, A, B, stage, group, q, more)
        others(sums, A, B, stage, group, True)

    return multiply


@on_device
def no_products(sums, A, B, stage, group, more):
    """Have no further product."""
