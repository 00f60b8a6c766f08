"""Numbers as they are typed: each text becomes exactly its number, or an error quotes it."""

from __future__ import annotations

import math
import re
import sys
from decimal import Decimal, InvalidOperation

QUOTED = 30  # characters of a text that an error repeats
_HEX = re.compile(r"[+-]?0x", re.IGNORECASE)


def whole(text: str, name: str, least: int, most: int) -> int:
    """The whole number that `text` says; ValueError, with what is accepted, for anything else.

    >>> whole("1e3", "m", 1, 8192), whole(" 128.0", "m", 1, 8192)
    (1000, 128)
    >>> whole("1.5", "m", 1, 8192)
    Traceback (most recent call last):
        ...
    ValueError: m: “1.5” is not a whole number; type one from 1 to 8192, such as 1000 or 1e3
    """
    accepted = f"type one from {least} to {most}, such as {min(1000, most)}"
    accepted += " or 1e3" if most >= 1000 else ""
    try:
        number = Decimal(text.strip())
    except InvalidOperation:
        number = Decimal("nan")
    if not number.is_finite() or number != number.to_integral_value():
        raise ValueError(f"{name}: {_quoted(text)} is not a whole number{_comma(text)}; {accepted}")
    if not least <= number <= most:
        size = "small" if number < least else "large"
        raise ValueError(f"{name}: {_quoted(text)} is too {size}; {accepted}")
    return int(number)


def real(text: str, name: str) -> float:
    """The float64 nearest to what `text` says, which may be infinite or no number.

    Raises ValueError for what is no number, and for finite numbers beyond float64 or below it.

    >>> real("0.1", "x"), real("-inf", "x"), real("0x1.8p3", "x")
    (0.1, -inf, 12.0)
    """
    plain = text.strip()
    try:
        value = float.fromhex(plain) if _HEX.match(plain) else float(plain)
    except OverflowError:
        value = math.inf
    except ValueError:
        raise ValueError(
            f"{name}: {_quoted(text)} is not a number{_comma(text)}; type one such as 0.1, 1e-40, "
            "0x1.8p3, inf or nan"
        ) from None
    if math.isinf(value) and "inf" not in plain.lower():
        raise ValueError(
            f"{name}: {_quoted(text)} lies beyond float64, whose largest number is "
            f"{sys.float_info.max!r}; type inf for infinity"
        )
    if value == 0 and re.search("[1-9a-f]", re.split("[ep]", _HEX.sub("", plain).lower())[0]):
        raise ValueError(
            f"{name}: {_quoted(text)} lies below float64, whose smallest number above 0 is "
            f"{math.ulp(0.0)!r}; type 0 for zero"
        )
    return value


def _quoted(text: str) -> str:
    return f"“{text[:QUOTED]}…”" if len(text) > QUOTED else f"“{text}”"


def _comma(text: str) -> str:
    return " (the decimal point is a point, and digits are not grouped)" if "," in text else ""
