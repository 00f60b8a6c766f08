"""What each number in chapter 13's sentences must be."""

import numpy as np

from gemmlab.course.ch13_in_action import block as transformer
from gemmlab.course.ch13_in_action import dense, digits
from gemmlab.formats import FORMATS
from tests.course.ch13_in_action.test_chapter import (
    GONE,
    GPU,
    LIBRARY,
    MODEL,
    RECORD,
    TIMES,
    a_step,
    gradients,
    launch,
    of_block,
    parts,
)  # fmt: skip
from tests.course.sentences import Claims, about

HALF, SINGLE = FORMATS["float16"], FORMATS["float32"]
BATCH, STEPS = 64, 1437 // 64


def claims(c: Claims) -> None:
    """The chapter's sentences in their order."""
    c.anywhere("cases that the chapter's cells compute", "64 → 512 → 512 → 10", "64 → 32 → 10",
               "64 → 4096 → 4096 → 10 with 1,024 images", "64 images in a batch", "64×64 tiles",
               "64 images in the batch", "CC BY 4.0")  # fmt: skip
    learning(c)
    numbers_kept(c)
    a_steps_time(c)
    in_a_framework(c)
    a_block(c)


def learning(c: Claims) -> None:
    """The hook, and sections 1 and 2."""
    taught, test = digits.load()
    c.at("title")
    assert len(RECORD.curves) == 5
    c.asserted("five times from")
    c.holds("keeps {} of FP32's {} significant bits", HALF.fraction_bits + 1,
            SINGLE.fraction_bits + 1)  # fmt: skip
    c.holds("test accuracy, {}.", RECORD.curves[0].accuracies[-1])
    c.at("digits")
    side = digits.SIDE
    c.holds("are {} handwritten digits of {}×{} pixels", len(taught) + len(test), side, side)
    c.holds("learns from {} of them, and the last {} are", len(taught), len(test))
    c.at("layers")
    c.holds("a column of {} numbers", side**2)
    c.given("what a rectifier is", "max(0, y)")
    c.given("chapter 2's formulas", "the two products")
    c.at("table-text")
    c.given("a layer's", "three products")
    c.holds("where {}, the batch", BATCH)
    c.at("learn")
    c.holds("in {} steps of {} images", STEPS, BATCH)
    c.at("learn-read")
    c.holds("computed {} products", STEPS * 5)
    c.tested("test_the_simulator_learns_as_numpy_does", "about seven digits")
    c.given("exercise 06.1's tile", "2×2 sums")
    c.at("own-read")
    c.given("where sums begin", "from 0 upwards")
    c.at("epilogue-text")
    c.given("the next cell's case", "32 outputs and 64 images", "two launches")
    c.at("epilogue-read")
    c.tested("test_the_epilogue_saves_each_sector_of_y_twice", "256 sectors each")


def numbers_kept(c: Claims) -> None:
    """Section 3."""
    c.at("epilogue-read")
    c.holds("ends at {}, and below {} its numbers get coarser until they end at {} (",
            HALF.largest, 2.0**HALF.emin, 2.0 ** (HALF.emin - HALF.fraction_bits))  # fmt: skip
    c.given("what FP16 makes of them", "nothing but 0")
    c.at("range-read")
    g = gradients()
    spread = np.log2(np.quantile(g[g > 0], [0.0, 1.0]))
    c.holds("spread over {} powers", about(spread[1] - spread[0], 0.05))
    c.holds("room for {}, but", HALF.emax + 1 - (HALF.emin - HALF.fraction_bits))
    c.holds("A batch of {}, a million, does", BATCH * 2.0**14)
    c.given("the question's scale", "scale of 2^{-14} does to a batch of 64",
            "multiplied by 2^{14}")  # fmt: skip
    c.holds("turns {} % of them into 0", about(100 * (g * 2.0**-14 <= GONE).mean(), 0.02))
    c.given("what FP16 makes of them", "of them into 0")
    c.at("sweep-read")
    c.holds("above {} becomes infinite", HALF.largest)
    c.given("the hook's case", "a batch of 64 needs")


