"""A warp's tile of C as three products by `mma.sync`: the main one, and two that correct it.

    A·B ≈ A_high·B_high + (A_low·B_high + A_high·B_low) / 2^11

Tensor Cores round sums toward zero. Corrections are small, so that theirs may stay inside. Main
products begin with zero in each instruction and are added outside, in FP32 and to nearest.

From tiles that the TMA has copied, a warp multiplies a *row* at a time: one fragment of A and all
of B's, in a step of 16 along k; a stage has four steps. Each row first loads what the next one
needs. A's fragments have two places, for this row and the next. B's serve all rows of a step; in
the last row those of the next step take their places, one by one, as they are done with.
"""

from collections.abc import Callable, Mapping

from numpy import float32

from gemmlab import Gemm, Tiling
from gemmlab.instructions import mma_m16n8k16_f32_f16
from gemmlab.kernels.kernel import on_device
from gemmlab.kernels.simt.shared.vector_access import FOUR
from gemmlab.kernels.tcec.shared.splitting import UNSCALE
from gemmlab.kernels.tensor_core.shared.shared_layouts import swizzled
from gemmlab.kernels.tensor_core.shared.tma_tiles import BLOCK, DEPTH, along_k
from gemmlab.kernels.tensor_core.shared.warp_mma import STEP, loading

PRODUCTS = 3
ZEROS = (float32(0), float32(0), float32(0), float32(0))


STEPS = DEPTH // STEP  # along k, of a stage


