"""FP8: a byte for each element of A and B, a scale for each row of A and each column of B.

Tensor Cores multiply bytes twice as fast as halves, and half as much is copied. A byte has three
bits of a fraction or two, and few powers of two: operands are divided by a scale, line by line, so
that the largest element of each just fits, and C is multiplied by both scales in its epilogue. Of
a sum of FP8 products Tensor Cores keep 13 bits behind the first, so what is added to a long sum is
mostly lost. Here they sum a stage, 128 products, and FP32 units add these sums up while the other
consumer has the Tensor Cores. Where `fast`, sums stay in the Tensor Cores. Counter to watch: bytes
that come by tensor copies.

Both operands are read with their rows along k: A as m×k, B as n×k. The TMA copies rows of all
three, two blocks share B, as in *tma_multicast*.
"""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from math import prod
from typing import Any

import numpy as np
from numpy import float32, int32, uint8, uint32, uint64

from gemmlab.formats import EIGHT_BITS
from gemmlab.instructions import (
    WGMMA_8,
    WGMMA_WAIT,
    cluster_sync,
    fence_mbarrier_init,
    fence_tensor_map,
    load_v2,
    mbarrier_arrive_expect,
    mbarrier_arrive_remote,
    mbarrier_init,
    mbarrier_wait,
    setmaxnreg_dec,
    setmaxnreg_inc,
    shared_view,
    tensor_map,
    tma_load,
    tma_load_multicast,
    tma_wait_read,
    wgmma_commit,
    wgmma_fence,
)
from gemmlab.instructions.tensor_copies import ROW, STEP
from gemmlab.instructions.warpgroup import COLUMNS, K8, ROWS, WARPGROUP
from gemmlab.kernels.kernel import Kernel, check_fit, on_device
from gemmlab.kernels.tensor_core.shared import accumulators, tma_tiles
from gemmlab.kernels.tensor_core.shared.accumulators import WARP_ROWS
from gemmlab.kernels.tensor_core.shared.rasterisation import corners
from gemmlab.kernels.tensor_core.shared.tma_tiles import WORD
from gemmlab.kernels.tensor_core.tma_multicast import (
    CLUSTER,
    slabs,
    tma_multicast,
    work as work_of,
)
from gemmlab.kernels.tensor_core.tma_stored import room
from gemmlab.kernels.tensor_core.warp_specialised import FEW, MANY
from gemmlab.model import traffic
from gemmlab.numerics import tensor_core_bound
from gemmlab.problem import Arithmetic, Gemm
from gemmlab.simt import cuda
from gemmlab.tiling import WARP, Tiling

DEPTH = ROW  # elements of k in a row of a tile, a byte each
WIDTHS = tuple(n for n in COLUMNS if n % 64 == 0 and n > 64)
GROUP = 8  # sums that a device function adds


