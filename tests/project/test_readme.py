"""README.md: its table is what the records say, its code runs, its links lead somewhere."""

import re

import pytest
from PIL import Image

from book import readme
from gemmlab import kernels, plots
from tests.support.paths import ROOT

README = (ROOT / "README.md").read_text("utf-8")


def test_the_ladder_is_up_to_date():
    assert readme.up_to_date(README) == README, "run: python book/readme.py"
    assert all(f"[{k.name}](gemmlab/kernels/simt/{k.name}.py)" in README for k in kernels.LADDER)


def test_the_picture_is_up_to_date_and_sharp():
    words = plots.alt(readme.picture())
    with Image.open(readme.PICTURE) as picture:
        assert picture.text["Description"] == words, "run: python book/readme.py"
        assert picture.width > 1600
    assert f"![{words}](book/images/ladder.png)" in README


def test_the_code_runs():
    (code,) = re.findall(r"```python\n(.*?)```", README, re.S)
    scope = {}
    exec(code, scope)
    assert scope["m"].passed
    assert dict(scope["m"].counters) == {k: v for k, v in scope["p"].counters.items() if v}


@pytest.mark.parametrize("target", sorted(set(re.findall(r"\]\(([^)#]+)\)", README))))
def test_links_lead_somewhere(target):
    assert target.startswith("https://") or (ROOT / target).exists()


def test_every_chapter_is_in_the_map():
    for path in (ROOT / "notebooks").glob("*.ipynb"):
        assert f"notebooks/{path.name}" in README