def multiplying(tiling: Tiling) -> Callable:
    """Give the device function (a_high, a_low, b_high, b_low, x, main, cross): a row of fragments.

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
    """Return the device function (main, cross) that adds the corrections to the main product."""
    ROWS, COLUMNS = tiling.warp[0] // STEP, tiling.warp[1] // 8

    @on_device
    def join(main, cross):
        for x in range(ROWS):
            for y in range(COLUMNS):
                for e in range(4):
                    main[x, y, e] += cross[x, y, e] * UNSCALE

    return join


def fragments(tiling: Tiling) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Shapes of one part of a thread's fragments, in words: of two rows of A's, and of B's."""
    return (2, 1, 4), (tiling.warp[1] // STEP, 1, 4)


def starting(layout: str) -> Callable:
    """Give the device function (i, j): where this lane points in the first stage, for A and for B.

    i, j : where its warp's tile begins in the block's
    Boxes lie one after the other, and a warp's tile is in one.
    """
    (start_a, _), (start_b, _) = _loading(layout)

    @on_device
    def start(i, j):
        to_a = start_a(i % BLOCK) + i // BLOCK * BLOCK * DEPTH
        to_b = start_b(j % BLOCK) + j // BLOCK * BLOCK * DEPTH
        return to_a, to_b

    return start


def multiplying_rows(tiling: Tiling, layout: str) -> tuple[Callable, Callable, Callable]:
    """Device functions of the first row of a stage, of all but the last one, and of that.

    All take (Ah, Al, Bh, Bl, at_a, at_b, a_high, a_low, b_high, b_low): tiles of both parts, where
    this lane points in a stage, and fragments. The first loads what the stage's first row needs.
    The others take main and cross, too, and multiply; the last one loads what the first row needs
    of the stage that follows.
    """
    ROWS, PAIRS = tiling.warp[0] // STEP, tiling.warp[1] // STEP
    load_row, load_pair = loading_parts(layout)
    multiply_last = products(ROWS - 1, 0, tiling, load_pair)

    @on_device
    def first_row(Ah, Al, Bh, Bl, at_a, at_b, a_high, a_low, b_high, b_low):
        load_row(Ah, Al, at_a, 0, 0, a_high[0], a_low[0])
        for y in range(PAIRS):
            load_pair(Bh, Bl, at_b, 0, y, b_high[y], b_low[y])

    @on_device
    def no_rows(Ah, Al, Bh, Bl, at_a, at_b, a_high, a_low, b_high, b_low, main, cross):
        pass

    def rows(r):
        """A device function of the rows from r on, but for the last one.

        Nesting writes the rows out: all fragments live in registers.
        """
        others = rows(r + 1) if r + 2 < STEPS * ROWS else no_rows
        s, next_x = divmod(r + 1, ROWS)
        multiply = products(r % ROWS, s, tiling, load_pair)

        @on_device
        def multiply_row(Ah, Al, Bh, Bl, at_a, at_b, a_high, a_low, b_high, b_low, main, cross):
            load_row(Ah, Al, at_a, s, next_x, a_high[(r + 1) % 2], a_low[(r + 1) % 2])
            multiply(Bh, Bl, at_b, a_high[r % 2], a_low[r % 2], b_high, b_low, main, cross)
            others(Ah, Al, Bh, Bl, at_a, at_b, a_high, a_low, b_high, b_low, main, cross)

        return multiply_row

    @on_device
    def last_row(Ah, Al, Bh, Bl, at_a, at_b, a_high, a_low, b_high, b_low, main, cross):
        load_row(Ah, Al, at_a, 0, 0, a_high[0], a_low[0])
        multiply_last(Bh, Bl, at_b, a_high[1], a_low[1], b_high, b_low, main, cross)

    return first_row, rows(0), last_row


def loading_parts(layout: str) -> tuple[Callable, Callable]:
    """Return the device functions that load a row of A's fragments and a fragment of B's, split."""
    ALONG_A, ALONG_B = along_k(layout)
    (_, load_a), (_, load_b) = _loading(layout)

    @on_device
    def load_row(Ah, Al, at_a, s, x, a_high, a_low):
        """Row x of A's fragments in step s along k."""
        here = at_a + x * STEP * DEPTH if ALONG_A else at_a ^ x * STEP
        load_a(Ah, here, s, a_high)
        load_a(Al, here, s, a_low)

    @on_device
    def load_pair(Bh, Bl, at_b, s, y, b_high, b_low):
        """Fragment y of B's in step s: a pair of columns."""
        here = at_b + y * STEP * DEPTH if ALONG_B else at_b ^ y * STEP
        load_b(Bh, here, s, b_high)
        load_b(Bl, here, s, b_low)

    return load_row, load_pair


def products(x: int, s: int, tiling: Tiling, load_pair: Callable) -> Callable:
    """Return the device function of all products of row x of a warp's fragments.

    After the last row's, B's fragments are replaced by those of step s along k.
    """
    LAST, PAIRS = tiling.warp[0] // STEP - 1, tiling.warp[1] // STEP

    @on_device
    def multiply(Bh, Bl, at_b, a_high, a_low, b_high, b_low, main, cross):
        for y in range(PAIRS):
            multiply_pair(a_high[0], a_low[0], b_high[y, 0], b_low[y, 0], x, y, main, cross)
            if x == LAST:
                load_pair(Bh, Bl, at_b, s, y, b_high[y], b_low[y])

    return multiply


@on_device
def multiply_pair(a_high, a_low, b_high, b_low, x, pair, main, cross):
    """Multiply a fragment of A and one of B, into row x of C's and a pair of columns."""
    for half in range(2):
        y = 2 * pair + half
        high, low = (b_high[2 * half], b_high[2 * half + 1]), (b_low[2 * half], b_low[2 * half + 1])
        c = cross[x, y, 0], cross[x, y, 1], cross[x, y, 2], cross[x, y, 3]
        c = mma_m16n8k16_f32_f16((a_low[0], a_low[1], a_low[2], a_low[3]), high, c)
        c = mma_m16n8k16_f32_f16((a_high[0], a_high[1], a_high[2], a_high[3]), low, c)
        cross[x, y, 0], cross[x, y, 1], cross[x, y, 2], cross[x, y, 3] = c
        part = mma_m16n8k16_f32_f16((a_high[0], a_high[1], a_high[2], a_high[3]), high, ZEROS)
        for e in range(4):
            main[x, y, e] += part[e]


def _loading(layout: str) -> tuple[tuple[Callable, Callable], ...]:
    """`loading` of one fragment of A, and of one of B, from tiles as the TMA places them."""
    along_a, along_b = along_k(layout)
    place = swizzled(DEPTH)
    return (
        loading(STEP, DEPTH, along_a, True, place),
        loading(STEP, DEPTH, along_b, False, place),
    )


def variant(problem: Gemm, capability: tuple[int, int] | None) -> Mapping[str, object]:
    """Keyword arguments of `build`, for a problem."""
    return {
        "layout": problem.layout,
        "aligned": are_aligned(problem),
        "paired": problem.n % 2 == 0,
    }


def are_aligned(problem: Gemm) -> bool:
    """Say whether all rows of A and of B begin at multiples of 16 bytes."""
    return all(columns % FOUR == 0 for _, columns in problem.shapes[:2])


def flops(problem: Gemm, tiling: Tiling) -> dict[str, int]:
    """Operations of Tensor Cores, on whole tiles [FLOP]."""
    return {"float16": PRODUCTS * tiling.padded_flops(problem)}


def product_error(problem: Gemm) -> float:
    """Give the relative error of a product, 3 · 2⁻²², whatever the problem.

    Each operand is its two parts but for 2⁻¹¹ of its low one, and low parts are not multiplied by
    each other. A low part is at most 2⁻¹¹ of its operand.
    """
    return 3 * 2.0**-22
