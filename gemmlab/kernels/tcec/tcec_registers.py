"""Rung 2, tcec_registers: shared memory holds A and B in FP32; registers hold the two parts.

A fragment is split as it is loaded. So tiles are copied as they are, by `cp.async`, several ahead
of the one that is multiplied, nothing is stored a second time, and no space is taken for parts.
What it costs is arithmetic: every warp splits what it loads, also what others load, too.
Counter to watch: shared stores, those of the copies alone.

Source of the idea: H. Ootomo, R. Yokota, "Reducing shared memory footprint to leverage high
throughput on Tensor Cores and its flexible API extension library", HPC Asia 2023.
"""

from collections.abc import Callable

from numpy import float32, int32

from gemmlab import Tiling
from gemmlab.instructions import cp_async_commit, cp_async_wait, shared_view
from gemmlab.kernels.kernel import FLOAT, Kernel, check_fit, on_device, threads_in_a_row
from gemmlab.kernels.simt.shared.tile_copies import COPYABLE
from gemmlab.kernels.tcec.shared import policy_products, product_sums
from gemmlab.kernels.tcec.shared.policy_products import copyable, joining, multiplying, placed
from gemmlab.kernels.tensor_core.shared import shared_layouts, warp_mma
from gemmlab.kernels.tensor_core.shared.rasterisation import place_in_bands
from gemmlab.kernels.tensor_core.shared.warp_mma import STEP
from gemmlab.model import traffic
from gemmlab.numerics import POLICIES, Policy
from gemmlab.problem import LAYOUTS, Gemm
from gemmlab.simt import cuda

CORRECTED = POLICIES["tcec_fp16"]


def build(
    tiling: Tiling,
    layout: str = "nn",
    aligned: bool = True,
    paired: bool = True,
    policy: Policy = CORRECTED,
) -> Callable:
    """Return the kernel as a plain Numba-CUDA function, with all tile sizes frozen into it.

    layout, aligned, paired : as in *mma_shared*
    policy : the parts, the products and where they are summed; see `policy_products`
    """
    BM, BN, BK = tiling.block
    AHEAD = tiling.stages - 1  # tiles between what is multiplied and what is copied
    PENDING = AHEAD - 1  # batches of copies that need not have arrived
    ROWS, ALL = fragment_rows(tiling, policy)
    ALONG_A = layout[0] == "n"  # rows of A's stored tile run along k
    A_SIZE, B_SIZE = BM * BK, BN * BK
    A_RING, B_RING = (tiling.stages * A_SIZE,), (tiling.stages * B_SIZE,)
    A_BYTES = FLOAT * tiling.stages * A_SIZE
    _, B_WORDS, SUMS = warp_mma.fragment_shapes(tiling)
    TWO_A, TWO_B = (2, 1, 4), (2, *B_WORDS)  # of this row and the next; of this step and the next

    _, WORD = policy_products.parting(policy)
    first_a, first_b, copy = copying_tiles(tiling, layout, aligned, policy)
    start_a, start_b, load_row, load_b = loading_parts(tiling, layout, policy)
    warp_corner, clear = on_device(warp_mma.corner(tiling)), warp_mma.clearing(tiling)
    multiply_row, join = multiplying(tiling, policy), joining(tiling, policy)
    all_but_one = rows_of_a_tile(0, (ROWS, ALL), copy, load_row, load_b, multiply_row)
    update = warp_mma.updating(tiling, "float32", paired)

    @on_device
    def block_corner():
        """Where this block's tile of C begins: in 32 bits, for registers are scarce."""
        across, down = cuda.gridDim.x, cuda.gridDim.y
        y, x = place_in_bands(cuda.blockIdx.y * across + cuda.blockIdx.x, down, across)
        return int32(y * BM), int32(x * BN)

    def tcec_registers(alpha, A, B, beta, C):
        As = shared_view(A_RING, float32, 0)
        Bs = shared_view(B_RING, float32, A_BYTES)
        k = A.shape[1] if ALONG_A else A.shape[0]
        row, col = block_corner()
        i, j = warp_corner(cuda.threadIdx.x)

        a_high, a_low = cuda.local.array(TWO_A, WORD), cuda.local.array(TWO_A, WORD)
        b_high, b_low = cuda.local.array(TWO_B, WORD), cuda.local.array(TWO_B, WORD)
        main, cross = cuda.local.array(SUMS, float32), cuda.local.array(SUMS, float32)
        clear(main)
        clear(cross)

        to_a, to_b = first_a(), first_b()  # where this thread copies to
        from_a, from_b = start_a(i), start_b(j)  # where this lane begins to load
        for tile in range(AHEAD):
            for part in range(ALL):
                copy(As, Bs, to_a, to_b, A, B, row, col, tile * BK, part)
            cp_async_commit()
            to_a += A_SIZE
            to_b += B_SIZE
        cp_async_wait(PENDING)
        cuda.syncthreads()
        load_row(As, from_a, 0, 0, a_high[0], a_low[0])
        load_b(Bs, from_b, 0, b_high[0], b_low[0])

        p, reads, fills = 0, 0, AHEAD  # of k: where this tile begins; of the rings: its place
        while p < k:
            all_but_one(
                As, Bs, from_a, from_b, to_a, to_b, A, B, row, col, p + AHEAD * BK,
                a_high, a_low, b_high, b_low, main, cross,
            )  # fmt: skip
            copy(As, Bs, to_a, to_b, A, B, row, col, p + AHEAD * BK, ALL - 1)
            cp_async_commit()
            # One row is left, whose parts are in registers: the tile may be given up.
            p += BK
            to_a += A_SIZE if fills < AHEAD else -AHEAD * A_SIZE
            to_b += B_SIZE if fills < AHEAD else -AHEAD * B_SIZE
            fills = fills + 1 if fills < AHEAD else 0
            from_a += A_SIZE if reads < AHEAD else -AHEAD * A_SIZE
            from_b += B_SIZE if reads < AHEAD else -AHEAD * B_SIZE
            reads = reads + 1 if reads < AHEAD else 0
            cp_async_wait(PENDING)
            cuda.syncthreads()
            load_row(As, from_a, 0, 0, a_high[0], a_low[0])
            load_b(Bs, from_b, 0, b_high[0], b_low[0])
            multiply_row(a_high[1, 0], a_low[1, 0], b_high[1], b_low[1], ROWS - 1, main, cross)

        join(main, cross)
        update(C, row + i, col + j, alpha, main, beta)

    return tcec_registers


