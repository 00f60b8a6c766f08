"""Epilogues: what a layer does to its product is done before C is stored, in the same launch.

In a network a bias and an activation follow a product. A launch of its own for them reads C and
writes it again. Here each thread finishes its own sums, which it has in registers; all else is
*tma_multicast*. What β multiplies need not be C: a bias is an array of C's shape all of whose rows
are one row. A gradient passes where the layer's output, in C's place, is positive. Counter to
watch: launches.

C has 16 bits, as A and B have, and the TMA copies rows of all three.
"""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from math import prod
from typing import Any

import numpy as np
from numpy import float16, float32, uint16, uint32, uint64

from gemmlab.formats import from_memory, number_format
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
from gemmlab.instructions.tensor_copies import ROW
from gemmlab.instructions.warpgroup import ROWS, WARPGROUP
from gemmlab.kernels.kernel import Kernel
from gemmlab.kernels.tensor_core.shared import accumulators, tma_tiles
from gemmlab.kernels.tensor_core.shared.accumulators import WARP_ROWS
from gemmlab.kernels.tensor_core.shared.epilogues import (
    ACTIVATIONS,
    TANH_ERROR,
    exact,
    finishing,
)
from gemmlab.kernels.tensor_core.shared.rasterisation import corners
from gemmlab.kernels.tensor_core.shared.tma_tiles import WORD, shape
from gemmlab.kernels.tensor_core.tma_multicast import (
    CLUSTER,
    WIDTHS,
    slabs,
    tma_multicast,
    variant as of_problem,
    work as work_of,
)
from gemmlab.kernels.tensor_core.tma_stored import check
from gemmlab.kernels.tensor_core.warp_specialised import FEW, MANY
from gemmlab.model import traffic, transactions
from gemmlab.problem import Arithmetic, Gemm, Operands
from gemmlab.simt import cuda
from gemmlab.tiling import WARP, Tiling

HALVES = ("float16", "bfloat16")
ONE, NOTHING = float32(1), float32(-0.0)  # x + (−0) is x, so that no addition is left


