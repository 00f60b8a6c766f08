"""The map of the course: each chapter's one idea, what it needs, and how far a learner is.

What the map says of a chapter stands in its notebook, as the metadata ``gemmlab``: `idea`, `needs`
(the chapters that it says it needs) and `track`, the column of its station. Lines are drawn for
needs that no other need brings along: `lines` has them row by row, for any height of a row.
"""

import ast
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from html import escape
from pathlib import Path

from gemmlab.course import chapters, exercise_modules, progress
from gemmlab.course.teaching.chapter import folder

STYLE = Path(__file__).with_suffix(".css")
# What the tracks stand for: a colour, and the words beside it.
LINES = {
    "kernels": "kernels of your own",
    "units": "Tensor Cores and their numbers",
    "networks": "what a network asks for",
}
TRACKS = ("networks", "kernels", "kernels", "units", "units")
HOURS, DAY = "01", "06"  # where a way of two hours ends, and one of a day


@dataclass(frozen=True)
class Station:
    """A chapter on the map.

    needs : numbers of chapters; track : its column; minutes : as its notebook tells
    """

    number: str
    name: str
    path: Path
    idea: str
    question: str
    footer: str
    needs: tuple[str, ...]
    track: int

    @property
    def title(self) -> str:
        """The name behind the number, as links have it: "4 · Shared-memory tiling"."""
        return f"{int(self.number)} · {self.name}" if int(self.number) else self.name

    @property
    def minutes(self) -> int:
        return int(self.footer.split()[0])

    @property
    def told(self) -> str:
        """What it needs, in words; empty where that is nothing."""
        return f"Needs {spoken(self.needs)}." if self.needs else ""


def spoken(numbers: Sequence[str]) -> str:
    """Numbers of chapters in words: "2, 4 and 10"."""
    *most, last = [str(int(number)) for number in numbers]
    return f"{', '.join(most)} and {last}" if most else last


@cache
def notebooks() -> tuple[Station, ...]:
    """All notebooks, in their order, with what each says of itself."""
    found = []
    for path in sorted(folder().glob("*.ipynb")):
        said = json.loads(path.read_text("utf-8"))["metadata"]["gemmlab"]
        name = said.get("card", said["title"])
        texts = (said[key] for key in ("idea", "question", "footer"))
        needs = tuple(said["needs"])
        found.append(Station(path.name[:2], name, path, *texts, needs, said["track"]))
    return tuple(found)


def stations() -> tuple[Station, ...]:
    """The chapters, in their order."""
    every = notebooks()
    return tuple(s for i, s in enumerate(every) if s.number not in {o.number for o in every[:i]})


def appendices(station: Station) -> tuple[Station, ...]:
    """The notebooks that belong to a chapter beside its own."""
    return tuple(s for s in notebooks() if s.number == station.number and s.path != station.path)


def way(goal: str) -> tuple[Station, ...]:
    """The chapters that lead to this one, and it: all that it needs, and the start."""
    by_number, wanted, found = {s.number: s for s in stations()}, [goal], {"00"}
    while wanted:
        number = wanted.pop()
        found.add(number)
        wanted += by_number[number].needs
    return tuple(s for s in stations() if s.number in found)


def ways() -> dict[str, str]:
    """Ways through the course: a name, and what lies on it, in words."""
    every = stations()
    return {
        "Two hours": f"chapters {spoken([s.number for s in way(HOURS)])}.",
        "One day": f"chapters {spoken([s.number for s in way(DAY)])}, which have a dot: you climb "
        "to the speed of NVIDIA's library.",
        "All of it": f"{round(sum(s.minutes for s in every) / 60)} hours.",
    }


# ------------------------------------------------------------------------------------ the lines


def edges() -> Iterator[tuple[int, int]]:
    """The needs that are drawn, as places of two stations: those that no other one brings along."""
    every = stations()
    place = {s.number: i for i, s in enumerate(every)}
    for station in every[1:]:
        needs = station.needs or (every[0].number,)
        further = {s.number for need in needs for s in way(need) if s.number != need}
        for need in needs:
            if need not in further:
                yield place[need], place[station.number]


def bends(first: int, last: int) -> int:
    """The row behind which a line goes from one track to the other.

    A line to the right goes over at once, one to the left at its end, unless a station is in the
    way there.
    """
    tracks = [s.track for s in stations()]
    own, other = tracks[first], tracks[last]
    free = [
        row
        for row in range(first, last)
        if own not in tracks[first + 1 : row + 1] and other not in tracks[row + 1 : last]
    ]
    if not free:
        raise ValueError(f"no line leads from chapter {first} to {last}: move one of the tracks")
    return free[0] if other > own else free[-1]


