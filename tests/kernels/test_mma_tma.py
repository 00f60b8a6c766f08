"""The rung by `mma.sync` and the TMA: any product, the ladder's bits, counts; its registers."""

import numpy as np
import pytest

from gemmlab import Gemm, Tiling, kernels, predict, run, simulate
from gemmlab.compiled.forecast.rung_listings import rung_listing
from gemmlab.here.compilers import lacking
from gemmlab.kernels import mma_tma
from gemmlab.kernels.tensor_core.shared.warp_mma import ARITHMETIC
from gemmlab.measure.backends import gpu
from gemmlab.measure.backends.simulator import launches
from gemmlab.problem import LAYOUTS
from tests.support.releases import under_way_at_the_release
from tests.support.rungs import predicted, simulated


def tile(block, warp, stages):
    return Tiling(block, (warp[0] // 8, warp[1] // 4), stages, warp)


SMALL, WIDE = tile((64, 64, 64), (16, 32), 2), tile((128, 64, 64), (32, 32), 3)


def gemm(shape, which=0, **options):
    return Gemm(*shape, **ARITHMETIC[which]._asdict(), **options)


@pytest.mark.parametrize(
    ("problem", "tiling"),
    [
        (gemm((64, 64, 64), 1), SMALL),
        (gemm((72, 72, 72), 1, alpha=2, beta=0.5), SMALL),
        (gemm((136, 64, 136), 2, layout="tt", beta=1), WIDE),
        (gemm((66, 61, 72), 0, layout="nt", beta=1), WIDE),
        (gemm((60, 64, 67), 3, layout="tn"), SMALL),
        (gemm((66, 61, 67), 1, beta=1), SMALL),
        (gemm((66, 61, 67), 2, layout="tt"), WIDE),
        (gemm((2, 1, 8), 1, layout="nt"), SMALL),
        (gemm((256, 128, 64), 1), mma_tma.default),
    ],
    ids=str,
)
def test_it_computes_any_product(problem, tiling):
    found = run(mma_tma, problem, backend="simulator", tiling=tiling)
    assert found.passed
    assert predicted(mma_tma, problem, tiling) == {
        name: n for name, n in found.counters.items() if n
    }


@pytest.mark.parametrize("layout", ["nn", "tt"])
def test_it_has_the_bits_of_the_ladder(layout):
    """Tile after tile of C in one block, through a ring that ends in the middle of one."""
    problem = gemm((128, 64, 64 * 3), 1, layout=layout)
    operands = problem.operands(seed=7)
    expected, _ = simulated(
        kernels.mma_pipelined, problem, operands, tile((64, 64, 64), (32, 32), 2)
    )
    a, b, _ = operands
    c, (_, block) = np.full((128, 64), np.nan, np.float32), mma_tma.configure(problem, SMALL)
    simulate(
        mma_tma.function(problem, SMALL), 1, block, np.float32(1),
        *mma_tma.operands(problem, SMALL, a, b), np.float32(0), c,
        shared_bytes=mma_tma.shared_bytes(problem, SMALL),
    )  # fmt: skip
    assert np.array_equal(c.view(np.uint32), expected.view(np.uint32))


def test_the_model_says_that_shared_memory_has_less_to_do():
    problem = gemm((8192, 8192, 8192), 1)
    tuned, tma = (predict(problem, "h200", kernel=k) for k in (kernels.mma_tuned, mma_tma))
    assert tma.times["l1"] <= tuned.times["l1"]
    assert tma.bytes["l2"] <= tuned.bytes["l2"]


def test_what_it_refuses():
    for wrong in (
        Tiling((64, 64, 64), (8, 8), 2),
        tile((64, 64, 32), (16, 32), 2),
        tile((64, 64, 64), (16, 32), 1),
        tile((64, 64, 64), (32, 32), 2),
        tile((256, 128, 64), (128, 32), 2),
        tile((128, 32, 64), (16, 32), 2),
        tile((512, 64, 64), (64, 64), 2),
    ):
        with pytest.raises(ValueError, match="does not fit mma_tma") as caught:
            mma_tma.choose(wrong)
        told = str(caught.value)
        assert mma_tma.choose(eval(told[told.rindex("Tiling(") :], {"Tiling": Tiling}))
    with pytest.raises(ValueError, match=r"mma_tma computes float16.*bfloat16"):
        mma_tma.check_problem(Gemm(8, 8, 8))
    assert kernels.get("mma_tma") is mma_tma


@pytest.mark.ptxas
@pytest.mark.skipif(bool(lacking()), reason=lacking() or "")
@pytest.mark.parametrize(
    ("n", "which", "layout"),
    [(4096, 1, "nn"), pytest.param(4095, 0, "nt", marks=pytest.mark.measuring)],
)
def test_everything_lives_in_registers(n, which, layout):
    code = rung_listing(mma_tma, gemm((4096, n, 4096), which, layout=layout))
    assert code.local_bytes == 0
    names = [i.name for i in code.instructions]
    assert names.count("HMMA") == 4 * 32
    assert "LDSM" in names
    assert "UTMALDG" in names
    assert "LDGSTS" not in names


@pytest.mark.ptxas
@pytest.mark.skipif(bool(lacking()), reason=lacking() or "")
@pytest.mark.parametrize("layout", ["nn", pytest.param("tt", marks=pytest.mark.measuring)])
def test_no_stage_is_released_before_it_is_read(layout):
    problem = gemm((4096, 4096, 4096), 1, layout=layout)
    assert not under_way_at_the_release(rung_listing(mma_tma, problem))


@pytest.mark.gpu
@pytest.mark.parametrize("tiling", mma_tma.tilings, ids=str)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_gpu_computes_each_of_many_tiles(layout, tiling):
    """A stage that is overwritten too early spoils few elements, and only of large products."""
    problem = gemm((8192, 8192, 8192), 1, layout=layout)
    assert run(mma_tma, problem, backend="gpu", tiling=tiling, repeats=1).passed


@pytest.mark.gpu
def test_a_gpu_has_the_simulators_bits():
    problem = gemm((128, 128, 128), 1, beta=1)
    operands = problem.operands(seed=11)
    runner = gpu.Runner(mma_tma, problem, mma_tma.default, gpu.Matrices(problem))
    (alpha, beta), c = problem.scalars(), problem.poisoned(operands.c)
    launches(mma_tma, problem, mma_tma.default, (alpha, operands.a, operands.b, beta, c))
    assert np.array_equal(runner.compute(problem, operands), c)
