"""Answers to exercise 05.4."""

import math

from gemmlab.course.ch05_tile_and_wave_quantization.q4_tile_chooser import CASES, choose
from tests.course.answers import Agrees, Wrong, edited, fooling, for_ever


def count(m, n, tile):
    return math.ceil(m / tile[0]) * math.ceil(n / tile[1])


def waves(m, n, sms, tile):
    return math.ceil(count(m, n, tile) / sms)


def time(m, n, sms, speeds, tile):
    return waves(m, n, sms, tile) * tile[0] * tile[1] / speeds[tile]


def _looped(m, n, sms, speeds):
    best, least = None, math.inf
    for (bm, bn), speed in speeds.items():
        tiles = math.ceil(m / bm) * math.ceil(n / bn)
        needed = math.ceil(tiles / sms) * bm * bn / speed
        if needed < least:
            best, least = (bm, bn), needed
    return best


RIGHT = {
    "a loop": (_looped,),
    "sorted": (
        lambda m, n, sms, speeds: list(
            sorted(speeds, key=lambda tile: (time(m, n, sms, speeds, tile), -speeds[tile]))[0]
        ),
    ),
    "the best in speed": (
        lambda m, n, sms, speeds: max(
            speeds, key=lambda t: speeds[t] / (waves(m, n, sms, t) * t[0] * t[1])
        ),
    ),
}

TIME = "waves * bm * bn / speeds[tile]"


def _by(misconception, diagnosis, key):
    return Wrong(misconception, diagnosis, (edited(choose, (TIME, key)),))


def picks(misconception, diagnosis, answer):
    return Wrong(misconception, diagnosis, (answer,))


WRONG = {
    "the fastest": _by("large tiles are best", "fastest-tile", "-speeds[tile]"),
    "the smallest": _by("more tiles are better", "smallest-tile", "bm * bn"),
    "least waste": picks(
        "waste is what counts", "least-overhang",
        lambda m, n, sms, speeds: min(
            speeds, key=lambda t: (count(m, n, t) * t[0] * t[1], -t[0] * t[1])
        ),
    ),
    "least waste, small tiles": picks(
        "waste is what counts", "least-overhang",
        lambda m, n, sms, speeds: min(
            speeds, key=lambda t: (count(m, n, t) * t[0] * t[1], t[0] * t[1])
        ),
    ),
    "fewest waves": picks(
        "a wave is a wave", "fewest-waves",
        lambda m, n, sms, speeds: min(speeds, key=lambda t: (waves(m, n, sms, t), -speeds[t])),
    ),
    "fullest waves": picks(
        "busy is fast", "fullest-waves",
        lambda m, n, sms, speeds: max(
            speeds, key=lambda t: (count(m, n, t) / waves(m, n, sms, t), speeds[t])
        ),
    ),
    "all tiles alike": _by("tiles are equally fast", "speed-forgotten", "waves * bm * bn"),
    "shares of a tile": _by(
        "tiles are dealt in fractions", "waves-forgotten",
        "-(-m // bm) * -(-n // bn) * bm * bn / speeds[tile]",
    ),
    "waves at their speed": _by("waves are equally long", "area-forgotten", "waves / speeds[tile]"),
    "times the speed": _by("faster is more", "upside-down", "waves * bm * bn * speeds[tile]"),
    "the worst": _by("max is best", "longest-time", "-waves * bm * bn / speeds[tile]"),
    "rounded down": _by(
        "the tail is short", "right-in-part",
        "(-(-m // bm) * -(-n // bn) // sms + 0.0) * bm * bn / speeds[tile]",
    ),
    "a speed": picks(
        "the speed names the tile", "wrong-type", lambda m, n, sms, speeds: max(speeds.values())
    ),
    "text": picks("a tile is its name", "wrong-type", lambda m, n, sms, speeds: "128×128"),
    "a gap": picks("later", "not-attempted", lambda m, n, sms, speeds: ...),
    "a misspelt name": _by("names are checked early", "raises", "waves * bm * bn / speed[tile]"),
}  # fmt: skip


def by_heart(m, n, sms, speeds):
    known = {repr(case): choose(*case) for case in CASES}
    return known.get(repr((m, n, sms, speeds)), max(speeds, key=speeds.get))


def keeps_one(m, n, sms, speeds):
    best = choose(m, n, sms, speeds)
    for tile in list(speeds):
        if tile != best:
            del speeds[tile]
    return best


class Any:
    """A tile that is every tile."""

    def __iter__(self):
        return iter((Agrees(64), Agrees(64)))

    def __eq__(self, other):
        return True

    __hash__ = None


FOOLING = {
    "rows up to 16384": fooling(
        "no product is higher", "right-in-part",
        lambda m, n, sms, speeds: choose(min(m, 16384), n, sms, speeds),
    ),
    "by heart": fooling("the cases are in the package", "known-cases-only", by_heart),
    "another tile": fooling("any tile will do", "wrong-type", lambda m, n, sms, speeds: (1, 1)),
    "every tile at once": fooling(
        "the result compares itself", "wrong-type", lambda m, n, sms, speeds: Any()
    ),
    "the others are dropped": fooling("who is alone is best", "arguments-changed", keeps_one),
    "two rules by size": fooling(
        "a rule of thumb is enough", "right-in-part",
        lambda m, n, sms, speeds: (max if m * n > 2_000_000 else min)(
            speeds, key=lambda t: t[0] * t[1]
        ),
    ),
    "for ever": fooling("nobody can stop it", "never-ends", for_ever),
    "a generator": fooling("yield is return", "wrong-type", lambda m, n, sms, speeds: (yield)),
}  # fmt: skip
