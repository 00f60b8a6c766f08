"""Exercise 06.2: loads, registers and padding of a thread tile."""

from __future__ import annotations

from typing import Any

import numpy as np

from gemmlab.exercises import quantities
from gemmlab.exercises.exercise import Task
from gemmlab.exercises.verdict import Diagnosis, Finding
from gemmlab.model.transactions import BANKS

TILES = ((1, 1), (1, 2), (2, 2), (4, 2), (8, 4), (8, 8), (16, 8))
WIDTHS = ((1,), (2,), (7,), (8,), (16,), (31,), (32,), (33,), (48,), (64,), (100,), (128,))


def loads_per_fma(tm, tn):
    """Words that a thread loads from shared memory for each of its FMAs."""
    # [answer] return ...
    return (tm + tn) / (tm * tn)
    # [end]


def registers(tm, tn):
    """Registers that a thread needs at least: its sums, and the values of one p."""
    # [answer] return ...
    return tm * tn + tm + tn
    # [end]


def padding(width):
    """The fewest unused words after each row, for columns without bank conflicts."""
    # [answer] return ...
    return 0 if width % 2 == 1 else 1
    # [end]


LOADS_INSTEAD = {
    "nothing-shared": lambda tm, tn: 2,
    "loads-of-the-tile": lambda tm, tn: tm + tn,
    "two-loads-a-tile": lambda tm, tn: 2 / (tm * tn),
    "upside-down": lambda tm, tn: tm * tn / (tm + tn),
}
REGISTERS_INSTEAD = {
    "sums-alone": lambda tm, tn: tm * tn,
    "operands-alone": lambda tm, tn: tm + tn,
    "products-kept": lambda tm, tn: 2 * tm * tn + tm + tn,
}
PADDING_INSTEAD = {
    "always-one": lambda width: 1,
    "to-whole-lines": lambda width: -width % BANKS,
    "even-is-right": lambda width: width % 2,
}


def judge(loads: Any, held: Any, pad: Any) -> Finding:
    """The three functions in turn; the first that is wrong decides."""
    rng = np.random.default_rng()
    tile = tuple(int(x) for x in rng.choice(np.arange(3, 30), 2, replace=False))
    widths = [(int(x),) for x in rng.integers(129, 999, 2)]
    found = (
        quantities.judge("loads_per_fma", loads, TILES, loads_per_fma, LOADS_INSTEAD, fresh=[tile])
        or quantities.judge("registers", held, TILES, registers, REGISTERS_INSTEAD, fresh=[tile])
        or quantities.judge("padding", pad, WIDTHS, padding, PADDING_INSTEAD, fresh=widths)
    )
    if found is not None:
        return found
    return Finding("passed", (("Checked", f"{len(TILES)} thread tiles, {len(WIDTHS)} widths"),))


TASK = Task(
    name="06.2",
    title="Loads, registers, padding",
    section="chapter 06, What registers cost",
    asked="loads_per_fma(tm, tn), registers(tm, tn) and padding(width), each a number.",
    prompt=f"""
    A thread computes tm×tn elements of C. For each p it loads the tm values of A and the tn values
    of B that it needs, one word each, and adds tm·tn products to its sums.

    - `loads_per_fma(tm, tn)`: shared loads of a thread for each of its FMAs;
    - `registers(tm, tn)`: the registers that hold its sums and the values of one p;
    - `padding(width)`: a tile has rows of `width` float32. How many unused words must follow each
      row, at least, so that 32 lanes that read a column, tile[lane, 0], do so in one wavefront?
      There are {BANKS} banks of one word.
    """,
    judge=judge,
    answers=(loads_per_fma, registers, padding),
    diagnoses={
        "nothing-shared": Diagnosis(
            "Two loads for each FMA is what one element a thread costs.",
            "How many FMAs does one loaded value of A serve?",
            "loads_per_fma = (loads of A + loads of B for one p) / (FMAs for one p)",
        ),
        "loads-of-the-tile": Diagnosis(
            "These are the loads for one p, not for one FMA.",
            "How many FMAs does a thread make for one p?",
            "loads_per_fma = (tm + tn) / …",
        ),
        "two-loads-a-tile": Diagnosis(
            "One load of A and one of B are counted for the whole tile; a thread needs a value for "
            "each of its rows and columns.",
            "How many different values of A meet how many of B?",
            "loads_per_fma = (… + …) / (tm · tn)",
        ),
        "upside-down": Diagnosis(
            "These are FMAs for each load.",
            "Should the number rise or fall as tiles grow?",
            "loads_per_fma = … / (tm · tn)",
        ),
        "sums-alone": Diagnosis(
            "The values that are multiplied need registers too.",
            "Where are the operands of an FMA when it is executed?",
            "registers = tm·tn + …",
        ),
        "operands-alone": Diagnosis(
            "The sums are left out; they live in registers for the whole of k.",
            "How many running sums does a thread have?",
            "registers = … + tm + tn",
        ),
        "products-kept": Diagnosis(
            "Products are counted as if they were kept; an FMA adds each to its sum at once.",
            "What does an FMA write, and where?",
            "registers = tm·tn + … + …",
        ),
        "always-one": Diagnosis(
            "One word is added even where the rows need none.",
            "In which banks does a column of a tile with rows of 33 words lie?",
            "padding = 0 if … else 1",
        ),
        "to-whole-lines": Diagnosis(
            "Rows of whole lines are the worst case: a column then lies in one bank.",
            "With rows of 32 words, in which bank is tile[1, 0]? And with 33?",
            "The bank of tile[lane, 0] is lane·(width + padding) mod 32: when do 32 lanes differ?",
        ),
        "even-is-right": Diagnosis(
            "It is the other way round: with rows of an even length, lanes share banks.",
            "With rows of 2 words, in which bank is tile[16, 0]?",
            "padding = 0 if width is … else 1",
        ),
    },
    praise="Loads fall with the sides of the tile, registers rise with its area. And an odd row "
    "length meets every bank once, because it has no factor in common with 32.",
)
