"""Answers to exercise 01.4."""

import math
from fractions import Fraction

from gemmlab import Gemm
from gemmlab.course.ch01_what_is_gemm.q4_linear_layer import CASES, batch, reference
from gemmlab.model.layers import linear
from tests.course.answers import Agrees, Wrong, cell, fooling, table

FORMULA = """
def batch(outputs, inputs, device):
    ratio = device.peak_of("float16") / device.dram_bandwidth
    slope = 2 * outputs * inputs - ratio * 2 * (inputs + outputs)
    if slope <= 0:
        return None
    return ceil(ratio * 2 * outputs * inputs / slope)
"""


def _formula(*edits):
    text = FORMULA
    for old, new in edits:
        assert old in text
        text = text.replace(old, new)
    return (cell(text, {"ceil": math.ceil, "Fraction": Fraction})["batch"],)


def counting_up(outputs, inputs, device):
    ratio = device.ops_per_byte("float16")
    if outputs * inputs / (outputs + inputs) <= ratio:
        return None
    b = 1
    while Gemm(outputs, b, inputs, dtype="float16").intensity < ratio:
        b += 1
    return b


def counting_up_for_ever(outputs, inputs, device):
    b = 1
    while Gemm(outputs, b, inputs, dtype="float16").intensity < device.ops_per_byte("float16"):
        b += 1
    return b


def for_ever(outputs, inputs, device):
    b = 1
    while b > 0:
        b += 1
    return b


RIGHT = {
    "formula": _formula(),
    "counting up": (counting_up,),
    "exact formula": _formula(
        ("device.peak_of", "Fraction(device.peak_of"), (" / device", ") / Fraction(device"),
        (".dram_bandwidth", ".dram_bandwidth)"),
    ),
}  # fmt: skip

WRONG = {
    "no results": Wrong(
        "writing is free", "result-forgotten", _formula(("(inputs + outputs)", "inputs"))
    ),
    "no inputs": Wrong(
        "only weights and results move", "inputs-forgotten",
        _formula(("(inputs + outputs)", "outputs")),
    ),
    "weights alone": Wrong(
        "only weights move", "weights-only", _formula(("(inputs + outputs)", "0"))
    ),
    "one byte": Wrong(
        "an element is a byte", "elements-not-bytes", _formula(("ratio * 2 *", "ratio *"),),
    ),
    "four bytes": Wrong(
        "an element has four bytes", "factor-of-two", _formula(("ratio * 2 *", "ratio * 4 *"))
    ),
    "one operation": Wrong(
        "an FMA is one operation", "factor-of-two", _formula(("slope = 2 *", "slope ="))
    ),
    "float32 peak": Wrong(
        "one peak for all formats", "peak-of-float32", _formula(('"float16"', '"float32"'))
    ),
    "floor": Wrong("round to nearest below", "rounded-down", _formula(("ceil(", "int("))),
    "fraction": Wrong("a batch may be 140.5", "not-rounded", _formula(("ceil(", "("))),
    "always some batch": Wrong(
        "enough batch always helps", "no-limit-known", _formula(("if slope <= 0:", "if False:"))
    ),
    "searches for ever": Wrong(
        "enough batch always helps", "no-limit-known", (counting_up_for_ever,)
    ),
    "one device": Wrong(
        "intensity is all that matters", "device-ignored",
        _formula(('device.peak_of("float16") / device.dram_bandwidth', "125e12 / 900e9")),
    ),
    "a number": Wrong("one number for all", "wrong-type", (412,)),
    "text": Wrong("text is a number", "wrong-type", (lambda outputs, inputs, device: "412",)),
}  # fmt: skip


def up_to_2000(outputs, inputs, device):
    ratio = device.ops_per_byte("float16")
    batches = range(1, 2000)
    return next((b for b in batches if linear(outputs, inputs, b).intensity >= ratio), None)


FOOLING = {
    "searches up to 2000": fooling("no batch is larger", "gives-up", up_to_2000),
    "by heart": fooling(
        "the cases are in the package", "known-cases-only", table(reference, CASES, otherwise=128)
    ),
    "never": fooling("None is always safe", "wrong-values", lambda o, i, device: None),
    "equals everything": fooling(
        "the result compares itself", "wrong-type", lambda o, i, device: Agrees(1)
    ),
    "sides exchanged": fooling(
        "a layer is as high as it is wide",
        "right-in-part",
        lambda o, i, device: (batch(o, i, device) or 0) + (o > 2 * i) or None,
    ),
}
