"""What each number in chapter 11's sentences must be."""

import math

import numpy as np

from gemmlab import numerics
from gemmlab.course.ch11_number_formats import guesses
from gemmlab.numerics import FORMATS, TENSOR_CORES, round_to, ulp
from tests.course.sentences import Claims, about

HALF, BRAIN, SINGLE, TF32 = (FORMATS[name] for name in ("float16", "bfloat16", "float32", "tf32"))
EIGHT, WIDE = FORMATS["float8_e4m3fn"], FORMATS["float8_e5m2"]
VOLTA, HOPPER = TENSOR_CORES["sm_70"], TENSOR_CORES["sm_90"]


def errors_of_bytes() -> tuple[float, float, float]:
    """Mean errors in percent: of rounding operands, of sums inside, and of sums of 128 products."""
    x, (a, b) = guesses._in_bytes()
    exact = (a.astype(float) * b).sum(axis=1)
    inside = numerics.fused_dot_add(a, b, 0, dtype=EIGHT.name)
    outside = np.zeros(len(a), np.float32)
    for p in range(0, 4096, 128):
        part = slice(p, p + 128)
        outside += numerics.fused_dot_add(a[:, part], b[:, part], 0, dtype=EIGHT.name)
    right = (x[0] * x[1]).sum(axis=1), exact, exact
    sums = exact, inside, outside
    return tuple(100 * float((s / r - 1).mean()) for s, r in zip(sums, right, strict=True))


