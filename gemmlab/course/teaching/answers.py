"""The teacher's sheet: each exercise's answer, its mistakes, and what to say to each.

All of it is the exercises' own: what `Task.answers` solves, and the cause and the hints of
`Task.diagnoses`, which are what a learner is told one after the other. Every mistake that is listed
is one that the check tells apart, and has an answer among the tests that makes it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from gemmlab.course import exercise_modules
from gemmlab.course.exercises import get
from gemmlab.course.judging.diagnoses import GENERAL, HAZARDS, KERNEL
from gemmlab.course.judging.exercise import Task
from gemmlab.course.judging.verdict import Diagnosis
from gemmlab.course.teaching.chapter import read

SHARED = {(name, one) for some in (GENERAL, KERNEL, HAZARDS) for name, one in some.items()}
OPENING = """\
# Answers and mistakes

For teachers. Under each mistake stand its likely cause, and the question to ask first; the last
hint gives most of the answer away. The names are those in the table of `gemmlab grade`.
"""


def told(chapters: Sequence[str]) -> str:
    """The sheet of these chapters, in Markdown."""
    tasks = {
        name: get(name).task for name in exercise_modules() if name.partition(".")[0] in chapters
    }
    lines, shared = [OPENING], dict.fromkeys(GENERAL.items())
    for number in chapters:
        own = [task for name, task in tasks.items() if name.partition(".")[0] == number]
        lines.append(f"## {number} · {read(number).title}\n")
        lines += [_exercise(task) for task in own] or ["This chapter has no exercise.\n"]
    for task in tasks.values():
        shared |= dict.fromkeys(pair for pair in task.diagnoses.items() if pair in SHARED)
    lines.append("## Mistakes that many exercises have in common\n")
    lines.append(_mistakes(shared))
    return "\n".join(lines)


def _exercise(task: Task) -> str:
    exercise = get(task.name)
    own = [pair for pair in task.diagnoses.items() if pair not in SHARED]
    others = sorted(task.diagnoses.keys() - dict(own).keys())
    lines = [
        f"### {task.name} {task.title}\n",
        f"Asked: {task.asked} Explained in {task.section}.\n",
        f"{exercise.solution()}\n",
        "#### Mistakes\n",
        _mistakes(own),
    ]
    if others:
        lines.append(f"And of those at the end: {', '.join(f'`{name}`' for name in others)}.\n")
    return "\n".join(lines)


def _mistakes(diagnoses: Iterable[tuple[str, Diagnosis]]) -> str:
    lines = []
    for name, one in diagnoses:
        lines += [f"**`{name}`** {one.cause}\n", f"- Ask: {one.question}"]
        if one.partial:
            lines.append(f"- Last hint:\n\n{_indented(one.partial)}")
        lines.append("")
    return "\n".join(lines)


def _indented(text: str) -> str:
    """A text that belongs to an item of a list."""
    return "\n".join(f"  {line}".rstrip() for line in text.splitlines())
