"""Split-K in a cluster: two SMs have the same tile of C and half of k each, and add up on the way.

In *wgmma_split_k* parts of k go through a workspace in global memory, and a second launch adds them
up. Here the two blocks that divide k are a cluster. Each sends its sums for half of the tile's
columns to the other one's shared memory, straight from registers: `st.async` stores 16 bytes there
and tells an mbarrier of that block. It adds what comes to its own sums, in its own registers, since
the thread that has the same place in the tile has sent them; and it updates its half of C. There is
one launch and no workspace, and a sum has two parts, whose order does not matter. A block has one
tile, down to 64×64 for a small C. Counter to watch: bytes stored in the cluster.

Registers are dealt out anew even where there are enough: behind `setmaxnreg` the compiler knows
that all threads of a warp go one way, and the loop is half as long again without it.

Where the TMA cannot copy rows, which have to begin at multiples of 16 bytes, a warpgroup carries
the tiles, as in *warp_specialised*.
"""

from collections import Counter
from collections.abc import Callable
from dataclasses import replace

from numpy import float16, float32, int32, uint16, uint32, uint64

from gemmlab import Device, device as load_device
from gemmlab.instructions import (
    WGMMA,
    WGMMA_BF16,
    WGMMA_WAIT,
    cluster_sync_relaxed,
    fence_mbarrier_init,
    fence_proxy_async,
    fence_tensor_map,
    load_v4,
    mbarrier_arrive,
    mbarrier_arrive_expect,
    mbarrier_init,
    mbarrier_wait,
    setmaxnreg_dec,
    setmaxnreg_inc,
    shared_view,
    store_async_v4,
    wgmma_commit,
    wgmma_fence,
)
from gemmlab.instructions.tensor_copies import ROW
from gemmlab.instructions.warpgroup import ROWS, WARPGROUP
from gemmlab.kernels.kernel import FLOAT, Dim, check_fit, on_device
from gemmlab.kernels.split_k.wgmma_split_k import CARRYING
from gemmlab.kernels.tensor_core.shared import tma_tiles
from gemmlab.kernels.tensor_core.shared.accumulators import update_c, updating
from gemmlab.kernels.tensor_core.shared.shared_layouts import are_aligned
from gemmlab.kernels.tensor_core.shared.tma_tiles import DEPTH, WORD, carried, shape
from gemmlab.kernels.tensor_core.warp_specialised import (
    FEW,
    MANY,
    threads,
    warp_specialised,
)
from gemmlab.model import predict, traffic
from gemmlab.problem import Gemm
from gemmlab.simt import cuda
from gemmlab.tiling import WARP, Tiling

CLUSTER = 2  # blocks that divide k
ALONE = 248  # registers of a thread of 256, with which one of a single consumer stays
QUAD = 4  # sums of eight columns that a thread has, and sends at once


