"""A policy's fragments, which are split as they are loaded, and where their products are summed.

    A·B ≈ A_high·B_high + (A_low·B_high + A_high·B_low) / scale

One product rounds the operands, three correct that, and a fourth, A_low·B_low, goes first where it
is asked for. Tensor Cores round sums toward zero. What is summed *inside* goes on in them; what is
summed *outside* begins with zero in each instruction and is added by CUDA cores, to nearest. See
`numerics.Policy`.

A *quad* is what a lane needs of a row of A, or a column of B, for one step of 16 along k: the four
elements 4t … 4t + 3, where t is its place among four lanes. For `mma` these are its elements
2t, 2t + 1, 2t + 8 and 2t + 9: the sum stays the same, if A and B agree. (So do its bits where one
instruction adds 16 products at once, as on Hopper, and not where it adds eight and then eight.)
In TF32 a step is 8 long, and such a *run* has two elements, 2t and 2t + 1.

Tiles lie as their operands are stored, in FP32. Where rows run along k a quad is one load of 16
bytes, and every other row has its halves of 128 bytes swapped, so that eight lanes meet in no bank;
with runs of two, of which sixteen lanes load 128 bytes, four rows have their quarters exchanged.
Where rows run across k a load takes one element, from rows whose columns are swapped in groups of
eight.
"""

from collections import Counter
from collections.abc import Callable

import numpy as np
from numpy import float32, uint32

from gemmlab import Gemm
from gemmlab.instructions import (
    cp_async_16,
    load_v2,
    load_v4,
    mma_m16n8k8_f32_tf32,
    mma_m16n8k16_f32_f16,
    store_v4,
)
from gemmlab.kernels.kernel import FLOAT, on_device
from gemmlab.kernels.simt.shared.vector_access import FOUR, moved, reading
from gemmlab.kernels.tcec.shared import splitting
from gemmlab.kernels.tcec.shared.product_sums import ZEROS, are_aligned
from gemmlab.kernels.tensor_core.shared.shared_layouts import Place, inside, tile_shapes
from gemmlab.kernels.tensor_core.shared.warp_mma import STEP, corner
from gemmlab.model import traffic
from gemmlab.numerics import Policy
from gemmlab.simt import cuda
from gemmlab.tiling import WARP, Tiling


def run_of(policy: Policy) -> int:
    """Neighbours along k that a lane has of a row of A, or a column of B, for one instruction."""
    return policy.mma.k // 4


def parting(policy: Policy) -> tuple[Callable, type]:
    """Return the device function (run) -> (high, low, high, low), and the type of these words.

    They are two words of a fragment: of two float16 each, or of one TF32.
    """
    corrected = policy.products > 1
    if policy.mma.dtype == "tf32":
        one = splitting.split_one if corrected else splitting.round_one

        @on_device
        def part_singles(v):
            high, low = one(v[0])
            next_high, next_low = one(v[1])
            return high, low, next_high, next_low

        return part_singles, float32

    split = splitting.split_two if policy.scale > 1 else splitting.split_unscaled
    two = split if corrected else splitting.round_two

    @on_device
    def part_pairs(v):
        high, low = two(v[0], v[1])
        next_high, next_low = two(v[2], v[3])
        return high, low, next_high, next_low

    return part_pairs, uint32


