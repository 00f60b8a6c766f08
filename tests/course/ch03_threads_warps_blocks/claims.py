"""What each number in chapter 03's sentences must be."""

import json

import numpy as np

from benchmarks.hardware.checks import loads
from gemmlab import kernels
from gemmlab.course.ch03_threads_warps_blocks import guesses
from gemmlab.model import transactions
from tests.course.ch03_threads_warps_blocks import test_chapter as chapter
from tests.course.computed import GPU, bound, cube, ms, per_request, seconds
from tests.course.sentences import Claims, about

NAIVE, COALESCED = kernels.naive, kernels.coalesced
LANE, ALL = np.arange(32), np.ones(32, bool)


def profiled(stride):
    """Wavefronts and cycles of a load of 16 rows so many bytes apart, as a profiler counted."""
    pieces = json.loads(chapter.LOADS.read_text("utf-8"))["pieces"]
    found = next(
        load
        for piece in pieces
        for load in piece["measured"]["loads"]
        if (load["pattern"], load["width"]) == (f"16 rows, stride {stride}", 4)
    )
    return loads.of_one_load(found)


def touched(addresses):
    """The sectors of a request for floats at these places."""
    return int(transactions.sectors(4 * addresses, ALL))


def claims(c: Claims) -> None:
    """The chapter's sentences in their order."""
    c.anywhere(
        "a warp has 32 lanes", "32 threads", "32 lanes", "32 addresses", "0 to 31", "32 to 63"
    )
    c.at("title")
    c.given("the case", "two matrices of 2048×2048")
    c.given("the figure", "three pairs")
    c.holds("in {} ms. Give", ms(NAIVE, cube(2048)))
    c.holds("grows by {} %, and the time falls to {} ms",
            100 * (cube(2049).flops / cube(2048).flops - 1), ms(NAIVE, cube(2049)))  # fmt: skip
    third = ms(NAIVE, cube(2049)) / ms(NAIVE, cube(2048))
    c.holds("take {} of the time", about(third))
    c.at("grid")
    c.holds("an H200 has {}.", GPU.sms)
    c.given("the next cell's case", "12 threads, in 3 blocks of 4")
    c.given("grid and block", "two levels")
    c.at("last-block")
    c.given("the cell's case", "here 4,")
    c.given("the question's case", "1000 elements, and a block has 256 threads")
    c.at("owner")
    c.given("a question", "8×8 and blocks of 4×4")
    c.at("owner-next")
    c.given("the next cell's case", "two threads", "64 threads add 64 ones")
    c.given("load, add, store", "three steps")
    c.at("race-read")
    c.holds("load the old 0 before any stores its 1, so {} additions are lost", 64 - 1)
    c.given("load, add, store", "three steps")
    c.given("the question's case", "16×16")
    c.at("divergence")
    c.given("the next cell's case", "Two warps")
    c.at("triangle-intro")
    c.given("the next cell's loop", "i + 1 steps")
    c.at("strides")
    steps = np.arange(1, 65).reshape(2, 32)
    c.holds("done, for {} steps, and the second for {}", *steps.max(axis=1))
    c.holds("so {} of all places", about(1 - steps.sum() / (32 * steps.max(axis=1).sum()), 0.05))
    c.holds("sectors, {} bytes that start at a multiple of {}.", transactions.SECTOR,
            transactions.SECTOR)  # fmt: skip
    c.holds("32 neighbouring floats from the start of an array touches {} sectors: {} bytes",
            touched(LANE), 4 * 32)  # fmt: skip
    c.at("explore")
    c.given("the explorer's stride", "Stride 0", "Stride 1", "stride 1")
    c.given(
        "the question", "from 0 to 16 are there 4 sectors", "of 2, 4 and 8 bytes", "With 8 bytes"
    )
    flat = {
        size: next(s for s in range(1, 33) if transactions.sectors(size * s * LANE, ALL) == 32)
        for size in (2, 4, 8)
    }
    c.holds("beyond stride {} nothing", flat[4])
    c.holds("there are {} as many sectors",
            transactions.sectors(8 * LANE, ALL) / transactions.sectors(4 * LANE, ALL))  # fmt: skip
    whole = [o for o in range(17) if touched(LANE + o) == 4]
    c.holds("At {}, {} and {}: {} floats fill a sector", *whole, transactions.SECTOR / 4)
    c.holds("lie {} bytes apart: at strides {}, {} and {}", transactions.SECTOR,
            flat[2], flat[4], flat[8])  # fmt: skip
    c.given("8 bytes in place of 4", "twice the bytes")
    c.at("column")
    c.given("a case", "β = 0")
    c.given("the question's case", "16×16")
    c.at("map-intro")
    c.holds("a line of {} bytes, {} sectors", 4 * transactions.SECTOR, 4)
    c.given("a mark of the picture", "(0…16: lanes 0 and 16)")
    c.at("ex2-text")
    c.holds("{} of what moves", 1 - 4 / transactions.SECTOR)
    c.holds("({} + {})/2 = {} sectors", guesses.column().number, 1, per_request(NAIVE, cube(64)))
    c.at("diff-intro-next")
    c.at("clock")
    rows = guesses.rows().number
    c.holds("in {} rows of A: {} sectors, each a broadcast to {} lanes", rows, rows, 32 / rows)
    c.holds("takes {} neighbours: {} sectors", 16, touched(LANE % 16))
    c.holds("is {} sectors per request, {} times fewer", per_request(COALESCED, cube(64)),
            per_request(NAIVE, cube(64)) / per_request(COALESCED, cube(64)))  # fmt: skip
    c.given("the question's case", "n = 4096")
    c.at("banks")
    c.holds("one time is {} of the other", about(third))
    c.holds("of {} banks, each {} bytes", transactions.BANKS, 4)
    c.holds("after {} bytes the first", 4 * transactions.BANKS)
    column = transactions.l1_wavefronts(4 * 2048 * (LANE % 16), ALL, 4)
    c.holds("2048 floats, all 16 words of the column `A[i, p]` lie in the same bank, because "
            "2048 is a multiple of {}: {} wavefronts", transactions.BANKS, column)  # fmt: skip
    c.given("the question's case", "2049 floats")
    c.at("bounds")
    (even, busy), (odd, cycles) = profiled(4 * 2048), profiled(4 * 2049)
    c.holds("counted {} wavefronts for a load from rows of 2048 floats, and {} from rows of 2049",
            even, odd)  # fmt: skip
    c.holds("about {} for the first load, and {}, not 1, for", busy, cycles)
    c.holds("four in a cycle, and 16 rows are 16 lines: {} cycles",
            transactions.l1_cycles(4 * 2049 * (LANE % 16), ALL, 4))  # fmt: skip
    c.holds("for {} + 1 cycles at 2048, and for {} + 1 at 2049",
            chapter.l1_cycles(NAIVE, 2048) - 1, chapter.l1_cycles(NAIVE, 2049) - 1)  # fmt: skip
    c.at("waiting")
    late = {(k, n): seconds(k, cube(n)) / bound(k, cube(n))
            for k, n in ((NAIVE, 2048), (NAIVE, 2049), (COALESCED, 4096))}  # fmt: skip
    assert abs(late[NAIVE, 2048] - 1) < 0.01
    c.asserted("naive at 2048 within 1 %")
    c.holds("At 2049 it explains most of the gain, although {} more", about(late[NAIVE, 2049] - 1))
    c.holds(
        "Coalesced at 4096, however, takes nearly {} its bound", about(late[COALESCED, 4096], 0.15)
    )
    c.holds("almost {} of the time", about(1 - 1 / late[COALESCED, 4096], 0.2))
    c.holds("H200 holds {}.", GPU.threads_per_sm / 32)
    c.holds("takes {} cycles, and a warp of coalesced keeps L1 busy for {} cycles",
            GPU.dram_latency * GPU.clock, chapter.l1_cycles(COALESCED, 4096))  # fmt: skip
    c.at("waiting-read")
    c.holds("The {} warps of coalesced fill {} cycles", GPU.threads_per_sm / 32,
            64 * chapter.l1_cycles(COALESCED, 4096))  # fmt: skip
    c.holds("The {} warps of naive need about {} cycles", GPU.threads_per_sm / 32,
            about(64 * chapter.l1_cycles(NAIVE, 4096), 0.005))  # fmt: skip
    c.given("the exercise's case", "T = 8")
    c.at("summary")
    c.given(
        "a question", "8×32, 8 along x", "rows of 2056 floats be as good for naive as rows of 2049"
    )
    x, y = LANE % 8, LANE // 8
    across, down = touched(64 * x), touched(y)
    c.holds("now {} wide and {} high: 8 rows of A and 4 neighbours of B, {} + {} sectors in "
            "place of {} + 1", 8, 32 / 8, across, down, guesses.column().number)  # fmt: skip
    apart = 4 * 2056 * (LANE % 16)
    c.holds("{} is {} more than a multiple of {}, so each row starts {} banks", 2056, 2056 % 32, 32,
            2056 % 32)  # fmt: skip
    banks = len(set(2056 * (LANE % 16) % 32))
    c.holds(
        "the 16 rows lie in {} banks, {} wavefronts",
        banks,
        transactions.l1_wavefronts(apart, ALL, 4),
    )
    c.holds("of 16 lines takes {} cycles", transactions.l1_cycles(apart, ALL, 4))
    c.given("a question", "Two kernels", "three times as long")
    c.holds("sectors of {} bytes", transactions.SECTOR)
    c.holds("lie in: {} for 32 neighbouring floats", touched(LANE))
    c.holds("At 2048 a column lies in one bank; at 2049 it spreads over {}",
            len(set(2049 * np.arange(16) % 32)))  # fmt: skip
    c.holds("work took {} of the time", about(third))
    c.given("A[i, p] and B[p, j]", "two numbers")
