"""Points by stages: how far an answer has come, and what a teacher gives for it.

A verdict names what is wrong and in which case. From both follows which stages an answer has
passed (`passed`). A rubric (`Rubric`) weighs them; a teacher edits it as a small TOML file, and
``default.toml`` beside this module is the one that is used without.
"""

import datetime
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gemmlab.course.judging.diagnoses import HAZARDS, STOPPED
from gemmlab.course.judging.exercise import Task
from gemmlab.course.judging.verdict import DRAWN_ANEW, FAILING, Verdict

STAGES = {  # in the order in which an answer passes them
    "contract": "it is a function as asked for, and comes to its end",
    "small": "right in the smallest case",
    "cases": "right in all cases, those drawn for this grade among them",
    "hazards": "no race, no access outside, no barrier that some threads miss",
    "budget": "loads, stores and instructions within the budget",
    "time": "compiled, and not slower than asked",
}
DEFAULT = Path(__file__).with_name("default.toml")
ATTEMPTS = ("best", "last")

TIME = frozenset(("time-over-limit", "work-left-out", "not-compiled"))
# Right results that cost too much, or that come another way than the exercise asks for.
BUDGET = frozenset(
    """
    added-apart bank-conflicts barriers-over-budget blocks-uneven c-again copies-not-used
    copies-over-budget copy-not-coalesced cut-inside-steps elements-loaded few-lanes-copy
    few-threads-copy few-threads-multiply few-threads-work fragments-again inputs-loaded-again
    lanes-in-turns loaded-again loaded-twice loads-conflict loads-over-budget matrices-ignored
    mma-ignored multiplied-twice narrow-copies no-mma not-coalesced padded part-too-long
    part-too-short products-beyond-c products-beyond-k products-by-value ring-not-used
    sectors-above-budget shared-memory-not-used shares-uneven stored-again stored-at-once
    stored-by-elements stored-twice stores-conflict stores-meet sums-in-double sums-in-memory
    sums-shared through-memory tile-size-fixed too-many-barriers too-many-products
    too-many-wavefronts traffic-over-budget added-too-often weights-loaded-again
    """.split()  # noqa: SIM905
)
RACES = (
    frozenset(
        """
    accumulator-not-zeroed barrier-after-reading barrier-before-reading barrier-not-reached
    early-return load-outside no-barrier not-waited store-outside tile-not-filled tile-outside
    two-writers used-at-once
    """.split()  # noqa: SIM905
    )
    | HAZARDS.keys()
)
NOTHING = frozenset(("not-attempted", "not-judged", "borrowed", "tampers", "senseless"))


def stages_of(task: Task) -> tuple[str, ...]:
    """The stages that an exercise has: those of kernels only where it asks for a kernel."""
    own = task.diagnoses.keys()
    has = {"hazards": RACES & own, "budget": BUDGET & own, "time": {"time-over-limit"} & own}
    return tuple(stage for stage in STAGES if has.get(stage, True))


def passed(verdict: Verdict, task: Task, cases: Sequence[Any] = ()) -> tuple[str, ...]:
    """The stages that a verdict says were passed.

    cases : those of the exercise, the smallest first, where they are known
    """
    every = stages_of(task)
    if verdict.passed:
        return every
    stage = failed(verdict)
    if stage == "":
        return ()
    if stage in ("budget", "time"):
        return tuple(s for s in every if list(STAGES).index(s) < list(STAGES).index(stage))
    later = _is_later(verdict, cases)
    right = stage == "hazards" and "index" not in verdict.details  # a race may be without effect
    return ("contract", "small") if later or right else () if stage == "contract" else ("contract",)


def _is_later(verdict: Verdict, cases: Sequence[Any]) -> bool:
    """Whether the case in which an answer fails comes after the smallest.

    A verdict has the case itself, or names it in words that begin with its numbers. Where they are
    others, what has left its result as it was is right nowhere.
    """
    facts = dict(verdict.facts)
    told = facts.get(FAILING, "")
    if DRAWN_ANEW in facts:
        return True
    if not len(cases) or not told or verdict.diagnosis == "constant":
        return False
    if "case" in verdict.details:
        return str(verdict.details["case"]) not in (str(cases[0]), str((cases[0],)))
    named, *own = (re.findall(r"\d+", text) for text in (told, *map(str, cases)))
    alike = [at for at, one in enumerate(own) if len(one) > 1 and _begin_alike(named, one)]
    if alike or told == str(cases[0]):
        return told != str(cases[0]) and alike[0] > 0
    if named and len(own[0]) > 1 and named[0] != own[0][0]:
        return True
    return verdict.diagnosis not in ("not-written", "not-finite")


