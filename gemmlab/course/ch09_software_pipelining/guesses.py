"""Answers to the questions of chapter 09, software pipelining."""

from dataclasses import replace
from math import ceil

from gemmlab import Gemm, Tiling, device, kernels, predict
from gemmlab.course.guesses import Answer
from gemmlab.instructions.warpgroup import WARPGROUP
from gemmlab.measure import records
from gemmlab.model.pipeline import Pipeline, Step, stages_needed, step

_GPU = device("h200")
_BIG = Gemm(4096, 4096, 4096)
_HALF = Gemm(4096, 4096, 4096, dtype="float16", out_dtype="float32")
_SQUARE = Tiling((128, 128, 16), warp=(64, 32), thread=(8, 8))
_PRODUCER = 56  # registers of a thread of the warpgroup that copies
_UNIT = 8  # registers, of which those of a thread are a multiple


def _step() -> Step:
    return step(kernels.mma_swizzled, _GPU, like=_HALF)


def blocks() -> Answer:
    """How many blocks does an SM need, so that others' products hide a block's copy?"""
    one = _step()
    others = stages_needed(one.idle, one.multiply) - 1
    return Answer(
        others + 1,
        f"A copy takes as long as {one.idle / one.multiply:.2g} products. {others} other blocks "
        "have to multiply meanwhile, one tile each.",
        {
            others: "So many *other* blocks have to multiply while one waits.",
            2: "While one waits the other multiplies, but a product is much shorter than a copy.",
            1: "A block alone waits for its own copies.",
        },
    )


def barriers() -> Answer:
    """How many barriers does a step need with two pairs of tiles?"""
    short, long = Gemm(256, 256, 1024), Gemm(256, 256, 2048)
    tiling = kernels.pipelined.default
    across, down = tiling.grid(short)
    passed = [predict(q, _GPU, kernels.pipelined).counters["barriers"] for q in (short, long)]
    steps = tiling.steps(long) - tiling.steps(short)
    return Answer(
        (passed[1] - passed[0]) / (across * down * steps),
        "It says that the next tile is complete. The tile that is being filled is one that "
        "everybody left before the last barrier, so nobody has to be asked again.",
        {
            2: "Chapter 4's second barrier kept fast threads from overwriting what slow ones read. "
            "Here they write to the other tile.",
            0: "What *other* threads have stored can be read only after a barrier.",
        },
    )


def three() -> Answer:
    """How long is a step with three stages [cycle]?"""
    one = _step()
    loop = Pipeline(100, 3, one.idle, one.multiply)
    return Answer(
        loop.period,
        f"Two tiles are under way and share the time of one copy: {loop.copy:.0f} / 2. The product "
        "is shorter than that.",
        {
            loop.multiply: "Then nobody would wait. But two products take less than a copy.",
            loop.copy: "Two copies are under way now, not one: two tiles arrive in that time.",
            loop.copy / 3: "One of the three tiles is being multiplied: two are under way. And no "
            "step is shorter than its product.",
            loop.copy - loop.multiply: "That is what a step waits with two stages.",
        },
        within=0.03,
    )


def short() -> Answer:
    """For what percentage of a loop of 8 steps do the Tensor Cores wait, with 4 stages?"""
    one = _step()
    loop = Pipeline(8, 4, one.idle, one.multiply)
    share = 100 * (1 - loop.steps * loop.multiply / loop.cycles)
    return Answer(
        share,
        f"Nothing hides the first copy: {loop.copy:,.0f} of {loop.cycles:,.0f} cycles.",
        {
            0: "In the steady state nobody waits. But the first tile has to come first.",
            100 * one.idle_share: "That is without a pipeline.",
            100 * loop.copy / (loop.steps * loop.multiply): "That is waiting divided by "
            "multiplying; the loop has both.",
        },
        within=0.05,
    )


