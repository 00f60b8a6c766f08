"""The explorer of corrected products: the kernel has the emulator's bits, below the bound."""

import itertools

import numpy as np
import pytest

from gemmlab import plots
from gemmlab.explorers import Tcec, tcec as module
from gemmlab.numerics import POLICIES, Policy, backward_error, emulated_matmul


@pytest.fixture(scope="module")
def explorer():
    return Tcec(k=32)


EVERY = [POLICIES["simt"]] + [
    Policy(products=products, scale=scale, outside=outside, every=every)
    for products, scale, (outside, every) in itertools.product(
        (1, 3, 4), (1.0, 2.0**11), ((False, 1), (True, 1), (True, 2))
    )
]


@pytest.mark.parametrize("size", [-16, 15])
def test_the_kernel_has_the_emulated_bits_and_stays_below_its_bound(size):
    rng = np.random.default_rng(size + 99)
    a, b = rng.standard_normal((16, 48)), rng.standard_normal((48, 8))
    a, b = ((x * 2.0**size).astype(np.float32) for x in (a, b))
    exact = a.astype(float) @ b
    for policy in EVERY:
        with np.errstate(all="ignore"):
            expected = emulated_matmul(a, b, policy)
        c = module.simulated(policy, a, b)
        assert np.array_equal(c, expected, equal_nan=True), policy
        assert backward_error(c, exact, a, b) <= module.bound(policy, a, b), policy


def test_a_bound_is_no_more_than_twenty_times_what_is_seen():
    rng = np.random.default_rng(5)
    a, b = (np.abs(rng.standard_normal(s)).astype(np.float32) for s in ((16, 64), (64, 8)))
    for policy in EVERY:
        seen = backward_error(emulated_matmul(a, b, policy), a.astype(float) @ b, a, b)
        assert seen > module.bound(policy, a, b) / 20, policy


def test_each_control_changes_what_is_said_and_drawn(explorer):
    said, drawn = {explorer.message}, {explorer.picture.png}
    for name, value in (
        ("values", "either sign"), ("products", 4), ("every", 0), ("scale", 8), ("size", -8),
        ("k", 64), ("unit", "FP32 units"),
    ):  # fmt: skip
        getattr(explorer, name).value = value
        said.add(explorer.message)
        drawn.add(explorer.picture.png)
        assert explorer.found == explorer.expected <= explorer.bound
    assert len(said) == len(drawn) == 8


def test_what_fp32_units_do_not_do_cannot_be_chosen(undrawn):
    explorer = Tcec(k=16)
    alive = explorer.products, explorer.every, explorer.scale
    assert [control.disabled for control in alive] == [False] * 3
    explorer.products.value = 1
    assert [control.disabled for control in alive] == [False, False, True]
    assert "without low parts that could be scaled" in explorer.message
    explorer.unit.value = "FP32 units"
    assert [control.disabled for control in alive] == [True] * 3
    assert "cannot be chosen" in explorer.message
    assert not explorer.k.disabled
    explorer.unit.value, explorer.products.value = "Tensor Cores, FP16", 3
    assert [control.disabled for control in alive] == [False] * 3


def test_powers_are_printed_as_powers(undrawn):
    explorer = Tcec(k=16, size=-8)
    assert explorer.scale.label == "2¹¹"
    assert "times 2⁻⁸." in explorer.message
    explorer.size.value = 0
    assert "either sign" not in explorer.message
    assert "16×8×16, positive.\n" in explorer.message


def test_beyond_the_range_there_is_no_number(explorer):
    explorer.unit.value = "Tensor Cores, FP16"
    explorer.size.value = 20
    assert explorer.found == explorer.bound == np.inf
    assert "no number (simulated), no number (emulated)" in explorer.message
    assert "no number" in plots.alt(explorer.right.figure)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"unit": "FP64"}, "use one of ['Tensor Cores, FP16'"),
        ({"products": 2}, "use one of [1, 3, 4]"),
        ({"k": 100}, "use one of [16, 32, 64, 128]"),
        ({"size": 3}, "size=3 is not offered"),
    ],
)
def test_other_values_are_refused(arguments, message):
    with pytest.raises(ValueError) as refused:
        Tcec(**arguments)
    assert message in str(refused.value)


def test_where_there_is_no_number_the_line_lies_below_the_legend():
    explorer = Tcec(size=20, k=16)
    assert not np.isfinite(explorer.found)
    explorer.left.figure.draw_without_rendering()
    names = explorer.left.get_legend().get_window_extent()
    said = [text for text in explorer.left.texts if text.get_text() == "no number"]
    below = [artist.get_window_extent().y1 for artist in (*explorer.left.get_lines(), *said)]
    assert said
    assert max(below) < names.y0
