"""Rung 1, tcec_stored: both parts of A and B lie in shared memory, as WMMA asks for them.

Threads load a tile in FP32, split it, and store high and low parts; from there on it is a kernel
of Tensor Cores with three products where there was one. While a tile is multiplied the next one is
on its way to registers. It has a place of its own in shared memory, so that a step takes one
barrier.
Counter to watch: shared stores; each element is stored by one thread, and loaded by every warp
that needs it, as many bytes as in FP32.

Source of the products: see `product_sums`.
"""

from collections.abc import Callable

from numpy import float16, float32, uint32

from gemmlab import Tiling
from gemmlab.instructions import shared_view, store_v4
from gemmlab.kernels.kernel import Kernel, check_fit, on_device, threads_in_a_row
from gemmlab.kernels.simt.shared.vector_access import FOUR, moved, reading
from gemmlab.kernels.tcec.shared import product_sums
from gemmlab.kernels.tcec.shared.product_sums import are_aligned
from gemmlab.kernels.tcec.shared.splitting import split_two
from gemmlab.kernels.tensor_core.shared import shared_layouts, warp_mma
from gemmlab.kernels.tensor_core.shared.shared_layouts import (
    BYTES,
    PIECE,
    Place,
    moved as pieces_moved,
)
from gemmlab.kernels.tensor_core.shared.warp_mma import STEP
from gemmlab.model import traffic
from gemmlab.problem import LAYOUTS, Gemm
from gemmlab.simt import cuda

HIGH, LOW = 0, 1  # parts of a tile, in their order in shared memory
PARTS = 2
TILES = 2  # in shared memory: one is multiplied, the other stored


