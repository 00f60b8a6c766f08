"""Exercise 11.1: rounding a float32 to bfloat16, in its bits."""

import numbers
from dataclasses import replace
from typing import Any

from gemmlab.course.judging import (
    FAILING,
    Diagnosis,
    Finding,
    Task,
    drawing,
    functions_on_trial,
    guard,
)
from gemmlab.course.judging.diagnoses import PATTERNS
from gemmlab.course.judging.source import short
from gemmlab.numerics import decode, encode, round_to

# The bits of float32 numbers, the plain ones first.
CASES = tuple(
    (word,)
    for word in (
        0x3F800000,  # 1
        0xC0490FDB,  # −π: 0x0FDB is below half of the last place
        0x3DCCCCCD,  # 0.1: above half
        0xC02DF854,  # −e: above half, and negative
        0x3F808001,  # just above half
        0x3F807FFF,  # just below half
        0x3F818000,  # half, between an odd number and an even one above
        0x3F808000,  # half, between an even number and an odd one above
        0xBF828000,
        0x3FFF8000,  # half, and up is 2
        0x00000000,
        0x80000000,
        0x00008000,  # half of the smallest subnormal
        0x00018000,
        0x007FC000,  # the largest subnormals: up is the smallest normal number
        0x7F7F0000,  # the largest finite number
        0x7F7F7FFF,
        0x7F7F8000,  # half a place beyond it
        0xFF7FFFFF,
        0x7F800000,  # infinity
        0xFF800000,
        0x7FC00000,  # NaN
        0x7F800001,  # NaN whose upper half is that of infinity
        0xFFFFFFFF,  # NaN whose upper half cannot be counted up
    )
)


def to_bfloat16(word):
    """The 16 bits of the bfloat16 that a float32, given as 32 bits, rounds to."""
    # The upper half of the bits, or one more.
    # [answer]
    if word & 0x7FFFFFFF > 0x7F800000:  # NaN: the rest of its fraction may be in the lower half
        return word >> 16 | 0x0040
    upper, lower = word >> 16, word & 0xFFFF
    up = lower > 0x8000 or (lower == 0x8000 and upper % 2 == 1)
    return upper + up
    # [end]


def _is_nan(word: int) -> bool:
    return word & 0x7FFFFFFF > 0x7F800000


def _rounded(word: int, tie: str = "even") -> int:
    """Upper half, one more where the lower half says so; a NaN is treated as a number."""
    upper, lower = word >> 16, word & 0xFFFF
    at_tie = {"even": upper % 2 == 1, "up": True, "down": False, "odd": upper % 2 == 0}[tie]
    return upper + (lower > 0x8000 or (lower == 0x8000 and at_tie))


def _safe(rule: Any) -> Any:
    """The rule for numbers, and NaN kept."""
    return lambda word: word >> 16 | 0x0040 if _is_nan(word) else rule(word)


def _saturated(word: int) -> int:
    rounded = _rounded(word)
    beyond = rounded & 0x7FFF >= 0x7F80 and word & 0x7FFFFFFF < 0x7F800000
    return rounded - 1 if beyond else rounded


def _flushed(word: int) -> int:
    return word >> 16 & 0x8000 if word & 0x7F800000 == 0 else _rounded(word)


def _value(word: int) -> float:
    """The number itself, where its bits are asked for."""
    return float(decode(_rounded(word) & 0xFFFF, "bfloat16"))


def _float16(word: int) -> int:
    return int(encode(round_to(decode(word, "float32"), "float16"), "float16"))


reference = _safe(_rounded)
# The result of each mistake; `INSTEAD` has each twice, with NaN right and with NaN wrong.
_RULES = {
    "truncated": lambda word: word >> 16,
    "ties-away": lambda word: _rounded(word, "up"),
    "ties-down": lambda word: _rounded(word, "down"),
    "ties-to-odd": lambda word: _rounded(word, "odd"),
    "saturates": _saturated,
    "subnormals-lost": _flushed,
    "rounded-up": lambda word: (word >> 16) + (word & 0xFFFF != 0),
    "negative-down": lambda word: word >> 16 if word >> 31 else _rounded(word),
    "float16": _float16,
    "value": _value,
    "lower-half-kept": lambda word: _rounded(word) << 16,
    "sign-lost": lambda word: _rounded(word & 0x7FFFFFFF),
}
INSTEAD = {
    **{name: _safe(rule) for name, rule in _RULES.items()},
    **{f"{name} ": rule for name, rule in _RULES.items()},
}


