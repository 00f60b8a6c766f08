"""Answers to exercise 06.3."""

from math import ceil

import numpy as np

from gemmlab.course.ch06_register_tiles.q3_thread_tile_counts import (
    PIPES,
    TILES_AND_BYTES,
    registers,
    side,
    wavefronts,
)
from tests.course.answers import Wrong, edited, fooling, for_ever, table


def _searched(fmas, itemsize):
    t = 1
    while fmas * itemsize / 2 > t:
        t += 1
    return t


RIGHT = {
    "sides": (
        lambda tm, tn, itemsize: (1 / tm + 1 / tn) * 32 * itemsize / 128,
        lambda tm, tn, itemsize: ((tm + 1) * (tn + 1) - 1) * (itemsize / 4),
        lambda fmas, itemsize: max(1, ceil(fmas * 2 * 32 * itemsize / 128)),
    ),
    "counted": (
        lambda tm, tn, itemsize: sum(itemsize // 4 for _ in range(tm + tn)) / (tm * tn),
        lambda tm, tn, itemsize: (tn * tm + tn + tm) * (2 if itemsize == 8 else 1),
        _searched,
    ),
}


def _wavefronts(misconception, diagnosis, new):
    answer = edited(wavefronts, ("(tm + tn) / (tm * tn) * itemsize / 4", new))
    return Wrong(misconception, diagnosis, (answer, registers, side))


def _registers(misconception, diagnosis, new):
    answer = edited(registers, ("(tm * tn + tm + tn) * itemsize // 4", new))
    return Wrong(misconception, diagnosis, (wavefronts, answer, side))


def _side(misconception, diagnosis, new):
    answer = edited(side, ("max(1, ceil(fmas * itemsize / 2))", new))
    return Wrong(misconception, diagnosis, (wavefronts, registers, answer))


WRONG = {
    "two": _wavefronts("each FMA loads its operands", "nothing-shared", "itemsize / 2"),
    "loads": _wavefronts("a load is a wavefront", "loads-not-wavefronts", "(tm + tn) / (tm * tn)"),
    "for one p": _wavefronts("per p is per FMA", "of-the-tile", "(tm + tn) * itemsize / 4"),
    "FMAs each": _wavefronts(
        "more is better", "upside-down", "tm * tn / (tm + tn) / (itemsize / 4)"
    ),
    "whole numbers": _wavefronts(
        "// divides", "whole-numbers-only", "(tm + tn) / (tm * tn) * itemsize // 4"
    ),
    "one register": _registers("a value is a register", "one-each", "tm * tn + tm + tn"),
    "bytes": _registers(
        "sizes are in bytes", "bytes-not-registers", "(tm * tn + tm + tn) * itemsize"
    ),
    "sums": _registers("operands come from memory", "sums-alone", "tm * tn * itemsize // 4"),
    "products": _registers(
        "a product is stored first", "products-kept", "(2 * tm * tn + tm + tn) * itemsize // 4"
    ),
    "one operand": _side(
        "one load for t² FMAs", "one-load-an-fma", "max(1, ceil(fmas * itemsize / 4))"
    ),
    "float32": _side("words have 4 bytes", "four-bytes-assumed", "max(1, ceil(2 * fmas))"),
    "a fraction": _side("a side is a number", "not-whole", "fmas * itemsize / 2"),
    "area": _side(
        "the tile is asked for", "area-not-side", "max(1, ceil(fmas * itemsize / 2)) ** 2"
    ),
    "eight": _side("8×8 is the answer", "constant", "8"),
    "a gap": _side("two of three are enough", "not-attempted", "..."),
}


FOOLING = {
    "a side that falls short": fooling(
        "int() is near enough", "rounded-down", wavefronts, registers,
        lambda fmas, itemsize: max(1, int(fmas * itemsize / 2)),
    ),
    "sides up to 64": fooling(
        "no tile is larger", "known-cases-only", wavefronts, registers,
        lambda fmas, itemsize: min(64, side(fmas, itemsize)),
    ),
    "wavefronts by heart": fooling(
        "the cases are in the package", "known-cases-only",
        table(wavefronts, TILES_AND_BYTES), registers, side,
    ),
    "registers by heart": fooling(
        "the cases are in the package", "known-cases-only",
        wavefronts, table(registers, TILES_AND_BYTES), side,
    ),
    "sides by heart": fooling(
        "the cases are in the package", "known-cases-only",
        wavefronts, registers, table(side, PIPES, 7),
    ),
    "for ever": fooling("nobody can stop it", "never-ends", for_ever, registers, side),
    "an array": fooling(
        "an array is a number", "wrong-type",
        lambda tm, tn, itemsize: np.array([1.0]), registers, side,
    ),
}  # fmt: skip
