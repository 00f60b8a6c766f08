"""Colours in a dark theme: the filter of figures keeps their hues, and their contrast to paper."""

import colorsys
import re

import numpy as np
import pytest
from matplotlib.colors import to_rgb

from gemmlab.plots.shared import figures, style
from tests.support.paths import ROOT

# Source: W3C, Filter Effects Module 1, the matrices of hue-rotate() and saturate().
LUMA = np.tile([0.213, 0.715, 0.072], (3, 1))
FILTER = re.compile(r"filter: ?invert\(([\d.]+)\) hue-rotate\(180deg\) saturate\(([\d.]+)\)")
COLOURS = ("INK", "GREY", "BLUE", "VERMILION", "GREEN", "PURPLE", "ORANGE", "SKY", "YELLOW")


def dark(colour):
    """What the filter makes of a colour, as a browser computes it."""
    inverted, saturation = map(float, FILTER.search(figures.DARK).groups())
    rgb = inverted + (1 - 2 * inverted) * np.array(to_rgb(colour))
    for keep in (-1, saturation):  # a turn by 180 degrees is a saturation of -1
        rgb = np.clip((LUMA + keep * (np.eye(3) - LUMA)) @ rgb, 0, 1)
    return rgb


def contrast(one, other):
    """The ratio that WCAG 2 defines."""

    def luminance(rgb):
        rgb = np.asarray(rgb)
        linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
        return linear @ [0.2126, 0.7152, 0.0722]

    low, high = sorted(map(luminance, (one, other)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("name", COLOURS)
def test_a_colour_stands_out_on_dark_paper_as_it_does_on_white(name):
    colour = to_rgb(getattr(style, name))
    light, shown = contrast(colour, (1, 1, 1)), contrast(dark(colour), dark("white"))
    assert shown >= min(light, 7)
    (hue, _, saturation), (turned, _, left) = (
        colorsys.rgb_to_hls(*rgb) for rgb in (colour, dark(colour))
    )
    if saturation:
        assert turned == pytest.approx(hue, abs=0.02)
    else:
        assert left == pytest.approx(0, abs=1e-6)


def test_white_paper_becomes_dark_and_is_a_little_lighter_than_the_page():
    assert dark("white") == pytest.approx([0.1] * 3)


def test_the_site_turns_its_pictures_over_as_the_lab_does():
    site = (ROOT / "book" / "_static" / "gemmlab.css").read_text("utf-8")
    assert FILTER.findall(site) == FILTER.findall(figures.DARK)
