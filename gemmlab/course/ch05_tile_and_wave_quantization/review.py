"""Review questions of chapter 05, with edges and traffic of chapters 3 and 4."""

from random import Random

from gemmlab.course.guesses import Answer
from gemmlab.course.review import Question, mixes
from gemmlab.device import device
from gemmlab.model.quantization import quantization
from gemmlab.problem import Gemm

SMS = {name: device(name).sms for name in ("v100", "a100_80gb", "h200")}


@mixes("03", "04", read="5.3 4.2")
def used_by_waves(draw: Random) -> Question:
    """The share of the SMs' time that is used."""
    name = draw.choice(tuple(SMS))
    down, across = draw.randint(8, 24), draw.randint(8, 24)
    tile = draw.choice(((128, 128), (128, 256), (64, 64)))
    p = Gemm(down * tile[0], across * tile[1], 4096)
    q = quantization(p, device(name), tile, per_sm=1)
    return Question(
        f"C has {p.m:,} rows and {p.n:,} columns, a block computes {tile[0]}×{tile[1]} of it, and "
        f"each of {SMS[name]} SMs takes one block at a time. What "
        "percentage of the SMs' time is used?",
        Answer(
            100 * q.wave_use,
            f"{q.tiles} tiles take {q.waves} waves, and the last one has {q.tail}.",
            {
                100 * q.tail / SMS[name]: "That is the last wave alone.",
                100 * (q.waves - 1) / q.waves: "The last wave does some work, too.",
                100: "The tiles fit C exactly, and not the SMs.",
            },
            within=0.02,
        ),
        "%",
    )


@mixes("04", read="5.2 4.5")
def padded_work(draw: Random) -> Question:
    """The share of the FMAs that nobody needs."""
    tile = draw.choice((32, 64, 128))
    m, n = (tile * draw.randint(1, 5) + draw.randint(1, tile - 1) for _ in range(2))
    covered = -(-m // tile) * tile * -(-n // tile) * tile
    rows, columns = (1 - size / (-(-size // tile) * tile) for size in (m, n))
    return Question(
        f"C has {m} rows and {n} columns, tiles are {tile}×{tile}, and the copy fills what lies "
        "outside with zeros, which are multiplied like other numbers. What percentage of the FMAs "
        "does nobody need?",
        Answer(
            100 * (1 - m * n / covered),
            f"The tiles cover {covered:,} elements, and C has {m * n:,}.",
            {
                100 * m * n / covered: "That is what is needed.",
                100 * columns: "Those are the columns beyond C; there are rows, too.",
                100 * (rows + columns): "The corner below and beyond C is counted twice.",
            },
            within=0.02,
        ),
        "%",
    )


@mixes("02", "04", read="5.7 4.2")
def smaller_tiles(draw: Random) -> Question:
    """Bytes that smaller tiles fetch, over those of larger ones."""
    large = draw.choice(((128, 128), (128, 256), (256, 256), (128, 512)))
    small = draw.choice(((64, 64), (32, 64), (32, 32)))
    ratio = (1 / small[0] + 1 / small[1]) / (1 / large[0] + 1 / large[1])
    return Question(
        f"C has few tiles of {large[0]}×{large[1]}, so you take {small[0]}×{small[1]}, which fill "
        "all SMs. Blocks fetch each tile of A and B once. How many times as many bytes do they "
        "fetch in all?",
        Answer(
            ratio,
            "Bytes go like $1/b_m + 1/b_n$.",
            {
                large[0] * large[1] / (small[0] * small[1]): "So many times as many tiles are "
                "there, and each fetches less.",
                large[0] / small[0]: "That is B. A goes by the other side.",
                large[1] / small[1]: "That is A. B goes by the other side.",
                1: "Each block fetches once, and blocks do not share.",
            },
            within=0.02,
        ),
        "times",
    )
