"""Answers to the questions of chapter 07, warps and fragments."""

import numpy as np

from gemmlab.course.guesses import Answer
from gemmlab.device import device
from gemmlab.instructions import layout
from gemmlab.measure.benchmarks import fragment_uses
from gemmlab.numerics import mma

M, N, K = 16, 8, 16  # of `mma.m16n8k16`


def registers() -> Answer:
    """32-bit registers of a lane that hold its part of A, of float16."""
    elements = layout("m16n8k16", "A").registers
    return Answer(
        elements // 2,
        f"A has {M * K} elements, {elements} for each of 32 lanes; two float16 share a register.",
        {
            elements: "You counted elements; two float16 fit into 32 bits.",
            M * K // 2: "You counted the registers of the whole warp.",
            2: "That is B, which is half as large.",
        },
    )


def fmas() -> Answer:
    """FMAs of one `mma.m16n8k16`."""
    return Answer(
        M * N * K,
        f"C has {M}·{N} = {M * N} elements, and each is a sum of {K} products.",
        {
            2 * M * N * K: "You counted operations; an FMA is a multiplication and an addition.",
            M * N: "You counted the elements of C; each takes a row of A and a column of B.",
            M * K: "You counted the elements of A; each of them is used for all columns of B.",
            32: "That is an ordinary FMA of a warp, one for each lane.",
        },
    )


def rows() -> Answer:
    """Rows of A that lane 0 holds elements of after `wmma.load` on an H200."""
    held = layout("wmma.m16n16k16", "A", arch="sm_90", major="row").table[0]
    distinct = {tuple(place) for place in held.tolist()}
    return Answer(
        len({i for i, _ in distinct}),
        f"Lane 0 holds {len(distinct)} different elements: pairs of neighbours in rows 0 and 8, "
        "beginning in columns 0 and 8.",
        {
            1: "You gave the lane a piece of one row; four lanes share a row.",
            8: "You dealt elements 0, 32, 64, … as a coalesced load does.",
            4: "You gave the lane a compact block; its elements lie in four separate places.",
            16: "You gave the lane a column; it has only eight different elements.",
        },
    )


def v100() -> Answer:
    """Lanes that hold the same elements of A in the same registers on a V100 and on an H200."""
    old, new = (
        layout("wmma.m16n16k16", "A", arch=arch, major="row").table for arch in ("sm_70", "sm_90")
    )
    same = int((old == new).all(axis=(1, 2)).sum())
    return Answer(
        same,
        "The rule of an H200 fails for every lane: a lane of a V100 holds a whole row.",
        {
            32: "The instruction has one name, but each generation may have its own mapping.",
            16: "The elements are there twice on both, but not in the same lanes.",
        },
    )


def pairs() -> Answer:
    """Rows by which the two elements of a register of B differ."""
    b = layout("m16n8k16", "B")
    (i0, _), (i1, _) = b.element(0, 0), b.element(0, 1)
    (below, _) = b.element(0, 2)
    return Answer(
        i1 - i0,
        "The two lie in one column of B, one below the other. Pairs of A lie in a row: both run "
        "along $k$, so that a register of A meets a register of B.",
        {
            0: "You laid the pair into a row, as in A; B deals columns.",
            below - i0: "That is the step to the lane's other register.",
            2: "That is the step from one lane to the next.",
        },
    )


def different() -> Answer:
    """Elements of C, of 128, that differ from the float64 product rounded once, for k = 256."""
    k = 256
    rng = np.random.default_rng(1)
    a, b = (rng.standard_normal(shape).astype(np.float16) for shape in ((M, k), (k, N)))
    chain = np.zeros((M, N), np.float32)
    for p in range(0, k, K):
        chain = mma(a[:, p : p + K], b[p : p + K], chain, "m16n8k16.f32.f16", "sm_90")
    exact = (a.astype(np.float64) @ b.astype(np.float64)).astype(np.float32)
    return Answer(
        int((chain != exact).sum()),
        f"Each of the {k // K} steps cuts bits off, and the reference rounds once. The difference "
        "is in the last bits only.",
        {
            0: "The products are exact, but their sums lose bits in every step.",
            M * N: "Some agree by chance.",
            M * N // 2: "Cutting is not a coin toss: it happens in every step.",
        },
        within=0.05,
    )


def requests() -> Answer:
    """Shared-memory requests of a warp that loads one fragment of A element by element."""
    elements = layout("m16n8k16", "A").registers
    return Answer(
        elements,
        "Each of the four registers takes two elements, and each element is a load of its own, "
        "executed once for all lanes.",
        {
            elements // 2: "You counted registers; `pack_f16x2` needs two elements for each.",
            M * K: "You counted elements; one request loads an element for each of 32 lanes.",
            1: "That would be one instruction for the whole fragment; that is `ldmatrix`.",
        },
    )


def _wavefronts(pitch: int) -> int:
    """Wavefronts of an `ldmatrix.x4` of a tile with `pitch` elements from row to row."""
    words = (np.arange(8)[:, None] * pitch * 2 + 4 * np.arange(4)) // 4
    return 4 * int(np.bincount(words.ravel() % 32).max())


def wavefronts() -> Answer:
    """Wavefronts of one `ldmatrix.x4` where the rows of the tile have 32 bytes."""
    return Answer(
        _wavefronts(16),
        "Rows begin 32 bytes apart, so rows 0 and 4 of an 8×8 matrix begin in the same bank: each "
        "of the four matrices takes two wavefronts.",
        {
            _wavefronts(
                24
            ): "That is without a conflict: 128 bytes, one matrix, in each wavefront.",
            1: "The four matrices have 512 bytes, and a wavefront delivers at most 128.",
            16: "You let four rows of a matrix meet; only rows four apart share banks.",
            32: "You let all eight rows of a matrix meet; only rows four apart share banks.",
        },
    )


def gain() -> Answer:
    """How often the prefix sums in registers run while the better baseline runs once."""
    rows = [u for u in fragment_uses("h200").rows if (u.name, u.m) == ("prefix sum", 16)]
    speedup = {u.batch: u.speedup("shared") for u in rows}
    most, hook = max(speedup), 16384
    last = next(u for u in rows if u.batch == most)
    rate = last.bytes / last.seconds["registers"][1] / device("h200").dram_bandwidth
    return Answer(
        speedup[most],
        f"{most:,} matrices do not fit into L2, and both kernels move them at "
        f"{rate:.0%} of what DRAM can deliver. Nothing is left to gain.",
        {
            speedup[hook]: f"You carried the gain over from {hook:,} matrices, which fit into L2.",
            2: "You expected more from more work; here the time goes into moving the matrices.",
        },
        within=0.03,
    )
