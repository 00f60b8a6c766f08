"""Exercise 08.4: the warp tile that another format, or another GPU, asks for."""

import math
from dataclasses import replace
from typing import Any

import numpy as np

from gemmlab.course.judging import Diagnosis, Finding, Task, drawing, functions_on_trial

TILES = ((16, 16), (16, 32), (32, 32), (32, 64), (64, 64), (128, 64))
# FLOP that an SM's Tensor Cores do in a cycle, and bytes of an element of A and B.
CORES = (
    *((512, 2), (1024, 2), (2048, 2), (4096, 2), (1024, 4), (2048, 4), (4096, 1), (8192, 1)),
    *((1280, 2), (1536, 2), (3072, 4)),  # of which no side of the list is just enough
)
FED = tuple((*tile, *core) for tile in TILES[::2] for core in CORES)


def fragment_wavefronts(wm, wn):
    """Wavefronts in which a warp loads its fragments of A and B, for a step of 32 bytes."""
    # [answer] return ...
    return (wm + wn) / 4
    # [end]


def fed_share(wm, wn, flop_per_cycle, itemsize):
    """The share of the Tensor Cores' peak that these loads allow, at most 1."""
    # [answer] return ...
    cycles = 2 * wm * wn * (32 // itemsize) / flop_per_cycle
    return min(1, cycles / fragment_wavefronts(wm, wn))
    # [end]


def least_side(flop_per_cycle, itemsize):
    """The least side of a square warp tile, 16, 32, 64, …, with which the share is 1."""
    # [answer] return ...
    side = 16
    while fed_share(side, side, flop_per_cycle, itemsize) < 1:
        side *= 2
    return side
    # [end]


def _cycles(wm: int, wn: int, flop_per_cycle: int, itemsize: int) -> float:
    """Cycles of arithmetic in a step of 32 bytes along k."""
    return 2 * wm * wn * (32 // itemsize) / flop_per_cycle


def _exact(flop_per_cycle: int, itemsize: int) -> float:
    """The side at which loads and arithmetic take the same time."""
    return flop_per_cycle * itemsize / 128


def _least(flop_per_cycle: float, itemsize: float, first: int = 16) -> int:
    """The least power of two from `first` on that is no less than `_exact`."""
    return max(first, 1 << max(0, math.ceil(math.log2(_exact(flop_per_cycle, itemsize)))))


WAVEFRONTS_INSTEAD = {
    "matrices-of-a-step": lambda wm, wn: (wm + wn) / 8,
    "area": lambda wm, wn: wm * wn / 64,
    "bytes": lambda wm, wn: (wm + wn) * 32,
    "loaded-again": lambda wm, wn: wm * wn / 128 * 6,
    "per-mma": lambda wm, wn: 32 * (wm + wn) / (wm * wn),
}
SHARE_INSTEAD = {
    "not-limited": lambda wm, wn, flop, size: 4 * _cycles(wm, wn, flop, size) / (wm + wn),
    "two-bytes-assumed": lambda wm, wn, flop, size: min(
        1, 4 * _cycles(wm, wn, flop, 2) / (wm + wn)
    ),
    "one-flop-an-fma": lambda wm, wn, flop, size: min(
        1, 2 * _cycles(wm, wn, flop, size) / (wm + wn)
    ),
    "upside-down": lambda wm, wn, flop, size: min(1, (wm + wn) / 4 / _cycles(wm, wn, flop, size)),
}
SIDE_INSTEAD = {  # by the diagnosis; of one mistake there may be a second form
    "not-on-the-list": _exact,
    "not-on-the-list 2": lambda flop, size: max(16, _exact(flop, size)),
    "in-steps-of-16": lambda flop, size: max(16, 16 * math.ceil(_exact(flop, size) / 16)),
    "below-the-list": lambda flop, size: _least(flop, size, first=8),
    "below-the-list 2": lambda flop, size: _least(flop, size, first=1),
    "one-flop-an-fma": lambda flop, size: _least(2 * flop, size),
    "two-bytes-side 2": lambda flop, size: _least(flop, 2),
    "half-as-wide 3": lambda flop, size: _least(flop / 2, size),
    "next-of-the-list": lambda flop, size: (
        _least(flop, size) * (2 if _exact(flop, size) >= _least(flop, size) else 1)
    ),
    "half-as-wide 2": lambda flop, size: 1 << max(4, int(_exact(flop, size)).bit_length() - 1),
    "two-bytes-side": lambda flop, size: max(16, flop // 64),
    "twice-as-wide": lambda flop, size: max(32, 2 * flop * size // 128),
    "half-as-wide": lambda flop, size: max(16, flop * size // 256),
}


def judge(loads: Any, share: Any, side: Any) -> Finding:
    """Try the three functions in turn; the first that is wrong decides."""
    rng = drawing.generator()
    tile = tuple(16 * int(n) for n in rng.choice(np.arange(3, 16, 2), 2, replace=False))
    cores = [(int(rng.integers(5, 16) * 2 ** rng.integers(10, 13)), size) for size in (1, 2)]
    judged = functions_on_trial.judge
    found = (
        judged(
            "fragment_wavefronts", loads, TILES, fragment_wavefronts, WAVEFRONTS_INSTEAD,
            fresh=[tile],
        )
        or judged(
            "fed_share", share, FED, fed_share, SHARE_INSTEAD,
            fresh=[(*tile, flop * 2, size) for flop, size in cores],
        )
        or judged("least_side", side, CORES, _least, SIDE_INSTEAD, fresh=cores)
    )  # fmt: skip
    if found is not None and found.details.get("error") == "OverflowError":
        return replace(found, diagnosis="never-ends")  # a side that doubles for ever
    if found is not None:
        return replace(found, diagnosis=found.diagnosis.split()[0])
    checked = f"{len(TILES)} warp tiles, {len(CORES)} pairs of a Tensor Core and a format"
    return Finding("passed", (("Checked", checked),))


TASK = Task(
    name="08.4",
    title="Another Tensor Core, another format",
    section="chapter 08, Three nested tiles",
    asked="fragment_wavefronts(wm, wn), fed_share(wm, wn, flop_per_cycle, itemsize) and "
    "least_side(flop_per_cycle, itemsize), each a number.",
    prompt="""
    An A100's Tensor Cores do 2048 FLOP in a cycle of an SM in float16, and a Hopper's 8192 in FP8,
    whose elements have one byte. Which warp tiles do they need? `ldmatrix` brings matrices of 8
    rows of 16 bytes, whatever these bytes mean. Let a step along k have 32 bytes: 16 elements of 2
    bytes, or 32 of 1. A wavefront brings 128 bytes, one in a cycle, and C stays in registers.

    - `fragment_wavefronts(wm, wn)`: wavefronts in which a warp with a tile of wm×wn loads its
      fragments of A and of B for one step, each once;
    - `fed_share(wm, wn, flop_per_cycle, itemsize)`: an SM's Tensor Cores do `flop_per_cycle` FLOP
      in a cycle, an FMA counts as two. Which share of that do those loads allow, 1 at most?
    - `least_side(flop_per_cycle, itemsize)`: the least side of a *square* warp tile with which the
      share is 1. Sides are 16, 32, 64 and so on.
    """,
    judge=judge,
    answers=(fragment_wavefronts, fed_share, least_side),
    diagnoses={
        "not-attempted": Diagnosis(
            "A function still returns the gap of the skeleton.",
            "How many 8×8 matrices does a warp load of 16 rows of A and 16 columns of k?",
            "fragment_wavefronts = (rows of A + columns of B) / 8 · …",
        ),
        "matrices-of-a-step": Diagnosis(
            "These are matrices of 16 bytes along k; a step has 32 bytes.",
            "How many matrices stand side by side in a step?",
            "fragment_wavefronts = (wm + wn) / 8 · …",
        ),
        "area": Diagnosis(
            "These are 8×8 tiles of C. C is not loaded.",
            "What does a warp load for a step: how many rows of A, and how many columns of B?",
            "fragment_wavefronts = (wm + …) / …",
        ),
        "bytes": Diagnosis(
            "These are bytes; a wavefront brings 128 of them.",
            "In which unit is the answer asked for?",
            "fragment_wavefronts = (wm + wn) · 32 / …",
        ),
        "loaded-again": Diagnosis(
            "These are six wavefronts for each mma, as if no fragment were used twice.",
            "How many mma of a step use one fragment of A?",
            "fragment_wavefronts = (wm + wn) · …",
        ),
        "per-mma": Diagnosis(
            "These are wavefronts for each mma; those of a whole step were asked for.",
            "How many mma does a warp make in a step?",
            "fragment_wavefronts = (wm + wn) · …",
        ),
        "not-limited": Diagnosis(
            "A share above 1 means that loads are done before the arithmetic is.",
            "Can the Tensor Cores run faster than their peak?",
            "fed_share = min(1, …)",
        ),
        "two-bytes-assumed": Diagnosis(
            "The share is that of two bytes, whatever itemsize is.",
            "How many elements of k are in 32 bytes?",
            "fed_share = min(1, 2 · wm · wn · (32 / …) / flop_per_cycle / …)",
        ),
        "one-flop-an-fma": Diagnosis(
            "Half of the operations are missing: a multiplication and an addition are two.",
            "How many FLOP has a step of wm×wn sums?",
            "fed_share = min(1, 2 · wm · wn · … / flop_per_cycle / …)",
        ),
        "upside-down": Diagnosis(
            "Loads are divided by arithmetic: a larger tile would then have a smaller share.",
            "Should the share rise or fall as tiles grow?",
            "fed_share = min(1, cycles of arithmetic / …)",
        ),
        "not-on-the-list": Diagnosis(
            "This is where both take the same time, and not always a side that a warp can have.",
            "Which is the least tile whose fragments have 16 rows and 16 columns?",
            "least_side = 16, 32, 64, …: the first whose fed_share is 1",
        ),
        "in-steps-of-16": Diagnosis(
            "These sides grow in steps of 16; those that are asked for double.",
            "Which sides does the list have between 32 and 128?",
            "```python\nside = 16\nwhile ...:\n    side ...    # 32, 64, 128\n```",
        ),
        "below-the-list": Diagnosis(
            "No warp tile is smaller than a fragment: the list begins with 16.",
            "What is your side for the smallest Tensor Core, and can a warp have it?",
            "```python\nside = ...    # the first of the list\n```",
        ),
        "next-of-the-list": Diagnosis(
            "Where loads and arithmetic take the same time, the share is 1 already.",
            "What is fed_share for half of your side, where that is just enough?",
            "```python\nwhile fed_share(side, side, ...) < 1:    # and not where it is 1\n```",
        ),
        "two-bytes-side": Diagnosis(
            "The side is that of two bytes, whatever itemsize is.",
            "What is fed_share(64, 64, 4096, 1)?",
            "least_side: the first side whose fed_share(side, side, …, itemsize) is 1",
        ),
        "twice-as-wide": Diagnosis(
            "A tile of half that side would do.",
            "What is fed_share for half of your side?",
            "least_side: the first side whose fed_share is 1",
        ),
        "half-as-wide": Diagnosis(
            "With this side the loads take longer than the arithmetic.",
            "What is fed_share for your side?",
            "least_side: the first side whose fed_share is 1",
        ),
    },
    praise="Hopper in FP8 wants the tile that it wants in float16: twice the arithmetic in a "
    "cycle, and half the bytes. An A100 is content with half the side.",
)
