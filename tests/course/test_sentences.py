"""Every sentence with a number is held by a computed value, or says what is given; none is left."""

import pytest

from tests.course import sentences
from tests.course.sentences import NOTEBOOKS, about, agrees, check, cleaned, numbers

CHAPTERS = sorted(NOTEBOOKS)


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_each_number_is_what_its_table_says(chapter, record_property):
    report = check(sentences.cells(chapter), sentences.claims(chapter))
    counts = report.held, report.tested, report.given, len(report.uncovered)
    record_property("sentences", (chapter, *counts))
    assert not report.faults, "\n".join(report.faults)
    assert not report.uncovered, "\n".join(report.uncovered)


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_a_number_made_another_is_found(chapter):
    """Of each cell, each number in turn: what the text says then is a fault, or is uncovered."""
    texts, table = sentences.cells(chapter), sentences.claims(chapter)
    missed = []
    for cell, text in texts.items():
        mine = tuple(claim for claim in table if claim.cell in (cell, ""))
        before = check({cell: text}, mine)
        for found in numbers(text):
            after = check({cell: sentences.changed(text, found)}, mine)
            new = {*after.faults, *after.uncovered} - {*before.faults, *before.uncovered}
            if not new:
                around = text[max(0, found.start() - 40) : found.end() + 20]
                missed.append(f"{cell}: {found[0]} in “{around}”")
    assert not missed, "\n".join(missed)


def test_what_counts_as_a_number():
    text = cleaned("""# 3 headings

On an H200 two loads of FP16 take $2^{-3}$ of `x[4]`, or a quarter of it.

```text
5
```

1. Section 6, exercise 03.1, and [page 7](8.md) of $2mnk$ and $T^2$: 1,024.""")
    assert [found[0] for found in numbers(text)] == ["two", "2^{-3}", "a quarter", "7", "1,024"]


@pytest.mark.parametrize(
    ("text", "expected", "right"),
    [
        ("17.5 ms", 17.46, True),
        ("17.5 ms", 17.44, False),
        ("1,090 cycles", about(1088, 0.005), True),
        ("a third of it", 0.34, True),
        ("a third of it", 0.4, False),
        ("six times", 6.4, True),
        ("six times", 6.6, False),
        ("2^{-11} of it", 2**-11, True),
        ("10⁻⁶ of it", 2**-20, False),
    ],
)
def test_a_number_is_compared_as_the_sentence_rounds_it(text, expected, right):
    (found,) = numbers(text)
    assert agrees(found, expected) is right