def multiplying(tiling: Tiling, policy: Policy) -> Callable:
    """Give the device function (a_high, a_low, b_high, b_low, x, main, cross): a row of fragments.

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
    """Return the device function (main, cross) that adds the corrections to the main product."""
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


def placed(length: int, along_k: bool, run: int) -> Place:
    """Give the function (row, four of the row) -> the element at which that group of four lies."""
    FOURS = length // FOUR
    SWAPPED = FOURS % 8 == 0  # rows are of whole lines of 128 bytes
    ROWS = 8 // run  # that lanes load from at once

    def place(row, four):
        if not along_k:
            return row * length + (four ^ row // run % 4 * 2) * FOUR
        return row * length + (four ^ row % ROWS * run if SWAPPED else four) * FOUR

    return place


def copying(
    tiling: Tiling, shape: tuple[int, int], place: Place, aligned: bool, parts: int
) -> tuple[Callable, Callable]:
    """Device functions first() and copy(tile, to, X, i, j, part), for tiles of one shape.

    `copy` brings one of `parts` parts of the tile of X that begins at X[i, j] to shared memory,
    with zeros for what is outside of X: by `cp.async` where rows are aligned, else through
    registers. `to` is the place of the thread's first four, `first()` that in a tile at the
    beginning of the array.
    """
    HEIGHT, LENGTH = shape
    ACROSS = LENGTH // FOUR  # threads that share a row
    DOWN = tiling.threads // ACROSS  # rows that are copied at a time
    COUNT = HEIGHT // DOWN  # of a thread
    at, read_four = on_device(place), reading(aligned)

    @on_device
    def first():
        return at(cuda.threadIdx.x // ACROSS, cuda.threadIdx.x % ACROSS)

    @on_device
    def copy(tile, to, X, i, j, part):
        row, col = i + cuda.threadIdx.x // ACROSS, j + cuda.threadIdx.x % ACROSS * FOUR
        for n in range(part * COUNT // parts, (part + 1) * COUNT // parts):
            # Rows are swapped bit by bit, and those of a thread differ in other bits than threads.
            there = (to ^ at(n * DOWN, 0) % LENGTH) + n * DOWN * LENGTH
            if aligned:
                cp_async_16(tile, there, X, row + n * DOWN, col, inside(X, row + n * DOWN, col))
            else:
                store_v4(tile, there, read_four(X, row + n * DOWN, col))

    return first, copy


def loading(
    width: int, length: int, along_k: bool, left: bool, place: Place, policy: Policy
) -> tuple[Callable, Callable]:
    """Device functions start(x) and load(tile, start, s, high, low): a warp's fragments, split.

    width : of the warp's tile, in rows or columns of C, from x on; length : of the stored tile's
        rows; along_k : they run along k; left : it is A's; policy : into which parts
    `start` is where this lane begins in a tile at the beginning of the array; s counts instructions
    along k. Both `width` and their length are powers of two: an exclusive or leads from place to
    place.
    """
    # A's fragment of 16 rows has a run of rows g and g + 8; B's of 16 columns one of each, too.
    SECOND, THIRD = (1, 2) if left else (2, 1)
    RUN, ALONG = run_of(policy), policy.mma.k
    at, (part, _) = on_device(place), parting(policy)
    load_run = load_v4 if RUN == FOUR else load_v2

    @on_device
    def start(x):
        g, t = cuda.threadIdx.x % WARP // 4, cuda.threadIdx.x % 4
        if along_k:
            return at(x + g, t * RUN // FOUR) + t * RUN % FOUR
        return at(t * RUN, (x + g) // FOUR) + g % FOUR

    @on_device
    def four_rows(tile, first):
        return (
            tile[first], tile[first + uint32(length)],
            tile[first + uint32(2 * length)], tile[first + uint32(3 * length)],
        )  # fmt: skip

    @on_device
    def two_rows(tile, first):
        return tile[first], tile[first + uint32(length)]

    load_rows = four_rows if RUN == FOUR else two_rows

    @on_device
    def run(tile, start, s, f):
        """The run of row or column 8·f after the first one."""
        if along_k:
            return load_run(tile, (start ^ s * ALONG) + f * 8 * length)
        # In uint32 no index counts from the end.
        return load_rows(tile, uint32(start ^ f * 8) + uint32(s * ALONG * length))

    @on_device
    def load(tile, start, s, high, low):
        for f in range(width // STEP):
            v = part(run(tile, start, s, 2 * f))
            high[f, 0], low[f, 0], high[f, THIRD], low[f, THIRD] = v
            v = part(run(tile, start, s, 2 * f + 1))
            high[f, SECOND], low[f, SECOND], high[f, 3], low[f, 3] = v

    return start, load


def copyable(tiling: Tiling) -> bool:
    """Whether a block's threads copy its tiles without a remainder, for every layout, in turns of
    so many rows as their exchange of columns allows.
    """
    for layout in ("nn", "tt"):
        for height, length in tile_shapes(tiling, layout):
            across = length // FOUR
            if length & length - 1 or tiling.threads % across:
                return False
            down = tiling.threads // across
            if height % down or down % FOUR or down & down - 1:
                return False
    return True


# ------------------------------------------------------------------------------------- their counts


def ways(problem: Gemm) -> tuple[bool, bool]:
    """Say whether the stored rows of A, and of B, run along k."""
    return problem.layout[0] == "n", problem.layout[1] == "t"


def copied(
    problem: Gemm, tiling: Tiling, policy: Policy
) -> tuple[Counter[str], tuple[Counter[str], Counter[str]]]:
    """Return the copies' loads over the whole grid, and a block's stores of a tile of A and of B.

    An asynchronous copy is counted as the load and the store that it makes.
    """
    shapes = tile_shapes(tiling, problem.layout)
    lanes = [traffic.in_turn(tiling.threads, *shape, FOUR) for shape in shapes]
    (a, wide), (b, _) = (moved(each, are_aligned(problem)) for each in lanes)
    stores = []
    for each, (_, length), along_k in zip(lanes, shapes, ways(problem), strict=True):
        flat = placed(length, along_k, run_of(policy))(each.row, each.col // FOUR)
        stores.append(_in_one_row("store", flat, FOUR))
    return traffic.copied(problem, tiling, a, b, wide, wide), (stores[0], stores[1])


def fragment_loads(
    problem: Gemm, tiling: Tiling, policy: Policy, steps: int
) -> list[tuple[int, Counter[str]]]:
    """A block's loads of runs for so many instructions along k: how often, and their transactions.

    One row of A, and one step of B, are loaded beyond the end.
    """
    threads, run = np.arange(tiling.threads).reshape(-1, WARP), run_of(policy)
    corners, g, t = corner(tiling)(threads), threads % WARP // 4, threads % 4
    found = []
    shapes = tile_shapes(tiling, problem.layout)
    for side, ((_, length), along_k) in enumerate(zip(shapes, ways(problem), strict=True)):
        place, at_once = placed(length, along_k, run), STEP if side == 0 else tiling.warp[1]
        for x in range(0, tiling.warp[side], 8):
            first = corners[side] + x + g
            times = steps + (x < at_once)
            if along_k:
                there = place(first, t * run // FOUR) + t * run % FOUR
                found.append((times, _in_one_row("load", there, run)))
            else:
                for e in range(run):
                    there = place(run * t + e, first // FOUR) + first % FOUR
                    found.append((times, _in_one_row("load", there, 1)))
    return found


def _in_one_row(op: str, flat: np.ndarray, wide: int) -> Counter[str]:
    """Accesses of lanes to `wide` elements each of an array in shared memory."""
    lanes = traffic.Lanes(np.zeros_like(flat), flat, np.ones_like(flat, bool))
    return traffic.shared_access(op, FLOAT, lanes, 0, wide)
