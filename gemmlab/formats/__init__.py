"""Number formats: their values, their bits, and rounding to them. The only list of formats.

A value of float16 is held in a NumPy float16. NumPy has no bfloat16 and no TF32: a value of either
is a float32 whose low 16 or 13 bits are zero, which is also how a register holds it. Arrays in
memory are those values too, except that bfloat16 takes two bytes there: an array of uint16 words.

Functions of arrays return arrays, and for a single number one NumPy number.
"""

from gemmlab.formats.bits import Fields, decode, encode, fields, from_memory, to_memory
from gemmlab.formats.format import BY_PTX, FORMATS, TENSOR_FORMATS, Format, number_format
from gemmlab.formats.rounding import ROUNDINGS, round_to, ulp

__all__ = [
    "BY_PTX",
    "FORMATS",
    "ROUNDINGS",
    "TENSOR_FORMATS",
    "Fields",
    "Format",
    "decode",
    "encode",
    "fields",
    "from_memory",
    "number_format",
    "round_to",
    "to_memory",
    "ulp",
]
