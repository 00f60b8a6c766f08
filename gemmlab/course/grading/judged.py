"""What is found of one exercise in one notebook, and how it is found.

A `Judged` is data, and goes from the process that judges to the one that makes tables as JSON.
"""

from __future__ import annotations

import ast
import hashlib
import os
import re
import sys
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

from gemmlab.course import exercises
from gemmlab.course.grading import rubric
from gemmlab.course.grading.definitions import Definitions, RefusedError
from gemmlab.course.grading.submission import Check, Submission
from gemmlab.course.judging import drawing, source
from gemmlab.course.judging.apart import NotJudged
from gemmlab.course.judging.exercise import Task
from gemmlab.course.judging.verdict import Verdict

PASSED, NOT_PASSED, NOT_ATTEMPTED = "passed", "not passed", "not attempted"
NOT_JUDGED, UNREADABLE, MISSING, ERROR = "not judged", "unreadable", "missing", "error"
STATES = (PASSED, NOT_PASSED, NOT_ATTEMPTED, NOT_JUDGED, UNREADABLE, MISSING, ERROR)
SOLUTION = "it is the course's solution, but for names and comments"
LONGEST = 1_500  # characters of a reason
CODE = 6_000  # characters of an answer that a report shows
ENOUGH = 40  # nodes of a tree beyond the skeleton's: shorter answers are alike by themselves
_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")
_LEFT_OUT = ("Asked", "Next", "Shown", "Time on a GPU")


@dataclass(frozen=True)
class Judged:
    """The outcome of one exercise in one notebook.

    state : one of `STATES`; reason : in words; stages : that were passed, of `every` it has
    looks : why somebody should look at the answer; like, size : its likeness, and how long it is
    seconds : of the processor; code : what was judged
    """

    exercise: str
    state: str
    diagnosis: str = ""
    reason: str = ""
    stages: tuple[str, ...] = ()
    every: tuple[str, ...] = ()
    looks: tuple[str, ...] = ()
    like: str = ""
    code: str = ""
    seconds: float = 0.0

    @property
    def data(self) -> dict[str, Any]:
        """The same as JSON has it."""
        return asdict(self)

    @classmethod
    def of(cls, data: Mapping[str, Any]) -> Judged:
        """What `data` was made from; ValueError where it is something else."""
        if not isinstance(data, dict) or set(data) != {f.name for f in fields(cls)}:
            raise ValueError(f"{str(data)[:80]!r} is no outcome of an exercise")
        lists = {name: tuple(value) for name, value in data.items() if isinstance(value, list)}
        made = cls(**{**data, **lists})
        if made.state not in STATES:
            raise ValueError(f"state {made.state!r}; use one of {', '.join(STATES)}")
        return made


def judged(submission: Submission, exercise: str, key: str) -> Judged:
    """Judge one exercise; `key` decides what its check draws."""
    fault = submission.fault_of(exercise)
    if fault:
        return Judged(exercise, UNREADABLE, "no-python", _plain(f"no Python: {fault}"))
    check = submission.checks.get(exercise)
    if check is None:
        return Judged(exercise, MISSING, "missing", "the notebook does not check it")
    before = _used()
    found = _judged(submission, check, key)
    seconds = round(_used() - before, 3)
    return Judged(**{**asdict(found), "seconds": seconds})


def _judged(submission: Submission, check: Check, key: str) -> Judged:
    name = check.exercise
    try:
        definitions = Definitions(submission, check)
        code = _code(definitions)
    except RecursionError:
        return Judged(name, UNREADABLE, "no-python", "it is nested too deeply to be read")
    try:
        answers = definitions.answers()
    except RefusedError as refused:
        state = NOT_PASSED if refused.diagnosis in ("borrowed", "reaches-out") else ERROR
        return Judged(name, state, refused.diagnosis, _plain(str(refused)), code=code)
    except NotJudged as busy:
        return Judged(name, NOT_JUDGED, "not-judged", _plain(str(busy)), code=code)
    except Exception as error:
        why = _plain(f"{type(error).__name__}: {error}")
        return Judged(name, ERROR, "not-computed", why, code=code)
    exercise = exercises.get(name)
    with drawing.seeded(key):
        verdict = exercise.check(*answers)
    cases = getattr(_module(name), "CASES", ())
    like = _alike(k.node for k in definitions.kept if isinstance(k.node, ast.FunctionDef))
    long = verdict.attempted and _enough(like.size, exercise.task)
    return Judged(
        name,
        _state(verdict),
        verdict.diagnosis,
        reason(verdict),
        rubric.passed(verdict, exercise.task, cases),
        rubric.stages_of(exercise.task),
        tuple(_looks(definitions, like, exercise.task)) if long else (),
        like.digest if long else "",
        code,
    )