def build(
    tiling: Tiling, layout: str = "nt", dtype: str = "float16", activation: str = "linear",
    bias: bool = False,
) -> Callable:  # fmt: skip
    """Return the kernel, a function of (alpha, map of A, map of B, k, beta, map of C, C).

    layout, dtype : as in *tma_multicast*; C has the format of A and B
    activation : what is made of αAB and βC, one of `ACTIVATIONS`
    bias : C, the argument, has one row in the place of all; else it is the matrix that is stored
    """
    BM, BN, BK = tiling.block
    STAGES = tiling.stages
    CONSUMERS = BM // ROWS
    PRODUCER = CONSUMERS * WARPGROUP  # the first thread behind the consumers
    A_BYTES, B_BYTES = BM * ROW, BN * ROW
    TILES = STAGES * (A_BYTES + B_BYTES)
    C_SHAPE, C_ELEMENT = slabs(tiling, dtype)
    BARRIERS = TILES + C_ELEMENT(0).itemsize * prod(C_SHAPE)
    HELD = BN // 2  # elements of C that a thread of a consumer accumulates
    A_ALONG, B_ALONG = tma_tiles.along_k(layout)
    A_SHAPE, B_SHAPE = (STAGES, *shape(BM, A_ALONG)), (STAGES, *shape(BN, B_ALONG))
    ELEMENT = float16 if dtype == "float16" else uint16
    PAIR = replace(tiling, block=(CLUSTER * BM, BN, BK))
    wgmma = (WGMMA if dtype == "float16" else WGMMA_BF16)[BN, layout]
    wgmma_wait, multiply = WGMMA_WAIT[BN], tma_tiles.multiplying(wgmma, layout)
    corner, (stage_of, parity_of) = corners(PAIR), tma_tiles.turning(STAGES)
    copy_a = tma_tiles.copying(BM, A_ALONG)
    send_b = tma_tiles.sending(BN, B_ALONG, CLUSTER)
    finish = finishing(BN, dtype, activation, bias)
    store = accumulators.storing_halves(BN, C_SHAPE[1], dtype)

    def tma_epilogue(alpha, A, B, k, beta, D, C):
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
            lane = thread % WARP
            peer = thread % WARPGROUP  # the block to which this thread tells what has been read
            if lane == 0:
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
                finish(C, row + i + lane // 4, col + lane % 4 * 2, alpha, acc, beta)
                store(D, Cs, C, row + i, col, ONE, acc, NOTHING)
            tma_wait_read(0)

    return tma_epilogue


def variant(problem: Gemm, capability: tuple[int, int] | None) -> Mapping[str, Any]:
    """Return keyword arguments of `build`; ValueError for rows that the TMA cannot copy."""
    found = of_problem(problem, capability)
    if not found["boxed"]:
        raise ValueError(
            f"{problem}: an epilogue needs rows of A, B and C of multiples of 16 bytes; use "
            "tma_multicast, and a launch for what follows it"
        )
    return {name: found[name] for name in ("layout", "dtype")}


def work(problem: Gemm, tiling: Tiling, bias: bool = False) -> traffic.Work:
    """Return the work of *tma_multicast*; bias : it is loaded, and not C."""
    found = work_of(replace(problem, beta=0) if bias else problem, tiling)
    if not bias:
        return found
    loads = loads_of_row(problem, tiling)
    direct = loads.pop("l1_cycles")
    return replace(
        found, counters=found.counters + loads, l1_wavefronts=found.l1_wavefronts + direct
    )


def loads_of_row(problem: Gemm, tiling: Tiling) -> Counter[str]:
    """Return loads of a row for whole pairs of tiles, two neighbours a lane.

    Lanes of a warp have eight columns, 16 bytes, and load them once for two times eight rows.
    """
    (bm, bn, _), (across, down) = tiling.block, tiling.grid(problem)
    times = -(-down // CLUSTER) * CLUSTER * bm // WARP_ROWS * (across * bn // 8)
    width = 2 * number_format(problem.dtype).bytes
    address, on = np.arange(WARP)[None] % 4 * width, np.full((1, WARP), True)
    return Counter(
        global_load_requests=times,
        global_load_bytes=times * WARP * width,
        global_load_sectors=times * int(transactions.sectors(address, on).sum()),
        l1_cycles=times * int(transactions.l1_cycles(address, on, width).sum()),
    )


def with_epilogue(activation: str, bias: Any = None) -> Kernel:
    """Return the rung with an activation, one of `ACTIVATIONS`; ValueError for another.

    bias : an array of C's shape all of whose rows are one, which β multiplies in the place of C; β
        is not 0. A view with a stride of 0 takes no memory, such as np.broadcast_to(b, (m, n))
    """
    if activation not in ACTIVATIONS:
        raise ValueError(
            f"activation={activation!r} is not known; use one of {', '.join(ACTIVATIONS)}"
        )
    ours = {"activation": activation, "bias": bias is not None}

    def variant_of(problem: Gemm, capability: tuple[int, int] | None) -> Mapping[str, Any]:
        if bias is not None and problem.beta == 0:
            raise ValueError(f"{problem} has beta=0; use beta=1, by which the bias is multiplied")
        return {**variant(problem, capability), **ours}

    def result(problem: Gemm, tiling: Tiling, C: Any) -> tuple:
        return tensor_map(C, WARP_ROWS), C if bias is None else bias

    return replace(
        tma_epilogue,
        name=f"tma_epilogue_{activation}",
        variant=variant_of,
        result=result,
        work=partial(work, bias=bias is not None),
    )


def errors(
    problem: Gemm, operands: Operands, activation: str, result: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return how far C is from what is right, and how far right arithmetic may be, (m, n) each.

    operands : what β multiplies is C. No activation here is steeper than gelu, at most 1.13
    """
    a, b, c = problem.values(operands)
    alpha, beta = map(float, problem.scalars())
    product, added = alpha * (a @ b), beta * c if beta else np.zeros(c.shape)
    right = exact(activation, product, added)
    summed = replace(problem, out_dtype="float32").tolerance
    most = 1.13 * summed * (abs(alpha) * (abs(a) @ abs(b)) + abs(added))
    if activation == "gelu":
        most += TANH_ERROR * abs(product + added) / 2
    form = number_format(problem.out_dtype)
    most += form.unit_roundoff * (abs(right) + most) + form.smallest
    return abs(from_memory(result, problem.out_dtype).astype(np.float64) - right), most


tma_epilogue = replace(
    tma_multicast,
    name="tma_epilogue",
    idea="what follows a product is done before it is stored",
    build=build,
    variant=variant,
    work=work,
    arithmetic=tuple(Arithmetic(half, "float32", half) for half in HALVES),
    check=partial(check, kernel="tma_epilogue", widths=WIDTHS),
)
