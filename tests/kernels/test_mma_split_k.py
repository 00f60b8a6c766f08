"""Split-K on Tensor Cores: all formats and layouts, counts as predicted, what it suggests."""

import math
from collections import Counter, defaultdict
from dataclasses import replace
from itertools import cycle

import numpy as np
import pytest

from gemmlab import Gemm, Tiling, device, kernels, predict, records, run
from gemmlab.backends.workspace import workspace
from gemmlab.kernels import mma_split_k
from gemmlab.kernels.tensor_core.warps import ARITHMETIC
from gemmlab.prediction.compiling import lacking, listing
from gemmlab.product import LAYOUTS
from gemmlab.sass.execution.launch import launch
from tests.support.edge_shapes import SCALES
from tests.support.rungs import arguments, simulated

H200 = device("h200")


def tile(block, warp, stages):
    return Tiling(block, (warp[0] // 8, warp[1] // 4), stages, warp)


SMALL, WIDE = tile((64, 64, 32), (32, 32), 2), tile((64, 128, 64), (32, 64), 3)
SHAPES = ((64, 64, 256), (72, 66, 203), (5, 9, 40), (130, 70, 72), (64, 128, 96))
SPLITS = (3, 5, 2, 9, 4)  # that divide the steps, do not, and are more than there are


def gemm(shape, which=1, **options):
    return Gemm(*shape, **ARITHMETIC[which % len(ARITHMETIC)]._asdict(), **options)


@pytest.mark.parametrize("tiling", [SMALL, WIDE], ids=str)
def test_any_product_in_any_parts(tiling):
    turns = zip(SHAPES, SPLITS, cycle(SCALES), cycle(LAYOUTS), range(9), strict=False)
    for shape, split, (alpha, beta), layout, which in turns:
        problem = gemm(shape, which, alpha=alpha, beta=beta, layout=layout)
        parts = replace(tiling, split=split)
        found = run(mma_split_k, problem, backend="simulator", tiling=parts)
        assert found.passed
        assert mma_split_k.work(problem, parts).counters == Counter(found.counters)


def test_one_part_has_the_bits_of_the_unsplit_kernel():
    problem = gemm((64, 72, 136))
    operands = problem.operands(seed=5)
    whole, _ = simulated(kernels.mma_pipelined, problem, operands, SMALL)
    one, _ = simulated(mma_split_k, problem, operands, SMALL)
    three, _ = simulated(mma_split_k, problem, operands, replace(SMALL, split=3))
    assert np.array_equal(one, whole)
    assert not np.array_equal(three, whole)


def test_it_suggests_as_many_blocks_as_there_is_room_for():
    for shape in ((512, 512, 16384), (256, 256, 65536), (384, 512, 20000)):
        problem = gemm(shape)
        chosen = mma_split_k.choose(None, problem, "h200")
        across, down = chosen.grid(problem)
        assert H200.sms / 2 <= across * down * chosen.split <= 2 * H200.sms
        split, whole = (predict(problem, H200, mma_split_k, t) for t in (chosen, chosen.unsplit))
        assert whole.seconds > 3 * split.seconds
    square = gemm((4096, 4096, 4096))
    assert mma_split_k.choose(None, square, "h200").split == 1


def test_what_it_suggests_is_near_the_fastest_that_is_recorded():
    found = defaultdict(dict)
    for m in records.load("h200", kernel="mma_split_k"):
        found[m.problem][m.tiling] = m.seconds
    ratios = []
    for problem, recorded in found.items():
        chosen = mma_split_k.choose(None, problem, "h200")
        if len(recorded) > 2 and chosen in recorded:
            ratios.append(recorded[chosen] / min(recorded.values()))
    assert len(ratios) >= 4
    assert max(ratios) < 1.05


def test_what_it_refuses():
    for wrong in (tile((64, 64, 32), (32, 32), 1), tile((64, 64, 24), (32, 32), 2)):
        with pytest.raises(ValueError, match="does not fit the kernel that splits k"):
            mma_split_k.choose(wrong)
    with pytest.raises(ValueError, match=r"mma_split_k computes float16.*bfloat16"):
        mma_split_k.check_problem(Gemm(8, 8, 8))
    assert kernels.get("mma_split_k") is mma_split_k


@pytest.mark.ptxas
@pytest.mark.skipif(bool(lacking()), reason=lacking() or "")
@pytest.mark.parametrize(
    ("shape", "which", "layout"), [((72, 136, 200), 1, "nn"), ((67, 66, 145), 2, "tt")], ids=str
)
def test_compiled_code_gives_the_bits_of_the_simulator(shape, which, layout):
    problem = gemm(shape, which, alpha=0.5, beta=2, layout=layout)
    tiling, operands = replace(SMALL, split=3), problem.operands(seed=1)
    expected, _ = simulated(mma_split_k, problem, operands, tiling)
    args = (*arguments(problem, operands), *workspace(mma_split_k, problem, tiling))
    for one in mma_split_k.launches:
        grid, block = one.launch(problem, tiling)
        options = {"launch_bounds": math.prod(block), **one.compile(tiling)}
        code = listing(one.function(problem, tiling, (9, 0)), args, "sm_90", **options)
        assert code.local_bytes == 0
        shared = one.dynamic_shared_bytes(problem, tiling)
        launch(code, grid, block, *args, shared_bytes=shared).run()
    assert np.array_equal(args[-2].view(np.uint8), expected.view(np.uint8))


@pytest.mark.gpu
@pytest.mark.parametrize("shape", [(512, 512, 16_384), (250, 300, 5000), (129, 257, 3333)])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_gpu_computes_the_parts(layout, shape):
    problem = gemm(shape, layout=layout, beta=1)
    assert run(mma_split_k, problem, backend="gpu", repeats=1).passed
