"""Additions that meet at a few addresses."""

import numpy as np
import pytest

from gemmlab.compiled.forecast.meeting import all_lines, rates
from gemmlab.compiled.sass.execution.memory import cost

RANDOM = np.random.default_rng(3)


def passes(words):
    one = cost("global", "atomic", 4 * np.asarray(words, np.uint64), np.ones(32, bool), 4)
    return one.partial.tolist()


def test_numbers_for_one_address_follow_each_other_and_neighbours_do_not():
    assert passes(np.zeros(32)) == [32]
    assert passes(np.arange(32)) == [4]
    assert passes(8 * np.arange(32)) == [32]
    assert passes(np.arange(32) // 4) == [4]  # one sector, four numbers for each of its words


@pytest.mark.parametrize(
    ("addresses", "measured"), [(1, 1.354), (2, 2.364), (4, 3.922), (8, 6.203)]
)
def test_passes_explain_how_many_additions_a_sector_takes(addresses, measured):
    """Lanes choose among the words of one sector: `red` by lanes, 4 bytes apart, on an H100."""
    made = np.mean([passes(RANDOM.integers(0, addresses, 32))[0] for _ in range(200)])
    one = np.interp(1, *rates("h100_sxm")["red"])
    assert 32 / made * one / 1e9 == pytest.approx(measured, rel=0.07)


def test_more_lines_are_in_more_slices():
    lines, rate = rates("h100_sxm")["red"]
    assert rate[lines.index(256)] > 40 * rate[0]
    assert rates("t4") is None
    assert rates("h200") == rates("h100_sxm")


def test_blocks_add_to_the_same_lines_or_each_to_its_own():
    assert all_lines({0: {1, 2}, 1: {1, 2}}, 4096, 50) == 2
    assert all_lines({0: {1}, 1: {2}}, 4096, 50) == 32  # the array has no more
