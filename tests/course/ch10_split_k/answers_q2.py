"""Answers to exercise 10.2."""

import math

from gemmlab.course.ch10_split_k.q2_split_chooser import CHOICES, SPLITS, SUMS, best, longest, moved
from tests.course.answers import Wrong, edited, fooling, for_ever, from_the_judge, table

LONGEST = "-(-tiles * split // sms) * -(-steps // split)"
MOVED = "2 * 4 * split * m * n if split > 1 else 0"
PRICE = "(start + each * split if split > 1 else 0)"
LEAST = "min(range(1, steps + 1), key=time)"


def _dealt(tiles, steps, split, sms):
    """Blocks dealt out one by one, wave after wave."""
    blocks, time = tiles * split, 0
    while blocks > 0:
        time += math.ceil(steps / split)
        blocks -= sms
    return time


def _searched(tiles, steps, sms, start, each):
    found, least = 1, float(_dealt(tiles, steps, 1, sms))
    for split in range(2, steps + 1):
        time = _dealt(tiles, steps, split, sms) + start + each * split
        if time < least:
            found, least = split, time
    return found


RIGHT = {
    "ceil": (
        lambda tiles, steps, split, sms: math.ceil(tiles * split / sms) * math.ceil(steps / split),
        lambda m, n, split: 8 * m * n * split * (split > 1),
        lambda tiles, steps, sms, start, each: min(
            (longest(tiles, steps, s, sms) + (s > 1) * (start + each * s), s)
            for s in range(1, steps + 1)
        )[1],
    ),
    "dealt and searched": (
        _dealt,
        lambda m, n, split: 0 if split == 1 else 8 * split * m * n,
        _searched,
    ),
}


def _longest(misconception, diagnosis, new):
    return Wrong(misconception, diagnosis, (edited(longest, (LONGEST, new)), moved, best))


def _moved(misconception, diagnosis, new):
    return Wrong(misconception, diagnosis, (longest, edited(moved, (MOVED, new)), best))


def _best(misconception, diagnosis, *edits):
    return Wrong(misconception, diagnosis, (longest, moved, edited(best, *edits)))


WRONG = {
    "one part": _longest("all parts at once", "waves-forgotten", "-(-steps // split)"),
    "evenly": _longest("work is dealt out evenly", "cut-anywhere", "-(-tiles * steps // sms)"),
    "a fraction": _longest("time is work over SMs", "not-rounded", "tiles * steps / sms"),
    "short parts": _longest(
        "parts are alike", "part-rounded-down", "-(-tiles * split // sms) * (steps // split)"
    ),
    "part of a wave": _longest(
        "a tail is short", "waves-not-rounded", "tiles * split / sms * -(-steps // split)"
    ),
    "waves of tiles": _longest(
        "waves are those of chapter 5", "waves-of-whole-tiles",
        "-(-tiles // sms) * -(-steps // split)",
    ),
    "all steps": _longest(
        "a block goes through k", "split-forgotten", "-(-tiles * split // sms) * steps"
    ),
    "stored": _moved("what is stored", "stored-alone", "4 * split * m * n if split > 1 else 0"),
    "always": _moved("there is a workspace", "unsplit-stores", "8 * split * m * n"),
    "two bytes": _moved(
        "in elements", "elements-not-bytes", "2 * split * m * n if split > 1 else 0"
    ),
    "as large as C": _moved("one workspace", "one-part", "8 * m * n if split > 1 else 0"),
    "one stays": _moved("the first goes to C", "first-part-free", "8 * (split - 1) * m * n"),
    "unsplit pays, too": _best(
        "a launch is a launch", "unsplit-pays", (PRICE, "start + each * split")
    ),
    "free": _best("shorter is faster", "price-forgotten", (PRICE, "0")),
    "fill the GPU": _best(
        "a block for each SM", "one-block-each", (LEAST, "max(1, min(steps, sms // tiles))")
    ),
    "fill it and more": _best(
        "no SM without a block", "one-block-each", (LEAST, "min(steps, -(-sms // tiles))")
    ),
    "a free launch": _best(
        "launches cost nothing", "start-forgotten", (PRICE, "(each * split if split > 1 else 0)")
    ),
    "free parts": _best(
        "bytes cost nothing", "each-forgotten", (PRICE, "(start if split > 1 else 0)")
    ),
    "from above": _best(
        "more parallelism is better", "largest-of-equals",
        (LEAST, "min(range(steps, 0, -1), key=time)"),
    ),
    "the time": _best(
        "the least is asked for", "time-not-split", (LEAST, "min(map(time, range(1, steps + 1)))")
    ),
    "a gap": _best("two of three are enough", "not-attempted", (LEAST, "...")),
}  # fmt: skip

FOOLING = {
    "lengths by heart": fooling(
        "the cases are in the package", "known-cases-only", table(longest, SPLITS), moved, best
    ),
    "bytes by heart": fooling(
        "the cases are in the package", "known-cases-only", longest, table(moved, SUMS), best
    ),
    "splits by heart": fooling(
        "the cases are in the package", "known-cases-only", longest, moved, table(best, CHOICES)
    ),
    "the judge's": fooling("a caller knows", "constant", from_the_judge, moved, best),
    "powers of two alone": fooling(
        "it mostly is one", "right-in-part", longest, moved,
        lambda tiles, steps, sms, start, each: min(
            (1 << i for i in range(steps.bit_length())),
            key=lambda s: longest(tiles, steps, s, sms) + (s > 1) * (start + each * s),
        ),
    ),
    "counts for ever": fooling("nobody can stop it", "never-ends", longest, moved, for_ever),
}  # fmt: skip
