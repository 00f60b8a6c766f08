"""A syllabus: what fits into so many hours or weeks, what is for home, and what to skip.

Later sections build on earlier ones, so that what does not fit is left out from the end. A chapter
of which less than half would fit is left out whole.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from gemmlab.course.teaching.chapter import CELLS, WORDS, Chapter, Part

HOURS = (2, 4, 8)
WEEKS = 10
LESSON = 90  # minutes of a week in class, and as many at home
LEAST = 0.5  # of a chapter, or it is left out


@dataclass(frozen=True)
class Fit:
    """What of some parts is done in class, what at home, and what is skipped."""

    in_class: tuple[Part, ...]
    at_home: tuple[Part, ...] = ()
    skip: tuple[Part, ...] = ()

    @property
    def minutes(self) -> int:
        return sum(part.minutes for part in self.in_class)


def fit(parts: Sequence[Part], minutes: float) -> Fit:
    """Choose what of a chapter's parts to do in so many minutes.

    As many sections as fit, from the first on, with time for the first exercise where its section
    is among them; then further exercises, as long as they fit. Other exercises of these sections
    are for home; further sections are skipped, with theirs.
    """
    exercises = [part for part in parts if part.exercise]
    for reserved in (exercises[:1], []):
        left = minutes - sum(part.minutes for part in reserved)
        chosen = _first([part for part in parts if not part.exercise], left)
        there = {part.section for part in chosen}
        if {part.section for part in reserved} <= there:
            break
    left -= sum(part.minutes for part in chosen)
    chosen += reserved
    for part in exercises[len(reserved) :]:
        if part.section in there and part.minutes <= left:
            chosen.append(part)
            left -= part.minutes
    home = [part for part in exercises if part.section in there and part not in chosen]
    return _sorted(parts, chosen, home)


def _first(parts: Sequence[Part], minutes: float) -> list[Part]:
    """The parts from the first on that fit."""
    chosen: list[Part] = []
    for part in parts:
        minutes -= part.minutes
        if minutes < 0:
            break
        chosen.append(part)
    return chosen


def _sorted(parts: Sequence[Part], chosen: Sequence[Part], home: Sequence[Part]) -> Fit:
    rest = (part for part in parts if part not in chosen and part not in home)
    there = ([part for part in parts if part in some] for some in (chosen, home))
    return Fit(*map(tuple, there), tuple(rest))


def in_hours(chapters: Sequence[Chapter], hours: int) -> dict[Chapter, Fit]:
    """What of each chapter to do in so many hours; chapters that are left out are not among them.

    Chapters share the time in proportion to their own minutes.
    """
    kept = list(chapters)
    while len(kept) > 1 and LEAST * sum(one.minutes for one in kept) > 60 * hours:
        kept.pop()
    share = min(1.0, 60 * hours / sum(one.minutes for one in kept))
    return {one: fit(one.parts, share * one.minutes) for one in kept}


def in_weeks(chapters: Sequence[Chapter], weeks: int) -> list[list[tuple[Chapter, Fit]]]:
    """What to do of which chapter in each week.

    Every week has about as many minutes; a section stays with its exercises.
    """
    total = sum(one.minutes for one in chapters)
    plan: list[list[tuple[Chapter, Part]]] = [[] for _ in range(weeks)]
    before = 0
    for one in chapters:
        for at in sorted({part.section for part in one.parts}):
            parts = [part for part in one.parts if part.section == at]
            minutes = sum(part.minutes for part in parts)
            plan[int(weeks * (before + minutes / 2) / total)] += [(one, part) for part in parts]
            before += minutes
    return [_week(parts) for parts in plan]


def _week(parts: Sequence[tuple[Chapter, Part]]) -> list[tuple[Chapter, Fit]]:
    """One week's parts, by chapter: sections in class, and exercises where time is left.

    Further exercises are for home, as many as fit there; what exceeds both is skipped.
    """
    own = {one: [p for other, p in parts if other is one] for one, _ in parts}
    sections = _first([part for _, part in parts if not part.exercise], LESSON)
    there = {(one.number, part.section) for one, part in parts if part in sections}
    exercises = [p for one, p in parts if p.exercise and (one.number, p.section) in there]
    lesson = _first(exercises, LESSON - sum(part.minutes for part in sections))
    home = _first(exercises[len(lesson) :], LESSON)
    return [(one, _sorted(some, [*sections, *lesson], home)) for one, some in own.items()]


def told(chapters: Sequence[Chapter], hours: Sequence[int], weeks: int | None) -> str:
    """The syllabus in Markdown: a plan for each number of hours, and one for the weeks."""
    total = sum(one.minutes for one in chapters)
    names = ", ".join(one.number for one in chapters)
    lines = [
        "# Syllabus",
        "",
        f"Chapters {names} take {total} minutes by themselves: that is what their notebooks say. "
        f"Of a chapter, a section gets the time to read it ({WORDS} words a minute) and to run its "
        f"cells ({CELLS} a minute), and its exercises share the rest. Numbers in brackets are "
        "minutes.",
    ]
    for count in hours:
        lines += ["", f"## {count} hours", ""]
        plan = in_hours(chapters, count)
        for chapter, chosen in plan.items():
            lines += _lines(chapter, chosen)
        if out := [f"{one.number} · {one.title}" for one in chapters if one not in plan]:
            lines += [f"Skip whole chapters: {', '.join(out)}.", ""]
        if (left := 60 * count - sum(chosen.minutes for chosen in plan.values())) > 0:
            lines.append(f"Left for questions: {left} minutes.")
    if weeks:
        lines += ["", f"## {weeks} weeks", ""]
        lines += [f"A lesson has {LESSON} minutes; at most as many are for home."]
        for number, week in enumerate(in_weeks(chapters, weeks), 1):
            lines += ["", f"### Week {number}", ""]
            for chapter, chosen in week:
                lines += _lines(chapter, chosen)
            if not week:
                lines.append("Nothing new: questions, and what is left over.")
    return "\n".join(lines).replace("\n\n\n", "\n\n").rstrip() + "\n"


def _lines(chapter: Chapter, chosen: Fit) -> list[str]:
    rows = {"In class": chosen.in_class, "At home": chosen.at_home, "Skip": chosen.skip}
    return [
        f"**{chapter.number} · {chapter.title}**, {chosen.minutes} minutes in class",
        "",
        *(
            f"- {label}: " + "; ".join(f"{_name(part)} ({part.minutes})" for part in parts)
            for label, parts in rows.items()
            if parts
        ),
        "",
    ]


def _name(part: Part) -> str:
    """A part as a plan names it: "exercise 04.1", or "2 · One tile" for a section "2. One tile"."""
    return f"exercise {part.exercise}" if part.exercise else part.title.replace(". ", " · ", 1)