def build(
    tiling: Tiling, dtype: str = "float8_e4m3fn", out_dtype: str = "bfloat16", fast: bool = False
) -> Callable:
    """Return the kernel, a function of (alpha, map of A, map of B, k, beta, map of C, C, R, S).

    R, S : the scales of A's rows and of B's columns
    fast : Tensor Cores sum all of k; else a stage at a time
    """
    BM, BN, BK = tiling.block
    STAGES = tiling.stages
    CONSUMERS = BM // ROWS
    PRODUCER = CONSUMERS * WARPGROUP  # the first thread behind the consumers
    A_BYTES, B_BYTES = BM * ROW, BN * ROW
    TILES = STAGES * (A_BYTES + B_BYTES)
    C_SHAPE, C_ELEMENT = slabs(tiling, out_dtype)
    BARRIERS = TILES + C_ELEMENT(0).itemsize * prod(C_SHAPE)
    HELD = BN // 2  # elements of C that a thread of a consumer accumulates
    HALF = BN // CLUSTER  # columns of B that a block sends
    BOTH = uint32((1 << CLUSTER) - 1)
    wgmma, wgmma_wait = WGMMA_8[BN, dtype], WGMMA_WAIT[BN]
    corner = corners(replace(tiling, block=(CLUSTER * BM, BN, BK)))
    stage_of, parity_of = tma_tiles.turning(STAGES)
    clear, add = adding(HELD)
    scale = scaling(BN)
    if out_dtype == "float32":
        store = accumulators.storing(BN, C_SHAPE[1])
    else:
        store = accumulators.storing_halves(BN, C_SHAPE[1], out_dtype)

    def fp8_scaled(alpha, A, B, k, beta, D, C, R, S):
        As = shared_view((STAGES, BM, BK), uint8, 0)
        Bs = shared_view((STAGES, BN, BK), uint8, STAGES * A_BYTES)
        Cs = shared_view(C_SHAPE, C_ELEMENT, TILES)
        full = shared_view((STAGES,), uint64, BARRIERS)
        empty = shared_view((STAGES,), uint64, BARRIERS + STAGES * WORD)
        m, n = C.shape
        pairs = (m + CLUSTER * BM - 1) // (CLUSTER * BM) * ((n + BN - 1) // BN)
        thread = cuda.threadIdx.x
        rank = cuda.blockIdx.x % CLUSTER
        first, clusters = cuda.blockIdx.x // CLUSTER, cuda.gridDim.x // CLUSTER
        step = uint32(0)  # along k, over all tiles of this block

        if thread == 0:
            for stage in range(STAGES):
                mbarrier_init(full, stage, 1)
                mbarrier_init(empty, stage, CLUSTER * CONSUMERS)
            fence_mbarrier_init()
        cluster_sync()

        if thread >= PRODUCER:
            setmaxnreg_dec(FEW)
            if thread == PRODUCER:
                fence_tensor_map(A)
                fence_tensor_map(B)
                own = rank * HALF
                for pair in range(first, pairs, clusters):
                    row, col = corner(pair, m, n)
                    row += rank * BM
                    for p in range(0, k, BK):
                        stage = stage_of(step)
                        # What the stage had a turn ago; in the first turn this passes at once.
                        mbarrier_wait(empty, stage, parity_of(step) ^ uint32(1))
                        mbarrier_arrive_expect(full, stage, A_BYTES + B_BYTES)
                        tma_load(As, stage, 0, 0, A, row, p, full, stage)
                        tma_load_multicast(Bs, stage, own, 0, B, col + own, p, full, stage, BOTH)
                        step += uint32(1)
        else:
            setmaxnreg_inc(MANY)
            acc = cuda.local.array(HELD, float32)  # what Tensor Cores sum
            total = cuda.local.array(HELD, float32)  # and what FP32 units do
            sums = acc if fast else total
            top = thread // WARPGROUP * ROWS  # of the tile, this consumer's first row
            i = rank * BM + thread // WARP * WARP_ROWS  # of the pair, this warp's first row
            lane = thread % WARP
            peer = thread % WARPGROUP  # the block to which this thread tells what has been read
            if lane == 0:
                fence_tensor_map(D)
            for pair in range(first, pairs, clusters):
                row, col = corner(pair, m, n)
                clear(total)
                for p in range(0, k, BK):
                    stage = stage_of(step)
                    mbarrier_wait(full, stage, parity_of(step))
                    wgmma_fence()
                    wgmma(acc, As, stage, top, 0, Bs, stage, 0, 0, fast and p > 0)
                    wgmma(acc, As, stage, top, K8, Bs, stage, 0, K8, True)
                    wgmma(acc, As, stage, top, 2 * K8, Bs, stage, 0, 2 * K8, True)
                    wgmma(acc, As, stage, top, 3 * K8, Bs, stage, 0, 3 * K8, True)
                    wgmma_commit()
                    wgmma_wait(0, acc)
                    if peer < CLUSTER:
                        mbarrier_arrive_remote(empty, stage, uint32(peer))
                    if not fast:
                        add(total, acc)
                    step += uint32(1)
                scale(sums, row + i + lane // 4, col + lane % 4 * 2, R, S)
                store(D, Cs, C, row + i, col, alpha, sums, beta)
            tma_wait_read(0)
        cluster_sync()  # until here the other block reaches for what this one has

    return fp8_scaled


def adding(held: int) -> tuple[Callable, Callable]:
    """Return the device functions that make sums 0, and that add others to them."""

    @on_device
    def nothing(total, acc):
        pass

    def adds(first):
        """Add from one on. Nesting writes out what a loop would index: sums stay in registers."""
        others = adds(first + GROUP) if first + GROUP < held else nothing

        @on_device
        def add(total, acc):
            for e in range(GROUP):
                total[first + e] += acc[first + e]
            others(total, acc)

        return add

    @on_device
    def nothing_left(total):
        pass

    def clears(first):
        others = clears(first + GROUP) if first + GROUP < held else nothing_left

        @on_device
        def clear(total):
            for e in range(GROUP):
                total[first + e] = float32(0)
            others(total)

        return clear

    return clears(0), adds(0)


def scaling(columns: int) -> Callable:
    """Return the device function (sums, row, col, R, S) that multiplies a thread's sums.

    sums[0] belongs to row `row` of A and column `col` of B. Beyond C the last scale is taken, for
    sums that nobody stores.
    """

    @on_device
    def nothing(sums, above, below, col, S):
        pass

    def scales(group):
        """Scale from a group of eight columns on."""
        others = scales(group + 1) if group + 1 < columns // 8 else nothing
        i, j = 4 * group, 8 * group

        @on_device
        def scale_group(sums, above, below, col, S):
            left, right = load_v2(S, min(col + j, int32(S.shape[0]) - 2))
            sums[i] *= above * left
            sums[i + 1] *= above * right
            sums[i + 2] *= below * left
            sums[i + 3] *= below * right
            others(sums, above, below, col, S)

        return scale_group

    scale_all = scales(0)

    @on_device
    def scale(sums, row, col, R, S):
        last = int32(R.shape[0]) - 1
        scale_all(sums, R[min(row, last)], R[min(row + 8, last)], col, S)

    return scale


def variant(problem: Gemm, capability: tuple[int, int] | None) -> Mapping[str, Any]:
    """Return keyword arguments of `build`; ValueError for rows that the TMA cannot copy."""
    rows = (problem.k, problem.array_bytes[2] // problem.m)
    if any(size % STEP for size in rows):
        raise ValueError(
            f"{problem}: rows have {rows[0]} B along k and {rows[1]} B in C; use sizes with which "
            f"both are multiples of {STEP} B"
        )
    return {"dtype": problem.dtype, "out_dtype": problem.out_dtype}


def operands(problem: Gemm, tiling: Tiling, A: Any, B: Any) -> tuple:
    """Return the arguments in place of A and B: their tensor maps, and k."""
    bm, bn, _ = tiling.block
    return tensor_map(A, bm), tensor_map(B, bn // CLUSTER), problem.k


def result(problem: Gemm, tiling: Tiling, C: Any, rows: Any = None, columns: Any = None) -> tuple:
    """Return the arguments in place of C: its tensor map, C, and the scales; where None, ones."""
    scales = (
        beside(C, np.ones(size, np.float32)) if given is None else given
        for given, size in ((rows, problem.m), (columns, problem.n))
    )
    return (tensor_map(C, WARP_ROWS), C, *scales)


def beside(array: Any, values: np.ndarray) -> Any:
    """Return values where an array is: on the GPU, or here."""
    if not hasattr(array, "__cuda_array_interface__"):
        return values
    from gemmlab.instructions import host

    return host.cuda().to_device(values)


def work(problem: Gemm, tiling: Tiling) -> traffic.Work:
    """Return the work of *tma_multicast*, the loads of scales, and a barrier more."""
    found, loads = work_of(problem, tiling), loads_of_scales(problem, tiling)
    direct = loads.pop("l1_cycles")
    return replace(
        found,
        counters=found.counters + loads,
        l1_wavefronts=found.l1_wavefronts + direct,
        block_counters=Counter(barriers=2),
    )


def loads_of_scales(problem: Gemm, tiling: Tiling) -> Counter[str]:
    """Return loads of scales for whole pairs of tiles.

    A warp has 16 rows, and loads the scales of eight at a time, 32 bytes; of eight columns it loads
    those of two neighbours a lane, 32 bytes too: a sector each.
    """
    (bm, bn, _), (across, down) = tiling.block, tiling.grid(problem)
    warps = -(-down // CLUSTER) * CLUSTER * across * bm // WARP_ROWS
    rows, columns = 2 * warps, warps * bn // 8
    return Counter(
        global_load_requests=rows + columns,
        global_load_bytes=WARP * (4 * rows + 8 * columns),
        global_load_sectors=rows + columns,
        l1_cycles=rows + columns,
    )


def shared_bytes(problem: Gemm, tiling: Tiling) -> int:
    """Shared memory of a block [B]: the ring, and slabs of C."""
    shape_of, element = slabs(tiling, problem.out_dtype)
    return tma_tiles.ring_bytes(tiling) + element(0).itemsize * prod(shape_of)


def check(tiling: Tiling, fast: bool = False) -> None:
    """Raise ValueError for a tiling that two consumers, the ring and the slabs cannot have."""
    bm, bn, bk = tiling.block
    widths = WIDTHS if fast else WIDTHS[:-1]  # registers hold two sums of as many
    fits = bm == 2 * ROWS and bn in widths and bk == DEPTH and tiling.stages >= 2
    check_fit(
        fits and room(tiling) >= bm * ROW,
        tiling,
        f"fp8_scaled, which needs blocks of {2 * ROWS}×n×{DEPTH} with n one of "
        f"{', '.join(map(str, widths))}, two stages or more, and {bm * ROW} B of shared memory "
        "besides",
        DEFAULT,
    )


DEFAULT = Tiling(block=(128, 192, DEPTH), stages=4)
FAST = Tiling(block=(128, 256, DEPTH), stages=4)


def sum_error(problem: Gemm, fast: bool = False) -> float:
    """Give the error of sums that Tensor Cores make, of 128 products or of k, and of two scales.

    >>> long = Gemm(8, 8, 4096, dtype="float8_e4m3fn")
    >>> f"{sum_error(long):.3f}, {sum_error(long, fast=True):.3f}"
    '0.017, 0.699'
    """
    products = problem.k if fast else min(DEPTH, problem.k)
    return tensor_core_bound(products, problem.dtype) + 2.0**-23


def with_scales(rows: Any = None, columns: Any = None, fast: bool = False) -> Kernel:
    """Return the rung with scales: `rows` of m, `columns` of n numbers in FP32; ones where None.

    fast : Tensor Cores sum all of k, with 13 bits; else FP32 units add up sums of 128
    """

    def variant_of(problem: Gemm, capability: tuple[int, int] | None) -> Mapping[str, Any]:
        return {**variant(problem, capability), "fast": fast}

    return replace(
        fp8_scaled,
        name="fp8_fast" if fast else "fp8_scaled",
        default=FAST if fast else DEFAULT,
        variant=variant_of,
        result=partial(result, rows=rows, columns=columns),
        check=partial(check, fast=fast),
        product_error=partial(sum_error, fast=fast),
    )


fp8_scaled = replace(
    tma_multicast,
    name="fp8_scaled",
    idea="bytes with scales, whose sums are taken out of Tensor Cores in time",
    default=DEFAULT,
    build=build,
    operands=operands,
    result=result,
    variant=variant,
    work=work,
    shared_bytes=shared_bytes,
    check=check,
    arithmetic=tuple(
        Arithmetic(eight, "float32", out)
        for eight in EIGHT_BITS for out in ("float32", "bfloat16", "float16")
    ),
    layouts=("nt",),
    tilings=(DEFAULT,),
    product_error=sum_error,
)  # fmt: skip
