"""What each number in chapter 06's sentences must be."""

import numpy as np

from gemmlab import kernels, predict, records
from gemmlab.kernels.simt.shared import warp_tiles
from gemmlab.model import occupancy, transactions
from gemmlab.model.pipeline import step
from tests.course.ch06_register_tiles import test_chapter as chapter
from tests.course.computed import GPU, bound, cube, ms, seconds, tflops
from tests.course.sentences import Claims, about, under

BIG = cube(4096)
TILED, REGISTERS, WIDE, WARPS = (kernels.tiled, kernels.register_tiled, kernels.vectorised,
                                 kernels.warp_tiled)  # fmt: skip
LIBRARY = kernels.REFERENCE
A_CYCLE = GPU.flop_per_cycle_per_sm["float32"] / 2 / 32  # FMAs of whole warps on an SM


def loads(tm, tn):
    """Shared loads for each FMA of a thread's tile."""
    return 1 / tm + 1 / tn


def late(tm, tn):
    """Recorded time over the bound of a thread's tile."""
    tiling = chapter.tile(tm, tn)
    return seconds(REGISTERS, BIG, tiling) / bound(REGISTERS, BIG, tiling)


def claims(c: Claims) -> None:
    """The chapter's sentences in their order."""
    c.anywhere("cases that the chapter's cells compute", "4096×4096", "2×2", "4×4", "8×8",
               "16×16 sums", "1×1", "16×8", "n = 512", "n = 256", "n = 4096", "n = 4096", "64×64",
               "128×128")  # fmt: skip
    c.anywhere("a warp", "32 threads", "32 lanes")
    c.anywhere(
        "float4", "128-bit", "128 bits", "groups of four", "group of four", "four neighbours"
    )
    c.at("title")
    times = predict(BIG, GPU, TILED).times
    c.holds("in {} ms. DRAM could deliver them in {} ms, the FMA units could do the arithmetic "
            "in {} ms, and NVIDIA's library, cuBLAS, is back after {} ms", ms(TILED, BIG),
            1e3 * times["dram"], 1e3 * times["math"], ms(LIBRARY, BIG))  # fmt: skip
    c.holds("other {} ms go", ms(TILED, BIG) - 1e3 * times["math"])
    c.given("A and B", "two 4096×4096")
    c.at("aims")
    c.given("the exercises", "two kernels")
    c.holds("from {} % of cuBLAS", 100 * chapter.of_cublas(TILED))
    c.holds("its speed: {} rungs", len(kernels.LADDER[3:]))
    c.at("pipe-read")
    c.given("As[y, p] and Bs[p, x]", "two words")
    c.holds("starts {} FMAs of whole warps", A_CYCLE)
    c.at("build")
    c.holds("must serve {} FMAs, and here it serves {} of one", A_CYCLE, 1 / 2)
    c.given("the question", "to 8, to 64, to 1000")
    c.at("column")
    c.given("a case", "β \\ne 0")
    c.at("square")
    c.holds("column of four sums costs {} loads", loads(4, 1))
    c.at("square-read")
    c.given("words and sums of 2×2", "Four words for four FMAs")
    c.holds("Four sums in a column cost {}, four in a square cost {}", loads(4, 1), loads(2, 2))
    c.at("square-read-next")
    c.holds("must serve {} FMAs, so an FMA may cost {} of a load", A_CYCLE, 1 / A_CYCLE)
    c.at("clock")
    c.given("of the table", "last two columns")
    c.at("compiled")
    assert late(1, 1) < 1.05
    assert late(2, 2) < 1 < late(4, 4)
    assert tflops(REGISTERS, BIG, chapter.tile(4, 4)) < 1.1 * tflops(
        REGISTERS, BIG, chapter.tile(2, 2)
    )
    c.holds("than {} of its bound", under(1 / late(8, 8)))
    c.holds("SM's {} schedulers", occupancy.SUBPARTITIONS)
    c.holds("has {} loads for {} FMAs", 8 + 8, 8 * 8)
    c.given("the question", "every 100 FMAs")
    c.at("lines")
    c.given("PTX ISA", "64 bits, in two registers")
    a_step = REGISTERS.default
    c.holds("does this {} times", sum(a_step.block[:2]) * a_step.block[2] / a_step.threads)
    c.given("the table below", "two lines")
    c.at("lines-read")
    c.tested("test_the_copies_take_nearly_as_many_slots_as_the_fmas", "two lines")
    c.given("the explorer", "64 cycles")
    c.at("price")
    c.holds("warp with {} sums", 8 * 8)
    c.tested("test_what_tiled_waits_for", "a fifth shorter", "take a quarter of all slots")
    c.tested("test_register_ports", "three registers")
    c.holds("least, {} for 8×8", 8 * 8 + 8 + 8)
    c.holds("have {}.", GPU.registers_per_thread)
    assert GPU.registers_per_thread < 16 * 16 + 16 + 16
    c.holds("its {} registers", GPU.registers_per_sm)
    c.holds("can hold {} warps", GPU.threads_per_sm / 32)
    c.at("wide")
    c.given("a part of a rule", "a second half")
    c.holds("takes {} cycles and four can start in each, so {} FMAs", GPU.fma_latency_cycles,
            GPU.fma_latency_cycles * A_CYCLE)  # fmt: skip
    c.holds("and {} warps are needed", GPU.fma_latency_cycles * A_CYCLE)
    c.holds(
        "warp with {} sums has {} independent FMAs. {} such warps", 64, 64, occupancy.SUBPARTITIONS
    )
    c.holds("issues {} loads for {} FMAs", 8 + 8, 64)
    c.holds("load {} bytes a lane", 128 / 8)
    c.holds("Then {} loads bring the same {} words, and {} words", 16 / 4, 16, 4)
    c.given("four words", "The four words must be", "multiple of 16 bytes",
            "multiples of four elements", "move four words")  # fmt: skip
    c.at("fours")
    c.given("the next cell's case", "100 words", "because 100 is")
    c.at("maps")
    c.holds("fall to {}, sectors", 1 / 4)
    c.holds("the {} banks", transactions.BANKS)
    c.at("maps-read")
    c.given("blocks are 16 threads wide", "two rows of 16 lanes")
    c.given("four words a lane", "four words, and a wavefront serves 16 of them",
            "16 different groups", "its four words")  # fmt: skip
    c.given("a wavefront has 128 bytes", "room for eight")
    c.given("two lanes of four columns in a row of 8",
            "copies 16 rows of A, two lanes in each: one lane has columns 0 … 3 of the tile, "
            "the other 4 … 7", "to 16 neighbours in row p of `As` and 16 in row p + 4")  # fmt: skip
    c.given("the question's case", "128 words")
    c.at("padding-read")
    c.given("a wide load's words", "multiples of 16 bytes")
    c.holds("from {} to {} TFLOP/s", tflops(REGISTERS, BIG), tflops(WIDE, BIG))
    c.at("warp")
    c.given("a wide load's words", "serve four words")
    c.tested("test_what_wide_loads_do_to_the_slots", "less than half of the slots")
    shares = [predict(BIG, GPU, WIDE).times[unit] / seconds(WIDE, BIG) for unit in ("l1", "issue")]
    c.holds("for about {} of the {} ms", about(np.mean(shares)), ms(WIDE, BIG))
    c.holds("make up {} of a warp", 8 / 32)
    c.at("warp-read")
    i, j = warp_tiles.first_element(WARPS.default)(np.arange(8))
    c.holds("the {} lanes of a shade want eight different groups of `Bs`: {} words", 8, 8 * 4)
    c.holds("stand in two rows of four: they want {} groups of `As`", len(set(i)))
    assert len(set(j)) == 4
    tm, tn = WARPS.default.warp
    assert (tm, tn, *WARPS.default.thread) == (64, 64, 16, 8)
    c.holds("takes {} different words for {} FMAs; the strip of 16×128 that a warp of "
            "vectorised has takes {} words for {}", tm + tn, tm * tn, 16 + 128,
            16 * 128)  # fmt: skip
    c.at("ahead")
    c.holds(
        "because {} blocks do not divide evenly among {} SMs",
        np.prod(WARPS.default.grid(BIG)),
        GPU.sms,
    )
    before, after = (predict(BIG, GPU, k).times["l1"] for k in (WIDE, WARPS))
    c.holds("has {} as much to do", about(after / before, 0.15))
    one = step(WARPS, GPU)
    c.holds("covers {} of k, and the SM starts {} FMAs", WARPS.default.block[2], A_CYCLE)
    c.holds("takes {} cycles", one.wait)
    c.given("an allowance", "some hundred cycles")
    c.at("gap-read")
    c.holds("{} such blocks share an SM", records.find(WARPS, BIG).resources["blocks_per_sm"])
    c.at("ladder-read")
    assert chapter.of_cublas(kernels.pipelined) > 1
    c.asserted("at 4096")
    c.at("explorer-answers")
    c.holds("At 512 it is latency: the tile of a block is 256×128, which makes {} blocks",
            np.prod(chapter.tile(16, 8).grid(cube(512))))  # fmt: skip
    c.given("the exercise", "half as many FMA units")
    c.at("recap")
    c.holds("takes one of {} slots", occupancy.SUBPARTITIONS)
    busiest = [predict(BIG, GPU, kernel).bottleneck for kernel in kernels.LADDER]
    c.holds("busiest unit on {} rungs, the slots of the schedulers on three", busiest.count("l1"))
    assert busiest.count("issue") == 3
    c.given("the question's case", "4×16 elements", "128 bits wide",
            "a third of each step, and two blocks", "Is a third of the time")  # fmt: skip
    c.holds(
        "Both have {} sums. 8×8 loads {} words for one p, 4×16 loads {} and", 8 * 8, 8 + 8, 4 + 16
    )
    c.given("loads and registers", "wins twice")
    c.holds("{} of the instructions bring", 1 / 4)
