"""The explorer of thread tiles and its two plots: what controls, dots and sentences say."""

from dataclasses import replace

import pytest

from gemmlab import Gemm, kernels, plots, predict, records, run
from gemmlab.explorers import ThreadTiles
from gemmlab.explorers.thread_tiles import THREAD_TILES, tiling, tilings
from gemmlab.plots.tiles import RESOURCES, wavefronts
from tests.support.waiting import ran


@pytest.fixture
def explorer():
    return ThreadTiles("register_tiled", (2, 2), n=32, backend="simulator")


def test_rungs_offer_the_thread_tiles_that_they_can_use():
    assert [t.thread for t in tilings(kernels.register_tiled)] == list(THREAD_TILES)
    assert [t.thread for t in tilings(kernels.vectorised)] == [(4, 4), (8, 4), (8, 8), (16, 8)]
    assert {t.threads for t in tilings(kernels.register_tiled)} == {256}


def test_a_run_lies_on_its_prediction(explorer):
    assert "Press Run (simulator)" in explorer.message
    assert explorer.tiles.dots == {}
    before = explorer.picture.png
    assert "Counted − predicted = 0 for all" in ran(explorer)
    x, y = explorer.tiles.dots["simulated"].get_data()
    assert (list(x), list(y)) == ([1], [1.0])  # 2 + 2 loads for 4 FMAs
    assert explorer.tiles.line.get_ydata()[1] == 1.0
    assert explorer.here.get_xdata() == [1]
    assert explorer.picture.png != before
    assert "at least 8 registers" in explorer.message
    assert "needs 1 word of shared memory" in explorer.message


def test_another_rung_keeps_the_tile_or_takes_one_that_it_has(explorer):
    explorer.kernel.value = "vectorised"
    assert explorer.thread.value == "8×8"
    assert explorer.message.startswith("vectorised 128×128×8, thread 8×8")
    explorer.kernel.value = "register_tiled"
    assert explorer.thread.value == "8×8"
    assert len(explorer.tiles.line.get_xdata()) == len(THREAD_TILES)


def test_what_is_recorded_is_shown_without_a_run(explorer, monkeypatch):
    problem, chosen = Gemm(4096, 4096, 4096), tiling(8, 8)
    p = predict(problem, "h200", kernels.register_tiled, chosen)
    line = replace(
        run(kernels.tiled, problem, "recorded"),
        kernel="register_tiled",
        tiling=chosen,
        samples=(2 * p.seconds,) * 3,
    )
    monkeypatch.setattr(records, "load", lambda *asked: [line])
    explorer.backend.value = "recorded"
    explorer.size.value = 4096
    explorer.thread.value = "8×8"
    (x,), (y,) = explorer.tiles.dots["recorded"].get_data()
    assert (x, y) == (4, pytest.approx(p.flops_per_second / 2))
    assert "Measured ÷ predicted time = 2." in explorer.message
    assert explorer.left.get_ylabel() == "speed [TFLOP/s]"


def test_too_large_to_simulate_is_said(explorer):
    explorer.size.value = 8192
    assert "Not possible: 8192×8192×8192 float32 is too large to simulate" in explorer.message
    explorer.size.value = 64
    assert "Press Run" in explorer.message


def test_bad_values_are_refused():
    with pytest.raises(ValueError, match=r"'tiled' has no thread tiles.*register_tiled or vector"):
        ThreadTiles("tiled")
    with pytest.raises(ValueError, match="does not fit"):
        ThreadTiles("vectorised", (2, 2))
    with pytest.raises(ValueError, match="backend='cuda'"):
        ThreadTiles(backend="cuda")


def test_resources_are_shares_of_the_predicted_time():
    _, (ax,) = plots.figure()
    problem = Gemm(4096, 4096, 4096)
    for kernel, bottleneck in ((kernels.register_tiled, "l1"), (kernels.warp_tiled, "issue")):
        p = predict(problem, "h200", kernel)
        made = plots.resources(ax, p)
        widths = dict(zip(RESOURCES, (bar.get_width() for bar in made.bars), strict=True))
        assert widths == {name: p.times[name] / p.seconds for name in RESOURCES}
        assert widths[bottleneck] == 1
        dark = made.bars[RESOURCES.index(bottleneck)].get_facecolor()
        assert [bar.get_facecolor() for bar in made.bars].count(dark) == 1


def test_a_resource_that_is_not_counted_takes_no_time_and_says_so():
    figure, (ax,) = plots.figure()
    half = Gemm(4096, 4096, 4096, dtype="float16", out_dtype="float32")
    made = plots.resources(ax, predict(half, "h200", kernels.mma_direct))
    issue = RESOURCES.index("issue")
    assert made.bars[issue].get_width() == 0
    assert made.texts[issue].get_text() == "not counted"
    assert "issue not counted" in plots.alt(figure)


def test_wavefronts_of_what_was_not_counted():
    assert wavefronts(run(kernels.tiled, Gemm(4096, 4096, 4096), "recorded")) is None
