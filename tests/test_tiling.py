"""Tilings: threads, shared memory, grids, and the refusal of sizes that do not fit."""

import pytest
from hypothesis import given, strategies as st

from gemmlab.problem import Gemm
from gemmlab.tiling import Tiling


def test_sizes_of_a_tiling():
    t = Tiling(block=(128, 64, 8), thread=(8, 4), stages=2)
    assert t.threads == 16 * 16
    assert t.grid(Gemm(129, 64, 8)) == (1, 2)
    assert t.steps(Gemm(129, 64, 9)) == 2
    assert t.padded_flops(Gemm(129, 64, 9)) == 2 * 256 * 64 * 16
    assert str(t) == "128×64×8, thread 8×4, 2 stages"
    assert Tiling.square(16) == Tiling(block=[16, 16, 16])


sizes = st.integers(1, 300)
tiles = st.integers(1, 40)


@given(m=sizes, n=sizes, k=sizes, bm=tiles, bn=tiles, bk=tiles)
def test_tiles_cover_the_matrix_and_no_more_than_a_tile_beyond(m, n, k, bm, bn, bk):
    t, p = Tiling(block=(bm, bn, bk)), Gemm(m, n, k)
    across, down = t.grid(p)
    assert (down - 1) * bm < m <= down * bm
    assert (across - 1) * bn < n <= across * bn
    assert (t.steps(p) - 1) * bk < k <= t.steps(p) * bk
    assert t.padded_flops(p) >= p.flops
    if not (m % bm or n % bn or k % bk):
        assert t.padded_flops(p) == p.flops


@pytest.mark.parametrize(
    ("value", "error"),
    [(0, ValueError), (-16, ValueError), (16.0, TypeError), (True, TypeError), ("16", TypeError)],
)
def test_bad_sizes_are_quoted(value, error):
    for sizes, name in (
        ({"block": (16, value, 16)}, "block[1]"),
        ({"block": (16, 16, 16), "thread": (1, value)}, "thread[1]"),
        ({"block": (16, 16, 16), "stages": value}, "stages"),
    ):
        with pytest.raises(error) as caught:
            Tiling(**sizes)
        assert f"{name}={value!r}" in str(caught.value)


@pytest.mark.parametrize("value", [16, (16, 16), (1, 2, 3, 4), "abc", None])
def test_blocks_need_three_sizes(value):
    with pytest.raises(TypeError) as caught:
        Tiling(block=value)
    assert f"block={value!r}" in str(caught.value)
    assert "3 sizes" in str(caught.value)


def test_thread_tiles_must_divide():
    with pytest.raises(ValueError, match=r"of 3 .* of 16 along m; use one of 1, 2, 4, 8, 16$"):
        Tiling(block=(16, 12, 8), thread=(3, 3))
    with pytest.raises(ValueError, match=r"of 5 .* of 12 along n; use one of 1, 2, 3, 4, 6, 12$"):
        Tiling(block=(16, 12, 8), thread=(4, 5))


def test_divisors_of_a_large_tile_are_listed_at_once():
    with pytest.raises(
        ValueError, match=r"does not divide the block tile of 1000000007 along m; use one of 1$"
    ):
        Tiling(block=(10**9 + 7, 8, 8), thread=(2, 2))
