"""The rungs by `wgmma` and the TMA: simulated to the bit, compiled into registers; their limits."""

import numpy as np
import pytest

from gemmlab import Gemm, Tiling, kernels, predict, run, simulate
from gemmlab.compiled.forecast.rung_listings import rung_listing
from gemmlab.formats import from_memory
from gemmlab.instructions import tensor_map
from gemmlab.kernels import tma_stored, warp_specialised, wgmma_pipelined
from gemmlab.measure.backends import gpu
from gemmlab.numerics import fused_dot_add
from gemmlab.problem import Operands
from tests.support.rungs import predicted

SMALL = Tiling(block=(128, 64, 64), stages=3)
ON_GPU = *kernels.HOPPER, *kernels.HOPPER_CLUSTERS


def product(m, n, k, layout="nt", dtype="float16", out_dtype="float32", **more):
    return Gemm(m, n, k, dtype=dtype, out_dtype=out_dtype, layout=layout, **more)


PRODUCTS = [
    # Most have one block: blocks that wait for copies are simulated one after the other.
    product(128, 64, 64),
    product(129, 66, 200),
    product(130, 36, 72, alpha=2, beta=0.5),
    product(2, 1, 8, beta=1),
    product(120, 56, 72, "nn", beta=1),
    product(72, 56, 71, "tn"),
    product(72, 63, 72, "tt", alpha=3),
    product(72, 56, 64, "nn", "bfloat16"),
    product(72, 56, 64, "tt", "bfloat16", "bfloat16", beta=1),
    product(60, 70, 64, "nt", "float16", "float16"),
    product(67, 33, 70, alpha=2, beta=0.5),  # rows that neither cp.async nor the TMA can copy
    product(70, 33, 67, "tn", "bfloat16", "bfloat16"),
]


@pytest.mark.parametrize("kernel", kernels.HOPPER, ids=lambda kernel: kernel.name)
@pytest.mark.parametrize("problem", PRODUCTS, ids=str)
def test_it_computes_any_product_and_counts_as_predicted(kernel, problem):
    found = run(kernel, problem, backend="simulator", tiling=SMALL)
    assert found.passed
    assert {name: n for name, n in predicted(kernel, problem, SMALL).items() if n} == {
        name: n for name, n in found.counters.items() if n
    }


@pytest.mark.parametrize("kernel", kernels.HOPPER, ids=lambda kernel: kernel.name)
def test_its_own_tiling(kernel):
    problem = product(128, 256, 128)
    found = run(kernel, problem, backend="simulator")
    assert found.passed
    assert kernel.default in (kernel.tilings or (kernel.default,))


def test_what_each_rung_no_longer_does():
    """Shared loads by threads, then their loads of A and B, then their stores of C."""
    problem = product(128, 64, 128)
    counted = [run(k, problem, backend="simulator", tiling=SMALL).counters for k in kernels.HOPPER]
    assert [c["shared_load_requests"] for c in counted] == [0, 0, 0]
    assert [c["global_load_requests"] > 0 for c in counted] == [True, False, False]
    assert [c["global_store_requests"] > 0 for c in counted] == [True, True, False]
    assert counted[2]["tensor_store_bytes"] == 128 * 64 * 4


def test_the_wavefronts_of_a_step_and_of_c():
    """Of 128 B: tiles come, two warpgroups read A's half and B, slabs are filled and read."""
    problem = product(128, 64, 64)
    come, read, c = 128 + 64, 2 * (64 + 64), 128 * 64 * 4 // 128
    assert tma_stored.work(problem, SMALL).l1_wavefronts == come + read + 2 * c + c
    filled = 2 * c  # eight rows of 32 bytes meet in half of the banks
    assert tma_stored.work(problem, SMALL).counters["shared_store_wavefronts"] == filled


def test_two_stages_are_enough_where_a_thread_copies():
    tiling = Tiling(block=(128, 64, 64), stages=2)
    for kernel in (warp_specialised, tma_stored):
        assert run(kernel, product(128, 64, 200), backend="simulator", tiling=tiling).passed


def test_the_model_says_that_l2_is_the_limit():
    """The tiles that all SMs ask for: (bm + bn)/(bm·bn) bytes of L2 for each operation."""
    found = predict(product(8192, 8192, 8192), "h200", kernel=warp_specialised)
    assert found.bottleneck == "l2"
    tiles = 8192**3 * 2 * (1 / 128 + 1 / 256)
    assert found.bytes["l2"] == tiles + 8192**2 * 4
    whole = predict(product(8192, 8192, 8192), "h200").times["math"]
    assert found.times["math"] == pytest.approx(whole * 16 * 132 / 2048)  # 16 tiles for some SMs