def build(
    tiling: Tiling, layout: str = "nn", aligned: bool = True, paired: bool = True
) -> Callable:
    """Return the kernel as a plain Numba-CUDA function, with all tile sizes frozen into it.

    layout, aligned, paired : as in *mma_shared*
    """
    BM, BN, BK = tiling.block
    WM, WN = tiling.warp
    ALONG_A, ALONG_B = layout[0] == "n", layout[1] == "t"  # rows of the stored tile run along k
    A_TILE, B_TILE = shared_layouts.tile_shapes(tiling, layout)
    A_SIZE, B_SIZE = BM * BK, BN * BK  # of one part
    A_ALL, B_ALL = TILES * PARTS * A_SIZE, TILES * PARTS * B_SIZE
    A_HALVES, A_PAIRS, B_HALVES, B_PAIRS = (A_ALL,), (A_ALL // 2,), (B_ALL,), (B_ALL // 2,)
    A_HELD, B_HELD = held(tiling, A_TILE), held(tiling, B_TILE)
    A_WORDS, B_WORDS, SUMS = warp_mma.fragment_shapes(tiling)

    place_a, place_b = shared_layouts.swizzled(A_TILE[1]), shared_layouts.swizzled(B_TILE[1])
    first_a, fetch_a, store_a = carrying(tiling, A_TILE, place_a, aligned)
    first_b, fetch_b, store_b = carrying(tiling, B_TILE, place_b, aligned)
    start_a, load_a = warp_mma.loading(WM, A_TILE[1], ALONG_A, True, place_a)
    start_b, load_b = warp_mma.loading(WN, B_TILE[1], ALONG_B, False, place_b)
    warp_corner, clear = on_device(warp_mma.corner(tiling)), warp_mma.clearing(tiling)
    multiply_row, join = product_sums.multiplying(tiling), product_sums.joining(tiling)
    update = warp_mma.updating(tiling, "float32", paired)

    @on_device
    def fetch(A, B, row, col, p, of_a, of_b):
        """Load the tiles from p of k on to registers."""
        fetch_a(A, row if ALONG_A else p, p if ALONG_A else row, of_a)
        fetch_b(B, col if ALONG_B else p, p if ALONG_B else col, of_b)

    def tcec_stored(alpha, A, B, beta, C):
        As, to_As = shared_view(A_HALVES, float16, 0), shared_view(A_PAIRS, uint32, 0)
        Bs = shared_view(B_HALVES, float16, BYTES * A_ALL)
        to_Bs = shared_view(B_PAIRS, uint32, BYTES * A_ALL)
        k = A.shape[1] if ALONG_A else A.shape[0]
        row, col = cuda.blockIdx.y * BM, cuda.blockIdx.x * BN
        i, j = warp_corner(cuda.threadIdx.x)

        of_a, of_b = cuda.local.array(A_HELD, float32), cuda.local.array(B_HELD, float32)
        a_high, a_low = cuda.local.array(A_WORDS, uint32), cuda.local.array(A_WORDS, uint32)
        b_high, b_low = cuda.local.array(B_WORDS, uint32), cuda.local.array(B_WORDS, uint32)
        main, cross = cuda.local.array(SUMS, float32), cuda.local.array(SUMS, float32)
        clear(main)
        clear(cross)

        to_a, to_b = first_a(), first_b()  # where this thread stores
        from_a, from_b = start_a(i), start_b(j)  # where this lane points
        fetch(A, B, row, col, 0, of_a, of_b)
        store_a(to_As, to_a, of_a)
        store_b(to_Bs, to_b, of_b)
        cuda.syncthreads()

        here = 0  # which of the two tiles is multiplied
        for p in range(0, k, BK):
            fetch(A, B, row, col, p + BK, of_a, of_b)
            for s in range(BK // STEP):
                load_a(As, from_a + (PARTS * here + HIGH) * A_SIZE, s, a_high)
                load_a(As, from_a + (PARTS * here + LOW) * A_SIZE, s, a_low)
                load_b(Bs, from_b + (PARTS * here + HIGH) * B_SIZE, s, b_high)
                load_b(Bs, from_b + (PARTS * here + LOW) * B_SIZE, s, b_low)
                for x in range(WM // STEP):
                    multiply_row(a_high[x], a_low[x], b_high, b_low, x, main, cross)
            here = 1 - here
            store_a(to_As, to_a + PARTS * here * A_SIZE, of_a)
            store_b(to_Bs, to_b + PARTS * here * B_SIZE, of_b)
            cuda.syncthreads()

        join(main, cross)
        update(C, row + i, col + j, alpha, main, beta)

    return tcec_stored


def held(tiling: Tiling, shape: tuple[int, int]) -> tuple[int, int]:
    """Pieces of a tile that a thread carries, and elements of a piece."""
    return shape[0] * shape[1] // PIECE // tiling.threads, PIECE


def carrying(
    tiling: Tiling, shape: tuple[int, int], place: Place, aligned: bool
) -> tuple[Callable, Callable, Callable]:
    """Device functions first(), fetch(X, i, j, part) and store(pairs, to, part), for one tile.

    `fetch` loads this thread's pieces of the tile of X from X[i, j] on, with zeros for what is
    outside; `store` splits them. `to` is the element at which its first piece lies, `first()` that
    in a tile at the beginning of the array.
    """
    HEIGHT, LENGTH = shape
    ACROSS = LENGTH // PIECE  # threads that share a row
    DOWN = tiling.threads // ACROSS  # rows that are carried at a time
    COUNT, _ = held(tiling, shape)
    BETWEEN = HEIGHT * LENGTH // 2  # words from a high part to the low one
    at, read_four = on_device(place), reading(aligned)

    @on_device
    def first():
        return at(cuda.threadIdx.x // ACROSS, cuda.threadIdx.x % ACROSS)

    @on_device
    def fetch(X, i, j, part):
        row, col = i + cuda.threadIdx.x // ACROSS, j + cuda.threadIdx.x % ACROSS * PIECE
        for n in range(COUNT):
            v = read_four(X, row + n * DOWN, col)
            part[n, 0], part[n, 1], part[n, 2], part[n, 3] = v
            v = read_four(X, row + n * DOWN, col + 4)
            part[n, 4], part[n, 5], part[n, 6], part[n, 7] = v

    @on_device
    def store(pairs, to, part):
        for n in range(COUNT):
            h0, l0 = split_two(part[n, 0], part[n, 1])
            h1, l1 = split_two(part[n, 2], part[n, 3])
            h2, l2 = split_two(part[n, 4], part[n, 5])
            h3, l3 = split_two(part[n, 6], part[n, 7])
            there = (to + n * DOWN * LENGTH) // 2
            store_v4(pairs, there, (h0, h1, h2, h3))
            store_v4(pairs, there + BETWEEN, (l0, l1, l2, l3))

    return first, fetch, store


def shared_bytes(problem: Gemm, tiling: Tiling) -> int:
    """Return two tiles of A and of B, in two parts each [B]."""
    bm, bn, bk = tiling.block
    return BYTES * TILES * PARTS * bk * (bm + bn)


def work(problem: Gemm, tiling: Tiling) -> traffic.Work:
    """Loads in FP32, stores and fragments of two parts, and a tile of zeros beyond k."""
    steps, shapes = tiling.steps(problem), shared_layouts.tile_shapes(tiling, problem.layout)
    lanes = [traffic.in_turn(tiling.threads, *shape, PIECE) for shape in shapes]
    loads = [moved(each.repeated([0], (0, FOUR)), are_aligned(problem)) for each in lanes]
    (a, wide), (b, _) = loads
    stores = [
        pieces_moved("store", each, shared_layouts.swizzled(length))
        for each, (_, length) in zip(lanes, shapes, strict=True)
    ]
    fragments = warp_mma.fragment_loads(problem, tiling, shared_layouts.swizzled)
    return traffic.staged(
        problem,
        tiling,
        copies=traffic.copied(problem, tiling, a, b, wide, wide),
        shared=[
            *((PARTS * (steps + 1), each) for each in stores),
            (PARTS * steps * tiling.block[2] // STEP, fragments),
        ],
        update=warp_mma.update_c(problem, tiling),
        barriers=steps + 1,
        round_trips=steps + 1,
        flops=product_sums.flops(problem, tiling),
    )


def check(tiling: Tiling) -> None:
    """Raise ValueError for a tiling that warps and pieces cannot be made of."""
    check_fit(
        warp_mma.computable(tiling) and shared_layouts.copyable(tiling) and tiling.stages == TILES,
        tiling,
        f"the kernel with stored parts, which needs {warp_mma.COMPUTABLE}, steps of multiples of "
        "16 along k, two stages, and blocks whose threads carry tiles without a remainder",
        DEFAULT,
    )


DEFAULT = Tiling(block=(128, 128, 32), warp=(64, 32), thread=(8, 8), stages=TILES)

tcec_stored = Kernel(
    name="tcec_stored",
    idea="two parts of each operand in shared memory, three products",
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
