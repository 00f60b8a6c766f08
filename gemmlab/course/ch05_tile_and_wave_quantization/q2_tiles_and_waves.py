"""Exercise 05.2: the tiles of a product, the SMs that they occupy, and columns for nothing."""

from dataclasses import replace
from typing import Any

from gemmlab.course.judging import Diagnosis, Finding, Task, drawing, functions_on_trial

# (m, n, bm, bn), smallest first: whole tiles, ragged rows, ragged columns, both.
SHAPES = (
    (1, 1, 1, 1), (4, 4, 4, 2), (5, 4, 4, 4), (3, 9, 4, 4), (100, 50, 16, 32), (256, 256, 128, 128),
    (256, 257, 128, 128), (2304, 1544, 256, 128), (1408, 3072, 128, 256),
)  # fmt: skip
# (tiles, SMs): one wave and less, one more than a wave, many.
LAUNCHES = (
    (1, 1),
    (1, 8),
    (8, 8),
    (9, 8),
    (12, 8),
    (109, 108),
    (117, 108),
    (117, 132),
    (1000, 132),
)
# (m, n, bm, bn, SMs): the last column of tiles is full or not, the last wave is full or not, and
# waves end between two columns of tiles or, of 5 or 7 tiles each, inside of one.
GROWING = (
    (1, 1, 1, 1, 1), (2, 3, 2, 2, 4), (8, 15, 4, 4, 8), (8, 9, 4, 4, 8), (9, 8, 4, 4, 8),
    (40, 20, 8, 8, 8), (40, 30, 8, 8, 3), (64, 64, 16, 32, 20), (56, 33, 8, 16, 10),
    (256, 257, 128, 128, 8), (2304, 1400, 256, 128, 108), (2304, 1544, 256, 128, 108),
    (1408, 3080, 128, 256, 132), (4096, 4096, 128, 256, 132),
)  # fmt: skip


