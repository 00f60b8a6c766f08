"""Requests, sectors, lines and wavefronts: worked by hand, and against sets in plain Python."""

import numpy as np
import pytest
from hypothesis import given, strategies as st

from gemmlab.model.transactions import (
    BANKS,
    SECTOR,
    WARP,
    WORD,
    lines,
    requests,
    sectors,
    wavefronts,
)

LANES = np.arange(WARP)
ALL = np.ones(WARP, bool)
NONE = np.zeros(WARP, bool)


@pytest.mark.parametrize(
    ("address", "expected"),
    [
        (4 * LANES, 4),  # 128 contiguous bytes
        (4 * LANES + 4, 5),  # the same, off by one element
        (4 * LANES + 32, 4),  # off by a whole sector
        (8 * LANES, 8),  # every second element, or contiguous float64
        (4 * 8 * LANES, 32),  # one sector for each lane
        (4 * 32 * LANES, 32),
        (0 * LANES, 1),  # broadcast
        (4 * (LANES // 16), 1),  # two elements of one sector
        (2 * LANES, 2),  # contiguous float16
        (16 * LANES, 16),  # contiguous 16-byte vectors
        (4 * LANES[::-1], 4),  # in reverse order
        (4 * (LANES * 7 % 32), 4),  # permuted
    ],
)
def test_sectors(address, expected):
    assert int(sectors(address, ALL)) == expected


def test_sectors_of_some_lanes():
    assert int(sectors(4 * LANES, NONE)) == 0
    assert int(sectors(4 * LANES, LANES == 31)) == 1
    assert int(sectors(4 * LANES, LANES % 16 == 0)) == 2
    assert int(sectors(4 * 32 * LANES, LANES < 5)) == 5


def test_lines():
    assert int(lines(4 * LANES, ALL)) == 1
    assert int(lines(4 * LANES + 4, ALL)) == 2
    assert int(lines(4 * 32 * LANES, ALL)) == 32


def test_requests_count_warps_with_an_active_lane():
    active = np.stack([ALL, NONE, LANES == 7])
    assert requests(active).tolist() == [1, 0, 1]


@pytest.mark.parametrize(
    ("address", "expected"),
    [
        (4 * LANES, 1),  # a row
        (4 * 2 * LANES, 2),
        (4 * 8 * LANES, 8),
        (4 * 32 * LANES, 32),  # a column of a 32×32 tile: one bank
        (4 * 33 * LANES, 1),  # a column of a 32×33 tile: all banks
        (4 * 16 * LANES, 16),
        (4 * 17 * LANES, 1),
        (0 * LANES, 1),  # broadcast
        (4 * 32 * (LANES // 2), 16),  # two lanes to a word
        (4 * (LANES * 5 % 32), 1),  # permuted
        (4 * LANES + 4 * 100, 1),  # elsewhere
    ],
)
def test_wavefronts_of_four_bytes(address, expected):
    assert int(wavefronts(address, ALL, 4)) == expected


@pytest.mark.parametrize(
    ("address", "width", "expected"),
    [
        (8 * LANES, 8, 2),  # 256 bytes
        (16 * LANES, 16, 4),  # 512 bytes
        (0 * LANES, 8, 2),  # each half warp reads the same two words
        (8 * 32 * LANES, 8, 32),  # 16 rows in one pair of banks, twice
        (16 * 8 * LANES, 16, 32),  # 8 rows in the same four banks, four times
        (2 * LANES, 2, 1),  # two float16 to a word
        (2 * 64 * LANES, 2, 32),
    ],
)
def test_wavefronts_of_other_widths(address, width, expected):
    assert int(wavefronts(address, ALL, width)) == expected


def test_wavefronts_of_some_lanes():
    assert int(wavefronts(4 * 32 * LANES, NONE, 4)) == 0
    assert int(wavefronts(4 * 32 * LANES, LANES < 3, 4)) == 3
    assert int(wavefronts(8 * LANES, LANES < 4, 8)) == 1  # the second half warp makes no pass


def test_leading_axes_are_kept():
    address = np.stack([4 * LANES, 4 * 32 * LANES]).reshape(2, 1, WARP)
    active = np.broadcast_to(ALL, address.shape)
    assert sectors(address, active).tolist() == [[4], [32]]
    assert wavefronts(address, active, 4).tolist() == [[1], [32]]
    assert requests(active).tolist() == [[1], [1]]


elements = st.lists(st.integers(0, 4095), min_size=WARP, max_size=WARP)
masks = st.lists(st.booleans(), min_size=WARP, max_size=WARP)
widths = st.sampled_from([1, 2, 4, 8, 16])


@given(elements, masks, widths)
def test_sectors_are_distinct_pieces(index, active, width):
    touched = {i * width // SECTOR for i, on in zip(index, active, strict=True) if on}
    touched_lines = {i * width // 128 for i, on in zip(index, active, strict=True) if on}
    address, on = np.array(index) * width, np.array(active)
    assert int(sectors(address, on)) == len(touched)
    assert int(lines(address, on)) == len(touched_lines)
    assert int(requests(on)) == any(active)


@given(elements, masks, widths)
def test_wavefronts_are_the_distinct_words_of_the_busiest_bank(index, active, width):
    groups = max(1, width // WORD)
    total = 0
    for group in range(groups):
        banks = {bank: set() for bank in range(BANKS)}
        for lane in range(group * WARP // groups, (group + 1) * WARP // groups):
            if active[lane]:
                first = index[lane] * width // WORD
                for word in range(first, first + groups):
                    banks[word % BANKS].add(word)
        total += max(map(len, banks.values()))
    assert int(wavefronts(np.array(index) * width, np.array(active), width)) == total
