"""Explorers without a browser: controls are set, and artists, pictures and sentences compared."""

import dataclasses
import re
import threading
from collections import Counter

import pytest
from matplotlib.colors import to_hex
from matplotlib.text import Text

from gemmlab import Gemm, Tiling, device, explorers, kernels, plots, predict, records
from gemmlab.device import names
from gemmlab.explorers import KernelLab, Roofline
from gemmlab.explorers.shared.controls import Size
from gemmlab.measure import backends
from gemmlab.plots.shared import style
from tests.support.waiting import SECONDS, ran, until


@pytest.fixture
def roofline():
    return Roofline("v100", "float16", m=8192, n=128, k=8192)


# ------------------------------------------------------------------------------ the sizes


def test_a_slider_steps_through_powers_of_two():
    size = Size("n", 128, high=14)
    assert size.slider.value == 7
    size.slider.value = 8
    assert size.value == size.number.value == 256


def test_a_typed_number_is_kept_and_the_slider_follows():
    size = Size("n", 128, high=14)
    size.number.value = 1000
    assert (size.value, size.slider.value) == (1000, 10)
    with pytest.raises(ValueError, match="n: “1000000000” is too large; type one from 1 to 16384"):
        size.number.value = 10**9
    assert (size.value, size.number.text.value) == (1000, "1000")


def test_a_slider_stays_at_its_end_for_a_smaller_number():
    size = Size("n", 128, high=13, low=4)
    size.number.value = 3
    assert (size.value, size.slider.value) == (3, size.slider.min)


# --------------------------------------------------------------------------- the roofline


def test_the_point_moves_and_the_limiter_is_named(roofline):
    before, picture = roofline.points["predicted"].get_xydata().copy(), roofline.picture.png
    assert "limited by DRAM" in roofline.message
    assert "124 FLOP/B lies below the device's ops:byte ratio of 139 FLOP/B" in roofline.message
    roofline.n.value = 8192
    assert "limited by math" in roofline.message
    assert "2,731 FLOP/B lies above" in roofline.message
    assert (roofline.points["predicted"].get_xydata() != before).all()
    assert roofline.picture.png != picture
    assert roofline.prediction.problem.n == 8192


def test_a_tiny_problem_is_limited_by_latency():
    explorer = Roofline("h200", m=1, n=1, k=1)
    assert "limited by latency" in explorer.message
    low, _ = explorer.ax.get_ylim()
    assert low < explorer.prediction.flops_per_second


def test_artists_are_changed_and_not_made_again(roofline):
    point, children = roofline.points["predicted"], len(roofline.ax.get_children())
    for m in (16, 1000, 16384):
        roofline.m.value = m
    assert roofline.points["predicted"] is point
    assert len(roofline.ax.get_children()) == children


def test_a_moved_point_looks_as_if_drawn_anew(roofline):
    roofline.m.value = 64
    fresh = Roofline("v100", "float16", m=64, n=128, k=8192)
    assert roofline.picture.png == fresh.picture.png


@pytest.mark.usefixtures("undrawn")
def test_every_device_and_every_format(roofline):
    assert len(roofline.device.options) == len(names())
    for title in roofline.device.options:
        roofline.device.value = title
        for dtype in roofline.dtype.options:
            roofline.dtype.value = dtype
            assert f"{dtype} on {title} is predicted" in roofline.message


def test_a_format_that_the_next_device_lacks_is_replaced():
    explorer = Roofline("h200", "tf32")
    explorer.device.value = device("v100").title
    assert explorer.dtype.value in device("v100").peak
    assert "Not possible" not in explorer.message


def test_a_device_of_ones_own_joins_the_list():
    mine = dataclasses.replace(device("v100"), name="mine", title="My GPU")
    explorer = Roofline(mine)
    assert explorer.device.value == "My GPU"
    assert len(explorer.device.options) == len(names()) + 1


def test_the_picture_has_a_text_for_those_who_do_not_see_it(roofline):
    assert f'alt="{roofline.message.splitlines()[0]}' in roofline.picture.panels[0].view.value
    assert 'role="status"' in roofline.caption.value


@pytest.mark.parametrize(
    ("arguments", "error", "match"),
    [
        ({"device": "v1000"}, ValueError, "'v1000'.*v100"),
        ({"device": "v100", "dtype": "tf32"}, ValueError, "tf32"),
        ({"dtype": "int8"}, ValueError, "int8"),
        ({"m": 0}, ValueError, "m=0"),
        ({"n": 2.5}, TypeError, "n=2.5"),
        ({"k": 20_000}, ValueError, "k=20000 is too large; use 1 to 16384"),
    ],
)
def test_values_that_no_control_could_show(arguments, error, match):
    with pytest.raises(error, match=match):
        Roofline(**arguments)


