"""Conversions between float32 and the formats of Tensor Cores, by name, rounding and packing.

Pairs travel in one register, the first argument in the low half. RN rounds to nearest with ties to
even, RZ toward zero, RNA to nearest with ties away from zero. A NaN becomes the canonical one, all
ones but the sign, of which TF32 has the upper 19 bits. But RNA to TF32 cuts a NaN off as it is: one
whose payload is in the lower 13 bits becomes an infinity. (ptxas 13.0 makes an integer addition and
a mask of that conversion, for every architecture.)
Source: PTX ISA 9.0, "cvt" and "mov (packing)"; NaN: an H200's results.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from gemmlab.instructions.instruction import Capability, Instruction, Registers
from gemmlab.instructions.words import NAN_HALF, NAN_WORD, TF32_BITS, numbers, packed

PASCAL, AMPERE, HOPPER = (5, 3), (8, 0), (9, 0)
HALF = {"f16": "float16", "bf16": "bfloat16"}


def rounded(x: np.ndarray, dtype: str, rounding: str) -> np.ndarray:
    """The bits of `x` rounded to `dtype`: 16 of them, or 32 for tf32."""
    from gemmlab.numerics import encode, round_to

    nan = np.isnan(x)
    words = encode(round_to(np.where(nan, np.float32(0), x), dtype, rounding), dtype)
    if dtype != "tf32":
        return np.where(nan, NAN_HALF, words)
    return np.where(nan, (x.view(np.uint32) if rounding == "RNA" else NAN_WORD) & TF32_BITS, words)


def pair_meaning(
    dtype: str, rounding: str, low: np.ndarray, high: np.ndarray, *, arch: str
) -> np.ndarray:
    """A word (…, 32, 1) of two numbers."""
    pair = np.concatenate([rounded(x, dtype, rounding) for x in (low, high)], axis=-1)
    return packed(pair.astype(np.uint16))


def tf32_meaning(rounding: str, x: np.ndarray, *, arch: str) -> np.ndarray:
    """A tf32 as a float32."""
    return rounded(x, "tf32", rounding).astype(np.uint32).view(np.float32)


def half_meaning(rounding: str, x: np.ndarray, *, arch: str) -> np.ndarray:
    """A float16."""
    return rounded(x, "float16", rounding).astype(np.uint16).view(np.float16)


def unpack_meaning(held: str, word: np.ndarray, *, arch: str) -> np.ndarray:
    """The two float32 (…, 32, 2) of a word; of a NaN in float16, the canonical one."""
    values = numbers(word, held).astype(np.float32)
    if held == "bfloat16x2":
        return values
    return np.where(np.isnan(values), NAN_WORD.view(np.float32), values)


def _instruction(
    name: str, ptx: str, operands: tuple, result: Registers, requires: Capability, meaning: partial
) -> Instruction:
    return Instruction(name, ptx, operands, result, requires, "convert", meaning)


def _pair(rounding: str, half: str) -> Instruction:
    return _instruction(
        f"cvt_{rounding}_{half}x2_f32",
        f"cvt.{rounding}.{half}x2.f32 {{d}}, {{high}}, {{low}}",
        (Registers("low", "float32"), Registers("high", "float32")),
        Registers("d", "uint32"),
        AMPERE,
        partial(pair_meaning, HALF[half], rounding.upper()),
    )


def _tf32(rounding: str, requires: Capability) -> Instruction:
    return _instruction(
        f"cvt_{rounding}_tf32_f32",
        f"cvt.{rounding}.tf32.f32 {{d}}, {{x}}",
        (Registers("x", "float32"),),
        Registers("d", "tf32"),
        requires,
        partial(tf32_meaning, rounding.upper()),
    )


def _half(rounding: str) -> Instruction:
    return _instruction(
        f"cvt_{rounding}_f16_f32",
        f"cvt.{rounding}.f16.f32 {{d}}, {{x}}",
        (Registers("x", "float32"),),
        Registers("d", "float16"),
        PASCAL,
        partial(half_meaning, rounding.upper()),
    )


cvt_rn_f16_f32, cvt_rz_f16_f32 = _half("rn"), _half("rz")
cvt_rn_f16x2_f32, cvt_rz_f16x2_f32 = _pair("rn", "f16"), _pair("rz", "f16")
cvt_rn_bf16x2_f32, cvt_rz_bf16x2_f32 = _pair("rn", "bf16"), _pair("rz", "bf16")
cvt_rna_tf32_f32 = _tf32("rna", AMPERE)
cvt_rn_tf32_f32, cvt_rz_tf32_f32 = _tf32("rn", HOPPER), _tf32("rz", HOPPER)

# What older GPUs have no packed conversion for, in a few instructions.
pack_f16x2 = _instruction(
    "pack_f16x2",
    "{{ .reg .b16 low, high; cvt.rn.f16.f32 low, {low}; cvt.rn.f16.f32 high, {high}; "
    "mov.b32 {d}, {{low, high}}; }}",
    (Registers("low", "float32"), Registers("high", "float32")),
    Registers("d", "uint32"),
    PASCAL,
    partial(pair_meaning, "float16", "RN"),
)
unpack_f16x2 = _instruction(
    "unpack_f16x2",
    "{{ .reg .b16 low, high; mov.b32 {{low, high}}, {word}; cvt.f32.f16 {d0}, low; "
    "cvt.f32.f16 {d1}, high; }}",
    (Registers("word", "uint32"),),
    Registers("d", "float32", 2),
    PASCAL,
    partial(unpack_meaning, "float16x2"),
)
unpack_bf16x2 = _instruction(
    "unpack_bf16x2",
    "{{ .reg .b32 low, high; shl.b32 low, {word}, 16; and.b32 high, {word}, 0xffff0000; "
    "mov.b32 {d0}, low; mov.b32 {d1}, high; }}",
    (Registers("word", "uint32"),),
    Registers("d", "float32", 2),
    PASCAL,
    partial(unpack_meaning, "bfloat16x2"),
)