def tiles(m, n, bm, bn):
    """Tiles of bm×bn elements that cover m×n elements."""
    # [answer] return ...
    return -(-m // bm) * -(-n // bn)
    # [end]


def busy(tiles, sms):
    """The share of the SMs that work, on average over all waves: 0 to 1."""
    # [answer] return ...
    waves = -(-tiles // sms)
    return tiles / (waves * sms)
    # [end]


def widest(m, n, bm, bn, sms):
    """The largest number of columns that takes no more waves than n columns do."""
    # [answer] return ...
    down, across = -(-m // bm), -(-n // bn)
    waves = -(-down * across // sms)
    return waves * sms // down * bn
    # [end]


def _waves(m: int, n: int, bm: int, bn: int, sms: int) -> int:
    return -(-tiles(m, n, bm, bn) // sms)


TILES_INSTEAD = {
    "rounded-down": lambda m, n, bm, bn: (m // bm) * (n // bn),
    "rounded-too-late": lambda m, n, bm, bn: -(-m * n // (bm * bn)),
    "not-rounded": lambda m, n, bm, bn: m * n / (bm * bn),
    "one-too-many": lambda m, n, bm, bn: (m // bm + 1) * (n // bn + 1),
    "tile-turned": lambda m, n, bm, bn: -(-m // bn) * -(-n // bm),
}
BUSY_INSTEAD = {
    "tail-alone": lambda tiles, sms: ((tiles - 1) % sms + 1) / sms,
    "tail-alone 2": lambda tiles, sms: tiles % sms / sms,
    "more-than-all": lambda tiles, sms: tiles / sms,
    "first-wave-alone": lambda tiles, sms: min(1.0, tiles / sms),
    "idle-not-busy": lambda tiles, sms: 1 - tiles / (-(-tiles // sms) * sms),
}
WIDEST_INSTEAD = {
    "tile-alone": lambda m, n, bm, bn, sms: -(-n // bn) * bn,
    "columns-of-each-wave": lambda m, n, bm, bn, sms: _waves(m, n, bm, bn, sms)
    * (sms // -(-m // bm))
    * bn,
    "columns-of-each-wave, at least n": lambda m, n, bm, bn, sms: max(
        -(-n // bn) * bn, _waves(m, n, bm, bn, sms) * (sms // -(-m // bm)) * bn
    ),
    "columns-of-each-wave, of one less": lambda m, n, bm, bn, sms: max(
        n, _waves(m, n, bm, bn, sms) * (sms // -(-m // bm)) * bn
    ),
    "fraction-of-a-tile": lambda m, n, bm, bn, sms: _waves(m, n, bm, bn, sms) * sms * bn // -(
        -m // bm
    ),
    "first-of-the-next": lambda m, n, bm, bn, sms: widest(m, n, bm, bn, sms) + 1,
    "one-row-of-tiles": lambda m, n, bm, bn, sms: -(-tiles(1, n, 1, bn) // sms)
    * sms
    * bn,
    "columns-added": lambda m, n, bm, bn, sms: widest(m, n, bm, bn, sms) - n,
    "one-wave-alone": lambda m, n, bm, bn, sms: sms // -(-m // bm) * bn,
    "next-wave": lambda m, n, bm, bn, sms: (_waves(m, n, bm, bn, sms) + 1)
    * sms // -(-m // bm) * bn,
    "whole-waves-of-n": lambda m, n, bm, bn, sms: _waves(m, n, bm, bn, sms) * sms * bn,
    "tile-turned": lambda m, n, bm, bn, sms: -(-tiles(m, n, bn, bm) // sms)
    * sms // -(-m // bn) * bm,
}  # fmt: skip


def judge(count: Any, share: Any, most: Any) -> Finding:
    """Try the three functions in turn; the first that is wrong decides."""
    rng = drawing.generator()
    m, n = (int(x) for x in rng.integers(10_000, 60_000, 2))
    bm, bn = (int(x) for x in rng.choice([8, 24, 40, 56], 2, replace=False))
    sms = int(rng.integers(20, 200))
    judged = functions_on_trial.judge
    found = (
        judged("tiles", count, SHAPES, tiles, TILES_INSTEAD, fresh=[(m, n, bm, bn)])
        or judged("busy", share, LAUNCHES, busy, BUSY_INSTEAD, fresh=[(m, sms)])
        or judged("widest", most, GROWING, widest, WIDEST_INSTEAD, fresh=[(m, n, bm, bn, sms)])
    )
    if found is None:
        told = f"{len(SHAPES)} shapes, {len(LAUNCHES)} launches, {len(GROWING)} growing products"
        return Finding("passed", (("Checked", told),))
    return replace(found, diagnosis=found.diagnosis.replace(",", " ").split()[0])


TASK = Task(
    name="05.2",
    title="Columns for nothing",
    section="chapter 05, How many columns are free?",
    asked="tiles(m, n, bm, bn), busy(tiles, sms) and widest(m, n, bm, bn, sms), each a number.",
    prompt="""
    A kernel cuts C, m rows by n columns, into tiles of bm×bn. An SM computes one tile at a time,
    and all tiles take equally long: the launch proceeds in *waves* of `sms` tiles.

    - `tiles(m, n, bm, bn)`: how many tiles there are, the incomplete ones included;
    - `busy(tiles, sms)`: the share of the SMs that work, on average from the first wave to the end
      of the last, from 0 to 1;
    - `widest(m, n, bm, bn, sms)`: how many columns may C have, at most, if the launch is to take no
      more waves than it does with n?
    """,
    judge=judge,
    answers=(tiles, busy, widest),
    diagnoses={
        "not-attempted": Diagnosis(
            "A function still returns the gap of the skeleton.",
            "How many tiles lie side by side along n, and how many along m?",
            "tiles = ⌈m / bm⌉ · …",
        ),
        "rounded-down": Diagnosis(
            "The incomplete tiles at the edges are left out.",
            "How many tiles does one element need?",
            "```python\nreturn -(-m // bm) * ...    # rounded up\n```",
        ),
        "rounded-too-late": Diagnosis(
            "The elements are divided by the size of a tile, and then rounded. A tile that hangs "
            "over one edge cannot be cut up to fill another.",
            "Which tiles does a product of 1 row and 9 columns need, with tiles of 4×4?",
            "Round each direction by itself: ⌈m / bm⌉ · ⌈n / bn⌉.",
        ),
        "not-rounded": Diagnosis(
            "There are no fractions of a tile: a block computes all of it or nothing.",
            "What is ⌈1 / 4⌉?",
            "```python\nreturn -(-m // bm) * ...    # rounded up\n```",
        ),
        "one-too-many": Diagnosis(
            "Where the tile divides the matrix, there is a tile too many in each direction.",
            "How many tiles of 4 do 4 rows need?",
            "⌈m / bm⌉ is m // bm where bm divides m, and one more where it does not.",
        ),
        "tile-turned": Diagnosis(
            "The height of the tile divides the columns, and its width the rows.",
            "Which size of a tile runs along m?",
            "bm belongs to m, and bn to …",
        ),
        "tail-alone": Diagnosis(
            "This is the share in the last wave. All waves before it are full.",
            "In how many waves do how many tiles get done?",
            "busy = tiles / (waves · …)",
        ),
        "more-than-all": Diagnosis(
            "This is the number of waves, as a fraction: beyond one wave it exceeds 1.",
            "How many tiles could be computed in all the waves together?",
            "busy = tiles / (⌈tiles / sms⌉ · …)",
        ),
        "first-wave-alone": Diagnosis(
            "This looks at the first wave, which is full in any large launch.",
            "How many SMs have a tile in the last wave?",
            "busy = tiles / (waves · sms), with waves = ⌈…⌉",
        ),
        "idle-not-busy": Diagnosis(
            "This is the share that has nothing to do.",
            "What should it be when the tiles fill the waves exactly?",
            "busy = 1 - idle",
        ),
        "tile-alone": Diagnosis(
            "This fills the last column of tiles. The last wave may have room for more of them.",
            "How many tiles fit into the waves of n columns, and how many are one column of them?",
            "across = waves · sms // …",
        ),
        "columns-of-each-wave": Diagnosis(
            "This gives each wave its own whole columns of tiles. A wave may end in the middle of "
            "a column, and the next one goes on there.",
            "5 tiles are a column, and 8 SMs work: which tiles does the second wave begin and end "
            "with?",
            "Count all tiles of all waves first: widest = (waves · sms // …) · bn",
        ),
        "next-wave": Diagnosis(
            "This width takes one wave more than n columns do.",
            "How many waves does your launch take at n, and how many at the width you return?",
            "waves = ⌈tiles / sms⌉, rounded up already",
        ),
        "whole-waves-of-n": Diagnosis(
            "This takes each tile for a column of its own; a column has several tiles.",
            "How many tiles lie below each other?",
            "widest = (waves · sms // …) · bn",
        ),
        "fraction-of-a-tile": Diagnosis(
            "A column of tiles needs room for all of its tiles: a part of one does not count.",
            "How many whole columns of tiles fit into waves · sms tiles?",
            "widest = (waves · sms // down) · …",
        ),
        "first-of-the-next": Diagnosis(
            "This column is the first that costs another wave.",
            "With C of that width, how many waves does your launch take?",
            "The last column of the last tile that fits has the number across · bn.",
        ),
        "one-row-of-tiles": Diagnosis(
            "This counts the tiles of one row of C alone.",
            "How many tiles does each column of tiles have?",
            "waves = ⌈down · across / sms⌉",
        ),
        "columns-added": Diagnosis(
            "These are the columns that may be added to n.",
            "Does the question ask for a width or for a difference?",
            "widest = n + …",
        ),
        "one-wave-alone": Diagnosis(
            "This is the width that fits into the first wave.",
            "How many waves does the launch take with n columns?",
            "widest = (… · sms // down) · bn",
        ),
    },
    praise="Work comes in whole tiles, and tiles in whole waves: until one is full, columns cost "
    "nothing.",
)