def fragment_rows(tiling: Tiling, policy: Policy) -> tuple[int, int]:
    """Count rows of A's fragments in a step along k, and in a tile.

    There are as many parts in which the next tile is copied.
    """
    rows = tiling.warp[0] // STEP
    return rows, tiling.block[2] // policy.mma.k * rows


def copying_tiles(
    tiling: Tiling, layout: str, aligned: bool, policy: Policy
) -> tuple[Callable, Callable, Callable]:
    """Return first_a(), first_b() and copy(As, Bs, to_a, to_b, A, B, row, col, p, part).

    The first two say where this thread copies to in the first stage of a ring. The third begins a
    part of the copies of the tiles from p of k on.
    """
    _, parts = fragment_rows(tiling, policy)
    ALONG_A, ALONG_B = layout[0] == "n", layout[1] == "t"  # rows of the stored tile run along k
    (tile_a, tile_b), run = (
        shared_layouts.tile_shapes(tiling, layout),
        policy_products.run_of(policy),
    )
    place_a, place_b = placed(tile_a[1], ALONG_A, run), placed(tile_b[1], ALONG_B, run)
    first_a, copy_a = policy_products.copying(tiling, tile_a, place_a, aligned, parts)
    first_b, copy_b = policy_products.copying(tiling, tile_b, place_b, aligned, parts)

    @on_device
    def copy(As, Bs, to_a, to_b, A, B, row, col, p, part):
        copy_a(As, to_a, A, row if ALONG_A else p, p if ALONG_A else row, part)
        copy_b(Bs, to_b, B, col if ALONG_B else p, p if ALONG_B else col, part)

    return first_a, first_b, copy


def loading_parts(tiling: Tiling, layout: str, policy: Policy) -> tuple[Callable, ...]:
    """Return start_a(i), start_b(j), load_row and load_b.

    The first two say where this lane begins to load. The others load a row of A's fragments, and
    all of B's in a step along k, in two parts.
    """
    ALONG_A, ALONG_B = layout[0] == "n", layout[1] == "t"
    (_, LENGTH), (_, length_b) = shared_layouts.tile_shapes(tiling, layout)
    run, wn = policy_products.run_of(policy), tiling.warp[1]
    place_a, place_b = placed(LENGTH, ALONG_A, run), placed(length_b, ALONG_B, run)
    start_a, load_a = policy_products.loading(STEP, LENGTH, ALONG_A, True, place_a, policy)
    start_b, load_b = policy_products.loading(wn, length_b, ALONG_B, False, place_b, policy)

    @on_device
    def load_row(As, from_a, s, x, a_high, a_low):
        """Row x of A's fragments in a step, split."""
        here = from_a + x * STEP * LENGTH if ALONG_A else from_a ^ x * STEP
        load_a(As, here, s, a_high, a_low)

    return start_a, start_b, load_row, load_b