@cache
def lines(row: int) -> tuple[tuple[int, int, str], ...]:
    """What is drawn between a station and the next one: track above, track below, and colour."""
    tracks, found = [s.track for s in stations()], {}
    for first, last in edges():
        if first <= row < last:
            bend = bends(first, last)
            ends = tuple(tracks[first if at <= bend else last] for at in (row, row + 1))
            found[ends] = TRACKS[tracks[last if bend == first else first]]
    return tuple((above, below, colour) for (above, below), colour in sorted(found.items()))


def drawing(row: int, share: float = 0.0) -> str:
    """The lines below a station as SVG of any height, and the station, with its share in a ring."""
    station = stations()[row]
    paths = "".join(
        f'<path class="{colour}" d="M{a}.5 0{"V" if a == b else f"C{a}.5 55 {b}.5 45 {b}.5 "}100"/>'
        for a, b, colour in lines(row)
    )
    dot = '<circle class="dot" cx="10" cy="10" r="2.6"/>' if station in way(DAY) else ""
    number, tasks = station.number, tasks_of(station.number)
    full = " full" if share >= 1 else ""
    return (
        f'<svg class="lines" viewBox="0 0 {len(TRACKS)} 100" preserveAspectRatio="none" '
        f'aria-hidden="true">{paths}</svg>'
        f'<svg class="stop {TRACKS[station.track]}{full}" style="--track: {station.track}" '
        f'viewBox="0 0 20 20" data-chapter="{number}" data-tasks="{tasks}" aria-hidden="true">'
        f'<circle class="ring" cx="10" cy="10" r="7"/><circle class="share" cx="10" cy="10" r="7" '
        f'pathLength="100" stroke-dasharray="{100 * share:.0f} 100"/>{dot}</svg>'
    )


# ----------------------------------------------------------------------------- a learner's own


def asked(number: str) -> int:
    """How many guesses a chapter asks for."""
    text = (Path(__file__).parent / chapters()[number] / "guesses.py").read_text("utf-8")
    made = (node for node in ast.parse(text).body if isinstance(node, ast.FunctionDef))
    return sum(not node.name.startswith("_") for node in made)


def tasks_of(number: str) -> int:
    """How many exercises and guesses a chapter has."""
    return asked(number) + sum(name[:2] == number for name in exercise_modules())


@dataclass(frozen=True)
class Done:
    """What a learner has done of a chapter: exercises passed and guesses made, of how many."""

    passed: int
    exercises: int
    guessed: int
    guesses: int

    @property
    def share(self) -> float:
        whole = self.exercises + self.guesses
        return min(1.0, (self.passed + self.guessed) / whole) if whole else 0.0

    def __str__(self) -> str:
        counts = {
            "exercises": (self.passed, self.exercises),
            "guesses": (self.guessed, self.guesses),
        }
        begun = any(some for some, _ in counts.values())
        one = {"exercises": "exercise", "guesses": "guess"}
        return ", ".join(
            f"{f'{some} of ' if begun else ''}{every} {one[name] if every == 1 else name}"
            for name, (some, every) in counts.items()
            if every
        )


def done() -> dict[str, Done]:
    """What the learner has done of each chapter."""
    kept = progress.events()
    passed, guessed = (progress.done(kept, kind) for kind in ("exercise", "guess"))
    return {
        number: Done(
            sum(name in passed for name in exercise_modules() if name[:2] == number),
            sum(name[:2] == number for name in exercise_modules()),
            sum(key[:2] == number for key in guessed),
            asked(number),
        )
        for number in chapters()
    }


class Map:
    """The map, coloured by what the learner has done."""

    def __init__(self) -> None:
        self.done = done()

    def __repr__(self) -> str:
        rows = [
            f"{s.title:<34} {s.told:<26} {s.minutes:>4} min  {self.done[s.number]}"
            for s in stations()
        ]
        return "\n".join([*rows, *(f"{name}: {what}" for name, what in ways().items())])

    def _repr_html_(self) -> str:
        rows = "".join(self._row(i, s) for i, s in enumerate(stations()))
        legend = "".join(f'<span class="{name}">{words}</span>' for name, words in LINES.items())
        told = " ".join(f"<strong>{name}:</strong> {what}" for name, what in ways().items())
        return (
            f"<style>{STYLE.read_text('utf-8')}</style>"
            f'<nav class="gemmlab-map" aria-label="The map of the course"><p>'
            f"{legend}</p><ol>{rows}</ol><p>{told}</p></nav>"
        )

    def _row(self, row: int, station: Station) -> str:
        mine = self.done[station.number]
        links = [
            (station.path, station.title),
            *((s.path, "appendix") for s in appendices(station)),
        ]
        told = ", ".join(f'<a href="{path.name}">{escape(name)}</a>' for path, name in links)
        return (
            f"<li>{drawing(row, mine.share)}<div><p>{told}</p><p>{mine}</p></div><div><p><em>"
            f"{escape(station.idea)}</em></p><p>{station.minutes} minutes. {station.told}</p></div>"
            "</li>"
        )


def course_map() -> Map:
    """The map of the course, with what is kept of yours beside this notebook."""
    return Map()
