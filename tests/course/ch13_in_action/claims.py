"""What each number in chapter 13's sentences must be."""

import numpy as np

from gemmlab.course.ch13_in_action import block as transformer, digits, network
from gemmlab.course.ch13_in_action.guesses import VANISHING
from gemmlab.course.ch13_in_action.q4_what_to_change import fused, in_parts
from gemmlab.formats import FORMATS
from tests.course.ch13_in_action.test_chapter import (
    GONE,
    GPU,
    LIBRARY,
    MODEL,
    RECORD,
    SMALL,
    TIMES,
    a_step,
    gradients,
    known,
    launch,
    of_block,
    parts,
    trained,
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
    c.at("nudge-text")
    c.given("what a rectifier's gradient is", "becomes 0 where y")
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
    c.given("chapter 2's", "a loss times 8 has gradients times 8")
    c.holds("stands at {}, {} of FP16's", GONE, GONE / 2.0 ** (HALF.emin - HALF.fraction_bits))
    c.given("what FP16 makes of them", "is rounded to 0")
    c.at("range-read")
    g = gradients()
    spread = np.log2(np.quantile(g[g > 0], [0.0, 1.0]))
    c.holds("spread over {} powers", about(spread[1] - spread[0], 0.05))
    c.holds("room for {}, but", HALF.emax + 1 - (HALF.emin - HALF.fraction_bits))
    c.holds("A batch of {}, four million, does", BATCH / VANISHING)
    c.given("the question's scale", "scale of 2^{-16} does to a batch of 64",
            "multiplied by 2^{16}")  # fmt: skip
    early = gradients(network.initial(SMALL))
    c.holds("turns {} % of the gradients into 0",
            about(100 * (early * VANISHING <= GONE).mean(), 0.02))  # fmt: skip
    c.given("what FP16 makes of them", "of the gradients into 0")
    c.holds("and {} % of them", about(100 * (g * VANISHING <= GONE).mean(), 0.02))
    c.holds("it knows {} % of the test", about(100 * known(trained()), 0.02))
    c.at("sweep-read")
    c.holds("and knows {} %.", about(100 * known(trained("float16", 2.0**-20)), 0.05))
    c.given("a digit", "taken for a 0")
    c.holds("which {} of them are", about((digits.load()[1].labels == 0).mean(), 0.05))
    c.holds("above {} becomes infinite", HALF.largest)
    c.given("the hook's case", "a batch of 64 needs")


def a_steps_time(c: Claims) -> None:
    """Section 4."""
    one, more = a_step(), a_step(512)
    c.at("profile-read")
    longest = [launch(name) for name in ("forward 2", "forward 3", "inputs 2")]
    c.tested("test_the_longest_launches_have_few_blocks", "more than half of the step",
             "forward 2, forward 3 and inputs 2 take")  # fmt: skip
    c.given("launches' names", "forward 3 has", "than forward 2 and")
    c.holds("have {}, {} and {} blocks, for {} SMs", *(x.blocks for x in longest), GPU.sms)
    two, three = longest[0].problem, longest[1].problem
    c.holds("has {} times less work", two.flops / three.flops)
    assert two.k == three.k
    c.holds("same {} products along k", two.k)
    c.holds("predictions, {} µs, is {} % above the step's {}.", 1e6 * one.predicted,
            100 * (one.predicted / one.seconds - 1), 1e6 * one.seconds)  # fmt: skip
    first = launch("forward 1")
    assert 1.45 < first.predicted / first.seconds < 1.55
    c.given("launches' names", "and forward 1 by")
    c.asserted("by half.")
    errors = {x.name: x.predicted / x.seconds - 1 for x in one.launches}
    assert sum(abs(error) <= 0.05 for error in errors.values()) == 6
    c.asserted("Six launches are right within 5 %")
    slow = sorted(error for error in errors.values() if error > 0.1)
    assert all(launch(name).problem.k <= 64 for name, error in errors.items() if error > 0.1)
    assert len(slow) == 4
    c.asserted("Four products with")
    c.holds("by {} % or more", 100 * slow[0])
    c.given("the question", "512 images in place of 64")
    c.at("batch-read")
    c.tested("test_forward_a_larger_batch_costs_nothing", "a batch of 512 costs nothing more",
             "eight times as many blocks")  # fmt: skip
    c.holds("{} of the images costs {} of the time", BATCH / 512, one.seconds / more.seconds)
    c.holds("{} launches in place of {}.", len(a_step(fused=False).launches), len(one.launches))
    c.given("the question", "step of 64 images")
    c.at("fuse-read")
    c.given("launches' names", "forward 2 has", "inputs 2 with its mask")
    plain = a_step(fused=False).launches
    names = {x.name for x in one.launches}
    gone = [1e6 * x.seconds for x in plain if x.name not in names]
    c.holds("{} launches that are gone took {} µs or more each, {} µs together", len(gone),
            min(gone), sum(gone))  # fmt: skip
    takes = [1e6 * sum(x.seconds for x in step if x.problem) for step in (one.launches, plain)]
    c.holds("now take {} µs in place of {}", *takes)
    c.holds("{} of the gain", about((takes[0] - takes[1]) / sum(gone)))
    # Timed by hand on 2026-11-26, on an H100 SXM5 80 GB, beside `dense` in the same run: the
    # same kernel with the load of each element of D right before the store of its element of C.
    c.given("a run by hand, 2026-11-26", "between two stores",
            "115.2 µs in place of 111.4, where 125.6 and 118.8 were predicted",
            "took 20.8 µs in place of 17.8", "forward were 2 % faster")  # fmt: skip
    c.holds("the step {} % longer", 100 * (115.2 / 111.4 - 1))
    c.holds("has {} tiles and a k of {}.", launch("forward 2").blocks, two.k)
    c.given("chapter 10's", "a second launch")
    split = parts("forward 2").parts.tiling.split
    c.holds("With {} parts of k all {} blocks", split, split * launch("forward 2").blocks)
    c.at("split-read")
    c.given("launches' names", "forward 3, a tile", "weights 2 has")
    third, weights = parts("forward 3"), parts("weights 2")
    c.holds("a tile with {} rows, gains {} times with {} parts", third.problem.m,
            third.whole.seconds / third.parts.seconds, third.parts.tiling.split)  # fmt: skip
    assert weights.parts.tiling.split == 1
    c.holds("has {} tiles and a k of {}, and", launch("weights 2").blocks, weights.problem.k)
    c.at("apply-text")
    c.given("a launch's name", "inputs 3, with")
    c.holds("a k of {}, has", launch("inputs 3").problem.k)
    c.at("apply-read")
    kinds = {x.name: "product" if x.problem else "each" for x in plain}
    kinds |= {name: "sum" for name in kinds if name.split()[0] in ("loss", "biases")}
    step = [(kinds[x.name], x.blocks, 1e6 * x.seconds) for x in plain]
    total = sum(time for *_, time in step)
    fixed = 1e6 * launch("inputs 3", fused=False).seconds
    by_epilogues, by_parts = fused(step), in_parts(step, GPU.sms, fixed)
    c.holds("save {} µs of {}, cutting k saves {}, and both together {}", total - by_epilogues,
            total, total - by_parts, 2 * total - by_epilogues - by_parts)  # fmt: skip
    whole = 1e6 * a_step(fused=False).seconds
    c.holds("took {} µs: {} lie between", whole, whole - total)
    c.holds("leave {} µs, not your {}, because", 1e6 * sum(x.seconds for x in one.launches),
            by_epilogues)  # fmt: skip
    products = sum(x.problem is not None for x in one.launches)
    c.holds("products {} µs longer: about {} µs in each of the {}.", takes[0] - takes[1],
            about((takes[0] - takes[1]) / products, 0.2), products)  # fmt: skip


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
    c.holds("by {} small products", MODEL.heads)
    c.at("block-text")
    c.given("the block's layers", "five layers")
    c.holds("where {}, the", MODEL.tokens)
    c.at("block-read")
    passes = sum(transformer.predict(w, GPU) for w in transformer.passes(MODEL))
    bound, seen = of_block(1.0, "") + passes, TIMES.steps[0].seconds
    c.holds("give {} ms, {} of the {} that", 1e3 * bound, bound / seen, 1e3 * seen)
    c.holds("reaches {} % of the FP32 peak", 100 * LIBRARY)
    c.tested("test_what_the_sizes_say_of_a_blocks_time", "within 5 %", "nearly twice as long",
             "almost twice as long as its bytes")  # fmt: skip
    c.holds("{} ms lie between", 1e3 * (seen - sum(k.seconds for k in TIMES.steps[0].kernels)))
    scores = next(w.product for w in transformer.products(MODEL) if w.name == "attention, QKᵀ")
    one = scores.gemm
    c.holds("are {} small ones, {}×{}×{}, and", scores.count, one.m, one.n, one.k)
    c.at("longest-read")
    copies = [k for k in TIMES.steps[0].kernels if k.name.startswith("Memcpy")]
    copies += [max((k for k in TIMES.steps[0].kernels if "direct_copy" in k.name),
                   key=lambda k: k.seconds)]  # fmt: skip
    of_heads, of_mask = (
        1e3 * sum(w.bytes for w in transformer.passes(MODEL) if w.name.startswith(name))
        / GPU.dram_bandwidth for name in ("heads", "mask")
    )  # fmt: skip
    c.holds("has {} ms of bytes", of_heads)
    c.holds("copies take {} ms.", 1e3 * sum(k.seconds for k in copies))
    masked = next(k.seconds for k in TIMES.steps[0].kernels if "masked_fill" in k.name)
    c.holds("has {} ms for the mask, which takes {}.", of_mask, 1e3 * masked)
    c.holds("a table of {} rows", MODEL.vocabulary)
    c.given("what the matrix holds", "a matrix of 0 and 1")
    elsewhere = {k.name for k in TIMES.steps[0].kernels}
    (taken,) = (k for k in TIMES.steps[1].kernels
                if "index_kernel" in k.name and k.name not in elsewhere)  # fmt: skip
    c.holds("the lookup takes {} µs", 1e6 * taken.seconds)
    c.holds("adds {} rows of {} numbers to those {} rows", MODEL.tokens, MODEL.width,
            MODEL.vocabulary)  # fmt: skip
    c.tested("test_some_characters_come_a_thousand_times", "a thousand times")
    c.at("lookup-read")
    c.holds("{} times as many additions", MODEL.vocabulary)
    c.holds("loss of {} is", TIMES.steps[0].losses[-1])
    c.holds("among {} has {}", MODEL.vocabulary, np.log(MODEL.vocabulary))
    c.at("recap")
    c.given("section 1's", "three products", "k in the third")
    c.given("what an epilogue replaces", "two passes")
    c.given("section 6's question", "six operations")
    c.holds("above {}, halve", HALF.largest)
    c.given("a question", "twice as many blocks")
    c.at("recap-next")
    c.given("the articles' years", "2018", "2017", "1998")
