"""Predictions of the reader: `guess` keeps a number, `reveal` compares it with the answer.

>>> from gemmlab import guess
>>> rows = guess("03.rows", unit="rows")
>>> rows(16)
Kept: **16 rows**.
>>> print(rows.reveal().split(".")[0])
You said 16 rows; it is **2 rows**

A chapter's answers are functions of the module `guesses` in its folder, so that no notebook spells
them out; "03.rows" is the function `rows` of chapter 03.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from gemmlab.arguments import finite_number
from gemmlab.course import chapters, guesses_of, progress
from gemmlab.course.text import Markdown


@dataclass(frozen=True)
class Answer:
    """A number, why it is that number, and the numbers that likely mistakes give.

    number : the right one, in the unit that the chapter asks for
    because : one to three sentences of Markdown that derive it
    mistakes : wrong number -> what whoever says it has overlooked ("You counted lanes; …")
    within : relative distance up to which a guess is right: 0 for what can be counted
    exponent : whether the number is an exponent, whose distances are differences
    """

    number: float
    because: str
    mistakes: Mapping[float, str] = field(default_factory=dict)
    within: float = 0.0
    exponent: bool = False

    def near(self, guess: float, number: float) -> bool:
        """Whether a guess is as close to `number` as the answer asks for, or is it, rounded."""
        close = abs(guess - number) <= max(self.within, 1e-9) * abs(number)
        return close or _rounds_to(number, guess)


def _rounds_to(number: float, guess: float) -> bool:
    """Whether a guess is `number` rounded to as many digits as it has, which are two or more.

    Whole numbers do not say to how many digits they were rounded.

    >>> _rounds_to(143 / 132, 1.083), _rounds_to(2.333, 2.3), _rounds_to(8.33, 8)
    (True, True, False)
    """
    if guess == int(guess):
        return False
    decimals = len(f"{guess:.10f}".rstrip("0").partition(".")[2])
    digits = len(f"{abs(guess):.{decimals}f}".replace(".", "").lstrip("0"))
    return digits >= 2 and abs(guess - number) <= 0.5000001 * 10.0**-decimals


# Units in which an answer may lie below zero; nothing else that is asked for can.
_SIGNED = ("for e", "gaps", "% faster", "% more time")
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
        kept = "" if self.number is None else f" Still kept: {self._with_unit(self.number)}."
        try:
            given = finite_number(self.key, number)
        except (TypeError, ValueError):
            return Markdown(f"`{number!r:.60}` is no number; use one, such as 8 or 0.5.{kept}")
        if given < 0 and self.unit and self.unit not in _SIGNED:
            return Markdown(f"`{number!r:.60}` is below 0, as no answer is; use 0 or more.{kept}")
        self.number = given
        return Markdown(f"Kept: **{self._with_unit(self.number)}**.")

    def reveal(self) -> Markdown:
        """The answer beside the guess; without a guess it is folded."""
        if self.number is None:
            answer = self._answer()
            return Markdown(
                "**No guess yet.** Put a number in place of `...` above and run both cells.\n\n"
                "<details><summary>The answer</summary>\n\n"
                f"**{self._with_unit(answer.number)}.** {answer.because}\n\n</details>"
            )
        right, told = self.told()
        progress.keep("guess", self.key, right)
        return Markdown(told)

    def told(self) -> tuple[bool, str]:
        """Whether the number that was given is right, and what is said of it."""
        answer = self._answer()
        right = self._with_unit(answer.number)
        if answer.near(self.number, answer.number):
            yours = "Yours is right." if not answer.within else f"You said {self._said()}: right."
            return True, f"**{right}.** {yours} {answer.because}"
        overlooked = [
            text for wrong, text in answer.mistakes.items() if answer.near(self.number, wrong)
        ]
        verdict = overlooked[0] if overlooked else _distance(self.number, answer, self.unit)
        return False, f"You said {self._said()}; it is **{right}**. {verdict} {answer.because}"

    def _said(self) -> str:
        return self._with_unit(self.number)

    def _with_unit(self, number: float) -> str:
        unit = _ONE.sub(r"\1", self.unit) if number == 1 else self.unit
        return f"{_shown(number)} {unit}".rstrip()


def _shown(number: float) -> str:
    """Whole numbers as they are, others with three digits, or as many as tell them from whole."""
    if number == int(number) and abs(number) < 1e15:
        return f"{int(number):,}"
    digits = f"{number:.3g}"
    if "e" not in digits and float(digits) == int(float(digits)) and abs(number) < 100:
        digits = f"{number:.6g}"
    return digits if "e" not in digits else f"{number:,.0f}" if abs(number) < 1e6 else digits


def _distance(guess: float, answer: Answer, unit: str) -> str:
    """How far a guess is from the answer and in which direction, in words."""
    number = answer.number
    more = "much" if guess > number else "little"
    if answer.exponent:
        return f"That is {_shown(abs(guess - number))} too {more}, in the exponent."
    if unit.startswith("%"):
        for reading, text in (
            (100 * guess, "That is a share of 1; the question asks for per cent."),
            (guess and 1e4 / guess, "That is upside down."),
        ):
            if reading and answer.near(reading, number):
                return text
        return f"That is {_shown(float(f'{abs(guess - number):.2g}'))} points too {more}."
    if number == 0 or guess == 0:
        return f"That is too {more}."
    if answer.near(1 / guess, number):
        return "That is upside down."
    factor = max(guess / number, number / guess)
    if factor <= 1.1:
        return f"That is a little too {more}, by {100 * abs(guess / number - 1):.1g} %."
    return f"That is too {more}, by a factor of {_shown(float(f'{factor:.2g}'))}."


__all__ = ["Answer", "Guess", "guess", "keys"]


def guess(key: str, unit: str) -> Guess:
    """The reader's guess at the question `key`, with no number yet, in `unit`.

    Raises ValueError for a key that no chapter has; `keys` lists the known ones.
    """
    chapter, _, name = str(key).partition(".")
    if chapter not in chapters() or name not in _answers(chapter):
        raise ValueError(f"unknown question {key!r}; use one of {', '.join(keys())}")
    return Guess(key, unit, _answers(chapter)[name])


def keys() -> list[str]:
    """The keys that `guess` accepts, in the order of the chapters."""
    return [f"{chapter}.{name}" for chapter in chapters() for name in _answers(chapter)]


def _answers(chapter: str) -> dict[str, Callable[[], Answer]]:
    """Name -> answer: the public functions that the chapter's module defines."""
    module = guesses_of(chapter)
    return {
        name: value
        for name, value in vars(module).items()
        if not name.startswith("_") and getattr(value, "__module__", "") == module.__name__
    }
