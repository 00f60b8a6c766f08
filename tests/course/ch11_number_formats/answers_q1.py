"""Answers to exercise 11.1."""

import numpy as np

from gemmlab.course.ch11_number_formats.q1_bfloat16_bits import CASES, to_bfloat16
from gemmlab.numerics import encode, round_to
from tests.course.answers import fooling, for_ever, table, wrong


def by_adding(word):
    if word & 0x7F800000 == 0x7F800000 and word & 0x007FFFFF:
        return 0x7FC0
    return (word + 0x7FFF + (word >> 16 & 1)) >> 16


def by_value(word):
    value = np.uint32(word).view(np.float32)
    return int(encode(round_to(value, "bfloat16"), "bfloat16"))


def by_distance(word):
    sign, magnitude = word >> 31, word & 0x7FFFFFFF
    if magnitude > 0x7F800000:
        return 0xFFFF
    below, rest = divmod(magnitude, 0x10000)
    if rest != 0x8000:
        return (sign << 15) + below + (rest > 0x8000)
    return (sign << 15) + below + below % 2


RIGHT = {
    "adding before the shift": (by_adding,),
    "the library": (by_value,),
    "distances": (by_distance,),
}

UP = "lower > 0x8000 or (lower == 0x8000 and upper % 2 == 1)"


def of(misconception, diagnosis, *edits):
    return wrong(to_bfloat16, misconception, diagnosis, *edits)


WRONG = {
    "upper half": of("the rest does not matter", "truncated", (UP, "False")),
    "half goes up": of("round half up", "ties-away", (UP, "lower >= 0x8000")),
    "half stays": of("round half down", "ties-down", (UP, "lower > 0x8000")),
    "half to odd": of("even is odd", "ties-to-odd", ("upper % 2 == 1", "upper % 2 == 0")),
    "largest is the end": of(
        "there is nothing above the largest number",
        "saturates",
        ("return upper + up", "return upper + (up and upper & 0x7FFF != 0x7F7F)"),
    ),
    "subnormals are zero": of(
        "an exponent of 0 is zero",
        "subnormals-lost",
        (
            "upper, lower =",
            "word &= 0xFFFFFFFF if word & 0x7F800000 else 1 << 31\n    upper, lower =",
        ),
    ),
    "32 bits": of(
        "the result keeps its place", "lower-half-kept", ("upper + up", "(upper + up) << 16")
    ),
    "no sign": of(
        "numbers are positive",
        "sign-lost",
        ("upper, lower = word >> 16", "upper, lower = word >> 16 & 0x7FFF"),
    ),
    "NaN like a number": of("NaN rounds like others", "nan-lost", ("> 0x7F800000", "> 0x7FFFFFFF")),
    "NaN by its upper half": of(
        "NaN shows in the upper half", "nan-lost", ("word >> 16 | 0x0040", "word >> 16")
    ),
    "truncated with NaN": of(
        "casting is cutting", "truncated", (UP, "False"), ("> 0x7F800000", "> 0x7FFFFFFF")
    ),
    "rounds 0.3 to 1": of(
        "any value will do", "right-in-part", ("return upper + up", "return 0x3F80 + up")
    ),
    "a text": of("bits are digits", "wrong-type", ("return upper + up", "return str(upper)")),
    "printed": of("print is return", "wrong-type", ("return upper + up", "print(end='')")),
    "divided": of(
        "/ is //", "not-whole", ("upper, lower = word >> 16", "upper, lower = word / 2**16")
    ),
    "the number": of(
        "a number is its bits",
        "value",
        ("return upper + up", "return float(decode(upper + up, 'bfloat16'))"),
    ),
    "the float32 itself": of(
        "a number is its bits",
        "value",
        ("return upper + up", "return float(decode(word, 'float32'))"),
    ),
    "half precision": of(
        "16 bits are float16",
        "float16",
        (
            "return upper + up",
            "x = decode(word, 'float32')\n"
            "    return int(encode(round_to(x, 'float16'), 'float16'))",
        ),
    ),
    "a minus": of(
        "the sign is a minus",
        "sign-as-minus",
        ("return upper + up", "return -(upper & 0x7FFF) - up if upper >> 15 else upper + up"),
    ),
    "always up": of("what is cut off counts as one", "rounded-up", (UP, "lower > 0")),
    "up is larger": of(
        "rounding up is for positive numbers", "negative-down", (UP, f"upper < 0x8000 and ({UP})")
    ),
    "a typing error": of(
        "names do not matter", "raises", ("return upper + up", "return uper + up")
    ),
}


FOOLING = {
    "whole, and a float": fooling(
        "a float can be whole", "not-whole", lambda word: float(to_bfloat16(word))
    ),
    "by heart": fooling(
        "the cases are in the package", "known-cases-only", table(to_bfloat16, CASES)
    ),
    "for ever": fooling("nobody can stop it", "never-ends", for_ever),
    "a negative index": fooling(
        "−1 is the last", "sign-as-minus", lambda word: to_bfloat16(word) - (1 << 16)
    ),
    "a list of bits": fooling(
        "bits are a list", "wrong-type", lambda word: [int(x) for x in f"{word >> 16:016b}"]
    ),
}