def judge(answer: Any) -> Finding:
    """The numbers, exactly; then NaN, of which any will do."""
    plain = [case for case in CASES if not _is_nan(case[0])]
    show = "0x{:08X}".format
    anew = [(int(w),) for w in drawing.generator().integers(0, 1 << 32, 64)]
    fresh = [case for case in anew if not _is_nan(case[0])]
    found = functions_on_trial.judge("to_bfloat16", answer, plain, reference, INSTEAD, show, fresh)
    if found is not None:
        return replace(found, diagnosis=_kind(found), facts=_in_hexadecimal(found))
    nans = [case for case in CASES if _is_nan(case[0])]
    for (word,), outcome in zip(nans, guard.attempts(answer, nans), strict=False):
        facts = ((FAILING, f"to_bfloat16({show(word)}), a NaN"),)
        details = {"case": (word,), "function": "to_bfloat16"}
        if outcome.fault:
            more = details | dict(outcome.fault.details)
            return Finding(outcome.fault.diagnosis, facts + outcome.fault.facts, more)
        if isinstance(outcome.value, numbers.Real) and not isinstance(
            outcome.value, numbers.Integral
        ):
            told = (("Result", f"it is the float {outcome.value}; use a whole number"),)
            return Finding("not-whole", facts + told, details | {"got": outcome.value})
        if not _is_nan_of_16_bits(outcome.value):
            result = (("Result", f"expected a NaN, got {_hexadecimal(outcome.value)}"),)
            return Finding("nan-lost", facts + result, details | {"got": outcome.value})
    checked = f"{len(CASES)} bit patterns and {len(fresh)} drawn anew"
    return Finding("passed", (("Checked", checked),))


def _kind(found: Finding) -> str:
    """The diagnosis; a result that no 16 bits can be has one of its own."""
    got, diagnosis = found.details.get("got", 0), found.diagnosis.strip()
    if diagnosis not in PATTERNS or not isinstance(got, numbers.Real):
        return diagnosis
    if not isinstance(got, numbers.Integral):
        return "not-whole" if got % 1 else "value"
    return "sign-as-minus" if got < 0 else diagnosis


def _is_nan_of_16_bits(value: Any) -> bool:
    return isinstance(value, numbers.Integral) and 0 <= value < 2**16 and value & 0x7FFF > 0x7F80


def _hexadecimal(value: Any) -> str:
    if not isinstance(value, numbers.Integral):
        return short(value)
    return f"{'−' if value < 0 else ''}0x{abs(int(value)):04X}"


def _in_hexadecimal(found: Finding) -> tuple[tuple[str, str], ...]:
    """The facts, with the result in hexadecimal digits."""
    details = found.details
    if "got" not in details:
        return found.facts
    expected, got = (_hexadecimal(details[x]) for x in ("expected", "got"))
    text = f"expected {expected}, got {got}"
    return tuple((a, text if a == "Result" else b) for a, b in found.facts)


