"""Exercises: a task, the attempts at it, a verdict on each, and what to try next."""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from gemmlab.course import progress
from gemmlab.course.judging import guard, source
from gemmlab.course.judging.apart import NotJudged
from gemmlab.course.judging.diagnoses import about
from gemmlab.course.judging.verdict import DRAWN_ANEW, FAILING, Diagnosis, Finding, Verdict
from gemmlab.course.text import Markdown


@dataclass(frozen=True)
class Task:
    """The statement of an exercise.

    asked : what is asked for, in one sentence; prompt : the whole of it, in Markdown
    section : where the course explains it
    judge : the answers -> what was found; whatever the answers are, it raises nothing but NotJudged
    answers : functions that solve it, whose marked lines the skeleton leaves out
    diagnoses : what may be wrong, beside `diagnoses.GENERAL`, or in place of it
    praise : what a right answer has shown
    """

    name: str
    title: str
    section: str
    asked: str
    prompt: str
    judge: Callable[..., Finding]
    answers: tuple[Callable, ...]
    diagnoses: Mapping[str, Diagnosis]
    praise: str


class Exercise:
    """One learner's work on a task: `check`, then `hint` as often as needed, then `solution`."""

    def __init__(self, task: Task) -> None:
        self.task = task
        self.verdicts: list[Verdict] = []
        self._passed: tuple[Any, ...] = ()
        self._hinted: list[str] = []  # the diagnosis that each hint so far was about

    def __repr__(self) -> str:
        return f"<Exercise {self.task.name}: {self.task.title}>"

    @property
    def prompt(self) -> Markdown:
        """The problem, in Markdown."""
        t = self.task
        return Markdown(f"**Exercise {t.name}. {t.title}**\n\n{inspect.cleandoc(t.prompt)}")

    @property
    def skeleton(self) -> str:
        """The code to start from: it runs, and does nothing yet."""
        return "\n\n\n".join(source.skeleton(a) for a in self.task.answers)

    @property
    def answers(self) -> tuple[Any, ...]:
        """The answers that passed last, for cells that go on with them; else the course's own."""
        return self._passed or self.task.answers

    @property
    def called(self) -> str:
        """The name that the notebooks give it: q1 for the first exercise of a chapter."""
        return f"q{self.task.name.partition('.')[2]}"

    def check(self, *answers: Any) -> Verdict:
        """Judge the answers, one for each function of the skeleton; never raises.

        A verdict "not-judged" says nothing of the answers, and is not kept among the verdicts.
        """
        wanted = [a.__name__ for a in self.task.answers]
        if len(answers) != len(wanted):
            told = f"{len(answers)} answers; use {self.called}.check({', '.join(wanted)})"
            found = Finding("wrong-type", (("Found", told),))
        else:
            answers = tuple(map(source.unwrapped, answers))
            found = source.wrong_type(self.task.answers, answers)
            if found is None and all(map(source.unchanged, self.task.answers, answers)):
                found = Finding("not-attempted")
            found = found or source.borrowed(self.task.answers, self.task.judge, answers)
            try:
                found = found or self.task.judge(*answers)
            except NotJudged as busy:
                return self._verdict(guard.not_judged(busy, guard.file_of(answers[0])))
            except Exception as error:  # what came back has the form of a result and is none
                found = Finding("senseless", (("Error", f"{type(error).__name__}: {error}"),))
        verdict = self._verdict(found)
        self.verdicts.append(verdict)
        if verdict.attempted:
            progress.keep("exercise", self.task.name, verdict.passed)
        if verdict.passed:
            self._passed = answers
        return verdict

    def hint(self) -> Markdown:
        """The next hint on what the last check found: a question, a probe, a partial solution.

        Hints start again from the question when the diagnosis changes.
        """
        last = self.verdicts[-1] if self.verdicts else self._verdict(Finding("not-attempted"))
        solution = f"`{self.called}.solution()`"
        if last.passed:
            return Markdown(f"Passed: there is nothing left to hint at. {solution} shows one way.")
        rung = self._hinted.count(last.diagnosis) + 1
        self._hinted.append(last.diagnosis)
        explained = about(last.diagnosis, last.details, self.task.diagnoses)
        tried = probe(last) if last.attempted else ""
        rungs = [explained.question, tried and f"Try this:\n\n{tried}", explained.partial]
        rungs = [text for text in rungs if text]
        text = rungs[min(rung, len(rungs)) - 1]
        end = "" if rung < len(rungs) else f"\n\nThat was the last hint on this: {solution}."
        return Markdown(f"**Hint {min(rung, len(rungs))} of {len(rungs)}.**\n\n{text}{end}")

    def solution(self) -> Markdown:
        """One right answer, as code to read."""
        code = "\n\n\n".join(source.solution(a) for a in self.task.answers)
        return Markdown(f"```python\n{code}\n```\n\n{self.task.praise}")

    def _verdict(self, found: Finding) -> Verdict:
        passed, hint = found.diagnosis == "passed", f"try {self.called}.hint()"
        asked = ("Asked", self.task.asked)
        if passed:
            facts = (asked, *found.facts, ("Shown", self.task.praise))
        elif found.diagnosis == "not-attempted":
            start = "replace each ... of" if "..." in self.skeleton else "change"
            facts = (asked, *found.facts, ("Next", f"{start} the skeleton; {hint}"))
        elif found.diagnosis == "not-judged":
            again = (
                "The machine is too busy to judge the answer, which has neither passed nor failed: "
                "check it again."
            )
            facts = (asked, *found.facts, ("Next", again))
        else:
            cause = about(found.diagnosis, found.details, self.task.diagnoses).cause
            more = f"see {self.task.section}, or {hint}"
            facts = (asked, *found.facts, ("Likely cause", cause), ("Next", more))
        return Verdict(self.task.name, passed, found.diagnosis, facts, found.details)


def probe(verdict: Verdict) -> str:
    """Something to try that tells more than the verdict did; empty where nothing was run."""
    told, details = dict(verdict.facts), verdict.details
    case = (
        told.get(FAILING) or told.get(DRAWN_ANEW) or told.get("Worst case") or told.get("Case", "")
    )
    if "probe" in details:
        return details["probe"]
    if "error" in details and "line" in details:
        return (
            f"Put a `print(...)` of every value that line {details['line']} uses just above it, "
            "and check again: what is printed last is what the line stopped at."
        )
    if "kind" in details and "line" in details:
        who = " and ".join(str(tuple(t)) for t in details.get("threads", ())[:2])
        of = f" thread{'s' if ' and ' in who else ''} (x, y, z) = {who}" if who else " that thread"
        return (
            f"Look at line {details['line']}, `{details['code']}`. On paper, work out for{of} the "
            "index that the line computes there, and find the other line that touches this element."
        )
    if "function" in details:
        return (
            f"Call `{case}` in a cell of its own and print what each line of your code has. Then "
            "change one argument, to 1 or to twice as much: by what should the result change, and "
            "by what does it?"
        )
    if "index" in details:
        at = ", ".join(map(str, details["index"]))
        return (
            f"Follow the element [{at}] alone: in your kernel, print each value that is added to "
            "it, under an `if` that only its thread passes. Which one differs from the definition "
            "first?"
        )
    if "counters" in details or "budget" in details:
        return (
            "Simulate your kernel on a small case of your own and show `report.listing()`: it has "
            "the counts beside each line. Which line has more than you expect of it?"
        )
    if case:
        return f"Take the case that is named alone, {case}, and do it by hand beside your code."
    return ""
