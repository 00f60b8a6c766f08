"""Checks of numbers from callers: each comes back as its type, or an error quotes it."""

import operator

import numpy as np


def whole_number(name: str, value: object, least: int = 1) -> int:
    """`value` as an int, or an error that quotes it.

    >>> whole_number("m", 0)
    Traceback (most recent call last):
        ...
    ValueError: m=0 is too small; use a whole number of at least 1
    """
    try:
        if isinstance(value, (bool, np.bool_)):
            raise TypeError
        number = operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        message = f"{name}={value!r} is not a whole number; use an int of at least {least}"
        raise TypeError(message) from None
    if number < least:
        raise ValueError(f"{name}={value!r} is too small; use a whole number of at least {least}")
    return number


def finite_number(name: str, value: object) -> float:
    """`value` as a float, or an error that quotes it.

    >>> finite_number("alpha", 1)
    1.0
    """
    try:
        if isinstance(value, (str, bytes, bool, np.bool_, np.complexfloating)):
            raise TypeError
        number = float(value)  # type: ignore[arg-type]
    except OverflowError:  # a whole number beyond the range of floats
        number = np.inf
    except (TypeError, ValueError):
        raise TypeError(f"{name}={value!r} is not a number") from None
    if not np.isfinite(number):
        raise ValueError(f"{name}={value!r} is not finite; use a finite number")
    return number
