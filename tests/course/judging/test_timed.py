"""Predicted times in verdicts: said where code can be compiled, left out where it cannot."""

import importlib
import subprocess
import sys
from functools import cache

import pytest

from gemmlab import Gemm, exercises, records
from gemmlab.compiled.forecast import rungs
from gemmlab.course import exercise_modules
from gemmlab.course.ch06_register_tiles import q2_wide_loads as wide_loads
from gemmlab.course.judging import timed
from gemmlab.course.judging.apart import Ended, NotJudged, copies
from gemmlab.course.judging.verdict import Finding

# Beside a limit, a record and a bound.
TIMED = ("06.2", "09.1", pytest.param("04.5", marks=pytest.mark.measuring))
PASSED = Finding("passed", (("Values", "right"),))


@cache
def solved(name):
    """The verdict on the solution of an exercise, with its predicted time."""
    q = exercises.get(name)
    return q.check(*q.task.answers)


def module(name):
    return importlib.import_module(exercise_modules()[name])


def judged(found=PASSED, build=wide_loads.build_fours):
    return timed.judge(found, build, wide_loads.tiling, wide_loads.TIMED, wide_loads.LIMIT)


@pytest.mark.ptxas
@pytest.mark.slow
@pytest.mark.parametrize("name", TIMED)
def test_a_right_answer_hears_its_time(name):
    verdict = solved(name)
    assert verdict.passed
    facts = dict(verdict.facts)
    said = facts["Predicted for NVIDIA H200 SXM"]
    assert said.startswith(timed.ms(verdict.details["seconds"]))
    assert "m = n = k = 4096 with T = 16" in said
    assert "wait mostly for" in said
    beside = getattr(module(name), "BESIDE", wide_loads.LIMIT)
    assert facts["Beside it"] == str(beside)


@pytest.mark.ptxas
@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    ["10.1", *(pytest.param(n, marks=pytest.mark.measuring) for n in ("02.3", "05.3", "08.5"))],
)
def test_a_right_answer_hears_its_time_beside_the_solutions(name):
    q = exercises.get(name)
    facts = dict(q.check(*q.task.answers).facts)
    said = facts["Predicted for NVIDIA H200 SXM"]
    assert facts["Beside it"] == f"the solution: {said.partition(' for ')[0]}"


@pytest.mark.numba_cuda  # whose code the numbers are of
@pytest.mark.ptxas
@pytest.mark.slow
def test_the_solutions_time_that_09_1_states_is_the_predicted_one():
    verdict = solved("09.1")
    stated = dict(verdict.facts)["The solution"]
    assert stated == timed.ms(verdict.details["seconds"])


@pytest.mark.ptxas
@pytest.mark.slow
@pytest.mark.parametrize(
    "label", ["B by cp.async", pytest.param("rows of A as they lie", marks=pytest.mark.measuring)]
)
def test_right_answers_in_other_styles_keep_the_limit(label):
    answers = importlib.import_module("tests.course.ch06_register_tiles.answers_q2")
    verdict = exercises.get("06.2").check(*answers.RIGHT[label])
    assert verdict.passed, verdict.message
    assert verdict.details["seconds"] < wide_loads.LIMIT.seconds


def test_the_limit_is_a_record_and_stands_in_the_prompt():
    limit = wide_loads.LIMIT
    [record] = [
        m
        for m in records.load("h200", limit.kernel)
        if (m.problem, m.tiling) == (Gemm(4096, 4096, 4096), limit.tiling)
    ]
    assert limit.seconds == record.seconds
    assert f"{1000 * record.seconds:.3g} ms" in exercises.get("06.2").prompt
    assert str(limit).endswith(f"measured: {1000 * record.seconds:.3g} ms")


def test_what_did_not_pass_is_not_timed(monkeypatch):
    monkeypatch.setattr(timed, "lacking", lambda: pytest.fail("asked for"))
    found = Finding("loads-over-budget")
    assert judged(found) is found


def test_without_the_tools_the_time_is_left_out_and_the_answer_passes(monkeypatch):
    monkeypatch.setattr(timed, "lacking", lambda: "there is no ptxas; install it")
    found = timed.within(judged(), wide_loads.LIMIT)
    assert found.diagnosis == "passed"
    assert found.facts[-1] == ("Time on a GPU", "left out: there is no ptxas; install it")
    assert "seconds" not in found.details


class Stands:
    """For `apart`: gives these items instead of what the work yields."""

    def __init__(self, *items):
        self.items = items

    def __call__(self, work, seconds):
        return iter(self.items)


@pytest.fixture
def tools(monkeypatch):
    monkeypatch.setattr(timed, "lacking", lambda: "")


