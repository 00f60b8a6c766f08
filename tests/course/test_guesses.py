"""Guesses: what is kept, what is answered, and that no chapter gives an answer away."""

import ast
import json
import math
import re
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest

from gemmlab import guess, guesses
from gemmlab.course.guesses import Answer, Guess
from tests.support.paths import ROOT

NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
KEYS = guesses.keys()
HERE = Path(__file__).parent


def of_four(**changes) -> Guess:
    """A guess whose answer is 4 sectors."""
    facts = {"because": "They share it.", "mistakes": {32: "You counted lanes."}} | changes
    return Guess("03.four", "sectors", lambda: Answer(4, **facts))


def answer(key: str) -> Answer:
    return guess(key, unit="")._answer()


# ------------------------------------------------------------------------------------- one guess


def test_without_a_guess_the_answer_is_folded():
    text = of_four().reveal()
    before, fold, inside = text.partition("<details>")
    assert "No guess yet" in before
    assert fold
    assert "4 sectors" in inside
    assert "4" not in before


@pytest.mark.parametrize("number", [4, 4.0, np.int64(4), np.float32(4)])
def test_the_right_number_is_right(number):
    four = of_four()
    assert four(number) == "Kept: **4 sectors**."
    assert four.reveal() == "**4 sectors.** Yours is right. They share it."


@pytest.mark.parametrize(
    ("unit", "one"),
    [
        ("sectors", "1 sector"),
        ("loads per FMA", "1 load per FMA"),
        ("times as fast", "1 times as fast"),
        ("% of the time", "1 % of the time"),
    ],
)
def test_one_of_a_unit_has_no_plural(unit, one):
    lonely = Guess("03.one", unit, lambda: Answer(4, "Why."))
    assert lonely(1) == f"Kept: **{one}**."
    assert lonely(2) == f"Kept: **2 {unit}**."


def test_a_known_mistake_is_named():
    four = of_four()
    four(32)
    assert four.reveal() == (
        "You said 32 sectors; it is **4 sectors**. You counted lanes. They share it."
    )


@pytest.mark.parametrize(
    ("number", "says"),
    [
        (4.3, "a little too much, by 7 %"),
        (7, "too much, by a factor of 1.8"),
        (2, "too little, by a factor of 2"),
        (33, "too much, by a factor of 8.2"),
        (400, "too much, by a factor of 100"),
        (0.25, "upside down"),
        (0, "too little"),
    ],
)
def test_any_other_number_is_answered_by_its_distance(number, says):
    four = of_four()
    four(number)
    assert says in four.reveal()


@pytest.mark.parametrize(
    ("number", "says"),
    [(0.17, "a share of 1"), (595, "upside down"), (25, "8.2 points too much"), (16.8, "right")],
)
def test_per_cent_has_distances_of_its_own(number, says):
    share = Guess("02.share", "% of the time", lambda: Answer(16.8, "Why.", within=0.05))
    share(number)
    assert says in share.reveal()


def test_what_cannot_be_negative_is_refused_below_zero():
    four = of_four()
    four(8)
    assert four(-1) == "`-1` is below 0, as no answer is; use 0 or more. Still kept: 8 sectors."
    assert four.number == 8
    signed = Guess("11.mean", "gaps", lambda: Answer(-0.5, "Why."))
    assert signed(-1) == "Kept: **-1 gaps**."


def test_an_exponent_has_distances_of_its_own():
    power = Guess("12.power", "for e", lambda: Answer(-22, "Why.", exponent=True))
    power(-12)
    assert "10 too much, in the exponent" in power.reveal()


@pytest.mark.parametrize("number", [1.083, 1.08, 143 / 132])
def test_a_rounded_number_is_recognised(number):
    four = of_four(mistakes={143 / 132: "An even deal."})
    four(number)
    assert "An even deal." in four.reveal()


def test_a_number_is_shown_with_the_digits_that_tell_it_from_a_whole_one():
    four = of_four()
    assert four(257 / 256) == "Kept: **1.00391 sectors**."


