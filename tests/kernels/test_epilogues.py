"""What follows a product is done before it is stored: right, counted as predicted, compiled."""

from collections import Counter

import numpy as np
import pytest

from gemmlab import Gemm, Tiling, kernels, run, simulate
from gemmlab.compiled.forecast.rung_listings import rung_listing
from gemmlab.formats import to_memory
from gemmlab.instructions import host
from gemmlab.kernels.tensor_core.shared.epilogues import ACTIVATIONS, exact
from gemmlab.kernels.tensor_core.tma_epilogue import errors
from gemmlab.measure.backends import gpu
from gemmlab.problem import Operands
from tests.support.rungs import predicted

SMALL = Tiling(block=(128, 128, 64), stages=2)


def product(m, n, k, layout="nt", dtype="float16", **more):
    return Gemm(m, n, k, dtype=dtype, layout=layout, **more)


def rows(bias, m):
    """An array all of whose rows are one, which takes no memory."""
    return np.broadcast_to(bias, (m, len(bias)))


def operands(problem, biased):
    """Operands, of which C is a bias or a matrix."""
    a, b, c = problem.operands(3)
    return Operands(a, b, rows(c[0].copy(), problem.m) if biased else c)


MEASURING = pytest.mark.measuring  # what takes long beside another that shows the same
CASES = [
    # Rows and columns beyond C, and a block of a pair that has no tile.
    (product(72, 136, 64, beta=1), "gelu", True),
    pytest.param(product(72, 136, 64, "tt", "bfloat16", alpha=3, beta=0.5), "relu", True,
                 marks=MEASURING),
    (product(264, 56, 72, "tn", beta=1), "relu_gradient", False),
    pytest.param(product(128, 128, 72, "nn", "bfloat16", beta=1), "gelu", False, marks=MEASURING),
    pytest.param(product(72, 56, 72), "linear", False, marks=MEASURING),
]  # fmt: skip


@pytest.mark.parametrize(("problem", "activation", "biased"), CASES, ids=str)
def test_it_stores_what_follows_a_product_and_counts_as_predicted(problem, activation, biased):
    a, b, c = operands(problem, biased)
    kernel = kernels.with_epilogue(activation, c if biased else None)
    poison = np.full(c.shape, to_memory(np.nan, problem.dtype))
    out = poison if biased else problem.poisoned(c)
    (blocks, _), (threads, _) = kernel.configure(problem, SMALL)
    alpha, beta = problem.scalars()
    report = simulate(
        kernel.function(problem, SMALL), blocks, threads, alpha,
        *kernel.operands(problem, SMALL, a, b), beta, *kernel.result(problem, SMALL, out),
        cluster=kernel.cluster, shared_bytes=kernel.shared_bytes(problem, SMALL),
    )  # fmt: skip
    found, most = errors(problem, Operands(a, b, c), activation, out)
    assert (found <= most).all()
    assert Counter(report.counters) == Counter(
        {name: n for name, n in predicted(kernel, problem, SMALL).items() if n}
    )


@MEASURING
def test_without_an_activation_it_is_a_rung_as_others_are():
    problem = product(130, 136, 72, "nn", alpha=2, beta=-0.5)
    assert run(kernels.tma_epilogue, problem, backend="simulator", tiling=SMALL).passed
    assert kernels.get("tma_epilogue") is kernels.tma_epilogue


def test_wrong_epilogues_are_beyond_what_right_arithmetic_may_be_off():
    """The bound tells activations apart, a bias from none, and tanh from what is 1% off."""
    problem = product(64, 64, 64, beta=1)
    given = operands(problem, True)
    a, b, c = problem.values(given)
    for activation in ACTIVATIONS:
        for other in ACTIVATIONS:
            out = exact(other, a @ b, c).astype(np.float16)
            found, most = errors(problem, given, activation, out)
            assert (found <= most).all() == (activation == other)
        out = exact(activation, a @ b, 0 * c).astype(np.float16)
        found, most = errors(problem, given, activation, out)
        assert (found > most).any()
    found, most = errors(problem, given, "gelu", (1.01 * exact("gelu", a @ b, c)).astype("f2"))
    assert (found > most).any()


def test_activations_are_what_is_known_of_them():
    y = np.array([-9.0, -8.0, -1.0, -0.0, 0.0, 1.0, 8.0])
    assert exact("relu", y, 0.0).tolist() == [0, 0, 0, 0, 0, 1, 8]
    # torch.nn.functional.gelu(approximate="tanh") of float64 numbers.
    known = [-0.15880800939172324, 0.0, 0.0, 0.8411919906082768, 8.0]
    assert exact("gelu", y, 0.0)[2:] == pytest.approx(known, abs=1e-12)
    assert exact("relu_gradient", y, np.array([1, -1, 0, 2, 1, -1, 1])).tolist() == [
        *(-9, 0, 0, -0.0, 0, 0, 8),
    ]
    assert np.isnan(exact("relu", np.array([np.nan]), 0.0)).all()


def test_what_it_refuses():
    with pytest.raises(ValueError, match="'tanh' is not known; use one of linear, relu, gelu"):
        kernels.with_epilogue("tanh")
    with pytest.raises(ValueError, match="'silu' is not known; use one of linear"):
        exact("silu", np.zeros(1), 0.0)
    with pytest.raises(ValueError, match="64×60×64 float16 nt: an epilogue needs rows"):
        kernels.tma_epilogue.function(product(64, 60, 64), SMALL)
    biased, problem = (
        kernels.with_epilogue("relu", rows(np.zeros(64, "f2"), 64)),
        product(64, 64, 64),
    )
    with pytest.raises(ValueError, match="beta=0; use beta=1, by which the bias is multiplied"):
        biased.function(problem, SMALL)
    with pytest.raises(ValueError, match="computes float16 and bfloat16, not float32"):
        kernels.tma_epilogue.check_problem(Gemm(64, 64, 64))


@MEASURING
@pytest.mark.ptxas
def test_a_hyperbolic_tangent_is_one_instruction_and_a_bias_loaded_once_for_two_rows():
    problem = product(512, 512, 512, beta=1)
    kernel = kernels.with_epilogue("gelu", rows(np.zeros(512, np.float16), 512))
    code = rung_listing(kernel, problem, SMALL)
    opcodes = Counter(i.opcode for i in code.instructions)
    accumulated, columns = 64, 128 // 8  # of a thread
    assert opcodes["MUFU.TANH"] == accumulated
    assert sum(n for name, n in opcodes.items() if name.startswith("LDG")) == columns
    assert code.local_bytes == 0


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("biased", [True, False])
def test_a_gpu_stores_what_follows_a_product(dtype, activation, biased):
    problem = product(264, 520, 200, dtype=dtype, alpha=0.5, beta=1)
    given = operands(problem, biased)
    on_gpu = host.cuda().to_device(np.ascontiguousarray(given.c[0]))
    bias = gpu_rows(on_gpu, problem.m) if biased else None
    kernel = kernels.with_epilogue(activation, bias)
    runner = gpu.Runner(kernel, problem, kernel.default, gpu.Matrices(problem))
    found, most = errors(problem, given, activation, runner.compute(problem, given))
    assert (found <= most).all()


def gpu_rows(bias, m):
    """`rows` on a GPU."""
    import cupy

    return numba_array(cupy.broadcast_to(cupy.asarray(bias), (m, len(bias))))


def numba_array(array):
    return host.cuda().as_cuda_array(array)
