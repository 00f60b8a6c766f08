"""Answers to exercise 13.4."""

from gemmlab.course.ch13_in_action.q4_what_to_change import SMS, STEPS, fused, idle, in_parts
from tests.course.answers import Wrong, edited, fooling, for_ever, from_the_judge, table

BUSY = "busy = sum(time * min(blocks, sms) / sms for _, blocks, time in launches)"
SHARE = "1 - busy / total"
BEHIND = 'behind_product = kind == "product" or (kind == "each" and behind_product)'
LEFT = 'if kind == "product" or not behind_product:'
CUT = "cut = fixed + (time - fixed) / parts + fixed"
PARTS = "parts = max(1, sms // blocks)"
LEAST = 'min(time, cut) if kind == "product" else time'


def _by_groups(launches):
    """Each product takes the launches with it that follow, until something else comes."""
    total, left = 0.0, list(launches)
    while left:
        kind, _, time = left.pop(0)
        total += time
        while kind == "product" and left and left[0][0] == "each":
            left.pop(0)
    return total


RIGHT = {
    "SM by SM": (
        lambda launches, sms: (
            sum(t * max(0, sms - b) for _, b, t in launches)
            / (sms * sum(t for _, _, t in launches))
        ),
        _by_groups,
        lambda launches, sms, fixed: sum(
            t - max(0, (t - fixed) * (1 - 1 / max(1, sms // b)) - fixed) * (kind == "product")
            for kind, b, t in launches
        ),
    ),
    "the solution, in other words": (idle, _by_groups, in_parts),
}


def _idle(misconception, diagnosis, *edits):
    return Wrong(misconception, diagnosis, (edited(idle, *edits), fused, in_parts))


def _fused(misconception, diagnosis, *edits):
    return Wrong(misconception, diagnosis, (idle, edited(fused, *edits), in_parts))


def _split(misconception, diagnosis, *edits):
    return Wrong(misconception, diagnosis, (idle, fused, edited(in_parts, *edits)))


WRONG = {
    "busy": _idle("what works is asked", "busy-share", (SHARE, "busy / total")),
    "a mean of launches": _idle(
        "a launch is a launch", "launches-alike",
        (BUSY, "busy = sum(min(blocks, sms) / sms for _, blocks, time in launches)"),
        (SHARE, "1 - busy / len(launches)"),
    ),
    "not limited": _idle(
        "more blocks, less idle", "more-than-all", ("min(blocks, sms)", "blocks")
    ),
    "the tail": _idle(
        "chapter 5's waves", "last-wave",
        (BUSY, "busy = sum(time * (1 - -blocks % sms / sms) for _, blocks, time in launches)"),
    ),
    "a time": _idle("time is idle", "time-not-share", (SHARE, "total - busy")),
    "of products": _idle(
        "only products work", "products-alone",
        (BUSY, "busy = sum(time * (min(blocks, sms) / sms if kind == 'product' else 1)"
               " for kind, blocks, time in launches)"),
    ),
    "as it is": _fused("an epilogue takes as long", "nothing-gone", (LEFT, "if True:")),
    "every each": _fused(
        "elements are elements", "all-each-gone", (LEFT, 'if kind != "each":')
    ),
    "sums as well": _fused("all that follows", "sums-gone", (LEFT, 'if kind == "product":')),
    "once behind, always": _fused(
        "an epilogue can do it", "behind-a-sum",
        (BEHIND, 'behind_product = behind_product or kind == "product"'),
        (LEFT, 'if kind != "each" or not behind_product:'),
    ),
    "all behind a product": _fused(
        "an epilogue can do all", "sums-gone",
        (BEHIND, 'behind_product = behind_product or kind == "product"'),
    ),
    "the next one": _fused(
        "an epilogue does one thing", "first-only",
        (BEHIND + "\n        " + LEFT,
         'fusable = kind == "each" and behind_product\n'
         '        behind_product = kind == "product"\n        if not fusable:'),
    ),
    "what is saved": _fused(
        "the gain is asked", "saved-not-left",
        (LEFT, 'if kind == "each" and behind_product:'),
    ),
    "no split": _split("parts cost as much", "never-split", (LEAST, "time")),
    "always": _split(
        "a split helps", "always-split", (LEAST, 'cut if kind == "product" else time')
    ),
    "one launch": _split(
        "parts add themselves", "second-launch-free", (CUT, CUT.removesuffix(" + fixed"))
    ),
    "all divided": _split(
        "all of it is the loop", "fixed-divided", (CUT, "cut = time / parts + fixed")
    ),
    "up": _split(
        "no SM without a block", "parts-rounded-up", (PARTS, "parts = -(-sms // blocks)")
    ),
    "a fraction": _split(
        "parts divide evenly", "parts-not-whole", (PARTS, "parts = max(1, sms / blocks)")
    ),
    "all kinds": _split("blocks are blocks", "all-kinds-split", (LEAST, "min(time, cut)")),
    "saved by splitting": _split(
        "the gain is asked", "saved-not-left",
        (LEAST, 'time - min(time, cut) if kind == "product" else 0'),
    ),
    "a gap": _split("two of three are enough", "not-attempted", ("return total", "return ...")),
}  # fmt: skip

PAIRS = [(one, sms) for one in STEPS for sms in SMS]
FOOLING = {
    "idle by heart": fooling(
        "the cases are in the package", "known-cases-only", table(idle, PAIRS), fused, in_parts
    ),
    "fused by heart": fooling(
        "the cases are in the package", "known-cases-only",
        idle, table(fused, [(one,) for one in STEPS]), in_parts,
    ),
    "the judge's": fooling("a caller knows", "constant", from_the_judge, fused, in_parts),
    "counts for ever": fooling("nobody can stop it", "never-ends", idle, for_ever, in_parts),
}  # fmt: skip
