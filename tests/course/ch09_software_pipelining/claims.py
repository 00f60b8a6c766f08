"""What each number in chapter 09's sentences must be."""

from gemmlab import kernels, records
from gemmlab.compiled.sm.facts import facts
from gemmlab.course.ch09_software_pipelining import guesses, q1_copies_ahead as copies_ahead
from gemmlab.course.judging import producers, timed
from gemmlab.explorers.stage_timeline import found as stages_over_time
from gemmlab.instructions.warpgroup import WARPGROUP
from gemmlab.model.pipeline import stages_needed, step
from tests.course.ch09_software_pipelining import test_chapter as chapter
from tests.course.ch09_software_pipelining.test_chapter import BIG, GPU, HALF, in_turn
from tests.course.computed import seconds
from tests.course.sentences import Claims, about, over, under

SWIZZLED, RING, LAST = kernels.mma_swizzled, kernels.mma_pipelined, kernels.warp_specialised


def claims(c: Claims) -> None:
    """The chapter's sentences in their order."""
    rate, ours, slow = GPU.flop_per_cycle_per_sm, in_turn(), step(kernels.warp_tiled, GPU)
    c.anywhere("cases that the chapter's cells compute", "128×128×32", "256×128×32", "128×64",
               "256×64", "128×256", "tile of 128×128", "its 128×128", "n = 4096", "k = 4096",
               "k = 256", "s - 1", "t - 1")  # fmt: skip
    c.at("title")
    c.given("the figure", "Two kernels")
    c.holds("of {} times the rate", rate["float16"] / rate["float32"])
    c.at("question")
    c.holds("that is {} of a step", about(slow.idle_share, 0.06))
    c.holds("Tensor Cores nearly {}", about(ours.idle_share, 0.06))
    c.holds("units of {} times the rate", rate["float16"] / rate["float32"])
    c.given("steps of the two rungs", "(16 of", "(of 32)")
    loops = [96 // k.default.block[2] * (s.idle + s.multiply)
             for k, s in ((kernels.warp_tiled, slow), (SWIZZLED, ours))]  # fmt: skip
    c.holds("less than {} times as fast", under(loops[0] / loops[1], 1.25))
    c.given("the two of section 4", "two numbers")
    c.given("the exercises", "three kernels")
    c.at("blocks-read")
    c.holds("one block are {}×{} numbers", *SWIZZLED.default.block[:2])
    c.given("of a step", "two barriers", "two pairs of tiles", "with two pairs")
    c.at("ahead-look")
    told = timed.ms(copies_ahead.SOLUTION)
    c.holds("has predicted {} ms at", float(told.split()[0]))
    c.holds("in turn, takes {} ms (recorded)", 1e3 * copies_ahead.BESIDE.seconds)
    c.at("two")
    c.holds("{} of the barriers", guesses.barriers().number / 2)
    c.at("two-read")
    c.given("a ring of three", "three stages, two tiles")
    c.holds("With two stages a step took as long as the copy, {} cycles; the product takes {}.",
            ours.idle, ours.multiply)  # fmt: skip
    c.at("three-look")
    c.given("the picture", "three stages", "two products")
    c.at("formula")
    c.holds("makes {} / {} tiles", ours.idle, ours.multiply)
    assert stages_needed(ours.idle, ours.multiply) == 4
    c.given("a ring", "two stages")
    c.at("short")
    c.holds("have {} steps.", 4096 / SWIZZLED.default.block[2])
    c.holds("k = 256 there are {} steps", 256 / SWIZZLED.default.block[2])
    c.given("the question's case", "four stages")
    c.at("short-read")
    t = SWIZZLED.default
    tile = 2 * t.block[2] * (t.block[0] + t.block[1])
    c.holds("{} tiles of {} KiB under way, in registers: with {} threads that is {} registers "
            "of each, beside its {} sums", 3, tile / 1024, t.threads, 3 * tile / 4 / t.threads,
            t.block[0] * t.block[1] / t.threads)  # fmt: skip
    c.given("PTX ISA, cp.async", "compute capability 8.0")
    c.at("cost")
    c.holds("in FP16 takes {} KiB, and an SM has {} KiB",
            RING.shared_bytes(HALF, chapter.ringed(1)) / 1024,
            GPU.shared_bytes_per_sm / 1024)  # fmt: skip
    c.given("an example", "four blocks", "four stages")
    c.holds("and {} of k in a step", LAST.default.block[2])
    c.holds("can have {} KiB", GPU.shared_bytes_per_block / 1024)
    c.at("cost-read")
    c.holds("{} blocks share an SM", chapter.blocks_on(RING, GPU, chapter.ringed(2), HALF))
    times = [chapter.launch_seconds(RING, GPU, chapter.ringed(s), HALF) for s in range(1, 6)]
    assert times[1] > times[2] == times[3] == times[4]
    c.asserted("three stages")
    c.tested("test_two_numbers_from_two_records_tell_the_third", "nearly three tenths")
    c.given("copy and product", "two numbers", "two products", "Two records", "two stages")
    c.at("who-read")
    c.tested("test_copies_go_through_the_pipe_that_hands_out_operands", "take 128 of them",
             "half a wavefront", "of B take 64;", "stores take 128.")  # fmt: skip
    c.at("explorer-look")
    best = chapter.launch_seconds(RING, GPU, chapter.ringed(4), HALF)
    c.holds("nearly {} as long", about(seconds(RING, HALF, chapter.ringed(4)) / best, 0.1))
    c.holds("too; {} SMs", GPU.sms)
    c.tested("test_copies_go_through_the_pipe_that_hands_out_operands",
             "192 + 128 + 384 = 704 cycles, 1.83 times those 384.")  # fmt: skip
    c.given("copy and product", "two numbers")
    c.given("some seconds", "half a minute")
    c.given("the explorer's stages", "two stages", "and with three", "two and four")
    c.at("explorer-answers")
    c.tested("test_where_the_prediction_from_code_is_furthest_off", "a tenth, with",
             "a twelfth too", "a fifth too", "two blocks", "four stages")  # fmt: skip
    c.tested(
        "test_the_formula_with_the_codes_products_comes_close_to_the_code", "three times as long"
    )
    c.at("inner")
    c.holds("takes {} cycles from there", facts("h200").shared_latency)
    c.given("pipelined's own", "two sets")
    c.holds("a ring of {} stages", kernels.pipelined.default.stages)
    c.holds("for {} of its time", about(slow.idle_share, 0.06))
    assert 1.45 < 1 / (1 - slow.idle_share) < 1.55
    c.asserted("half times as fast")
    c.at("gain-read")
    runs = [records.find(k, BIG) for k in (kernels.warp_tiled, kernels.pipelined)]
    assert [run.tiling.block[:2] for run in runs] == [(128, 128), (128, 256)]
    c.tested("test_what_copies_ahead_do_to_the_slots", "a fifth is left, 3 %", "be 43 %")
    c.given("of warp_tiled, on an SM", "two blocks")
    c.holds("it gains {} %", 100 * (runs[0].seconds / runs[1].seconds - 1))
    c.given("PTX ISA, cp.async", "16 bytes")
    c.at("mbarrier")
    c.given("PTX ISA, mbarrier", "0 for the first, 1 for the second, 0 for the third")
    c.given("a row", "from row 0")
    c.holds("({} warps, the unit", WARPGROUP / 32)
    c.at("roles")
    c.given("PTX ISA, mbarrier", "parity 0", "parity 1")
    c.given("a warpgroup", "four warps")
    c.at("specialised-read")
    c.given("a ring of three", "two tiles")
    c.at("break-answers")
    c.given("a ring of three", "three steps")
    c.at("registers")
    bm, bn, bk = LAST.default.block
    c.given("the rung", "two consumers")
    c.holds("with {}×{} sums each", bm / 2, bn)
    c.holds("takes {} registers", bm / 2 * bn / WARPGROUP)
    c.given("PTX ISA, setmaxnreg", "multiple of 8")
    c.holds("has {} registers", GPU.registers_per_sm)
    c.holds("of {} threads", WARPGROUP)
    c.holds("keep {} each", guesses._PRODUCER)
    c.at("stages-look")
    c.holds("its k is 512: {} steps", 512 / bk)
    c.given("a step of the picture", "Step 0", "step 0", "Step 6")
    c.at("stages-answers")
    found = stages_over_time("warp_specialised")
    c.holds("more than {} cycles. In", over(found.turns[0].full - found.turns[0].asked))
    c.holds("In the first {} steps", 512 / bk)
    c.given("the ring", "first four stages")
    c.holds("delivers {} KiB", 2 * bk * (bm + bn) / 1024)
    c.tested("test_who_waits_for_whom", "some 870 cycles", "take 1,160 cycles",
             "more than 4,000 cycles", "Four products")  # fmt: skip
    c.holds("products take {}:", 2 * bm * bn * bk / rate["float16"])
    c.holds("once in {} steps", 4096 / bk)
    c.at("clock")
    c.given("their names", "Two more rungs")
    c.at("clock-read")
    gained = seconds(SWIZZLED, HALF) / seconds(RING, HALF)
    c.holds("nearly {} the speed", about(gained, 0.15))
    c.tested("test_copies_go_through_the_pipe_that_hands_out_operands", "704 cycles of each step")
    c.at("ex4-text")
    c.holds("has {}×{} elements", producers.ROWS, producers.COLUMNS)
    c.given("an example", "One block", "one ring")
    c.at("twice")
    c.given("the rung", "Two blocks", "two blocks", "one half")
    c.at("twice-guess")
    c.given("the rung", "two blocks")
    c.at("twice-look")
    c.given("the cell's case", "two steps")
    c.at("recap")
    c.given("a ring of two", "two stages")
