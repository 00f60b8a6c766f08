"""Exercise 13.3: what FP16 loses of gradients, and the largest scale that loses none at the top."""

import math
from typing import Any

import numpy as np

from gemmlab.course.judging import Diagnosis, Finding, Task, drawing, functions_on_trial

LARGEST = 65504.0  # of float16
# Lists of gradients, some of them 0, at the edges of the format, of one sign, far apart.
GRADIENTS = (
    [1.0],
    [0.5, -0.25],
    [-3.0, 1.0],
    [0.0, 2.0**-25, 2.0**-24],
    [1.5 * 2.0**-25, 2.0**-14],
    [0.0, 0.0],
    [2.0**-30, 2.0**-27, 3e-5, -0.01],
    [65504.0, 1e-3, -1e-9],
    [-40000.0, 2.0**-26],
    [1e-8, 2e-8, 3e-8, 4e-8, 1e-7, 1e-6],
)
SCALES = 1.0, 1024.0, 0.125
MARGINS = 1.0, 2.0, 3.0, 8.0


def lost(gradients, scale):
    """The share of the gradients other than 0 that FP16 rounds to 0, times `scale` each."""
    # [answer] return ...
    found = [g for g in gradients if g != 0]
    gone = [g for g in found if np.float16(g * scale) == 0]
    return len(gone) / len(found) if found else 0
    # [end]


def loss_scale(gradients, margin):
    """The largest power of two by which all gradients stay finite, were they `margin` times it."""
    # [answer] return ...
    largest = max(abs(g) for g in gradients) * margin
    return 2.0 ** math.floor(math.log2(65504 / largest)) if largest else 1
    # [end]


def _lost(gradients: list[float], scale: float) -> float:
    """The right result of `lost`, without float16: half of 2^-24 is the last that becomes 0."""
    found = [abs(g) * scale for g in gradients if g != 0]
    return sum(x <= 2.0**-25 for x in found) / len(found) if found else 0


def _scale(gradients: list[float], margin: float) -> float:
    """The right result of `loss_scale`, by trying."""
    largest, scale = max(map(abs, gradients)) * margin, 2.0**-60
    if largest == 0:
        return 1
    while 2 * scale * largest <= LARGEST:
        scale *= 2
    return scale


def _share(gradients: list[float], gone: Any) -> float:
    found = [g for g in gradients if g != 0]
    return sum(map(gone, found)) / len(found) if found else 0


def _floor(largest: float, top: float = LARGEST) -> float:
    return 2.0 ** math.floor(math.log2(top / largest)) if largest > 0 else 1


LOST_INSTEAD = {
    "not-scaled": lambda gradients, scale: _lost(gradients, 1.0),
    "rounded-first": lambda gradients, scale: _share(
        gradients, lambda g: np.float16(np.float64(np.float16(g)) * scale) == 0
    ),
    "rounded-first 2": lambda gradients, scale: _share(  # a product of FP16's, as NumPy has it
        gradients, lambda g: np.float16(g) * np.float16(scale) == 0
    ),
    "tie-kept": lambda gradients, scale: _share(gradients, lambda g: abs(g) * scale < 2.0**-25),
    "zeros-counted": lambda gradients, scale: sum(abs(g) * scale <= 2.0**-25 for g in gradients)
    / len(gradients),
    "of-all": lambda gradients, scale: _lost(gradients, scale)
    * sum(g != 0 for g in gradients) / len(gradients),
    "subnormals-forgotten": lambda gradients, scale: _share(
        gradients, lambda g: abs(g) * scale < 2.0**-14
    ),
    "not-rounded": lambda gradients, scale: _share(
        gradients, lambda g: abs(g) * scale < 2.0**-24
    ),
    "sign-counts": lambda gradients, scale: _share(gradients, lambda g: g * scale <= 2.0**-25),
    "a-count": lambda gradients, scale: _lost(gradients, scale) * sum(g != 0 for g in gradients),
    "share-kept": lambda gradients, scale: 1 - _lost(gradients, scale),
}  # fmt: skip
SCALE_INSTEAD = {
    "margin-forgotten": lambda gradients, margin: _scale(gradients, 1.0),
    "margin-upside-down": lambda gradients, margin: _scale(gradients, 1 / margin),
    "sign-counts": lambda gradients, margin: _floor(max(gradients) * margin)
    if max(gradients) > 0 else None,
    "smallest-decides": lambda gradients, margin: _floor(min(map(abs, gradients)) * margin),
    "smallest-decides 2": lambda gradients, margin: _floor(
        min((abs(g) for g in gradients if g), default=0) * margin
    ),
    "mean-decides": lambda gradients, margin: _floor(
        sum(map(abs, gradients)) / len(gradients) * margin
    ),
    "no-power-of-two": lambda gradients, margin: LARGEST / (max(map(abs, gradients)) * margin)
    if any(gradients) else None,
    "rounded-up": lambda gradients, margin: 2.0
    ** math.ceil(math.log2(LARGEST / (max(map(abs, gradients)) * margin)))
    if any(gradients) else None,
    "rounded-up 2": lambda gradients, margin: 2.0  # towards 0 is up, where the scale is below 1
    ** int(math.log2(LARGEST / (max(map(abs, gradients)) * margin)))
    if any(gradients) else None,
    "never-below-1": lambda gradients, margin: max(1.0, _scale(gradients, margin)),
    "nearest-power": lambda gradients, margin: 2.0
    ** round(math.log2(LARGEST / (max(map(abs, gradients)) * margin)))
    if any(gradients) else None,
    "limit-too-high": lambda gradients, margin: _floor(max(map(abs, gradients)) * margin, 65536.0),
    "exponent-not-scale": lambda gradients, margin: math.log2(_scale(gradients, margin)),
}  # fmt: skip