TASK = Task(
    name="11.1",
    title="Sixteen bits of thirty-two",
    section="chapter 11, Rounding",
    asked="to_bfloat16(word) gives the bits of the bfloat16 nearest to a float32, ties to even; "
    "both as whole numbers.",
    prompt="""
    A bfloat16 has the sign and the exponent of a float32, and the upper 7 of its 23 fraction bits.
    So its bits are the upper half of the float32's, or that half plus one.

    Write `to_bfloat16(word)`: `word` holds the 32 bits of a float32, as a whole number from 0 to
    `0xFFFFFFFF`; return the 16 bits of the bfloat16 it rounds to, to nearest with ties to even.
    Subnormals are kept, numbers beyond the largest become infinities, and a NaN stays a NaN (any).

    Use whole numbers only: `>>`, `&`, comparisons. The check tries bit patterns of every kind.
    """,
    judge=judge,
    answers=(to_bfloat16,),
    diagnoses={
        "not-attempted": Diagnosis(
            "The skeleton is unchanged.",
            "What does the lower half of the word say about rounding the upper half?",
            "```python\nupper, lower = word >> 16, ...\nreturn upper + (lower > ...)\n```",
        ),
        "wrong-type": Diagnosis(
            "One whole number is asked for, from 0 to 0xFFFF.",
            "What does the function return? print() shows a number, but does not hand it over.",
            "```python\nreturn upper + (lower > ...)\n```",
        ),
        "not-whole": Diagnosis(
            "Bits are a whole number; / divides exactly, >> and // drop the rest.",
            "What are 0x3DCCCCCD / 0x10000 and 0x3DCCCCCD >> 16?",
            "```python\nupper = word >> ...\n```",
        ),
        "value": Diagnosis(
            "That is the number itself; its bits are asked for.",
            "Which 16 bits has the bfloat16 1.0?",
            "```python\nupper, lower = word >> 16, ...\n```",
        ),
        "float16": Diagnosis(
            "That is float16, which has 5 bits of exponent; bfloat16 has 8, as float32 has.",
            "Which bits of a float32 are those of the bfloat16?",
            "```python\nupper, lower = word >> 16, ...\n```",
        ),
        "sign-as-minus": Diagnosis(
            "The result is below zero. The sign of a float is a bit, the uppermost, not a minus.",
            "What are the 16 bits of −1?",
            "```python\nupper = word >> 16    # the sign is in it\n```",
        ),
        "rounded-up": Diagnosis(
            "Whatever is cut off, one is added: that rounds away from zero.",
            "Which of the two neighbours is nearer to 0x3F804000?",
            "```python\nreturn upper + (lower > ...)\n```",
        ),
        "negative-down": Diagnosis(
            "Negative numbers are cut off; the sign does not matter for what is nearest.",
            "Which of the two neighbours is nearer to 0xBF80C000?",
            "```python\nreturn upper + (lower > ...)    # whatever the sign\n```",
        ),
        "truncated": Diagnosis(
            "The lower half is cut off: that rounds toward zero.",
            "Which of the two neighbours is nearer to 0x3F80C000?",
            "```python\nreturn upper + (lower > ...)\n```",
        ),
        "ties-away": Diagnosis(
            "A number halfway between two goes up every time; it shall go to the even one.",
            "What is the lower half of a number just halfway, and which neighbour ends in 0?",
            "```python\nlower > 0x8000 or (lower == 0x8000 and upper ...)\n```",
        ),
        "ties-down": Diagnosis(
            "A number halfway between two goes down every time; it shall go to the even one.",
            "What is the lower half of a number just halfway, and which neighbour ends in 0?",
            "```python\nlower > 0x8000 or (lower == 0x8000 and upper ...)\n```",
        ),
        "ties-to-odd": Diagnosis(
            "A number halfway between two goes to the one whose last bit is 1.",
            "Which upper halves have to be counted up to become even?",
            "```python\nlower == 0x8000 and upper % 2 == ...\n```",
        ),
        "saturates": Diagnosis(
            "Beyond the largest number the result stays there; to nearest it is infinity.",
            "What are the bits of infinity, and what is 0x7F7F + 1?",
            "Nothing needs to be done: the carry runs into the exponent by itself.",
        ),
        "subnormals-lost": Diagnosis(
            "Numbers with exponent 0 become zero; bfloat16 has subnormals too.",
            "Which value has 0x0001 in bfloat16?",
            "Nothing needs to be done: the same rule holds for them.",
        ),
        "lower-half-kept": Diagnosis(
            "The result stands in the upper half of 32 bits; it has 16.",
            "How many bits has the result?",
            "```python\nupper = word >> ...\n```",
        ),
        "sign-lost": Diagnosis(
            "The sign bit is gone.",
            "Which bit of the word is the sign, and where should it be in the result?",
            "```python\nupper = word >> 16    # the sign is in it\n```",
        ),
        "nan-lost": Diagnosis(
            "A NaN became something else: an infinity, or a number.",
            "A NaN has a fraction that is not 0. What if all its bits are in the lower half, and "
            "what if the upper half is counted up?",
            "```python\nif word & 0x7FFFFFFF > 0x7F800000:\n    return ...\n```",
        ),
    },
    praise="Rounding is counting: the carry turns the largest fraction into the next exponent and "
    "the largest number into infinity, and only NaN has to be kept apart.",
)
