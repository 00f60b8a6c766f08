"""The explorer of fragments without a browser: what the page is given. The rest: tests/browser."""

import json
import re
from html import unescape
from html.parser import HTMLParser

import numpy as np
import pytest

from gemmlab.explorers import Fragments
from gemmlab.explorers.fragments import described
from gemmlab.instructions.fragments import LANES, LAYOUTS


def data(page, name):
    (text,) = re.findall(rf'data-{name}="([^"]*)"', page._repr_html_())
    return json.loads(unescape(text))


def test_first_choice():
    assert data(Fragments("m16n8k16", "B", lane=7, register=3), "start") == {
        "layout": 1, "lane": 7, "register": 3,
    }  # fmt: skip
    assert Fragments("m16n8k16", "B", lane=7, register=3).element == (15, 1)
    assert data(Fragments(register=None), "start")["register"] is None
    assert Fragments(register=None).element is None


@pytest.mark.parametrize("number", range(len(LAYOUTS)))
def test_the_page_is_told_every_bit(number):
    told, layout = data(Fragments(), "layouts")[number], LAYOUTS[number]
    assert told == json.loads(json.dumps(described(layout)))
    lane, register = np.arange(LANES)[:, None], np.arange(layout.registers)[None, :]
    # As the script adds them up.
    places = [
        sum(
            step * ((lane >> bit if bit < 5 else register >> (bit - 5)) & 1)
            for bit, step in enumerate(steps)
        )
        + 0 * lane
        + 0 * register
        for steps in told["steps"]
    ]
    assert np.array_equal(places[0], layout.matrix(lane, register) + 0 * lane + 0 * register)
    assert np.array_equal(np.stack(places[1:], axis=-1), layout.table)
    assert (told["rows"], told["cols"]) == layout.shape


def test_titles_tell_the_operands_of_an_instruction_apart():
    told = data(Fragments(), "layouts")
    assert len({(t["instruction"], t["title"]) for t in told}) == len(LAYOUTS)


def test_the_page_needs_nothing_else():
    text = Fragments()._repr_html_()
    assert len(text) < 40_000
    assert not re.search(r"https?:|@import|\bfetch\b|src=|href=", text)
    assert 'role="group"' in text
    assert "data-lm-suppress-shortcuts" in text

    class Balance(HTMLParser):
        open = 0

        def handle_starttag(self, tag, attrs):
            self.open += 1

        def handle_endtag(self, tag):
            self.open -= 1

    parser = Balance()
    parser.feed(text)
    assert parser.open == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"instruction": "m4n4k4"}, "no layout of 'A' of 'm4n4k4'"),
        ({"operand": "D"}, "no layout of 'D'"),
        ({"lane": 32}, "lane=32 is too large; use 0 to 31"),
        ({"lane": -1}, "lane=-1 is too small"),
        ({"register": 8}, "register=8 is too large; use 0 to 7"),
    ],
)
def test_what_there_is_not(arguments, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        Fragments(**arguments)


def test_a_lane_is_a_whole_number():
    with pytest.raises(TypeError):
        Fragments(lane=1.5)
