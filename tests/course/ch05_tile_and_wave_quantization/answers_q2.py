"""Answers to exercise 05.2."""

import math

from gemmlab.course.ch05_tile_and_wave_quantization.q2_tiles_and_waves import (
    GROWING,
    LAUNCHES,
    SHAPES,
    busy,
    tiles,
    widest,
)
from tests.course.answers import Wrong, edited, fooling, for_ever, table


def _counted(m, n, bm, bn):
    return len(range(0, m, bm)) * len(range(0, n, bn))


def _wave_by_wave(tiles, sms):
    left, waves = tiles, 0
    while left > 0:
        left, waves = left - sms, waves + 1
    return (tiles / waves) / sms


def _searched(m, n, bm, bn, sms):
    def waves(width):
        return math.ceil(_counted(m, width, bm, bn) / sms)

    at, limit = n, waves(n)
    at += -at % bn  # the tile is full
    while waves(at + bn) == limit:
        at += bn
    return at


RIGHT = {
    "ceil": (
        lambda m, n, bm, bn: math.ceil(m / bm) * math.ceil(n / bn),
        lambda tiles, sms: tiles / sms / math.ceil(tiles / sms),
        lambda m, n, bm, bn, sms: (
            bn * (math.ceil(math.ceil(m / bm) * math.ceil(n / bn) / sms) * sms // math.ceil(m / bm))
        ),
    ),
    "counted": (_counted, _wave_by_wave, _searched),
}


def _tiles(misconception, diagnosis, new):
    return Wrong(
        misconception, diagnosis, (edited(tiles, ("-(-m // bm) * -(-n // bn)", new)), busy, widest)
    )


def _busy(misconception, diagnosis, new):
    return Wrong(
        misconception, diagnosis, (tiles, edited(busy, ("tiles / (waves * sms)", new)), widest)
    )


def _widest(misconception, diagnosis, new):
    answer = edited(widest, ("waves * sms // down * bn", new))
    return Wrong(misconception, diagnosis, (tiles, busy, answer))


WRONG = {
    "down": _tiles("the edge does not count", "rounded-down", "(m // bm) * (n // bn)"),
    "rounded at the end": _tiles(
        "tiles can be cut up", "rounded-too-late", "-(-(m * n) // (bm * bn))"
    ),
    "a fraction": _tiles("a part of a tile is a part", "not-rounded", "m / bm * n / bn"),
    "plus one": _tiles("there is always an edge", "one-too-many", "(m // bm + 1) * (n // bn + 1)"),
    "turned": _tiles("bm is a width", "tile-turned", "-(-m // bn) * -(-n // bm)"),
    "the tail": _busy(
        "the last wave is what counts", "tail-alone", "((tiles - 1) % sms + 1) / sms"
    ),
    "the rest": _busy("the tail is the remainder", "tail-alone", "tiles % sms / sms"),
    "waves": _busy("tiles over SMs is a share", "more-than-all", "tiles / sms"),
    "never more than all": _busy(
        "a GPU with enough tiles is full", "first-wave-alone", "min(1, tiles / sms)"
    ),
    "idle": _busy("waste is what is asked for", "idle-not-busy", "1 - tiles / (waves * sms)"),
    "always busy": _busy("a GPU is full", "constant", "1"),
    "the tile": _widest("only tiles are quantised", "tile-alone", "across * bn"),
    "each wave its columns": _widest(
        "a wave begins with a column", "columns-of-each-wave", "waves * (sms // down) * bn"
    ),
    "each wave its columns, at least n": _widest(
        "n columns fit", "columns-of-each-wave", "max(across * bn, waves * (sms // down) * bn)"
    ),
    "full waves stay": _widest(
        "full waves have no room", "right-in-part",
        "n if waves * sms == down * across else waves * sms // down * bn",
    ),
    "a wave more": _widest(
        "one more is free", "next-wave", "(waves + 1) * sms // down * bn"
    ),
    "a column a tile": _widest(
        "tiles lie in one row", "whole-waves-of-n", "waves * sms * bn"
    ),
    "not whole": _widest(
        "a wave is cut anywhere", "fraction-of-a-tile", "waves * sms * bn // down"
    ),
    "one further": _widest(
        "the step is the answer", "first-of-the-next", "waves * sms // down * bn + 1"
    ),
    "one row": _widest("tiles lie in one row", "one-row-of-tiles", "-(-across // sms) * sms * bn"),
    "how many more": _widest("free columns", "columns-added", "waves * sms // down * bn - n"),
    "one wave": _widest("a launch is one wave", "one-wave-alone", "sms // down * bn"),
    "a gap": _widest("two of three are enough", "not-attempted", "..."),
}  # fmt: skip

FOOLING = {
    "tiles by heart": fooling(
        "the cases are in the package", "known-cases-only", table(tiles, SHAPES), busy, widest
    ),
    "shares by heart": fooling(
        "the cases are in the package", "known-cases-only", tiles, table(busy, LAUNCHES), widest
    ),
    "widths by heart": fooling(
        "the cases are in the package", "known-cases-only", tiles, busy, table(widest, GROWING)
    ),
    "tiles of two sizes": fooling(
        "round the other edge down", "right-in-part",
        lambda m, n, bm, bn: -(-m // bm) * max(1, n // bn), busy, widest,
    ),
    "counts up for ever": fooling("nobody can stop it", "never-ends", tiles, busy, for_ever),
}  # fmt: skip
