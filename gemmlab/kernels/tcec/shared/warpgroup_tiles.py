"""A tile of C as three products of parts by `wgmma`: the main one, and two that correct it.

    A·B ≈ A_high·B_high + (A_low·B_high + A_high·B_low) / 2^11

Tensor Cores round sums toward zero, all to the same side: the main product stays in them for bk of
k only, and is then added in FP32, to nearest. Corrections are small, so that theirs may stay inside
to the end. While they go on, what was added before them is complete: CUDA cores and Tensor Cores
work at the same time.
"""

from collections.abc import Callable

from numpy import float32, uint32

from gemmlab import Tiling
from gemmlab.instructions import (
    WGMMA,
    WGMMA_WAIT,
    mbarrier_arrive,
    mbarrier_wait,
    wgmma_commit,
    wgmma_fence,
)
from gemmlab.instructions.warpgroup import WARPGROUP, K
from gemmlab.kernels.kernel import on_device
from gemmlab.kernels.tcec.shared.splitting import UNSCALE
from gemmlab.kernels.tensor_core.shared.tma_tiles import DEPTH, multiplying_16, turning

EIGHT = 8  # sums that one device function names


def for_each(count: int, eight: Callable) -> Callable:
    """The device function (x, y) that does what eight(first) says for all groups of eight sums.

    Nesting writes out what a loop would index, so that sums stay in registers.
    """

    @on_device
    def nothing(x, y):
        pass

    def groups(first):
        others = groups(first + EIGHT) if first + EIGHT < count else nothing
        this = eight(first)

        @on_device
        def go(x, y):
            this(x, y)
            others(x, y)

        return go

    return groups(0)


def clearing(count: int) -> Callable:
    """Return the device function (main) that makes all sums 0."""

    def eight(first):
        @on_device
        def clear(main, _):
            for e in range(first, first + EIGHT):
                main[e] = float32(0)

        return clear

    every = for_each(count, eight)

    @on_device
    def clear_all(main):
        every(main, main)

    return clear_all


def adding(count: int) -> Callable:
    """Return the device function (main, part) that adds a part to the sums."""

    def eight(first):
        @on_device
        def add(main, part):
            for e in range(first, first + EIGHT):
                main[e] += part[e]

        return add

    return for_each(count, eight)


def joining(count: int) -> Callable:
    """Return the device function (main, cross) that adds the corrections to the sums."""

    def eight(first):
        @on_device
        def join(main, cross):
            for e in range(first, first + EIGHT):
                main[e] += cross[e] * UNSCALE

        return join

    return for_each(count, eight)


def multiplying_tiles(tiling: Tiling, layout: str) -> Callable:
    """Return the device function (main, part, cross, Ah, Al, Bh, Bl, full, empty, step, k, thread).

    A warpgroup sums its rows of a tile of C in `main`, from rings of parts, and releases stages as
    it has read them. It begins with a step of the rings and returns the step after the tile's last.
    """
    _, BN, BK = tiling.block
    ACCUMULATORS = BN // 2  # elements of C that a thread has
    multiply_add, wgmma_wait = multiplying_16(WGMMA[BN, layout], layout), WGMMA_WAIT[BN]
    stage_of, parity_of = turning(tiling.stages)
    clear, add, join = clearing(ACCUMULATORS), adding(ACCUMULATORS), joining(ACCUMULATORS)
    BLOCK = min(BK, DEPTH)  # of a stage, along k

    def multiplying(q):
        """A device function that multiplies a block from q of k on.

        When it returns, everything is complete but the corrections of the block, which go on.
        """
        multiply = main_products(q, q + BLOCK, multiply_add)
        correct = corrections(q, q + BLOCK, multiply_add)

        @on_device
        def begin(part, cross, Ah, Al, Bh, Bl, stage, group, more, more_cross):
            wgmma_fence()
            multiply(part, Ah, Al, Bh, Bl, stage, group, more)
            wgmma_commit()
            correct(cross, Ah, Al, Bh, Bl, stage, group, more_cross)
            wgmma_commit()
            wgmma_wait(1, part)

        return begin

    begin, go_on = multiplying(0), further_k_blocks(BLOCK, BLOCK, multiplying, add)

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
        wgmma_wait(0, cross)
        if leads:
            mbarrier_arrive(empty, stage_of(step - uint32(1)))
        join(main, cross)
        return step

    return multiply_tile


def further_k_blocks(
    q: int, block: int, multiplying: Callable[[int], Callable], add: Callable
) -> Callable:
    """Return the device function that multiplies and adds the blocks of a stage from q of k on.

    multiplying : where a block begins -> the device function that multiplies it
    """
    if q == DEPTH:
        return no_k_block
    begin, others = multiplying(q), further_k_blocks(q + block, block, multiplying, add)

    @on_device
    def go_on(main, part, cross, Ah, Al, Bh, Bl, stage, group):
        begin(part, cross, Ah, Al, Bh, Bl, stage, group, False, True)
        add(main, part)
        others(main, part, cross, Ah, Al, Bh, Bl, stage, group)

    return go_on


@on_device
def no_k_block(main, part, cross, Ah, Al, Bh, Bl, stage, group):
    """Have no further block."""


def main_products(q: int, end: int, multiply_add: Callable) -> Callable:
    """Return the device function that adds the main products of a stage, from q of k to `end`."""
    others = main_products(q + K, end, multiply_add) if q + K < end else no_products

    @on_device
    def multiply(part, Ah, Al, Bh, Bl, stage, group, more):
        multiply_add(part, Ah, Bh, stage, group, q, more)
        others(part, Ah, Al, Bh, Bl, stage, group, True)

    return multiply


def corrections(q: int, end: int, multiply_add: Callable) -> Callable:
    """Return the device function that adds the products that correct them."""
    others = corrections(q + K, end, multiply_add) if q + K < end else no_products

    @on_device
    def correct(cross, Ah, Al, Bh, Bl, stage, group, more):
        multiply_add(cross, Al, Bh, stage, group, q, more)
        multiply_add(cross, Ah, Bl, stage, group, q, True)
        others(cross, Ah, Al, Bh, Bl, stage, group, True)

    return correct


@on_device
def no_products(sums, Ah, Al, Bh, Bl, stage, group, more):
    """Have no further product."""
