"""Two blocks of a cluster divide k: to the bit, counted as predicted."""

import numpy as np
import pytest

from gemmlab import Tiling, kernels, run, simulate
from gemmlab.kernels import cluster_split_k, wgmma_split_k
from gemmlab.numerics import fused_dot_add
from tests.kernels.test_hopper import product
from tests.support.rungs import predicted

SMALL = Tiling(block=(64, 64, 64), stages=2)
MEASURING = pytest.mark.measuring  # what takes long beside another that shows the same
PRODUCTS = [
    product(72, 40, 136, "nn", out_dtype="float16", beta=1),
    product(8, 63, 70, beta=0.5),  # rows that neither cp.async nor the TMA can copy
    pytest.param(product(8, 72, 136, "tt", "bfloat16", "bfloat16", alpha=3), marks=MEASURING),
]


@pytest.mark.parametrize("problem", PRODUCTS, ids=str)
def test_it_computes_any_product_and_counts_as_predicted(problem):
    found = run(cluster_split_k, problem, backend="simulator", tiling=SMALL)
    assert found.passed
    assert {name: n for name, n in predicted(cluster_split_k, problem, SMALL).items() if n} == {
        name: n for name, n in found.counters.items() if n
    }


def test_a_sum_has_two_parts_of_whole_steps():
    """Five steps: three in the first block, two in the other, whose third lies beyond k."""
    problem = product(16, 8, 5 * 64)
    a, b, _ = problem.operands(3)
    c = np.full((16, 8), np.nan, np.float32)
    report = simulate(
        cluster_split_k.function(problem, SMALL), *cluster_split_k.configure(problem, SMALL),
        np.float32(1), *cluster_split_k.operands(problem, SMALL, a, b), np.float32(0), c,
        cluster=2, shared_bytes=cluster_split_k.shared_bytes(problem, SMALL),
    )  # fmt: skip
    zero, half = np.zeros_like(c), 3 * 64
    first, second = (
        fused_dot_add(a[:, None, part], b[None, :, part], zero)
        for part in (slice(0, half), slice(half, None))
    )
    assert np.array_equal(c, first + second)
    assert report.counters["cluster_store_bytes"] == 64 * 64 * 4
    assert report.instructions["inst_tensor_copy"] == 2 * 3 * 2


def test_it_needs_no_workspace_and_one_launch():
    assert (len(cluster_split_k.launches), len(wgmma_split_k.launches)) == (1, 2)
    assert cluster_split_k.workspace(product(64, 64, 64), SMALL) == ()
    assert cluster_split_k.period(SMALL) == 2 * SMALL.stages  # each block has half of the steps
    assert cluster_split_k in kernels.HOPPER_CLUSTER_SPLIT_K
    assert kernels.get("cluster_split_k") is cluster_split_k


@pytest.mark.parametrize(
    ("sizes", "block"),
    [((1024, 1024, 1024), (128, 128, 64)), ((4096, 64, 1024), (64, 64, 64))],
)
def test_small_tiles_are_for_a_small_c(sizes, block):
    problem = product(*sizes, out_dtype="float16")
    assert cluster_split_k.choose(None, problem, "h100_sxm").block == block
    assert cluster_split_k.choose(None, problem) == cluster_split_k.default
    assert cluster_split_k.choose(None, problem, "rtx3060") in cluster_split_k.tilings


@pytest.mark.parametrize(
    ("block", "stages"),
    [((32, 64, 64), 4), ((64, 64, 32), 4), ((64, 64, 64), 1), ((128, 256, 64), 4)],
)
def test_what_it_refuses(block, stages):
    with pytest.raises(ValueError, match="needs blocks of m×n×64 with m 64 or 128"):
        cluster_split_k.choose(Tiling(block=block, stages=stages))
