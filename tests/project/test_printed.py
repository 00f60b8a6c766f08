"""The book on paper: what the pages of the site become before Chromium prints them."""

import json
from base64 import b64encode

import pytest

printed = pytest.importorskip("book.printed")  # what it reads pages with comes with run.py book

PIXELS, VECTOR = b64encode(b"\x89PNG of a figure").decode(), "<svg>a figure</svg>"
INDEX = """<html><head><link rel="stylesheet" href="_static/a.css"><script src="_static/b.js">
</script></head><body><nav class="bd-links"><p class="caption">Chapters</p><ul>
<li><a href="notebooks/01.html">1 · One</a></li><li><a href="notebooks/02.html">2 · Two</a>
<ul><li><a href="why/001.html">001</a></li></ul></li></ul></nav>
<article class="bd-article"><h1>gemmlab</h1></article></body></html>"""
CHAPTER = f"""<html><head><link rel="stylesheet" href="../_static/a.css">
<script defer src="../_static/mathjax/tex.js"></script></head><body><article class="bd-article">
<section id="one"><h1>1 · One<a class="headerlink" href="#one">#</a></h1>
<a id="here" href="#sub">here</a> <a href="02.html#far">far</a> <a href="02.html">two</a>
<a href="https://example.org">out</a> <a href="../lite/index.html">run</a>
<label for="sub">name</label><h2 id="sub">Sub</h2>
<details class="admonition hide above-input"><summary>Show</summary>code that draws</details>
<details class="admonition hide below-input"><summary>Show</summary><p>an output</p></details>
<details><summary>The answer</summary>42</details>
<img class="gemmlab-picture" alt="a figure" src="data:image/png;base64,{PIXELS}">
<table><tr><td>1</td><td>2</td></tr></table>
<table class="docutils"><tr><th>a</th></tr><tr>{"<td>0</td>" * 12}</tr></table>
<img alt="a photograph" src="../_images/photo.png">
<div class="gemmlab-film"><div class="film-controls">slider</div>
<div class="film-picture"><img alt="a film" src="data:image/png;base64,AAAA"></div>
<p class="film-note">move</p><script type="application/json">{{}}</script></div>
<div class="cell_input"><pre>a short listing</pre></div></section></article></body></html>"""


@pytest.fixture
def site(tmp_path):
    for name, text in {
        "index.html": INDEX,
        "notebooks/01.html": CHAPTER,
        "notebooks/02.html": CHAPTER.replace("1 · One", "2 · Two").replace('id="here"', 'id="far"'),
        "why/001.html": CHAPTER,
    }.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text, "utf-8")
    return tmp_path


@pytest.fixture
def pages(site):
    return list(printed.leaves(site))


@pytest.fixture
def chapter(site, pages):
    known = {leaf.file: leaf for leaf in pages}
    return printed.article(site, pages[1], known, {PIXELS: VECTOR})


def test_pages_come_in_the_order_of_the_contents(pages):
    assert [(leaf.part, leaf.name, leaf.depth) for leaf in pages] == [
        ("", "index", 1),
        ("Chapters", "notebooks-01", 1),
        ("Chapters", "notebooks-02", 1),
        ("Chapters", "why-001", 2),
    ]


def test_every_link_leads_to_paper_or_out(chapter):
    links = {link.get_text(): link.get("href") for link in chapter.find_all("a")}
    assert links == {
        "here": "#notebooks-01--sub",
        "far": "#notebooks-02--far",
        "two": "#notebooks-02",
        "out": "https://example.org",
        "run": None,
    }
    assert chapter.label["for"] == "notebooks-01--sub"


def test_every_anchor_is_there_once(site, pages):
    text = printed.document(site, pages, {})
    whole = printed.BeautifulSoup(text, "html.parser")
    names = [box["id"] for box in whole.select("[id]")]
    assert len(names) == len(set(names)) > 8
    links = [link["href"] for link in whole.select("a[href^='#']")]
    assert {link.removeprefix("#") for link in links} <= set(names)


def test_figures_are_vectors_films_their_first_picture_and_answers_open(chapter):
    sources = {picture["alt"]: picture["src"] for picture in chapter.find_all("img")}
    assert sources == {
        "a figure": f"data:image/svg+xml;base64,{b64encode(VECTOR.encode()).decode()}",
        "a film": "data:image/png;base64,AAAA",
        "a photograph": "_images/photo.png",
    }
    assert chapter.details.has_attr("open")
    text = chapter.get_text()
    assert "an output" in text
    for useless in ("code that draws", "Show", "slider", "move", "#"):
        assert useless not in text


def test_short_listings_stay_on_a_page(chapter):
    assert "printed-whole" in chapter.select_one(".cell_input")["class"]


def test_letters_of_a_wide_table_are_small(chapter):
    narrow, wide = chapter.find_all("table")
    assert (narrow.get("class"), wide["class"]) == (None, ["docutils", "printed-wide"])


def test_the_contents_have_the_numbers_of_pages(pages):
    text = printed.contents(pages, {"notebooks-02": 19})
    assert '<a href="#notebooks-02"><span>2 · Two</span><span>19</span></a>' in text
    assert text.count("printed-part") == 1


def test_styles_and_formulas_are_loaded_once_and_other_scripts_never(site, pages):
    head = printed.BeautifulSoup(printed.head(site, pages), "html.parser")
    assert [link["href"] for link in head.find_all("link")] == ["_static/a.css"]
    assert [script["src"] for script in head.find_all("script")] == ["_static/mathjax/tex.js"]


def test_without_a_browser_a_line_says_what_prints(monkeypatch):
    monkeypatch.setattr(printed.shutil, "which", lambda _: None)
    with pytest.raises(printed.MissingError, match="apt install chromium"):
        printed.chromium()


def test_vectors_are_found_again_by_their_pixels(tmp_path):
    data = {"image/png": PIXELS + "\n", "image/svg+xml": VECTOR.splitlines(), "text/html": "…"}
    cells = [{"outputs": [{"data": data}, {"data": {"image/png": "other"}}]}, {"source": ""}]
    (tmp_path / "executed").mkdir()
    (tmp_path / "executed" / "base.ipynb").write_text(json.dumps({"cells": cells}), "utf-8")
    assert printed.vectors.kept(tmp_path) == {PIXELS: VECTOR}


def test_a_figure_keeps_the_same_vectors_beside_its_pixels():
    from gemmlab import plots

    figure, (ax,) = plots.figure(3, 2)
    ax.plot([1, 2])
    first = printed.vectors.svg(figure)
    assert first == printed.vectors.svg(figure)
    assert first.count("<path") > 5
    assert "<image" not in first
