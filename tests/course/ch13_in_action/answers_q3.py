"""Answers to exercise 13.3."""

import math

import numpy as np

from gemmlab.course.ch13_in_action.q3_loss_scale import (
    GRADIENTS,
    MARGINS,
    SCALES,
    loss_scale,
    lost,
)  # fmt: skip
from tests.course.answers import Wrong, edited, fooling, for_ever, table

FOUND = "found = [g for g in gradients if g != 0]"
GONE = "np.float16(g * scale) == 0"
SHARE = "len(gone) / len(found) if found else 0"
LARGEST = "largest = max(abs(g) for g in gradients) * margin"
POWER = "2.0 ** math.floor(math.log2(65504 / largest)) if largest else 1"


def _by_arrays(gradients, scale):
    g = np.array(gradients)
    g = g[g != 0]
    return float((np.abs(g) * scale <= 2.0**-25).mean()) if g.size else 0.0


def _halved(gradients, margin):
    largest, scale = margin * np.abs(gradients).max(), 2.0**100
    if largest == 0:
        return 1.0
    while scale * largest > 65504:
        scale /= 2
    return scale


RIGHT = {
    "arrays and halves": (_by_arrays, _halved),
    "frexp": (
        lost,
        lambda gradients, margin: (
            2.0 ** (math.frexp(65504 / (max(map(abs, gradients)) * margin))[1] - 1)
            if any(gradients)
            else 1
        ),
    ),
}


def _lost(misconception, diagnosis, *edits):
    return Wrong(misconception, diagnosis, (edited(lost, *edits), loss_scale))


def _scale(misconception, diagnosis, *edits):
    return Wrong(misconception, diagnosis, (lost, edited(loss_scale, *edits)))


WRONG = {
    "as they are": _lost("the scale is of the loss", "not-scaled", (GONE, "np.float16(g) == 0")),
    "rounded first": _lost(
        "a scale mends what is lost", "rounded-first",
        (GONE, "np.float16(float(np.float16(g)) * scale) == 0"),
    ),
    "rounded first, by NumPy": _lost(
        "a scale mends what is lost", "rounded-first", (GONE, "np.float16(g) * scale == 0")
    ),
    "no tie": _lost("half is not lost", "tie-kept", (GONE, "abs(g * scale) < 2.0**-25")),
    "zeros, too": _lost("0 is 0", "zeros-counted", (FOUND, "found = gradients")),
    "of all": _lost(
        "a share is of all", "of-all", (SHARE, "len(gone) / len(gradients) if found else 0")
    ),
    "normal numbers": _lost(
        "2⁻¹⁴ is the smallest", "subnormals-forgotten", (GONE, "abs(g * scale) < 2.0**-14")
    ),
    "below the smallest": _lost(
        "what is smaller is 0", "not-rounded", (GONE, "abs(g * scale) < 2.0**-24")
    ),
    "negative ones": _lost(
        "small is below", "sign-counts", (GONE, "g * scale <= 2.0**-25")
    ),
    "how many": _lost("the number is asked", "a-count", (SHARE, "len(gone)")),
    "what is left": _lost(
        "what stays counts", "share-kept", (SHARE, "1 - (len(gone) / len(found) if found else 0)")
    ),
    "no margin": _scale(
        "this batch decides", "margin-forgotten", (LARGEST, LARGEST.replace(" * margin", ""))
    ),
    "divided": _scale(
        "a margin helps", "margin-upside-down", (LARGEST, LARGEST.replace("*", "/"))
    ),
    "signed": _scale(
        "the largest is max", "sign-counts",
        (LARGEST, "largest = max(gradients) * margin"),
        (POWER, "2.0 ** math.floor(math.log2(65504 / largest)) if largest > 0 else 1"),
    ),
    "smallest": _scale(
        "small ones are lost", "smallest-decides", (LARGEST, LARGEST.replace("max", "min"))
    ),
    "smallest that is not 0": _scale(
        "small ones are lost", "smallest-decides",
        (LARGEST, "largest = min((abs(g) for g in gradients if g), default=0) * margin"),
    ),
    "mean": _scale(
        "on average", "mean-decides",
        (LARGEST, "largest = sum(abs(g) for g in gradients) / len(gradients) * margin"),
    ),
    "the limit": _scale(
        "any scale will do", "no-power-of-two", (POWER, "65504 / largest if largest else 1")
    ),
    "up": _scale("powers round up", "rounded-up", ("math.floor", "math.ceil")),
    "towards 0": _scale("int is floor", "rounded-up", ("math.floor", "int")),
    "only larger": _scale(
        "a scale enlarges", "never-below-1",
        (POWER, "max(1, 2.0 ** math.floor(math.log2(65504 / largest))) if largest else 1"),
    ),
    "nearest": _scale("powers are rounded", "nearest-power", ("math.floor", "round")),
    "2 to the 16": _scale("16 bits", "limit-too-high", ("65504", "65536")),
    "the exponent": _scale(
        "2 is understood", "exponent-not-scale",
        (POWER, "math.floor(math.log2(65504 / largest)) if largest else 0"),
    ),
    "a gap": _scale("one of two is enough", "not-attempted", (POWER, "...")),
}  # fmt: skip

with np.errstate(over="ignore"):
    SHARES = table(lost, [(g, s) for g in GRADIENTS for s in SCALES])

FOOLING = {
    "shares by heart": fooling(
        "the cases are in the package", "known-cases-only",
        SHARES, loss_scale,
    ),
    "scales by heart": fooling(
        "the cases are in the package", "known-cases-only",
        lost, table(loss_scale, [(g, m) for g in GRADIENTS for m in MARGINS]),
    ),
    "counts for ever": fooling("nobody can stop it", "never-ends", lost, for_ever),
    "eats its argument": fooling(
        "arguments are mine", "arguments-changed",
        lambda gradients, scale: (lost(gradients, scale), gradients.clear())[0], loss_scale,
    ),
}  # fmt: skip
