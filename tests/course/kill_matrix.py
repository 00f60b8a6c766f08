"""The kill matrix: right answers pass, wrong and fooling ones fail, each for its own reason.

Each chapter has a test file of its own, so that processes share them.
"""

import importlib
import json
from functools import cache, partial

import pytest

from gemmlab import exercises
from gemmlab.course import exercise_modules
from gemmlab.course.judging import guard, launches, source
from gemmlab.course.judging.apart import apart
from gemmlab.course.judging.diagnoses import about
from gemmlab.course.judging.exercise import probe
from gemmlab.course.judging.matrices import Case
from gemmlab.course.judging.verdict import DRAWN_ANEW, FAILING
from tests.course.answers import answers_of, cell
from tests.support.paths import ROOT

COMPILED = ("time-over-limit", "work-left-out", "not-compiled")  # of the compiled code
KERNELS = (
    *("04.1", "04.2", "04.4", "04.5", "05.1", "05.3"),
    *("06.1", "06.2", "09.1", "09.3"),
    *("10.1", "10.3", "13.2"),
)
WARPS = ("07.3", "08.1", "08.3", "08.5")  # kernels of one warp, or of tiles of warps
# Diagnoses of right results that cost too much, and of answers that are no kernels.
NO_PLACE = (
    *("-over-budget", "-not-coalesced", "-not-used", "-at-once", "-conflict", "tile-size-fixed"),
    *("few-threads-copy", "few-threads-multiply", "wrong-type", "-over-limit"),
    *("products-beyond-c", "products-beyond-k", "blocks-uneven"),
    *("lanes-in-turns", "products-by-value", "c-again"),
    *("part-too-long", "part-too-short", "cut-inside-steps", "shares-uneven", "added-too-often"),
    "bias-again",
)
PATIENCE = 0.2  # seconds of the processor for an answer that never ends
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))


answers = cache(answers_of)


def stated(name):
    """The module that states an exercise."""
    return importlib.import_module(exercise_modules()[name])


def rejected(name):
    """Wrong answers and those that are meant to fool the check, by label."""
    return {**answers(name).WRONG, **answers(name).FOOLING}


def shown_by(name):
    """The diagnoses that the wrong answers to an exercise get."""
    return {wrong.diagnosis for wrong in rejected(name).values()}


@cache
def checked(name, label):
    """A wrong answer's verdict, and the exercise it was given to; nobody waits long for one that
    never ends.
    """
    q = exercises.get(name)
    with pytest.MonkeyPatch.context() as patched:
        if label.endswith(("for ever", "endless")):
            patched.setattr(launches, "SECONDS", PATIENCE)
            patched.setattr(guard, "apart", partial(apart, seconds=PATIENCE))
        verdict = q.check(*rejected(name)[label].answers)
    return verdict, q


def skeleton(name):
    """The answers that a notebook's untouched cell defines."""
    q = exercises.get(name)
    defined = cell(q.skeleton, vars(stated(name)))
    return tuple(defined[a.__name__] for a in q.task.answers)


# By numba-cuda-mlir this answer takes no longer than the solution may.
BY_NUMBA_CUDA = "06.2", "p by remainders"


def marked(name, label):
    """An answer's place, for tests of those that the machine's tools can judge.

    Everybody's tests have one wrong answer for each diagnosis of an exercise, and CI all others.
    """
    wrong = rejected(name).get(label)
    compiled = wrong is not None and wrong.diagnosis in COMPILED
    marks = [pytest.mark.ptxas, pytest.mark.slow] if compiled else []
    marks += [pytest.mark.numba_cuda] if (name, label) == BY_NUMBA_CUDA else []
    marks += [pytest.mark.measuring] if label in further(name) else []
    return pytest.param(name, label, marks=marks, id=f"{name}-{label}")


@cache
def further(name):
    """Rejected answers to an exercise whose diagnosis an answer before them gets, too."""
    first = {}
    for label, wrong in rejected(name).items():
        first.setdefault((wrong.diagnosis, label in answers(name).FOOLING), label)
    return rejected(name).keys() - first.values()


def places(names, kind):
    """The answers of a kind to the exercises of these names."""
    if kind == "by heart":
        fooling = [(name, answers(name).FOOLING) for name in names]
        return [
            marked(name, label)
            for name, every in fooling
            for label, wrong in every.items()
            if wrong.diagnosis == "known-cases-only"
        ]
    if kind == "wrong kernels":
        names, kind = [name for name in names if name in KERNELS], "WRONG"
    of = rejected if kind == "rejected" else lambda name: getattr(answers(name), kind)
    return [marked(name, label) for name in names for label in of(name)]


