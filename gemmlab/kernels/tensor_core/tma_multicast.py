"""Multicast: two SMs have the same columns of C, and what one copies of B comes to both.

In *tma_stored* each block copies all of its tile of B, though the block beside it, with the next
rows of C, copies the same from L2. Here the two are a *cluster*: they begin together on SMs that
reach each other's shared memory. Each copies half of B's tile, and the TMA sends it to both, to the
same place. So L2 is read a third less. A stage is free when the consumers of both blocks have read
it, since both write to it; so each consumer arrives at `empty` here and there. Counter to watch:
bytes that come by tensor copies.

A block stays until its producer knows that all its stages are read: then nobody tells it anything
more.

C may have 16 bits here: `stmatrix` brings it to shared memory in words of two, and the TMA stores
it from there. Where the TMA cannot copy rows of A, B or C, this is *warp_specialised*.
"""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from math import prod
from typing import Any

from numpy import float16, float32, uint16, uint32, uint64

from gemmlab.formats import number_format
from gemmlab.instructions import (
    WGMMA,
    WGMMA_BF16,
    WGMMA_WAIT,
    cluster_sync_relaxed,
    fence_mbarrier_init,
    fence_tensor_map,
    mbarrier_arrive_expect,
    mbarrier_arrive_remote,
    mbarrier_init,
    mbarrier_wait,
    setmaxnreg_dec,
    setmaxnreg_inc,
    shared_view,
    tensor_map,
    tma_wait_read,
    wgmma_commit,
    wgmma_fence,
)
from gemmlab.instructions.tensor_copies import ROW, STEP
from gemmlab.instructions.warpgroup import ROWS, WARPGROUP
from gemmlab.kernels.kernel import Dim
from gemmlab.kernels.tensor_core.shared import accumulators, tma_tiles
from gemmlab.kernels.tensor_core.shared.accumulators import WARP_ROWS
from gemmlab.kernels.tensor_core.shared.rasterisation import corners
from gemmlab.kernels.tensor_core.shared.shared_layouts import variant as of_operands
from gemmlab.kernels.tensor_core.shared.tma_tiles import WORD, shape
from gemmlab.kernels.tensor_core.tma_stored import check, room, through_slabs, tma_stored
from gemmlab.kernels.tensor_core.warp_specialised import (
    FEW,
    MANY,
    build as stored_by_threads,
    threads,
    work as work_by_threads,
)
from gemmlab.model import traffic
from gemmlab.problem import Gemm
from gemmlab.simt import cuda
from gemmlab.tiling import WARP, Tiling

CLUSTER = 2  # blocks, one below the other in C
WIDTHS = tuple(n for n in tma_tiles.WIDTHS if n % (CLUSTER * tma_tiles.BLOCK) == 0)


def build(
    tiling: Tiling, layout: str = "nt", aligned: bool = True, paired: bool = True,
    dtype: str = "float16", out_dtype: str = "float32", boxed: bool = True,
) -> Callable:  # fmt: skip
    """Return the kernel, a function of (alpha, map of A, map of B, k, beta, map of C, C).

    layout, aligned, paired, dtype, out_dtype, boxed : as in *tma_stored*
    """
    if not boxed:
        return stored_by_threads(tiling, layout, aligned, paired, dtype, out_dtype)
    BM, BN, BK = tiling.block
    STAGES = tiling.stages
    CONSUMERS = BM // ROWS
    PRODUCER = CONSUMERS * WARPGROUP  # the first thread behind the consumers
    A_BYTES, B_BYTES = BM * ROW, BN * ROW
    TILES = STAGES * (A_BYTES + B_BYTES)
    C_SHAPE, C_ELEMENT = slabs(tiling, out_dtype)
    BARRIERS = TILES + C_ELEMENT(0).itemsize * prod(C_SHAPE)
    HELD = BN // 2  # elements of C that a thread of a consumer accumulates
    A_ALONG, B_ALONG = tma_tiles.along_k(layout)
    A_SHAPE, B_SHAPE = (STAGES, *shape(BM, A_ALONG)), (STAGES, *shape(BN, B_ALONG))
    ELEMENT, NOTHING = float16 if dtype == "float16" else uint16, float32(0)
    PAIR = replace(tiling, block=(CLUSTER * BM, BN, BK))
    wgmma = (WGMMA if dtype == "float16" else WGMMA_BF16)[BN, layout]
    wgmma_wait, multiply = WGMMA_WAIT[BN], tma_tiles.multiplying(wgmma, layout)
    corner, (stage_of, parity_of) = corners(PAIR), tma_tiles.turning(STAGES)
    copy_a = tma_tiles.copying(BM, A_ALONG)
    send_b = tma_tiles.sending(BN, B_ALONG, CLUSTER)
    if out_dtype == "float32":
        store = accumulators.storing(BN, C_SHAPE[1])
    else:
        store = accumulators.storing_halves(BN, C_SHAPE[1], out_dtype)

    def tma_multicast(alpha, A, B, k, beta, D, C):
        As = shared_view(A_SHAPE, ELEMENT, 0)
        Bs = shared_view(B_SHAPE, ELEMENT, STAGES * A_BYTES)
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
        elif thread == PRODUCER:
            fence_tensor_map(A)
            fence_tensor_map(B)
        cluster_sync_relaxed()

        if thread >= PRODUCER:
            setmaxnreg_dec(FEW)
            if thread == PRODUCER:
                for pair in range(first, pairs, clusters):
                    row, col = corner(pair, m, n)
                    row += rank * BM
                    for p in range(0, k, BK):
                        stage = stage_of(step)
                        # What the stage had a turn ago; in the first turn this passes at once.
                        mbarrier_wait(empty, stage, parity_of(step) ^ uint32(1))
                        mbarrier_arrive_expect(full, stage, A_BYTES + B_BYTES)
                        copy_a(As, stage, A, row, p, full)
                        send_b(Bs, stage, B, col, p, full, rank)
                        step += uint32(1)
                for _ in range(STAGES):  # until all have told this block that they have read them
                    mbarrier_wait(empty, stage_of(step), parity_of(step) ^ uint32(1))
                    step += uint32(1)
        else:
            setmaxnreg_inc(MANY)
            acc = cuda.local.array(HELD, float32)
            group = thread // WARPGROUP  # of 64 rows of the tile
            i = rank * BM + thread // WARP * WARP_ROWS  # of the pair, this warp's first row
            peer = thread % WARPGROUP  # the block to which this thread tells what has been read
            if thread % WARP == 0:
                fence_tensor_map(D)
            for pair in range(first, pairs, clusters):
                row, col = corner(pair, m, n)
                for p in range(0, k, BK):
                    stage = stage_of(step)
                    mbarrier_wait(full, stage, parity_of(step))
                    wgmma_fence()
                    multiply(acc, As, Bs, stage, group, p > 0)
                    wgmma_commit()
                    # This product goes on while the one before is complete: its stage is read.
                    wgmma_wait(1, acc)
                    if peer < CLUSTER and p > 0:
                        mbarrier_arrive_remote(empty, stage_of(step - uint32(1)), uint32(peer))
                    step += uint32(1)
                wgmma_wait(0, acc)
                if peer < CLUSTER:
                    mbarrier_arrive_remote(empty, stage_of(step - uint32(1)), uint32(peer))
                if beta == 0:  # asked once: with a constant, nothing of C is looked at
                    store(D, Cs, C, row + i, col, alpha, acc, NOTHING)
                else:
                    store(D, Cs, C, row + i, col, alpha, acc, beta)
            tma_wait_read(0)

    return tma_multicast