def claims(c: Claims) -> None:
    """The chapter's sentences in their order."""
    c.at("title")
    kept = float(np.cumsum(np.ones(4096, np.float16), dtype=np.float16)[-1])
    assert float(np.float16(2048) + np.float16(1)) == kept
    c.holds(
        "Add 1 to 2048 in float16, and the result is {}. Do it 2048 times: still {}.", kept, kept
    )
    c.given("a case", "adds to 1 is")
    c.at("fields")
    c.holds("do {} bits hold", 8 * HALF.bytes)
    c.given("the formula of a number", "#^{e-1} - 1", "leading 1", "p = f + 1", "all bits 1",
            "(T = 0)", "all bits 0", "E = 1:")  # fmt: skip
    c.holds("has e = {} and f = {}", HALF.exponent_bits, HALF.fraction_bits)
    c.at("guess-whole-text")
    c.holds("missing after {}", 2**HALF.precision)
    c.holds("the same {} bits, with e = {} and f = {}", 8 * BRAIN.bytes, BRAIN.exponent_bits,
            BRAIN.fraction_bits)  # fmt: skip
    c.at("formats-look")
    c.given("a definition", "is half the gap above 1")
    c.at("fields-read")
    c.given("two bytes of four", "upper half of")
    assert HALF.fraction_bits - BRAIN.fraction_bits == 3  # "three more"
    c.holds("TF32 has {} bits, has", 8 * TF32.bytes)
    c.holds("takes up {} bits", 8 * TF32.bytes)
    counts = 1 + TF32.exponent_bits + TF32.fraction_bits
    c.holds(
        "{} of them count; a Tensor Core does not read the other {}.",
        counts,
        8 * TF32.bytes - counts,
    )
    c.at("spacing-read")
    wide = {name: form.emax - form.emin + 1 for name, form in FORMATS.items()}
    c.holds("{} powers of two for float16", wide["float16"])
    assert min(wide[name] for name in ("bfloat16", "tf32", "float32")) == 254
    c.asserted("more than 250")
    c.at("rounding")
    c.given("a definition", "last bit is 0", "at most half a gap", "(1 + δ)")
    c.given(
        "the neighbours in float16", "2049 lies halfway between 2048 and 2050, so it goes to 2048"
    )
    assert np.spacing(np.float16(2048)) == 2
    c.given("a bound", "Twice the bound")
    c.given("the question's case", "between 1 and 2")
    c.at("mean-read")
    c.holds("by {} a gap", -guesses.mean().number)
    c.given("the explorer's cases", "0.1 in", "two rows", "0.00001 in float16", "0.0000001")
    c.holds("Round {}, which is 1 + 2^{-8}, to", 1 + 2.0**-8)
    c.given("the question", "Which two agree, and which two do")
    c.holds("for {}, 1 + 3 · 2^{-8}?", 1 + 3 * 2.0**-8)
    c.at("explorer-rounding-answers")
    c.tested("test_what_to_find_in_the_rounding_explorer", "begin with 11: more than half",
             "takes 1, whose", "last bit is 0", "two bits", "At 0.00001", "0.0000001",
             "field is 0")  # fmt: skip
    c.holds("1 + 2^{-8} lies halfway between 1 and 1 + {}", 2.0**-BRAIN.fraction_bits)
    c.given("the explorer's case", "1 + 3 · 2^{-8}")
    c.at("explorer-rounding-answers-next")
    c.given("two bytes of four", "upper half of")
    c.at("products")
    c.given("the question", "two float16")
    c.at("products-read")
    c.holds("for {} significant bits", SINGLE.precision)
    assert 2 * HALF.precision <= SINGLE.precision
    c.holds("bargain: {} the bytes", HALF.bytes / SINGLE.bytes)
    c.at("inside")
    c.holds("from 2048 on are {} apart", 2048 * 2.0**-SINGLE.fraction_bits)
    c.holds("Add two products of {}, half a gap", 2048 * 2.0**-SINGLE.fraction_bits / 2)
    c.given("the question's case", "c = 2048", "minus 2048")
    c.at("rules")
    c.given("a product of significands below 2", "|s| < 4")
    c.holds("1.5 · 1.5 = {} has exponent 0", 1.5 * 1.5)
    c.at("read-2048")
    c.holds("With c = 2048 the exponent E is {}", math.log2(2048))
    c.holds("keeps F = {} bits below it, so it cuts at {} and", VOLTA.fraction_bits,
            2.0 ** (11 - VOLTA.fraction_bits))  # fmt: skip
    c.holds(
        "Hopper keeps {}, cuts at {} and", HOPPER.fraction_bits, 2.0 ** (11 - HOPPER.fraction_bits)
    )
    c.at("alignment-read")
    c.given("F = 25 beside 23", "two bits")
    c.holds("sixteen products of three quarters of a unit each. Their sum is {} units", 16 * 3 / 4)
    c.given("a case", "below the cut is 1", "1 - ε")
    c.at("growth")
    c.given("the question's case", "k = 4096")
    c.given("the formula above", "K + 1", "1 - k u")
    c.holds("less than {}.", 2.0**-SINGLE.fraction_bits)
    c.holds("with u = {}", SINGLE.unit_roundoff)
    c.holds("once for {} products", HOPPER.block["float16"])
    cuda, core = (numerics.accumulation(way) for way in ("cuda", "inside"))
    c.holds("by {}.", about(1 - core.bound(4096) / cuda.bound(4096)))
    c.given("the question's case", "64 dot products")
    c.at("growth-read")
    c.given("the explorer", "64 errors", "k = 16")
    c.at("explorer-dots-answers-next")
    c.holds("is {} of a float32 gap", 2.0 ** (SINGLE.fraction_bits - HOPPER.fraction_bits))
    c.holds("the {} products is cut", HOPPER.block["float16"])
    c.at("bias-read")
    c.given("a bit", "happen to be 0")
    c.tested("test_the_predicted_bias_is_slightly_too_large", "few hundred times 2^{-24}")
    c.holds(
        "up to {} times {} before", HALF.unit_roundoff / SINGLE.unit_roundoff, SINGLE.unit_roundoff
    )
    c.at("range-cases")
    c.given("the question's cases, of the cell range-end", "70000, rounded", "times 1",
            "60000 · 60000", "60000 · 1 + 60000 · 1", "0.00000001", "times 10000",
            "2^{100} · 2^{90} - 2^{100} · 2^{90}",
            "2^{100} · 2^{27} + 2^{100} · 2^{27}")  # fmt: skip
    c.at("range-read")
    c.holds("exponents from -{} to {}:", -2 * math.log2(HALF.smallest),
            math.floor(math.log2(HALF.largest**2)))  # fmt: skip
    c.holds("from {} down", HALF.smallest / 2)
    c.at("bytes")
    c.given("H100 whitepaper v1.04, table 2", "twice as fast as halves")
    c.given("the format", "four exponent bits and three fraction bits")
    c.holds("makes its largest element {}", EIGHT.largest)
    c.holds("ends at {}", EIGHT.largest)
    c.holds("is {} in place of {}, a block has {} products, and the result has {}",
            HOPPER.kept(EIGHT.name), HOPPER.fraction_bits, HOPPER.block[EIGHT.name],
            HOPPER.result_bits(EIGHT.name, "float32"))  # fmt: skip
    c.tested("test_what_was_compared_of_bytes", "6,815,744 random sums")
    c.given("the question's case", "sums 4096")
    c.at("bytes-look")
    c.given("the cell below", "128 products each", "three errors")
    c.at("bytes-read")
    rounded, inside, outside = errors_of_bytes()
    assert abs(outside) < abs(rounded) < 0.2
    c.holds("{} times as much", about(inside / rounded))
    c.given("the rung's stage", "sum 128 products")
    c.tested("test_times_of_bytes_are_those_recorded", "8192×8192×8192 takes it 0.81 ms",
             "0.76 ms without", "1.45 ms")  # fmt: skip
    c.at("bytes-explorer")
    c.given("the explorer's cases", "around 300", "make of 500", "the three ways")
    c.at("explorer-bytes-answers")
    c.holds("{} and {}.", *(float(ulp(300, name)) for name in (EIGHT.name, WIDE.name)))
    assert EIGHT.fraction_bits - WIDE.fraction_bits == 1  # "one bit less"
    c.holds("goes on to {}", WIDE.largest)
    c.holds("stays at {}.", float(round_to(500, EIGHT.name, "RZ")))
    c.holds("gives {}, too", float(round_to(500, EIGHT.name, saturate=True)))
    c.tested("test_what_to_find_in_the_explorers_of_bytes", "largest of 64 errors")
    c.at("check")
    c.given("a question", "10⁻⁶ to 10⁶ with three decimal digits")
    c.holds(
        "ends at {} and has subnormals below {};", HALF.largest, about(HALF.smallest_normal, 0.02)
    )
    assert 2 < BRAIN.precision * math.log10(2) < 2.5
    c.asserted("two digits")
    c.holds("price of {} bits", 8 * TF32.bytes)
    c.at("exercises")
    c.holds("have {} significant bits", HALF.precision)
    c.at("summary")
    c.holds("loses {} a gap", -guesses.mean().number)
    c.holds("of {} or {} bits", 8 * HALF.bytes, counts)
    c.given("high and low", "two float16")
