"""Kernels that divide k among blocks: exact on integers, no hazards, counts as predicted."""

import sys
from dataclasses import replace
from itertools import cycle, islice

import numpy as np
import pytest

from benchmarks.samples.edge_shapes import SCALES
from gemmlab import Gemm, device, kernels, predict, run
from gemmlab.kernels.hashing import source_hash
from gemmlab.kernels.kernel import Workspace
from gemmlab.problem import LAYOUTS
from gemmlab.simt import HazardError
from gemmlab.tiling import Tiling
from tests.support.changed import changed, put
from tests.support.rungs import check, simulated

KERNELS = pytest.mark.parametrize("kernel", kernels.SPLIT_K, ids=lambda k: k.name)
ORDERED = (kernels.split_k, kernels.stream_k)  # their sums are added in one order
TURING = (7, 5)  # has no asynchronous copies
H200 = device("h200")
ONE = Tiling(block=(32, 32, 8), warp=(32, 16), thread=(4, 4), stages=2)
TWO = Tiling(block=(64, 32, 16), warp=(32, 32), thread=(8, 4), stages=2)
RING = Tiling(block=(32, 32, 8), warp=(32, 32), thread=(4, 8), stages=4)
WIDE = Tiling(block=(64, 256, 8), warp=(64, 64), thread=(16, 8), stages=2)  # two groups of columns


# Less than a tile; k less than a step; several tiles both ways; whole tiles; one long row.
SHAPES = ((5, 9, 40), (33, 20, 3), (70, 36, 45), (64, 64, 40), (1, 65, 76))
SPLITS = (1, 2, 3, 5, 9, 40)  # that divide the steps, do not, and are more than there are


@KERNELS
@pytest.mark.parametrize("tiling", [ONE, TWO, RING], ids=str)
def test_edge_shapes(kernel, tiling):
    turns = zip(cycle(SHAPES), SPLITS, SCALES, strict=False)
    for shape, split, (alpha, beta) in islice(turns, None if tiling is ONE else 4):
        problem = Gemm(*shape, alpha=alpha, beta=beta)
        check(kernel, problem, replace(tiling, split=split))
        if tiling is ONE:
            check(kernel, problem, replace(tiling, split=split + 1))


@KERNELS
@pytest.mark.parametrize("layout", LAYOUTS)
def test_stored_transposed_and_copied_either_way(kernel, layout):
    for shape, capability in (
        ((70, 33, 33), None),
        ((36, 44, 36), None),
        *([((36, 33, 33), TURING)] if layout in ("nn", "tt") else []),
    ):
        problem = Gemm(*shape, alpha=2, beta=0.5, layout=layout)
        check(kernel, problem, replace(ONE, split=3), capability)


@KERNELS
def test_tiles_of_more_columns_than_a_block_adds_up(kernel):
    check(kernel, Gemm(40, 300, 33, beta=1), replace(WIDE, split=3))


@KERNELS
def test_random_operands_stay_within_the_tolerance(kernel):
    problem = Gemm(40, 45, 104, alpha=1.5, beta=-0.25)
    operands = problem.operands(seed=3)
    result, _ = simulated(kernel, problem, operands, replace(ONE, split=7))
    assert 0 < problem.error(result, operands) <= problem.tolerance
    assert all(map(np.array_equal, operands, problem.operands(seed=3)))


def test_parts_are_added_in_one_order_or_by_atomics():
    """Without hazards, whoever stores a part is alone: nothing but atomics depends on the order."""
    problem = Gemm(40, 40, 64)
    for kernel in kernels.SPLIT_K:
        _, counted = simulated(kernel, problem, problem.operands(), replace(ONE, split=5))
        assert (counted["global_atomic_requests"] > 0) == (kernel not in ORDERED)


@pytest.mark.parametrize("kernel", ORDERED, ids=lambda k: k.name)
def test_what_is_stored_in_the_workspace_is_what_is_loaded(kernel):
    """In whole tiles of C, that is: of others more is stored than C needs."""
    problem, tiling = Gemm(64, 96, 80), replace(ONE, split=7)
    counted = kernel.work(problem, tiling).counters
    plain = kernels.pipelined.work(problem, ONE).counters
    loaded = counted["global_load_bytes"] - plain["global_load_bytes"]
    assert loaded == counted["global_store_bytes"] - plain["global_store_bytes"]
    if kernel is kernels.split_k:
        assert loaded == 7 * 64 * 96 * 4


