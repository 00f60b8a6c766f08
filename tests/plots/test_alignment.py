"""The figure of aligned terms: what it draws is what the emulator does."""

from fractions import Fraction

import numpy as np
import pytest

from gemmlab import plots
from gemmlab.numerics import TENSOR_CORES, fused_dot_add
from gemmlab.plots.alignment import CUT, KEPT, PRECISION, rows

A, B, C = [1.0, 1.5, -1.0], [2.0**-13, 2.0**-13, 3 * 2.0**-14], 2048.0


@pytest.fixture
def ax():
    return plots.figure()[1][0]


@pytest.mark.parametrize("arch", TENSOR_CORES)
def test_sum_is_that_of_the_emulator(arch):
    found, _ = rows(A, B, C, arch)
    total = found[-1]
    unit = Fraction(2) ** total.last
    rounded = int(total.value / unit) * unit  # toward zero
    assert float(rounded) == float(fused_dot_add(np.float16(A), np.float16(B), C, arch=arch))


def test_every_bit_has_its_box(ax):
    artists = plots.alignment(ax, A, B, C)
    image = artists.image.get_array()
    found, largest = rows(A, B, C, "sm_90")
    assert largest == 11
    written = [[] for _ in found]
    for text in artists.digits:
        x, y = text.get_position()
        written[y].append((x, text.get_text()))
        assert tuple(image[y, x]) in (KEPT, CUT)
    assert len(artists.digits) == (image < 1).any(axis=2).sum()
    for row, boxes in zip(found, written, strict=True):
        digits = "".join(bit for _, bit in sorted(boxes))
        assert digits.strip("0") == f"{row.value.numerator:b}".strip("-0")
        assert digits[0] == digits[-1] == "1"
    labels = [label.get_text() for label in ax.get_yticklabels()]
    assert labels == ["c", "a0·b0", "a1·b1", "−a2·b2", "sum"]


def test_what_is_cut(ax):
    artists = plots.alignment(ax, [1.5, 1.0], [1.0, 2.0**-13], 2.0**14, "sm_70")
    image = artists.image.get_array()
    assert not np.all(image == CUT, axis=2)[0].any()  # c sets the exponent
    assert np.all(image == CUT, axis=2)[2].any()  # 2^-13 is 27 below it
    at = artists.cut.get_xdata()[0]
    assert at == 23.5


def test_sum_is_rounded_to_24_bits():
    found, _ = rows([1.0, 2.0**-12], [1.0, 2.0**-13], 0.0, "sm_90")
    assert found[-1].last == -PRECISION + 1
    assert found[-1].value == 1 + Fraction(2) ** -25


def test_nothing_to_line_up(ax):
    with pytest.raises(ValueError, match="all terms are zero"):
        plots.alignment(ax, [0.0], [1.0], 0.0)
