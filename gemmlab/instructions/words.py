"""What registers hold: numbers alone, or pairs of 16-bit numbers packed into words of 32 bits.

Operands name it: "float32", "tf32" and so on for one number of that format; "float16x2" and
"bfloat16x2" for a packed pair, the first number in the low half; "uint32" for 32 bits whatever
they mean.
"""

from __future__ import annotations

import numpy as np

from gemmlab.formats import FORMATS, Format, decode, encode

WORD = np.dtype(np.uint32)
PAIR = "x2"  # what the name of a packed pair ends in


def held(form: Format) -> str:
    """What a register of a fragment holds of a format: two numbers of 16 bits, or one of more.

    >>> held(FORMATS["bfloat16"]), held(FORMATS["tf32"])
    ('bfloat16x2', 'tf32')
    """
    return form.name + PAIR if form.bytes == 2 else form.name


def per_register(what: str) -> int:
    """Numbers in a register.

    >>> per_register("float16x2"), per_register("tf32")
    (2, 1)
    """
    return 2 if what.endswith(PAIR) else 1


def carrier(what: str) -> np.dtype:
    """The NumPy type by which kernels know a register: a word, or that of its number's format.

    >>> carrier("float16x2"), carrier("tf32")
    (dtype('uint32'), dtype('float32'))
    """
    return WORD if what == WORD.name or what.endswith(PAIR) else FORMATS[what].carrier


def numbers(registers: np.ndarray, what: str) -> np.ndarray:
    """The numbers in registers (…, n), each in its format's carrier: (…, 2n) of packed pairs."""
    if not what.endswith(PAIR):
        return registers
    return decode(halves(registers), what.removesuffix(PAIR))


def registers(values: np.ndarray, what: str) -> np.ndarray:
    """The registers that hold numbers: the inverse of `numbers`.

    ValueError for values that are not numbers of a packed format: round them first.
    """
    if not what.endswith(PAIR):
        return np.asarray(values)
    return packed(encode(values, what.removesuffix(PAIR)))


def halves(words: np.ndarray) -> np.ndarray:
    """The 16-bit halves of words, (…, n) -> (…, 2n), low half first."""
    words = np.ascontiguousarray(words, WORD)
    low, high = words & np.uint32(0xFFFF), words >> np.uint32(16)
    pairs = np.stack([low, high], axis=-1).astype(np.uint16)
    return pairs.reshape(*words.shape[:-1], -1)


def packed(values: np.ndarray) -> np.ndarray:
    """The words of 16-bit numbers, (…, 2n) -> (…, n), the first in the low half."""
    bits = np.ascontiguousarray(values).view(np.uint16).astype(WORD)
    return bits[..., 0::2] | bits[..., 1::2] << np.uint32(16)
