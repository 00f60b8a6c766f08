"""The site's parts that can be tested without building it: the map, films, requests elsewhere."""

import json
import re
from functools import cache
from html.parser import HTMLParser

import pytest
import yaml

from book import chapters, film, outside
from gemmlab import Gemm, explorers, kernels, records
from gemmlab.course import course_map
from tests.support.paths import ROOT

NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
INDEX = (ROOT / "book" / "index.md").read_text("utf-8")


# ---------------------------------------------------------------------------------- the first page


def test_the_lists_of_chapters_are_up_to_date():
    for page, text in chapters.up_to_date().items():
        assert page.read_text("utf-8") == text, f"run python -m book.chapters: {page.name}"


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_the_map_says_of_each_chapter_what_it_says_itself(path):
    (station,) = (one for one in course_map.notebooks() if one.path.name == path.name)
    assert f"(notebooks/{path.stem})" in INDEX
    assert station.question.endswith("?")
    assert station.idea.endswith(".")
    cells = json.loads(path.read_text("utf-8"))["cells"]
    text = " ".join("".join(cell["source"]) for cell in cells[:6])
    (minutes,) = set(re.findall(r"(\w+) minutes", text))
    assert str(station.minutes) == {"ten": "10"}.get(minutes, minutes)
    needs = set()
    for first, last in re.findall(
        r"(\d+)(?: to (\d+))?", "".join(re.findall(r"You need (ch[^:]*?[:.])", text))
    ):
        needs |= set(range(int(first), int(last or first) + 1))
    own = {"12_tcec_appendix": {12}}  # which says so in its name
    assert {int(number) for number in station.needs} == (needs or own.get(path.stem, set()))


def test_every_need_is_drawn_and_no_line_passes_through_a_station():
    places = [s.track for s in course_map.stations()]
    for first, last in course_map.edges():
        at, bend = places[first], course_map.bends(first, last)
        for row in range(first, last):
            then = places[last if row >= bend else first]
            assert (at, then) in {line[:2] for line in course_map.lines(row)}
            assert row + 1 == last or then != places[row + 1]
            at = then
    for station in course_map.stations():  # what is not drawn comes with what is
        drawn = {
            course_map.stations()[a].number
            for a, b in course_map.edges()
            if b == int(station.number)
        }
        led = {s.number for number in drawn for s in course_map.way(number)}
        assert set(station.needs) <= led


def test_short_ways_are_as_short_as_they_say():
    two, day = (course_map.way(goal) for goal in (course_map.HOURS, course_map.DAY))
    assert sum(s.minutes for s in two) <= 120
    assert 8 * 60 * 0.9 <= sum(s.minutes for s in day) <= 8 * 60 * 1.1


def test_each_chapter_is_in_the_contents():
    toc = yaml.safe_load((ROOT / "book" / "_toc.yml").read_text("utf-8"))
    assert {"glob": "notebooks/*"} in toc["parts"][0]["chapters"]


def test_the_ladder_is_as_steep_as_the_first_notebook_says():
    first, last = (
        records.find(kernel, Gemm(4096, 4096, 4096), kernel.default, "h200").seconds
        for kernel in (kernels.LADDER[0], kernels.LADDER[-1])
    )
    assert 50 < first / last < 60
    assert len(kernels.LADDER) == 7
    start = (ROOT / "notebooks" / "00_start_here.ipynb").read_text("utf-8")
    assert "Seven programs" in start
    assert "more than fifty times" in " ".join(start.replace('\\n",\n    "', " ").split())


# ------------------------------------------------------------------------------------------- units

PAGES = [ROOT / "README.md", *sorted((ROOT / "book").glob("*.md")), *NOTEBOOKS]


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_sizes_of_1024_bytes_have_their_own_prefix(path):
    """As notation.md says: 1 KiB = 1024 B; what is decimal is kB."""
    text = path.read_text("utf-8")
    if path in NOTEBOOKS:
        text = "\n".join("".join(cell["source"]) for cell in json.loads(text)["cells"])
    assert re.findall(r".{20}[\d}] KB\b", text) == []


# ------------------------------------------------------------------------------------------- films


