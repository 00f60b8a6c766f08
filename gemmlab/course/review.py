"""Reviews: three questions that mix a chapter with earlier ones, drawn by what was missed.

>>> three = review("03")
>>> "is no number" in three.answer("many", ..., ...)
True

A chapter's questions are functions of the module `review` in its folder, which `mixes` says more
of. Each draws its values from a generator, and the library's models compute its answer and what
likely mistakes give, so that no question can be known by heart and no notebook spells one out.
"""

import secrets
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from itertools import combinations
from random import Random
from typing import Any

from gemmlab.arguments import whole_number
from gemmlab.course import chapters, progress
from gemmlab.course.guesses import Answer, Guess
from gemmlab.course.progress import Event
from gemmlab.course.text import Markdown

COUNT = 3  # questions of a review
LEAST, TRIES = 3, 200  # likely mistakes that a question tells apart, and draws until it does
DAYS = (1, 3, 7, 21)  # until a question comes back that was right once, twice, …
REST = 0.02  # weight of a question that is not due
OWN, MISSED = 3, 4  # times as likely: of the chapter itself; missed when it was asked last


@dataclass(frozen=True)
class Question:
    """A question with drawn values.

    text : Markdown that quotes every number that the answer needs; unit : of the answer, if any
    """

    text: str
    answer: Answer
    unit: str = ""


Maker = Callable[[Random], Question]


def mixes(*earlier: str, read: str) -> Callable[[Maker], Maker]:
    """Say of a question which earlier chapters it uses, and where to read: "6.2 4.7"."""

    def said(make: Maker) -> Maker:
        make.earlier, make.read = earlier, read
        return make

    return said


def asked(make: Maker, seed: str) -> Question:
    """A question whose values tell likely mistakes from the right answer, and from each other."""
    for i in range(TRIES):
        question = make(Random(f"{seed}/{i}"))
        answer = question.answer
        told = [answer.number, *answer.mistakes]
        apart = not any(answer.near(b, a) or answer.near(a, b) for a, b in combinations(told, 2))
        if apart and len(answer.mistakes) >= LEAST:
            return question
    raise ValueError(f"{make.__name__} has no values with {LEAST} mistakes apart; draw others")


@cache
def deck(chapter: str) -> dict[str, Maker]:
    """The questions of a chapter: key, such as "04.sectors" -> what draws it."""
    name = f"gemmlab.course.{chapters()[chapter]}.review"
    if find_spec(name) is None:
        return {}
    found = vars(import_module(name)).items()
    return {f"{chapter}.{key}": make for key, make in found if hasattr(make, "earlier")}


def until(chapter: str) -> dict[str, Maker]:
    """The questions of a chapter and of all before it."""
    return {key: make for c in chapters() if c <= chapter for key, make in deck(c).items()}


# ----------------------------------------------------------------------------------- what is drawn


def missed(kept: Iterable[Event]) -> Counter[str]:
    """How often a learner missed something of each chapter: 1 a guess, 2 an exercise or a review.

    The first guess counts, and for the others the last word.
    """
    first, last, found = {}, {}, Counter()
    for event in kept:
        first.setdefault((event.kind, event.key), event)
        last[event.kind, event.key] = event
    for event in first.values():
        found[event.chapter] += event.kind == "guess" and not event.right
    for event in last.values():
        wrong = event.kind in ("exercise", "review") and not event.right
        for chapter in {event.chapter, *event.more.get("earlier", ())} if wrong else ():
            found[chapter] += 2
    return found


def weights(
    keys: Iterable[str], chapter: str, kept: Sequence[Event], now: float
) -> dict[str, float]:
    """How likely each question is to be drawn for a chapter, at a moment."""
    gaps, asked, found = missed(kept), until(chapter), {}
    for key in keys:
        weight = 1.0 + sum(gaps[c] for c in (key[:2], *asked[key].earlier))
        weight *= OWN if key[:2] == chapter else 1
        answers = [e for e in kept if _is_answer(e, key)]
        streak = next((i for i, e in enumerate(reversed(answers)) if not e.right), len(answers))
        if streak:
            due = answers[-1].when + 86_400 * DAYS[min(streak, len(DAYS)) - 1]
            weight *= REST if now < due else 1
        elif answers:
            weight *= MISSED
        found[key] = weight
    return found


def drawn(chapter: str, kept: Sequence[Event], seed: int, now: float) -> list[str]:
    """The questions of a review: one of the chapter itself, if it has any, and others as likely."""
    draw, chosen = Random(seed), []
    likely = weights(until(chapter), chapter, kept, now)
    while len(chosen) < COUNT and likely:
        own = [key for key in likely if key[:2] == chapter] if not chosen else []
        keys = own or list(likely)
        chosen += draw.choices(keys, [likely[key] for key in keys])
        del likely[chosen[-1]]
    return chosen


def _is_answer(event: Event, key: str) -> bool:
    return event.kind == "review" and event.key == key


# -------------------------------------------------------------------------------------- the review


