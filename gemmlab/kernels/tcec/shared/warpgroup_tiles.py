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
    PIECE = min(BK, DEPTH)  # of a stage, along k
    HELD = BN // 2  # elements of C that a thread has
    multiply_add, wgmma_wait = multiplying_16(WGMMA[BN, layout], layout), WGMMA_WAIT[BN]
    stage_of, parity_of = turning(tiling.stages)
    clear, add, join = clearing(HELD), adding(HELD), joining(HELD)

    @on_device
    def nothing(sums, Ah, Al, Bh, Bl, stage, group, more):
        pass

    def main_products(q, end):
        """A device function that adds the main products of a stage, from q of k to `end`."""
        others = main_products(q + K, end) if q + K < end else nothing

        @on_device
        def multiply(part, Ah, Al, Bh, Bl, stage, group, more):
            multiply_add(part, Ah, Bh, stage, group, q, more)
            others(part, Ah, Al, Bh, Bl, stage, group, True)

        return multiply

    def corrections(q, end):
        """A device function that adds the products that correct them."""
        others = corrections(q + K, end) if q + K < end else nothing

        @on_device
        def correct(cross, Ah, Al, Bh, Bl, stage, group, more):
            multiply_add(cross, Al, Bh, stage, group, q, more)
            multiply_add(cross, Ah, Bl, stage, group, q, True)
            others(cross, Ah, Al, Bh, Bl, stage, group, True)

        return correct

    def piece(q):
        """A device function that multiplies a piece of a stage.

        When it returns, everything is complete but the corrections of the piece, which go on.
        """
        multiply, correct = main_products(q, q + PIECE), corrections(q, q + PIECE)

        @on_device
        def begin(part, cross, Ah, Al, Bh, Bl, stage, group, more, more_cross):
            wgmma_fence()
            multiply(part, Ah, Al, Bh, Bl, stage, group, more)
            wgmma_commit()
            correct(cross, Ah, Al, Bh, Bl, stage, group, more_cross)
            wgmma_commit()
            wgmma_wait(1, part)

        return begin

    @on_device
    def no_piece(main, part, cross, Ah, Al, Bh, Bl, stage, group):
        pass

    def pieces(q):
        """A device function that multiplies and adds the pieces of a stage from q of k on."""
        if q == DEPTH:
            return no_piece
        begin, others = piece(q), pieces(q + PIECE)

        @on_device
        def go_on(main, part, cross, Ah, Al, Bh, Bl, stage, group):
            begin(part, cross, Ah, Al, Bh, Bl, stage, group, False, True)
            add(main, part)
            others(main, part, cross, Ah, Al, Bh, Bl, stage, group)

        return go_on

    begin, go_on = piece(0), pieces(PIECE)

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
