"""What sharing k gains and costs, beside the model of tiles."""

import pytest

from gemmlab import Gemm, Tiling, device, kernels
from gemmlab.model.in_tiles import in_tiles
from gemmlab.model.schedule import sharing

H200 = device("h200")


def test_sharing_is_the_model_of_tiles_where_k_is_split():
    for shape in ((1024, 1024, 8192), (64, 64, 8192), (768, 768, 16384)):
        for split in (1, 2, 4, 5, 16, 131):
            p, t = Gemm(*shape), Tiling(block=(128, 128, 16), split=split)
            found = sharing("split_k", p, H200, t)
            expected = in_tiles(p, H200, (128, 128), split)
            assert found.product == pytest.approx(
                float(expected.seconds - expected.reduction), rel=0.2
            )
            assert found.blocks == min(split, t.steps(p)) * t.grid(p)[0] * t.grid(p)[1]


def test_sharing_of_whole_tiles_costs_no_sums():
    p, t = Gemm(1024, 1024, 1024), Tiling(block=(128, 128, 16))
    assert sharing("split_k", p, H200, t).sums == 0
    even = sharing(
        "stream_k", Gemm(1408, 3072, 4096), H200, Tiling(block=(128, 256, 16), split=132)
    )
    assert (even.stored, even.sums, even.longest) == (0, 0, 256)


def test_sharing_gains_and_pays():
    p = Gemm(1408, 3080, 4096)
    whole, even = (
        sharing(name, p, H200, Tiling(block=(128, 256, 8), split=split))
        for name, split in (("split_k", 1), ("stream_k", 132))
    )
    assert whole.longest == 1024
    assert even.longest == 555
    assert 0 < even.stored <= 2 * 132 * 128 * 256 * 4
    atomics = sharing("split_k_atomics", p, H200, Tiling(block=(128, 256, 8), split=8))
    assert atomics.stored == 0
    assert atomics.sums == pytest.approx(8 * p.m * p.n / H200.l2_additions + H200.launch_interval)


def test_sharing_refuses_other_kernels():
    with pytest.raises(ValueError, match=r"'tiled' does not share k; use one of split_k, "):
        sharing("tiled", Gemm(64, 64, 64), H200, kernels.tiled.default)
