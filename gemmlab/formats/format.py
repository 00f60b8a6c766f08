"""What a number format is, and the list of them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

__all__ = ["BY_PTX", "FORMATS", "TENSOR_FORMATS", "Format", "number_format"]


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
        """What an element takes in memory [B]."""
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
# follows from it. Field widths: IEEE 754-2019, table 3.5; bfloat16 and TF32: NVIDIA A100 whitepaper,
# figure 9. A register holds TF32 as float32 words whose low 13 bits do not count, and so does
# memory. Rounding for Tensor Cores: cvt.rn exists for 16 bits, for TF32 only cvt.rna has been there
# from the start (PTX ISA, section "cvt").
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
    """The format called `dtype`; ValueError, quoting it, for one that is not in `FORMATS`.

    argument : the name under which the caller was given it

    >>> number_format("bfloat16").unit_roundoff
    0.00390625
    """
    if not isinstance(dtype, str) or dtype not in FORMATS:
        known = ", ".join(FORMATS)
        raise ValueError(f"{argument}={dtype!r} is not a known format; use one of {known}")
    return FORMATS[dtype]
