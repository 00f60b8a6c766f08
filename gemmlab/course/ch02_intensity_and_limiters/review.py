"""Review questions of chapter 02, with the counts of chapter 1."""

import math
from random import Random

from gemmlab.course.guesses import Answer
from gemmlab.course.review import Question, mixes
from gemmlab.device import device
from gemmlab.model.layers import linear
from gemmlab.problem import Gemm

GPUS = ("v100", "a100_80gb", "h200")


@mixes("01", read="2.2 1.2")
def fused(draw: Random) -> Question:
    """Bytes with a rectifier in a launch of its own, over those with it fused."""
    m, part = 1024 * draw.randint(1, 4), draw.choice((1, 4, 8, 16))
    p = Gemm(m, m, m // part, dtype="float16")
    c = p.array_bytes[2]
    return Question(
        f"C = AB, {p.m}×{p.n}×{p.k} in float16, and then a launch of its own sets negative "
        "elements of C to 0. Each launch moves what it reads and writes once. "
        "How many times as many bytes do the two move as one launch that does both?",
        Answer(
            (p.bytes + 2 * c) / p.bytes,
            f"The product moves {p.bytes / 1e6:.3g} MB. The second launch reads and writes C, "
            f"{2 * c / 1e6:.3g} MB.",
            {
                (p.bytes + c) / p.bytes: "It reads C and writes it.",
                2: "Two launches move twice as much only where both move alike.",
                (p.bytes + 2 * c) / (p.bytes - c): "One launch that does both stores C, too.",
            },
            within=0.02,
        ),
        "times",
    )


@mixes("01", read="2.5 1.3")
def batch(draw: Random) -> Question:
    """The batch from which a layer is limited by arithmetic."""
    gpu, width = device(draw.choice(GPUS)), draw.choice((1024, 1280, 1536))
    peak, bandwidth = gpu.peak_of("float16"), gpu.dram_bandwidth
    ratio = peak / bandwidth
    least = next(n for n in range(1, width) if linear(width, width, n).intensity >= ratio)
    return Question(
        f"A layer has {width} inputs and {width} outputs, in float16. {gpu.title} has "
        f"{peak / 1e12:.0f} TFLOP/s and {bandwidth / 1e12:.2f} TB/s. From which batch on does "
        "arithmetic take longer than DRAM?",
        Answer(
            least,
            f"With $n$ inputs, $2 \\cdot {width}^2 n$ operations and $2\\,({width}^2 + 2 \\cdot "
            f"{width} n)$ bytes reach the ratio {ratio:.0f} there.",
            {
                math.ceil(ratio): "So many would do if the weights were all that moves; inputs and "
                "outputs move as well.",
                math.ceil(2 * ratio): "A product and a sum are two operations, and a number has "
                "two bytes: those cancel.",
                width: "Then the intensity is a third of the width, which is more than enough.",
            },
            within=0.02,
        ),
        "inputs",
    )


@mixes("01", read="2.1 1.5")
def busy_dram(draw: Random) -> Question:
    """The share of a time in which DRAM works."""
    gpu, n = device("h200"), 512 * draw.randint(2, 12)
    p = Gemm(n, draw.choice((128, 256)), n, dtype="float32")
    times = [p.bytes / gpu.dram_bandwidth, p.flops / gpu.peak_of("float32")]
    took = float(f"{max(times) * draw.choice((1.3, 1.9, 2.6, 4)) * 1e6:.3g}")
    dram, math_ = (100 * t * 1e6 / took for t in times)
    return Question(
        f"{n}×{p.n}×{n} in float32 takes {took:g} µs on a GPU with "
        f"{gpu.peak_of('float32') / 1e12:.1f} TFLOP/s and "
        f"{gpu.dram_bandwidth / 1e12:.1f} TB/s. During what percentage of that time "
        "does DRAM have to work?",
        Answer(
            dram,
            f"{p.bytes / 1e6:.3g} MB need {1e6 * times[0]:.3g} µs. Arithmetic needs "
            f"{1e6 * times[1]:.3g} µs, and the rest is neither's.",
            {
                math_: "That is arithmetic.",
                100: "Nothing says that DRAM sets the time: the clocks run side by side.",
                100 - math_: "The clocks run at once; DRAM does not get what arithmetic leaves.",
            },
            within=0.03,
        ),
        "%",
    )
