"""The explorers of rounding and of dot products, without a browser."""

import numpy as np
import pytest

from gemmlab.explorers import DotError, Rounding, dot_error as module
from gemmlab.explorers.dot_error import APART, spread
from gemmlab.explorers.rounding import CHOICES, digits, neighbours, parts, told_apart
from gemmlab.numerics import ACCUMULATIONS, FORMATS, ROUNDINGS, round_to, ulp

# ---------------------------------------------------------------------------------------- rounding


@pytest.fixture
def rounding():
    return Rounding(0.1, "bfloat16")


@pytest.mark.parametrize("dtype", FORMATS)
def test_bits_of_a_format(dtype):
    form = FORMATS[dtype]
    assert len(parts(form)) == len(digits(1.0, form)) == 1 + form.exponent_bits + form.fraction_bits
    assert digits(-1.0, form) == "1" + digits(1.0, form)[1:]
    assert set(digits(0.0, form)) == {"0"}


@pytest.mark.parametrize("dtype", FORMATS)
def test_neighbours_are_all_numbers_around(dtype):
    form = FORMATS[dtype]
    for x in (1.0, 0.1, 1.999, 3.0):
        values = neighbours(x, form)
        assert len(values) == 7
        assert np.array_equal(round_to(values, dtype).astype(np.float64), values)
        # Nothing lies between two of them: the middle rounds to one or the other.
        middles = (values[1:] + values[:-1]) / 2
        assert np.isin(round_to(middles, dtype).astype(np.float64), values).all()
        assert values[3] <= x < values[4]
    assert neighbours(0.0, form)[0] == 0.0
    assert neighbours(form.largest, form)[-1] == form.largest


def drawn_bits(explorer, row):
    """The digits in one row of boxes, from the left."""
    found = {}
    for digit, (marks,) in explorer.digits.items():
        found |= {x: digit for x, y in marks.get_xydata() if y == row + 0.5}
    return "".join(found[x] for x in sorted(found))


def test_the_sentence_says_what_is_drawn(rounding):
    assert rounding.rounded == float(round_to(0.1, "bfloat16"))
    assert "0.1 in bfloat16, to nearest, ties to even: 0.10009765625." in rounding.message
    assert "Sign 0, exponent 01111011, fraction 1001101." in rounding.message
    assert f"{float(ulp(0.1, 'bfloat16')):.4g} apart" in rounding.message
    assert drawn_bits(rounding, 0) == digits(float(np.float32(0.1)), FORMATS["float32"])
    assert drawn_bits(rounding, 1) == "0011110111001101"
    kinds = rounding.boxes.get_array()[1]
    assert [kinds[:16].tolist().count(kind) for kind in range(3)] == [1, 8, 7]
    assert kinds[16:].mask.all()


@pytest.mark.usefixtures("undrawn")
@pytest.mark.parametrize("mode", ROUNDINGS)
def test_every_mode(rounding, mode):
    rounding.rounding.value = mode
    for x in (1 + 2.0**-8, -(1 + 2.0**-8), 0.0, 1e-40, 3e38):
        rounding.x.value = x
        assert rounding.rounded == float(round_to(x, "bfloat16", mode))
        assert not rounding.message.startswith("Not possible")


def test_two_numbers_of_a_sentence_do_not_read_as_one(rounding):
    rounding.x.value = 1e-60
    assert "Its ratio to x is 1; that is 256 u, with the unit roundoff u = 2⁻⁸." in rounding.message


def test_a_number_of_the_format_has_no_error(rounding):
    rounding.x.value = 1.5
    assert "x is one of them." in rounding.message
    assert "error" not in rounding.message


def test_beyond_and_below_the_range(rounding):
    rounding.dtype.value = "float16"
    rounding.x.value = 65520.0
    assert "inf" in rounding.message
    assert "The largest number of float16 is 65504.0." in rounding.message
    rounding.rounding.value = "RZ"
    assert rounding.rounded == 65504.0
    rounding.x.value = 1e-7
    assert "has no bound here" in rounding.message


