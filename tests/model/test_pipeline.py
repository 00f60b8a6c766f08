"""The pipeline's formulas beside its schedule, and that schedule beside what rings can do."""

import pytest

from gemmlab import Gemm, device, kernels
from gemmlab.model.pipeline import Pipeline, stages_needed, step

TIMES = ((900, 300), (901, 300), (100, 300), (599, 300), (987.26, 384))


@pytest.mark.parametrize("stages", range(1, 7))
@pytest.mark.parametrize("times", TIMES)
def test_formulas_are_those_of_the_schedule(stages, times):
    ahead = max(1, stages - 1)
    for turns in (0, 1, 7):
        loop = Pipeline(turns * ahead + 1, stages, *times)
        assert loop.cycles == pytest.approx(loop.schedule()[-1].done)
    for steps in range(1, 20):
        loop = Pipeline(steps, stages, *times)
        assert loop.schedule()[-1].done <= loop.cycles + 1e-9


@pytest.mark.parametrize("stages", range(1, 6))
@pytest.mark.parametrize("times", TIMES)
def test_a_schedule_keeps_to_its_ring(stages, times):
    """Tiles arrive before they are multiplied, one at a time, and no stage holds two."""
    tiles = Pipeline(30, stages, *times).schedule()
    copy, multiply = times
    for t, tile in enumerate(tiles):
        assert tile.there == tile.asked + copy <= tile.begins
        assert tile.done == tile.begins + multiply
        if t:
            assert tile.begins >= tiles[t - 1].done
        if t >= stages:
            assert tile.asked >= tiles[t - stages].done
    assert any(tile.begins == tile.there for tile in tiles)


@pytest.mark.parametrize("times", TIMES)
def test_with_the_stages_that_are_needed_nobody_waits_and_with_one_less_somebody_does(times):
    enough = stages_needed(*times)
    assert Pipeline(50, enough, *times).gap == 0
    assert Pipeline(50, enough - 1, *times).gap > 0


def test_blocks_that_share_an_sm_are_stages_for_each_other():
    alone = Pipeline(64, 1, copy=900, multiply=300)
    assert [alone.among(blocks) for blocks in (1, 2, 4, 5)] == [1200, 1200, 1200, 1500]
    assert Pipeline(64, 4, 900, 300).among(2) == 600
    one_round = alone.launch(tiles=132, places=132, blocks=1)
    assert one_round == alone.cycles
    assert alone.launch(133, 132, 1) == 2 * one_round


@pytest.mark.parametrize(
    ("arguments", "match"),
    [((0, 1, 9, 9), "steps=0"), ((1, 0, 9, 9), "stages=0"), ((1, 1, 0, 9), "copy=0"),
     ((1, 1, 9, float("nan")), "multiply=nan")],
)  # fmt: skip
def test_what_is_no_pipeline_is_refused(arguments, match):
    with pytest.raises(ValueError, match=match):
        Pipeline(*arguments)


def test_a_step_on_tensor_cores():
    """By hand: 2·128·128·32 FLOP at 4096 a cycle; fragments of 8 warps, 24 wavefronts twice."""
    like = Gemm(1, 1, 1, dtype="float16", out_dtype="float32")
    one = step(kernels.mma_swizzled, device("h200"), like=like)
    assert 2 * 128 * 128 * 32 / 4096 == 256 < 8 * 2 * 24 == one.multiply
    assert one.store == (128 + 128) * 32 * 2 / 128  # whole wavefronts, without a conflict