def test_a_measured_answer_allows_for_its_spread():
    four = of_four(within=0.1)
    four(3.7)
    assert "right" in four.reveal()
    four(3.5)
    assert "right" not in four.reveal()


@pytest.mark.parametrize(
    "nonsense",
    ["32", None, True, math.nan, math.inf, 10**400, [4], 1j, np.complex64(1), np.ones(2), object()],
)
def test_what_is_no_number_is_refused_and_changes_nothing(nonsense):
    four = of_four()
    assert "is no number" in four(nonsense)
    assert "No guess yet" in four.reveal()
    four(7)
    assert "Still kept: 7 sectors" in four(nonsense)
    assert four.number == 7


def test_a_guess_can_be_taken_back():
    four = of_four()
    four(7)
    assert "No guess yet" in four(...)
    assert "No guess yet" in four.reveal()


def test_an_unknown_question_lists_the_known_ones():
    with pytest.raises(ValueError, match=r"'03.nothing'.*03\.rows"):
        guess("03.nothing", unit="")


# ---------------------------------------------------------------------------------- all questions


@pytest.mark.parametrize("key", KEYS)
def test_an_answer_is_a_number_that_no_mistake_shares(key):
    it = answer(key)
    assert math.isfinite(it.number)
    assert it.because.strip()
    assert it.mistakes, "name at least one likely mistake"
    for wrong, overlooked in it.mistakes.items():
        assert not it.near(wrong, it.number), f"{wrong} would be right"
        assert overlooked.strip().endswith((".", "!", "?"))
    for one, other in combinations(it.mistakes, 2):
        assert not it.near(one, other), f"{one} and {other} cannot be told apart"


@pytest.mark.parametrize("key", KEYS)
def test_an_answer_is_found_another_way_too(key):
    found = guess(key, unit="")._answer
    chapter = found.__module__.split(".")[2]
    tests = (HERE / chapter / "test_guesses.py").read_text("utf-8")
    assert f"\ndef test_{found.__name__}():\n" in tests
    assert f"answers.{found.__name__}().number" in tests


# ------------------------------------------------------------------------------------ in chapters


@dataclass(frozen=True)
class Asked:
    """A question as a chapter asks it: the chapter's cells, the cell that asks, name and key."""

    notebook: Path
    cells: list[dict]
    at: int
    name: str
    key: str

    @property
    def revealed_at(self) -> int:
        return next(
            (
                i
                for i, cell in enumerate(self.cells)
                if i > self.at and f"{self.name}.reveal()" in source(cell)
            ),
            -1,
        )


def source(cell: dict) -> str:
    return "".join(cell["source"])


def questions() -> list[Asked]:
    found = []
    for notebook in NOTEBOOKS:
        cells = json.loads(notebook.read_text("utf-8"))["cells"]
        for at, cell in enumerate(cells):
            if cell["cell_type"] == "code":
                for name, key in re.findall(r'(\w+) = guess\(\s*"([^"]+)"', source(cell)):
                    found.append(Asked(notebook, cells, at, name, key))
    return found


ASKED = questions()


def test_each_question_is_asked_once_in_its_chapter():
    assert sorted(q.key for q in ASKED) == sorted(KEYS)
    for q in ASKED:
        assert q.notebook.name.startswith(q.key.partition(".")[0])


def given_away(cell: dict, number: float, unit: str) -> list[str]:
    """The places of a cell that spell the number out."""
    text = source(cell)
    spelt = {f"{number:,g}", f"{number:g}", f"{number:.3g}", f"{number:,.0f}", f"{number:.0f}"}
    if number != int(number):
        spelt -= {f"{number:,.0f}", f"{number:.0f}"}
    if cell["cell_type"] == "markdown":
        word = unit.split()[0].rstrip("s")
        return [
            s
            for s in spelt
            if re.search(rf"(?<![\w.,]){re.escape(s)}(?![\w.,]\d)\W{{0,4}}{word}", text)
        ]
    code = "\n".join("" if line[:1] in "%!" else line for line in text.splitlines())
    asserted = [n for n in ast.walk(ast.parse(code)) if isinstance(n, ast.Assert)]
    numbers = [
        c.value
        for a in asserted
        for c in ast.walk(a)
        if isinstance(c, ast.Constant) and isinstance(c.value, int | float)
    ]
    return [str(n) for n in numbers if math.isclose(n, number)]


