"""The bits of numbers: their words, the fields of these, and what arrays in memory hold."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gemmlab.formats.format import number_format
from gemmlab.formats.values import exact

__all__ = ["Fields", "decode", "encode", "fields", "from_memory", "to_memory"]


class Fields(NamedTuple):
    """Sign, exponent field (biased) and fraction field of numbers, as integers."""

    sign: np.ndarray
    exponent: np.ndarray
    fraction: np.ndarray


def encode(x: object, dtype: str) -> np.ndarray:
    """The bits of numbers of format `dtype`, as unsigned integers of as many bytes as it has.

    ValueError where a value of `x` is not a number of the format: round first. TypeError for what
    is no real number.

    >>> hex(encode(1.0, "bfloat16"))
    '0x3f80'
    """
    form = number_format(dtype)
    words = exact(x, form).view(f"u{form.carrier.itemsize}")
    if form.carrier.itemsize > form.words.itemsize:
        words = words >> (8 * (form.carrier.itemsize - form.words.itemsize))
    return words.astype(form.words)[()]


def decode(words: object, dtype: str) -> np.ndarray:
    """The numbers with these bits, in the carrier of format `dtype`; the inverse of `encode`.

    The low 13 bits of a TF32 do not count. ValueError for what has more bits than the format, or a
    sign; TypeError for what are no integers.

    >>> float(decode(0x7BFF, "float16"))
    65504.0
    """
    form = number_format(dtype)
    words = np.asarray(words)
    large = words.dtype.kind == "O" and all(isinstance(w, int) for w in words.flat)
    if words.dtype.kind not in "iu" and not large:
        raise TypeError(f"bits are integers, not {words.dtype}")
    bits = 8 * form.words.itemsize
    wrong = np.asarray((words < 0) | (words > 2**bits - 1), bool)
    if wrong.any():
        raise ValueError(
            f"{words[wrong].tolist()[0]} is no word of {bits} bits; use 0 to {2**bits - 1}"
        )
    wide = words.astype(f"u{form.carrier.itemsize}") >> form.padding << form.padding
    wide <<= 8 * form.carrier.itemsize - bits
    return wide.view(form.carrier)[()]


def fields(x: object, dtype: str) -> Fields:
    """Sign, biased exponent and fraction of numbers of format `dtype`.

    >>> [int(field) for field in fields(-1.5, "bfloat16")]
    [1, 127, 64]
    """
    form = number_format(dtype)
    words = encode(x, dtype) >> form.words.type(form.padding)
    f, e = form.fraction_bits, form.exponent_bits
    parts = words >> (f + e), (words >> f) & (2**e - 1), words & (2**f - 1)
    return Fields(*(np.asarray(part).astype(np.int64)[()] for part in parts))


def to_memory(x: object, dtype: str) -> np.ndarray:
    """The array in memory of numbers of format `dtype`: `encode` for bfloat16, else the numbers.

    Raises as `encode` does.

    >>> to_memory([1.0, 2.0], "bfloat16")
    array([16256, 16384], dtype=uint16)
    """
    form = number_format(dtype)
    return encode(x, dtype) if form.memory == form.words else exact(x, form)


def from_memory(x: np.ndarray, dtype: str) -> np.ndarray:
    """The numbers in an array in memory, in the carrier of format `dtype`; see `to_memory`.

    >>> from_memory(np.array([16256], np.uint16), "bfloat16")
    array([1.], dtype=float32)
    """
    form = number_format(dtype)
    return decode(x, dtype) if form.memory == form.words else x
