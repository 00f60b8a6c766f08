"""What instructions on float64 do; products and sums are rounded once, as the hardware rounds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gemmlab.compiled.sass.execution.floats import ROUNDINGS
from gemmlab.compiled.sass.execution.state import Operands, Step
from gemmlab.numerics.fma import sum_to_odd, two_sum


def fma64(a: Any, b: Any, c: Any) -> Any:
    """a·b + c of float64, rounded once.

    Source: S. Boldo, G. Melquiond, IEEE Trans. Computers 57 (2008), algorithm Fma: the exact
    product and sum as three numbers, of which the lower two are added with rounding to odd.
    """
    product, below = _two_product(a, b)
    high, low = two_sum(c, below)
    top, rest = two_sum(product, high)
    exact = top + sum_to_odd(low, rest)
    plain = a * b + c
    return np.where(np.isfinite(exact), exact, plain)


def _two_product(a: Any, b: Any) -> tuple[Any, Any]:
    """(p, e) with p the rounded product and p + e the exact one. Source: Dekker, 1971."""
    product = a * b
    (a_high, a_low), (b_high, b_low) = _split(a), _split(b)
    error = ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low
    return product, error


def _split(a: Any) -> tuple[Any, Any]:
    scaled = a * (2.0**27 + 1)
    high = scaled - (scaled - a)
    return high, a - high


def _toward(o: Operands, exact: Callable[[], tuple[Any, Any]]) -> Callable[[], Any]:
    """The rounded value of (value to nearest, what is missing) in the opcode's direction."""
    flags = o.instruction.modifiers
    rounding = next((f for f in flags if f in ROUNDINGS), None)

    def run() -> Any:
        value, missing = exact()
        if rounding is None:
            return value
        down, up = np.nextafter(value, -np.inf), np.nextafter(value, np.inf)
        if rounding == "RM":
            return np.where(missing < 0, down, value)
        if rounding == "RP":
            return np.where(missing > 0, up, value)
        return np.where(
            (value > 0) & (missing < 0), down, np.where((value < 0) & (missing > 0), up, value)
        )

    return run


def dfma(o: Operands) -> Step:
    """D = a·b + c of float64, rounded once."""
    write = o.to_pair(0)
    a, b, c = (o.float64(i) for i in (1, 2, 3))

    def exact() -> tuple[Any, Any]:
        x, y, z = (np.asarray(read()) for read in (a, b, c))
        value = fma64(x, y, z)
        return value, _residue(x, y, z, value)

    if not any(f in ROUNDINGS for f in o.instruction.modifiers):
        return lambda mask: write(fma64(a(), b(), c()), mask)
    rounded = _toward(o, exact)
    return lambda mask: write(rounded(), mask)


def _residue(a: Any, b: Any, c: Any, value: Any) -> Any:
    """The sign of a·b + c - value: value is near enough for the differences to be exact."""
    product, below = _two_product(a, b)
    high, low = two_sum(product, c)
    return ((high - value) + low) + below


def dadd(o: Operands) -> Step:
    """D = a + b of float64."""
    write, a, b = o.to_pair(0), o.float64(1), o.float64(len(o) - 1)
    rounded = _toward(o, lambda: two_sum(a(), b()))
    return lambda mask: write(rounded(), mask)


def dmul(o: Operands) -> Step:
    """D = a·b of float64."""
    write, a, b = o.to_pair(0), o.float64(1), o.float64(2)
    rounded = _toward(o, lambda: _two_product(a(), b()))
    if not any(f in ROUNDINGS for f in o.instruction.modifiers):
        return lambda mask: write(np.asarray(a() * b()), mask)
    return lambda mask: write(rounded(), mask)
