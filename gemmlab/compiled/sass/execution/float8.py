"""Floats of eight bits are made of float32 and become float16: F2FP with E4M3 or E5M2.

Source: OCP 8-bit Floating Point Specification 1.0: E4M3 has no infinity, E5M2 is the upper half of
a float16. Numbers beyond the largest become the largest (SATFINITE).
"""

from functools import cache
from typing import Any

import numpy as np

from gemmlab.compiled.sass.execution.state import Mask, Operands, Step

NAN = {"E4M3": 0x7F, "E5M2": 0x7F}
_BITS = {"E4M3": (4, 3), "E5M2": (5, 2)}


@cache
def magnitudes(form: str) -> np.ndarray:
    """Return the numbers of a format from 0 to the largest, which are in the order of their bits.

    >>> float(magnitudes("E4M3")[-1]), float(magnitudes("E5M2")[-1])
    (448.0, 57344.0)
    """
    exponent_bits, fraction_bits = _BITS[form]
    bits = np.arange(0x7F if form == "E4M3" else 0x7C)
    exponent, fraction = bits >> fraction_bits, bits & (2**fraction_bits - 1)
    bias = 2 ** (exponent_bits - 1) - 1
    whole = np.where(exponent > 0, 2**fraction_bits, 0) + fraction
    return np.ldexp(whole, np.maximum(exponent, 1) - bias - fraction_bits)


def encoded(value: Any, form: str) -> np.ndarray:
    """Round numbers to a format, ties to even bits; as the bits, in words."""
    value = np.asarray(value, np.float64)
    table = magnitudes(form)
    size = np.minimum(np.abs(np.where(np.isnan(value), 0, value)), table[-1])
    above = np.clip(np.searchsorted(table, size), 1, len(table) - 1)
    below = above - 1
    low, high = size - table[below], table[above] - size
    up = (high < low) | ((high == low) & (above % 2 == 0))
    bits = np.where(up, above, below) | np.where(np.signbit(value), 0x80, 0)
    return np.where(np.isnan(value), NAN[form], bits).astype(np.uint32)


def decoded(bits: Any, form: str) -> np.ndarray:
    """Return the numbers of eight bits, in words, as float64."""
    bits = np.asarray(bits)
    table = np.full(128, np.nan)
    table[: len(magnitudes(form))] = magnitudes(form)
    if form == "E5M2":
        table[0x7C] = np.inf
    value = table[bits & 0x7F]
    return np.where(bits & 0x80, -value, value)


def f2fp(o: Operands) -> Step:
    """D = two numbers of eight bits from a and b below the lower half of c; or back, to float16."""
    flags = o.instruction.modifiers
    form = next(f for f in flags if f in _BITS)
    if "UNPACK_B" in flags:
        return _unpacked(o, form)
    write, a, b, c = o.to(0), o.float32(1), o.float32(2), o.word(3)
    least = 0.0 if "RELU" in flags else -np.inf

    def run(mask: Mask) -> None:
        high, low = (encoded(np.maximum(x(), least), form) for x in (a, b))
        write(low | high << np.uint32(8) | np.asarray(c()) << np.uint32(16), mask)

    return run


def _unpacked(o: Operands, form: str) -> Step:
    write, word, half = o.to(0), o.bits(1), getattr(o.all[1], "half", "")
    shift = np.uint32(16 if half.startswith("H1") else 0)

    def run(mask: Mask) -> None:
        bits = np.asarray(word()) >> shift
        low, high = (
            decoded(bits >> np.uint32(s) & np.uint32(255), form)
            .astype(np.float16).view(np.uint16).astype(np.uint32)
            for s in (0, 8)
        )  # fmt: skip
        write(low | high << np.uint32(16), mask)

    return run