@pytest.mark.usefixtures("undrawn")
@pytest.mark.parametrize("dtype", CHOICES)
@pytest.mark.parametrize("x", [0.1, -0.1, 1e-45, 65519.0, 3.4e38, 1e300, -1e300, 0.0])
def test_no_two_marks_look_alike_and_x_is_in_sight(dtype, x):
    explorer = Rounding(x, dtype)
    values = np.copysign(neighbours(abs(x), FORMATS[dtype]), x)
    written = [t.get_text() for t in explorer.line_axes.texts]
    texts = told_apart(values)
    assert len(set(texts)) == len(values)
    assert set(texts) <= set(written)
    low, high = explorer.line_axes.get_xlim()
    marks, triangle = (line.get_xdata() for line in explorer.line_axes.lines[-2:])
    assert low < min(*marks, *triangle) < max(*marks, *triangle) < high
    assert high - low < 12  # marks are 1 apart: none is squeezed by an x far away
    far = abs(x) >= 2 * FORMATS[dtype].largest
    assert ("x, further out" in written) == far
    beyond = not np.isfinite(explorer.rounded)
    outside = "∞" if FORMATS[dtype].infinities else "NaN"
    assert (outside in written or f"−{outside}" in written) == beyond


def test_a_format_without_infinities_says_so(rounding):
    rounding.dtype.value = "float8_e4m3fn"
    for x, what in ((448.0, "x is one of them."), (500.0, "a fraction of ones is NaN: no number.")):
        rounding.x.value = x
        assert what in rounding.message
    assert (
        "The largest number of float8_e4m3fn is 448.0, and it has no infinity." in rounding.message
    )
    rounding.x.value = float("nan")
    assert rounding.message.endswith("a fraction of ones is NaN: no number.")
    assert "largest" not in rounding.message


@pytest.mark.parametrize("x", [1e-45, 65519.0, -1e300])
def test_extremes_are_drawn(x):
    explorer = Rounding(x, "float16")
    assert explorer.picture.png != Rounding(-x, "float16").picture.png


@pytest.mark.parametrize("dtype", CHOICES)
@pytest.mark.parametrize("typed", ["nan", "inf", "-inf", "-0.0", "Infinity"])
def test_special_values_show_their_bits(dtype, typed):
    explorer, form = Rounding(1.0, dtype), FORMATS[dtype]
    before = explorer.picture.png
    explorer.x.text.value = typed
    x = float(typed)
    kept = x if form.infinities or np.isfinite(x) else np.copysign(np.nan, x)
    assert np.array_equal(explorer.rounded, kept, equal_nan=True)
    assert np.signbit(explorer.rounded) == np.signbit(x)
    assert drawn_bits(explorer, 1) == digits(kept, form)
    assert explorer.picture.png != before
    words = {"nan": "no number", "-0.0": "x is one of them"}
    infinite = "is an infinity" if form.infinities else "no number"
    assert words.get(typed, infinite) in explorer.message
    assert Rounding(x, dtype).picture.png == explorer.picture.png


@pytest.mark.parametrize(
    ("typed", "why"),
    [
        ("1e400", "lies beyond float64, whose largest number is 1.797"),
        ("1e-400", "lies below float64, whose smallest number above 0 is 5e-324"),
        ("0,1", "is not a number (the decimal point is a point"),
        ("a tenth", "is not a number; type one such as 0.1"),
        ("", "is not a number"),
        ("0x1p9999", "lies beyond float64"),
    ],
)
def test_texts_that_are_no_numbers_change_nothing(typed, why):
    explorer = Rounding(2.5)
    before = explorer.picture.png
    for _ in range(2):  # and again
        explorer.x.text.value = typed
        assert f"Not possible: x: “{typed}” {why}" in explorer.message
        assert (explorer.x.value, explorer.x.text.value) == (2.5, "2.5")
        assert explorer.picture.png == before
    assert "opacity" not in explorer.picture.panels[0].view.value
    explorer.x.text.value = "0x1.8p3"
    assert explorer.rounded == 12.0


def test_what_cannot_be_shown():
    with pytest.raises(ValueError, match="dtype='fp8' is not a known format"):
        Rounding(1.0, "fp8")
    with pytest.raises(ValueError, match="dtype='float64' is that of x itself; use one of float32"):
        Rounding(1.0, "float64")
    with pytest.raises(ValueError, match="rounding='up' is not known"):
        Rounding(1.0, "float16", "up")


# ------------------------------------------------------------------------------------ dot products


@pytest.fixture(scope="module")
def dots():
    return DotError(k=1024)


