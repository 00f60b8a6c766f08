"""Review questions of chapter 12, with tiles, pipelines and formats of chapters 4 to 11."""

from random import Random

import numpy as np

from gemmlab.course.guesses import Answer
from gemmlab.course.review import Question, mixes
from gemmlab.device import device
from gemmlab.formats import round_to
from gemmlab.numerics.tcec import split

GPUS = ("v100", "t4", "a100_80gb", "h100_sxm", "h200")


@mixes("04", "09", read="12.4 9.5")
def parts_beside_tiles(draw: Random) -> Question:
    """Shared memory of a ring that keeps FP32 tiles and their parts."""
    m, n, k = draw.choice(((64, 64, 32), (128, 64, 32), (128, 128, 16), (64, 32, 64)))
    stages = draw.choice((2, 3, 4))
    kib = k * (m + n) / 1024
    return Question(
        f"Tiles of A, {m}×{k}, and of B, {k}×{n}, lie in shared memory in FP32, in {stages} "
        "stages. A block also keeps the two float16 parts of the tiles that it multiplies now, "
        "once. How many KiB are that?",
        Answer(
            kib * 4 * (stages + 1),
            f"A stage has {kib * 4:g} KiB, and two parts of 2 bytes take as much once more.",
            {
                kib * 4 * stages: "The parts need room, too.",
                kib * (4 * stages + 2): "There are two parts, high and low.",
                kib * 8 * stages: "The parts are kept once, not for each stage.",
            },
        ),
        "KiB",
    )


@mixes("02", "08", read="12.1 8.1")
def three_products(draw: Random) -> Question:
    """How fast three products can be."""
    gpu, count = device(draw.choice(GPUS)), draw.choice((3, 4))
    half, single = (gpu.peak_of(dtype) / 1e12 for dtype in ("float16", "float32"))
    return Question(
        f"An FP32 product is made of {count} products in float16. {gpu.title} has {half:.0f} "
        f"TFLOP/s in float16 and {single:.1f} in FP32. At most, how many times as fast as its FP32 "
        "units is it?",
        Answer(
            half / single / count,
            f"Each of the {count} products has as many operations as the one that it replaces.",
            {
                half / single: f"There are {count} products.",
                half / single / (7 - count): f"There are {count} products, not {7 - count}.",
                half / single / count / 2: "Both peaks count operations in the same way.",
            },
            within=0.03,
        ),
        "times",
    )


@mixes("11", read="12.2 11.2")
def low_part(draw: Random) -> Question:
    """The low part of a number."""
    x = 2**13 * draw.randint(1, 6) + draw.randrange(1, 2**13)
    parts = split(np.float32(x))
    high, low = float(parts.high), float(parts.low)
    down = float(round_to(x, "float16", "RZ"))
    return Question(
        f"{x:,} is split for float16, which has 10 bits of fraction: a high part, rounded to "
        "nearest, and a low part, what is left times 2¹¹, in float16. What is the low part?",
        Answer(
            low,
            f"The high part is {high:,.0f}, and {x:,} − {high:,.0f} = {x - high:.0f} is left.",
            {
                x - high: "That is left; the low part has it times 2¹¹.",
                (x - down) * 2**11: "The high part is rounded to nearest, not toward zero, so that "
                "less is left.",
                0: f"float16 has 11 significant bits, and {x:,} needs more.",
            },
        ),
        "",
    )
