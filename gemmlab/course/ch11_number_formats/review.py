"""Review questions of chapter 11, with sums and intensities of chapters 1 and 2."""

from random import Random

from gemmlab.course.guesses import Answer
from gemmlab.course.review import Question, mixes
from gemmlab.device import device
from gemmlab.formats import FORMATS, number_format, round_to
from gemmlab.model.limiter import attainable
from gemmlab.problem import Gemm


@mixes("01", read="11.2 1.7")
def sum_that_stands_still(draw: Random) -> Question:
    """Where a running sum of ones ends."""
    form, step = FORMATS[draw.choice(("float16", "bfloat16"))], 2 ** draw.randint(0, 3)
    k, ends = 20_000, step * 2**form.precision
    return Question(
        f"A row of A and a column of B have products of {step}, k = {k:,} of them, and the sum is "
        f"kept in {form.name}, which has {form.fraction_bits} bits of fraction. Each addition is "
        "rounded to nearest, ties to even. Where does the sum end?",
        Answer(
            ends,
            f"From {ends:,} on numbers lie {2 * step} apart, and {ends:,} + {step} is a tie, which "
            "goes back.",
            {
                k * step: "Sooner or later a product is half a gap, and the sum stands still.",
                ends // 2: "There the gap is as wide as a product, which still counts.",
                2 * ends: "There a product is a quarter of a gap; half a gap is enough.",
            },
        ),
        "",
    )


@mixes("01", read="11.6 1.2")
def longest_finite(draw: Random) -> Question:
    """The longest k whose sum float16 can hold."""
    x = draw.choice((4, 8, 12, 16, 20, 24, 32))
    k = int(65519 // x**2)
    assert float(round_to(k * x**2, "float16")) < float("inf")
    return Question(
        f"All elements of A and B are {x}. The sums are exact, and C is stored in float16, whose "
        "largest number is 65504 with a gap of 32. Up to which k is C finite?",
        Answer(
            k,
            f"C is {x}²·k, and from 65520 on it is rounded to infinity.",
            {
                65504 // x: "A product is x·x.",
                int(65520 // x): "A product is x·x.",
                2048: "Up to there float16 counts in ones; that is not where it ends.",
                2 * k: "float16 ends at 65504, not at 131008.",
            },
        ),
        "",
    )


@mixes("02", read="11.1 2.4")
def narrower(draw: Random) -> Question:
    """What halving an element's bytes gains under the roof."""
    gpu, n = device("h200"), draw.choice((8, 16, 24, 48, 96))
    size = 1024 * draw.randint(4, 10)
    speeds = {}
    for dtype in ("float32", "float16"):
        p = Gemm(size, n, size, dtype=dtype)
        speeds[dtype] = float(attainable(gpu, dtype, p.intensity)) / p.flops
    peaks = [gpu.peak_of(d) for d in ("float32", "float16")]
    ratio = speeds["float16"] / speeds["float32"]
    return Question(
        f"{size}×{n}×{size} goes from float32 to float16, on a GPU with {peaks[0] / 1e12:.0f} and "
        f"{peaks[1] / 1e12:.0f} TFLOP/s and {gpu.dram_bandwidth / 1e12:.1f} TB/s. Under the roof, "
        "how many times as fast is it at most?",
        Answer(
            ratio,
            "Each number takes "
            f"{number_format('float16').bytes} bytes in place of {number_format('float32').bytes}; "
            "the longer of the two clocks counts, before and after.",
            {
                peaks[1] / peaks[0]: "So it is where arithmetic limits both.",
                2 * peaks[1] / peaks[0]: "Bytes and operations take their time side by side.",
                1: "Half of the bytes take half of the time, at least where DRAM limits.",
                4: "The bytes are halved, not quartered.",
            },
            within=0.02,
        ),
        "times",
    )