def slabs(tiling: Tiling, out_dtype: str) -> tuple[tuple[int, ...], type]:
    """Return the shape of C's slabs in shared memory, and what they consist of."""
    if out_dtype == "float32":
        return accumulators.slabs(tiling, room(tiling)), float32
    element = float16 if out_dtype == "float16" else uint16
    return accumulators.half_slabs(tiling, room(tiling)), element


def variant(problem: Gemm, capability: tuple[int, int] | None) -> Mapping[str, Any]:
    """Keyword arguments of `build` for a problem."""
    found = of_operands(problem, capability)
    size = number_format(problem.out_dtype).bytes
    return {**found, "boxed": problem.n * size % STEP == 0 and found["aligned"]}


def operands(problem: Gemm, tiling: Tiling, A: Any, B: Any) -> tuple:
    """Return the arguments in place of A and B: maps, of B for the part that a block sends."""
    blocks = CLUSTER if variant(problem, None)["boxed"] else 1
    return tma_tiles.tensor_maps(problem, tiling, A, B, blocks)


def configure(problem: Gemm, tiling: Tiling) -> tuple[Dim, Dim]:
    """Return (grid, block): a cluster for each pair of tiles, one below the other."""
    across, down = tiling.grid(problem)
    return (CLUSTER * across * -(-down // CLUSTER), 1), (threads(tiling), 1)


def result(problem: Gemm, tiling: Tiling, C: Any) -> tuple:
    """Return the arguments in place of C: its tensor map, if the TMA stores it, and C itself."""
    boxed = variant(problem, None)["boxed"]
    return (tensor_map(C, WARP_ROWS), C) if boxed else (C,)


def shared_bytes(problem: Gemm, tiling: Tiling) -> int:
    """Shared memory of a block [B]: the ring, and slabs of C."""
    shape_of, element = slabs(tiling, problem.out_dtype)
    return tma_tiles.ring_bytes(tiling) + element(0).itemsize * prod(shape_of)


def work(problem: Gemm, tiling: Tiling) -> traffic.Work:
    """Return the work of *tma_stored* on whole pairs of tiles, to which B comes once from L2."""
    if not variant(problem, None)["boxed"]:
        return work_by_threads(problem, tiling)
    (bm, bn, _), (across, down) = tiling.block, tiling.grid(problem)
    pairs = -(-down // CLUSTER)
    m = problem.m if pairs * CLUSTER == down else pairs * CLUSTER * bm
    whole = replace(problem, m=m, beta=0)
    single = problem.out_dtype == "float32"
    stores = accumulators.slab_stores() if single else accumulators.half_slab_stores()
    found = through_slabs(work_by_threads(whole, tiling), whole, tiling, stores)
    shared = across * pairs * tiling.steps(problem) * (CLUSTER - 1) * bn * ROW
    loads = accumulators.update_c(problem, tiling)
    loads -= accumulators.update_c(replace(problem, beta=0), tiling)
    loads.pop("lane_bytes", 0)
    direct = loads.pop("l1_cycles", 0)
    return replace(
        found,
        counters=found.counters + loads - Counter(tensor_copy_bytes=shared),
        l1_wavefronts=found.l1_wavefronts + direct,
        block_counters=Counter(barriers=1),
    )


tma_multicast = replace(
    tma_stored,
    name="tma_multicast",
    idea="two SMs share what they copy",
    build=build,
    configure=configure,
    operands=operands,
    result=result,
    variant=variant,
    work=work,
    shared_bytes=shared_bytes,
    check=partial(check, kernel="tma_multicast", widths=WIDTHS),
    cluster=CLUSTER,
    tilings=(tma_stored.default, Tiling(block=(128, 128, tma_tiles.DEPTH), stages=6)),
)