@pytest.mark.usefixtures("tools")
@pytest.mark.parametrize(
    ("item", "diagnosis", "fact"),
    [
        ("ptxas refused the code", "passed", "left out: ptxas refused the code"),
        (Finding("not-compiled", (("Error", "no type"),)), "not-compiled", "no type"),
        (timed.Time(0.99 * wide_loads.LIMIT.seconds, "…"), "passed", str(wide_loads.LIMIT)),
        (
            timed.Time(1.01 * wide_loads.LIMIT.seconds, "…"),
            "time-over-limit",
            str(wide_loads.LIMIT),
        ),
        (timed.Time(1e-3, "…"), "work-left-out", str(wide_loads.LIMIT)),
    ],
)
def test_each_end_of_a_prediction_has_its_finding(monkeypatch, item, diagnosis, fact):
    monkeypatch.setattr(timed, "apart", Stands(item))
    found = timed.within(judged(), wide_loads.LIMIT)
    assert found.diagnosis == diagnosis
    assert found.facts[-1][1] == fact


@pytest.mark.usefixtures("tools")
@pytest.mark.parametrize("how", ["time", "memory", "crash", "exit", "error"])
def test_a_prediction_that_is_cut_short_is_no_judgement(monkeypatch, how):
    monkeypatch.setattr(timed, "apart", Stands(Ended(how, "it was cut short")))
    with pytest.raises(NotJudged, match="predicting its time: it was cut short"):
        judged()


def spins(*arguments):
    while True:
        pass


def starts_what_spins(*arguments):
    """As ptxas is started, and ended by the system when it has used the processor for too long."""
    command = [sys.executable, "-c", "while True: pass"]
    raise RuntimeError(f"refused: {subprocess.run(command).returncode}")


@pytest.mark.usefixtures("tools")
@pytest.mark.skipif(not copies(), reason="processes cannot be copied here")
@pytest.mark.parametrize("predicting", [spins, starts_what_spins])
def test_no_answer_passes_because_its_prediction_takes_too_long(monkeypatch, predicting):
    monkeypatch.setattr(timed, "SECONDS", 0.2)
    monkeypatch.setattr(rungs, "predict_rung", predicting)
    q = exercises.get("06.2")
    verdict = q.check(*q.task.answers)
    assert verdict.diagnosis == "not-judged"
    assert "used more than 0.2 s of the processor" in verdict.message
    assert not verdict.passed


@pytest.mark.ptxas
@pytest.mark.slow
@pytest.mark.skipif(not copies(), reason="processes cannot be copied here")
def test_a_wrong_answer_does_not_pass_where_the_processor_is_slow(monkeypatch):
    monkeypatch.setattr(timed, "SECONDS", 0.2)
    wrong = importlib.import_module("tests.course.ch06_register_tiles.answers_q2").WRONG
    answers = wrong["sums in float64"].answers
    assert exercises.get("06.2").check(*answers).diagnosis in ("not-judged", "time-over-limit")


@pytest.mark.usefixtures("tools")
def test_the_tile_that_is_timed_must_be_right_too():
    def build(T):
        return wide_loads.build_fours(T) if T < 16 else module("04.2").build(T)

    assert judged(build=build).diagnosis not in ("passed", "time-over-limit")


@pytest.mark.usefixtures("tools")
@pytest.mark.parametrize("error", [RuntimeError("no end"), NotImplementedError("LDGMC")])
def test_what_the_tools_do_not_understand_is_left_out(monkeypatch, error):
    def refuse(*arguments):
        raise error

    monkeypatch.setattr(rungs, "predict_rung", refuse)
    found = judged()
    assert found.diagnosis == "passed"
    assert found.facts[-1][1] == f"left out: {type(error).__name__}: {error}"


def test_the_time_of_a_solution_is_predicted_once_and_where_no_answer_has_been(monkeypatch):
    asked = []

    def apart(work, seconds):
        asked.append(work.args[0])
        return iter([timed.Time(1.0 + len(asked), "nothing")])

    monkeypatch.setattr(timed, "apart", apart)
    monkeypatch.setattr(timed, "lacking", lambda: "")
    monkeypatch.setattr(timed.compilers, "load", lambda: None)
    monkeypatch.setattr(timed, "_SOLUTIONS", {})
    example = timed.Example([], None, "a large launch", 0.5)
    one, other, solution = (lambda n=n: n for n in range(3))
    told = [
        timed.beside(Finding("passed"), answer, solution, example).facts for answer in (one, other)
    ]
    assert asked == [one, solution, other]
    assert {dict(facts)["Beside it"] for facts in told} == {"the solution: 3.00 s"}
    assert [
        dict(facts)[f"Predicted for {timed.load_device(timed.RECORDED).title}"][:5]
        for facts in told
    ] == ["2.00 ", "4.00 "]
