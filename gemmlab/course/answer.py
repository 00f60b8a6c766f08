"""The answer to a question that a chapter asks, and what wrong answers overlook."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Answer:
    """A number, why it is that number, and the numbers that likely mistakes give.

    number : the right one, in the unit that the chapter asks for
    because : one to three sentences of Markdown that derive it
    mistakes : wrong number -> what whoever says it has overlooked ("You counted lanes; …")
    within : relative distance up to which a guess is right: 0 for what can be counted
    """

    number: float
    because: str
    mistakes: Mapping[float, str] = field(default_factory=dict)
    within: float = 0.0

    def near(self, guess: float, number: float) -> bool:
        """Whether a guess is as close to `number` as the answer asks for, but for rounding."""
        return abs(guess - number) <= max(self.within, 1e-9) * abs(number)