def _begin_alike(one: list[str], other: list[str]) -> bool:
    """Whether of two lists of numbers each begins as the other does."""
    shared = min(len(one), len(other))
    return shared > 0 and one[:shared] == other[:shared]


def failed(verdict: Verdict) -> str:
    """The first stage that an answer has not passed; empty where it has passed none at all."""
    name = verdict.diagnosis
    if name in NOTHING:
        return ""
    if name in TIME:
        return "time"
    if name in RACES or "kind" in verdict.details:
        return "hazards"
    if name in BUDGET or name.endswith("-over-budget"):
        return "budget"
    if name in STOPPED and name != "known-cases-only":
        return "contract"
    return "small"


class RubricError(ValueError):
    """A rubric says something that it cannot say."""


@dataclass(frozen=True)
class Rubric:
    """What is given for what.

    points : of an exercise, if `exercises` has no other; shares : of each stage in these, those of
        the file that comes along where a file has none
    attempts : which of several counts, "best" or "last"; late : the part of the points that is left
    due : until when an answer is not late; None where only its name says so
    """

    points: float = 1.0
    shares: Mapping[str, float] = field(default_factory=dict)
    exercises: Mapping[str, float] = field(default_factory=dict)
    attempts: str = "best"
    late: float = 1.0
    due: datetime.datetime | None = None

    def most(self, exercise: str) -> float:
        """The points of an exercise that is passed in time."""
        return self.exercises.get(exercise, self.points)

    def given(self, exercise: str, reached: Sequence[str], every: Sequence[str]) -> float:
        """The points for the stages that were reached, of all that the exercise has."""
        whole = sum(self.shares[stage] for stage in every)
        part = sum(self.shares[stage] for stage in every if stage in reached)
        if tuple(reached) == tuple(every):
            return self.most(exercise)
        return self.most(exercise) * part / whole if whole else 0.0


def read(path: Path | None = None) -> Rubric:
    """The rubric in a file; RubricError, with the value and what is accepted, for a wrong one."""
    path = path or DEFAULT
    try:
        given = tomllib.loads(path.read_text("utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise RubricError(f"{path}: no TOML: {error}") from None
    try:
        return _rubric(given)
    except RubricError as error:
        raise RubricError(f"{path}: {error}") from None


KEYS = ("points", "attempts", "late", "due", "stages", "exercises")


def _rubric(given: Mapping[str, Any]) -> Rubric:
    _known(given, KEYS, "")
    stages, exercises = (_table(given, name) for name in ("stages", "exercises"))
    _known(stages, STAGES, "stages.")
    from gemmlab.course.exercises import names

    _known(exercises, names(), "exercises.")
    shares = {stage: _number(f"stages.{stage}", stages.get(stage, 0)) for stage in STAGES}
    if "stages" not in given:
        shares = dict(read().shares)
    if not any(shares.values()):
        raise RubricError(f"[stages] has no share; give one of {', '.join(STAGES)} more than 0")
    attempts, late = given.get("attempts", "best"), _number("late", given.get("late", 1.0))
    if attempts not in ATTEMPTS:
        raise RubricError(f"attempts={attempts!r}; use one of {', '.join(map(repr, ATTEMPTS))}")
    if late > 1:
        raise RubricError(f"late={late!r} is a part of the points; use a number from 0 to 1")
    points = _number("points", given.get("points", 1.0))
    own = {name: _number(f"exercises.{name}", value) for name, value in exercises.items()}
    return Rubric(points, shares, own, attempts, late, _moment(given.get("due")))


def _known(given: Mapping[str, Any], names: Any, where: str) -> None:
    for name in given:
        if name not in names:
            raise RubricError(f"{where}{name} is not known; use one of {', '.join(names)}")


def _table(given: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    found = given.get(name, {})
    if not isinstance(found, dict):
        raise RubricError(f"{name}={found!r}; write a table, [{name}]")
    return found


def _number(name: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value < 1e6:
        raise RubricError(f"{name}={value!r}; use a number from 0 on")
    return float(value)


def _moment(value: Any) -> datetime.datetime | None:
    if value is None:
        return None
    if not isinstance(value, datetime.datetime):
        raise RubricError(f"due={value!r}; write a day and a time, such as 2026-12-01T23:59:00")
    return value if value.tzinfo else value.astimezone()