# ------------------------------------------------------------------------- the kernel lab


def test_before_a_run_there_is_a_prediction(lab):
    assert "predicted on NVIDIA H200 SXM" in lab.message
    assert "Press Run (simulator)" in lab.message
    assert lab.origin.get_text() == "predicted"
    assert observed(lab) == {}


def test_a_run_lies_on_its_prediction(lab):
    picture = lab.picture.png
    assert "Counted − predicted = 0 for all" in ran(lab)
    assert "simulated: the result is right" in lab.message
    assert lab.origin.get_text() == "predicted · simulated"
    assert lab.picture.png != picture
    assert observed(lab) == {"tiled  16×16×16": lab.history[0].bytes["global"]}
    assert (lab.run.disabled, lab.stop.disabled, lab.status.value) == (False, True, "")


def observed(lab) -> dict[str, float]:
    """The bars that are there, by the names of their rows."""
    left, _ = lab.left.get_xlim()
    ends = [bar.get_x() + bar.get_width() for bar in lab.rows.bars]
    return {name: pytest.approx(x) for name, x in zip(lab.rows.rows, ends, strict=True) if x > left}


def test_runs_stand_beside_each_other_and_are_cleared(lab):
    for side in (8, 16, 32):
        lab.tile.value = Tiling.square(side)
        ran(lab)
    lab.kernel.value = "naive"
    ran(lab)
    assert list(observed(lab)) == [
        "naive  16×16×1", "tiled  8×8×8", "tiled  16×16×16", "tiled  32×32×32"
    ]  # fmt: skip
    assert [bar.get_width() > 0 for bar in lab.rows.bars].count(True) == 4
    lab.size.value = 64  # another problem has no runs, the first keeps its own
    assert observed(lab) == {}
    lab.size.value = 32
    assert len(observed(lab)) == 4
    lab.clear.click()
    assert lab.history == []
    assert observed(lab) == {}


def test_every_row_of_the_simulator_is_predicted(lab):
    rows = dict(zip(lab.rows.rows, lab.rows.predicted.get_xdata(), strict=True))
    problem = Gemm(32, 32, 32)
    for kernel in kernels.LADDER:
        (found,) = (x for name, x in rows.items() if name.startswith(f"{kernel.name} "))
        assert found == predict(problem, "h200", kernel).bytes["global"]


def test_a_size_below_the_slider_is_in_the_picture(lab):
    lab.size.value = 3
    low, high = lab.left.get_xlim()
    assert low < min(lab.rows.predicted.get_xdata()) < high
    assert "Counted − predicted = 0" in ran(lab)


def test_ragged_sizes(lab):
    lab.ragged.value = True
    lab.m.value, lab.n.value, lab.k.value = 17, 33, 5
    assert lab.sides.layout.display == "flex"
    assert "17×33×5" in ran(lab)
    assert "Counted − predicted = 0" in lab.message


def test_a_slider_draws_only_what_moves(lab):
    lab.size.value = 64
    bars, picture = lab.rows.bars, lab.picture.png
    lab.size.value = 128
    assert lab.rows.bars is bars
    assert lab.picture.png != picture
    assert lab.picture.png == KernelLab(n=128, tile=16, backend="simulator").picture.png


def test_a_tile_of_too_many_threads_is_not_offered(lab):
    tiles = [t for _, t in lab.tile.options]
    assert Tiling.square(32) in tiles
    assert max(t.threads for t in tiles) == 1024
    with pytest.raises(ValueError, match=r"4096 threads.*1024 threads"):
        KernelLab("tiled", tile=64, backend="simulator")
    lab.tile.value = Tiling.square(8)
    assert "Counted − predicted = 0" in ran(lab)


@pytest.mark.parametrize("kernel", kernels.LADDER, ids=lambda k: k.name)
def test_a_kernel_brings_its_own_tile(lab, kernel):
    lab.kernel.value = kernel.name
    assert lab.tile.value == kernel.default
    assert "Not possible" not in lab.message
    assert set(kernel.tilings) <= {t for _, t in lab.tile.options}
    for _, tiling in lab.tile.options:
        lab.tile.value = tiling
        assert "Not possible" not in lab.message
        assert str(tiling) in lab.message


def test_the_picture_keeps_its_size(lab):
    def size():
        return re.findall(r'width="(\d+)" height="(\d+)"', "".join(
            panel.view.value for panel in lab.picture.panels
        ))  # fmt: skip

    first = size()
    assert len(first) == 2
    lab.kernel.value = "pipelined"
    assert size() == first
    lab.backend.value = "recorded"
    assert size() == first
    lab.kernel.value = "cublas"
    assert size() == first