def judge(of_lost: Any, of_scale: Any) -> Finding:
    """Try both functions; the first that is wrong decides."""
    rng = drawing.generator()
    drawn = [_drawn(rng) for _ in range(2)]
    cases = [(g, s) for g in GRADIENTS for s in SCALES]
    choices = [(g, m) for g in GRADIENTS for m in MARGINS]
    with np.errstate(over="ignore"):  # what is too large becomes infinite, and is not 0
        found = functions_on_trial.judge(
            lost.__name__, of_lost, cases, _lost, LOST_INSTEAD, show=_shown,
            fresh=[(g, 64.0) for g in drawn],
        ) or functions_on_trial.judge(
            loss_scale.__name__, of_scale, choices, _scale, SCALE_INSTEAD, show=_shown,
            fresh=[(g, 5.0) for g in drawn],
        )  # fmt: skip
    if found is None:
        told = f"{len(cases)} shares, {len(choices)} scales, lists drawn anew"
        return Finding("passed", (("Checked", told),))
    return Finding(found.diagnosis.split()[0], found.facts, found.details)


def _drawn(rng: np.random.Generator) -> list[float]:
    """Gradients of which some are lost at a scale of 64, and others are not."""
    few = int(rng.integers(2, 6))
    exponents = [*rng.integers(-42, -36, few), *rng.integers(-26, -6, 12 - few)]
    signs = rng.choice([-1.0, 1.0], 12)
    return [
        float(s * x) for s, x in zip(signs, np.ldexp(rng.uniform(1, 2, 12), exponents), strict=True)
    ]


def _shown(value: Any) -> str:
    if isinstance(value, list):
        return f"[{', '.join(map(_typed, value))}]"
    return f"{value:g}"


def _typed(x: float) -> str:
    """A gradient as one types it in: a digit less, and a tie would be none."""
    power = math.log2(abs(x)) if x else 0.0
    return f"{'-' * (x < 0)}2**{power:.0f}" if power < -3 and power.is_integer() else f"{x!r}"


