"""Answers to the questions of chapter 11, number formats."""

import numpy as np

from gemmlab import numerics
from gemmlab.course.guesses import Answer
from gemmlab.numerics import FORMATS, TENSOR_CORES

HALF, BRAIN, SINGLE = (FORMATS[name] for name in ("float16", "bfloat16", "float32"))
EIGHT = FORMATS["float8_e4m3fn"]


def largest() -> Answer:
    """The largest float16."""
    return Answer(
        HALF.largest,
        f"The largest exponent field that is not reserved stands for $2^{{{HALF.emax}}}$, and the "
        "largest significand is $2 - 2^{-10}$.",
        {
            2.0 ** (HALF.emax + 1): "That is one gap more: the significand stays below 2.",
            2.0**HALF.emax: "You left the fraction out; it can nearly double the number.",
            2 * HALF.largest: "You used the exponent field whose bits are all 1; it means infinity "
            "or NaN.",
            2048.0: "That is where whole numbers begin to be missing, not where numbers end.",
        },
    )


def whole() -> Answer:
    """The whole number up to which bfloat16 has all of them."""
    last = 2**BRAIN.precision
    return Answer(
        last,
        f"{BRAIN.fraction_bits} fraction bits and the leading 1 are {BRAIN.precision} bits. From "
        f"{last} on the numbers are 2 apart.",
        {
            2**BRAIN.fraction_bits: "You left out the leading 1, which is not stored but counts.",
            last - 1: f"The next one, {last}, is a power of two, and it is there.",
            2**HALF.precision: "That is float16, with ten fraction bits.",
            2**16: "You counted all 16 bits; eight of them are the exponent.",
        },
    )


def mean() -> Answer:
    """The mean error of RZ to bfloat16 in [1, 2), in gaps."""
    x = np.random.default_rng(0).uniform(1, 2, 10**6)
    errors = (numerics.round_to(x, "bfloat16", "RZ") - x) / numerics.ulp(1.0, "bfloat16")
    return Answer(
        float(errors.mean()),
        "What is cut off is between 0 and 1 gap, half a gap on average, and never makes a positive "
        "number larger.",
        {
            0: "Errors cancel if they have both signs; these have one.",
            -1: "That is the largest error, not the mean.",
            0.5: "Look at the sign: cutting makes positive numbers smaller.",
            -0.25: "That is the mean *size* of the errors of RN, whose signs cancel.",
        },
        within=0.02,
    )


def bits() -> Answer:
    """Significant bits of a product of two float16 numbers, at most."""
    p = HALF.precision
    return Answer(
        2 * p,
        f"Two whole numbers below $2^{{{p}}}$ have a product below $2^{{{2 * p}}}$.",
        {
            p: "That is what rounding to float16 would leave of it.",
            2 * HALF.fraction_bits: "You left out the leading 1 of each factor.",
            2 * p - 1: "That holds for the smallest significands; 1.5 · 1.5 = 2.25 needs one more.",
            SINGLE.precision: "That is the room that a float32 offers.",
        },
    )


def _over_2048(results: float) -> float:
    """A result minus 2048, in the gaps of float32 from 2048 on."""
    return (float(results) - 2048) * 2**12


def _two_products() -> tuple[np.ndarray, np.ndarray, np.float32]:
    return np.float16([1, 1]), np.float16([2**-13, 2**-13]), np.float32(2048)


def cuda() -> Answer:
    """2048 + 2⁻¹³ + 2⁻¹³ on CUDA cores, over 2048, in gaps."""
    return Answer(
        _over_2048(numerics.fma_chain(*_two_products())),
        "The first product is half a gap. That is a tie, and ties go to the even neighbour, 2048, "
        "so neither of the two additions changes the sum.",
        {
            1: "That is the exact result; CUDA cores round after each product.",
            2: "A tie goes to the even neighbour, not always up.",
            0.5: "Half a gap is not a float32: the sum is rounded after each product.",
        },
    )


def hopper() -> Answer:
    """2048 + 2⁻¹³ + 2⁻¹³ on a Hopper Tensor Core, over 2048, in gaps."""
    return Answer(
        _over_2048(numerics.fused_dot_add(*_two_products(), arch="sm_90")),
        "Both products are added before anything is rounded, and together they are a whole gap.",
        {
            0: "You rounded after each product; a Tensor Core adds a whole block first.",
            2: "Neither product is rounded up; they are added as they are.",
            0.5: "Half a gap is not a float32, and both products count.",
        },
    )


def _positive() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(2)
    a, b = (np.abs(rng.standard_normal((64, 4096))).astype(np.float16) for _ in range(2))
    return a, b


def growth() -> Answer:
    """Largest error of a Tensor Core over that of CUDA cores: 64 positive sums of 4096 products."""
    a, b = _positive()
    exact = (a.astype(np.float64) * b).sum(axis=1)
    worst = {
        way: np.abs(numerics.running_sums(a, b, [4096], way)[0] / exact - 1).max()
        for way in ("inside", "cuda")
    }
    bound = [numerics.accumulation(way).bound(4096) for way in ("inside", "cuda")]
    return Answer(
        float(worst["inside"] / worst["cuda"]),
        "CUDA cores round up as often as down, and most of it cancels. A Tensor Core only cuts, so "
        "that all its errors have one sign.",
        {
            1: "Both keep 24 bits of the sum, but one rounds to nearest and the other cuts.",
            1 / 16: "You counted roundings, one for sixteen products; what counts is their sign.",
            bound[0] / bound[1]: "That is the ratio of the bounds, and bounds know no signs.",
            4: "You compared one rounding with another: thousands of them add up.",
        },
        within=0.25,
    )


