"""Exercise 09.5: a pipeline with nothing to hide behind, a matrix times a vector."""

from math import ceil
from typing import Any

from gemmlab.course.judging import Diagnosis, Finding, Task, drawing, functions_on_trial

# Bandwidth [B/s], latency [s], SMs: made up, and in the range of GPUs.
MEMORIES = ((4.8e12, 400e-9, 132), (9e11, 500e-9, 80), (2e12, 300e-9, 108), (3.2e11, 450e-9, 40))
RINGS = tuple(
    (stages, tile, blocks, wanted)
    for stages, tile, blocks in ((1, 4096, 4), (2, 4096, 1), (4, 8192, 2), (3, 2048, 2))
    for wanted in (10_000, 16_384, 40_000)
)
FITTED = tuple((tile, blocks, wanted) for _, tile, blocks, wanted in RINGS)


def wanted(bandwidth, latency, sms):
    """Bytes that each SM has to have under way, so that DRAM never rests."""
    # [answer] return ...
    return bandwidth * latency / sms
    # [end]


def stages(tile, blocks, wanted):
    """The fewest stages with which `blocks` blocks on an SM have `wanted` bytes under way."""
    # [answer] return ...
    return 1 + ceil(wanted / (blocks * tile))
    # [end]


def share(stages, tile, blocks, wanted):
    """The share of the bandwidth that is reached, 0 to 1."""
    # [answer] return ...
    return min(1, (stages - 1) * blocks * tile / wanted)
    # [end]


WANTED_INSTEAD = {
    "of-the-whole-gpu": lambda b, t, s: b * t,
    "divided-by-latency": lambda b, t, s: b / t / s,
    "in-a-second": lambda b, t, s: b / s,
}
STAGES_INSTEAD = {
    "present-tile-forgotten": lambda t, b, w: ceil(w / (b * t)),
    "one-block": lambda t, b, w: 1 + ceil(w / t),
    "rounded-down": lambda t, b, w: 1 + w // (b * t),
    "not-whole": lambda t, b, w: 1 + w / (b * t),
}
SHARE_INSTEAD = {
    "more-than-all": lambda s, t, b, w: (s - 1) * b * t / w,
    "present-tile-counted": lambda s, t, b, w: min(1, s * b * t / w),
    "one-block-alone": lambda s, t, b, w: min(1, (s - 1) * t / w),
}


def judge(needed: Any, fewest: Any, reached: Any) -> Finding:
    """Try the three functions in turn; the first that is wrong decides."""
    rng = drawing.generator()
    memory = [(float(rng.integers(10, 90) * 1e11), float(rng.integers(3, 9) * 1e-7),
               int(rng.integers(20, 150)))]  # fmt: skip
    tile, blocks = 1024 * int(rng.integers(3, 9)), int(rng.integers(2, 5))
    asked = int(blocks * tile * rng.uniform(2.1, 4.9))
    rings = [(depth, tile, blocks, asked) for depth in (2, 3)]
    judged = functions_on_trial.judge
    found = (
        judged("wanted", needed, MEMORIES, wanted, WANTED_INSTEAD, fresh=memory)
        or judged("stages", fewest, FITTED, stages, STAGES_INSTEAD, fresh=[rings[0][1:]])
        or judged("share", reached, RINGS, share, SHARE_INSTEAD, fresh=rings)
    )
    if found is not None:
        return found
    return Finding("passed", (("Checked", f"{len(MEMORIES)} memories, {len(RINGS)} rings"),))


TASK = Task(
    name="09.5",
    title="Nothing to hide behind",
    section="chapter 09, One more problem",
    asked="wanted(bandwidth, latency, sms), stages(tile, blocks, wanted) and share(stages, tile, "
    "blocks, wanted), each a number.",
    prompt="""
    A matrix times a vector, $y = A x$, uses each element of $A$ once. Its products take hardly any
    time, so that no copy can hide behind them. Instead DRAM must never rest: by Little's law, what
    is under way has to be its bandwidth times its latency.

    Each block streams its rows of $A$ through a ring of `stages` tiles of `tile` bytes. One of the
    tiles is being used, the others are under way. An SM runs `blocks` such blocks.

    - `wanted(bandwidth, latency, sms)`: bytes that *each* SM has to have under way (B/s, s);
    - `stages(tile, blocks, wanted)`: the fewest stages for that, a whole number;
    - `share(stages, tile, blocks, wanted)`: the share of the bandwidth that is reached, which
      is never more than all of it.

    Two blocks with half of the stages each: do they reach as much as one?
    """,
    judge=judge,
    answers=(wanted, stages, share),
    diagnoses={
        "not-attempted": Diagnosis(
            "A function still returns the gap of the skeleton.",
            "How many bytes leave DRAM during the time that one of them is under way?",
            "wanted = bandwidth · … / …",
        ),
        "of-the-whole-gpu": Diagnosis(
            "That is what the whole GPU needs; its SMs share it.",
            "How many SMs ask for the bytes?",
            "wanted = bandwidth · latency / …",
        ),
        "divided-by-latency": Diagnosis(
            "A longer way means more bytes under way, not fewer.",
            "In which unit is bandwidth · latency, and in which bandwidth / latency?",
            "wanted = bandwidth … latency / sms",
        ),
        "in-a-second": Diagnosis(
            "These are the bytes of a second; a byte is under way for a much shorter time.",
            "How long is one byte under way?",
            "wanted = bandwidth · … / sms",
        ),
        "present-tile-forgotten": Diagnosis(
            "The tile that is used needs a stage, too.",
            "How many tiles does a ring hold when three are under way?",
            "stages = … + ceil(wanted / (blocks · tile))",
        ),
        "one-block": Diagnosis(
            "All blocks of an SM have tiles under way.",
            "How many bytes come with one more stage in each of the blocks?",
            "stages = 1 + ceil(wanted / (… · tile))",
        ),
        "rounded-down": Diagnosis(
            "With so many stages a little less than `wanted` is under way.",
            "Is (stages − 1) · blocks · tile at least `wanted`?",
            "stages = 1 + ceil(…)",
        ),
        "not-whole": Diagnosis(
            "A ring has whole tiles.",
            "Which number of stages does 2.4 stand for?",
            "stages = 1 + ceil(…)",
        ),
        "more-than-all": Diagnosis(
            "Nobody gets more than the whole bandwidth.",
            "What does DRAM do when twice as many bytes are asked for as it can deliver?",
            "share = min(1, …)",
        ),
        "present-tile-counted": Diagnosis(
            "The tile that is used is not under way.",
            "With one stage, what is under way while the block uses its tile?",
            "share = min(1, (stages − …) · blocks · tile / wanted)",
        ),
        "one-block-alone": Diagnosis(
            "All blocks of an SM have tiles under way.",
            "How many rings does an SM have?",
            "share = min(1, (stages − 1) · … · tile / wanted)",
        ),
    },
    praise="One stage of each ring is being used: two blocks with half of the stages have one tile "
    "less under way, and many small blocks need more shared memory for the same stream.",
)
