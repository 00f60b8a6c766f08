"""Patterns of addresses have the lines, sectors and bank conflicts that their names say."""

import re
from collections import Counter
from itertools import pairwise

import pytest

from benchmarks.microbenchmarks.loop import WARP
from benchmarks.microbenchmarks.patterns import GLOBAL, LINE, SHARED

BANKS, WORD = 32, 4
pytestmark = pytest.mark.measuring


def lines(pattern):
    return len({offset // LINE for offset in pattern.lanes})


@pytest.mark.parametrize("name", [name for name in GLOBAL if "_lines_" in name])
def test_so_many_lines(name):
    assert lines(GLOBAL[name]) == int(name.rpartition("_")[2])


@pytest.mark.parametrize("name", [name for name in GLOBAL if "_stride_" in name])
def test_so_far_apart(name):
    stride = int(name.rpartition("_")[2])
    offsets = GLOBAL[name].lanes
    assert {b - a for a, b in pairwise(offsets)} == {WORD * stride}
    assert lines(GLOBAL[name]) == stride


@pytest.mark.parametrize("name", [name for name in SHARED if name.startswith("32_conflict_")])
def test_so_many_words_in_a_bank(name):
    words = {offset // WORD for offset in SHARED[name].lanes}
    assert max(Counter(word % BANKS for word in words).values()) == int(name.rpartition("_")[2])


@pytest.mark.parametrize("patterns", [SHARED, GLOBAL])
def test_each_lane_is_aligned_and_its_width_is_in_the_name(patterns):
    for name, pattern in patterns.items():
        assert len(pattern.lanes) == WARP
        assert all(offset % pattern.width == 0 for offset in pattern.lanes)
        assert int(re.match(r"\d+", name)[0]) == 8 * pattern.width