class Film(HTMLParser):
    """The parts of a film that the tests look at."""

    def __init__(self, text):
        super().__init__()
        self.controls, self.images, self.names, self.data, self.caption = [], [], [], "", ""
        self.inside = ""
        self.feed(text)
        self.data = json.loads(self.data)

    def handle_starttag(self, tag, attrs):
        given = dict(attrs)
        if "data-pictures" in given:
            labels = json.loads(given.get("data-labels", "[]"))
            self.controls.append((json.loads(given["data-pictures"]), labels))
        if tag == "img":
            self.images.append(given)
        self.inside = given.get("class") or tag

    def handle_data(self, data):
        if self.inside == "script":
            self.data += data
        elif self.inside == "film-caption":
            self.caption += data

    def handle_endtag(self, tag):
        self.inside = ""


@pytest.fixture(scope="module")
def coalescing():
    return explorers.Coalescing(stride=3, offset=2)


@pytest.fixture(scope="module")
def told(coalescing):
    before = coalescing.message
    made = Film(film.film(coalescing))
    assert coalescing.message == before
    assert (coalescing.stride.value, coalescing.offset.value) == (3, 2)
    return made


def test_a_film_begins_with_what_the_explorer_shows(told, coalescing):
    assert told.caption == coalescing.message
    assert told.images[0]["alt"]
    assert told.images[0]["src"].startswith("data:image/png;base64,")
    for numbers, _ in told.controls:
        assert 0 in numbers


def test_each_position_of_a_control_shows_its_own_value(told):
    (strides, labels), (offsets, others), (sizes, _) = told.controls
    captions = [text for _, text in told.data["pictures"]]
    for number, label in zip(strides, labels, strict=True):
        assert f"element {label}·i + 2, of 4 bytes" in captions[number]
    for number, label in zip(offsets, others, strict=True):
        assert f"element 3·i + {label}, of 4 bytes" in captions[number]
    told_sizes = [re.search(r"of \d bytes", captions[number])[0] for number in sizes]
    assert told_sizes == ["of 2 bytes", "of 4 bytes", "of 8 bytes"]


def test_a_preview_shows_the_ends_of_each_control(coalescing):
    """Strides from 0 to 32 and offsets from 0 to 31, and what the explorer shows now."""
    controls = Film(film.film(coalescing, ends=True)).controls
    assert [labels for _, labels in controls][:2] == [["0", "3", "32"], ["0", "2", "31"]]


def test_every_picture_refers_to_an_image_that_is_there_once(told):
    images, pictures = told.data["images"], told.data["pictures"]
    used = {int(n) for picture, _ in pictures for n in re.findall(r'"@(\d+)"', picture)}
    assert used == set(range(len(images)))
    assert len(set(images)) == len(images)
    assert all(picture.count("<img") == picture.count('"@') >= 1 for picture, _ in pictures)


# What the text beside a film asks for: (explorer, control) -> values.
ASKED = {
    ("Coalescing", "stride"): {0, 1, 2, 4, 8, 16},  # "every second number? Every eighth?"
    ("Coalescing", "offset"): {0, 1, 8, 16},  # "x[i + 1]"; "at which offsets are there 4?"
    ("Roofline", "n"): {128, 143, 144, 229, 230},  # "the smallest n", "batch that is math limited"
    ("Quantization", "n"): {16, 32, 48, 64},  # "which n use all of the GPU?"
    ("Quantization", "m"): {32, 40},
    ("SplitK", "parts"): {4, 5},
    ("StageTimeline", "from step"): {0, 6},
    ("Rounding", "x"): {0.1, 1 + 2**-8, 1 + 3 * 2**-8, 1e-5, 1e-7, 300.0, 500.0},
}


@cache
def beside_a_text(name):
    """An explorer as the first page or the first notebook that has it makes it."""
    pages = [INDEX, *(path.read_text("utf-8").replace('\\"', '"') for path in NOTEBOOKS)]
    call = re.search(rf"explorers\.{name}\(.*\)", "\n".join(pages))[0]
    return eval(call, {"explorers": explorers})


