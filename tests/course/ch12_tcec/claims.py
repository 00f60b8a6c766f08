"""What each number in chapter 12's sentences must be."""

from gemmlab import kernels, numerics, records
from gemmlab.model.literature import published
from gemmlab.model.register_blocking import split_in_registers, warp_product
from gemmlab.numerics import FORMATS, POLICIES, TENSOR_CORES, Policy
from tests.course.ch12_tcec import test_chapter as chapter
from tests.course.ch12_tcec.test_chapter import A100, GPU, SINGLE, error
from tests.course.computed import V100, seconds
from tests.course.sentences import Claims, about

HALF, FLOAT = FORMATS["float16"], FORMATS["float32"]
SPLIT, LIBRARY, REGISTERS = kernels.tcec_split, kernels.cublas, kernels.tcec_registers


def claims(c: Claims) -> None:
    """The chapter's sentences in their order."""
    c.anywhere("cases that the chapter's cells compute", "k = 1024", "k = 4096", "n = 8192",
               "32×32×32", "64×64×64", "128×128×64", "1024×1024×k", "k = 256", "k = 64", "c = 0",
               "n×n×n")  # fmt: skip
    c.anywhere("parts of a sum of products: x_h y_h, and two corrections", "Three products",
               "three products", "three FP16 products")  # fmt: skip
    c.at("title")
    c.holds("numbers of {} bits", HALF.precision)
    library, ours = (records.find(k, SINGLE) for k in (LIBRARY, SPLIT))
    c.holds("product {} times as fast as cuBLAS, with {} of its error",
            about(library.seconds / ours.seconds, 0.06),
            about(ours.error / library.error, 0.15))  # fmt: skip
    c.at("question")
    c.holds("units for {} bits return {}, and more exactly than units for {}", HALF.precision,
            FLOAT.precision, FLOAT.precision)  # fmt: skip
    c.given("the exercise", "a third of the bytes")
    c.at("rounding")
    c.holds("lose: {} of their {} bits", FLOAT.precision - HALF.precision, FLOAT.precision)
    c.given("A and B", "two operands")
    c.at("rounded-read")
    c.holds("Who has {} bits, and needs {}", HALF.precision, FLOAT.precision)
    c.given("high and low", "in two numbers", "two such sums has four terms")
    c.holds("the two have {} bits", 2 * HALF.precision)
    c.given("the article's year", "2018")
    c.at("inside")
    c.holds("takes {} instructions, {} steps of {} with", 1024 // 16 * 4, 1024 // 16, 16)
    c.given("three products and the low parts' own", "four products each")
    c.at("inside-read")
    c.given("the article's year", "2022")
    c.holds("its {} products", TENSOR_CORES["sm_90"].block["float16"])
    c.holds("is at most {} of", 2.0**-HALF.precision)
    c.holds("number is {}, and", HALF.smallest_normal)
    c.holds("keep {} bits", 2 * HALF.precision)
    c.at("scale")
    scale = Policy().scale
    c.holds("store {} x_l, which is as large as x_h, and divide by {} at", scale, scale)
    c.holds("divided by {}.", scale)
    c.given("a question", "Four products take four times the work")
    c.at("formula")
    c.given("the steps of section 3", "three steps")
    c.at("after-text")
    three, units = (error(p, 1024, "positive") for p in (Policy(), POLICIES["simt"]))
    c.holds("products, and {} of the error", about(three / units, 0.2))
    c.holds("each of 1024 products, the corrected product once for {}", 16)
    c.at("ex1-text")
    c.given("the exercise", "two numbers", "times 2048")
    c.at("flush")
    c.given(
        "the question's case", "two instructions", "half the work", "Once in 64", "1, 2, 4, 8, … 64"
    )
    c.at("flush-read")
    c.tested("test_at_32_either_sign_is_better_and_positive_is_not", "At 32")
    c.at("feeds")
    c.given("three products", "three times the multiplications, and twice")
    c.given("high and low", "two parts")
    c.given("the article's year", "2023")
    c.at("registers")
    plain = warp_product(64, 64, 64)
    assert plain.registers == 64**2 / 16
    c.asserted("n^#/16 registers")
    c.holds("Beyond {} registers", A100.registers_per_thread)
    c.holds("takes {} for fragments", split_in_registers(64, 64, 64).registers)
    c.given("formats of two and of four bytes", "in two bytes", "in four are")
    c.given("the operands", "all four matrices")
    c.at("occupancy-read")
    old, new = (d.peak_of("float16") / d.shared_bandwidth for d in (V100, A100))
    c.holds("from {} to {} FLOP between", old, new)
    c.at("ex3-read")
    c.tested("test_by_the_map_a_step_takes_48_wavefronts",
             "twelve loads of single words take 48 wavefronts", "four at a time")  # fmt: skip
    c.holds("loads of 16 bytes take {}, as few", 48 / 4)
    c.given("a wide load", "Three loads", "16 bytes")
    c.holds("adds all {} products", TENSOR_CORES["sm_90"].block["float16"])
    c.given("their names", "Two kernels")
    c.at("two-why")
    c.tested("test_what_two_kernels_split_and_how_often", "four warps", "split four times")
    c.at("wgmma")
    c.holds("= {} of k", SPLIT.default.block[2])
    c.at("break-text")
    c.holds(
        "stage is {} of k, {} instructions", SPLIT.default.block[2], SPLIT.default.block[2] / 16
    )
    c.at("break-read")
    c.given("three products", "÷ 3")
    c.at("fused")
    c.holds("serves {} bytes a cycle", GPU.shared_bytes_per_cycle_per_sm)
    c.at("fused-read")
    c.given("guess 12.memory", "a quarter of")
    c.tested("test_what_the_fused_kernel_asks_of_shared_memory", "need 1,932 cycles", "only 1,536")
    c.given("a wide load", "16 bytes")
    c.at("range-text")
    c.given("high and low", "Two float16")
    c.holds("have {} bits", 2 * HALF.precision)
    c.at("range-read")
    c.holds("Above {} the", HALF.largest)
    c.holds("Below {} the", HALF.smallest_normal)
    c.given("high and low", "Two TF32 numbers")
    c.holds("at {} the speed", GPU.peak_of("tf32") / GPU.peak_of("float16"))
    c.given("the article's year", "2022")
    c.at("explore")
    c.given("the explorer", "4, 2 and 1", "products to 1", "2^0", "2^{-8}")
    c.at("explore-answers")
    c.tested("test_what_to_find_in_the_explorer", "After 4 instructions")
    lows = {e: numerics.split_range("float16", 2.0**e) for e in range(8, 17)}
    c.holds("From {} on the lower end", 2.0 ** min(e for e in lows if lows[e][0] == lows[16][0]))
    c.holds("falls from {} on", 2.0 ** min(e for e in lows if lows[e][1] < HALF.largest))
    c.at("policies")
    c.given("the decisions", "three decisions", "two numbers for one")
    c.holds("has {} such kernels", len(kernels.POLICIES))
    c.at("policies-read")
    c.tested("test_no_loop_with_fp16_has_another_bound", "half of its bound")
    c.holds("with {} the rate", GPU.peak_of("tf32") / GPU.peak_of("float16"))
    c.at("batched-text")
    batched = [p for p in chapter.matmul_times().products if p.batch > 1]
    c.holds("one: {} products of", batched[0].batch)
    c.at("batched-read")
    passes = sorted(p.k for p in batched if p.flops / p.gpu > GPU.peak_of("float32"))
    assert passes[0] == 256
    first, last = (next(p for p in batched if p.k == k) for k in (64, 4096))
    library_errors = [p.cublas_error for p in batched]
    assert max(library_errors) < 1.2 * min(library_errors)  # "stays much the same"
    c.holds("falls to about {}, while cuBLAS's", about(last.error / first.error, 0.1))
    best = published()["tcec_float16_batched"].value
    c.holds("reaches {} TFLOP/s on an A100, {} times", best / 1e12, best / A100.peak_of("float32"))
    c.at("claims-read")
    peak = GPU.peak_of("float32")
    by_tma = kernels.get("tcec_mma_tma")
    c.holds("smaller: {} for tcec_registers, and {} where",
            SINGLE.flops / seconds(REGISTERS, SINGLE) / peak,
            SINGLE.flops / seconds(by_tma, SINGLE) / peak)  # fmt: skip
    c.tested("test_where_few_rows_err_two_to_four_times_as_much", "four times as much")
    c.given("high and low", "Two float16", "two parts", "Three parts make nine products")
    c.given("factors", "power of two", "powers of two")
    c.holds("carry {} bits of a float32", 2 * HALF.precision)
    c.holds("above {}:", HALF.largest)
    brain = FORMATS["bfloat16"].precision
    c.holds(
        "It has {} bits, so that two parts carry {} and three carry {}.",
        brain,
        2 * brain,
        3 * brain,
    )
    c.given("a question", "up to 2000")
    c.holds("numbers up to {} have", 2**HALF.precision)
    c.at("claims-read-next")
    c.given("the articles' years", "2022", "2023", "2018")
