"""Answers to exercise 09.5."""

from math import ceil

from gemmlab.course.ch09_software_pipelining.q5_stream_in_flight import (
    FITTED,
    MEMORIES,
    RINGS,
    share,
    stages,
    wanted,
)
from tests.course.answers import Wrong, edited, fooling, for_ever, from_the_judge, table


def _counted(tile, blocks, wanted):
    depth = 1
    while (depth - 1) * tile * blocks < wanted:
        depth += 1
    return depth


RIGHT = {
    "counted": (
        lambda bandwidth, latency, sms: bandwidth / sms * latency,
        _counted,
        lambda depth, tile, blocks, wanted: min(wanted, blocks * (depth - 1) * tile) / wanted,
    ),
    "rounded up by hand": (
        lambda bandwidth, latency, sms: latency * bandwidth * (1 / sms),
        lambda tile, blocks, wanted: 1 - (-wanted // (tile * blocks)),
        lambda depth, tile, blocks, wanted: (
            1.0 if (depth - 1) * tile * blocks >= wanted else (depth - 1) * tile * blocks / wanted
        ),
    ),
}


def _wanted(misconception, diagnosis, new):
    answer = edited(wanted, ("bandwidth * latency / sms", new))
    return Wrong(misconception, diagnosis, (answer, stages, share))


def _stages(misconception, diagnosis, new):
    answer = edited(stages, ("1 + ceil(wanted / (blocks * tile))", new))
    return Wrong(misconception, diagnosis, (wanted, answer, share))


def _share(misconception, diagnosis, new):
    answer = edited(share, ("min(1, (stages - 1) * blocks * tile / wanted)", new))
    return Wrong(misconception, diagnosis, (wanted, stages, answer))


WRONG = {
    "the GPU's": _wanted("an SM needs it all", "of-the-whole-gpu", "bandwidth * latency"),
    "divided": _wanted("slow memory needs less", "divided-by-latency", "bandwidth / latency / sms"),
    "a second": _wanted("bandwidth is what is under way", "in-a-second", "bandwidth / sms"),
    "a gap": _wanted("two of three are enough", "not-attempted", "..."),
    "no room to work": _stages(
        "all stages are under way", "present-tile-forgotten", "ceil(wanted / (blocks * tile))"
    ),
    "a block": _stages("a ring is all there is", "one-block", "1 + ceil(wanted / tile)"),
    "down": _stages("// is enough", "rounded-down", "1 + wanted // (blocks * tile)"),
    "a fraction": _stages("stages are numbers", "not-whole", "1 + wanted / (blocks * tile)"),
    "beyond": _share("more is faster", "more-than-all", "(stages - 1) * blocks * tile / wanted"),
    "all stages": _share(
        "stages are tiles under way", "present-tile-counted",
        "min(1, stages * blocks * tile / wanted)",
    ),
    "one ring": _share(
        "blocks take turns", "one-block-alone", "min(1, (stages - 1) * tile / wanted)"
    ),
}  # fmt: skip


FOOLING = {
    "memories by heart": fooling(
        "the cases are in the package", "known-cases-only", table(wanted, MEMORIES), stages, share,
    ),
    "rings by heart": fooling(
        "the cases are in the package", "known-cases-only", wanted, table(stages, FITTED), share,
    ),
    "shares by heart": fooling(
        "the cases are in the package", "known-cases-only", wanted, stages, table(share, RINGS, 2),
    ),
    "for ever": fooling("nobody can stop it", "never-ends", for_ever, stages, share),
    "the judge's": fooling("a caller knows", "constant", wanted, stages, from_the_judge),
    "text": fooling("words are numbers", "wrong-type", wanted, lambda *ring: str(ceil(2.5)), share),
}  # fmt: skip
