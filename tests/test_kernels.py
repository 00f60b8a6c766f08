"""Every rung of the ladder on edge shapes: exact on integers, no hazards, and it compiles."""

import numpy as np
import pytest

from gemmlab import kernels, simulate
from gemmlab.kernels.kernel import Kernel
from gemmlab.problem import Gemm
from gemmlab.simt.language import stand_in
from gemmlab.tiling import Tiling

SCALES = [(1, 0), (2, 0), (1, 1), (-0.5, 1), (1, -0.5), (0, 1)]
LADDER = pytest.mark.parametrize("kernel", kernels.LADDER, ids=lambda k: k.name)


def edge_shapes(tile):
    """One less and one more than a tile, single rows and columns, k = 1, oblong and long."""
    near = (1, tile - 1, tile, tile + 1)
    shapes = [(m, n, k) for m in near for n in near for k in (1, tile + 1)]
    return [*shapes, (2 * tile + 3, 5, tile - 1), (3, 3 * tile, 2 * tile + 1), (1, 1, 5 * tile)]


def arguments(problem, operands):
    """The arguments of a kernel, with C poisoned where it must not be read."""
    scalar = problem.numpy_dtype.type
    c = operands.c.copy() if problem.beta != 0 else np.full_like(operands.c, np.nan)
    return scalar(problem.alpha), operands.a, operands.b, scalar(problem.beta), c


def simulated(kernel, problem, operands, tiling=None):
    tiling = kernel.choose(tiling)
    args = arguments(problem, operands)
    report = simulate(kernel.build(tiling), *kernel.launch(problem, tiling), *args)
    assert report.hazards == []
    return args[-1]


@LADDER
@pytest.mark.parametrize(("alpha", "beta"), SCALES)
def test_exact_on_integers(kernel, alpha, beta):
    for tile in {8, kernel.default.block[0]}:
        tiling = Tiling(block=(tile, tile, tile))
        for shape in edge_shapes(tile):
            problem = Gemm(*shape, alpha=alpha, beta=beta)
            operands = problem.operands(kind="integers")
            result = simulated(kernel, problem, operands, tiling)
            assert np.array_equal(result, problem.reference(operands)), (shape, tiling)


@LADDER
@pytest.mark.parametrize("dtype", ["float64", "float16"])
def test_other_formats_stay_within_their_tolerance(kernel, dtype):
    problem = Gemm(33, 18, 40, alpha=0.5, beta=2, dtype=dtype)
    operands = problem.operands()
    result = simulated(kernel, problem, operands)
    assert result.dtype == dtype
    assert problem.error(result, operands) <= problem.tolerance


@LADDER
@pytest.mark.parametrize("shape", [(40, 24, 300), (17, 33, 65)])
def test_random_operands_stay_within_the_tolerance(kernel, shape):
    problem = Gemm(*shape, alpha=1.5, beta=-0.25)
    operands = problem.operands(seed=3)
    assert 0 < problem.error(simulated(kernel, problem, operands), operands) <= problem.tolerance


@LADDER
def test_operands_are_left_as_they_are(kernel):
    problem = Gemm(20, 30, 10)
    operands = problem.operands()
    simulated(kernel, problem, operands)
    assert all(map(np.array_equal, operands, problem.operands()))


@LADDER
def test_launches_cover_c_with_the_threads_of_the_tiling(kernel):
    for shape in ((1, 1, 1), (100, 37, 20)):
        for tiling in (kernel.default, Tiling(block=(4, 4, 4))):
            problem = Gemm(*shape)
            grid, block = kernel.launch(problem, tiling)
            work = kernel.work(problem, tiling)
            assert block[0] * block[1] == tiling.threads == work.threads
            assert grid[0] * grid[1] == work.blocks
            assert work.blocks * tiling.block[0] * tiling.block[1] >= problem.m * problem.n


def test_tilings_that_do_not_fit():
    for tiling in (
        Tiling(block=(16, 8, 16)),
        Tiling(block=(16, 16, 8)),
        Tiling(block=(16, 16, 16), thread=(2, 1)),
        Tiling(block=(16, 16, 16), stages=2),
    ):
        with pytest.raises(ValueError) as caught:
            kernels.tiled.choose(tiling)
        assert str(tiling) in str(caught.value)
        assert "Tiling.square(16)" in str(caught.value)
    with pytest.raises(TypeError, match="tiling=16 is not a Tiling"):
        kernels.naive.choose(16)


def test_names():
    everything = (*kernels.LADDER, kernels.REFERENCE, *kernels.CPU)
    assert all(isinstance(k, Kernel) for k in everything)
    assert len({k.name for k in everything}) == len(everything)
    assert all(kernels.get(k.name) is k is getattr(kernels, k.name) for k in everything)
    with pytest.raises(ValueError, match="'fast'.*naive.*tiled"):
        kernels.get("fast")


# ------------------------------------------------------------------- the same source, compiled


def compiler():
    """`numba.cuda`, where it can compile without a GPU: numba-cuda with its CUDA wheels."""
    if kernels.naive.build.__globals__["cuda"] is stand_in:
        pytest.skip("numba-cuda is not installed")
    from numba import cuda

    try:
        cuda.compile_ptx(lambda: None, (), cc=(9, 0))
    except Exception as error:
        pytest.skip(f"numba.cuda cannot compile here ({type(error).__name__}: {error})"[:200])
    return cuda


@LADDER
@pytest.mark.parametrize("tile", [8, 16, 32])
def test_the_same_source_compiles(kernel, tile):
    cuda = compiler()
    from numba import float32

    matrix = float32[:, ::1]
    ptx, _ = cuda.compile_ptx(
        kernel.build(Tiling.square(tile)), (float32, matrix, matrix, float32, matrix), cc=(9, 0)
    )
    assert ".target sm_90" in ptx
    assert "fma.rn.f32" in ptx
    assert ".local" not in ptx
    assert ("bar.sync" in ptx) == (kernel is kernels.tiled) == (".shared" in ptx)


@pytest.mark.gpu
@LADDER
@pytest.mark.parametrize(("alpha", "beta"), SCALES)
def test_gpu_and_simulator_agree_to_the_bit(kernel, alpha, beta):
    from numba import cuda

    for tile in {8, kernel.default.block[0]}:
        tiling = Tiling(block=(tile, tile, tile))
        compiled = cuda.jit(kernel.build(tiling))
        for shape in edge_shapes(tile):
            problem = Gemm(*shape, alpha=alpha, beta=beta)
            operands = problem.operands(kind="integers")
            alpha_, a, b, beta_, c = arguments(problem, operands)
            on_gpu = cuda.to_device(c)
            grid, block = kernel.launch(problem, tiling)
            compiled[grid, block](alpha_, cuda.to_device(a), cuda.to_device(b), beta_, on_gpu)
            expected = simulated(kernel, problem, operands, tiling)
            assert np.array_equal(on_gpu.copy_to_host(), expected), (shape, tiling)
