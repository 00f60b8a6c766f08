"""Who gets the last blocks: an SM whose blocks end together gets several, as it was measured."""

from dataclasses import replace

import numpy as np
import pytest

from gemmlab import device
from gemmlab.compiled.forecast.executed import Share, following, most_blocks, speeds
from gemmlab.compiled.forecast.kernel import busiest
from gemmlab.measure import microbenchmarks as results

SMS = 132
SPREAD = 0.015


def handed(blocks, resident, ends):
    share = Share((blocks, 1, 1), -(-blocks // SMS), resident, SMS)
    return most_blocks(share, np.array(ends, float), SPREAD)


def test_as_many_blocks_as_places_are_dealt_out_evenly():
    """924 blocks at eight an SM: seven for each, on an H200."""
    assert handed(924, 8, range(100, 800, 100)) == 7
    assert handed(140, 2, (100, 100)) == 2
    assert handed(264, 2, (100, 100)) == 2


@pytest.mark.parametrize(
    ("blocks", "ends", "most"),
    [
        (315, (100, 150, 250), 3),  # the first ends of all SMs come before the second ones
        (315, (100, 100.1, 200), 4),  # both places of an SM are free before those of the next
        (264 + 1, (100, 100.1, 200), 3),  # there is but one block more
        (660, (100, 150, 200, 250, 300), 5),
        (660, (100, 100.1, 200, 200.1, 300, 300.1), 6),
    ],
)
def test_blocks_that_end_together_make_room_for_several(blocks, ends, most):
    assert handed(blocks, 2, ends) == most


def test_after_many_rounds_sms_are_far_enough_apart_for_one_more():
    even = np.arange(100, 5000, 100.0)
    assert handed(2 * SMS * 20, 2, even) >= 41
    alike = Share((2 * SMS * 20, 1, 1), 40, 2, SMS)
    assert most_blocks(alike, even, 1e-9) == 40


def test_blocks_follow_those_that_are_known_round_by_round():
    assert following(np.array([10.0, 12.0]), 2, 5).tolist() == [10, 12, 22, 24, 34]
    assert following(np.array([10.0, 12, 20, 22, 28, 29]), 2, 6).tolist() == [
        *(10, 12, 20, 22), *(28, 30),
    ]  # fmt: skip


def test_sms_are_as_far_apart_as_is_said():
    found = speeds(SMS, SPREAD)
    assert found.mean() == pytest.approx(1)
    assert found.std() == pytest.approx(SPREAD, rel=0.03)


def test_where_it_is_not_known_all_get_alike():
    share = Share((315, 1, 1), 3, 2, SMS)
    together = np.array([100.0, 100.1, 200])
    assert busiest(replace(device("h200"), block_spread=None), share, together) == 3
    assert busiest(device("h200"), share, together) == 4


@pytest.mark.parametrize("name", ["blocks_that_load", "blocks_that_multiply"])
def test_twelve_blocks_for_each_sm_are_what_each_gets(name):
    """They end one after the other, four at once: the rule says so, too."""
    taken = np.array(results.load("h200").loop(name, 8).cycles)[:, :SMS]
    assert set(taken.ravel()) == {12}
    ends = np.array([1.0, 1.02, 1.09, 1.14, 2.0, 2.1, 2.2, 2.3, 3.0, 3.1, 3.2, 3.3])
    assert handed(12 * SMS, 4, 1e5 * ends) == 12