def _module(name: str) -> Any:
    task = exercises.get(name).task
    return sys.modules[task.judge.__module__]


def _state(verdict: Verdict) -> str:
    if verdict.passed:
        return PASSED
    if verdict.attempted:
        return NOT_PASSED
    return NOT_ATTEMPTED if verdict.diagnosis == "not-attempted" else NOT_JUDGED


def reason(verdict: Verdict) -> str:
    """The facts of a verdict that say why, the same each time."""
    by_time = any("s of the processor" in text for _, text in verdict.facts)
    left_out = (*_LEFT_OUT, "Where") if by_time else _LEFT_OUT  # any line of an endless loop
    facts = [(label, text) for label, text in verdict.facts if label not in left_out]
    if verdict.passed:
        facts = facts[:2]
    return _plain("\n".join(f"{label}: {text}" for label, text in facts))


def _plain(text: str) -> str:
    """Text without addresses in memory, which differ each time, and no longer than is read."""
    text = _ADDRESS.sub("", text.encode("utf-8", "replace").decode())
    text = "".join(c for c in text if c.isprintable() or c == "\n")
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}…"


def _looks(definitions: Definitions, like: Likeness, task: Any) -> list[str]:
    found = []
    if like == _of_solution(task):
        found.append(SOLUTION)
    for kept in definitions.kept:
        for part in ast.walk(kept.node):
            if isinstance(part, ast.Name) and part.id == "kernels":
                found.append(f"it uses gemmlab.kernels ({kept.place})")
    return list(dict.fromkeys(found))


def _code(definitions: Definitions) -> str:
    """The functions that are judged, as they were written."""
    pieces: list[str] = []
    for kept in definitions.kept:
        if sum(map(len, pieces)) > CODE:  # to cut out a piece takes as long as its cell
            break
        if not isinstance(kept.node, (ast.Import, ast.ImportFrom)):
            pieces.append(ast.get_source_segment(kept.cell.source, kept.node) or "")
    return "\n\n".join(pieces)[:CODE]


def _used() -> float:
    return sum(os.times()[:4])


# ------------------------------------------- answers that are the same but for names and comments


@dataclass(frozen=True)
class Likeness:
    """A digest of functions without their names, and how many nodes their tree has."""

    digest: str
    size: int


def _alike(nodes: Iterable[ast.AST]) -> Likeness:
    """The likeness of these functions, in their order."""
    names: dict[str, str] = {}
    parts, size = [], 0
    for node in nodes:
        for part in _in_order(ast.parse(ast.unparse(node))):
            size += 1
            parts.append(_words(part, names))
    return Likeness(hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16], size)


def _in_order(node: ast.AST) -> Iterable[ast.AST]:
    """A tree's nodes without docstrings and annotations, which change nothing."""
    yield node
    for name, value in ast.iter_fields(node):
        if name in ("annotation", "returns"):
            continue
        parts = value if isinstance(value, list) else [value]
        if name == "body" and parts and _is_text(parts[0]):
            parts = parts[1:]
        for part in parts:
            if isinstance(part, ast.AST):
                yield from _in_order(part)


def _is_text(node: object) -> bool:
    constant = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    return constant and isinstance(node.value.value, str)  # type: ignore[attr-defined]


def _words(node: ast.AST, names: dict[str, str]) -> str:
    """A node as text, with each name by the order in which names come."""
    words = [type(node).__name__]
    for name, value in ast.iter_fields(node):
        if name in ("id", "arg") or (name == "name" and isinstance(value, str)):
            words.append(names.setdefault(str(value), f"n{len(names)}"))
        elif not isinstance(value, (ast.AST, list)) and name not in ("kind", "type_comment"):
            words.append(repr(value))
    return " ".join(words)


def _of_solution(task: Task) -> Likeness:
    """The likeness of an exercise's solution."""
    return _alike(ast.parse(source.solution(answer)).body[0] for answer in task.answers)


def _enough(size: int, task: Task) -> bool:
    """Whether an answer is long enough for a likeness to say something."""
    skeletons = sum(
        sum(1 for _ in _in_order(ast.parse(source.skeleton(answer)))) for answer in task.answers
    )
    return size >= skeletons + ENOUGH
