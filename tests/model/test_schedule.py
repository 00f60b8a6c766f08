"""Pieces of tiles on SMs: every step is taken once, shares are even, SMs do one at a time."""

from collections import Counter
from itertools import pairwise

import pytest

from gemmlab import Gemm, Tiling, device
from gemmlab.kernels.split_k import stream_k as rung
from gemmlab.model import schedule
from gemmlab.model.quantization import quantization

H200 = device("h200")
CASES = [(1, 1, 1), (1, 8, 3), (5, 8, 2), (3, 4, 20), (18, 64, 7), (7, 9, 132)]


@pytest.mark.parametrize(("tiles", "steps", "cut"), CASES)
@pytest.mark.parametrize("deal", [schedule.split_k, schedule.stream_k])
def test_every_step_is_taken_once(deal, tiles, steps, cut):
    pieces = [piece for share in deal(tiles, steps, cut) for piece in share]
    taken = Counter((p.tile, step) for p in pieces for step in range(p.first, p.last))
    assert set(taken.values()) == {1}
    assert taken.keys() == {(tile, step) for tile in range(tiles) for step in range(steps)}
    assert all(piece.steps > 0 and piece.of == steps for piece in pieces)


@pytest.mark.parametrize(("tiles", "steps", "cut"), CASES)
def test_shares_are_even_and_parts_of_one_tile(tiles, steps, cut):
    shares = [sum(p.steps for p in share) for share in schedule.stream_k(tiles, steps, cut)]
    assert max(shares) - min(shares) <= 1
    parts = schedule.split_k(tiles, steps, cut)
    assert all(len(share) == 1 for share in parts)
    if cut <= steps:
        assert len(parts) == tiles * cut
        lengths = [piece.steps for (piece,) in parts]
        assert max(lengths) - min(lengths) <= 1


@pytest.mark.parametrize("sms", [1, 4, 132])
@pytest.mark.parametrize(("tiles", "steps", "cut"), CASES)
def test_an_sm_computes_one_piece_at_a_time(tiles, steps, cut, sms):
    for deal in (schedule.split_k, schedule.stream_k):
        placed = schedule.schedule(deal(tiles, steps, cut), sms)
        of_sms = {}
        for one in placed:
            of_sms.setdefault(one.sm, []).append(one)
        for mine in of_sms.values():
            assert mine[0].start == 0
            assert all(one.end == after.start for one, after in pairwise(mine))
        assert sum(one.piece.steps for one in placed) == tiles * steps
        share = schedule.busy(placed, sms)
        assert share == pytest.approx(tiles * steps / (sms * schedule.ends(placed)))


def test_whole_tiles_take_the_waves_of_the_model():
    p = Gemm(1408, 3080, 4096)
    placed = schedule.schedule(schedule.split_k(143, 256), H200.sms)
    assert schedule.ends(placed) == 256 * quantization(p, H200, (128, 256), per_sm=1).waves
    assert schedule.sums_stored(placed) == 0


def test_stream_k_is_dealt_out_as_the_kernel_does_it():
    for shape, blocks in (((300, 300, 200), 7), ((1408, 3080, 4096), 132), ((64, 64, 64), 264)):
        p, t = Gemm(*shape), Tiling(block=(64, 64, 16), warp=(32, 32), thread=(8, 4), split=blocks)
        parts, longest = rung.shares(p, t)
        dealt = schedule.stream_k(parts.size, t.steps(p), blocks)
        assert max(sum(p.steps for p in share) for share in dealt) == longest
        assert Counter(p.tile for share in dealt for p in share) == dict(enumerate(parts))
