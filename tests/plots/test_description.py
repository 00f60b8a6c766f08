"""What figures say in words, and how a page receives it."""

from base64 import b64decode
from html.parser import HTMLParser
from io import BytesIO

import pytest
from IPython.core.interactiveshell import InteractiveShell
from PIL import Image

from gemmlab import plots
from gemmlab.plots.shared.figures import DENSITY
from gemmlab.plots.shared.style import described


@pytest.fixture
def figure():
    made, (ax,) = plots.figure()
    ax.plot([1, 2], [3, 4])
    return made


class Images(HTMLParser):
    """The attributes of each <img> of a page."""

    def __init__(self, page):
        super().__init__()
        self.found = []
        self.feed(page)

    def handle_starttag(self, tag, attributes):
        if tag == "img":
            self.found.append(dict(attributes))


def test_jupyter_gets_a_sharp_picture_that_says_what_it_shows(figure):
    plots.describe(figure, 'Speed rises from 1 to 2, "twice" as <fast>.')
    data, about = InteractiveShell.instance().display_formatter.format(figure)
    (image,) = Images(data["text/html"]).found
    assert image["alt"] == 'Speed rises from 1 to 2, "twice" as <fast>.'
    kind, _, code = image["src"].partition(",")
    assert kind == "data:image/png;base64"
    assert code == data["image/png"]
    picture = Image.open(BytesIO(b64decode(code)))
    assert picture.text["Description"] == image["alt"]
    shown = int(image["width"]), int(image["height"])
    assert tuple(side // DENSITY for side in picture.size) == shown
    assert shown == tuple(about["image/png"][side] for side in ("width", "height"))
    assert DENSITY >= 2


def test_nothing_is_cut_off(figure):
    plain = Image.open(BytesIO(plots.shared.figures.png(figure, 1))).size
    figure.axes[0].text(1.4, 0.5, "outside of the axes", transform=figure.axes[0].transAxes)
    wider = Image.open(BytesIO(plots.shared.figures.png(figure, 1))).size
    assert wider[0] > plain[0] + 100
    assert wider[1] == plain[1]


def test_a_figure_is_described_when_all_of_its_axes_are():
    figure, (left, right) = plots.figure(columns=2)
    plots.describe(left, "It rises.")
    plots.provenance(right, "simulated")
    assert not described(figure)
    plots.describe(right, "It falls.")
    assert described(figure)
    assert plots.alt(figure) == "It rises. It falls. Source: simulated."


def test_titles_and_sources_are_said_once_each():
    figure, axes = plots.figure(columns=2)
    for ax, name in zip(axes, ("one", "two"), strict=True):
        plots.style.title(ax, name)
        plots.describe(ax, f"{name} is drawn.")
        plots.provenance(ax, "predicted")
    assert plots.alt(figure) == "one: one is drawn. two: two is drawn. Source: predicted."


def test_the_writers_words_stand_for_those_of_the_axes(figure):
    plots.describe(figure.axes[0], "Something general.")
    plots.provenance(figure.axes[0], "computed")
    plots.describe(figure, "What matters\n   here.")
    assert plots.alt(figure) == "What matters here. Source: computed."


def test_a_later_text_replaces_the_earlier(figure):
    for n in (1, 2):
        plots.describe(figure.axes[0], f"{n} points.", "points")
    plots.provenance(figure.axes[0], "predicted")
    plots.provenance(figure.axes[0], "measured here")
    assert plots.alt(figure) == "2 points. Source: measured here."


def test_a_figure_of_which_nothing_is_said_names_its_quantities(figure):
    figure.axes[0].set(xlabel="n", ylabel="speed [FLOP/s]")
    assert plots.alt(figure) == "speed [FLOP/s] against n"
    assert not described(figure)


@pytest.mark.parametrize("text", ["", "  \n"])
def test_an_empty_description_is_refused(figure, text):
    with pytest.raises(ValueError, match="say what the figure shows"):
        plots.describe(figure, text)