def gain() -> Answer:
    """By how many percent is *pipelined* faster than *warp_tiled* on 128×128, recorded at 4096?"""
    before = records.find(kernels.warp_tiled, _BIG, _SQUARE)
    after = records.find(kernels.pipelined, _BIG, replace(_SQUARE, block=(128, 128, 8), stages=3))
    blocks, idle = before.resources["blocks_per_sm"], step(kernels.warp_tiled, _GPU).idle_share
    return Answer(
        round(100 * (before.seconds / after.seconds - 1)),
        f"{blocks} blocks of *warp_tiled* share an SM, and often one multiplies while the other "
        "waits. The ring makes sure of it.",
        {
            round(100 / (1 - idle) - 100): "That is for a block that has an SM to itself. Two "
            "share it, and one can multiply while the other waits.",
            33: "That is the ladder's number. There *pipelined* has a tile of 128×256, and its "
            "size gains, too.",
            0: "Two blocks on an SM hide a part of each other's waits, but not all.",
        },
        within=0.15,
    )


def room() -> Answer:
    """How many stages of 128×256×64 FP16 fit into the shared memory of an SM?"""
    bm, bn, bk = kernels.warp_specialised.default.block
    tile = 2 * bk * (bm + bn)
    fit = _GPU.shared_bytes_per_block / tile
    return Answer(
        _GPU.shared_bytes_per_block // tile,
        f"A stage has 64 · (128 + 256) elements of 2 bytes, {tile:,} B, and a block can have "
        f"{_GPU.shared_bytes_per_block:,} B.",
        {
            fit: "Room for a part of a stage is no stage.",
            ceil(fit): "For the last of them there is room for a part alone.",
            _GPU.shared_bytes_per_block // (2 * tile): "That is for FP32; an element has 2 bytes.",
            _GPU.shared_bytes_per_block // (2 * bk * bn): "You counted the tile of B; that of A "
            "needs room, too.",
        },
    )


def copies() -> Answer:
    """How many instructions of warps copy a step's tiles by the TMA?"""
    tiling = kernels.warp_specialised.default
    (bm, bn, bk), piece, warp = tiling.block, 16, _GPU.warp_size
    by_threads = 2 * bk * (bm + bn) // (piece * warp)
    return Answer(
        2,
        "One thread asks for the tile of A and for that of B; the TMA computes the addresses, and "
        f"looks after the edges. By `cp.async` it would be {by_threads}, each with an address for "
        "every lane.",
        {
            by_threads: "That is by `cp.async`, 16 bytes for each lane.",
            1: "A and B are two matrices: two boxes.",
            bm + bn: "That is an instruction for each row; the TMA copies a box.",
        },
    )


def registers() -> Answer:
    """How many registers can each thread of two consumers have beside a producer with 56?"""
    whole = (_GPU.registers_per_sm - WARPGROUP * _PRODUCER) // (2 * WARPGROUP)
    most = whole // _UNIT * _UNIT
    even = _GPU.registers_per_sm // (3 * WARPGROUP) // _UNIT * _UNIT
    return Answer(
        most,
        f"{_GPU.registers_per_sm:,} − 128 · {_PRODUCER} are left for 256 threads: {whole}, and the "
        f"next multiple of {_UNIT} below is {most}. All begin with {even}.",
        {
            even: "With so many all three begin; the producer has given most of its back.",
            _GPU.registers_per_sm // (3 * WARPGROUP): "That is an even share of all three; the "
            "producer has given most of its back.",
            whole: f"Registers come in multiples of {_UNIT}.",
            _GPU.registers_per_sm // (2 * WARPGROUP): "The producer keeps 56 for each of its "
            "threads, and more than 255 no thread can have.",
        },
    )


def multicast() -> Answer:
    """By how many percent are the bytes fewer that a cluster of two blocks asks L2 for?"""
    bm, bn, _ = kernels.tma_multicast.default.block
    alone, pair = 2 * (bm + bn), 2 * bm + bn
    return Answer(
        100 * (1 - pair / alone),
        f"Of k = 1 the two ask for 2 · ({bm} + {bn}) = {alone} elements alone, and as a cluster "
        f"for 2 · {bm} + {bn} = {pair}: B comes once, A is each one's own.",
        {
            50: "Half of all would be less; but the rows of A are each block's own.",
            100 * pair / alone: "That is what is left.",
            100 * bm / alone: "That is one of the two tiles of A; it is B that comes once.",
        },
        within=0.05,
    )
