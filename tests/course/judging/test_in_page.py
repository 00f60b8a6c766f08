"""Answers in the page of a browser, where no process can be copied."""

from gemmlab.course.judging import apart, guard
from gemmlab.course.judging.copy_of_process import Ended


def test_late_work_is_ended_and_says_where_it_was():
    def work():
        yield 1
        raise apart.Late
        yield 2

    first, end = apart._in_page(work)
    assert first == 1
    assert isinstance(end, Ended)
    assert (end.how, end.what) == ("time", "it used more than 20 s of the processor")
    assert __file__ in [file for file, _ in end.where]


def test_work_that_ends_in_time_yields_what_it_yields():
    assert list(apart._in_page(lambda: iter([1, 2]))) == [1, 2]


def test_an_answer_that_is_late_never_ends():
    def answer():
        raise apart.Late

    found = guard.call(answer).fault
    assert found.diagnosis == "never-ends"
    assert ("Stopped", "it used more than 20 s of the processor") in found.facts
