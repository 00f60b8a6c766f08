"""What the model predicts, the simulator counts: an equality, where the model claims exactness."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gemmlab import kernels, simulate
from gemmlab.problem import Gemm
from gemmlab.tiling import Tiling

NAIVE_BLOCKS = [(16, 16), (32, 4), (4, 32), (1, 32), (10, 3), (7, 7), (32, 32), (1, 1)]
TILES = [1, 2, 3, 8, 10, 16, 17, 32]
SHAPES = [(1, 1, 1), (16, 16, 16), (17, 15, 33), (1, 50, 9), (50, 1, 9), (31, 33, 1), (40, 24, 20)]
NAMES = {
    "global_load_requests",
    "global_load_sectors",
    "global_load_bytes",
    "global_store_requests",
    "global_store_sectors",
    "global_store_bytes",
}
SHARED = {
    "shared_load_requests",
    "shared_load_wavefronts",
    "shared_store_requests",
    "shared_store_wavefronts",
    "barriers",
}


def check(kernel, problem, tiling):
    """Counters equal name by name, and the result that they were counted on is right."""
    a, b, c = problem.operands(kind="integers")
    result = np.full_like(c, np.nan) if problem.beta == 0 else c.copy()
    grid, block = kernel.launch(problem, tiling)
    scalars = problem.numpy_dtype.type
    counted = simulate(
        kernel.build(tiling),
        grid,
        block,
        scalars(problem.alpha),
        a,
        b,
        scalars(problem.beta),
        result,
    ).counters
    predicted = kernel.work(problem, tiling).counters
    wrong = {
        name: (predicted[name], counted[name])
        for name in {*predicted, *counted}
        if predicted[name] != counted[name]
    }
    assert not wrong, f"{kernel.name} {problem} {tiling}: (predicted, counted) = {wrong}"
    assert set(counted) >= (NAMES | SHARED if kernel is kernels.tiled else NAMES)
    assert np.array_equal(result, problem.reference(problem.operands(kind="integers")))


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("block", NAIVE_BLOCKS, ids=str)
def test_naive(shape, block):
    check(kernels.naive, Gemm(*shape), Tiling(block=(*block, 1)))


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("tile", TILES)
def test_tiled(shape, tile):
    check(kernels.tiled, Gemm(*shape), Tiling.square(tile))


@pytest.mark.parametrize("dtype", ["float16", "float64"])
@pytest.mark.parametrize("kernel", kernels.LADDER, ids=lambda k: k.name)
@pytest.mark.parametrize("tile", [8, 10, 16])
def test_other_formats(kernel, dtype, tile):
    check(kernel, Gemm(33, 20, 17, dtype=dtype), Tiling(block=(tile, tile, tile)))


@pytest.mark.parametrize("kernel", kernels.LADDER, ids=lambda k: k.name)
@pytest.mark.parametrize(("alpha", "beta"), [(2, 0), (1, 1), (-0.5, 2), (0, -0.5)])
def test_scalars(kernel, alpha, beta):
    check(kernel, Gemm(35, 18, 21, alpha=alpha, beta=beta), kernel.default)


def test_worked_counts():
    """The 128³ product with 16×16 tiles, counted by hand.

    Global: each of 64 blocks loads 2·8 tiles of 16×16, a warp two rows of 64 bytes, which are two
    sectors each. Shared: a warp stores two rows of 16 words to 32 banks, and for each p reads two
    words of As and 16 words of Bs, each in one wavefront.
    """
    problem, tiling = Gemm(128, 128, 128), Tiling.square(16)
    counted = kernels.tiled.work(problem, tiling).counters
    warps = 64 * 8  # blocks × warps of a block
    assert counted["global_load_requests"] == warps * 8 * 2
    assert counted["global_load_sectors"] == 4 * counted["global_load_requests"]
    assert counted["global_load_bytes"] == 2 * 4 * 128**3 // 16
    assert counted["global_store_sectors"] == 128 * 128 * 4 // 32
    assert counted["shared_store_wavefronts"] == warps * 8 * 2
    assert counted["shared_load_wavefronts"] == warps * 8 * 16 * 2 == 131_072
    assert counted["shared_bank_conflicts"] == 0
    assert counted["barriers"] == 64 * 8 * 2
    check(kernels.tiled, problem, tiling)


def test_naive_walks_down_columns():
    """A warp is 16 rows by 2 columns: a load of A touches 16 sectors, one for each row."""
    counted = kernels.naive.work(Gemm(64, 64, 64), Tiling(block=(16, 16, 1))).counters
    warp_steps = 64 * 64 * 64 // 32
    assert counted["global_load_requests"] == 2 * warp_steps
    assert counted["global_load_sectors"] == (16 + 1) * warp_steps
    assert counted["global_store_sectors"] == 16 * 64 * 64 // 32


sizes = st.integers(1, 40)
few = settings(max_examples=40, deadline=None)
scalars = st.sampled_from([(1, 0), (1, 1), (2, -0.5)])


@few
@given(m=sizes, n=sizes, k=st.integers(1, 24), bm=st.integers(1, 33), bn=st.integers(1, 31),
       scale=scalars)  # fmt: skip
def test_naive_on_any_shape(m, n, k, bm, bn, scale):
    check(kernels.naive, Gemm(m, n, k, *scale), Tiling(block=(bm, bn, 1)))


@few
@given(m=sizes, n=sizes, k=sizes, tile=st.integers(1, 32), scale=scalars)
def test_tiled_on_any_shape(m, n, k, tile, scale):
    check(kernels.tiled, Gemm(m, n, k, *scale), Tiling.square(tile))
