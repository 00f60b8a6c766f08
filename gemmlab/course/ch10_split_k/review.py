"""Review questions of chapter 10, with bytes, tiles and waves of chapters 2, 4 and 5."""

from math import ceil
from random import Random

from gemmlab.course.guesses import Answer
from gemmlab.course.review import Question, mixes
from gemmlab.model import schedule

SMS = 132


@mixes("05", read="10.3 5.3")
def steps_of_split(draw: Random) -> Question:
    """Steps of the busiest SM with k in parts."""
    tiles, steps, parts = draw.randint(20, 120), 16 * draw.randint(4, 20), draw.choice((2, 4, 8))
    placed = schedule.schedule(schedule.split_k(tiles, steps, parts), SMS)
    found = schedule.ends(placed)
    return Question(
        f"C has {tiles} tiles of {steps} steps along k. {SMS} SMs take one block at a time, and k "
        f"is cut into {parts} parts. After how many steps is the last SM done, additions aside?",
        Answer(
            found,
            f"{tiles * parts} blocks of {ceil(steps / parts)} steps go in "
            f"{ceil(tiles * parts / SMS)} waves.",
            {
                ceil(steps / parts): "That is one wave.",
                ceil(tiles * steps / SMS): "So it is if all SMs work to the end: waves come whole.",
                steps: "That is k in one piece.",
            },
        ),
        "steps",
    )


@mixes("02", read="10.3 2.1")
def price_of_sums(draw: Random) -> Question:
    """The time that sums in a workspace take."""
    m, n, parts = 256 * draw.randint(2, 8), 256 * draw.randint(2, 8), draw.choice((3, 4, 6, 8))
    bandwidth = draw.choice((2.0, 3.35, 4.8))
    once = 4 * parts * m * n
    return Question(
        f"C is {m}×{n}, and k is cut into {parts} parts. Each part stores its sums in FP32, and a "
        f"second launch reads them. How many µs does that take at {bandwidth} TB/s?",
        Answer(
            2 * once / bandwidth / 1e6,
            f"{parts} · {m} · {n} sums of 4 bytes are {once / 1e6:.3g} MB, which go there and come "
            "back.",
            {
                once / bandwidth / 1e6: "They are stored and read.",
                once / parts * 2 / bandwidth / 1e6: "Each part has sums of its own.",
                once / bandwidth / 1e6 / 2: "Sums have 4 bytes, and they go there and come back.",
            },
            within=0.03,
        ),
        "µs",
    )


@mixes("05", read="10.5 5.6")
def equal_shares(draw: Random) -> Question:
    """What equal shares of all steps gain on whole tiles."""
    tiles, steps = draw.randint(134, 390), 64
    whole = schedule.ends(schedule.schedule(schedule.split_k(tiles, steps), SMS))
    shared = tiles * steps / SMS
    return Question(
        f"C has {tiles} tiles of {steps} steps, and there are {SMS} SMs. By steps alone, how many "
        "times as fast is Stream-K, which gives each SM an equal share, as one tile after the "
        "other?",
        Answer(
            whole / shared,
            f"The busiest SM has {whole // steps} whole tiles, {whole} steps, in place of "
            f"{shared:.0f}.",
            {
                1: "Tiles do not come out even: in the last wave most SMs are idle.",
                whole // steps: "So many waves are there.",
                tiles / SMS: "So many tiles has an SM on average.",
            },
            within=0.02,
        ),
        "times",
    )
