"""The rung by `wgmma` and the TMA: simulated to the bit, compiled into registers; its limits."""

import numpy as np
import pytest

from gemmlab import Gemm, Tiling, kernels, run, simulate
from gemmlab.instructions import tensor_map
from gemmlab.kernels import warp_specialised
from gemmlab.numerics import fused_dot_add

SMALL = Tiling(block=(128, 32, 64), stages=2)


def product(m, n, k, **more):
    return Gemm(m, n, k, dtype="float16", out_dtype="float32", layout="nt", **more)


@pytest.mark.parametrize(
    ("problem", "tiling"),
    [
        (product(128, 256, 128), warp_specialised.default),
        (product(128, 32, 64), SMALL),
        (product(129, 34, 200), SMALL),
        (product(130, 33, 72, alpha=2, beta=0.5), SMALL),
        (product(2, 1, 8, beta=1), SMALL),
    ],
    ids=str,
)
def test_it_computes_any_product_whose_rows_the_tma_can_copy(problem, tiling):
    assert run(warp_specialised, problem, backend="simulator", tiling=tiling).passed


@pytest.mark.parametrize("blocks", [1, 2, 3])
def test_blocks_take_tile_after_tile_and_round_once_a_step(blocks):
    """Six tiles, and a ring that ends in the middle of one: each element is one chain along k."""
    problem = product(260, 64, 3 * 64)
    a, b, _ = problem.operands(3)
    c = np.full((260, 64), np.nan, np.float32)
    _, block = warp_specialised.launch(problem, SMALL)
    report = simulate(
        warp_specialised.function(problem, SMALL), blocks, block[0], np.float32(1),
        *warp_specialised.operands(SMALL, a, b), np.float32(0), c,
        shared_bytes=warp_specialised.shared_bytes(problem, SMALL),
    )  # fmt: skip
    expected = fused_dot_add(a[:, None], b[None], np.zeros((260, 64), np.float32))
    assert np.array_equal(c, expected)
    assert report.instructions["inst_tensor_copy"] == 6 * 3 * 2
    assert report.counters["tensor_copy_bytes"] == 6 * 3 * (128 + 32) * 128


def test_what_it_refuses():
    with pytest.raises(ValueError, match="k=12 makes them 24 B; use a multiple of 8"):
        warp_specialised.function(product(128, 32, 12), SMALL)
    with pytest.raises(ValueError, match="needs blocks of 128×n×64 with n one of 8, 16"):
        warp_specialised.choose(Tiling(block=(128, 40, 64), stages=3))
    with pytest.raises(ValueError, match="layout nt, not nn"):
        warp_specialised.check_problem(Gemm(8, 8, 8, dtype="float16", out_dtype="float32"))
    with pytest.raises(ValueError, match="rows=512; a box has 1 to 256"):
        tensor_map(np.zeros((8, 8), np.float16), 512)
    assert kernels.get("warp_specialised") is warp_specialised


@pytest.mark.ptxas
@pytest.mark.parametrize("n", [4096, 4095])
def test_accumulators_stay_in_registers(n):
    from numba.cuda import types

    from gemmlab.prediction.compiling import _cubin
    from gemmlab.sass.compiling import disassemble

    maps = types.Array(types.uint8, 1, "C")
    arguments = types.float32, maps, maps, types.int64, types.float32
    function = warp_specialised.function(product(4096, n, 4096), warp_specialised.default)
    options = tuple(warp_specialised.compile(warp_specialised.default).items())
    signature = (*arguments, types.Array(types.float32, 2, "C"))
    cubin, taken = _cubin(function, signature, "sm_90", None, options)
    assert taken.local_bytes == 0
    opcodes = [i.opcode for i in disassemble(cubin, taken).instructions]
    assert sum(o.startswith("HGMMA") for o in opcodes) >= 4
    assert any(o.startswith("UTMALDG") for o in opcodes)
