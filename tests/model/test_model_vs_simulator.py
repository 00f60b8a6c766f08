"""What the model predicts, the simulator counts. Edge shapes of every rung: tests/kernels."""

import math

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from benchmarks.samples.small_tilings import SMALL
from gemmlab import kernels
from gemmlab.model import transactions
from gemmlab.problem import LAYOUTS, Gemm
from gemmlab.tiling import Tiling
from tests.support.rungs import check

NAIVE_BLOCKS = [(16, 16), (32, 4), (4, 32), (1, 32), (10, 3), (7, 7), (32, 32), (1, 1)]
TILES = [1, 2, 3, 8, 10, 16, 17, 32]
SHAPES = [(1, 1, 1), (16, 16, 16), (17, 15, 33), (1, 50, 9), (50, 1, 9), (31, 33, 1), (40, 24, 20)]
SIMPLE = (kernels.naive, kernels.coalesced, kernels.tiled)
STAGED = (kernels.register_tiled, kernels.vectorised, kernels.warp_tiled, kernels.pipelined)
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


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("block", NAIVE_BLOCKS, ids=str)
def test_naive(shape, block):
    check(kernels.naive, Gemm(*shape), Tiling(block=(*block, 1)))


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("tile", TILES)
def test_tiled(shape, tile):
    check(kernels.tiled, Gemm(*shape), Tiling.square(tile))


@pytest.mark.parametrize("dtype", ["float16", "float64"])
@pytest.mark.parametrize("kernel", SIMPLE, ids=lambda k: k.name)
@pytest.mark.parametrize("tile", [8, 10, 16])
def test_other_formats(kernel, dtype, tile):
    check(kernel, Gemm(33, 20, 17, dtype=dtype), Tiling(block=(tile, tile, tile)))


@pytest.mark.parametrize("kernel", kernels.LADDER, ids=lambda k: k.name)
def test_what_every_rung_counts(kernel):
    unshared = kernel in (kernels.naive, kernels.coalesced)
    counted = check(kernel, Gemm(40, 24, 20), SMALL[kernel.name][0])
    assert set(counted) >= (NAMES if unshared else NAMES | SHARED)


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


def test_worked_counts_of_register_tiles():
    """The 128³ product in one block of 256 threads with 8×8 tiles each, counted by hand.

    A warp is 2 rows of 16 threads. For each p it loads 8 times two words of As, which lie in two
    banks, and 8 times 16 neighbours in Bs: one wavefront each. In groups of four it makes a
    quarter of the loads, which take four wavefronts each, or two where neighbours share words.
    """
    problem = Gemm(128, 128, 128)
    plain = kernels.register_tiled.work(problem, kernels.register_tiled.default).counters
    wide = kernels.vectorised.work(problem, kernels.vectorised.default).counters
    warps, steps = 8, 128 // 8
    assert plain["shared_load_requests"] == warps * 128 * (8 + 8)
    assert plain["shared_load_wavefronts"] == plain["shared_load_requests"]
    assert wide["shared_load_requests"] == plain["shared_load_requests"] // 4
    assert plain["global_load_requests"] == 2 * steps * 128 * 8 // 32
    assert wide["global_load_requests"] == plain["global_load_requests"] // 4
    assert wide["global_load_sectors"] == plain["global_load_sectors"] == 2 * steps * 128
    assert plain["barriers"] == wide["barriers"] == 2 * steps


def test_the_padding_of_a_transposed_tile_is_what_its_stores_need():
    """A warp stores elements p and p + 4 of 16 neighbouring rows of A: as rows, two of As."""
    row, column = 4 * (np.arange(32) % 2), np.arange(32) // 2
    passes = [
        int(transactions.wavefronts(4 * (row * length + column), np.ones(32, bool), 4))
        for length in (128, 128 + 4)
    ]
    assert passes == [2, 1]
    counted = kernels.vectorised.work(Gemm(128, 128, 128), kernels.vectorised.default).counters
    assert counted["shared_bank_conflicts"] == 0


def test_half_the_barriers_when_copies_run_ahead():
    problem = Gemm(256, 256, 256)
    for kernel, barriers in ((kernels.warp_tiled, 2 * 16), (kernels.pipelined, 16 + 1)):
        counted = kernel.work(problem, kernel.default).counters
        blocks = math.prod(kernel.configure(problem, kernel.default)[0])
        assert 256 // kernel.default.block[2] == 16
        assert counted["barriers"] == blocks * barriers


def test_warps_read_fewer_words_as_their_tiles_become_compact():
    """The 128³ product in one block: two rows of 16 threads, or four of eight, per warp.

    A group of four is 16 bytes; eight lanes that read it together are served in one pass. For each
    p and each of 64 FMAs a thread of *vectorised* makes 4 loads, one of *warp_tiled* 6 for 128.
    """
    problem = Gemm(128, 128, 128)
    flat = kernels.vectorised.work(problem, kernels.vectorised.default).counters
    compact = kernels.warp_tiled.work(problem, kernels.warp_tiled.default).counters
    assert flat["shared_load_requests"] == 8 * 128 * 4  # warps, p, loads
    assert compact["shared_load_requests"] == 4 * 128 * 6
    assert compact["shared_load_wavefronts"] * 2 == flat["shared_load_wavefronts"]


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


@settings(max_examples=25, deadline=None)
@given(m=sizes, n=sizes, k=sizes, scale=scalars, which=st.integers(0, 2),
       layout=st.sampled_from(LAYOUTS), kernel=st.sampled_from(STAGED))  # fmt: skip
def test_thread_tiles_on_any_shape(m, n, k, scale, which, layout, kernel):
    layout = layout if layout in kernel.layouts else "nn"
    check(kernel, Gemm(m, n, k, *scale, layout=layout), SMALL[kernel.name][which])
