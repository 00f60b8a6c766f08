"""What checks draw anew: from the system, or from the seed of a class."""

import pytest

from gemmlab import exercises
from gemmlab.course.judging import drawing
from gemmlab.course.judging.apart import apart, copies
from tests.course.answers import answers_of


def numbers():
    return [int(drawing.generator().integers(1 << 60)) for _ in range(2)]


def test_a_seed_decides_all_that_is_drawn():
    with drawing.seeded("a class"):
        first = numbers()
    with drawing.seeded("a class"):
        assert numbers() == first
    with drawing.seeded("another"):
        assert numbers() != first
    assert len(set(first)) == 2


def test_without_a_seed_the_system_decides():
    assert numbers() != numbers()


@pytest.mark.skipif(not copies(), reason="processes cannot be copied here")
def test_a_copy_forgets_the_seed():
    def look():
        yield list(drawing._drawing), numbers()

    with drawing.seeded("a class"):
        first, second = next(apart(look)), next(apart(look))
        assert len(drawing._drawing) == 1
    assert first[0] == second[0] == []
    assert first[1] != second[1]


def by_heart(name):
    """An answer that is wrong in a drawn case alone, where the corpus has one."""
    every = answers_of(name).FOOLING.values()
    return next((w for w in every if w.diagnosis == "known-cases-only"), None)


EVERYBODY = ("01.1", "03.2")  # in everybody's command; another of each chapter where it is asked
FIRST = {name[:2]: name for name in reversed(exercises.names()) if by_heart(name)}
NAMES = [
    pytest.param(name, marks=[] if name in EVERYBODY else [pytest.mark.measuring])
    for name in sorted({*FIRST.values(), *EVERYBODY})
]


@pytest.mark.parametrize("name", NAMES)
def test_with_a_seed_a_verdict_is_the_same_each_time(name):
    texts = []
    for seed in ("one", "one", "two"):
        with drawing.seeded(seed):
            texts.append(exercises.get(name).check(*by_heart(name).answers).message)
    assert texts[0] == texts[1]
    assert texts[2] != texts[0]


def test_no_check_draws_from_elsewhere():
    """Each generator is made from a number that stands in the text, or comes from `drawing`."""
    from gemmlab.course.grading.processes import PACKAGE

    files = [*(PACKAGE / "course").rglob("q*.py"), *(PACKAGE / "course" / "judging").glob("*.py")]
    found = [p.name for p in files if "default_rng()" in p.read_text("utf-8")]
    assert found == ["drawing.py"]
