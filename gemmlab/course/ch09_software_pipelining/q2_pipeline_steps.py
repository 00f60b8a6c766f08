"""Exercise 09.2: the time of a pipeline, from its copies, its products and its stages."""

from math import ceil
from typing import Any

from gemmlab.course.judging import Diagnosis, Finding, Task, drawing, functions_on_trial

TIMES = ((900, 300), (900, 250), (1000, 384), (400, 500), (850, 1700), (100, 7), (1000, 97))
STAGED = (*((stages, *times) for stages in (1, 2, 4, 5) for times in TIMES), (50, 2000, 7))
# The last product is the first of a batch that arrives together: what the mean of a step says.
LOOPS = tuple((steps, *staged) for steps in (1, 61) for staged in STAGED[::3])


def period(stages, copy, multiply):
    """Cycles from one step of a long loop to the next."""
    # [answer] return ...
    if stages == 1:
        return copy + multiply
    return max(multiply, copy / (stages - 1))
    # [end]


def needed(copy, multiply):
    """The fewest stages with which no step waits for its tile."""
    # [answer] return ...
    return 1 + ceil(copy / multiply)
    # [end]


def loop(steps, stages, copy, multiply):
    """Cycles of the whole loop: prologue, steady state and epilogue."""
    # [answer] return ...
    return copy + (steps - 1) * period(stages, copy, multiply) + multiply
    # [end]


PERIOD_INSTEAD = {
    "one-stage-overlaps": lambda s, c, m: max(m, c / max(1, s - 1)),
    "all-stages-ahead": lambda s, c, m: None if s == 1 else max(m, c / s),
    "asked-when-empty": lambda s, c, m: max(m, (c + m) / s),
    "two-at-most": lambda s, c, m: c + m if s == 1 else max(m, c),
    "one-after-the-other": lambda s, c, m: c + m,
    "added-up": lambda s, c, m: c + m if s == 1 else m + c / (s - 1),
    "products-alone": lambda s, c, m: m,
    "copies-alone": lambda s, c, m: c + m if s == 1 else c / (s - 1),
}
NEEDED_INSTEAD = {
    "present-tile-forgotten": lambda c, m: ceil(c / m),
    "rounded-down": lambda c, m: 1 + c // m,
    "not-whole": lambda c, m: 1 + c / m,
    "upside-down": lambda c, m: 1 + ceil(m / c),
}
LOOP_INSTEAD = {
    "prologue-forgotten": lambda n, s, c, m: n * period(s, c, m),
    "epilogue-forgotten": lambda n, s, c, m: c + n * period(s, c, m),
    "steps-too-many": lambda n, s, c, m: c + n * period(s, c, m) + m,
    "products-alone-in-the-loop": lambda n, s, c, m: c + n * m,
}


def judge(time: Any, fewest: Any, whole: Any) -> Finding:
    """Try the three functions in turn; the first that is wrong decides."""
    rng = drawing.generator()
    times = [(int(rng.integers(500, 2000)), int(rng.integers(5, 450))) for _ in range(4)]
    staged = [(stages, *each) for stages, each in zip((2, 4, 7, 50), times, strict=True)]
    loops = [(1 + (each[0] - 1) * int(rng.integers(2, 16)), *each) for each in staged]
    judged = functions_on_trial.judge
    found = (
        judged("period", time, STAGED, period, PERIOD_INSTEAD, fresh=staged)
        or judged("needed", fewest, TIMES, needed, NEEDED_INSTEAD, fresh=times)
        or judged("loop", whole, LOOPS, loop, LOOP_INSTEAD, fresh=loops)
    )
    if found is not None:
        return found
    return Finding("passed", (("Checked", f"{len(TIMES)} pairs of times, 1 to 50 stages"),))


