"""Answers to the questions of chapter 08, a product on Tensor Cores."""

from dataclasses import replace

import numpy as np

from gemmlab import kernels
from gemmlab.course.guesses import Answer
from gemmlab.device import device
from gemmlab.formats import number_format
from gemmlab.instructions import layout
from gemmlab.measure import records
from gemmlab.model import transactions
from gemmlab.problem import Gemm

M, N, K = 16, 8, 16  # of `mma.m16n8k16`
FLOP = 2 * M * N * K
BYTES = 2  # of an element
BIG = Gemm(4096, 4096, 4096, dtype="float16", out_dtype="float32")


def fed() -> Answer:
    """Cycles of an H200's shared memory for A and B of one `mma.m16n8k16`."""
    gpu = device("h200")
    a, b, c = 2 * M * K, 2 * K * N, 4 * M * N
    per_cycle = gpu.shared_bytes_per_cycle_per_sm
    share = (FLOP / gpu.flop_per_cycle_per_sm["float16"]) / ((a + b) / per_cycle)
    return Answer(
        (a + b) / per_cycle,
        f"A has {a} bytes and B {b}: {a + b} bytes at {per_cycle} in a cycle. Shared memory alone "
        f"would hold the Tensor Cores to {share * gpu.peak_of('float16') / 1e12:.0f} TFLOP/s.",
        {
            a / per_cycle: "You counted A alone.",
            (a + b + c) / per_cycle: "You counted C, which stays in registers.",
            (a + b + 2 * c) / per_cycle: "You counted C and D, which stay in registers.",
            2 * (a + b) / per_cycle: "You took four bytes for an element; float16 has two.",
            1: "You let shared memory keep up; it does not.",
        },
    )


def _sectors(operand: str, row: int) -> int:
    """Sectors of one element of a fragment in each lane, from rows of `row` bytes."""
    i, j = layout("m16n8k16", operand).element(np.arange(32), 0)
    return int(transactions.sectors(i * row + BYTES * j, np.ones(32, bool)))


def sectors() -> Answer:
    """Sectors of the load of A's first elements by a warp, from a row-major matrix."""
    found, of_b = _sectors("A", BYTES * BIG.k), _sectors("B", BYTES * BIG.n)
    return Answer(
        found,
        f"The lanes' first elements lie in {found} rows, four in each. They use "
        f"{32 * BYTES} of the {32 * found} bytes that are moved.",
        {
            32 * BYTES // 32: "You let the lanes load neighbours; four of them share a row.",
            of_b: "That is a load of B, whose eight columns are neighbours in a row.",
            2 * found: "You counted all rows of the fragment; this load has its upper half, rows "
            "0 to 7.",
            32: "You counted lanes; four lanes of a row share a sector.",
            1: "You counted the request; it asks for several sectors.",
        },
    )


def _reused(wm: int, wn: int) -> float:
    """Wavefronts of shared loads for each `mma` of a warp tile."""
    matrices = (wm + wn) / 8 * K / 8
    return matrices / (wm * wn / (M * N))


def reused() -> Answer:
    """Wavefronts of shared loads for each `mma` of a warp tile of 64×64."""
    return Answer(
        _reused(64, 64),
        "Twice the sides are twice the fragments, and four times the products: half as many "
        "wavefronts for each.",
        {
            _reused(32, 32): "You kept those of 32×32; each fragment now serves twice as many.",
            _reused(32, 32) / 4: "You divided by the area; there are twice as many fragments, too.",
            _reused(32, 64): "That is 32×64, where one side is doubled.",
            _reused(M, N): "That is a single mma, which shares nothing.",
        },
    )


def _of_x4(length: int) -> int:
    """Wavefronts of an `ldmatrix.x4` from rows of `length` elements, one below the other."""
    words = (np.arange(8)[:, None] * length * BYTES + 4 * np.arange(4)) // 4
    return 4 * int(np.bincount(words.ravel() % 32).max())


def conflicts() -> Answer:
    """Wavefronts of one `ldmatrix.x4` where the rows of the tile have 64 elements."""
    return Answer(
        _of_x4(64),
        "Rows of 128 bytes fill all banks, so the next row begins in bank 0 again: the eight rows "
        "of each matrix lie in the same four banks, and are read one by one.",
        {
            4: "That is without a conflict, one for each matrix.",
            _of_x4(16): "That is chapter 7's tile, with rows of 32 bytes, or one of four matrices.",
            _of_x4(32): "You let four rows of a matrix meet; with rows of 128 bytes all eight do.",
            1: "You let a wavefront bring 512 bytes; it brings 128.",
        },
    )


