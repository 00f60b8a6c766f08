"""The quantization explorer: what its pictures, curves and sentences say of tiles and waves."""

import numpy as np
import pytest

from gemmlab import Gemm, kernels, run
from gemmlab.explorers import Quantization
from gemmlab.explorers.quantization import GPUS, SMALL, counted, scale, share_counted
from gemmlab.model.quantization import quantization
from gemmlab.plots.quantization import IDLE, TAIL
from gemmlab.tiling import Tiling


@pytest.fixture
def explorer():
    return Quantization()


@pytest.fixture
def large():
    return Quantization("h200", (128, 256), n=3080)


def shares(explorer, name):
    x, y = (explorer._curve.lines | explorer._curve.marks)[name].get_data()
    return dict(zip(map(int, x), y, strict=True))


def test_counts_lie_on_the_prediction(explorer):
    predicted, seen = shares(explorer, "predicted"), shares(explorer, "counted")
    assert len(seen) == 15
    for n, share in seen.items():
        assert share == pytest.approx(predicted[n])
    assert [n for n, share in seen.items() if share > 0.999] == [16, 32, 48, 64]


def test_counts_are_of_runs():
    p = Gemm(20, 12, 16)
    report = run(kernels.tiled, p, "simulator", tiling=Tiling.square(8))
    assert counted(p, 8) == report.counters["shared_load_requests"] / 2 * 32 == 24 * 16 * 16
    assert counted(p, 4) == p.flops // 2  # tiles of 4 fit: nothing is wasted
    assert share_counted(p, (8, 8), scale(SMALL).device) == 20 * 12 / (8 * 64)


def test_every_tile_is_drawn_once(explorer):
    for n in (1, 36, 64):
        explorer.n.value = n
        q = quantization(explorer.problem, scale(SMALL).device, explorer.tile.value, 1)
        over_c, over_sms = (
            np.asarray(a.image.get_array()) for a in (explorer._cover, explorer._waves)
        )
        assert over_c.size == q.tiles == (over_sms != IDLE).sum()
        assert over_sms.shape == (8, q.waves)
        for look in (1, 2, TAIL):
            assert (over_c == look).sum() == (over_sms == look).sum()
        tail = q.tail if q.tail < q.wave else 0
        assert (over_c == TAIL).sum() == tail


def test_the_sentence_says_what_is_drawn(explorer):
    assert "20 tiles of 8×8, 90.0% of what they cover. 8 SMs take 3 waves." in explorer.message
    assert "The last wave has 4 tiles: 50.0% of the SMs." in explorer.message
    assert "Counted: 20,480 products (simulated), of which C needs 18,432" in explorer.message


def test_what_is_recorded_lies_on_the_prediction(large):
    assert "143 tiles of 128×256" in large.message
    assert "132 SMs take 2 waves" in large.message
    assert "pipelined, recorded on NVIDIA H200 SXM" in large.message
    predicted, seen = shares(large, "tiles and waves"), shares(large, "pipelined")
    assert all(share < 1.02 for share in seen.values())
    assert predicted[3072] == 1
    assert predicted[3073] == pytest.approx(3073 / 6144)
    assert seen[3080] < 0.6 * seen[3072]
    assert set(shares(large, "cublas")) == {3072, 3080}
    large.sizes["m"].value = 2816
    assert "pipelined" not in large._curve.marks
    assert len(shares(large, "cublas")) > 50


def test_a_tile_that_was_not_measured_has_no_marks(large):
    large.tile.value = (64, 64)
    assert set(large._curve.marks) == {"cublas"}  # which chooses its own
    assert "pipelined" not in large.message


@pytest.mark.parametrize("name", [*GPUS, SMALL])
def test_another_gpu_offers_its_own_sizes_and_formats(explorer, name):
    explorer.device.value = GPUS[-1] if name == SMALL else SMALL
    explorer.device.value = name
    here = scale(name)
    assert not explorer.message.startswith("Not possible")
    assert f"{here.device.sms} SMs take" in explorer.message
    assert list(explorer.dtype.options) == [(f, f) for f in here.formats] or list(
        explorer.dtype.options
    ) == list(here.formats)
    for size, control in explorer.sizes.items():
        assert control.value == here.first[size]
        assert control.slider.max == len(here.stops[size]) - 1
        control.slider.value = 0
        assert control.value == here.stops[size][0]


def test_what_stays_is_drawn_as_if_anew(explorer):
    explorer.device.value = "h200"
    explorer.device.value = SMALL
    explorer.n.value = 40
    fresh = Quantization(n=40)
    assert explorer.message == fresh.message
    assert explorer.picture.png == fresh.picture.png


def test_typed_sizes_keep_to_the_scale(explorer):
    with pytest.raises(ValueError, match="n: “1000” is too large; type one from 1 to 64"):
        explorer.n.value = 1000
    explorer.n.number.text.value = "33"
    assert "C has 32×33 elements" in explorer.message


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"device": "h100"}, "device='h100' is not offered; use one of small, v100"),
        ({"tile": (3, 3)}, r"tile=\(3, 3\) is not offered"),
        ({"n": 1000}, "n: “1000” is too large"),
    ],
)
def test_values_that_no_control_could_show(change, message):
    with pytest.raises(ValueError, match=message):
        Quantization(**change)
