"""The figure of the ladder, and README's table, by what is recorded."""

import pytest

from benchmarks import readme
from gemmlab import Gemm, Measurement, kernels, plots, predict

N = 256
PROBLEM = Gemm(N, N, N)


def timed(kernel, speed):
    return Measurement(
        kernel=kernel.name,
        problem=PROBLEM,
        tiling=kernel.default,
        backend="recorded",
        device="h200",
        device_title="NVIDIA H200 SXM",
        error=0.0,
        tolerance=1e-6,
        samples=(PROBLEM.flops / speed,) * 3,
        provenance={"date": "2026-01-31T12:00:00+00:00"},
    )


@pytest.fixture
def ax():
    return plots.figure()[1][0]


def test_bars_texts_and_limits(ax):
    rungs = [timed(kernels.naive, 1e12), timed(kernels.warp_tiled, 8e12)]
    expected = [predict(PROBLEM, "h200", k) for k in (kernels.warp_tiled, kernels.naive)]
    made = plots.ladder(ax, rungs, timed(kernels.cublas, 8e12), 10e12, expected)
    assert [bar.get_width() for bar in made.bars] == pytest.approx([1e12, 8e12])
    assert [text.get_text() for text in made.texts] == [
        "1 TFLOP/s · 12.5% of cublas · 10.0% of the peak",
        "8 TFLOP/s · 100.0% of cublas · 80.0% of the peak",
    ]
    assert made.predicted.get_xdata().tolist() == [
        expected[1].flops_per_second, expected[0].flops_per_second
    ]  # fmt: skip
    assert {n: line.get_xdata()[0] for n, line in made.limits.items()} == pytest.approx(
        {"cublas": 8e12, "FP32 peak": 10e12}
    )
    assert [label.get_text() for label in ax.get_yticklabels()] == ["1  naive", "2  warp_tiled"]
    first, last = ax.get_ylim()
    assert first > last  # the first rung is at the top


def test_a_rung_without_a_prediction_has_no_diamond(ax):
    made = plots.ladder(ax, [timed(kernels.naive, 1e12)], timed(kernels.cublas, 8e12), 10e12)
    assert len(made.predicted.get_xdata()) == 0
    assert ax.get_legend() is None


def test_rungs_that_are_not_recorded_are_in_the_table_and_not_in_the_picture(monkeypatch):
    whole = readme.recorded
    monkeypatch.setattr(
        readme, "recorded", lambda k, at: None if k is kernels.tiled else whole(k, at)
    )
    drawn = []
    monkeypatch.setattr(plots, "ladder", lambda ax, rungs, *rest: drawn.extend(rungs))
    readme.picture()
    assert "tiled" not in {m.kernel for m in drawn}
    assert {"naive", "coalesced"} <= {m.kernel for m in drawn}
    table = readme.table(readme.SIMT).splitlines()
    assert "| not yet |" in next(line for line in table if "[tiled]" in line)
    assert len({line.count("|") for line in table[:9]}) == 1