class KillMatrix:
    """The tests of one chapter's exercises: a subclass says which chapter."""

    chapter = ""

    def pytest_generate_tests(self, metafunc):
        """A test of `answer` has an item for each of that kind, others one for each exercise."""
        names = [name for name in exercises.names() if name.startswith(f"{self.chapter}.")]
        assert names, f"no exercise is of chapter {self.chapter!r}"
        if "label" in metafunc.fixturenames:
            kind = metafunc.function.answers
            metafunc.parametrize(("name", "label"), places(names, kind))
        elif "name" in metafunc.fixturenames:
            metafunc.parametrize("name", names)

    # --------------------------------------------------------------------------------- verdicts

    def test_wrong_answer_gets_its_diagnosis(self, name, label, record_property):
        record_property("kill matrix", (name, "wrong answers rejected for their reason"))
        wrong, (verdict, _) = answers(name).WRONG[label], checked(name, label)
        assert not verdict.passed
        assert verdict.diagnosis == wrong.diagnosis, verdict.message

    test_wrong_answer_gets_its_diagnosis.answers = "WRONG"

    def test_fooling_answer_gets_its_diagnosis(self, name, label, record_property):
        record_property("kill matrix", (name, "fooling answers rejected for their reason"))
        wrong, (verdict, _) = answers(name).FOOLING[label], checked(name, label)
        assert not verdict.passed
        assert verdict.diagnosis == wrong.diagnosis, verdict.message
        assert len(verdict.message) < 1500

    test_fooling_answer_gets_its_diagnosis.answers = "FOOLING"

    def test_a_case_that_nobody_knew_is_called_drawn_anew(self, name, label):
        verdict, _ = checked(name, label)
        assert {text for text, _ in verdict.facts} & {FAILING, DRAWN_ANEW} == {DRAWN_ANEW}

    test_a_case_that_nobody_knew_is_called_drawn_anew.answers = "by heart"

    def test_right_answer_passes(self, name, label, record_property):
        record_property("kill matrix", (name, "right answers accepted"))
        verdict = exercises.get(name).check(*answers(name).RIGHT[label])
        assert verdict.passed, verdict.message

    test_right_answer_passes.answers = "RIGHT"

    # ------------------------------------------------------------------------------ what it says

    def test_hints_follow_the_diagnosis(self, name, label):
        verdict, q = checked(name, label)
        said = about(verdict.diagnosis, verdict.details, q.task.diagnoses)
        first, second, third = q.hint(), q.hint(), q.hint()
        assert said.question in first
        if verdict.attempted:  # a probe, and not the facts once more
            assert probe(verdict) in second
        if said.partial:
            assert said.partial in third
        assert f"{q.called}.solution()" in q.hint()

    test_hints_follow_the_diagnosis.answers = "rejected"

    # ------------------------------------------------------------------------------ each exercise

    def test_enough_answers(self, name):
        of = answers(name)
        assert len(of.WRONG) >= 6
        assert len(of.FOOLING) >= 3
        assert not of.WRONG.keys() & of.FOOLING.keys(), "a label names one answer"
        assert len(of.RIGHT) + 1 >= 3  # the solution is one more
        assert all(wrong.misconception for wrong in rejected(name).values())

    def test_every_diagnosis_has_a_wrong_answer(self, name):
        shown = shown_by(name) | {"not-attempted"}
        for group in (KERNELS, WARPS):  # they share diagnoses
            shown |= set().union(*map(shown_by, group)) if name in group else set()
        assert set(exercises.get(name).task.diagnoses) - shown == set()

    def test_cases_grow(self, name):
        cases = [c for c in getattr(stated(name), "CASES", ()) if isinstance(c, Case)]
        sizes = [c.problem.m * c.problem.n * c.problem.k for c in cases]
        assert sizes == sorted(sizes)

    def test_skeleton_is_no_attempt(self, name):
        q = exercises.get(name)
        untouched = skeleton(name)
        for _ in range(2):
            verdict = q.check(*untouched)
            assert not verdict.passed
            assert not verdict.attempted
            assert verdict.title.endswith("not attempted yet")
        assert q.hint()

    def test_solution_is_the_tested_code(self, name):
        q = exercises.get(name)
        assert q.check(*q.task.answers).passed
        text = q.solution()
        for answer in q.task.answers:
            assert source.solution(answer) in text
        assert "[answer]" not in text + q.skeleton
        assert "[end]" not in text + q.skeleton
        assert q.skeleton not in text

    def test_section_is_in_the_notebook(self, name):
        chapter, _, heading = exercises.get(name).task.section.partition(", ")
        number = chapter.removeprefix("chapter ")
        files = [n for n in NOTEBOOKS if n.name.startswith(number)]
        if not files:
            pytest.skip(f"{chapter} is not written yet")
        cells = json.loads(files[0].read_text("utf-8"))["cells"]
        text = [line for c in cells for line in c["source"]]
        headings = [line.strip() for line in text if line.startswith("##")]
        assert any(h.endswith(f" {heading}") for h in headings), headings


class KernelMatrix(KillMatrix):
    """Those of a chapter that asks for kernels."""

    def test_kernel_verdict_says_where_and_why(self, name, label):
        verdict, _ = checked(name, label)
        details, message = verdict.details, verdict.message
        assert "Likely cause" in message
        if verdict.diagnosis.endswith(NO_PLACE):
            return
        m, n, k = details["shape"]
        assert f"m={m}, n={n}, k={k}" in message
        if "index" in details:
            i, j = details["index"]
            assert f"C[{i}, {j}]" in message
            assert f" (x, y) = {details['block']}, thread (x, y) = {details['thread']}" in message
        if "kind" in details:
            assert details["kind"] in message
            assert f"line {details['line']}: {details['code']}" in message
            assert details["threads"]
        if not {"index", "kind", "error", "changed"} & set(details):  # the clock ended an endless
            assert f"line {details['line']}: {details['code']}" in message  # run

    test_kernel_verdict_says_where_and_why.answers = "wrong kernels"