def a_steps_time(c: Claims) -> None:
    """Section 4."""
    one, more = a_step(), a_step(512)
    c.at("profile-read")
    longest = [launch(name) for name in ("forward 2", "forward 3", "inputs 2")]
    c.tested("test_the_longest_launches_have_few_blocks", "more than half of the step",
             "forward 2, forward 3 and inputs 2 take")  # fmt: skip
    c.given("launches' names", "forward 3 has", "than forward 2 and", "for forward 1:")
    c.holds("have {}, {} and {} blocks, for {} SMs", *(x.blocks for x in longest), GPU.sms)
    two, three = longest[0].problem, longest[1].problem
    c.holds("has {} times less work", two.flops / three.flops)
    assert two.k == three.k
    c.holds("same {} products along k", two.k)
    c.holds("predictions, {} µs, is {} % above the step's {}.", 1e6 * one.predicted,
            100 * (one.predicted / one.seconds - 1), 1e6 * one.seconds)  # fmt: skip
    first = launch("forward 1")
    assert 1.45 < first.predicted / first.seconds < 1.55
    c.asserted("by half for")
    c.given("the question", "512 images in place of 64")
    c.at("batch-read")
    c.tested("test_forward_a_larger_batch_costs_nothing", "a batch of 512 costs nothing more",
             "eight times as many blocks")  # fmt: skip
    c.holds("{} of the images costs {} of the time", BATCH / 512, one.seconds / more.seconds)
    c.holds("{} launches in place of {}.", len(a_step(fused=False).launches), len(one.launches))
    c.given("the question", "step of 64 images")
    c.at("fuse-read")
    c.given("launches' names", "forward 2 has")
    c.tested("test_no_launch_takes_less_than_two_microseconds", "at least 2 µs")
    c.holds("a step of {} ms", 1e3 * one.seconds)
    rows, columns = dense.TILING.thread
    c.holds("with {} sums would wait {} times", rows * columns, rows * columns)
    c.holds("has {} tiles and a k of {}.", launch("forward 2").blocks, two.k)
    split = parts("forward 2").parts.tiling.split
    c.holds("With {} parts of k all {} blocks", split, split * launch("forward 2").blocks)
    c.at("split-read")
    c.given("launches' names", "forward 3, a tile", "weights 2 has")
    third, weights = parts("forward 3"), parts("weights 2")
    c.holds("a tile with {} rows, gains as much with {} parts", third.problem.m,
            third.parts.tiling.split)  # fmt: skip
    second = parts("forward 2")
    gains = [x.whole.seconds / x.parts.seconds for x in (second, third)]
    assert abs(gains[1] / gains[0] - 1) < 0.1
    assert weights.parts.tiling.split == 1
    c.holds("has {} tiles and a k of {}, and", launch("weights 2").blocks, weights.problem.k)
    c.at("apply-read")
    plain = a_step(fused=False).launches
    products = [x for x in one.launches if x.problem]
    left = sum(x.seconds for x in plain if x.name in {y.name for y in one.launches})
    more = sum(x.seconds for x in one.launches) - left
    c.holds("about {} µs in each of the {} products", about(1e6 * more / len(products), 0.2),
            len(products))  # fmt: skip


def in_a_framework(c: Claims) -> None:
    """Section 5."""
    by_name = {one.way: one for one in RECORD.eager}
    single, tf32 = by_name["PyTorch, FP32"], by_name["PyTorch, TF32"]
    c.at("torch-text")
    c.given("chapter 12's", "three products")
    c.given("exercise 13.1's", "the two products")
    c.at("torch-read")
    c.holds("is {} as fast as FP32", about(single.seconds / tf32.seconds, 0.05))
    c.tested("test_corrected_products_are_nearer_than_those_of_fp32_units", "3·10⁻⁴")


def a_block(c: Claims) -> None:
    """Section 6 and the recap."""
    c.at("block")
    c.holds("{} characters that there are, a context of {}, {} texts in a batch, a width of {}, "
            "and {} heads", *(vars(MODEL)[x] for x in
                              ("vocabulary", "context", "batch", "width", "heads")))  # fmt: skip
    c.at("block-read")
    passes = sum(transformer.predict(w, GPU) for w in transformer.passes(MODEL))
    bound, seen = of_block(1.0, "") + passes, TIMES.steps[0].seconds
    c.holds("give {} ms, {} of the {} that", 1e3 * bound, bound / seen, 1e3 * seen)
    c.holds("reaches {} % of the FP32 peak", 100 * LIBRARY)
    c.tested("test_what_the_sizes_say_of_a_blocks_time", "within 5 %", "nearly twice as long",
             "almost twice its bytes", "more than 60 launches")  # fmt: skip
    scores = next(w.product for w in transformer.products(MODEL) if w.name == "attention, QKᵀ")
    one = scores.gemm
    c.holds("are {} small ones, {}×{}×{}, and", scores.count, one.m, one.n, one.k)
    c.holds("a table of {} rows", MODEL.vocabulary)
    c.given("what the matrix holds", "a matrix of 0 and 1")
    taken = next(k for k in TIMES.steps[1].kernels if "index_kernel" in k.name and k.launches == 1
                 and k.seconds < 1e-5)  # fmt: skip
    c.holds("the lookup takes {} µs", 1e6 * taken.seconds)
    c.holds("adds {} rows of {} numbers to those {} rows", MODEL.tokens, MODEL.width,
            MODEL.vocabulary)  # fmt: skip
    c.at("lookup-read")
    c.holds("{} times as many multiplications", MODEL.vocabulary)
    c.at("recap")
    c.given("section 1's", "three products", "k in the third")
    c.given("what an epilogue replaces", "two passes")
    c.given("section 6's question", "six operations")
    c.holds("above {}, halve", HALF.largest)
    c.given("a question", "twice as many blocks")
    c.at("recap-next")
    c.given("the articles' years", "2018", "2017", "1998")
