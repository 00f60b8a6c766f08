"""Answers to the questions of chapter 03, threads, warps and blocks."""

import math

import numpy as np

from gemmlab import kernels
from gemmlab.course.guesses import Answer
from gemmlab.device import RECORDED, device
from gemmlab.measure.backends import run
from gemmlab.model import predict, transactions
from gemmlab.problem import Gemm
from gemmlab.tiling import WARP

FLOAT = 4  # bytes
LANE, ALL = np.arange(WARP), np.ones(WARP, bool)


def idle() -> Answer:
    """Threads without an element, for 1000 elements and blocks of 256."""
    size, block = 1000, 256
    blocks = -(-size // block)
    left = size % block
    return Answer(
        blocks * block - size,
        f"Blocks come whole: {blocks} of them hold {blocks * block:,} threads.",
        {
            0: "The grid holds whole blocks only, and 256 does not divide 1000.",
            left: f"That is how many elements {size // block} blocks leave over; "
            "the threads of one more block are to be counted.",
        },
    )


def rows() -> Answer:
    """Rows that one warp of a block of 16×16 threads covers."""
    width = 16
    y = LANE // width
    return Answer(
        len(set(y)),
        f"A warp is {WARP} threads with successive numbers, $x$ first: {width} of them fill a row.",
        {
            1: "That holds for a block as wide as a warp; this one is half as wide.",
            width: "You counted the rows of the block; it has eight warps.",
            WARP: "You counted threads; those side by side share a row.",
        },
    )


def branches() -> Answer:
    """Load requests of two warps whose even lanes take one branch and odd lanes the other."""
    warps, ways = 2, 2
    return Answer(
        warps * ways,
        "Each warp takes both branches, one after the other, and asks once in each.",
        {
            warps: "You let each warp go one way; the lanes of each disagree.",
            1: "A request is made by one warp, and there are two.",
            warps * WARP: "You counted threads; the lanes that agree ask together.",
        },
    )


def offset() -> Answer:
    """Sectors of one request for 32 neighbouring floats that start 4 bytes late."""
    found = int(transactions.sectors(FLOAT * (LANE + 1), ALL))
    return Answer(
        found,
        "The 128 bytes start 4 bytes into one sector, and their last 4 bytes lie in another.",
        {
            found - 1: "128 bytes fill four sectors only if they start where a sector starts.",
            2: "You counted lines of 128 bytes; a line has four sectors.",
            WARP + 1: "You counted elements; eight floats share a sector.",
            WARP: "You counted lanes; lanes in one sector share it.",
        },
    )


def stride() -> Answer:
    """Sectors of one request for every eighth float."""
    found = int(transactions.sectors(FLOAT * 8 * LANE, ALL))
    return Answer(
        found,
        "Eight floats fill a sector, so that each lane has a sector to itself. A longer stride "
        "cannot be worse.",
        {
            4: "That is what 32 neighbours touch; these lie in eight times as many bytes.",
            8: "You counted lines of 128 bytes; a line has four sectors, and each is touched.",
            256: "You counted all elements on the way; only what holds a lane's element moves.",
        },
    )


def column() -> Answer:
    """Sectors of one request for A[i, p] in *naive*, with blocks of 16×16."""
    found = int(transactions.sectors(FLOAT * 64 * (LANE % 16), ALL))
    return Answer(
        found,
        "Lanes 0 to 15 stand in 16 rows of $A$, a whole row apart. Lanes 16 to 31 ask for the same "
        "elements again.",
        {
            WARP: "The second half of the warp stands in the same rows as the first.",
            2: "Two rows is what the warp covers in $y$; here the row is $x$.",
            4: "That is for 32 neighbours; these lie in a column.",
            1: "One for all holds for $B$'s lanes, or where all want the same element.",
        },
    )


def speedup() -> Answer:
    """Recorded time of *naive* over that of *coalesced* at n = 4096."""
    p, rungs = Gemm(4096, 4096, 4096), (kernels.naive, kernels.coalesced)
    slow, fast = (run(kernel, p, backend="recorded").seconds for kernel in rungs)
    more, fewer = (predict(p, RECORDED, k).counters["global_load_sectors"] for k in rungs)
    by_sectors = more / fewer
    return Answer(
        slow / fast,
        f"{slow * 1e3:.0f} ms against {fast * 1e3:.0f} ms (*recorded*). Their sectors differ by a "
        f"factor of {by_sectors:.3g}.",
        {
            by_sectors: "That is the ratio of their sectors; time is set by something else, too.",
            1: "The arithmetic is the same, but arithmetic is not what these kernels wait for.",
            8: "A sector holds eight floats, but the request for $B$ got worse as that for $A$ got "
            "better.",
        },
        within=0.05,
    )


def banks() -> Answer:
    """Wavefronts of the load of A[i, p] in *naive*, with rows of 2049 floats."""
    found = int(transactions.l1_wavefronts(FLOAT * 2049 * (LANE % 16), ALL, FLOAT))
    return Answer(
        found,
        "2049 = 64 · 32 + 1, so each row starts one bank after the row above it. The 16 words lie "
        "in 16 banks, and one wavefront fetches them all.",
        {
            16: "That is for rows of 2048 floats, which all start in the same bank.",
            2: "The lower half of the warp asks for the same words: they cost nothing extra.",
            8: "You counted eight words a wavefront; it takes one word from each of 32 banks.",
        },
    )


def hide() -> Answer:
    """Warps that would hide a trip to DRAM behind steps of *coalesced*, three cycles each."""
    gpu = device(RECORDED)
    trip, step = gpu.dram_latency * gpu.clock, 3
    return Answer(
        math.ceil(trip / step),
        f"A trip takes {trip:.0f} cycles, and each warp fills {step} of them. An SM holds "
        f"{gpu.threads_per_sm // WARP}.",
        {
            gpu.threads_per_sm // WARP: "That is all that an SM holds; they fill less than a third "
            "of the trip.",
            round(trip): "Each warp fills three cycles, not one.",
            round(trip * step): "Multiply and you get cycles times cycles; the steps share the "
            "trip.",
        },
        within=0.02,
    )
