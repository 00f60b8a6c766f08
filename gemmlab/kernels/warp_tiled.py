"""Rung 6, warp tiled and double-buffered: nobody waits for memory.

Three changes. The threads of a warp compute one compact tile of C, so that their shared loads fall
on few words, each sent to many lanes. Tiles of A and B are copied asynchronously, `stages` - 1
ahead of the arithmetic, into a ring of shared rows, so that one barrier a tile is enough. And each
thread reads the fragments of the next step along k while it multiplies those of this one. Counter
to watch: barriers, half as many for as many steps; and the time, for little else is left to fall.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from numpy import float32, int32

from gemmlab import cuda
from gemmlab.instructions import load_v4, shared_view
from gemmlab.kernels.fours import copying, on_device, updating
from gemmlab.kernels.kernel import Kernel, threads_in_a_row
from gemmlab.model import traffic
from gemmlab.problem import LAYOUTS, Gemm
from gemmlab.tiling import WARP, Tiling

PAD = 4  # words after each row of a tile that is transposed, as in the rung below
RUN = 8  # neighbours that a group of lanes copies to be transposed: 32 bytes, one sector


def build(
    tiling: Tiling, layout: str = "nn", aligned: bool = True, asynchronous: bool = True
) -> Callable:
    """The kernel as a plain Numba-CUDA function, with all tile sizes frozen into it.

    layout : which operands are stored transposed, see `Gemm.layout`
    aligned : all rows that are copied by fours, and those of C, begin at multiples of 16 bytes
    asynchronous : the GPU has `cp.async`; else threads carry the tiles through registers
    """
    BM, BN, BK = tiling.block
    WM, WN = tiling.warp
    TM, TN = tiling.thread
    THREADS = tiling.threads
    LANES_M, LANES_N = tiling.warp_lanes
    WARPS_N = BN // WN
    ROWS = tiling.stages * BK  # of the ring
    AHEAD = ROWS - BK  # rows between what is multiplied and what is copied
    K_AXIS = 1 if layout[0] == "n" else 0  # of A
    A_SHAPE, B_SHAPE = tile_shapes(tiling, layout)
    A_BYTES = 4 * A_SHAPE[0] * A_SHAPE[1]

    copy_one, copy_four, commit, wait = copying(aligned, asynchronous, tiling.stages - 2)
    update_tile = updating(aligned, TM, TN)

    def straight(width):
        """A copy of X[p …, x …] to rows q … of a tile, `width` long: THREADS // BK lanes a row."""

        @on_device
        def copy(tile, q, X, x, p):
            s, i = cuda.threadIdx.x // (THREADS // BK), cuda.threadIdx.x % (THREADS // BK) * 4
            for far in range(0, width, 4 * (THREADS // BK)):
                copy_four(tile, q + s, i + far, X, p + s, x + i + far)

        return copy

    def transposing(width):
        """A copy of X[x …, p …] to the columns of a tile: RUN lanes copy neighbours along p."""

        @on_device
        def copy(tile, q, X, x, p):
            i, s = cuda.threadIdx.x // RUN, cuda.threadIdx.x % RUN
            for far in range(0, width, THREADS // RUN):
                for along in range(0, BK, RUN):
                    copy_one(tile, q + s + along, i + far, X, x + i + far, p + s + along)

        return copy

    copy_a = transposing(BM) if layout[0] == "n" else straight(BM)
    copy_b = straight(BN) if layout[1] == "n" else transposing(BN)

    @on_device
    def load(tile, q, start, apart, fragment):
        """Row q of a thread's part of a tile: groups of four, `apart` words from each other."""
        for g in range(0, fragment.size, 4):
            v = load_v4(tile, q, start + g // 4 * apart)
            fragment[g], fragment[g + 1], fragment[g + 2], fragment[g + 3] = v

    @on_device
    def multiply(a, b, acc):
        """Add a bᵀ to acc, to and fro along the rows: at a turn, b's element is still at hand."""
        for i in range(TM):
            for c in range(TN):
                j = c if i % 2 == 0 else TN - 1 - c
                acc[i, j] += a[i] * b[j]

    @on_device
    def step(As, Bs, q, i, j, a, b, next_a, next_b, acc):
        """Load the fragments of row q + 1, then multiply those of row q."""
        load(As, q + 1, i, 4 * LANES_M, next_a)
        load(Bs, q + 1, j, 4 * LANES_N, next_b)
        multiply(a, b, acc)

    @on_device
    def two_steps(As, Bs, q, i, j, a, b, next_a, next_b, acc):
        """Steps q and q + 1, after which the two pairs of fragments have their roles again."""
        step(As, Bs, q, i, j, a, b, next_a, next_b, acc)
        step(As, Bs, q + 1, i, j, next_a, next_b, a, b, acc)

    def warp_tiled(alpha, A, B, beta, C):
        As = shared_view(A_SHAPE, float32, 0)
        Bs = shared_view(B_SHAPE, float32, A_BYTES)
        k = A.shape[K_AXIS]
        row = cuda.blockIdx.y * BM
        col = cuda.blockIdx.x * BN
        warp = cuda.threadIdx.x // WARP
        lane = cuda.threadIdx.x % WARP
        # This thread's groups of four begin at As[q, i] and Bs[q, j]. Lanes go two down, then
        # across, so that the eight that a pass of shared memory serves read few words.
        i = int32(warp // WARPS_N * WM + (lane // (2 * LANES_N) * 2 + lane % 2) * 4)
        j = int32(warp % WARPS_N * WN + lane // 2 % LANES_N * 4)

        a = cuda.local.array(TM, float32)
        b = cuda.local.array(TN, float32)
        next_a = cuda.local.array(TM, float32)
        next_b = cuda.local.array(TN, float32)
        acc = cuda.local.array((TM, TN), float32)
        for r in range(TM):
            for c in range(TN):
                acc[r, c] = float32(0)

        for q in range(0, AHEAD, BK):
            copy_a(As, q, A, row, q)
            copy_b(Bs, q, B, col, q)
            commit()
        wait()
        cuda.syncthreads()
        load(As, 0, i, 4 * LANES_M, a)
        load(Bs, 0, j, 4 * LANES_N, b)

        p = 0  # of k: where this tile begins
        q = 0  # of the ring: the row that holds p
        while p < k:
            fill = q - BK if q > 0 else AHEAD  # the tile before, which nobody reads any more
            step(As, Bs, q, i, j, a, b, next_a, next_b, acc)
            copy_b(Bs, fill, B, col, p + AHEAD)
            copy_a(As, fill, A, row, p + AHEAD)
            commit()
            # Written out, so that the compiler moves loads across steps: Numba unrolls short loops
            # alone, and has no word such as `#pragma unroll`.
            two_steps(As, Bs, q + 1, i, j, next_a, next_b, a, b, acc)
            two_steps(As, Bs, q + 3, i, j, next_a, next_b, a, b, acc)
            two_steps(As, Bs, q + 5, i, j, next_a, next_b, a, b, acc)
            if BK == 16:
                two_steps(As, Bs, q + 7, i, j, next_a, next_b, a, b, acc)
                two_steps(As, Bs, q + 9, i, j, next_a, next_b, a, b, acc)
                two_steps(As, Bs, q + 11, i, j, next_a, next_b, a, b, acc)
                two_steps(As, Bs, q + 13, i, j, next_a, next_b, a, b, acc)
            # One step is left, whose fragments are in registers: the tile may be given up.
            p += BK
            q = q + BK if q < AHEAD else 0
            wait()
            cuda.syncthreads()
            load(As, q, i, 4 * LANES_M, a)
            load(Bs, q, j, 4 * LANES_N, b)
            multiply(next_a, next_b, acc)

        update_tile(C, row + i, col + j, 4 * LANES_M, 4 * LANES_N, alpha, acc, beta)

    return warp_tiled


def tile_shapes(tiling: Tiling, layout: str) -> tuple[tuple[int, int], tuple[int, int]]:
    """Rows and words of the rings that hold tiles of A and of B."""
    bm, bn, bk = tiling.block
    rows = tiling.stages * bk
    return (rows, bm + PAD * (layout[0] == "n")), (rows, bn + PAD * (layout[1] == "t"))


def shared(problem: Gemm, tiling: Tiling) -> int:
    """Dynamic shared memory of a block [B]."""
    return sum(4 * rows * words for rows, words in tile_shapes(tiling, problem.layout))


def variant(problem: Gemm, capability: tuple[int, int] | None) -> Mapping[str, object]:
    """What the kernel freezes of a problem and of a GPU: see `build`."""
    by_fours = [problem.n] + [problem.m] * (problem.layout[0] == "t")
    return {
        "layout": problem.layout,
        "aligned": all(length % 4 == 0 for length in by_fours),
        "asynchronous": capability is None or capability >= (8, 0),
    }


def check(tiling: Tiling) -> None:
    """Raise ValueError for a tiling that threads, warps and rings cannot be made of."""
    bm, bn, bk = tiling.block
    fits = (
        tiling.warp is not None
        and tiling.warp_lanes[0] % 2 == 0
        and bk in (8, 16)
        and tiling.stages >= 2
        and not any(size % 4 for size in tiling.thread)
        and not any(width % (4 * tiling.threads // bk) for width in (bm, bn))
        and not any(width % (tiling.threads // RUN) for width in (bm, bn))
    )
    if not fits:
        raise ValueError(
            f"tiling {tiling} does not fit the warp-tiled kernel, which needs warp tiles two or "
            "more threads high, thread tiles of multiples of 4, steps of 8 or 16 along k, two "
            "stages or more, and blocks that its threads copy without a remainder, such as "
            f"{DEFAULT!r}"
        )


DEFAULT = Tiling(block=(128, 256, 16), warp=(64, 64), thread=(16, 8), stages=3)

warp_tiled = Kernel(
    name="warp_tiled",
    idea="warp tiles, copied ahead of the arithmetic",
    default=DEFAULT,
    build=build,
    launch=threads_in_a_row,
    work=traffic.warp_tiled,
    check=check,
    shared=shared,
    variant=variant,
    tilings=(
        DEFAULT,
        Tiling(block=(128, 128, 16), warp=(64, 64), thread=(16, 8), stages=3),
        Tiling(block=(128, 128, 8), warp=(64, 32), thread=(8, 8), stages=3),
        Tiling(block=(64, 64, 16), warp=(32, 32), thread=(8, 4), stages=3),
    ),
    layouts=LAYOUTS,
)