@pytest.mark.parametrize("n", [256, 4096])
def test_every_text_lies_inside_the_picture(n):
    lab = KernelLab("pipelined", n=n, backend="recorded")
    for panel in lab.picture.panels:
        width, height = panel.figure.canvas.get_width_height()
        (ax,) = panel.figure.axes
        (left, right), (low, high) = sorted(ax.get_xlim()), sorted(ax.get_ylim())
        beyond = {t for t in ax.get_xticklabels() if not left <= t.get_position()[0] <= right}
        beyond |= {t for t in ax.get_yticklabels() if not low <= t.get_position()[1] <= high}
        for text in set(panel.figure.findobj(Text)) - beyond:  # ticks beyond are not drawn
            if text.get_visible() and text.get_text().strip():
                box = text.get_window_extent()
                assert 0 <= box.x0 < box.x1 <= width + 1, text
                assert 0 <= box.y0 < box.y1 <= height + 1, text
        inside, around = ax.get_legend().get_window_extent(), ax.get_window_extent()
        assert around.x0 <= inside.x0 < inside.x1 <= around.x1
        assert around.y0 <= inside.y0 < inside.y1 <= around.y1


def test_a_problem_too_large_to_simulate_is_refused_at_once(lab):
    lab.size.value = 2048
    assert "too large to simulate" in lab.message
    assert "recorded" in lab.message
    assert "opacity" in lab.picture.panels[0].view.value  # what is seen is not what was asked for
    lab.start()
    assert lab.job is None
    lab.size.value = 64
    assert "opacity" not in lab.picture.panels[0].view.value


def test_what_is_recorded_is_offered_and_drawn_at_once(lab):
    lab.backend.value = "recorded"
    assert "Not possible" not in lab.message
    assert lab.run.disabled  # there is nothing to run
    lab.start()
    assert lab.job is None
    of_tiled = {m.problem for m in records.load(kernel="tiled")}
    assert {p for _, p in lab.stored.options} == of_tiled
    for _, problem in lab.stored.options[:3]:
        lab.stored.value = problem
        of_family = [m for m in records.load() if m.kernel in lab.family]
        there = [m for m in of_family if m.problem == problem]
        assert len(observed(lab)) == len(there) == len(lab.rows.rows)
        tiles = {m.tiling for m in there if m.kernel == "tiled"}
        assert {t for _, t in lab.tile.options} == tiles
        chosen = "tiled", lab.tile.value
        (speed,) = (m.flops_per_second for m in there if (m.kernel, m.tiling) == chosen)
        dark = [bar for bar in lab.rows.bars if to_hex(bar.get_facecolor()) == style.BLUE.lower()]
        assert [bar.get_width() for bar in dark] == [pytest.approx(speed)]
    lab.backend.value = "simulator"
    assert not lab.run.disabled


def test_rows_that_come_and_go_leave_the_picture_of_a_new_lab():
    lab = KernelLab(n=4096, backend="recorded")
    fresh, rows = lab.picture.png, lab.rows.rows
    counts = Counter(m.problem for m in records.load())
    lab.stored.value = min((p for _, p in lab.stored.options), key=counts.__getitem__)
    assert len(lab.rows.bars) == len(lab.rows.texts) == len(lab.rows.rows) < len(rows)
    assert lab.picture.png != fresh
    assert "recorded on" in lab.origin.get_text()
    assert lab.origin in lab.left.texts
    lab.stored.value = Gemm(4096, 4096, 4096)
    assert lab.rows.rows == rows
    assert lab.picture.png == fresh


def test_a_number_stands_at_its_bar_unless_it_would_cover_the_diamond():
    lab = KernelLab(kernel="tiled", n=256, tile=16, backend="recorded")

    def text_bar_and_diamond():
        (text,) = (text for text in lab.rows.texts if text.get_fontweight() == "bold")
        bar = lab.rows.bars[lab.rows.texts.index(text)]
        return text.xy[0], bar.get_x() + bar.get_width(), lab.rows.predicted.get_xdata()[0]

    text, bar, diamond = text_bar_and_diamond()
    assert text == bar < diamond / 2
    lab.stored.value = Gemm(4096, 4096, 4096)
    lab.kernel.value = "coalesced"
    text, bar, diamond = text_bar_and_diamond()
    assert bar < text == diamond


def test_what_is_not_recorded_names_what_is():
    with pytest.raises(LookupError, match=r"tiled 100×100×100.*is not recorded.*nearest"):
        KernelLab("tiled", n=100, backend="recorded")


