"""Reviews: questions tell right from wrong, decks go by what was missed, nothing is lost."""

import json
import threading
from pathlib import Path

import pytest

from gemmlab.course import chapters, course_map, exercises, progress, review
from gemmlab.course.guesses import guess
from gemmlab.course.progress import Event
from gemmlab.course.teaching import chapter as notebook_of
from tests.course.review_answers import FOUND, numbers

WITH_DECKS = [f"{number:02}" for number in range(1, 14)]
MAKERS = {key: make for chapter in chapters() for key, make in review.deck(chapter).items()}
DAY = 86_400.0


@pytest.fixture(autouse=True)
def _fresh(monkeypatch):
    """Nothing is kept, and nothing was dealt."""
    monkeypatch.setattr(progress, "_REMEMBERED", [])
    monkeypatch.setattr(review, "_DEALT", {})


@pytest.fixture
def learner(monkeypatch, tmp_path) -> Path:
    """The file of somebody who works in a notebook."""
    path = tmp_path / progress.FILE
    monkeypatch.setattr(progress, "file", lambda: path)
    return path


def right_of(deck: review.Review) -> list[float]:
    return [question.answer.number for question in deck.asked.values()]


# ------------------------------------------------------------------------------------ the questions


@pytest.mark.parametrize("chapter", WITH_DECKS)
def test_each_chapter_has_three_questions_that_mix_it_with_earlier_ones(chapter):
    deck = review.deck(chapter)
    assert len(deck) >= 3
    for key, make in deck.items():
        assert make.earlier, key
        assert all(earlier < chapter and earlier in chapters() for earlier in make.earlier), key
        places = [place.split(".") for place in make.read.split()]
        assert int(chapter) in {int(number) for number, _ in places}, key
        for number, section in places:
            titles = {
                part.title.partition(".")[0] for part in notebook_of.read(f"{int(number):02}").parts
            }
            assert section in titles, (key, number, section)


@pytest.mark.parametrize("key", MAKERS)
def test_the_right_answer_passes_and_three_wrong_ideas_fail(key):
    seen = set()
    for seed in range(16):
        question = review.asked(MAKERS[key], str(seed))
        seen.add(question.text)
        one = review.Review(key[:2], 1, [key], 0)
        one.asked = {key: question}
        number = question.answer.number
        again = FOUND[key](question.text, *numbers(question.text))
        assert number == pytest.approx(again, rel=question.answer.within / 2 or 1e-9), question
        assert "right" in one.answer(number), question
        digits = float(f"{number:.4g}")
        assert "right" in one.answer(digits if question.answer.within else number)
        wrong = question.answer.mistakes
        assert len(wrong) >= 3
        for mistake, why in wrong.items():
            told = one.answer(mistake)
            assert why in told
            assert "it is **" in told
    assert len(seen) >= 5, "values are drawn anew"


def test_a_question_whose_mistakes_are_right_is_not_asked():
    def same(draw):
        return review.Question("?", review.Answer(8, "", {8: "a", 2: "b", 3: "c"}))

    with pytest.raises(ValueError, match="same has no values"):
        review.asked(same, "0")


# ------------------------------------------------------------------------------ answering a review


def test_nothing_is_told_before_an_answer():
    deck = exercises.review("06")
    shown = deck.answer(..., ..., ...)
    assert shown == str(deck) == repr(exercises.review("06"))
    assert ">" not in shown
    assert "dots" in shown
    first = deck.answer(right_of(deck)[0], ..., ...)
    assert first.count("> ") == 1
    assert "Read again: chapter" in first


def test_without_a_chapter_it_is_of_the_one_that_was_worked_on_last():
    assert exercises.review().chapter == "01"
    progress.keep("guess", "05.fit", True)
    progress.keep("guess", "00.sectors", True)  # whose chapter has no questions
    assert exercises.review().chapter == "05"


def test_what_is_no_answer_is_told_in_words():
    deck = exercises.review("06")
    assert "`'many'` is no number" in deck.answer("many", ..., ...)
    assert deck.answer(1, 2, 3, 4).startswith("4 answers; the review has 3 questions.")
    assert progress.events() == []


def test_the_first_answer_is_kept_and_the_deck_stays_the_same(learner):
    deck = exercises.review("06")
    wrong = next(iter(next(iter(deck.asked.values())).answer.mistakes))
    deck.answer(wrong, ..., ...)
    deck.answer(*right_of(deck))
    answers = [e for e in progress.events() if e.kind == "review"]
    assert [e.right for e in answers] == [False, True, True]
    review._DEALT.clear()  # the kernel ends
    assert str(exercises.review("06")) == str(deck)
    assert str(exercises.review("06", 2)) != str(deck)


def test_a_review_that_is_looked_at_writes_nothing(learner):
    shown = str(exercises.review("06"))
    assert not learner.exists()
    review._DEALT.clear()
    assert str(exercises.review("06")) == shown  # on pages and in tests: the same for all


@pytest.mark.parametrize(
    ("chapter", "number", "message"),
    [
        ("99", 1, "no review of chapter '99'; use one of 01, 02"),
        ("00", 1, "'00'"),
        ("06", 0, "number"),
    ],
)
def test_what_there_is_no_review_of_is_refused(chapter, number, message):
    with pytest.raises(ValueError, match=message):
        exercises.review(chapter, number)


