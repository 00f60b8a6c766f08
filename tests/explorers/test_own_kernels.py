"""A learner's own kernel in the kernel lab: counted, named where it is wrong, never a traceback."""

import pytest

from gemmlab import Gemm, Tiling, kernels
from gemmlab.explorers import KernelLab
from gemmlab.measure.backends import trial
from tests.support import own_kernels
from tests.support.waiting import ran


def test_a_right_one_stands_beside_the_others():
    lab = KernelLab(own_kernels.right, n=32, tile=8, backend="simulator")
    assert lab.kernel.value == lab.rows.rows[-1].split("  ")[0] == "right (yours)"
    assert len(lab.rows.rows) == len(kernels.LADDER) + 1
    assert "predicted for an ideal kernel" in lab.message
    before = lab.picture.png
    message = ran(lab)
    assert "right (yours) 8×8×8 on 32×32×32 float32, simulated: the result is right" in message
    assert "There is no model of it: no counts are predicted." in message
    assert "It passed the simulator on 13×11×19" in message
    assert lab.picture.png != before
    made = lab.history[0]
    end = lab.rows.bars[-1].get_x() + lab.rows.bars[-1].get_width()
    assert end == pytest.approx(made.bytes["global"])
    counted = dict(zip(lab.compared.names, lab.compared.counted, strict=True))
    assert counted["global_store_bytes"].get_width() == made.counters["global_store_bytes"]
    lab.kernel.value = "tiled"  # the others are there as ever
    assert "Counted − predicted = 0" in ran(lab)
    lab.kernel.value = "right (yours)"
    assert "It passed the simulator" in lab.message


def named(lab):
    return [text.get_text() for text in lab.left.get_legend().get_texts()]


def test_the_legend_names_the_marks_that_there_are():
    lab = KernelLab(own_kernels.right, n=32, tile=8, backend="simulator")
    assert lab.rows.predicted.get_xdata()
    assert named(lab) == ["predicted"]
    ran(lab)
    assert named(lab) == ["observed", "predicted"]
    fresh = KernelLab("cublas", n=4096, backend="recorded")
    assert fresh.rows.predicted.get_xdata() == []
    assert named(fresh) == ["observed"]
    lab = KernelLab(n=4096, backend="recorded")
    assert named(lab) == ["observed", "predicted"]
    lab.kernel.value = "cublas"
    assert lab.picture.png == fresh.picture.png


@pytest.mark.parametrize(
    ("kernel", "words"),
    [
        (own_kernels.racing, "shared-race"),
        (own_kernels.endless, "it was stopped. step-limit"),
        (own_kernels.raises, "NameError"),
        (own_kernels.crowded, "shared arrays of 262144 B a block are too large"),
        (own_kernels.build_endless, "build(tiling) was stopped"),
        (own_kernels.build_other, "is not a kernel; use a function kernel(alpha, A, B, beta, C)"),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_a_wrong_one_is_one_message(monkeypatch, kernel, words):
    monkeypatch.setattr(trial, "BUILDING", 0.3)
    lab = KernelLab(kernel, n=32, backend="simulator")
    picture = lab.picture.png
    message = ran(lab)
    assert message.startswith(f"Not possible: {kernel.__name__} (yours), on ")
    assert words in message
    assert 'role="alert"' in lab.caption.value
    assert lab.history == []
    assert lab.picture.png == picture  # the prediction alone, as before
    assert not lab.run.disabled
    lab.kernel.value = "tiled"
    assert "Counted − predicted = 0" in ran(lab)


def test_one_that_is_wrong_elsewhere_is_counted_and_warned_of():
    message = ran(KernelLab(own_kernels.unguarded, n=32, backend="simulator"))
    assert "the result is right" in message
    assert "on 25×19×33, simulated: out-of-bounds" in message


def test_a_wrong_signature_says_what_is_accepted():
    with pytest.raises(
        TypeError, match=r"other_order\(A, B, C, alpha, beta\).*kernel\(alpha, A, B"
    ):
        KernelLab(own_kernels.other_order)


def test_a_function_keeps_its_tile_and_a_build_takes_others():
    fixed = KernelLab(own_kernels.right, n=32, tile=8, backend="simulator")
    assert [t for _, t in fixed.tile.options] == [Tiling.square(8)]
    assert fixed.tile.disabled
    built = KernelLab(own_kernels.build, n=32, tile=8, backend="simulator")
    assert {Tiling.square(4), Tiling.square(8), Tiling.square(32)} <= {
        t for _, t in built.tile.options
    }
    built.tile.value = Tiling.square(4)
    assert "4×4×4" in ran(built)


def test_grid_and_block_are_given_by_own():
    mine = kernels.own(own_kernels.strided, grid=(5, 1), block=(64, 1))
    lab = KernelLab(mine, n=32, backend="simulator")
    assert lab.kernel.value == "strided (yours)"
    assert "the result is right" in ran(lab)
    assert lab.history[0].problem == Gemm(32, 32, 32)


def test_one_that_is_not_recorded_has_no_records_to_choose():
    lab = KernelLab(own_kernels.right, n=32, backend="simulator")
    assert "recorded" not in dict(lab.backend.options)
    lab.kernel.value = "tiled"
    lab.backend.value = "recorded"
    lab.kernel.value = "right (yours)"
    assert lab.backend.value == "auto"
    assert "Not possible" not in lab.message