def test_errors_are_the_largest_of_their_kind(dots):
    for way, largest in dots.largest.items():
        found = module.errors(way, "float16", "sm_90", "positive")
        assert found.shape == (len(module.LENGTHS), module.DOTS)
        assert largest == np.abs(found[module.LENGTHS.index(1024)]).max()
        assert largest <= ACCUMULATIONS[way].bound(1024)
    assert list(dots.largest) == list(ACCUMULATIONS)


@pytest.mark.parametrize("values", module.VALUES)
@pytest.mark.parametrize(
    ("dtype", "arch"), [("float16", "sm_70"), ("bfloat16", "sm_80"), ("tf32", "sm_90")]
)
def test_bounds_hold_at_every_length(dtype, arch, values):
    for way in module.ways(dtype):
        largest = np.abs(module.errors(way, dtype, arch, values)).max(axis=1)
        bounds = [ACCUMULATIONS[way].bound(k, dtype, arch) for k in module.LENGTHS]
        assert np.all(largest <= bounds)


def test_truncation_is_biased_and_nearest_is_not():
    """Every error of the Tensor Core is negative; outside, both signs occur."""
    at = module.LENGTHS.index(1024)
    inside = module.errors("inside", "float16", "sm_90", "positive")[at]
    outside = module.errors("outside", "float16", "sm_90", "positive")[at]
    assert (inside < 0).all()
    assert (outside > 0).any()
    assert (outside < 0).any()
    assert abs(inside.mean()) > 10 * abs(outside.mean())


def test_the_sentence_says_what_is_drawn_of_dot_products(dots):
    assert "64 dot products of 1024 products, positive, in float16." in dots.message
    for way in ACCUMULATIONS.values():
        assert f"{way.title}: largest error" in dots.message
    dots.k.value = 16
    assert "16 products" in dots.message
    assert "k = 16" in dots.dot_axes.get_title(loc="left")


def test_what_stays_is_drawn_once_and_what_moves_each_time():
    explorer, new = DotError(k=64), DotError(k=256)
    explorer.k.value = 256
    assert explorer.picture.png == new.picture.png
    assert list(explorer.here.get_xdata()) == [256, 256]
    (dots, bar) = explorer.dots["inside"]
    found = module.errors("inside", "float16", "sm_90", "positive")[module.LENGTHS.index(256)]
    assert np.array_equal(dots.get_xdata(), found / module.UNIT)
    assert bar.get_xdata()[0] == found.mean() / module.UNIT
    low, high = explorer.dot_axes.get_xlim()
    assert low < dots.get_xdata().min() < dots.get_xdata().max() < high
    explorer.arch.value = "sm_70"
    assert explorer.picture.png != new.picture.png


@pytest.mark.parametrize("values", module.VALUES)
def test_each_curve_has_its_name(values):
    explorer = DotError(k=64, values=values)
    names = {t.get_text(): t for t in explorer.curve_axes.texts}
    assert set(module.NAMES_AT_LINES.values()) <= set(names)
    for way, name in module.NAMES_AT_LINES.items():
        assert names[name].get_color() == module.WAYS[way]
    heights = sorted(names[name].get_position()[1] for name in module.NAMES_AT_LINES.values())
    assert min(np.diff(heights)) >= APART - 1e-9


def test_names_keep_their_order_and_their_distance():
    heights = {"a": 0.52, "b": 0.5, "c": 0.51, "d": 0.9}
    found = spread(heights, 0.1)
    assert list(found) == ["b", "c", "a", "d"]
    assert list(found.values()) == pytest.approx([0.5, 0.6, 0.7, 0.9])


def test_a_format_without_float16_sums():
    explorer = DotError(k=64, dtype="bfloat16")
    assert "float16" not in explorer.largest
    explorer.arch.value = "sm_70"
    assert explorer.message == "Not possible: sm_70 does not multiply bfloat16; it has float16"
    explorer.dtype.value = "float16"
    assert explorer.message.startswith("64 dot products")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"k": 1000}, "k=1000 is not offered; use one of"),
        ({"dtype": "float32"}, "dtype='float32' is not offered"),
        ({"values": "negative"}, "values='negative' is not offered"),
        ({"arch": "sm_60"}, "arch='sm_60' is not known"),
    ],
)
def test_dot_error_refuses(change, message):
    with pytest.raises(ValueError, match=message):
        DotError(**change)