TASK = Task(
    name="13.3",
    title="The scale of a loss",
    section="chapter 13, How small may a gradient be?",
    asked="lost(gradients, scale) and loss_scale(gradients, margin), each a number.",
    prompt="""
    FP16 rounds to the nearest of its numbers. The smallest above 0 is 2⁻²⁴, a subnormal; the
    largest is 65504. `gradients` is a list of numbers.

    - `lost(gradients, scale)`: each gradient is multiplied by `scale` and then rounded to FP16.
      Which share of those that are not 0 is 0 afterwards? 0 where all of them are 0.
    - `loss_scale(gradients, margin)`: the largest power of two, `2.0**e`, that may multiply the
      loss: even a gradient `margin` times as large as the largest here, of either sign, is at most
      65504 with it. 1 where all gradients are 0.
    """,
    judge=judge,
    answers=(lost, loss_scale),
    diagnoses={
        "not-attempted": Diagnosis(
            "A function still returns the gap of the skeleton.",
            "Which numbers does `np.float16` round to 0?",
            "```python\nnp.float16(g * scale) == 0\n```",
        ),
        "not-scaled": Diagnosis(
            "The gradients are rounded as they are, without the scale.",
            "Where does `scale` come in?",
            "```python\nnp.float16(g * scale)\n```",
        ),
        "rounded-first": Diagnosis(
            "The gradient is rounded before it is scaled. What was 0 stays 0, whatever multiplies "
            "it.",
            "What can a scale do for a number that FP16 has made 0 already?",
            "```python\nnp.float16(g * scale)\n```",
        ),
        "tie-kept": Diagnosis(
            "2⁻²⁵ lies in the middle between 0 and 2⁻²⁴. A tie goes to the even one, which is 0.",
            "What does `np.float16(2.0**-25)` give?",
            "```python\nnp.float16(g * scale) == 0\n```",
        ),
        "zeros-counted": Diagnosis(
            "A gradient that is 0 already counts as lost.",
            "What can rounding take away from 0?",
            "```python\n[g for g in gradients if g != 0]\n```",
        ),
        "of-all": Diagnosis(
            "The share is one of all gradients, those that are 0 included.",
            "[0, 2⁻³⁰] loses one. Of how many that were not 0?",
            "```python\nlen(gone) / len(found)    # found: those that are not 0\n```",
        ),
        "subnormals-forgotten": Diagnosis(
            "All below 2⁻¹⁴, the smallest normal number, count as lost. FP16 has subnormals below "
            "it, down to 2⁻²⁴.",
            "What does `np.float16(2.0**-20)` give?",
            "Let np.float16 round, and compare with 0.",
        ),
        "not-rounded": Diagnosis(
            "All below 2⁻²⁴ count as lost. Rounding goes to the nearest: what is more than half of "
            "2⁻²⁴ becomes 2⁻²⁴.",
            "What is 0.75 · 2⁻²⁴ nearer to?",
            "```python\nnp.float16(g * scale) == 0\n```",
        ),
        "sign-counts": Diagnosis(
            "A negative gradient counts as a small one.",
            "How large is −3, compared with 1?",
            "```python\nabs(g)\n```",
        ),
        "a-count": Diagnosis(
            "This is how many are lost, not which share.",
            "Of how many?",
            "```python\nlen(gone) / len(...)\n```",
        ),
        "share-kept": Diagnosis(
            "This is the share that is left.",
            "What is asked: what stays, or what goes?",
            "1 − what you return.",
        ),
        "margin-forgotten": Diagnosis(
            "The next batch may have larger gradients: the margin is left out.",
            "By how much may a gradient grow before it overflows with your scale?",
            "```python\nlargest = max(...) * margin\n```",
        ),
        "margin-upside-down": Diagnosis(
            "A larger margin makes your scale larger.",
            "Does caution call for a larger scale or for a smaller one?",
            "```python\nlargest = max(...) * margin\n```",
        ),
        "smallest-decides": Diagnosis(
            "The scale follows the smallest gradient. One infinity spoils all weights, and the "
            "largest gradient overflows first.",
            "Which gradient overflows first when the scale grows?",
            "```python\nlargest = max(abs(g) for g in gradients)\n```",
        ),
        "mean-decides": Diagnosis(
            "The scale follows the mean, above which others lie.",
            "Which gradient overflows first when the scale grows?",
            "```python\nlargest = max(abs(g) for g in gradients)\n```",
        ),
        "no-power-of-two": Diagnosis(
            "This is the limit itself. Only a power of two leaves the digits of a gradient alone.",
            "Which bits of a number does a factor of 2 change, and which does one of 3?",
            "```python\n2.0 ** math.floor(math.log2(...))\n```",
        ),
        "rounded-up": Diagnosis(
            "The power of two above the limit is too large: the largest gradient overflows.",
            "Is the result of your scale at most 65504?",
            "```python\n2.0 ** math.floor(...)\n```",
        ),
        "never-below-1": Diagnosis(
            "Your scale is never below 1. A gradient of 40000 has no room for a margin of 2: the "
            "scale has to make it smaller.",
            "Is the result of your scale at most 65504, also for a large gradient?",
            "```python\n2.0 ** e    # e may be negative\n```",
        ),
        "nearest-power": Diagnosis(
            "The nearest power of two may lie above the limit.",
            "Is the result of your scale at most 65504?",
            "```python\n2.0 ** math.floor(...)\n```",
        ),
        "limit-too-high": Diagnosis(
            "2¹⁶ is no number of FP16: the largest is 65504.",
            "With a gradient of 1, which is the largest power of two that FP16 has?",
            "```python\n65504 / largest\n```",
        ),
        "exponent-not-scale": Diagnosis(
            "This is the exponent e; asked is 2.0**e.",
            "By what is the loss multiplied?",
            "```python\nreturn 2.0 ** ...\n```",
        ),
    },
    praise="Half of the smallest number is lost at one end, one infinity spoils all at the other: "
    "the scale goes as high as the largest gradient lets it.",
)
