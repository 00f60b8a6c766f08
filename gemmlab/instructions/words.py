"""What 32-bit registers hold: packed pairs of 16-bit numbers, and what NumPy makes of them."""

from __future__ import annotations

import numpy as np

# The NaN that instructions return, whatever the NaN that they got: all ones but the sign.
NAN_HALF, NAN_WORD = np.uint16(0x7FFF), np.uint32(0x7FFFFFFF)
# What a TF32 has of a float32.
TF32_BITS = np.uint32(0xFFFFE000)


def halves(words: np.ndarray) -> np.ndarray:
    """The 16-bit halves of words, (…, n) -> (…, 2n), low half first."""
    words = np.ascontiguousarray(words, np.uint32)
    low, high = words & np.uint32(0xFFFF), words >> np.uint32(16)
    pairs = np.stack([low, high], axis=-1).astype(np.uint16)
    return pairs.reshape(*words.shape[:-1], -1)


def packed(values: np.ndarray) -> np.ndarray:
    """The words of 16-bit numbers, (…, 2n) -> (…, n), the first in the low half."""
    bits = np.ascontiguousarray(values).view(np.uint16).astype(np.uint32)
    return bits[..., 0::2] | bits[..., 1::2] << np.uint32(16)


def numbers(registers: np.ndarray, held: str) -> np.ndarray:
    """The numbers in registers (…, n): (…, 2n) float16, or bfloat16 as float32; else (…, n).

    held : as `instruction.HELD_AS` names it
    """
    if held == "float16x2":
        return halves(registers).view(np.float16)
    if held == "bfloat16x2":
        return (halves(registers).astype(np.uint32) << np.uint32(16)).view(np.float32)
    return registers


def registers(values: np.ndarray, held: str) -> np.ndarray:
    """The registers that hold numbers: the inverse of `numbers`."""
    if held == "float16x2":
        return packed(np.asarray(values, np.float16))
    if held == "bfloat16x2":
        bits = np.ascontiguousarray(values, np.float32).view(np.uint32) >> np.uint32(16)
        return packed(bits.astype(np.uint16))
    return np.asarray(values)
