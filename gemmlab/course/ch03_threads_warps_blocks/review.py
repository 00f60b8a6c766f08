"""Review questions of chapter 03, with bytes, intensity and latency of chapters 1 and 2."""

from random import Random

import numpy as np

from gemmlab.course.guesses import Answer
from gemmlab.course.review import Question, mixes
from gemmlab.model.transactions import SECTOR, sectors
from gemmlab.tiling import WARP


@mixes("02", read="3.4 2.3")
def strided_intensity(draw: Random) -> Question:
    """The intensity at DRAM of loads with a stride."""
    stride, size = draw.choice((3, 5, 6, 9, 12, 16, 20)), draw.choice((4, 8))
    count = int(sectors(size * stride * np.arange(WARP), np.ones(WARP, bool)))
    each = SECTOR * count / WARP
    return Question(
        f"A kernel does 8 operations on each element that it loads, an element has {size} bytes, "
        f"and lane x of a warp takes element {stride}·x of a long row. Nobody needs the others. "
        "What is the intensity, in FLOP for each byte that moves?",
        Answer(
            8 / each,
            f"{count} sectors of {SECTOR} bytes come for {WARP} elements: {each:.3g} bytes for "
            "each.",
            {
                8 / size: "Those are the bytes that are wanted; whole sectors move.",
                8 / (size * stride): "A gap that is longer than a sector is not moved.",
                8 / 128: "Not the whole line moves: each sector of it comes by itself.",
                each / 8: "That is upside down.",
            },
            within=0.02,
        ),
        "FLOP/B",
    )


@mixes("01", read="3.2 1.2")
def idle_threads(draw: Random) -> Question:
    """Threads of a launch that have no element of C."""
    m, n = draw.randint(100, 900), draw.randint(100, 900)
    x, y = draw.choice(((16, 16), (32, 8), (32, 4)))
    across, down = -(-n // x), -(-m // y)
    launched = across * down * x * y
    return Question(
        f"C has {m} rows and {n} columns. Each element gets a thread, in blocks of {x} along the "
        f"columns by {y} along the rows. How many threads of the launch have no element?",
        Answer(
            launched - m * n,
            f"{across} · {down} blocks of {x * y} threads are {launched:,}, and C has {m * n:,} "
            "elements.",
            {
                -(-m * n // (x * y)) * x * y - m * n: "So it is for a vector. A matrix has ragged "
                "blocks along its right edge and its lower one.",
                (across * x - n) * m: "The last rows of blocks reach below C, too.",
                (down * y - m) * n: "The last columns of blocks reach beyond C, too.",
                launched: "That is all of them.",
            },
        ),
        "threads",
    )


@mixes("02", read="3.8 2.7")
def warps_in_flight(draw: Random) -> Question:
    """Warps of an SM that keep DRAM busy."""
    sms, terabytes = draw.choice(((80, 0.9), (108, 2.0), (132, 4.8)))
    latency, size = draw.choice((500, 600, 700, 800)), draw.choice((4, 8, 16))
    flying = terabytes * 1e12 * latency * 1e-9
    warps = flying / sms / (WARP * size)
    return Question(
        f"DRAM delivers {terabytes} TB/s, {latency} ns after it was asked, to {sms} SMs. Each warp "
        f"has one load of {size} bytes a lane under way at a time. How many warps must an SM have, "
        "so that DRAM is never idle?",
        Answer(
            int(-(-warps // 1)),
            f"{flying / 1e6:.3g} MB are under way, {flying / sms / 1e3:.3g} kB for each SM, and a "
            f"warp asks for {WARP * size} bytes.",
            {
                round(warps * WARP): "A warp has 32 lanes, and each of them asks.",
                round(warps * sms): "All SMs ask at once.",
                round(warps * size / SECTOR): "Lanes that are neighbours share a sector: count "
                "the bytes that they ask for.",
            },
            within=0.06,
        ),
        "warps",
    )