def faster() -> Answer:
    """How often *mma_swizzled* multiplies while *mma_shared* does once, recorded at 4096."""
    rungs = kernels.mma_shared, kernels.mma_swizzled
    shared, swizzled = (records.find(kernel, BIG).seconds for kernel in rungs)
    before, after = (kernel.work(BIG, kernel.default) for kernel in rungs)
    fewer, bound = (
        before.counters["shared_load_wavefronts"] / after.counters["shared_load_wavefronts"],
        before.l1_wavefronts / after.l1_wavefronts,
    )
    return Answer(
        shared / swizzled,
        f"Loads of fragments take {fewer:.1f} times fewer wavefronts. But the pipe also passes the "
        f"copies, which have not changed, so its time falls {bound:.1f} times. And neither kernel "
        "keeps the pipe busy all the time.",
        {
            8: "You took the loads of rows of 64 elements for all; A's rows have 32 here.",
            fewer: "You counted the loads of fragments alone; the pipe has other work as well.",
            bound: "That is what the bounds gain, and neither kernel reaches its own.",
            1: "You expected conflicts to cost nothing; they keep the pipe busy.",
        },
        within=0.1,
    )


def copies() -> Answer:
    """Share of the pipe's cycles that *mma_swizzled* does not spend on loads of fragments [%]."""
    work, products = kernels.mma_swizzled.work(BIG, kernels.mma_swizzled.default), BIG.flops / FLOP
    fragments = work.counters["shared_load_wavefronts"]
    stores, every = work.counters["shared_store_wavefronts"], work.l1_wavefronts
    return Answer(
        100 * (1 - fragments / every),
        f"For each mma the pipe passes {every / products:.2g} wavefronts, of which "
        f"{fragments / products:.2g} bring fragments. The others bring the tiles in, store them to "
        "shared memory, and update C.",
        {
            100 * stores / every: "You counted the stores to shared memory; what they store came "
            "from global memory through the same pipe.",
            100 * (every - stores - fragments) / every: "You counted the loads from global memory; "
            "the threads store what they have loaded through the same pipe.",
            0: "You left out how the tiles get into shared memory.",
        },
        within=0.1,
    )


def deeper() -> Answer:
    """How often *mma_swizzled* multiplies with steps of 64 along k while it does once with 32."""
    own = kernels.mma_swizzled.default
    longer = replace(own, block=(*own.block[:2], 64))
    short, long = (records.find(kernels.mma_swizzled, BIG, t) for t in (own, longer))
    bounds = [kernels.mma_swizzled.work(BIG, t).l1_wavefronts for t in (own, longer)]
    registers, threads = long.resources["registers"], long.resources["threads"]
    return Answer(
        short.seconds / long.seconds,
        f"With steps of 64 a lane needs {registers} registers in place of "
        f"{short.resources['registers']}, and an SM has {device('h200').registers_per_sm:,}: two "
        f"blocks of {threads} threads no longer fit. One block is left, and while its warps wait "
        "nobody multiplies.",
        {
            bounds[0]
            / bounds[1]: "That is the bound, or close to it; the longer step takes registers, too.",
            2: "Half as many steps are not half as much work: each multiplies twice as much.",
        },
        within=0.1,
    )


def coarser() -> Answer:
    """How many times as large C's error is in bfloat16 as in float16."""
    errors = [number_format(name).unit_roundoff for name in ("bfloat16", "float16")]
    return Answer(
        errors[0] / errors[1],
        f"bfloat16 keeps 8 significant bits and float16 11: rounding changes a number by up to "
        f"{errors[0]:.2g} and {errors[1]:.2g} of it. The largest of many errors is not always at "
        "its bound: here one was nine times the other.",
        {
            1: "Both have 16 bits, but bfloat16 spends three more of them on the exponent.",
            3: "That is the number of bits; each of them is a factor of 2.",
            16: "You counted a bit too many: 8 significant bits and 11.",
            2**16: "You compared with float32.",
        },
        within=0.25,
    )