def build(
    tiling: Tiling, layout: str = "nt", aligned: bool = True, paired: bool = True,
    dtype: str = "float16", out_dtype: str = "float32",
) -> Callable:  # fmt: skip
    """Return the kernel, a function of (alpha, map of A, map of B, k, beta, C).

    layout, aligned, paired, dtype, out_dtype : as in *warp_specialised*
    """
    BM, BN, BK = tiling.block
    STAGES = tiling.stages
    CONSUMERS = BM // ROWS
    PRODUCER = CONSUMERS * WARPGROUP  # the first thread behind the consumers
    A_BYTES, B_BYTES = BM * ROW, BN * ROW
    RING = STAGES * (A_BYTES + B_BYTES)
    MINE = BN // CLUSTER  # columns that a block updates
    HELD, KEPT = BN // 2, MINE // 2  # sums that a thread accumulates, and those in these columns
    SENT = sent_bytes(tiling)
    BARRIERS = RING + SENT
    A_ALONG, B_ALONG = tma_tiles.along_k(layout)
    A_SHAPE, B_SHAPE = (STAGES, *shape(BM, A_ALONG)), (STAGES, *shape(BN, B_ALONG))
    SUMS = KEPT // QUAD, PRODUCER, QUAD
    ELEMENT = float16 if dtype == "float16" else uint16
    wgmma = (WGMMA if dtype == "float16" else WGMMA_BF16)[BN, layout]
    wgmma_wait, multiply = WGMMA_WAIT[BN], tma_tiles.multiplying(wgmma, layout)
    stage_of, parity_of = tma_tiles.turning(STAGES)
    copy_a, copy_b = tma_tiles.copying(BM, A_ALONG), tma_tiles.copying(BN, B_ALONG)
    carry_a = tma_tiles.carrying(BM, A_ALONG, WARPGROUP, PRODUCER, False, dtype)
    carry_b = tma_tiles.carrying(BN, B_ALONG, WARPGROUP, PRODUCER, False, dtype)
    BRINGERS = 1 if aligned else WARPGROUP
    OF_PRODUCER, OF_TWO = (FEW, MANY) if aligned else CARRYING
    OF_CONSUMERS = OF_TWO if CONSUMERS == 2 else ALONE
    keep_left, send_right = keeping(0, MINE), sending(MINE, MINE)
    keep_right, send_left = keeping(MINE, MINE), sending(0, MINE)
    add, update = adding(MINE), updating(MINE, out_dtype, paired)

    @on_device
    def copy(As, Bs, stage, A, B, row, col, p, full):
        """Let the TMA copy the tiles of a stage; `full` counts their bytes."""
        mbarrier_arrive_expect(full, stage, A_BYTES + B_BYTES)
        copy_a(As, stage, A, row, p, full)
        copy_b(Bs, stage, B, col, p, full)

    @on_device
    def carry(As, Bs, stage, A, B, row, col, p, full):
        """Carry this thread's part of them; `full` counts the threads."""
        carry_a(As, stage, A, row, p)
        carry_b(Bs, stage, B, col, p)
        fence_proxy_async()
        mbarrier_arrive(full, stage)

    bring = copy if aligned else carry

    # What a block begins with is waited for once a launch: divisions are of 32 bits.
    @on_device
    def share(block, n, k):
        """The rank of a block, where its tile begins in C, and where its part of k does and ends.

        Parts have as many steps: in the last one of the second, all may lie beyond k.
        """
        rank, tile = uint32(block % uint32(CLUSTER)), uint32(block // uint32(CLUSTER))
        across = uint32(uint32(n + uint32(BN - 1)) // uint32(BN))
        row, col = int32(tile // across * BM), int32(tile % across * BN)
        each = uint32(uint32(k + uint32(CLUSTER * BK - 1)) // uint32(CLUSTER * BK) * uint32(BK))
        begin = int32(rank * each)
        return rank, row, col, begin, begin + int32(each)

    def cluster_split_k(alpha, A, B, k, beta, C):
        As = shared_view(A_SHAPE, ELEMENT, 0)
        Bs = shared_view(B_SHAPE, ELEMENT, STAGES * A_BYTES)
        Sums = shared_view(SUMS, float32, RING)  # of the other block
        full = shared_view((STAGES,), uint64, BARRIERS)
        empty = shared_view((STAGES,), uint64, BARRIERS + STAGES * WORD)
        come = shared_view((1,), uint64, BARRIERS + 2 * STAGES * WORD)
        thread = cuda.threadIdx.x
        rank, row, col, begin, end = share(uint32(cuda.blockIdx.x), uint32(C.shape[1]), uint32(k))
        step = uint32(0)  # along k, in this block's part

        if thread == 0:
            for stage in range(STAGES):
                mbarrier_init(full, stage, BRINGERS)
                mbarrier_init(empty, stage, CONSUMERS)
            mbarrier_init(come, 0, 1)
            fence_mbarrier_init()
            mbarrier_arrive_expect(come, 0, SENT)
        elif aligned and thread == PRODUCER:
            fence_tensor_map(A)
            fence_tensor_map(B)
        cluster_sync_relaxed()  # each block knows that the other one's mbarriers are made

        if thread >= PRODUCER:
            setmaxnreg_dec(OF_PRODUCER)
            if thread < PRODUCER + BRINGERS:
                for p in range(begin, end, BK):
                    stage = stage_of(step)
                    # What the stage had a turn ago; in the first turn this passes at once.
                    mbarrier_wait(empty, stage, parity_of(step) ^ uint32(1))
                    bring(As, Bs, stage, A, B, row, col, p, full)
                    step += uint32(1)
        else:
            setmaxnreg_inc(OF_CONSUMERS)
            acc = cuda.local.array(HELD, float32)
            own = cuda.local.array(KEPT, float32)
            group = thread // WARPGROUP  # of 64 rows of the tile
            i = thread // WARP * 16 + thread % WARP // 4  # of the tile, this thread's first element
            j = thread % 4 * 2
            leads = thread % WARPGROUP == 0
            for p in range(begin, end, BK):
                stage = stage_of(step)
                mbarrier_wait(full, stage, parity_of(step))
                wgmma_fence()
                multiply(acc, As, Bs, stage, group, p > begin)
                wgmma_commit()
                # This product goes on while the one before is complete: its stage is read.
                wgmma_wait(1, acc)
                if leads and p > begin:
                    mbarrier_arrive(empty, stage_of(step - uint32(1)))
                step += uint32(1)
            wgmma_wait(0, acc)
            if rank == 0:
                send_right(Sums, thread, come, acc, uint32(1))
                keep_left(own, acc)
            else:
                send_left(Sums, thread, come, acc, uint32(0))
                keep_right(own, acc)
            mbarrier_wait(come, 0, uint32(0))
            add(own, Sums, thread)
            j += int32(rank) * MINE
            if beta == 0:  # asked once: with a constant, nothing of C is looked at
                update(C, row + i, col + j, alpha, own, float32(0))
            else:
                update(C, row + i, col + j, alpha, own, beta)

    return cluster_split_k


def sending(first: int, columns: int) -> Callable:
    """The device function (Sums, thread, come, acc, rank) that sends sums to a block of the
    cluster: those of so many columns, from the first on. There they are those of the same thread.
    """

    @on_device
    def nothing(Sums, thread, come, acc, rank):
        pass

    def sends(quad):
        """Nesting writes out what a loop would index, so that acc stays in registers."""
        others = sends(quad + 1) if (quad + 1) * 2 * QUAD < columns else nothing
        a = first // 2 + QUAD * quad

        @on_device
        def send(Sums, thread, come, acc, rank):
            sums = acc[a], acc[a + 1], acc[a + 2], acc[a + 3]
            store_async_v4(Sums, quad, thread, 0, come, 0, sums, rank)
            others(Sums, thread, come, acc, rank)

        return send

    return sends(0)


def keeping(first: int, columns: int) -> Callable:
    """The device function (own, acc) that takes the sums of so many columns, from the first on."""
    COUNT, FIRST = columns // 2, first // 2

    @on_device
    def nothing(own, acc):
        pass

    def keeps(e):
        others = keeps(e + 1) if e + 1 < COUNT else nothing

        @on_device
        def keep(own, acc):
            own[e] = acc[FIRST + e]
            others(own, acc)

        return keep

    return keeps(0)


def adding(columns: int) -> Callable:
    """Return the device function (own, Sums, thread) that adds what has come for this thread."""

    @on_device
    def nothing(own, Sums, thread):
        pass

    def adds(quad):
        others = adds(quad + 1) if (quad + 1) * 2 * QUAD < columns else nothing
        a = QUAD * quad

        @on_device
        def add(own, Sums, thread):
            sums = load_v4(Sums, quad, thread, 0)
            own[a] += sums[0]
            own[a + 1] += sums[1]
            own[a + 2] += sums[2]
            own[a + 3] += sums[3]
            others(own, Sums, thread)

        return add

    return adds(0)


def sent_bytes(tiling: Tiling) -> int:
    """What a block sends to the other one [B]: its sums of half of the tile."""
    bm, bn, _ = tiling.block
    return bm * bn // CLUSTER * FLOAT


def steps_of(problem: Gemm, tiling: Tiling) -> int:
    """Steps along k that each of the two blocks takes."""
    return -(-tiling.steps(problem) // CLUSTER)


def period(tiling: Tiling) -> int:
    """Steps along k, of both blocks, in which each uses all stages of its ring once."""
    return CLUSTER * tiling.stages


def configure(problem: Gemm, tiling: Tiling) -> tuple[Dim, Dim]:
    """Return (grid, block): a cluster for each tile."""
    across, down = tiling.grid(problem)
    return (CLUSTER * across * down, 1), (threads(tiling), 1)


def shared_bytes(problem: Gemm, tiling: Tiling) -> int:
    """Shared memory of a block [B]: the ring, and what the other block sends, with its mbarrier."""
    return tma_tiles.ring_bytes(tiling) + sent_bytes(tiling) + WORD


def work(problem: Gemm, tiling: Tiling) -> traffic.Work:
    """Return the work of all blocks: each half of a tile's steps, and half of the tile's update."""
    (bm, bn, bk), (across, down) = tiling.block, tiling.grid(problem)
    steps, blocks, warps = steps_of(problem, tiling), CLUSTER * across * down, bm // ROWS * 4
    whole = replace(problem, k=CLUSTER * steps * bk)
    loads, stores = Counter(), []
    brought = Counter(tensor_copy_bytes=blocks * steps * (bm + bn) * ROW)
    if not are_aligned(problem):
        loads, each = carried(problem, tiling, WARPGROUP)
        stores, brought = [(steps, one) for one in each], Counter()
    requests = bn // CLUSTER // (2 * QUAD) * warps
    sums = Counter(shared_load_requests=requests, shared_load_wavefronts=QUAD * requests)
    found = traffic.staged(
        problem, tiling, loads, [*stores, (1, sums)], update_c(problem, tiling), barriers=1,
        round_trips=1, flops={problem.dtype: tiling.padded_flops(whole)}, blocks=blocks,
    )  # fmt: skip
    sent = blocks * sent_bytes(tiling)
    read = blocks * steps * (bm // ROWS) * (ROWS + bn)
    return replace(
        found,
        counters=found.counters + brought + Counter(cluster_store_bytes=sent),
        l1_wavefronts=found.l1_wavefronts + read + (brought["tensor_copy_bytes"] + sent) // ROW,
        chain=(1, 0),
    )


def check(tiling: Tiling) -> None:
    """Raise ValueError for a tiling that consumers, the ring and what is sent cannot have."""
    bm, bn, bk = tiling.block
    most = load_device("h200").shared_bytes_per_block
    fits = bm in (ROWS, 2 * ROWS) and bn in tma_tiles.WIDTHS and bk == DEPTH and tiling.stages >= 2
    check_fit(
        fits and tma_tiles.ring_bytes(tiling) + sent_bytes(tiling) + WORD <= most,
        tiling,
        f"cluster_split_k, which needs blocks of m×n×{DEPTH} with m {ROWS} or {2 * ROWS} and n one "
        f"of {', '.join(map(str, tma_tiles.WIDTHS))}, two stages or more, and at most {most} B of "
        "shared memory for the ring and half of the tile",
        DEFAULT,
    )


def suggest(problem: Gemm, device: Device) -> Tiling:
    """Suggest the tiling that takes least time, as `predict` has it; of several the smallest tile.

    It is the kernel's own where no rate is known, or none fits.
    """
    most = device.shared_bytes_per_block
    fit = [t for t in reversed(TILINGS) if most is None or shared_bytes(problem, t) <= most]
    if problem.accumulate not in device.peak or not fit:
        return DEFAULT

    def seconds(tiling: Tiling) -> float:
        return predict(problem, device, cluster_split_k, tiling).seconds

    return min(fit, key=seconds)


DEFAULT = Tiling(block=(64, 64, DEPTH), stages=6)
TILINGS = (
    Tiling(block=(128, 128, DEPTH), stages=5),
    Tiling(block=(64, 128, DEPTH), stages=8),
    DEFAULT,
)

cluster_split_k = replace(
    warp_specialised,
    name="cluster_split_k",
    idea="two SMs divide k, and one sends sums to the other",
    default=DEFAULT,
    build=build,
    configure=configure,
    persistent=False,
    work=work,
    check=check,
    shared_bytes=shared_bytes,
    tilings=TILINGS,
    period=period,
    suggest=suggest,
    cluster=CLUSTER,
)
