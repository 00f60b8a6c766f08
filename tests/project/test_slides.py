"""What of a chapter is on slides, and what is the speaker's."""

import pytest

slides = pytest.importorskip("book.slides")  # what it reads pages with comes with run.py book

CHAPTER = """<html><head><link rel="stylesheet" href="../_static/a.css">
<script defer src="../_static/film.js"></script><script src="../_static/doctools.js"></script>
</head><body><article class="bd-article"><section id="one">
<h1>6 · One<a class="headerlink" href="#one">#</a></h1>
<p>A first sentence. <a href="07.html">Seven</a></p>
<p>A question: <strong>which?</strong></p>
<p>This leads to a figure.</p>
<div class="cell"><details class="hide above-input"><summary>Show</summary>code</details>
<div class="cell_output"><figure><img alt="a figure" src="a.png"></figure></div></div>
<section id="two"><h2>Two</h2><p><strong>Predict.</strong> How many?</p>
<div class="cell"><div class="cell_input"><pre>many = guess("06.many")
many(...)</pre></div><div class="cell_output"><p>No guess yet: put a number</p></div></div>
<div class="cell"><div class="cell_input"><pre>many.reveal()</pre></div>
<div class="cell_output"><p>No guess yet.</p>
<details><summary>The answer</summary>42</details></div></div>
<div class="cell"><div class="cell_input"><pre>explorers.Roofline(n=4)</pre></div>
<div class="cell_output"><div class="gemmlab-film">a film</div></div></div>
<details class="hide below-input"><summary>Show output</summary>a table</details>
</section></section></article></body></html>"""


@pytest.fixture
def site(tmp_path):
    for name in ("06_one", "07_two", "12_tcec", "12_tcec_appendix"):
        (tmp_path / "notebooks").mkdir(exist_ok=True)
        (tmp_path / "notebooks" / f"{name}.html").write_text(CHAPTER, "utf-8")
    return tmp_path


@pytest.fixture
def shown(site):
    parsed = slides.BeautifulSoup(slides.slides(site / "notebooks" / "06_one.html"), "html.parser")
    blocks = parsed.select("article > .block")
    return parsed, [(one["data-kind"], " ".join(one.get_text().split())) for one in blocks]


def test_a_chapter_is_found_by_its_number(site):
    names = {n: slides.chapter(site, n).stem for n in ("06", "12", "12_tcec_appendix")}
    assert names == {"06": "06_one", "12": "12_tcec", "12_tcec_appendix": "12_tcec_appendix"}
    with pytest.raises(ValueError, match=r"begins with '6'; there are: 06_one, 07_two"):
        slides.chapter(site, "6")


def test_questions_and_pictures_are_shown_and_other_text_is_noted(shown):
    assert shown[1] == [
        ("heading", "6 · One"),
        ("note", "A first sentence. Seven"),
        ("shown", "A question: which?"),
        ("lead", "This leads to a figure."),
        ("shown", ""),
        ("heading", "Two"),
        ("lead", "Predict. How many?"),
        ("shown", "The answer42"),
        ("shown", "a film"),
        ("shown", "What comes outa table"),
    ]


def test_slides_load_what_they_need_of_the_site_and_nothing_else(shown):
    parsed, _ = shown
    loaded = [script["src"] for script in parsed.select("script[src]")]
    assert loaded == ["../_static/film.js", "../_static/slides.js"]
    assert parsed.select_one("a")["href"] == "../notebooks/07.html"
    assert parsed.title.string == "6 · One"