@pytest.mark.parametrize("kernel", [warp_specialised, tma_stored], ids=lambda kernel: kernel.name)
@pytest.mark.parametrize("blocks", [1, 2, 3])
def test_blocks_take_tile_after_tile_and_round_once_a_step(kernel, blocks):
    """Six tiles, and a ring that ends in the middle of one: each element is one chain along k."""
    problem = product(260, 100, 3 * 64)
    a, b, _ = problem.operands(3)
    c = np.full((260, 100), np.nan, np.float32)
    _, block = kernel.configure(problem, SMALL)
    report = simulate(
        kernel.function(problem, SMALL), blocks, block[0], np.float32(1),
        *kernel.operands(problem, SMALL, a, b), np.float32(0),
        *kernel.result(problem, SMALL, c), shared_bytes=kernel.shared_bytes(problem, SMALL),
    )  # fmt: skip
    expected = fused_dot_add(a[:, None], b[None], np.zeros((260, 100), np.float32))
    assert np.array_equal(c, expected)
    assert report.instructions["inst_tensor_copy"] == 6 * 3 * 2
    assert report.counters["tensor_copy_bytes"] == 6 * 3 * (128 + 64) * 128


def test_what_they_refuse():
    with pytest.raises(
        ValueError, match="needs blocks of 128×n×64 with n one of 64, 128, 192, 256"
    ):
        warp_specialised.choose(Tiling(block=(128, 32, 64), stages=3))
    with pytest.raises(ValueError, match="fit tma_stored, which needs blocks of 128×n×64"):
        tma_stored.choose(Tiling(block=(64, 64, 64), stages=3))
    with pytest.raises(ValueError, match="and three stages or more"):
        wgmma_pipelined.choose(Tiling(block=(128, 64, 64), stages=2))
    with pytest.raises(ValueError, match="and bfloat16 to float32, not float32"):
        warp_specialised.check_problem(Gemm(8, 8, 8))
    with pytest.raises(ValueError, match="rows=512; a box has 1 to 256"):
        tensor_map(np.zeros((8, 8), np.float16), 512)
    assert kernels.get("warp_specialised") is warp_specialised


@pytest.mark.ptxas
@pytest.mark.parametrize(
    ("kernel", "problem"),
    [
        *((kernel, product(4096, 4096, 4096, "nn")) for kernel in kernels.HOPPER),
        pytest.param(tma_stored, product(4096, 4095, 4096), marks=pytest.mark.measuring),
    ],
    ids=lambda x: getattr(x, "name", str(x)),
)
def test_accumulators_stay_in_registers(kernel, problem):
    code = rung_listing(kernel, problem)
    opcodes = [i.opcode for i in code.instructions]
    assert code.local_bytes == 0
    assert sum(o.startswith("HGMMA") for o in opcodes) >= 4
    variant = kernel.variant(problem, None)
    copies = "LDGSTS" if kernel is wgmma_pipelined else "UTMALDG"
    assert any(o.startswith(copies) for o in opcodes)
    boxed = variant.get("boxed", False)
    assert any(o.startswith("UTMASTG") for o in opcodes) == boxed
    assert any(o.startswith("STG") for o in opcodes) != boxed


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
@pytest.mark.parametrize("kernel", ON_GPU, ids=lambda kernel: kernel.name)
@pytest.mark.parametrize("kind", ["normal", "bits", "edges"])
def test_a_gpu_has_the_bits_of_the_emulator(kernel, kind):
    """`wgmma` rounds as `mma.sync` does on sm_90: blocks of 16 products, 25 fraction bits."""
    problem = product(128, 256, 192)
    a, b = numbers(kind, 128, 192), numbers(kind, 256, 192)
    runner = gpu.Runner(kernel, problem, kernel.default, gpu.Matrices(problem))
    found = runner.compute(problem, Operands(a, b, np.zeros((128, 256), np.float32)))
    expected = fused_dot_add(a[:, None], b[None], np.zeros((128, 256), np.float32))
    assert np.array_equal(found.view(np.uint32), expected.view(np.uint32))


@pytest.mark.gpu
@pytest.mark.parametrize("kernel", ON_GPU, ids=lambda kernel: kernel.name)
def test_a_gpu_has_the_bits_of_the_emulator_in_bfloat16(kernel):
    problem = product(128, 128, 128, "nn", "bfloat16")
    operands = problem.operands(5)
    runner = gpu.Runner(kernel, problem, kernel.default, gpu.Matrices(problem))
    a, b = (from_memory(x, "bfloat16") for x in operands[:2])
    expected = fused_dot_add(
        a[:, None], b.T[None], np.zeros((128, 128), np.float32), dtype="bfloat16"
    )
    assert np.array_equal(runner.compute(problem, operands), expected)


@pytest.mark.gpu
@pytest.mark.parametrize("kernel", ON_GPU, ids=lambda kernel: kernel.name)
@pytest.mark.parametrize("problem", PRODUCTS, ids=str)
def test_a_gpu_computes_any_product(kernel, problem):
    runner = gpu.Runner(kernel, problem, kernel.default, gpu.Matrices(problem))
    operands = problem.operands(2)
    assert problem.error(runner.compute(problem, operands), operands) <= problem.tolerance
