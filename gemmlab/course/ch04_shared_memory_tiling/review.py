"""Review questions of chapter 04, with intensity, sectors and wavefronts of chapters 2 and 3."""

from random import Random

import numpy as np

from gemmlab.course.guesses import Answer
from gemmlab.course.review import Question, mixes
from gemmlab.model.transactions import BANKS, wavefronts
from gemmlab.tiling import WARP


@mixes("01", "02", read="4.2 2.4")
def tile_intensity(draw: Random) -> Question:
    """The intensity of tiles at global memory."""
    rows, columns = draw.choice(((16, 32), (32, 32), (64, 32), (128, 64), (64, 128), (8, 16)))
    size = draw.choice((2, 4))
    each = size * (1 / rows + 1 / columns)
    return Question(
        f"A block computes {rows}×{columns} elements of C and fetches what it needs of A and B "
        f"once, numbers of {size} bytes. How many operations is that for each byte fetched? The "
        "store of C is small beside a long k.",
        Answer(
            2 / each,
            f"For each step along k it fetches {rows} + {columns} numbers and does 2 · {rows} · "
            f"{columns} operations.",
            {
                1 / each: "A product and a sum are two operations.",
                2 * size / each: "Those are numbers; each has several bytes.",
                2 * min(rows, columns) / size: "That counts one of the two operands.",
            },
            within=0.02,
        ),
        "FLOP/B",
    )


@mixes("03", read="4.6 3.7")
def padded_column(draw: Random) -> Question:
    """Wavefronts of a column of a tile."""
    words = draw.choice((16, 20, 24, 34, 36, 40, 48, 68, 72))
    count = int(wavefronts(4 * words * np.arange(WARP), np.ones(WARP, bool), 4))
    return Question(
        f"A tile in shared memory has rows of {words} words of 4 bytes. Lane x of a warp stores to "
        f"the first word of row x. There are {BANKS} banks. How many wavefronts is that?",
        Answer(
            count,
            f"Lanes x and x + {WARP // count} want words of the same bank, so {count} take turns.",
            {
                1: "So it is where rows have an odd number of words.",
                WARP: "So it is where rows have a multiple of 32 words.",
                WARP // count: "That is how many banks are used.",
                words: "The rows have so many words; what counts is where they begin.",
            },
        ),
        "wavefronts",
    )


@mixes("02", "03", read="4.7 2.4")
def shared_bound(draw: Random) -> Question:
    """The share of the FMA peak that shared loads allow."""
    loads = draw.choice((0.4, 0.5, 0.625, 0.75, 1.25, 1.5, 2))
    share = 100 * 0.25 / loads
    return Question(
        f"In each thread a kernel makes {loads} loads from shared memory for an FMA. A warp's load "
        "takes one wavefront, an SM serves one wavefront a cycle, and it does 128 FMAs a cycle. "
        "What percentage of its FMA peak can it reach?",
        Answer(
            share,
            f"32 FMAs take a quarter of a cycle of the FMA units, and {loads} cycles of the pipe, "
            "at the same time.",
            {
                100 * 0.25 / (0.25 + loads): "The two work at the same time: the longer one "
                "counts, not the sum.",
                2 * share: "The peak counts FMAs here, not operations.",
                100 * 0.25 * loads: "More loads make it slower, not faster.",
            },
            within=0.02,
        ),
        "%",
    )
