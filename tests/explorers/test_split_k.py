"""The explorer of splits: what controls, curves, schedules and sentences say."""

import re

import pytest

from gemmlab import Gemm, kernels, records
from gemmlab.explorers import SplitK
from gemmlab.explorers.split_k import CURVE, FIRST, KERNELS, LAST, MOST
from gemmlab.plots import si
from tests.support.waiting import ran


@pytest.fixture
def counted():
    return SplitK("split_k", 64, 64, 256, split=2, block=(64, 64), backend="simulator")


def test_it_begins_with_what_the_kernel_suggests(undrawn):
    explorer = SplitK()
    assert (explorer.split.value, explorer.tile.value) == (4, "128×256")
    assert "32 tiles of 128×256, 512 steps each. With 4 parts of k there are 128 blocks; " in (
        explorer.message
    )
    assert "132 SMs take 1 wave, 128 steps." in explorer.message
    assert "16.8 MB of sums wait" in explorer.message


def test_what_is_recorded_lies_on_the_picture(undrawn):
    explorer = SplitK()
    found = {
        m.tiling.split: m.seconds
        for m in records.load("h200", "split_k")
        if m.problem == Gemm(1024, 1024, 8192)
    }
    at, values = explorer.curve.marks["recorded"].get_data()
    assert dict(zip(at, values, strict=True)) == found
    told = re.search(
        r"^Recorded on .*: (.*), 1\.38 times what is predicted; ", explorer.message, re.M
    )
    assert told[1] == si(found[4], "s")
    library = records.find(kernels.cublas, Gemm(1024, 1024, 8192)).seconds
    assert explorer.curve.library.get_ydata()[0] == library
    explorer.split.value = 7
    assert "No run with 7 parts is recorded." in explorer.message
    assert explorer.run.disabled
    explorer.backend.value = "auto"
    assert not explorer.run.disabled


def test_one_of_a_kind_is_no_plural(undrawn):
    explorer = SplitK(m=64, n=64, k=16, split=1, block=(64, 64))
    assert "1 tile of 64×64, 1 step each. With 1 part of k there is 1 block; " in explorer.message
    assert "SMs take 1 wave, 1 step." in explorer.message


def test_the_second_wave_is_seen(undrawn):
    explorer = SplitK(split=5)
    assert "160 blocks; 132 SMs take 2 waves, 206 steps." in explorer.message
    rows = [path.vertices for path in explorer.placed.parts.get_paths()]
    assert len(rows) == 2 * FIRST + LAST  # the second wave is on the SMs 0 to 27
    assert sum(corners[:, 0].min() > 0 for corners in rows) == FIRST
    labels = [label.get_text() for label in explorer.right.get_yticklabels()]
    assert labels == [str(sm) for sm in (*range(FIRST), *range(132 - LAST, 132))]


@pytest.mark.parametrize("kernel", [k.name for k in KERNELS])
def test_a_run_lies_on_its_prediction(counted, kernel):
    counted.kernel.value = kernel
    counted.split.value = 3
    assert "Press Run to compare." in counted.message
    text = ran(counted)
    assert "the result is right" in text
    (at,), (sectors,) = counted.curve.marks["counted"].get_data()
    assert at == 3
    line = dict(zip(*counted.curve.lines["predicted"].get_data(), strict=True))
    assert line[3] == sectors
    assert counted.left.get_ylabel() == "sectors"


def test_another_kernel_keeps_tile_and_parts_and_says_what_it_takes_by_itself(undrawn):
    explorer = SplitK(split=7)
    assert "By itself split_k takes 128×256 and 4 parts here." in explorer.message
    explorer.kernel.value = "split_k_atomics"
    assert (explorer.tile.value, explorer.split.value) == ("128×256", 7)
    explorer.kernel.value = "stream_k"  # 7 parts of each of 32 tiles are as many blocks
    assert (explorer.tile.value, explorer.split.value) == ("128×256", 7 * 32)
    assert "By itself stream_k takes 128×256 and 132 blocks here." in explorer.message
    assert explorer.split.slider.description == "blocks"
    assert explorer.left.get_xlabel() == "blocks"
    explorer.kernel.value = "split_k_atomics"
    assert explorer.split.value == 7
    assert "additions in L2" in explorer.message
    assert explorer.left.get_xlabel() == "parts of k"


def test_schedules_with_too_many_pieces_are_named_not_drawn(undrawn):
    explorer = SplitK(m=2048, n=2048, k=8192, split=64, block=(128, 256))
    assert [text.get_text() for text in explorer.right.texts][-1] == (
        "8,192 blocks: too many to draw"
    )
    explorer.split.value = 2
    assert explorer.placed is not None
    assert len(explorer.placed.parts.get_paths()) == 2 * FIRST + LAST


def test_what_cannot_be_done_is_said(counted):
    counted.sizes["k"].value = 2**16
    counted.sizes["m"].value = 4096
    counted.sizes["n"].value = 4096
    assert "Not possible: 4096×4096×65536 float32 is too large to simulate" in counted.message
    counted.backend.value = "recorded"
    counted.split.value = MOST
    assert counted.right.texts[-1].get_text().endswith(" blocks: too many to draw")
    counted.split.value = 4
    assert "is recorded." in counted.message


def test_bad_values_are_refused():
    with pytest.raises(ValueError, match=r"kernel='tiled' does not share k; use split_k, "):
        SplitK("tiled")
    with pytest.raises(ValueError, match=r"block=\(32, 32\) is not offered; use one of 128×256"):
        SplitK(block=(32, 32))
    with pytest.raises(ValueError, match="backend='cuda'"):
        SplitK(backend="cuda")


def test_the_curve_has_the_splits_at_which_waves_end():
    assert list(CURVE) == sorted(set(CURVE))
    assert {131, 132, 133, 264, MOST} <= set(CURVE)
