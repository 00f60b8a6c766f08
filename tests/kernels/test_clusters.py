"""Blocks of a cluster share what they copy: to the bit, counted as predicted, as compiled."""

from dataclasses import replace

import numpy as np
import pytest
from numpy import float16, float32

from gemmlab import Tiling, cuda, device, kernels, run, simulate
from gemmlab.compiled.forecast.rung_listings import rung_listing
from gemmlab.compiled.forecast.rungs import execute_rung
from gemmlab.instructions import WGMMA, shared_view
from gemmlab.kernels import tma_multicast, tma_stored
from gemmlab.numerics import fused_dot_add
from tests.kernels.test_hopper import product
from tests.support.ptx import compiled
from tests.support.rungs import predicted

wgmma = WGMMA[64, "nn"]
SMALL = Tiling(block=(128, 128, 64), stages=2)
MEASURING = pytest.mark.measuring  # what takes long beside another that shows the same
PRODUCTS = [
    product(128, 64, 64),
    product(260, 130, 200, alpha=2, beta=0.5),  # rows of C that the TMA cannot store
    # Three tiles down: one block of a pair has none.
    pytest.param(product(300, 132, 136, "nn", beta=1), marks=MEASURING),
    product(72, 56, 72, "tn", out_dtype="float16", beta=1),
    pytest.param(product(72, 136, 64, "tt", "bfloat16", "bfloat16", alpha=3), marks=MEASURING),
    pytest.param(product(72, 63, 72, "nt", "bfloat16"), marks=MEASURING),
    product(67, 33, 70, beta=0.5),  # rows that neither cp.async nor the TMA can copy
]


@pytest.mark.parametrize("problem", PRODUCTS, ids=str)
def test_it_computes_any_product_and_counts_as_predicted(problem):
    found = run(tma_multicast, problem, backend="simulator", tiling=SMALL)
    assert found.passed
    assert {name: n for name, n in predicted(tma_multicast, problem, SMALL).items() if n} == {
        name: n for name, n in found.counters.items() if n
    }


@pytest.mark.parametrize("out_dtype", [pytest.param("float32", marks=MEASURING), "float16"])
def test_b_comes_once_to_two_blocks_and_c_leaves_without_threads(out_dtype):
    problem = product(256, 128, 128, out_dtype=out_dtype)
    alone, together = (
        run(kernel, problem, backend="simulator", tiling=SMALL).counters
        for kernel in (tma_stored, tma_multicast)
    )
    steps, of_a, of_b = 2, 256 * 128, 128 * 128  # in bytes a step, rows of 64 elements
    assert together["tensor_copy_bytes"] == steps * (of_a + of_b)
    assert alone["tensor_copy_bytes"] == steps * (of_a + 2 * of_b)
    assert together["global_store_requests"] == 0
    assert together["tensor_store_bytes"] == problem.array_bytes[2]


@pytest.mark.parametrize("clusters", [pytest.param(1, marks=MEASURING), 2])
def test_clusters_take_pair_after_pair_of_tiles(clusters):
    """Four pairs, and a ring that ends in the middle of one: each element is one chain along k."""
    problem = product(300, 200, 3 * 64)
    a, b, _ = problem.operands(3)
    c = np.full((300, 200), np.nan, np.float32)
    _, block = tma_multicast.configure(problem, SMALL)
    report = simulate(
        tma_multicast.function(problem, SMALL), 2 * clusters, block[0], np.float32(1),
        *tma_multicast.operands(problem, SMALL, a, b), np.float32(0),
        *tma_multicast.result(problem, SMALL, c), cluster=2,
        shared_bytes=tma_multicast.shared_bytes(problem, SMALL),
    )  # fmt: skip
    assert np.array_equal(c, fused_dot_add(a[:, None], b[None], np.zeros((300, 200), np.float32)))
    assert report.instructions["inst_tensor_copy"] == 4 * 2 * 3 * 2


def test_persistent_blocks_are_whole_clusters():
    problem, tiling = product(8192, 8192, 64), tma_multicast.default
    h200 = device("h200")
    assert tma_multicast.launch(problem, tiling, h200)[0] == (132, 1)
    assert tma_multicast.launch(problem, tiling, replace(h200, sms=131))[0] == (130, 1)
    assert tma_multicast.launch(product(130, 256, 64), tiling, h200)[0] == (2, 1)
    assert tma_multicast in kernels.HOPPER_CLUSTERS


def test_what_it_refuses():
    with pytest.raises(ValueError, match="needs blocks of 128×n×64 with n one of 128, 256"):
        tma_multicast.choose(Tiling(block=(128, 64, 64), stages=3))


def descriptors(A, B, C):
    As = shared_view((1, 64, 64), float16, 0)
    Bs = shared_view((1, 64, 64), float16, 64 * 128)
    acc = cuda.local.array(32, float32)
    wgmma(acc, As, 0, 0, 0, Bs, 0, 0, 0, False)
    C[cuda.threadIdx.x, 0] = acc[0]


@pytest.mark.ptxas
def test_the_descriptor_of_a_matrix_leaves_out_the_rank_of_the_block():
    """An address in shared memory has the rank in its upper bits, where the descriptor has others.

    On an H100 the second block of a cluster had wrong columns, from the 64th on, before.
    """
    shapes = (("float16", 2), ("float16", 2), ("float32", 2))
    text = compiled(descriptors, *shapes, cc=(9, 0))
    masked = [line for line in text.splitlines() if "and.b" in line and line.endswith("16383;")]
    assert len(masked) == 1  # of B alone: the rows of A lie along k


def test_the_recorded_code_is_of_clusters():
    code = rung_listing(tma_multicast, product(4096, 4096, 4096, "nn"))
    opcodes = {i.opcode for i in code.instructions}
    assert {"UTMALDG.2D.MULTICAST", "UCGABAR_ARV", "UCGABAR_WAIT"} <= opcodes


def test_a_forecast_asks_l2_once_for_what_two_blocks_share():
    """The code is recorded."""
    problem, h100 = product(256, 256, 64, "nn"), device("h100_sxm")
    asked = {}
    for kernel in (tma_stored, tma_multicast):
        run = next(iter(execute_rung(problem, h100, kernel, kernel.default).values()))
        costs = [cost for visit in run.visits for _, cost in visit.costs]
        asked[kernel] = sum(int(c.sectors.sum()) * 32 for c in costs if c.op == "copy")
    assert asked[tma_stored] == (128 + 256) * 128
    assert asked[tma_multicast] == (128 + 128) * 128
