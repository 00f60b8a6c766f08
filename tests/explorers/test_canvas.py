"""A canvas that keeps the pixels of texts draws what Agg draws."""

import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from gemmlab.explorers.shared import base


def pixels(kind, *texts, clip=False):
    """What a canvas of this kind makes of texts, (text, how it looks)."""
    figure = Figure((3, 2), dpi=192)
    drawn = kind(figure)
    for text, look in texts:
        made = figure.text(0.4, 0.5, text, **look)
        if clip:
            made.set(clip_on=True, clip_box=figure.bbox.shrunk(0.7, 1))
    drawn.draw()
    return np.array(drawn.buffer_rgba()).astype(int)


@pytest.mark.parametrize(
    ("text", "look"),
    [
        ("12.3 TFLOP/s", {}),
        ("—∛— Ångström ß g", {"fontsize": 8}),
        ("WWWWWWWW", {"weight": "bold", "style": "italic", "color": "#D55E00"}),
        ("two\nlines, right", {"ha": "right", "va": "top"}),
        ("half", {"alpha": 0.5, "fontsize": 20}),
        ("upright", {"rotation": 90}),
        ("aslant", {"rotation": 30}),
        ("$x^2$", {}),
    ],
)
def test_a_text_looks_as_ever_when_drawn_and_when_stamped(text, look):
    expected = pixels(FigureCanvasAgg, (text, look))
    ink = (expected < 255).any(-1).sum()
    assert ink
    for _ in range(2):
        found = pixels(base.Canvas, (text, look))
        near = np.minimum.reduce(  # it may lie half a pixel beside
            [
                np.abs(np.roll(found, shift, (0, 1)) - expected).sum()
                for shift in ((0, 0), (0, 1), (0, -1), (1, 0), (-1, 0))
            ]
        )
        assert near < 0.35 * np.abs(255 - expected).sum()
        dark, as_ever = ((255 - image[..., :3]).sum() for image in (found, expected))
        assert dark == pytest.approx(as_ever, rel=0.03)


def test_a_stamp_is_clipped_as_a_text_is():
    look = {"fontsize": 20}
    text = "as wide as the figure is"
    found, expected = (
        (pixels(kind, (text, look), clip=True) < 255).any(-1)
        for kind in (base.Canvas, FigureCanvasAgg)
    )
    ends = [np.flatnonzero(image.any(0))[-1] for image in (found, expected)]
    assert ends[0] == pytest.approx(ends[1], abs=1)
    assert ends[0] < 0.71 * found.shape[1]


def test_each_look_has_its_own_stamp_and_is_laid_out_once():
    base.stamp.cache_clear()
    figure = Figure((3, 2), dpi=192)
    drawn = base.Canvas(figure)
    text = figure.text(0.1, 0.5, "n = 128")
    looks = ({}, {"color": "red"}, {"weight": "bold"}, {"fontsize": 14})
    images = []
    for look in (*looks, *reversed(looks)):
        text.set(**{"color": "black", "weight": "normal", "fontsize": 10, **look})
        drawn.draw()
        images.append(np.array(drawn.buffer_rgba()))
    assert base.stamp.cache_info().misses == len(looks)
    for first, again in zip(images, images[::-1], strict=True):
        assert np.array_equal(first, again)
    assert not any(np.array_equal(images[0], other) for other in images[1:4])


def test_a_text_of_spaces_is_nothing():
    assert (pixels(base.Canvas, ("  ", {})) == 255).all()
