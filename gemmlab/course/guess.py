"""A reader's guess: kept first, compared later, and answered by its distance."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from gemmlab.arguments import finite_number
from gemmlab.course.answer import Answer
from gemmlab.markdown import Markdown

# Relative distances, from near to far, and what they say about the reader's model.
_DISTANCES = (
    (1.1, "That is within 10 %."),
    (2.0, "That is within a factor of 2."),
    (10.0, "That is within a factor of 10."),
)

# The plural s of a unit's first word; "times as fast" has none.
_ONE = re.compile(r"^(?!times)(\w+)s\b")


class Guess:
    """One question of a chapter: call it with a number, then `reveal` the answer."""

    def __init__(self, key: str, unit: str, answer: Callable[[], Answer]) -> None:
        self.key = key
        self.unit = unit
        self.number: float | None = None
        self._answer = answer

    def __repr__(self) -> str:
        said = "no number yet" if self.number is None else self._with_unit(self.number)
        return f"<guess {self.key}: {said}>"

    def __call__(self, number: Any) -> Markdown:
        """Keep `number`; `...` stands for no guess. Anything else is refused, never raised."""
        if number is Ellipsis:
            self.number = None
            return Markdown("No guess yet: put a number in place of `...`.")
        try:
            self.number = finite_number(self.key, number)
        except (TypeError, ValueError):
            kept = "" if self.number is None else f" Still kept: {self._with_unit(self.number)}."
            return Markdown(f"`{number!r:.60}` is no number; use one, such as 8 or 0.5.{kept}")
        return Markdown(f"Kept: **{self._with_unit(self.number)}**.")

    def reveal(self) -> Markdown:
        """The answer beside the guess; without a guess it is folded."""
        answer = self._answer()
        right = self._with_unit(answer.number)
        if self.number is None:
            return Markdown(
                "**No guess yet.** Put a number in place of `...` above and run both cells.\n\n"
                f"<details><summary>The answer</summary>\n\n**{right}.** {answer.because}\n\n"
                "</details>"
            )
        if answer.near(self.number, answer.number):
            yours = "Yours is right." if not answer.within else f"You said {self._said()}: right."
            return Markdown(f"**{right}.** {yours} {answer.because}")
        overlooked = [
            text for wrong, text in answer.mistakes.items() if answer.near(self.number, wrong)
        ]
        verdict = overlooked[0] if overlooked else _distance(self.number, answer.number)
        return Markdown(f"You said {self._said()}; it is **{right}**. {verdict} {answer.because}")

    def _said(self) -> str:
        return self._with_unit(self.number)

    def _with_unit(self, number: float) -> str:
        unit = _ONE.sub(r"\1", self.unit) if number == 1 else self.unit
        return f"{_shown(number)} {unit}"


def _shown(number: float) -> str:
    """Whole numbers as they are, others with three digits."""
    if number == int(number) and abs(number) < 1e15:
        return f"{int(number):,}"
    digits = f"{number:.3g}"
    return digits if "e" not in digits else f"{number:,.0f}" if abs(number) < 1e6 else digits


def _distance(guess: float, number: float) -> str:
    """How far a guess is from the answer, in words."""
    if number == 0 or guess == 0 or (guess < 0) != (number < 0):
        return ""
    factor = max(guess / number, number / guess)
    for limit, text in _DISTANCES:
        if factor <= limit:
            return text
    return f"That is {_shown(factor)} times too {'much' if abs(guess) > abs(number) else 'little'}."