def share() -> Answer:
    """Mean bias of the cut over that of the last rounding, for the sums of `growth`, predicted."""
    a, b = _positive()
    products = a.astype(np.float64) * b
    ends = np.cumsum(products, axis=1)[:, 15::16]
    gap = numerics.ulp(ends, "float32")
    unit = gap * 2.0 ** (SINGLE.fraction_bits - TENSOR_CORES["sm_90"].fraction_bits)
    cut = (16 * unit[:, :-1] / 2).sum(axis=1) / ends[:, -1]
    last = ((gap - unit) / 2).sum(axis=1) / ends[:, -1]
    return Answer(
        float(cut.mean() / last.mean()),
        "Sixteen products lose half a unit each, eight units in a block. The rounding loses 0, 1, "
        "2 or 3 units of a gap of four, 1.5 on average.",
        {
            1: "Both cut, but one of them cuts sixteen times in a block.",
            16: "You counted how often each cuts; a gap is four units, so the rounding cuts more.",
            0.25: "You compared a unit with a gap; sixteen products are cut to units.",
        },
        within=0.15,
    )


def _in_bytes() -> tuple[np.ndarray, np.ndarray]:
    """Positive numbers, and what E4M3 makes of them: (2, 64, 4096) each."""
    x = np.abs(np.random.default_rng(3).standard_normal((2, 64, 4096)))
    return x, numerics.round_to(x, EIGHT.name)


def eight() -> Answer:
    """How much too small sums of 4096 positive products of E4M3 are on a Hopper, in percent."""
    x, (a, b) = _in_bytes()
    exact = (a.astype(np.float64) * b).sum(axis=1)
    kept = numerics.fused_dot_add(a, b, 0, dtype=EIGHT.name)
    rounded = np.abs(exact / (x[0] * x[1]).sum(axis=1) - 1).mean()
    return Answer(
        100 * float((1 - kept / exact).mean()),
        "In a block 32 products are cut to whole units, $2^{-13}$ of the sum so far, half a unit "
        "each in the mean. The chain has 128 blocks, and all of them cut in one direction.",
        {
            0: "A block loses little, but 128 of them lose in one direction.",
            100 * float(rounded): "That is what rounding the operands costs: errors of both signs.",
            100 * 2.0**-13: "That is one unit of one block; 32 products are cut in each of 128.",
            100 * numerics.tensor_core_bound(4096, EIGHT.name): "That is the bound, in which every "
            "cut takes a whole unit of all that was summed.",
        },
        within=0.25,
    )


def overflow() -> Answer:
    """The smallest number that becomes infinite in float16, to nearest."""
    gap = float(numerics.ulp(HALF.largest, "float16"))
    return Answer(
        HALF.largest + gap / 2,
        f"The next number would be {HALF.largest + gap:.0f}, a gap of {gap:.0f} further. From "
        "halfway on infinity is the nearest.",
        {
            HALF.largest: "That is the largest number, and a number it stays.",
            HALF.largest + 1: f"Numbers a little beyond are nearer to {HALF.largest:.0f} than to "
            "what follows.",
            HALF.largest + gap: "That is the next number that the format would have; rounding goes "
            "there from halfway on.",
        },
    )


def finite() -> Answer:
    """How many of the six results of the section on ranges are numbers."""
    return Answer(
        float(sum(np.isfinite(list(_at_the_ends().values())))),
        "b, d and e are numbers. Conversion to float16 and a float16 output can overflow, and so "
        "can the final sum; products inside a Tensor Core cannot.",
        {
            **dict.fromkeys(
                (1, 2), "Look at b and e again: inside, a product has room beyond either format."
            ),
            **dict.fromkeys(
                (4, 5, 6), "Look at a, c and f again: which of them end beyond their format?"
            ),
        },
    )


def _at_the_ends() -> dict[str, float]:
    """The results a to f of the section on ranges, on a Hopper Tensor Core."""
    far = [2.0**100, 2.0**100]
    return {
        "a": _tensor([70000], [1], "float16"),
        "b": _tensor([60000], [60000], "float16"),
        "c": _tensor([60000, 60000], [1, 1], "float16", "float16"),
        "d": _tensor([1e-8], [10000], "float16"),
        "e": _tensor(far, [2.0**90, -(2.0**90)], "bfloat16"),
        "f": _tensor(far, [2.0**27, 2.0**27], "bfloat16"),
    }


def _tensor(a: list[float], b: list[float], dtype: str, out: str = "float32") -> float:
    rounded = (numerics.round_to(x, dtype) for x in (a, b))
    return float(numerics.fused_dot_add(*rounded, 0, dtype=dtype, out_dtype=out))