def test_recorded_times_are_laid_over_the_prediction(lab):
    ran(lab)
    lab.backend.value = "recorded"
    (m,) = (
        m
        for m in records.load(kernel="tiled")
        if (m.problem, m.tiling) == (lab.stored.value, lab.tile.value)
    )
    assert f"recorded on NVIDIA H200 SXM, {m.provenance['date'][:10]}" in lab.message
    assert f"Median of {len(m.samples)} runs" in lab.message
    p = predict(m.problem, "h200", kernels.tiled, m.tiling)
    assert f"Measured ÷ predicted time = {plots.number(m.seconds / p.seconds)}." in lab.message
    assert list(lab.rows.predicted.get_xdata()) == [p.flops_per_second]
    assert list(lab.here.get_ydata()) == [m.flops_per_second]
    assert lab.origin.get_text().startswith("predicted · recorded on NVIDIA H200 SXM")
    lab.backend.value = "simulator"  # each backend's own history comes back
    assert "Counted − predicted = 0" in lab.message


def test_a_wrong_result_is_called_wrong(monkeypatch, lab):
    run = backends.run
    monkeypatch.setattr(
        backends, "run", lambda *a, **k: dataclasses.replace(run(*a, **k), error=float("nan"))
    )
    assert "the result is WRONG" in ran(lab)


def test_a_failing_run_leaves_the_lab_usable(monkeypatch, lab):
    def fail(*args, **kwargs):
        raise RuntimeError("the GPU <fell> off")

    with monkeypatch.context() as patch:
        patch.setattr(backends, "run", fail)
        assert ran(lab) == "Not possible: the GPU <fell> off"
        assert "&lt;fell&gt;" in lab.caption.value
    assert "Counted − predicted = 0" in ran(lab)


def test_a_run_is_stopped_and_the_lab_stays_usable(lab):
    lab.size.value = 1024
    lab.start()
    assert lab.run.disabled
    assert not lab.stop.disabled
    until(lambda: "running… " in lab.status.value)
    lab.size.value = 512  # the controls are alive
    assert "512×512×512" in lab.message
    lab.stop.click()
    assert lab.wait(SECONDS)
    assert "Stopped" in lab.message
    assert lab.history == []
    lab.size.value = 32
    assert "Counted − predicted = 0" in ran(lab)


def test_a_second_run_waits_for_the_first(monkeypatch, lab):
    gate, calls = threading.Event(), []
    run = backends.run

    def slow(*args, **kwargs):
        calls.append(args)
        gate.wait(SECONDS)
        return run(*args, **kwargs)

    monkeypatch.setattr(backends, "run", slow)
    lab.start()
    lab.start()
    gate.set()
    lab.wait(SECONDS)
    assert len(calls) == len(lab.history) == 1


def test_another_kernel_offers_its_own_backends(lab):
    lab.kernel.value = "cublas"
    assert "simulator" not in dict(lab.backend.options)
    assert lab.backend.value == "auto"
    assert lab.tile.disabled
    lab.kernel.value = "naive"
    assert "simulator" in dict(lab.backend.options)
    assert not lab.tile.disabled


def test_the_tile_of_a_kernel_keeps_its_shape():
    lab = KernelLab("naive", tile=8, backend="simulator")
    assert lab.choice[1].block == (8, 8, 1)


def test_cpu_kernels_bring_each_other():
    lab = KernelLab("cpu_numpy", n=64)
    assert lab.kernel.options == tuple(k.name for k in kernels.CPU)
    message = ran(lab)
    assert "measured here" in message
    assert "predicted for an ideal kernel" in message
    assert "Measured ÷ predicted time" in message


@pytest.mark.parametrize(
    ("arguments", "error", "match"),
    [
        ({"kernel": "fast"}, ValueError, "'fast'.*naive, coalesced, tiled"),
        ({"n": 0}, ValueError, "n=0|m=0"),
        ({"n": 10_000}, ValueError, "10000 is too large; use 1 to 8192"),
        ({"tile": 0}, ValueError, "tile=0"),
        ({"tile": 2.0}, TypeError, "tile=2.0"),
        ({"backend": "cpu"}, ValueError, "backend='cpu'"),
        ({"backend": "quantum"}, ValueError, "'quantum'"),
        ({"device": "h300"}, ValueError, "'h300'"),
    ],
)
def test_values_that_the_lab_refuses(arguments, error, match):
    with pytest.raises(error, match=match):
        KernelLab(**arguments)


@pytest.mark.parametrize("name", explorers.__all__)
def test_an_explorer_is_found_by_its_name(name):
    assert getattr(explorers, name).__name__ == name


def test_an_explorer_that_is_not_there_is_refused_with_those_that_are():
    with pytest.raises(AttributeError, match="no explorer 'Kernellab'; use one of .*KernelLab"):
        explorers.Kernellab  # noqa: B018