def rows_of_a_tile(
    r: int, counts: tuple[int, int], copy: Callable, load_row: Callable, load_b: Callable,
    multiply_row: Callable,
) -> Callable:  # fmt: skip
    """Return the device function of the rows of a tile from r on, but for the last one.

    counts : as `fragment_rows` says
    Each row splits what the next one needs and begins a part of a copy, then multiplies its own, so
    that Tensor Cores and the others have work at the same time. Nesting writes the rows out: all
    fragments live in registers.
    """
    ROWS, ALL = counts
    others = no_rows
    if r + 2 < ALL:
        others = rows_of_a_tile(r + 1, counts, copy, load_row, load_b, multiply_row)
    (s, x), (after, next_x) = divmod(r, ROWS), divmod(r + 1, ROWS)
    NEW_STEP = after > s

    @on_device
    def row_of_tile(
        As, Bs, from_a, from_b, to_a, to_b, A, B, row, col, p, a_high, a_low, b_high, b_low,
        main, cross,
    ):  # fmt: skip
        load_row(As, from_a, after, next_x, a_high[(r + 1) % 2], a_low[(r + 1) % 2])
        if NEW_STEP:
            load_b(Bs, from_b, after, b_high[after % 2], b_low[after % 2])
        copy(As, Bs, to_a, to_b, A, B, row, col, p, r)
        multiply_row(a_high[r % 2, 0], a_low[r % 2, 0], b_high[s % 2], b_low[s % 2], x, main, cross)
        others(
            As, Bs, from_a, from_b, to_a, to_b, A, B, row, col, p, a_high, a_low,
            b_high, b_low, main, cross,
        )  # fmt: skip

    return row_of_tile


@on_device
def no_rows(
    As, Bs, from_a, from_b, to_a, to_b, A, B, row, col, p, a_high, a_low, b_high, b_low, main, cross
):  # fmt: skip
    """Have no further row."""


def shared_bytes(problem: Gemm, tiling: Tiling) -> int:
    """Return `stages` tiles of A and of B in FP32 [B]."""
    bm, bn, bk = tiling.block
    return FLOAT * tiling.stages * bk * (bm + bn)


def work(problem: Gemm, tiling: Tiling, policy: Policy = CORRECTED) -> traffic.Work:
    """Copies in FP32, runs in place of fragments, and `stages` - 1 tiles of zeros beyond k."""
    steps, ahead = tiling.steps(problem), tiling.stages - 1
    loads, stores = policy_products.copied(problem, tiling, policy)
    return traffic.staged(
        problem,
        tiling,
        copies=loads,
        shared=[
            *((steps + ahead, each) for each in stores),
            *policy_products.fragment_loads(
                problem, tiling, policy, steps * tiling.block[2] // policy.mma.k
            ),
        ],
        update=warp_mma.update_c(problem, tiling),
        barriers=steps + 1,
        round_trips=-(-steps // ahead),
        flops={policy.mma.dtype: policy.products * tiling.padded_flops(problem)},
    )


def check(tiling: Tiling) -> None:
    """Raise ValueError for a tiling that warps, copies and rings cannot be made of."""
    steps = tiling.block[2] // STEP
    fits = warp_mma.computable(tiling) and copyable(tiling) and steps > 0 and steps % 2 == 0
    check_fit(
        fits and tiling.stages >= 2,
        tiling,
        f"the kernel that splits in registers, which needs {warp_mma.COMPUTABLE}, steps of "
        f"multiples of 32 along k, two stages or more, and {COPYABLE}",
        DEFAULT,
    )


DEFAULT = Tiling(block=(128, 128, 32), warp=(64, 32), thread=(8, 8), stages=4)

tcec_registers = Kernel(
    name="tcec_registers",
    idea="operands split in registers, as fragments are loaded",
    default=DEFAULT,
    build=build,
    configure=threads_in_a_row,
    work=work,
    check=check,
    shared_bytes=shared_bytes,
    dynamic=True,
    variant=product_sums.variant,
    compile=warp_mma.compile_options,
    layouts=LAYOUTS,
    product_error=product_sums.product_error,
)
