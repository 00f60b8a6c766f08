"""The rung by `wgmma` and the TMA: simulated to the bit, compiled into registers; its limits."""

import numpy as np
import pytest

from gemmlab import Gemm, Tiling, kernels, predict, run, simulate
from gemmlab.backends import gpu
from gemmlab.instructions import tensor_map
from gemmlab.kernels import warp_specialised
from gemmlab.numerics import fused_dot_add
from gemmlab.problem import Operands

SMALL = Tiling(block=(128, 64, 64), stages=2)


def product(m, n, k, layout="nt", **more):
    return Gemm(m, n, k, dtype="float16", out_dtype="float32", layout=layout, **more)


@pytest.mark.parametrize(
    ("problem", "tiling"),
    [
        (product(128, 256, 128), warp_specialised.default),
        (product(128, 64, 64), SMALL),
        (product(129, 66, 200), SMALL),
        (product(130, 33, 72, alpha=2, beta=0.5), SMALL),
        (product(2, 1, 8, beta=1), SMALL),
        (product(130, 72, 72, "nn", beta=1), SMALL),
        (product(136, 72, 71, "tn"), SMALL),
        (product(136, 71, 72, "tt", alpha=3), SMALL),
        (product(128, 128, 64, "nn"), Tiling(block=(128, 128, 64), stages=3)),
    ],
    ids=str,
)
def test_it_computes_any_product_whose_rows_the_tma_can_copy(problem, tiling):
    found = run(warp_specialised, problem, backend="simulator", tiling=tiling)
    assert found.passed
    predicted = warp_specialised.work(problem, tiling).counters
    assert predicted == {name: n for name, n in found.counters.items() if n}


def test_the_model_says_that_l2_is_the_limit():
    """The tiles that all SMs ask for: (bm + bn)/(bm·bn) bytes of L2 for each operation."""
    found = predict(product(8192, 8192, 8192), "h200", kernel=warp_specialised)
    assert found.bottleneck == "l2"
    tiles = 8192**3 * 2 * (1 / 128 + 1 / 256)
    assert found.bytes["l2"] == tiles + 8192**2 * 4
    assert found.times["math"] == predict(product(8192, 8192, 8192), "h200").times["math"]


@pytest.mark.parametrize("blocks", [1, 2, 3])
def test_blocks_take_tile_after_tile_and_round_once_a_step(blocks):
    """Six tiles, and a ring that ends in the middle of one: each element is one chain along k."""
    problem = product(260, 100, 3 * 64)
    a, b, _ = problem.operands(3)
    c = np.full((260, 100), np.nan, np.float32)
    _, block = warp_specialised.launch(problem, SMALL)
    report = simulate(
        warp_specialised.function(problem, SMALL), blocks, block[0], np.float32(1),
        *warp_specialised.operands(problem, SMALL, a, b), np.float32(0), c,
        shared_bytes=warp_specialised.shared_bytes(problem, SMALL),
    )  # fmt: skip
    expected = fused_dot_add(a[:, None], b[None], np.zeros((260, 100), np.float32))
    assert np.array_equal(c, expected)
    assert report.instructions["inst_tensor_copy"] == 6 * 3 * 2
    assert report.counters["tensor_copy_bytes"] == 6 * 3 * (128 + 64) * 128


def test_what_it_refuses():
    with pytest.raises(ValueError, match="those of A have 12 elements; use a multiple of 8"):
        warp_specialised.function(product(128, 32, 12), SMALL)
    with pytest.raises(ValueError, match="those of B have 12 elements; use a multiple of 8"):
        warp_specialised.function(product(128, 12, 8, "nn"), SMALL)
    with pytest.raises(
        ValueError, match="needs blocks of 128×n×64 with n one of 64, 128, 192, 256"
    ):
        warp_specialised.choose(Tiling(block=(128, 32, 64), stages=3))
    with pytest.raises(ValueError, match="computes float16 to float32, not float32"):
        warp_specialised.check_problem(Gemm(8, 8, 8))
    with pytest.raises(ValueError, match="rows=512; a box has 1 to 256"):
        tensor_map(np.zeros((8, 8), np.float16), 512)
    assert kernels.get("warp_specialised") is warp_specialised


@pytest.mark.ptxas
@pytest.mark.parametrize(("n", "layout"), [(4095, "nt"), (4096, "nn"), (4096, "tn")])
def test_accumulators_stay_in_registers(n, layout):
    from numba.cuda import types

    from gemmlab.prediction.compiling import _cubin
    from gemmlab.sass.compiling import disassemble

    maps = types.Array(types.uint8, 1, "C")
    arguments = types.float32, maps, maps, types.int64, types.float32
    function = warp_specialised.function(product(4096, n, 4096, layout), warp_specialised.default)
    options = tuple(warp_specialised.compile(warp_specialised.default).items())
    signature = (*arguments, types.Array(types.float32, 2, "C"))
    cubin, taken = _cubin(function, signature, "sm_90", None, options)
    assert taken.local_bytes == 0
    opcodes = [i.opcode for i in disassemble(cubin, taken).instructions]
    assert sum(o.startswith("HGMMA") for o in opcodes) >= 4
    assert any(o.startswith("UTMALDG") for o in opcodes)


def numbers(kind, rows, k):
    """FP16 operands: normal numbers, all finite patterns and an infinity, or extreme ones."""
    rng = np.random.default_rng(rows)
    if kind == "normal":
        return rng.standard_normal((rows, k)).astype(np.float16)
    if kind == "bits":
        words = rng.integers(0, 1 << 16, (rows, k)).astype(np.uint16)
        words = np.where((words >> 10 & 31) == 31, words & 0x83FF, words)
        words[5, 3] = 31 << 10
        return words.astype(np.uint16).view(np.float16)
    sign, exponent = (
        rng.integers(0, 2, (rows, k)) << 15,
        rng.choice([0, 1, 15, 30], (rows, k)) << 10,
    )
    fraction = rng.choice([0, 1, 512, 1023], (rows, k))
    return (sign | exponent | fraction).astype(np.uint16).view(np.float16)


@pytest.mark.gpu
@pytest.mark.parametrize("kind", ["normal", "bits", "edges"])
def test_a_gpu_has_the_bits_of_the_emulator(kind):
    """`wgmma` rounds as `mma.sync` does on sm_90: blocks of 16 products, 25 fraction bits."""
    problem = product(128, 256, 192)
    a, b = numbers(kind, 128, 192), numbers(kind, 256, 192)
    runner = gpu.Runner(warp_specialised, problem, warp_specialised.default, gpu.Matrices(problem))
    found = runner.compute(problem, Operands(a, b, np.zeros((128, 256), np.float32)))
    expected = fused_dot_add(a[:, None], b[None], np.zeros((128, 256), np.float32))
    assert np.array_equal(found.view(np.uint32), expected.view(np.uint32))