def test_equal_shares_wherever_tiles_end():
    """Six tiles of ten steps in seven shares: each tile is shared by two or three blocks."""
    problem, tiling = Gemm(64, 96, 80), replace(ONE, split=7)
    module = sys.modules["gemmlab.kernels.split_k.stream_k"]
    parts, longest = module.shares(problem, tiling)
    assert longest == 9
    assert parts.tolist() == [2, 2, 2, 2, 2, 2]
    assert module.shares(problem, replace(ONE, split=6))[0].tolist() == [1] * 6
    assert module.shares(problem, replace(ONE, split=99))[0].tolist() == [10] * 6  # one step each
    assert kernels.stream_k.configure(problem, replace(ONE, split=99))[0] == (60, 1)


# ------------------------------------------------------------------------------- several launches


def test_launches_and_what_they_share():
    problem, tiling = Gemm(70, 36, 61), replace(ONE, split=3)
    assert kernels.pipelined.launches == (kernels.pipelined,)
    assert kernels.pipelined.workspace(problem, ONE) == ()
    assert kernels.split_k.launches == (kernels.split_k, *kernels.split_k.after)
    assert kernels.split_k_atomics.launches == (
        *kernels.split_k_atomics.before,
        kernels.split_k_atomics,
    )
    tiles = 3 * 2
    assert kernels.split_k.workspace(problem, tiling) == (
        Workspace((tiles * 3 * 32, 32), "float32"),
    )
    assert kernels.stream_k.workspace(problem, tiling) == (Workspace((3 * 2 * 32, 32), "float32"),)


@KERNELS
def test_the_split_changes_the_launch_and_never_the_source(kernel):
    seen = []
    watched = replace(kernel, build=lambda tiling, **_: seen.append(tiling))
    for split in (1, 2, 7):
        watched.function(Gemm(8, 8, 8), replace(ONE, split=split))
    assert seen == [ONE] * 3


def test_the_hash_covers_every_launch():
    one = kernels.split_k
    other = replace(one.after[0], build=one.build)
    assert source_hash(replace(one, after=(other,))) != source_hash(one)
    assert source_hash(replace(one, after=())) != source_hash(one)
    assert source_hash(replace(one, workspace=kernels.stream_k.workspace)) != source_hash(one)
    assert source_hash(replace(one, configure=kernels.stream_k.configure)) != source_hash(one)
    assert source_hash(replace(one, suggest=None)) == source_hash(one)


@KERNELS
def test_the_simulator_runs_all_launches(kernel):
    problem = Gemm(40, 40, 64, beta=0.5)
    m = run(kernel, problem, "simulator", tiling=replace(ONE, split=3))
    assert m.passed
    assert m.counters == predict(problem, H200, kernel, m.tiling).counters


def test_kernels_that_take_k_whole_refuse_a_split():
    with pytest.raises(ValueError, match="split 3 does not fit pipelined, which takes k whole"):
        kernels.pipelined.choose(replace(kernels.pipelined.default, split=3))


@KERNELS
def test_tilings_that_do_not_fit(kernel):
    one_stage = Tiling(block=(64, 64, 8), warp=(32, 32), thread=(8, 4))
    half_lines = Tiling(block=(64, 16, 8), warp=(64, 16), thread=(8, 4), stages=2)
    assert kernels.pipelined.choose(half_lines) is half_lines
    for misfit in (one_stage, half_lines):
        with pytest.raises(ValueError, match=f"tiling {misfit} does not fit kernels that split k"):
            kernel.choose(misfit)
    for tiling in (kernel.default, *kernel.tilings, ONE, TWO, RING, WIDE):
        assert kernel.choose(tiling) is tiling


# ---------------------------------------------------------------------------------- what is chosen


@KERNELS
def test_small_tiles_of_long_products_keep_every_processor_busy(kernel):
    for shape in ((1024, 1024, 8192), (512, 512, 16384), (256, 256, 65536), (64, 64, 65536)):
        tiling = kernel.choose(None, Gemm(*shape), "h200")
        assert kernel.choose(tiling) is tiling
        across, down = tiling.grid(Gemm(*shape))
        blocks = tiling.split * (1 if kernel is kernels.stream_k else across * down)
        assert 0.95 * H200.sms <= blocks
    assert kernel.choose(None) == kernel.default


def test_a_large_c_is_not_split():
    assert kernels.split_k.choose(None, Gemm(8192, 8192, 64), H200).split == 1


