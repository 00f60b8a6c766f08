"""Number formats: their values, their bits, and rounding to them. The only list of formats.

A value of float16 is held in a NumPy float16. NumPy has no bfloat16 and no TF32: a value of either
is a float32 whose low 16 or 13 bits are zero, which is also how a register holds it. Arrays in
memory are those values too, except that bfloat16 takes two bytes there: an array of uint16 words.

Functions of arrays return arrays, and for a single number one NumPy number.
"""

from dataclasses import dataclass
from numbers import Real
from typing import NamedTuple

import numpy as np

__all__ = [
    "BY_PTX", "FORMATS", "ROUNDINGS", "TENSOR_FORMATS", "Fields", "Format", "decode", "doubles",
    "encode", "exact", "fields", "from_memory", "number_format", "real", "round_to", "to_memory",
    "ulp",
]  # fmt: skip


@dataclass(frozen=True)
class Format:
    """A binary floating-point format: 1 sign bit, `exponent_bits`, `fraction_bits`.

    A number with exponent field E and fraction field T is ±(1 + T·2^-f)·2^(E − bias) for
    0 < E < 2^e − 1, ±T·2^(emin − f) for E = 0 (zero and subnormals), and infinity (T = 0) or NaN
    for E = 2^e − 1. Source: IEEE 754-2019, section 3.4.
    """

    name: str
    ptx: str  # its name in PTX and in the names of instructions
    library: str  # the CUDA data type by which cuBLAS knows its numbers in memory
    exponent_bits: int
    fraction_bits: int
    carrier: np.dtype  # the NumPy type that holds a value
    words: np.dtype  # the unsigned integer of `encode`
    padding: int = 0  # zero bits below the fraction in such an integer
    # How `cvt` rounds float32 to it for Tensor Cores: "RN", or "RNA"; "" where they do not take it.
    tensor: str = ""

    @property
    def bytes(self) -> int:
        """The size of an element in memory [B]."""
        return self.words.itemsize

    @property
    def memory(self) -> np.dtype:
        """The NumPy type of arrays in memory: the carrier, or words where it is wider."""
        return self.carrier if self.carrier.itemsize == self.bytes else self.words

    @property
    def precision(self) -> int:
        """Bits of the significand, the implicit one included, p = f + 1."""
        return self.fraction_bits + 1

    @property
    def unit_roundoff(self) -> float:
        """The largest relative error of rounding to nearest, u = 2^-p."""
        return 2.0**-self.precision

    @property
    def bias(self) -> int:
        return 2 ** (self.exponent_bits - 1) - 1

    @property
    def emax(self) -> int:
        """The exponent of the largest numbers."""
        return self.bias

    @property
    def emin(self) -> int:
        """The exponent of the smallest normal numbers, and of every subnormal one."""
        return 1 - self.bias

    @property
    def largest(self) -> float:
        """The largest finite number, (2 − 2^-f)·2^emax."""
        return (2 - 2.0**-self.fraction_bits) * 2.0**self.emax

    @property
    def smallest_normal(self) -> float:
        return 2.0**self.emin

    @property
    def smallest(self) -> float:
        """The smallest positive number, 2^(emin − f), a subnormal."""
        return 2.0 ** (self.emin - self.fraction_bits)


# The only list of formats: what is said elsewhere of all of them, or of those of Tensor Cores,
# follows from it. Field widths: IEEE 754-2019, table 3.5; bfloat16 and TF32: NVIDIA A100
# whitepaper, figure 9. A register holds TF32 as float32 words whose low 13 bits do not count, and
# so does memory. Rounding for Tensor Cores: cvt.rn exists for 16 bits, for TF32 only cvt.rna has
# been there from the start (PTX ISA, section "cvt").
F64, F32, F16, U64, U32, U16 = map(np.dtype, ("f8", "f4", "f2", "u8", "u4", "u2"))
FORMATS = {
    f.name: f
    for f in (
        Format("float64", "f64", "CUDA_R_64F", 11, 52, F64, U64),
        Format("float32", "f32", "CUDA_R_32F", 8, 23, F32, U32),
        Format("tf32", "tf32", "CUDA_R_32F", 8, 10, F32, U32, padding=13, tensor="RNA"),
        Format("bfloat16", "bf16", "CUDA_R_16BF", 8, 7, F32, U16, tensor="RN"),
        Format("float16", "f16", "CUDA_R_16F", 5, 10, F16, U16, tensor="RN"),
    )
}
BY_PTX = {f.ptx: f for f in FORMATS.values()}
TENSOR_FORMATS = tuple(f.name for f in FORMATS.values() if f.tensor)  # of A and B, on Tensor Cores


def number_format(dtype: str, argument: str = "dtype") -> Format:
    """Return the format called `dtype`; ValueError, quoting it, for one that is not in `FORMATS`.

    argument : the name under which the caller was given it

    >>> number_format("bfloat16").unit_roundoff
    0.00390625
    """
    if not isinstance(dtype, str) or dtype not in FORMATS:
        known = ", ".join(FORMATS)
        raise ValueError(f"{argument}={dtype!r} is not a known format; use one of {known}")
    return FORMATS[dtype]


def real(x: object) -> np.ndarray:
    """Return `x` as an array of real numbers; TypeError for anything else."""
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


# To nearest with ties to even, toward zero, to nearest with ties away from zero: the names that
# PTX gives them are .rn, .rz and .rna.
ROUNDINGS = ("RN", "RZ", "RNA")


def round_to(x: object, dtype: str, rounding: str = "RN") -> np.ndarray:
    """Give the numbers of format `dtype` that the values of `x` round to, in the format's carrier.

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
    """Return the exponent of the last place, max(⌊log2 x⌋, emin) − f, of values x ≥ 0."""
    exponent = np.frexp(magnitude)[1] - 1
    return np.where(magnitude == 0, form.emin, np.maximum(exponent, form.emin)) - form.fraction_bits


class Fields(NamedTuple):
    """Sign, exponent field (biased) and fraction field of numbers, as integers."""

    sign: np.ndarray
    exponent: np.ndarray
    fraction: np.ndarray


def encode(x: object, dtype: str) -> np.ndarray:
    """Give the bits of numbers of format `dtype`, as unsigned integers of as many bytes as it has.

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
    """Give the numbers with these bits, in the carrier of format `dtype`; the inverse of `encode`.

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
    """Return the numbers in an array in memory, in the carrier of format `dtype`; see `to_memory`.

    >>> from_memory(np.array([16256], np.uint16), "bfloat16")
    array([1.], dtype=float32)
    """
    form = number_format(dtype)
    return decode(x, dtype) if form.memory == form.words else x
