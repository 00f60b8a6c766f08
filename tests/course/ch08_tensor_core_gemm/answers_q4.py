"""Answers to exercise 08.4."""

from math import ceil, log2

import numpy as np

from gemmlab.course.ch08_tensor_core_gemm.q4_warp_tile_counts import (
    CORES,
    FED,
    TILES,
    fed_share,
    fragment_wavefronts,
    least_side,
)
from tests.course.answers import Wrong, edited, fooling, for_ever, table

RIGHT = {
    "formulas": (
        lambda wm, wn: 32 * (wm + wn) / 128,
        lambda wm, wn, flop, size: min(256 * wm * wn / (wm + wn) / (flop * size), 1),
        lambda flop, size: max(16, 2 ** ceil(log2(flop * size / 128))),
    ),
    "counted": (
        lambda wm, wn: len(range(0, wm, 8)) * 2 + len(range(0, wn, 8)) * 2,
        lambda wm, wn, flop, size: (
            1.0 if flop * size * (1 / wm + 1 / wn) <= 256
            else 256 / (flop * size * (1 / wm + 1 / wn))
        ),
        lambda flop, size: next(s for s in (2**i for i in range(4, 40)) if 128 * s >= flop * size),
    ),
}  # fmt: skip

SHARE = "return min(1, cycles / fragment_wavefronts(wm, wn))"
CYCLES = "cycles = 2 * wm * wn * (32 // itemsize) / flop_per_cycle"
SEARCH = """side = 16
    while fed_share(side, side, flop_per_cycle, itemsize) < 1:
        side *= 2
    return side"""


def _loads(misconception, diagnosis, new):
    answer = edited(fragment_wavefronts, ("(wm + wn) / 4", new))
    return Wrong(misconception, diagnosis, (answer, fed_share, least_side))


def _share(misconception, diagnosis, *edits):
    return Wrong(
        misconception, diagnosis, (fragment_wavefronts, edited(fed_share, *edits), least_side)
    )


def _side(misconception, diagnosis, new):
    edits = (SEARCH, f"return {new}"), ("def least", "from math import log2\n\n\ndef least")
    answer = edited(least_side, *edits)
    return Wrong(misconception, diagnosis, (fragment_wavefronts, fed_share, answer))


def _searched(misconception, diagnosis, *edits):
    return Wrong(
        misconception, diagnosis, (fragment_wavefronts, fed_share, edited(least_side, *edits))
    )


WRONG = {
    "one column of matrices": _loads("8 rows, a matrix", "matrices-of-a-step", "(wm + wn) / 8"),
    "tiles of C": _loads("what is computed is loaded", "area", "wm * wn / 64"),
    "bytes": _loads("a load is its bytes", "bytes", "(wm + wn) * 32"),
    "six each": _loads("each mma loads", "loaded-again", "wm * wn / 128 * 6"),
    "for an mma": _loads("a step is an mma", "per-mma", "32 * (wm + wn) / (wm * wn)"),
    "a gap": _loads("two of three are enough", "not-attempted", "..."),
    "above the peak": _share(
        "faster is better", "not-limited", (SHARE, "return cycles / fragment_wavefronts(wm, wn)")
    ),
    "float16": _share(
        "k has 16", "two-bytes-assumed", (CYCLES, CYCLES.replace("(32 // itemsize)", "16"))
    ),
    "FMAs": _share("an FMA is one", "one-flop-an-fma", (CYCLES, CYCLES.replace("2 * wm", "wm"))),
    "upside down": _share(
        "loads by arithmetic", "upside-down",
        (SHARE, "return min(1, fragment_wavefronts(wm, wn) / cycles)"),
    ),
    "a formula": _side("any side will do", "not-on-the-list", "flop_per_cycle * itemsize / 128"),
    "of float16": _side(
        "elements have two bytes", "two-bytes-side", "max(16, flop_per_cycle // 64)"
    ),
    "too wide": _side(
        "A and B, twice the side", "twice-as-wide", "max(32, flop_per_cycle * itemsize // 64)"
    ),
    "too narrow": _side(
        "one operand is enough", "half-as-wide", "max(16, flop_per_cycle * itemsize // 256)"
    ),
    "in steps of 16": _searched(
        "sides are multiples of 16", "in-steps-of-16", ("side *= 2", "side += 16")
    ),
    "from 8 on": _searched("a matrix is a tile", "below-the-list", ("side = 16", "side = 8")),
    "up to the next": _searched(
        "the share must exceed 1", "next-of-the-list",
        ("fed_share(side, side, flop_per_cycle, itemsize) < 1",
         "128 * side <= flop_per_cycle * itemsize"),
    ),
    "never less than 1": _searched(
        "the share may exceed 1", "never-ends", ("itemsize) < 1", "itemsize) <= 1")
    ),
    "two bytes, searched": _searched(
        "elements have two bytes", "two-bytes-side", ("cycle, itemsize) <", "cycle, 2) <")
    ),
    "FMAs, searched": _searched(
        "an FMA is one", "one-flop-an-fma",
        ("side, flop_per_cycle", "side, 2 * flop_per_cycle"),
    ),
    "half of the loads": _searched(
        "one operand is enough", "half-as-wide", ("itemsize) < 1", "itemsize) < 0.5")
    ),
    "to the nearest": _side(
        "rounding is to the nearest", "right-in-part",
        "max(16, 2 ** round(log2(flop_per_cycle * itemsize / 128)))",
    ),
    "at least sixteen": _side(
        "any side will do", "not-on-the-list", "max(16, flop_per_cycle * itemsize // 128)"
    ),
    "rounded down": _side(
        "the nearest power of two", "half-as-wide",
        "1 << max(4, (flop_per_cycle * itemsize // 128).bit_length() - 1)",
    ),
    "sixty-four": _side("64 is the answer", "constant", "64"),
}  # fmt: skip


FOOLING = {
    "tiles by heart": fooling(
        "the cases are in the package", "known-cases-only",
        table(fragment_wavefronts, TILES), fed_share, least_side,
    ),
    "shares by heart": fooling(
        "the cases are in the package", "known-cases-only",
        fragment_wavefronts, table(fed_share, FED), least_side,
    ),
    "sides by heart": fooling(
        "the cases are in the package", "known-cases-only",
        fragment_wavefronts, fed_share, table(least_side, CORES, 7),
    ),
    "for ever": fooling(
        "nobody can stop it", "never-ends", fragment_wavefronts, for_ever, least_side
    ),
    "an array": fooling(
        "an array is a number", "wrong-type", lambda wm, wn: np.array([1.0]), fed_share, least_side,
    ),
}  # fmt: skip