@KERNELS
def test_gpus_of_which_little_is_known(kernel):
    """No rate: the default. Little shared memory: tiles that a block can hold."""
    p = Gemm(512, 512, 16384)
    assert kernel.choose(None, p, replace(H200, peak={})) == kernel.default
    chosen = kernel.choose(None, p, "t4")
    assert kernel.shared_bytes(p, chosen) <= device("t4").shared_bytes_per_block


# ----------------------------------------------------------------------------------------- mutants


MUTANTS = {
    "a part loses its first tile": (
        "split_k", "part * steps // split * BK, (part",
        "(part * steps // split + 1) * BK, (part",
    ),
    "parts overlap": (
        "split_k", "(part + 1) * steps // split * BK", "((part + 1) * steps // split + 1) * BK",
    ),
    "parts of all tiles in one place": (
        "split_k", "store(W, tile * split + part", "store(W, part",
    ),
    "the last part is left out": (
        "split_k", "(tile + 1) * split, alpha", "(tile + 1) * split - 1, alpha",
    ),
    "one part too many": (
        "split_k", "(tile + 1) * split, alpha", "(tile + 1) * split + 1, alpha",
    ),
    "C is not scaled": (
        "split_k_atomics", "float32(0), nothing, beta)", "float32(0), nothing, float32(1))",
    ),
    "no alpha": (
        "split_k_atomics", "alpha * acc[0, c])", "acc[0, c])",
    ),
    "the rings are not empty": (
        "stream_k", "            wait_for_all()\n", "",
    ),
    "copies are not waited for": (
        "stream_k", "            cp_async_wait(0)\n", "            pass\n",
    ),
    "a block has one place": (
        "stream_k", "2 * block + (1 if step == 0 else 0)", "2 * block",
    ),
    "C at once, whoever shares it": (
        "stream_k", "if last - step == steps:", "if step == 0:",
    ),
    "the first sharer is missed": (
        "stream_k", "(tile * steps + 1) * blocks - 1)", "(tile * steps + 1) * blocks)",
    ),
    "the last sharer is missed": (
        "stream_k", "add(C, W, tile, first, last + 1", "add(C, W, tile, first, last",
    ),
    "whole tiles are added, too": (
        "stream_k", "if last > first:", "if last >= first:",
    ),
}  # fmt: skip
ALL_WARPS = """range(1, cuda.blockDim.y):
                v = load_v4(of_warps, other, x)
                for e in range(FOUR):
                    sums[0, e]"""
LONGER = {  # in modules that these are made of: also the name by which the kernel calls it
    "sums of warps are not waited for": (
        "shared.workspace_tiles", "adding",
        "sums[0, 3]))\n        cuda.syncthreads()\n", "sums[0, 3]))\n",
    ),
    "only the first warp's parts": (
        "shared.workspace_tiles", "adding", ALL_WARPS, ALL_WARPS.replace("cuda.blockDim.y", "1"),
    ),
    "copies beyond the part": (
        "shared.mainloop", "summing", "later = p + AHEAD if p + AHEAD < stop else BEYOND",
        "later = p + AHEAD",
    ),
    "sums that begin anywhere": (
        "shared.mainloop", "summing", "acc[r, c] = float32(0)", "pass",
    ),
}  # fmt: skip
WRONG = (AssertionError, HazardError)


def try_all(kernel):
    """What the tests above do, on few problems: tiles in one share and in several, two turns."""
    for shape, split in (((40, 33, 40), 3), ((70, 40, 50), 5), ((33, 70, 24), 9)):
        check(kernel, Gemm(*shape, beta=0.5, alpha=2), replace(ONE, split=split))
    check(kernel, Gemm(40, 33, 40), replace(RING, split=3))


@KERNELS
def test_what_the_mutants_are_made_of_is_right(kernel):
    try_all(kernel)


@pytest.mark.parametrize("wrong", MUTANTS)
def test_mutants_are_found(wrong):
    name, old, new = MUTANTS[wrong]
    with pytest.raises(WRONG):
        try_all(getattr(changed(name, old, new), name))


@pytest.mark.parametrize("wrong", LONGER)
def test_mutants_of_what_kernels_share_are_found(wrong, monkeypatch):
    name, function, old, new = LONGER[wrong]
    module = sys.modules["gemmlab.kernels.split_k.split_k"]
    put(monkeypatch, module, function, getattr(changed(name, old, new), function))
    with pytest.raises(WRONG):
        try_all(kernels.split_k)
