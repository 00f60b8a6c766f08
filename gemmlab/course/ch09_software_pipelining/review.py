"""Review questions of chapter 09, with tiles, occupancy and Tensor Cores of chapters 4 to 8."""

from random import Random

from gemmlab.course.guesses import Answer
from gemmlab.course.review import Question, mixes
from gemmlab.model.pipeline import stages_needed

RATE = 2048  # FMAs in a cycle of an SM of an H200's Tensor Cores in FP16, on the data sheet


@mixes("08", read="9.3 8.1")
def stages_for_tile(draw: Random) -> Question:
    """Stages that a tile needs."""
    m, n, k = draw.choice(((128, 128, 32), (128, 256, 32), (64, 64, 64), (128, 128, 64)))
    multiply, copy = m * n * k // RATE, 10 * draw.randint(50, 140)
    count = stages_needed(copy, multiply)
    return Question(
        f"An SM's Tensor Cores do {RATE:,} FMAs a cycle, and a step multiplies {m}×{k} by {k}×{n}. "
        f"A tile is there {copy} cycles after it was asked for. With how many stages does nobody "
        "wait in the loop?",
        Answer(
            count,
            f"A step takes {multiply} cycles, and ({count} − 1) · {multiply} is at least {copy}.",
            {
                count - 1: "One stage holds the tile that is being multiplied.",
                stages_needed(copy, 2 * multiply): "FMAs are counted, not operations.",
                2: "Two stages hide a copy that is no longer than one step.",
            },
        ),
        "stages",
    )


@mixes("04", "05", read="9.5 5.5")
def stages_that_fit(draw: Random) -> Question:
    """Stages for which shared memory has room."""
    m, n, k = (draw.choice(sizes) for sizes in ((64, 128, 256), (128, 256), (32, 48, 64)))
    room, size = 227 * 1024, 2 * k * (m + n)
    return Question(
        f"A block may have 227 KiB of shared memory. A stage holds a tile of A, {m}×{k}, and one "
        f"of B, {k}×{n}, in float16. How many stages fit?",
        Answer(
            room // size,
            f"A stage has {size / 1024:.0f} KiB.",
            {
                room // (2 * size): "A number of float16 has 2 bytes.",
                room // (2 * k * max(m, n)): "Both operands have a tile.",
                room // (2 * m * n): "C's sums lie in registers.",
            },
        ),
        "stages",
    )


@mixes("06", "08", read="9.3 6.7")
def waits_in_step(draw: Random) -> Question:
    """The share of a step in which nobody multiplies."""
    stages, multiply = draw.choice((3, 4, 5)), 10 * draw.randint(12, 40)
    copy = round(multiply * (stages - 1) * draw.choice((1.25, 1.5, 2, 2.5)))
    step = copy / (stages - 1)
    return Question(
        f"A tile is there {copy} cycles after it was asked for, multiplying it takes {multiply} "
        f"cycles, and there are {stages} stages. For what percentage of a step of a long loop do "
        "the arithmetic units wait?",
        Answer(
            100 * (1 - multiply / step),
            f"A step takes {copy} / {stages - 1} = {step:.0f} cycles.",
            {
                100 * (1 - multiply / copy): f"{stages - 1} copies are under way at once.",
                100 * multiply / step: "For that part they work.",
                100 * copy / (copy + multiply): "Copy and product go on at the same time.",
                100 * max(0, 1 - multiply * stages / copy): "The tile that is being multiplied is "
                "not on its way.",
            },
            within=0.02,
        ),
        "%",
    )
