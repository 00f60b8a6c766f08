"""Exercise 06.3: the thread tile that another format, or another GPU, asks for."""

from dataclasses import replace
from math import ceil
from typing import Any

import numpy as np

from gemmlab.course.judging import Diagnosis, Finding, Task, drawing, functions_on_trial

TILES = ((1, 1), (1, 2), (2, 2), (4, 2), (8, 4), (8, 8), (16, 8))
TILES_AND_BYTES = tuple((*tile, itemsize) for tile in TILES for itemsize in (4, 8))
# FMAs of a warp that an SM starts in a cycle, and bytes of an element.
PIPES = ((1, 4), (2, 4), (4, 4), (0.5, 8), (1, 8), (2, 8), (4, 8), (0.0625, 8), (0.75, 4), (0.6, 8))


def wavefronts(tm, tn, itemsize):
    """Wavefronts of shared loads for each FMA of a warp."""
    # [answer] return ...
    return (tm + tn) / (tm * tn) * itemsize / 4
    # [end]


def registers(tm, tn, itemsize):
    """Registers of 32 bits that a thread needs at least: its sums, and the values of one p."""
    # [answer] return ...
    return (tm * tn + tm + tn) * itemsize // 4
    # [end]


def side(fmas, itemsize):
    """The least side of a square thread tile with which shared loads keep up with the FMAs."""
    # [answer] return ...
    return max(1, ceil(fmas * itemsize / 2))
    # [end]


WAVEFRONTS_INSTEAD = {
    "nothing-shared": lambda tm, tn, itemsize: 2 * itemsize / 4,
    "loads-not-wavefronts": lambda tm, tn, itemsize: (tm + tn) / (tm * tn),
    "of-the-tile": lambda tm, tn, itemsize: (tm + tn) * itemsize / 4,
    "upside-down": lambda tm, tn, itemsize: tm * tn / (tm + tn) * 4 / itemsize,
}
REGISTERS_INSTEAD = {
    "one-each": lambda tm, tn, itemsize: tm * tn + tm + tn,
    "bytes-not-registers": lambda tm, tn, itemsize: (tm * tn + tm + tn) * itemsize,
    "sums-alone": lambda tm, tn, itemsize: tm * tn * itemsize // 4,
    "products-kept": lambda tm, tn, itemsize: (2 * tm * tn + tm + tn) * itemsize // 4,
}
SIDE_INSTEAD = {
    "one-load-an-fma": lambda fmas, itemsize: max(1, ceil(fmas * itemsize / 4)),
    "four-bytes-assumed": lambda fmas, itemsize: max(1, ceil(2 * fmas)),
    "rounded-down": lambda fmas, itemsize: max(1, int(fmas * itemsize / 2)),
    "rounded-down 2": lambda fmas, itemsize: max(1, round(fmas * itemsize / 2)),
    "not-whole": lambda fmas, itemsize: fmas * itemsize / 2,
    "area-not-side": lambda fmas, itemsize: max(1, ceil(fmas * itemsize / 2)) ** 2,
}


def judge(passes: Any, held: Any, least: Any) -> Finding:
    """Try the three functions in turn; the first that is wrong decides."""
    rng = drawing.generator()
    tm, tn = (int(x) for x in rng.choice(np.arange(3, 30), 2, replace=False))
    tiles = [(tm, tn, itemsize) for itemsize in (4, 8)]
    pipes = [(int(rng.integers(5, 30)), 4), (int(rng.integers(50, 90)), 8)]
    cases, judged = TILES_AND_BYTES, functions_on_trial.judge
    found = (
        judged("wavefronts", passes, cases, wavefronts, WAVEFRONTS_INSTEAD, fresh=tiles)
        or judged("registers", held, cases, registers, REGISTERS_INSTEAD, fresh=tiles)
        or judged("side", least, PIPES, side, SIDE_INSTEAD, fresh=pipes)
    )
    if found is not None:
        return replace(found, diagnosis=found.diagnosis.split()[0])
    checked = f"{len(TILES)} thread tiles of 4 and 8 bytes, {len(PIPES)} pipes"
    return Finding("passed", (("Checked", checked),))