class Review:
    """Three questions to a reader: `answer` takes one each, and says what is right."""

    def __init__(self, chapter: str, number: int, keys: Sequence[str], seed: int) -> None:
        self.chapter, self.number, self.seed = chapter, number, seed
        self.made = {key: until(chapter)[key] for key in keys}
        self.asked = {key: asked(make, f"{seed}/{key}") for key, make in self.made.items()}

    @property
    def name(self) -> str:
        """What its answers are kept under."""
        return f"{self.chapter}/{self.number}"

    def __repr__(self) -> str:
        return str(self._told(()))

    def _repr_markdown_(self) -> str:
        return str(self)

    def answer(self, *given: Any) -> Markdown:
        """Judge an answer to each question; `...` stands for none yet, and shows nothing.

        Of several answers to one question the first is kept for the next reviews.
        """
        if len(given) > len(self.asked):
            told = f"{len(given)} answers; the review has {len(self.asked)} questions."
            return Markdown(f"{told}\n\n{self}")
        return self._told(given)

    def _told(self, given: Sequence[Any]) -> Markdown:
        given = [*given, *[...] * (len(self.asked) - len(given))]
        parts = []
        for place, (key, said) in enumerate(zip(self.asked, given, strict=True), 1):
            question = self.asked[key]
            unit = f" ({question.unit})" if question.unit else ""
            parts.append(f"**{place}.** {question.text}{unit}")
            if said is not ...:
                parts.append(f"> {self._judged(key, question, said)}")
        if any(said is ... for said in given):
            parts.append("*Put your answers in place of the dots, and run the cell again.*")
        else:
            more = f'`exercises.review("{self.chapter}", {self.number + 1})`'
            parts.append(f"*Three others, chosen by what you missed:* {more}")
        return Markdown("\n\n".join(parts))

    def _judged(self, key: str, question: Question, said: Any) -> str:
        guess = Guess(key, question.unit, lambda: question.answer)
        refused = guess(said)
        if guess.number is None:
            return refused
        right, told = guess.told()
        if not any(
            _is_answer(e, key) and e.more.get("deck") == self.name for e in progress.events()
        ):
            _keep_dealt(self)
            earlier = list(self.made[key].earlier)
            progress.keep("review", key, right, deck=self.name, earlier=earlier)
        return f"{told} *Read again: {spoken(self.made[key].read)}.*"


def spoken(read: str) -> str:
    """Where to read, in words.

    >>> spoken("6.2 4.7")
    'chapter 6, section 2, and chapter 4, section 7'
    """
    places = (place.split(".") for place in read.split())
    *most, last = (f"chapter {chapter}, section {section}" for chapter, section in places)
    return f"{', '.join(most)}, and {last}" if most else last


# ----------------------------------------------------------------------------- which review it is

_DEALT: dict[str, Review] = {}  # of this process


def review(chapter: str = "", number: int = 1) -> Review:
    """Three questions after a chapter, each of which mixes it, or an earlier one, with others.

    chapter : its number; without one it is the chapter that you worked on last
    number : 1 for the first three, 2 for the next. The same number gives the same questions, for as
        long as you like; which they are follows from what you missed until it was dealt
    Raises ValueError for an unknown chapter, and for one that has nothing to ask yet.
    """
    whole_number("number", number)
    chapter = chapter or _worked_on_last()
    if chapter not in chapters() or not until(chapter):
        known = ", ".join(c for c in chapters() if until(c))
        raise ValueError(f"no review of chapter {chapter!r}; use one of {known}")
    name = f"{chapter}/{number}"
    if name not in _DEALT:
        kept = progress.events()
        _DEALT[name] = _as_dealt(chapter, number, kept) or _deal(chapter, number, kept)
    return _DEALT[name]


def _worked_on_last() -> str:
    """The chapter of the last event that has questions, or the first that has."""
    having = [chapter for chapter in chapters() if until(chapter)]
    worked = [event.chapter for event in progress.events() if event.chapter in having]
    return worked[-1] if worked else having[0]


def _as_dealt(chapter: str, number: int, kept: Sequence[Event]) -> Review | None:
    """The review that was dealt before, if its questions are still there."""
    for event in reversed(kept):
        if event.kind == "dealt" and event.key == chapter and event.more.get("number") == number:
            keys, seed = event.more.get("keys"), event.more.get("seed")
            if isinstance(keys, list) and keys and set(keys) <= set(until(chapter)):
                return Review(chapter, number, keys, seed)
    return None


def _deal(chapter: str, number: int, kept: Sequence[Event]) -> Review:
    """A new review. Where nothing is kept yet, each has questions of its own, the same for all."""
    seed = secrets.randbits(32) if kept else number
    found = Review(chapter, number, drawn(chapter, kept, seed, datetime.now(UTC).timestamp()), seed)
    if kept:
        _keep_dealt(found)
    return found


def _keep_dealt(dealt: Review) -> None:
    if _as_dealt(dealt.chapter, dealt.number, progress.events()) is None:
        more = {"number": dealt.number, "keys": list(dealt.asked), "seed": dealt.seed}
        progress.keep("dealt", dealt.chapter, False, **more)
