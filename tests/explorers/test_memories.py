"""The explorer of all rooflines: clocks, marks and words for each rung, device and size."""

import pytest
from matplotlib.path import Path

from gemmlab import Gemm, device, kernels, predict, records
from gemmlab.explorers import Memories
from gemmlab.model.limiter import clocks, intensities

LADDER = [kernel.name for kernel in kernels.LADDER]


@pytest.fixture(scope="module")
def explorer():
    return Memories("tiled", n=4096)


def drawn(explorer):
    """Memory -> the place of its mark, of those that are shown."""
    marks = explorer.marks.marks.items()
    return {x: line.get_xydata()[0].tolist() for x, line in marks if line.get_visible()}


def test_the_longest_clock_is_named_and_compared_with_the_record(explorer):
    explorer.kernel.value = "tiled"
    assert explorer.longest == "shared"
    assert explorer.message.startswith(
        "tiled at n = 4096 on NVIDIA H200 SXM: shared memory is the longest clock, 17.5 ms"
    )
    assert "DRAM: 683 FLOP/B, 41.9 µs." in explorer.message
    assert "Recorded: 17.5 ms, 1.00 times the longest clock." in explorer.message


@pytest.mark.parametrize("name", LADDER)
def test_marks_lie_at_the_intensity_of_each_memory_and_the_recorded_speed(explorer, name):
    explorer.kernel.value = name
    p = Gemm(4096, 4096, 4096)
    kernel = kernels.get(name)
    speed = records.find(kernel, p).flops_per_second
    found = intensities(predict(p, device("h200"), kernel))
    assert drawn(explorer) == {
        level: pytest.approx([intensity, speed]) for level, intensity in found.items()
    }
    assert ("shared" in found) == (name not in ("naive", "coalesced"))


def test_without_a_record_the_longest_clock_sets_the_height():
    explorer = Memories("coalesced", device="v100", n=1000)
    assert "Nothing is recorded of it at this size." in explorer.message
    assert explorer.origin.get_text() == "predicted"
    p = explorer.prediction
    longest = max(clocks(p, device("v100")).values())
    assert {y for _, y in drawn(explorer).values()} == {p.flops / longest}


@pytest.mark.usefixtures("undrawn")
@pytest.mark.parametrize(("kernel", "n"), [("pipelined", 33), ("tiled", 4096), ("naive", 1)])
def test_no_name_of_a_memory_lies_on_that_of_a_slope(kernel, n):
    explorer = Memories(kernel, n=n)
    names = [x.get_window_extent() for x in explorer.marks.labels.values() if x.get_visible()]
    for slope in explorer.roof.slope_labels.values():
        outline = slope.get_window_extent()  # the turned text lies along its diagonal
        (x0, y0), (x1, y1) = outline.min, outline.max
        assert not any(Path([(x0, y0), (x1, y1)]).intersects_bbox(name) for name in names)


@pytest.mark.usefixtures("undrawn")
def test_every_device_every_rung_and_every_size(explorer):
    for title in explorer.device.options:
        explorer.device.value = title
        for name in LADDER:
            explorer.kernel.value = name
            said = explorer.message
            assert "is the longest clock" in said or "B of shared memory is too large" in said
    explorer.device.value = device("h200").title
    for n in (1, 33, 16384):
        explorer.n.value = n
        assert f"at n = {n} on" in explorer.message


def test_a_moved_picture_is_the_one_drawn_anew():
    moved = Memories("naive", n=4096)
    moved.kernel.value = "pipelined"
    moved.n.value = 2048
    assert moved.picture.png == Memories("pipelined", n=2048).picture.png
    moved.device.value = device("a100_80gb").title
    assert moved.picture.png == Memories("pipelined", "a100_80gb", n=2048).picture.png


def test_artists_are_changed_and_not_made_again():
    explorer = Memories("tiled")
    children = len(explorer.ax.get_children())
    for name in LADDER:
        explorer.kernel.value = name
    assert len(explorer.ax.get_children()) == children


@pytest.mark.parametrize(
    ("arguments", "error", "match"),
    [
        ({"kernel": "cublas"}, ValueError, "'cublas' is no rung of the ladder; use naive, "),
        ({"kernel": kernels.cublas}, ValueError, "'cublas' is no rung"),
        ({"device": "v1000"}, ValueError, "'v1000'.*v100"),
        ({"n": 0}, ValueError, "n=0"),
        ({"n": 20_000}, ValueError, "n=20000 is too large; use 1 to 16384"),
    ],
)
def test_values_that_no_control_could_show(arguments, error, match):
    with pytest.raises(error, match=match):
        Memories(**arguments)
