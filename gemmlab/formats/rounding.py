"""Rounding to a format, and the gap between its numbers."""

from __future__ import annotations

import numpy as np

from gemmlab.formats.format import Format, number_format
from gemmlab.formats.values import doubles

__all__ = ["ROUNDINGS", "round_to", "ulp"]

# To nearest with ties to even, toward zero, to nearest with ties away from zero: the names that
# PTX gives them are .rn, .rz and .rna.
ROUNDINGS = ("RN", "RZ", "RNA")


def round_to(x: object, dtype: str, rounding: str = "RN") -> np.ndarray:
    """The numbers of format `dtype` that the values of `x` round to, in the format's carrier.

    x : real numbers that float64 has, of any shape
    rounding : "RN" to nearest, ties to even; "RZ" toward zero; "RNA" to nearest, ties away from 0

    Beyond the largest number RZ stays there and RN and RNA give an infinity from half an ulp on;
    subnormals are kept; NaN gives NaN. Raises ValueError for an unknown format or rounding and for
    numbers that float64 does not have, TypeError for what is no real number.

    >>> [float(round_to(1 + 2**-11, "float16", mode)) for mode in ("RN", "RZ", "RNA")]
    [1.0, 1.0, 1.0009765625]
    """
    form = number_format(dtype)
    if not isinstance(rounding, str) or rounding not in ROUNDINGS:
        raise ValueError(f"rounding={rounding!r} is not known; use one of {', '.join(ROUNDINGS)}")
    x = doubles(x)
    finite = np.isfinite(x)
    magnitude = np.where(finite, np.abs(x), 0.0)
    # In units of the last place every step below is exact: a scaling by a power of two, the
    # nearest integers, and the distance to them.
    place = _last_place(magnitude, form)
    units = np.ldexp(magnitude, -place)
    if rounding == "RN":
        units = np.rint(units)
    else:
        below = np.floor(units)
        units = below + (units - below >= 0.5) if rounding == "RNA" else below
    with np.errstate(over="ignore"):
        rounded = np.ldexp(units, place)
    beyond = form.largest if rounding == "RZ" else np.inf
    rounded = np.where(rounded > form.largest, beyond, rounded)
    rounded = np.copysign(np.where(finite, rounded, np.abs(x)), x)
    return np.where(np.isnan(x), np.nan, rounded).astype(form.carrier)[()]


def ulp(x: object, dtype: str) -> np.ndarray:
    """Unit in the last place of each value of `x` in format `dtype`, float64.

    2^(max(⌊log2 |x|⌋, emin) − f): the gap between the numbers of the format around x; the smallest
    subnormal for x = 0; NaN where x is not finite.

    >>> float(ulp(1.0, "float16")), float(ulp(0.0, "float16"))
    (0.0009765625, 5.960464477539063e-08)
    """
    form = number_format(dtype)
    x = doubles(x)
    finite = np.isfinite(x)
    place = _last_place(np.where(finite, np.abs(x), 0.0), form)
    return np.where(finite, np.ldexp(1.0, place), np.nan)[()]


def _last_place(magnitude: np.ndarray, form: Format) -> np.ndarray:
    """The exponent of the last place, max(⌊log2 x⌋, emin) − f, of values x ≥ 0."""
    exponent = np.frexp(magnitude)[1] - 1
    return np.where(magnitude == 0, form.emin, np.maximum(exponent, form.emin)) - form.fraction_bits
