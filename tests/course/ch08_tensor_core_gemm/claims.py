"""What each number in chapter 08's sentences must be."""

import numpy as np

from gemmlab import Tiling, kernels, predict
from gemmlab.compiled.sm.facts import facts
from gemmlab.course.ch08_tensor_core_gemm import guesses
from gemmlab.kernels.tensor_core.shared.shared_layouts import swizzled
from gemmlab.model import occupancy, transactions
from gemmlab.numerics import FORMATS
from tests.course.ch08_tensor_core_gemm import test_chapter as chapter
from tests.course.ch08_tensor_core_gemm.test_chapter import BIG, GPU, LOOP, each, pipe
from tests.course.computed import cube, tflops
from tests.course.sentences import Claims, about, over, under

DIRECT, SHARED, SWIZZLED = chapter.RUNGS
FLOP = 2 * 16 * 8 * 16  # of an mma


def reused(wm, wn):
    """Wavefronts for an mma in a warp tile."""
    return 32 * (1 / wm + 1 / wn)


def claims(c: Claims) -> None:
    """The chapter's sentences in their order."""
    c.anywhere("cases and shapes that the chapter's cells compute", "4096×4096", "16×16", "16×8,",
               "16×8×8", "16×8×16", "32×32", "64×64", "64×32", "128×64", "64×256×16",
               "256×128", "8×8", "At 4096")  # fmt: skip
    c.anywhere("a warp", "32 lanes")
    c.anywhere("a piece: the most that one thread loads at once", "16 bytes")
    c.anywhere("a tile's rows in the kernels", "64 elements", "rows of 16 elements",
               "rows of 32 elements", "From 64 to 128 elements")  # fmt: skip
    c.anywhere("a piece, a place or a row that the text points at", "piece 2", "place 2", "row 0",
               "row 3", "row 4", "Row 1", "row 1", "3.2 is")  # fmt: skip
    c.at("title")
    c.given("the figure", "three speeds")
    c.at("question")
    share = LOOP.blocks * FLOP / (LOOP.each / LOOP.warps) * LOOP.clock_hz / 1e12
    fmas = tflops(kernels.pipelined, cube(4096))
    c.holds("more than {} times as fast", over(share / fmas))
    c.holds("than {} the speed", under(tflops(DIRECT, BIG) / fmas))
    c.given("the exercises", "two kernels")
    c.at("ops")
    c.holds("do {} FLOP in", GPU.ops_per_byte("float32"))
    c.holds("do {} in float16", GPU.ops_per_byte("float16"))
    c.holds("has {} FLOP for each byte", BIG.intensity)
    c.at("narrow")
    times = predict(BIG, GPU, DIRECT).times
    c.holds("more than {} times as long", over(times["l1"] / times["math"]))
    c.holds("promises {} TFLOP/s", GPU.peak_of("float16") / 1e12)
    c.holds("at {} GHz", GPU.clock_of("float16") / 1e9)
    c.holds("bring {} bytes each", GPU.shared_bytes_per_cycle_per_sm)
    c.at("fed-read")
    c.given("PTX ISA, wgmma", "four warps")
    c.holds("finishes two in {} cycles, not three, and it did so at {} GHz (recorded): {} % of",
            2 * LOOP.each / LOOP.warps, LOOP.clock_hz / 1e9,
            100 * share / (GPU.peak_of("float16") / 1e12))  # fmt: skip
    c.given("the figure's bars", "the third bar")
    c.given("the guess's word", "not three,")
    c.given("the article that is linked", "63 % on an H800, and more than 95 %")
    c.at("direct")
    c.given("a step of mma", "step of 16 along k")
    c.given("float16", "two bytes")
    c.given("the question", "sectors of 32 bytes")
    c.at("sectors-look")
    c.holds("is {} bytes, one", transactions.SECTOR)
    c.at("sectors-read")
    c.holds("{} of each sector", 1 - 4 * 2 / transactions.SECTOR)
    c.holds("same {} banks", transactions.BANKS)
    c.given("rows of A in steps of 64", "multiple of 128 bytes")
    c.holds("so the {} sectors", guesses.sectors().number)
    c.at("direct-read")
    c.holds("These {} sectors keep the pipe busy for {} cycles",
            each(DIRECT, "global_load_sectors"), about(pipe(DIRECT), 0.01))  # fmt: skip
    c.given("the loads of fragments, as the kernel's text has them", "8 loads of 8 sectors",
            "4 loads of 4:", "eight `mma`.)")  # fmt: skip
    c.holds("together {}, for", 8 * each(DIRECT, "global_load_sectors"))
    assert LOOP.each / LOOP.warps - 1.5 < 0.01
    wm, wn = DIRECT.default.warp
    assert wm * wn / (16 * 8) == 8
    c.tested("test_mma_has_a_limit_of_its_own", "one and a half")
    c.given("block, warp, instruction", "three times")
    c.given("a step of mma", "steps of 16 along k", "computes: 16×8")
    c.at("nested-read")
    c.given("a name", "RTX 2060")
    c.given(
        "PTX ISA, ldmatrix and mma", "four words back", "has two", "of 4, 2 and 4,", "the 4 new"
    )
    c.at("reuse")
    c.holds("takes {} wavefronts for each `mma`", reused(32, 32))
    c.at("reuse-look")
    c.given("the figure", "five warp tiles")
    c.at("reuse-read")
    c.holds("{} of a lane's {} registers", about(64 * 64 / 32 / GPU.registers_per_thread),
            GPU.registers_per_thread)  # fmt: skip
    c.given("16 bytes of float16", "eight neighbours")
    c.given("a step of mma", "slices of 16")
    c.given("the only part of a tile", "one part, 0.")
    c.at("shared-read")
    to_do = [predict(BIG, GPU, kernel).times["l1"] for kernel in (DIRECT, SHARED)]
    c.holds("than {} as much to do", under(to_do[1] / to_do[0]))
    c.at("conflicts")
    c.holds("an `mma` moves {} of them where mma_direct moved {}",
            each(SHARED, "global_load_sectors"), each(DIRECT, "global_load_sectors"))  # fmt: skip
    assert each(SHARED, "shared_bank_conflicts") > 6
    c.holds("more than six of the {} wavefronts", each(SHARED, "shared_load_wavefronts"))
    c.given("the figure's case", "two rows")
    c.at("swizzle")
    c.given("a piece of padding", "eight unused elements")
    c.given("the rung's tiles", "have 32 elements", "of B have 128 elements")
    c.tested("test_conflicts_of_the_default_tiles", "four of the eight rows", "all eight do",
             "For 16 `mma`", "loads 16 matrices", "in 4 wavefronts each", "8 of B in 8:",
             "the 8 wavefronts")  # fmt: skip
    c.at("swizzle-look")
    c.given("rows to look at", "row 0 with row 1", "from row 0 to row 4")
    c.at("swizzle-read")
    c.given("any two", "no two pieces", "twice gives the piece back")
    c.given("a bit", "that is 1 flips")
    c.tested("test_the_figures_show_the_rule_of_the_exercise", "In eight rows", "the eight numbers")
    c.at("swizzle-read-next")
    c.at("explorer-text")
    c.given("the explorer", "two kernels", "four warps")
    wavefronts = chapter_wavefronts()
    c.holds("takes {} times as many", wavefronts[SHARED] / wavefronts[SWIZZLED])
    places = swizzled(32)(np.arange(8), 2) // 8 % 4
    assert (places[::2] == places[1::2]).all()
    c.given("a row's length", "twice as long")
    c.at("explorer-answers")
    c.holds("rows of {} bytes meet", 2 * 16)
    c.holds("take {} wavefronts each", wavefronts[SHARED] - 2)
    c.given("rows of 64 bytes in lines of 128", "Two rows share")
    c.given("a matrix of ldmatrix", "Eight rows")
    c.holds("rows are {} lines, and", 8 * 64 / 128)
    c.given("the swizzle of rows of 32 elements", "four places")
    c.at("clock")
    loads = [each(kernel, "shared_load_wavefronts") for kernel in (SWIZZLED, SHARED)]
    c.holds("than {} of their wavefronts", under(loads[0] / loads[1]))
    c.at("copies-read")
    c.given("in and out of registers", "twice before")
    c.tested("test_larger_tiles", "1.31 cycles", "take 0.5 and", "of B 0.25", "both tiles 0.5",
             "the last 0.06", "twice as much as B")  # fmt: skip
    c.given("a row of 32 float16, a cycle of L1", "have 64 bytes", "one of 128.")
    wider = Tiling(block=(256, 128, 32), warp=(64, 64), thread=(8, 16))
    c.holds("above {} TFLOP/s", over(predict(BIG, GPU, SWIZZLED, wider).flops_per_second / 1e12))
    own = SWIZZLED.default
    longer = Tiling(block=(128, 128, 64), warp=own.warp, thread=own.thread)
    c.holds("steps of {} along k in place of {}", longer.block[2], own.block[2])
    c.holds("have {} bytes then", 2 * longer.block[2])
    bounds = [predict(BIG, GPU, SWIZZLED, t).flops_per_second for t in (own, longer)]
    c.holds("rises by {}.", about(bounds[1] / bounds[0] - 1, 0.2))
    c.at("ladder-read")
    c.holds("about {} of its bound", about(tflops(SWIZZLED, BIG) * 1e12 / bounds[0], 0.15))
    c.at("waits-text")
    c.holds("SM's {} schedulers", occupancy.SUBPARTITIONS)
    c.holds("busy for {} cycles", facts("h200").tensor_interval)
    c.given("the answers below", "two lines")
    c.given("some seconds", "half a minute")
    c.at("waits-answers")
    c.tested("test_what_the_rungs_wait_for", "a third of the time", "a tenth", "two lines",
             "half of all slots", "two thirds of its slots", "a third as many slots",
             "10 % of 1,474", "20 % of 2,314", "half of the time")  # fmt: skip
    c.at("formats-text")
    c.given("the formats", "16 bits")
    c.holds("with {} significant bits in float16 and {} in bfloat16",
            *(FORMATS[name].precision for name in ("float16", "bfloat16")))  # fmt: skip
    c.at("formats-read")
    c.holds("C of {} bits", 8 * FORMATS["float16"].bytes)
    c.at("recap")
    c.holds("and two in {} cycles by", 2 * LOOP.each / LOOP.warps)
    c.holds("needs {} wavefronts if", reused(16, 8))
    c.given("used again", "used twice")
    c.holds("sector: {} cycles for each", about(pipe(DIRECT), 0.01))
    c.holds("Rows of {} bytes put eight", 2 * 64)
    c.given("in and out of registers", "twice, their")
    c.given("a question", "128×32")
    c.holds("Both have {} sums, but 1/128 + 1/32 is larger than 1/64 + 1/64: {} wavefronts "
            "against {}.", 64 * 64, reused(128, 32), reused(64, 64))  # fmt: skip
    c.given("the pieces of a row", "Eight threads")
    c.given("block, warp and instruction", "Three nested tiles")


def chapter_wavefronts():
    """Wavefronts for an mma of both kernels with rows of 16 elements, in the explorer's case."""
    problem = chapter.Gemm(64, 64, 128, **chapter.HALVES)
    found = {}
    for kernel in (SHARED, SWIZZLED):
        counters = predict(problem, GPU, kernel, chapter.tiling(16)).counters
        found[kernel] = counters["shared_load_wavefronts"] / (problem.flops / FLOP)
    return found
