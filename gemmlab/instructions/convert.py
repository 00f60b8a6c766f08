"""Conversions between float32 and the formats of Tensor Cores, by name, rounding and packing.

Pairs travel in one register, the first argument in the low half. RN rounds to nearest with ties to
even, RZ toward zero, RNA to nearest with ties away from zero. A NaN becomes the canonical one, all
ones but the sign, of which TF32 has the upper 19 bits. But RNA to TF32 cuts a NaN off as it is: one
whose payload is in the lower 13 bits becomes an infinity. (ptxas 13.0 makes an integer addition and
a mask of that conversion, for every architecture.)
Source: PTX ISA 9.0, "cvt" and "mov (packing)"; NaN: an H200's results.
"""

from functools import partial

import numpy as np

from gemmlab.formats import BY_PTX, FORMATS, decode, encode, round_to
from gemmlab.instructions.instruction import Instruction, Registers, named_in, numbers, packed
from gemmlab.numerics.tensor_cores import nan_word


def rounded(x: np.ndarray, dtype: str, rounding: str) -> np.ndarray:
    """Return the bits of `x` rounded to `dtype`: 16 of them, or 32 for tf32."""
    form, nan = FORMATS[dtype], np.isnan(x)
    words = encode(round_to(np.where(nan, np.float32(0), x), dtype, rounding), dtype)
    if dtype == "tf32" and rounding == "RNA":
        return np.where(nan, x.view(np.uint32) >> form.padding << form.padding, words)
    return np.where(nan, form.words.type(nan_word(form)), words)


def pair_meaning(
    dtype: str, rounding: str, low: np.ndarray, high: np.ndarray, *, arch: str
) -> np.ndarray:
    """Return a word (…, 32, 1) of two numbers."""
    return packed(np.concatenate([rounded(x, dtype, rounding) for x in (low, high)], axis=-1))


def single_meaning(dtype: str, rounding: str, x: np.ndarray, *, arch: str) -> np.ndarray:
    """Return a number of the format, in its carrier."""
    return rounded(x, dtype, rounding).view(FORMATS[dtype].carrier)


def unpack_meaning(what: str, word: np.ndarray, *, arch: str) -> np.ndarray:
    """Return the two float32 (…, 32, 2) of a word; of a NaN in float16, the canonical one."""
    values = numbers(word, what).astype(np.float32)
    if what == "bfloat16x2":
        return values
    return np.where(np.isnan(values), decode(nan_word(FORMATS["float32"]), "float32"), values)


def _instruction(
    name: str, ptx: str, operands: tuple, result: Registers, requires: str, meaning: partial
) -> Instruction:
    return Instruction(name, ptx, operands, result, requires, "convert", meaning)


def _pair(rounding: str, half: str) -> Instruction:
    return _instruction(
        f"cvt_{rounding}_{half}x2_f32",
        f"cvt.{rounding}.{half}x2.f32 {{d}}, {{high}}, {{low}}",
        (Registers("low", "float32"), Registers("high", "float32")),
        Registers("d", "uint32"),
        "sm_80",
        partial(pair_meaning, BY_PTX[half].name, rounding.upper()),
    )


def _single(rounding: str, form: str, requires: str) -> Instruction:
    name = BY_PTX[form].name
    return _instruction(
        f"cvt_{rounding}_{form}_f32",
        f"cvt.{rounding}.{form}.f32 {{d}}, {{x}}",
        (Registers("x", "float32"),),
        Registers("d", name),
        requires,
        partial(single_meaning, name, rounding.upper()),
    )


cvt_rn_f16_f32, cvt_rz_f16_f32 = _single("rn", "f16", "sm_53"), _single("rz", "f16", "sm_53")
cvt_rn_f16x2_f32, cvt_rz_f16x2_f32 = _pair("rn", "f16"), _pair("rz", "f16")
cvt_rn_bf16x2_f32, cvt_rz_bf16x2_f32 = _pair("rn", "bf16"), _pair("rz", "bf16")
cvt_rna_tf32_f32 = _single("rna", "tf32", "sm_80")
cvt_rn_tf32_f32, cvt_rz_tf32_f32 = _single("rn", "tf32", "sm_90"), _single("rz", "tf32", "sm_90")

# What older GPUs have no packed conversion for, in a few instructions.
pack_f16x2 = _instruction(
    "pack_f16x2",
    "{{ .reg .b16 low, high; cvt.rn.f16.f32 low, {low}; cvt.rn.f16.f32 high, {high}; "
    "mov.b32 {d}, {{low, high}}; }}",
    (Registers("low", "float32"), Registers("high", "float32")),
    Registers("d", "uint32"),
    "sm_53",
    partial(pair_meaning, "float16", "RN"),
)
unpack_f16x2 = _instruction(
    "unpack_f16x2",
    "{{ .reg .b16 low, high; mov.b32 {{low, high}}, {word}; cvt.f32.f16 {d0}, low; "
    "cvt.f32.f16 {d1}, high; }}",
    (Registers("word", "uint32"),),
    Registers("d", "float32", 2),
    "sm_53",
    partial(unpack_meaning, "float16x2"),
)
unpack_bf16x2 = _instruction(
    "unpack_bf16x2",
    "{{ .reg .b32 low, high; shl.b32 low, {word}, 16; and.b32 high, {word}, 0xffff0000; "
    "mov.b32 {d0}, low; mov.b32 {d1}, high; }}",
    (Registers("word", "uint32"),),
    Registers("d", "float32", 2),
    "sm_53",
    partial(unpack_meaning, "bfloat16x2"),
)

__all__ = named_in(globals())
