"""Number formats: their values, their bits, and rounding to them. The only list of formats.

A value of float16 is held in a NumPy float16. NumPy has no bfloat16 and no TF32: a value of either
is a float32 whose low 16 or 13 bits are zero, which is also how a register holds it. It has no FP8
either: a value of E4M3 or E5M2 is a float16. Arrays in memory are those values too, except that
bfloat16 takes two bytes there, an array of uint16 words, and FP8 one, of uint8: `x.view(np.uint8)`
of an array of ml_dtypes, and the same in PyTorch and JAX.

Functions of arrays return arrays, and for a single number one NumPy number.
"""

from dataclasses import dataclass
from numbers import Real
from typing import NamedTuple

import numpy as np

__all__ = [
    "BY_PTX", "EIGHT_BITS", "FORMATS", "ROUNDINGS", "TENSOR_FORMATS", "Fields", "Format", "decode",
    "doubles", "encode", "exact", "fields", "from_memory", "number_format", "real", "round_to",
    "to_memory", "ulp",
]  # fmt: skip


@dataclass(frozen=True)
class Format:
    """A binary floating-point format: 1 sign bit, `exponent_bits`, `fraction_bits`.

    A number with exponent field E and fraction field T is ±(1 + T·2^-f)·2^(E − bias) for
    0 < E < 2^e − 1, ±T·2^(emin − f) for E = 0 (zero and subnormals), and infinity (T = 0) or NaN
    for E = 2^e − 1. Source: IEEE 754-2019, section 3.4. E4M3 has no infinity: there E = 2^e − 1 has
    numbers too, and NaN is all ones. Source: P. Micikevicius et al., arXiv:2209.05433, table 1.
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
    infinities: bool = True

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
        return self.bias + (not self.infinities)

    @property
    def emin(self) -> int:
        """The exponent of the smallest normal numbers, and of every subnormal one."""
        return 1 - self.bias

    @property
    def largest(self) -> float:
        """The largest finite number: (2 − 2^-f)·2^emax, or the one below where that is NaN."""
        places = 1 if self.infinities else 2
        return (2 - places * 2.0**-self.fraction_bits) * 2.0**self.emax

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
# so does memory. Rounding for Tensor Cores: cvt.rn exists for 8 and 16 bits, for TF32 only cvt.rna
# has been there from the start (PTX ISA, section "cvt"). FP8: names of PyTorch, JAX and ml_dtypes.
F64, F32, F16, U64, U32, U16, U8 = map(np.dtype, ("f8", "f4", "f2", "u8", "u4", "u2", "u1"))
FORMATS = {
    f.name: f
    for f in (
        Format("float64", "f64", "CUDA_R_64F", 11, 52, F64, U64),
        Format("float32", "f32", "CUDA_R_32F", 8, 23, F32, U32),
        Format("tf32", "tf32", "CUDA_R_32F", 8, 10, F32, U32, padding=13, tensor="RNA"),
        Format("bfloat16", "bf16", "CUDA_R_16BF", 8, 7, F32, U16, tensor="RN"),
        Format("float16", "f16", "CUDA_R_16F", 5, 10, F16, U16, tensor="RN"),
        Format("float8_e5m2", "e5m2", "CUDA_R_8F_E5M2", 5, 2, F16, U8, tensor="RN"),
        Format("float8_e4m3fn", "e4m3", "CUDA_R_8F_E4M3", 4, 3, F16, U8, 0, "RN", infinities=False),
    )
}
BY_PTX = {f.ptx: f for f in FORMATS.values()}
TENSOR_FORMATS = tuple(f.name for f in FORMATS.values() if f.tensor)  # of A and B, on Tensor Cores
EIGHT_BITS = tuple(f.name for f in FORMATS.values() if f.bytes == 1)


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
    if _is_narrower(form):
        wrong |= (decode(_narrowed(held, form), form.name) != held) & ~np.isnan(held)
    elif unused:
        words = held.view(f"u{held.itemsize}")
        wrong |= words & words.dtype.type(2**unused - 1) != 0
    if wrong.any():
        value = x[wrong].flat[0].item()
        raise ValueError(
            f"{value!r} is not a {form.name} number; round it first: round_to(x, {form.name!r})"
        )
    return held


# To nearest with ties to even, toward zero, to nearest with ties away from zero: the names that
# PTX gives them are .rn, .rz and .rna.
ROUNDINGS = ("RN", "RZ", "RNA")


def round_to(x: object, dtype: str, rounding: str = "RN", *, saturate: bool = False) -> np.ndarray:
    """Give the numbers of format `dtype` that the values of `x` round to, in the format's carrier.

    x : real numbers that float64 has, of any shape
    rounding : "RN" to nearest, ties to even; "RZ" toward zero; "RNA" to nearest, ties away from 0
    saturate : what is beyond the largest number, infinities too, becomes that, as `.satfinite` of
        PTX has it; without it GPUs do not convert to FP8

    Beyond the largest number RZ stays there and RN and RNA give an infinity from half an ulp on, or
    NaN where the format has no infinity; subnormals are kept; NaN gives NaN. Raises ValueError for
    an unknown format or rounding and for numbers that float64 does not have, TypeError for what is
    no real number.

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
    infinity = form.largest if saturate else np.inf if form.infinities else np.nan
    beyond = form.largest if rounding == "RZ" else infinity
    rounded = np.where(rounded > form.largest, beyond, rounded)
    rounded = np.copysign(np.where(finite, rounded, infinity), x)
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
    held = exact(x, form)
    if _is_narrower(form):
        return _narrowed(held, form).astype(form.words)[()]
    words = held.view(f"u{form.carrier.itemsize}")
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
    if _is_narrower(form):
        return _widened(words, form)[()]
    wide = words.astype(f"u{form.carrier.itemsize}") >> form.padding << form.padding
    wide <<= 8 * form.carrier.itemsize - bits
    return wide.view(form.carrier)[()]


def _is_narrower(form: Format) -> bool:
    """Say whether the carrier has more exponent bits: its words are no upper part of those."""
    return FORMATS[form.carrier.name].exponent_bits > form.exponent_bits


def _narrowed(held: np.ndarray, form: Format) -> np.ndarray:
    """Return the words of numbers; some word where the format does not have them, NaN beyond it."""
    wide = FORMATS[form.carrier.name]
    # Once exponents are biased alike, a word is an upper part again.
    scaled = np.abs(held) * form.carrier.type(2.0 ** (form.bias - wide.bias))
    words = np.asarray(scaled).view(wide.words) >> (wide.fraction_bits - form.fraction_bits)
    width = form.exponent_bits + form.fraction_bits
    return np.minimum(words, 2**width - 1) | np.signbit(held).astype(wide.words) << width


def _widened(words: np.ndarray, form: Format) -> np.ndarray:
    """Return the numbers with these words; the inverse of `_narrowed`."""
    wide, width = FORMATS[form.carrier.name], form.exponent_bits + form.fraction_bits
    words = words.astype(wide.words)
    magnitude, sign = words & (2**width - 1), words >> width
    bits = magnitude << (wide.fraction_bits - form.fraction_bits)
    numbers = bits.view(form.carrier) * form.carrier.type(2.0 ** (wide.bias - form.bias))
    numbers = np.where(magnitude == 2**width - 1, form.carrier.type(np.nan), numbers)
    return np.where(sign == 1, -numbers, numbers)


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
    """The array in memory of numbers of format `dtype`: words for bfloat16 and FP8, else numbers.

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
