"""What registers hold: numbers alone, or several narrow ones packed into words of 32 bits.

Operands name it: "float32", "tf32" and so on for one number of that format; "float16x2" and
"bfloat16x2" for a packed pair, the first number in the lowest bits; "uint32" for 32 bits whatever
they mean.
"""

import numpy as np

from gemmlab.formats import FORMATS, Format, decode, encode

WORD = np.dtype(np.uint32)


def held(form: Format) -> str:
    """What a register of a fragment holds of a format: as many numbers as 32 bits have room for.

    >>> held(FORMATS["bfloat16"]), held(FORMATS["tf32"])
    ('bfloat16x2', 'tf32')
    """
    return f"{form.name}x{WORD.itemsize // form.bytes}" if form.bytes < WORD.itemsize else form.name


def of_one(what: str) -> tuple[str, int]:
    """Return the format of a number in a register, and how many numbers there are.

    >>> of_one("float16x2"), of_one("tf32")
    (('float16', 2), ('tf32', 1))
    """
    name, _, count = what.rpartition("x")
    return (name, int(count)) if name else (what, 1)


def per_register(what: str) -> int:
    """Numbers in a register.

    >>> per_register("float16x2"), per_register("tf32")
    (2, 1)
    """
    return of_one(what)[1]


def carrier(what: str) -> np.dtype:
    """The NumPy type by which kernels know a register: a word, or that of its number's format.

    >>> carrier("float16x2"), carrier("tf32")
    (dtype('uint32'), dtype('float32'))
    """
    return WORD if what == WORD.name or per_register(what) > 1 else FORMATS[what].carrier


def numbers(registers: np.ndarray, what: str) -> np.ndarray:
    """The numbers in registers (…, n), each in its format's carrier: (…, 2n) of packed pairs."""
    name, count = of_one(what)
    if count == 1:
        return registers
    return decode(np.ascontiguousarray(registers, WORD).view(FORMATS[name].words), name)


def registers(values: np.ndarray, what: str) -> np.ndarray:
    """Return the registers that hold numbers: the inverse of `numbers`.

    ValueError for values that are not numbers of a packed format: round them first.
    """
    name, count = of_one(what)
    return np.asarray(values) if count == 1 else packed(encode(values, name))


def halves(words: np.ndarray) -> np.ndarray:
    """Return the 16-bit halves of words, (…, n) -> (…, 2n), low half first."""
    return np.ascontiguousarray(words, WORD).view(np.uint16)


def packed(values: np.ndarray) -> np.ndarray:
    """The words of narrower numbers, (…, 2n) -> (…, n) of 16 bits, the first in the lowest bits."""
    return np.ascontiguousarray(values).view(WORD)
