"""The teacher's sheet of answers, and exams whose answers are computed anew here."""

import re
from fractions import Fraction

import pytest

from gemmlab import cli
from gemmlab.course.exercises import get, names
from gemmlab.course.judging.diagnoses import GENERAL
from gemmlab.course.teaching import classroom, sheets
from gemmlab.course.teaching.sheets import KINDS, drawn, exam, fitting

CHAPTERS = [f"{number:02}" for number in range(1, 13)]


# --------------------------------------------------------------------------------------- answers


def test_every_mistake_of_a_chapter_is_told_with_cause_and_question():
    text = sheets.answers(("04",))
    for name in [name for name in names() if name.startswith("04.")]:
        task = get(name).task
        assert f"### {name} {task.title}" in text
        assert str(get(name).solution()) in text
        for diagnosis, one in task.diagnoses.items():
            assert f"`{diagnosis}`" in text
            assert one.cause in text
            assert f"- Ask: {one.question}" in text
    assert all(one.cause in text for one in GENERAL.values())


def test_what_many_share_is_told_once():
    text = sheets.answers(("04",))
    assert text.count(GENERAL["never-ends"].cause) == 1
    shared = text.partition("exercises have in common\n")[2]
    told = re.findall(r"^\*\*`(.+?)`\*\* (.+)$", shared, re.MULTILINE)
    assert len(told) > len(GENERAL)
    assert len(told) == len(set(told))


def test_a_chapter_without_exercises_says_so():
    assert "This chapter has no exercise." in sheets.answers(("00",))


def test_the_sheet_of_a_class_stays_with_the_teacher(tmp_path, capsys, no_sync):
    folder = tmp_path / "class"
    classroom.new(folder, ("05",), "x")
    assert cli.main(["class", "answers", str(folder)]) == 0
    sheet = (folder / "teacher" / "answers.md").read_text("utf-8")
    assert cli.main(["class", "answers", str(folder)]) == 1  # a teacher may have added to it
    assert "is there already" in capsys.readouterr().err
    assert cli.main(["class", "answers", "05"]) == 0
    assert capsys.readouterr().out == sheet


# ------------------------------------------------------------------------------------------ exams


def test_every_kind_is_drawn_and_the_same_seed_draws_the_same():
    sheets = exam(CHAPTERS, "x", len(KINDS))
    assert sheets == exam(CHAPTERS, "x", len(KINDS))
    assert sheets.questions != exam(CHAPTERS, "y", len(KINDS)).questions
    titles = re.findall(r"^## \d+\. (.+)$", sheets.questions, re.MULTILINE)
    assert titles == re.findall(r"^## \d+\. (.+)$", sheets.answers, re.MULTILINE)
    assert len(set(titles)) == len(KINDS) >= 6


def test_no_answer_is_on_the_sheet_of_questions():
    for one in drawn(CHAPTERS, "x", 40):
        assert one.answer not in one.text


def test_questions_are_of_the_chapters_and_differ():
    found = drawn(("01", "02", "05"), "x", 12)
    titles = {"Operations and bytes", "What limits it?", "Under the roof", "Tiles and waves"}
    assert {one.title for one in found} == titles
    assert len(set(found)) == 12


def test_a_chapter_without_questions_is_quoted():
    with pytest.raises(ValueError, match="chapter '00'; use 01, 02, "):
        fitting(("01", "00"))


def test_more_questions_than_there_are_is_an_error():
    with pytest.raises(ValueError, match="500 questions are more than there are"):
        drawn(("03",), "x", 500)


def test_exam_writes_two_sheets_and_overwrites_none(tmp_path, capsys, no_sync):
    target = tmp_path / "test.md"
    asked = ["class", "exam", "--chapters", "01,02", "--seed", "x", "--output", str(target)]
    assert cli.main(asked) == 0
    sheets = [path.read_text("utf-8") for path in (target, tmp_path / "test.answers.md")]
    assert sheets == [*exam(("01", "02"), "x", 6)]
    target.unlink()
    assert cli.main(asked) == 1
    assert "test.answers.md is there already" in capsys.readouterr().err
    assert not target.exists()


def of(title, count=8):
    """Questions of one kind, each as the numbers of its text and of its answer."""
    found = [one for seed in "abc" for one in drawn(CHAPTERS, seed, 60) if one.title == title]
    assert len(found) >= count
    return [(_numbers(one.text), _numbers(one.answer), one) for one in found]


def _numbers(text):
    return [int(number.replace(",", "")) for number in re.findall(r"(?<![\d.A-Z])\d[\d,]*", text)]


def test_operations_by_hand():
    for (m, n, k, *_, size), (_, flops, read, *_), _ in of("Operations and bytes"):
        assert flops == m * n * k * 2
        assert read == size * (m * k + k * n + m * n)


def test_sectors_by_hand():
    for (_, start, step, *_), (count, *_), _ in of("Sectors of a load"):
        assert count == len({(start + step * lane) // 32 for lane in range(32)})


def test_bank_conflicts_by_hand():
    for (length, *_), (count, *_), one in of("Bank conflicts"):
        banks = [length * lane % 32 for lane in range(32)]
        most = max(banks.count(bank) for bank in banks)
        assert one.answer.startswith("One") if most == 1 else count == most


def test_waves_by_hand():
    for (m, n, bm, bn, sms, *_), (down, across, tiles, waves, last, *_), _ in of("Tiles and waves"):
        assert (down, across, tiles) == (-(-m // bm), -(-n // bn), down * across)
        assert (waves - 1) * sms + last == tiles
        assert 0 < last <= sms


def test_occupancy_by_hand():
    """All three machines have 65536 registers and 2048 threads in 32 blocks, of 4 quarters."""
    for _, (count, *_), one in of("Occupancy"):
        asked = r"(\d+) threads of (\d+) registers, and (\d+) KiB.*registers.* (\d+) KiB of shared"
        threads, registers, own, shared = map(int, re.search(asked, one.text).groups())
        limits = {
            "threads or blocks": min(32, 2048 // threads),
            "shared memory": shared // (own + 1),
            "registers": 4 * (16384 // (32 * registers)) // (threads // 32),
        }
        assert count == min(limits.values())
        named = one.answer.partition("by ")[2].partition(";")[0].split(" and ")
        assert named == [name for name, most in limits.items() if most == count]


def test_rounding_by_hand():
    bits = {"float16": 10, "bfloat16": 7, "tf32": 10}
    for _, (gap, near, down), one in of("Rounding"):
        x = int(re.search(r"around (\d+)", one.text)[1])
        assert gap == 2 ** (x.bit_length() - 1 - bits[one.text.split()[0]])
        assert down == x // gap * gap
        assert near == gap * round(Fraction(x, gap))  # ties to even, too
