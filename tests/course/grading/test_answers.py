"""Right answers to every exercise pass as a notebook's answers, and wrong ones do as in it."""

import pytest

from gemmlab import exercises
from gemmlab.course.grading import submission
from gemmlab.course.grading.judged import judged
from tests.course.grading.notebooks import notebook, solution

# What some solutions take from their module, and a student from Python.
TAKEN = "import math\nfrom math import ceil\nfrom gemmlab.model.layers import linear"
EVERYBODY = ("01.2", "03.2", "04.3", "07.2")  # in everybody's command
NAMES = [
    pytest.param(name, marks=[] if name in EVERYBODY else [pytest.mark.measuring])
    for name in exercises.names()
]


@pytest.mark.parametrize("name", NAMES)
def test_the_solution_passes_in_its_chapter(name):
    read = submission.read(notebook(name.partition(".")[0], {name: solution(name)}, TAKEN))
    found = judged(read, name, "key")
    assert found.state == "passed", found.reason
    assert found.stages == found.every


@pytest.mark.measuring
@pytest.mark.parametrize("name", exercises.names())
def test_an_untouched_skeleton_is_no_attempt(name):
    read = submission.read(notebook(name.partition(".")[0], {}))
    found = judged(read, name, "key")
    assert found.state == "not attempted", found.reason
    assert found.stages == ()
