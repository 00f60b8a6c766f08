"""Numbers of a document beside those of the model: where they stand, and how they are printed."""

from collections.abc import Callable
from decimal import ROUND_FLOOR, ROUND_HALF_UP, Decimal
from typing import NamedTuple

import pytest


class Number(NamedTuple):
    """`printed` stands at `place` of a document; `value()` is what the model says."""

    place: str
    printed: str
    value: Callable[[], float]


def agrees(value: float, printed: str) -> bool:
    """Whether `value` gives `printed` when it is rounded, or cut, to as many digits."""
    exact, number = Decimal(float(value)), Decimal(printed)
    return number in (exact.quantize(number, way) for way in (ROUND_HALF_UP, ROUND_FLOOR))


def each(numbers: list[Number]) -> pytest.MarkDecorator:
    """A test of (value, printed), once for each of the numbers."""
    return pytest.mark.parametrize(
        ("value", "printed"),
        [(n.value, n.printed) for n in numbers],
        ids=[f"{n.place}: {n.printed}" for n in numbers],
    )