TASK = Task(
    name="06.3",
    title="Another format, another GPU",
    section="chapter 06, One sum, four sums, many",
    asked="wavefronts(tm, tn, itemsize), registers(tm, tn, itemsize) and side(fmas, itemsize), "
    "each a number.",
    prompt="""
    Elements have `itemsize` bytes now: 4, or 8 for float64. A thread computes tm×tn elements of C,
    and for each p it loads its tm values of A and its tn values of B one by one. Let each load of a
    warp, of A or of B, bring 32 neighbours. A wavefront carries 128 bytes, and a register holds 4.

    - `wavefronts(tm, tn, itemsize)`: wavefronts of shared loads for each FMA of a warp;
    - `registers(tm, tn, itemsize)`: registers that hold a thread's sums and the values of one p;
    - `side(fmas, itemsize)`: an SM starts `fmas` FMAs of whole warps in a cycle, at most (0.5:
      one in two cycles), and its shared memory delivers one wavefront. Which is the least side, a
      whole number, of a *square* thread tile with which the FMA units need not wait for words?
    """,
    judge=judge,
    answers=(wavefronts, registers, side),
    diagnoses={
        "not-attempted": Diagnosis(
            "A function still returns the gap of the skeleton.",
            "How many bytes do 32 lanes read with one load, and how many wavefronts is that?",
            "wavefronts = loads for one p · … / (FMAs for one p)",
        ),
        "nothing-shared": Diagnosis(
            "Two loads for each FMA is what one element a thread costs.",
            "How many FMAs does one loaded value of A serve?",
            "wavefronts = (loads of A + loads of B for one p) / (FMAs for one p) · …",
        ),
        "loads-not-wavefronts": Diagnosis(
            "These are loads. A load of 8-byte elements carries more than one wavefront holds.",
            "How many bytes do 32 lanes read with one load, and how many wavefronts is that?",
            "wavefronts = (tm + tn) / (tm · tn) · itemsize / …",
        ),
        "of-the-tile": Diagnosis(
            "These are the wavefronts for one p, not for one FMA.",
            "How many FMAs does a thread make for one p?",
            "wavefronts = (tm + tn) · itemsize / 4 / …",
        ),
        "upside-down": Diagnosis(
            "These are FMAs for each wavefront.",
            "Should the number rise or fall as tiles grow?",
            "wavefronts = … / (tm · tn) · …",
        ),
        "one-each": Diagnosis(
            "A value of 8 bytes takes two registers.",
            "How many registers does one sum need in float64?",
            "registers = (tm · tn + tm + tn) · …",
        ),
        "bytes-not-registers": Diagnosis(
            "These are bytes; a register holds 4 of them.",
            "In which unit is itemsize given, and in which the answer?",
            "registers = (tm · tn + tm + tn) · itemsize / …",
        ),
        "sums-alone": Diagnosis(
            "The values that are multiplied need registers too.",
            "Where are the operands of an FMA when it is executed?",
            "registers = (tm · tn + …) · itemsize / 4",
        ),
        "products-kept": Diagnosis(
            "Products are counted as if they were kept; an FMA adds each to its sum at once.",
            "What does an FMA write, and where?",
            "registers = (tm · tn + … + …) · itemsize / 4",
        ),
        "one-load-an-fma": Diagnosis(
            "A thread loads values of both operands: t of A and t of B for t² FMAs.",
            "What is wavefronts(t, t, 4)?",
            "wavefronts(t, t, itemsize) · fmas ≤ 1: solve for t",
        ),
        "four-bytes-assumed": Diagnosis(
            "The side is that of float32, whatever itemsize is.",
            "What is wavefronts(t, t, 8), and where does itemsize enter your side?",
            "side = the least whole number that is not below … · itemsize / 2",
        ),
        "rounded-down": Diagnosis(
            "The side is rounded down, or to the nearest, and falls just short.",
            "Does a wavefront at your side still serve as many FMAs as the SM starts in a cycle?",
            "math.…(fmas * itemsize / 2)",
        ),
        "not-whole": Diagnosis(
            "A thread computes whole elements, at least one.",
            "Which side does the result 0.25 stand for?",
            "side = max(1, ceil(…))",
        ),
        "area-not-side": Diagnosis(
            "This is the number of elements; its root was asked for.",
            "How many rows has the tile?",
            "side = max(1, ceil(…))",
        ),
    },
    praise="In float64 an H200 starts half as many FMAs in a cycle and each load takes twice the "
    "wavefronts: 8×8 again, but for twice the registers.",
)
