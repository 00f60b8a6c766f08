"""Minutes are the notebooks' own, and no plan has more of them than it says."""

import pytest

from gemmlab.course import chapters, exercise_modules
from gemmlab.course.teaching import syllabus
from gemmlab.course.teaching.chapter import Part, notebook, read

EVERY = [read(number) for number in chapters()]


@pytest.mark.parametrize("chapter", EVERY, ids=lambda one: one.number)
def test_parts_share_the_minutes_of_the_notebook(chapter):
    footer = notebook(chapter.number)["metadata"]["gemmlab"]["footer"]
    assert footer.startswith(f"{chapter.minutes} minutes")
    assert sum(part.minutes for part in chapter.parts) == chapter.minutes
    names = [name for name in exercise_modules() if name.startswith(chapter.number)]
    assert [part.exercise for part in chapter.parts if part.exercise] == names
    assert min(part.minutes for part in chapter.parts) >= 1


def part(title, minutes, section):
    return Part(title, minutes, section, title if "." in title else "")


PARTS = [part("a", 10, 0), part("b", 10, 1), part("1.1", 20, 1), part("1.2", 20, 1),
         part("c", 10, 2), part("1.3", 15, 2)]  # fmt: skip


@pytest.mark.parametrize(
    ("minutes", "in_class", "at_home", "skip"),
    [
        (85, "a b 1.1 1.2 c 1.3", "", ""),
        (84, "a b 1.1 1.2 c", "1.3", ""),
        (65, "a b 1.1 c 1.3", "1.2", ""),
        (40, "a b 1.1", "1.2", "c 1.3"),
        (39, "a b c", "1.1 1.2 1.3", ""),
        (12, "a", "", "b 1.1 1.2 c 1.3"),
        (9, "", "", "a b 1.1 1.2 c 1.3"),
    ],
)
def test_what_does_not_fit_is_for_home_or_skipped(minutes, in_class, at_home, skip):
    found = syllabus.fit(PARTS, minutes)
    told = [" ".join(p.title for p in some) for some in (found.in_class, found.at_home, found.skip)]
    assert told == [in_class, at_home, skip]
    assert found.minutes <= minutes


@pytest.mark.parametrize("hours", syllabus.HOURS)
@pytest.mark.parametrize("numbers", [("04",), ("04", "05"), tuple(chapters())])
def test_no_plan_exceeds_its_hours(hours, numbers):
    plan = syllabus.in_hours([read(number) for number in numbers], hours)
    assert 0 < sum(chosen.minutes for chosen in plan.values()) <= 60 * hours
    for chapter, chosen in plan.items():
        told = [*chosen.in_class, *chosen.at_home, *chosen.skip]
        assert sorted(map(id, told)) == sorted(map(id, chapter.parts))


def test_weeks_have_all_parts_in_order_and_lessons_that_fit():
    weeks = syllabus.in_weeks(EVERY, 10)
    assert len(weeks) == 10
    told = {one: [] for one in EVERY}
    for week in weeks:
        assert 0 < sum(chosen.minutes for _, chosen in week) <= syllabus.LESSON
        for chapter, chosen in week:
            told[chapter] += [*chosen.in_class, *chosen.at_home, *chosen.skip]
    assert {one: set(parts) for one, parts in told.items()} == {e: set(e.parts) for e in EVERY}
    assert sum(len(parts) for parts in told.values()) == sum(len(one.parts) for one in EVERY)


def test_the_syllabus_says_what_to_skip():
    text = syllabus.told(EVERY, syllabus.HOURS, 10)
    heads = [line for line in text.splitlines() if line.startswith("## ")]
    assert heads == ["## 2 hours", "## 4 hours", "## 8 hours", "## 10 weeks"]
    assert f"take {sum(one.minutes for one in EVERY)} minutes" in text
    assert "Skip whole chapters: 03 · Threads, warps and blocks, 04" in text
    assert "- At home: exercise" in text
    assert "; 2 · Guess first (" in text