TASK = Task(
    name="09.2",
    title="The time of a pipeline",
    section="chapter 09, How many tiles ahead?",
    asked="period(stages, copy, multiply), needed(copy, multiply) and loop(steps, stages, copy, "
    "multiply), each a number.",
    prompt="""
    A copy takes `copy` cycles from the moment it is asked for, however many are under way; the
    product of a tile takes `multiply`. Shared memory has room for `stages` tiles. A step waits for
    its own tile, asks for the one `stages` − 1 steps further, and multiplies.

    - `period(stages, copy, multiply)`: the mean time of a step in a long loop. With one stage the
      tile is copied, then multiplied;
    - `needed(copy, multiply)`: the fewest stages with which no step waits, a whole number;
    - `loop(steps, stages, copy, multiply)`: the time of a loop of so many steps. Before the first
      product there is a copy, the *prologue*; then each further step takes a period; the last
      product is the *epilogue*. (Where copies set the pace `stages` − 1 tiles arrive together; the
      loops that are tried end with the first of such a batch, where this is exact.)
    """,
    judge=judge,
    answers=(period, needed, loop),
    diagnoses={
        "not-attempted": Diagnosis(
            "A function still returns the gap of the skeleton.",
            "Three tiles are under way and each arrives 900 cycles after it was asked for. How "
            "many arrive in 900 cycles?",
            "period = max(multiply, copy / …), but for one stage",
        ),
        "one-stage-overlaps": Diagnosis(
            "With one stage nothing overlaps: the copy has to wait until the tile is multiplied.",
            "Where would the next tile go while the only one is multiplied?",
            "```python\nif stages == 1:\n    return ... + ...\n```",
        ),
        "all-stages-ahead": Diagnosis(
            "One of the stages is being multiplied, and nothing can be copied there.",
            "Of S tiles in shared memory, how many are under way while one is multiplied?",
            "period = max(multiply, copy / (stages − …))",
        ),
        "asked-when-empty": Diagnosis(
            "That is the period of a ring whose slots are asked for as soon as they are empty, as "
            "section 7's producer does. Here a step asks when its own tile has come.",
            "When a step has its tile and asks for another one, how many copies are under way?",
            "period = max(multiply, copy / (stages − …))",
        ),
        "two-at-most": Diagnosis(
            "This lets one tile be under way, however many stages there are.",
            "With four stages, how many copies share the time of one round trip?",
            "period = max(multiply, copy / …)",
        ),
        "one-after-the-other": Diagnosis(
            "This is the time of a step with one stage, whatever `stages` is.",
            "What happens during the product of a step, where there is room for another tile?",
            "period = max(…, …) with two stages or more",
        ),
        "added-up": Diagnosis(
            "Copies and products overlap: the longer one sets the pace, not their sum.",
            "If a copy takes 900 cycles and the product 900, how long is a step with two stages?",
            "period = max(…, …)",
        ),
        "products-alone": Diagnosis(
            "A step also has to wait for its tile, unless copies keep up with products.",
            "With two stages and a copy that is three times as long as a product, who waits?",
            "period = max(multiply, …)",
        ),
        "copies-alone": Diagnosis(
            "Where copies are fast, the products set the pace.",
            "With five stages, can a step be shorter than its product?",
            "period = max(…, copy / (stages − 1))",
        ),
        "present-tile-forgotten": Diagnosis(
            "These are the tiles under way; the one that is multiplied needs room, too.",
            "How many tiles are in shared memory when one is multiplied and three are under way?",
            "needed = … + ceil(copy / multiply)",
        ),
        "rounded-down": Diagnosis(
            "A part of a tile does not hide anything: the number is rounded up.",
            "With copy = 1000 and multiply = 384, do two products take as long as the copy?",
            "needed = 1 + ceil(…)",
        ),
        "not-whole": Diagnosis(
            "Shared memory has room for whole tiles.",
            "Which number of stages does 3.6 stand for?",
            "needed = 1 + ceil(…)",
        ),
        "upside-down": Diagnosis(
            "The longer the copy, the more stages it takes; here it is the other way round.",
            "How many products fit into the time of one copy?",
            "needed = 1 + ceil(… / …)",
        ),
        "prologue-forgotten": Diagnosis(
            "The first tile has nothing to hide behind: its copy takes time of its own.",
            "When does the first product begin?",
            "loop = … + (steps − 1) · period + …",
        ),
        "epilogue-forgotten": Diagnosis(
            "The last step copies nothing: behind the periods of the others stands its product.",
            "With steps = 1, what happens after the copy?",
            "loop = copy + (steps − …) · period + …",
        ),
        "steps-too-many": Diagnosis(
            "This has one period too many.",
            "With steps = 1, how many products are there?",
            "loop = copy + (steps − …) · period + multiply",
        ),
        "products-alone-in-the-loop": Diagnosis(
            "A step takes its period, which may be longer than its product.",
            "What does period(2, 900, 300) return?",
            "loop = copy + (steps − 1) · … + multiply",
        ),
    },
    praise="Past the stages that are needed, more of them gain nothing, and a short loop is mostly "
    "prologue.",
)
