"""Numbers as functions take them: real ones, and only those that a format has."""

from __future__ import annotations

from numbers import Real

import numpy as np

from gemmlab.formats.format import Format

__all__ = ["doubles", "exact", "real"]


def real(x: object) -> np.ndarray:
    """`x` as an array of real numbers; TypeError for anything else."""
    x = np.asarray(x)
    if x.dtype.kind not in "biuf":
        wrong = [v for v in x.flat if not isinstance(v, Real)]
        if wrong or x.dtype.kind != "O":
            raise TypeError(f"{(*wrong, x.dtype)[0]!r} is no real number; use integers or floats")
    return x


def doubles(x: object) -> np.ndarray:
    """`x` in float64; ValueError, quoting the first, for numbers that float64 does not have."""
    x = real(x)
    try:
        with np.errstate(invalid="ignore"):  # a signalling NaN
            held = x.astype(np.float64, copy=False)
    except OverflowError:
        raise ValueError(f"{x!r:.60} has integers beyond the range of float64") from None
    kind, size = x.dtype.kind, x.dtype.itemsize
    narrow = size <= 8 if kind in "bf" else size < 8 and kind != "O"
    if narrow or (kind in "iu" and np.abs(held).max(initial=0) < 2**53):
        return held
    # Python compares integers, fractions and floats exactly; NumPy would convert an integer first.
    wrong = np.asarray(held != (x if kind == "f" else x.astype(object))) & ~np.isnan(held)
    if wrong.any():
        raise ValueError(f"{x[wrong].tolist()[0]!r} is not a float64 number; give one that is")
    return held


def exact(x: object, form: Format) -> np.ndarray:
    """`x` in the carrier of `form`; ValueError, quoting the first, for values it does not have."""
    x = np.asarray(x)
    if x.dtype.kind != "f" or x.dtype.itemsize > 8:
        x = doubles(x)
    with np.errstate(over="ignore", invalid="ignore"):  # beyond the range; a signalling NaN
        held = x.astype(form.carrier, copy=False)
    wrong = np.zeros(x.shape, bool) if held is x else (held != x) & ~np.isnan(held)
    unused = 8 * form.carrier.itemsize - 1 - form.exponent_bits - form.fraction_bits
    if unused:
        wrong |= held.view(np.uint32) & np.uint32(2**unused - 1) != 0
    if wrong.any():
        value = x[wrong].flat[0].item()
        raise ValueError(
            f"{value!r} is not a {form.name} number; round it first: round_to(x, {form.name!r})"
        )
    return held