@pytest.mark.parametrize(("name", "control"), film.STOPS)
def test_a_film_has_the_values_that_the_text_beside_it_asks_for(name, control):
    asked = ASKED[name, control]
    if name == "StageTimeline":  # its first picture takes seconds
        assert asked <= set(film.STOPS[name, control])
        return
    (found,) = (one for one in film.controls(beside_a_text(name)) if one.name == control)
    assert asked <= set(found.values)
    assert found.widget.value in found.values


EXPLORERS = {
    "Roofline": {},
    "Rounding": {},
    "Memories": {},
    "Stages": {},
    "KernelLab": {"kernel": "tiled", "n": 128, "tile": 16, "backend": "simulator"},
}


# The build of the site draws all of them, that of the timeline for a minute.
SLOW = [pytest.param(name, marks=pytest.mark.measuring) for name in ("Swizzle", "KernelLab")]


@pytest.mark.parametrize("name", [*(name for name in EXPLORERS if name != "KernelLab"), *SLOW])
def test_sizes_are_told_as_numbers_and_the_first_values_come_back(name):
    explorer = getattr(explorers, name)(**EXPLORERS.get(name, {}))
    before = explorer.message
    made = Film(film.film(explorer))
    assert explorer.message == before == made.caption
    assert len(made.data["pictures"]) > 5
    assert not any(text.startswith("Not possible") for _, text in made.data["pictures"])
    if name == "Roofline":
        labels = made.controls[2][1]
        assert "8192" in labels
        assert all(int(label) & (int(label) - 1) == 0 for label in labels)


def test_a_slider_keeps_its_ends_and_its_first_value():
    kept = film.spread(range(33), 1)
    assert {0, 1, 32} <= set(kept)
    assert len(kept) <= film.MOST + 1
    assert film.spread(range(5), 2) == (0, 1, 2, 3, 4)


def test_a_widget_that_stands_as_text_is_found(tmp_path):
    (tmp_path / "a.html").write_text("<pre>KernelLab(children=(HBox(children=()</pre>")
    (tmp_path / "b.html").write_text('<div class="gemmlab-film">KernelLab</div>')
    assert list(film.missing(tmp_path)) == ["a.html"]


# ------------------------------------------------------------------------------ requests elsewhere


@pytest.mark.parametrize(
    "page",
    [
        '<script src="https://cdn.example/a.js"></script>',
        '<link rel="stylesheet" href="//cdn.example/a.css">',
        '<link rel="preconnect" href="https://cdn.example">',
        '<img src="http://cdn.example/a.png">',
        '<img srcset="a.png 1x, https://cdn.example/b.png 2x">',
        '<iframe src="https://cdn.example"></iframe>',
        '<p style="background: url(https://cdn.example/a.png)">',
        "<style>@import 'https://cdn.example/a.css';</style>",
        "<style>@font-face { src: url(https://cdn.example/a.woff2) }</style>",
        '<script type="module">import a from "https://cdn.example/a.js"</script>',
        '<script>import("https://cdn.example/a.js")</script>',
    ],
)
def test_what_a_page_fetches_from_elsewhere_is_found(tmp_path, page):
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "a.html").write_text(f"<!doctype html><body>{page}")
    ((where, address),) = outside.requests(tmp_path)
    assert where == "sub/a.html"
    assert "cdn.example" in address


def test_what_a_style_sheet_fetches_from_elsewhere_is_found(tmp_path):
    (tmp_path / "a.css").write_text("p { background: url('https://cdn.example/a.png') }")
    assert list(outside.requests(tmp_path)) == [("a.css", "https://cdn.example/a.png")]


@pytest.mark.parametrize(
    "page",
    [
        '<a href="https://example.org">elsewhere</a>',
        '<link rel="canonical" href="https://example.org/a.html">',
        '<img src="data:image/png;base64,AA=="> <img src="_images/a.png">',
        '<script src="_static/a.js"></script> <p>url(https://example.org)</p>',
        '<script>const docs = "https://example.org/";</script>',
    ],
)
def test_links_and_local_files_are_fine(tmp_path, page):
    (tmp_path / "a.html").write_text(f"<!doctype html><body>{page}")
    assert list(outside.requests(tmp_path)) == []