@pytest.mark.parametrize("q", ASKED, ids=lambda q: q.key)
def test_no_cell_gives_an_answer_away_before_it_is_revealed(q):
    assert f"{q.name}(...)" in source(q.cells[q.at]), "the chapter is handed out without a guess"
    assert q.revealed_at > q.at, "the question is never answered"
    unit = re.search(r'unit="([^"]*)"', source(q.cells[q.at]))[1]
    number = answer(q.key).number
    for cell in q.cells[max(0, q.at - 3) : q.revealed_at]:
        assert given_away(cell, number, unit) == []


@pytest.mark.parametrize("q", ASKED, ids=lambda q: q.key)
def test_no_answer_or_known_mistake_is_refused(q):
    unit = re.search(r'unit="([^"]*)"', source(q.cells[q.at]))[1]
    it = answer(q.key)
    for number in (it.number, *it.mistakes):
        asked = Guess(q.key, unit, lambda: it)
        assert asked(number).startswith("Kept"), number


def test_the_spoiler_test_can_fail():
    def cell(kind, text):
        return {"cell_type": kind, "source": [text]}

    assert given_away(cell("markdown", "It takes **32 sectors**."), 32, "sectors")
    assert given_away(cell("markdown", "one of 1,024 blocks"), 1024, "blocks")
    assert not given_away(cell("markdown", "It takes 132 sectors."), 32, "sectors")
    assert given_away(cell("code", "assert counted == 32"), 32, "sectors")
    assert not given_away(cell("code", "counted = f(32)"), 32, "sectors")


# ------------------------------------------------------------------------------ on a static page


def shows(cell: dict) -> bool:
    """Whether a code cell prints something or ends in a value, which a page then shows."""
    tree = ast.parse(source(cell))
    prints = any(isinstance(n, ast.Name) and n.id in ("print", "display") for n in ast.walk(tree))
    return prints or (bool(tree.body) and isinstance(tree.body[-1], ast.Expr))


def folded(cell: dict) -> bool:
    """Whether a page folds what the cell shows, by its tag or because it is a fold itself."""
    last = source(cell).splitlines()[-1]
    return "hide-output" in cell["metadata"].get("tags", []) or last.startswith("Markdown(folded(")


def asks(cell: dict) -> bool:
    """Whether the cell is one of a guess, of its answer or of an exercise."""
    return bool(re.search(r"\bguess\(|\.reveal\(\)|exercises\.get\(|\bq\d\.", source(cell)))


def unfolded(cells: list[dict]) -> list[str]:
    """The ids of code cells whose output a page shows at once."""
    code = [cell for cell in cells if cell["cell_type"] == "code"]
    return [c["id"] for c in code if shows(c) and not folded(c) and not asks(c)]


@pytest.mark.parametrize("q", ASKED, ids=lambda q: q.key)
def test_a_page_folds_what_stands_between_a_guess_and_its_answer(q):
    assert unfolded(q.cells[q.at + 1 : q.revealed_at]) == []


def test_the_folding_test_can_fail():
    def cell(text, *tags):
        return {"cell_type": "code", "id": "it", "metadata": {"tags": tags}, "source": [text]}

    for text in ("figure", "for n in (1, 2):\n    print(n)", "x = 1\nMarkdown(table)"):
        assert unfolded([cell(text)]) == ["it"]
        assert unfolded([cell(text, "hide-input")]) == ["it"]
        assert unfolded([cell(text, "hide-output")]) == []
    quiet = (
        "def f():\n    return 1",
        "x = 1",
        "g.reveal()",
        "q1.check(f)",
        'g = guess("a", "b")\ng(4)',
    )
    assert unfolded(list(map(cell, quiet))) == []