def test_the_last_chapter_asks_of_the_whole_course():
    assert len(exercises.review("14").asked) == 3


# -------------------------------------------------------------------------------- what comes when


def answered(key: str, right: bool, days_ago: float, deck: str = "x") -> Event:
    return Event("review", key, right, -days_ago * DAY, {"deck": deck, "earlier": []})


def test_what_was_missed_is_more_likely():
    keys = ("06.loads_for_an_fma", "06.warps_by_registers")  # which use chapters 4 and 3
    kept = [Event("guess", "04.reads", False, 0.0), Event("guess", "04.reads", True, 1.0)]
    kept += [Event("exercise", "04.1", False, 2.0)]
    weights = review.weights(keys, "06", kept, 0.0)
    assert weights[keys[0]] == 4 * weights[keys[1]]  # 1 + a guess + an exercise of 2
    kept += [Event("exercise", "04.1", True, 3.0)]
    weights = review.weights(keys, "06", kept, 0.0)
    assert weights[keys[0]] == 2 * weights[keys[1]]  # it was passed


def test_what_was_right_comes_back_later_and_later():
    (key,) = keys = ("04.padded_column",)
    fresh = review.weights(keys, "06", [], 0.0)[key]

    def weight(*answers):
        return review.weights(keys, "06", answers, 0.0)[key] / fresh

    assert weight(answered(key, True, 0.5)) == review.REST
    assert weight(answered(key, True, 1.5)) == 1
    assert weight(answered(key, True, 4.5), answered(key, True, 1.5)) == review.REST
    assert weight(answered(key, True, 9), answered(key, True, 3.5)) == 1
    assert weight(answered(key, True, 9), answered(key, False, 0.1)) > review.MISSED


def test_a_deck_goes_by_the_weights():
    missed = [Event("review", "03.idle_threads", False, 0.0, {"deck": "03/1", "earlier": ["01"]})]
    counts = dict.fromkeys((False, True), 0)
    for seed in range(60):
        for known in counts:
            keys = review.drawn("06", missed if known else [], seed, DAY)
            assert len(set(keys)) == 3
            assert keys[0].startswith("06")
            counts[known] += "03.idle_threads" in keys
    assert counts[True] > 3 * counts[False] > 0


# ------------------------------------------------------------------------------ the map, the file


def test_the_map_is_coloured_by_what_was_done():
    for kind, key, right in (("exercise", "04.1", True), ("exercise", "04.2", False)):
        progress.keep(kind, key, right)
    progress.keep("guess", "00.sectors", False)
    shown = course_map.course_map()
    page = shown._repr_html_()
    rows = page.split("<li>")[1:]
    assert "1 of 5 exercises, 0 of 8 guesses" in rows[4]
    assert 'stroke-dasharray="8 100"' in rows[4]  # 1 of 13
    assert "1 of 1 guess<" in rows[0]
    assert 'class="stop kernels full"' in rows[0]
    assert page.count(" full") == 1
    assert [row.count("<a href=") for row in rows] == [1] * 12 + [2] + [1] * 2
    assert "One day: chapters 0, 1, 3, 4 and 6" in repr(shown)


def test_guesses_and_exercises_are_kept(learner):
    rows = guess("03.rows", "rows")
    rows(...)
    rows.reveal()
    assert not learner.exists()
    for number in (2, 16, 16, 2):
        rows(number)
        rows.reveal()
    exercises.get("04.1").check(None)
    found = [(e.kind, e.key, e.right) for e in progress.events()]
    guesses = [("guess", "03.rows", right) for right in (True, False, True)]
    assert found == [*guesses, ("exercise", "04.1", False)]
    assert progress.done(progress.events(), "guess") == {"03.rows"}
    assert progress.done(progress.events(), "exercise") == set()


def test_damaged_lines_are_passed_over_and_stay(learner):
    progress.keep("guess", "03.rows", True)
    torn = b'{"kind": "guess", "key": "04.re'
    others = [b"\xff\xfe", b"[1, 2]", b'{"kind": "guess", "key": 3, "right": true, "when": 1.0}']
    with learner.open("ab") as file:
        file.write(b"\n".join([*others, torn]))
    progress.keep("guess", "05.fit", False)
    assert [e.key for e in progress.events()] == ["03.rows", "05.fit"]
    assert torn in learner.read_bytes()


def test_several_notebooks_may_write_at_once(learner):
    def work(name):
        for i in range(20):
            progress.keep("guess", f"{name}.{i}", True)

    threads = [threading.Thread(target=work, args=(f"0{name}",)) for name in range(1, 5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({e.key for e in progress.events()}) == 80
    assert all(json.loads(line) for line in learner.read_bytes().split(b"\n") if line)


def test_a_folder_that_cannot_be_written_costs_nothing_else(monkeypatch, tmp_path):
    monkeypatch.setattr(progress, "file", lambda: tmp_path / "missing" / progress.FILE)
    progress.keep("guess", "03.rows", True)
    assert progress.events() == []
