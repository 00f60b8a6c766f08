"""A warp's tile of C on Tensor Cores: its fragments, their product, and what becomes of the sums.

The tile is made of tiles of `mma.m16n8k16`. Each thread has four elements of C in every 16×8: two
neighbours in a row, and the two below them by eight rows, as `layout("m16n8k16", "C")` says.
"""

from collections import Counter
from collections.abc import Callable, Mapping

import numpy as np
from numpy import float16, float32, uint16, uint32

from gemmlab.instructions import (
    cvt_rn_bf16x2_f32,
    ldmatrix_x4,
    ldmatrix_x4_trans,
    load_v2,
    mma_m16n8k16_f32_bf16,
    mma_m16n8k16_f32_f16,
    store_v2,
    unpack_bf16x2,
)
from gemmlab.kernels.kernel import on_device
from gemmlab.kernels.tensor_core.shared import shared_layouts
from gemmlab.kernels.tensor_core.shared.shared_layouts import PIECE, Place, inside, swizzled
from gemmlab.model import traffic
from gemmlab.problem import Arithmetic, Gemm
from gemmlab.simt import cuda
from gemmlab.tiling import WARP, Tiling

STEP = 16  # of m and of k, and of n by pairs, in a fragment that one `ldmatrix` loads
LANES = 8, 4  # threads of a warp along m and along n in a tile of C
ARITHMETIC = tuple(
    Arithmetic(dtype, "float32", out)
    for dtype in ("float16", "bfloat16")
    for out in (dtype, "float32")
)


def fragment_shapes(tiling: Tiling) -> tuple[tuple[int, ...], ...]:
    """Shapes of a thread's fragments of A and of B, in words, and of its sums."""
    wm, wn = tiling.warp
    return (wm // STEP, 4), (wn // STEP, 4), (wm // STEP, wn // 8, 4)


def corner(tiling: Tiling) -> Callable:
    """Give the function (t) -> (i, j): where the tile of thread t's warp begins in its block's."""
    WM, WN = tiling.warp
    WARPS_N = tiling.block[1] // WN

    def place(t):
        return t // WARP // WARPS_N * WM, t // WARP % WARPS_N * WN

    return place


def pointing(along_k: bool, left: bool) -> Callable:
    """The function (t, x) -> (row, piece) of the stored tile to which lane t points for `ldmatrix`.

    `ldmatrix_x4` loads 16×16 elements, four matrices of 8×8: here those from row or column x of C
    and from the tile's first k on. Each lane points to one row of a matrix.
    along_k : rows of the stored tile run along k; left : it is A's
    """
    # The second matrix has A's next rows, or B's next k; so it is reached by lanes 8 to 15.
    BELOW = left == along_k

    def point(t, x):
        lane = t % WARP
        if BELOW:
            row, piece = lane % 16, lane // 16
        else:
            row, piece = lane % 8 + lane // 16 * 8, lane // 8 % 2
        return (x + row, piece) if along_k else (row, x // PIECE + piece)

    return point


def loading(
    width: int, length: int, along_k: bool, left: bool, place: Place
) -> tuple[Callable, Callable]:
    """Device functions start(x) and load(tile, start, s, out): a warp's fragments, to `out`.

    width : of the warp's tile, in rows or columns of C, from x on; length : of the stored tile's
        rows; along_k, left : as in `pointing`
    `start` is where this lane points in a tile at the beginning of the array; s counts steps of 16
    along k. Pieces change places bit by bit: as the tiles of warps begin at multiples of their
    width, a power of two, an exclusive or leads from piece to piece.
    """
    point, at = on_device(pointing(along_k, left)), on_device(place)

    @on_device
    def start(x):
        row, piece = point(cuda.threadIdx.x, x)
        return at(row, piece)

    @on_device
    def load(tile, start, s, out):
        for f in range(width // STEP):
            if along_k:
                v = ldmatrix_x4(tile, (start ^ s * STEP) + f * STEP * length)
            else:
                v = ldmatrix_x4_trans(tile, (start ^ f * STEP) + s * STEP * length)
            out[f, 0], out[f, 1], out[f, 2], out[f, 3] = v

    return start, load


def multiplying(tiling: Tiling, dtype: str) -> Callable:
    """Return the device function (a, b, acc) that adds a·b to acc, one step along k.

    It goes to and fro along the rows: at a turn, b's fragment is still at hand.
    """
    ROWS, COLUMNS = tiling.warp[0] // STEP, tiling.warp[1] // 8
    mma = mma_m16n8k16_f32_f16 if dtype == "float16" else mma_m16n8k16_f32_bf16

    @on_device
    def multiply(a, b, acc):
        for x in range(ROWS):
            for e in range(COLUMNS):
                y = e if x % 2 == 0 else COLUMNS - 1 - e
                acc[x, y, 0], acc[x, y, 1], acc[x, y, 2], acc[x, y, 3] = mma(
                    (a[x, 0], a[x, 1], a[x, 2], a[x, 3]),
                    (b[y // 2, y % 2 * 2], b[y // 2, y % 2 * 2 + 1]),
                    (acc[x, y, 0], acc[x, y, 1], acc[x, y, 2], acc[x, y, 3]),
                )

    return multiply


def clearing(tiling: Tiling) -> Callable:
    """Return the device function (acc) that makes all sums 0."""
    ROWS, COLUMNS = tiling.warp[0] // STEP, tiling.warp[1] // 8

    @on_device
    def clear(acc):
        for x in range(ROWS):
            for y in range(COLUMNS):
                for e in range(4):
                    acc[x, y, e] = float32(0)

    return clear


def updating(tiling: Tiling, out_dtype: str, paired: bool) -> Callable:
    """Return the device function (C, i, j, alpha, acc, beta): C ← α·acc + β·C, from C[i, j] on.

    paired : rows of C have an even number of elements, so that neighbours move together
    Nothing is written outside of C, and C is not read where β = 0.
    """
    ROWS, COLUMNS = tiling.warp[0] // STEP, tiling.warp[1] // 8
    read, write = two_of(out_dtype, paired)

    @on_device
    def update_c(C, i, j, alpha, acc, beta):
        lane = cuda.threadIdx.x % WARP
        row, col = i + lane // 4, j + lane % 4 * 2
        for x in range(ROWS):
            for y in range(COLUMNS):
                for half in range(2):
                    r, c = row + x * STEP + half * 8, col + y * 8
                    old = (float32(0), float32(0)) if beta == 0 else read(C, r, c)
                    left = alpha * acc[0, y, 2 * half] + beta * old[0]
                    right = alpha * acc[0, y, 2 * half + 1] + beta * old[1]
                    write(C, r, c, left, right)
            # A register has no index that could vary: each row in turn moves up to be row 0.
            for z in range(ROWS - 1):
                for y in range(COLUMNS):
                    for e in range(4):
                        acc[z, y, e] = acc[z + 1, y, e]

    return update_c


def two_of(out_dtype: str, paired: bool) -> tuple[Callable, Callable]:
    """Device functions read(C, i, j) -> C[i, j] and its neighbour as float32, zeros outside of C,
    and write(C, i, j, left, right), which leaves out what is outside.
    """
    BFLOAT16, FLOAT16 = out_dtype == "bfloat16", out_dtype == "float16"
    zero = shared_layouts.zero_of(out_dtype)

    @on_device
    def from_memory(two):
        if BFLOAT16:
            return unpack_bf16x2(uint32(two[0]) | uint32(two[1]) << uint32(16))
        return float32(two[0]), float32(two[1])

    @on_device
    def to_memory(left, right):
        if BFLOAT16:
            word = cvt_rn_bf16x2_f32(left, right)
            return uint16(word), uint16(word >> uint32(16))
        return (float16(left), float16(right)) if FLOAT16 else (left, right)

    @on_device
    def one(C, i, j):
        return C[i, j] if inside(C, i, j) else zero()

    @on_device
    def read(C, i, j):
        if paired:
            return from_memory(load_v2(C, i, j) if inside(C, i, j) else (zero(), zero()))
        return from_memory((one(C, i, j), one(C, i, j + 1)))

    @on_device
    def write(C, i, j, left, right):
        new = to_memory(left, right)
        if paired:
            if inside(C, i, j):
                store_v2(C, i, j, new)
        else:
            if inside(C, i, j):
                C[i, j] = new[0]
            if inside(C, i, j + 1):
                C[i, j + 1] = new[1]

    return read, write


def compile_options(tiling: Tiling) -> Mapping[str, object]:
    """Registers for one block of an SM: all that its threads can have."""
    return {"launch_bounds": (tiling.threads, 1)}


COMPUTABLE = "warps of 8×4 threads with tiles of powers of two from 16 on"


def computable(tiling: Tiling) -> bool:
    """Say whether warps have tiles of whole fragments, each side a power of two, and steps fit."""
    if tiling.warp is None or tiling.warp_lanes != LANES or tiling.block[2] % STEP:
        return False
    return all(side % STEP == 0 and side & side - 1 == 0 for side in tiling.warp)


# ------------------------------------------------------------------------------------- their counts


def fragment_loads(
    problem: Gemm, tiling: Tiling, placed: Callable[[int], Place],
    widths: tuple[int, int] | None = None,
) -> Counter[str]:  # fmt: skip
    """Return a block's loads of the fragments of one step of 16 along k, of A and of B.

    placed : `in_rows` or `swizzled`; widths : rows and columns of a warp's tile, if not all
    """
    shapes, threads = shared_layouts.tile_shapes(tiling, problem.layout), np.arange(tiling.threads)
    corners, total = corner(tiling)(threads), Counter()
    along = problem.layout[0] == "n", problem.layout[1] == "t"
    for side, ((_, length), along_k) in enumerate(zip(shapes, along, strict=True)):
        width = (widths or tiling.warp)[side]
        point, place = pointing(along_k, side == 0), placed(length)
        for f in range(0, width, STEP):
            flat = place(*point(threads, corners[side] + f)).reshape(-1, WARP)
            lanes = traffic.Lanes(np.zeros_like(flat), flat, np.ones_like(flat, bool))
            total += traffic.shared_access("load", 2, lanes, 0, PIECE)
    return total


def staged(
    problem: Gemm, tiling: Tiling, placed: Callable[[int], Place] = swizzled, ahead: int = 0,
    more: int = 0, **waited: int,
) -> traffic.Work:  # fmt: skip
    """Give the work of a kernel that copies tiles to shared memory, and loads fragments from there.

    placed : `in_rows` or `swizzled`; ahead : tiles of zeros beyond k; more : steps of fragments
        that
        nobody multiplies; waited : barriers and round trips, as `traffic.staged` takes them
    """
    steps = tiling.steps(problem)
    loads, stores = shared_layouts.copied(problem, tiling, placed)
    fragments = fragment_loads(problem, tiling, placed)
    return traffic.staged(
        problem,
        tiling,
        copies=loads,
        shared=[
            *((steps + ahead, each) for each in stores),
            (steps * tiling.block[2] // STEP + more, fragments),
        ],
        update=update_c(problem, tiling),
        flops=flops(problem, tiling),
        **waited,
    )


def update_c(problem: Gemm, tiling: Tiling) -> Counter[str]:
    """Return the epilogue of `updating`, over the whole grid."""
    pairs = pairs_of_sums(tiling)
    if problem.n % 2 == 0:
        return traffic.update_c(problem, tiling, pairs, 2)
    return traffic.update_c(problem, tiling, pairs.repeated([0], range(2)))


def pairs_of_sums(tiling: Tiling) -> traffic.Lanes:
    """Give the pairs of neighbours in a block's tile of C that its lanes have, access by access."""
    threads = np.arange(tiling.threads).reshape(-1, WARP)
    i, j = corner(tiling)(threads)
    lane = threads % WARP
    first = traffic.Lanes(i + lane // 4, j + lane % 4 * 2, np.ones_like(lane, bool))
    return first.repeated(range(0, tiling.warp[0], 8), range(0, tiling.warp[1], 8))


def flops(problem: Gemm, tiling: Tiling) -> dict[str, int]:
    """Operations of Tensor Cores, on whole tiles, by the format of A and B [FLOP]."""
    return {problem.dtype: tiling.padded_flops(problem)}
