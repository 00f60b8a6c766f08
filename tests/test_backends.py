"""Backends: the right one is chosen, results are checked, bad input is one clear error."""

import sys

import numpy as np
import pytest

from gemmlab import Gemm, Measurement, Tiling, kernels, predict, residual, run
from gemmlab.backends import available, choose, timing
from gemmlab.driver import gpu_status
from gemmlab.simt import HazardError

RAGGED = Gemm(m=33, n=20, k=17, alpha=0.5, beta=-2.0)


def test_simulator_counts_what_is_predicted():
    m = run(kernels.tiled, RAGGED, "simulator")
    assert m.passed
    assert m.seconds is None
    assert m.flops_per_second is None
    assert m.source == "simulated"
    gap = residual(m, predict(RAGGED, "h200", kernels.tiled))
    assert len(gap) >= 10
    assert set(gap.values()) == {0}
    assert m.bytes["global"] == predict(RAGGED, "h200", kernels.tiled).bytes["global"]


@pytest.mark.parametrize("kernel", kernels.CPU, ids=lambda k: k.name)
@pytest.mark.parametrize("problem", [Gemm(1, 1, 1), RAGGED, Gemm(65, 130, 1)], ids=str)
def test_cpu_kernels_are_right_and_timed(kernel, problem):
    if not kernel.library:
        pytest.importorskip("numba")
    m = run(kernel, problem, repeats=3)
    assert m.passed
    assert len(m.samples) == 3
    assert m.percentile(10) <= m.seconds <= m.percentile(90)
    assert m.source.startswith("measured here on ")


def test_cpu_kernels_say_that_they_need_numba(monkeypatch):
    from gemmlab.backends import cpu

    monkeypatch.setitem(sys.modules, "numba", None)
    cpu._compiled.cache_clear()
    with pytest.raises(RuntimeError, match="cpu_naive needs Numba, which is not installed"):
        run(kernels.cpu_naive, RAGGED)


def test_c_is_neither_read_for_beta_zero_nor_changed():
    problem = Gemm(5, 6, 7)
    a, b, c = problem.operands()
    c[:] = np.nan
    assert run(kernels.tiled, problem, "simulator", operands=(a, b, c)).passed
    assert run(kernels.cpu_numpy, problem, operands=(a, b, c), repeats=1).passed
    assert np.isnan(c).all()


def test_auto_falls_back_to_the_simulator_and_says_so_once(capsys, monkeypatch):
    from gemmlab import backends

    status = gpu_status().__class__(False, "no-driver", "no NVIDIA driver is installed")
    monkeypatch.setattr(backends, "gpu_status", lambda: status)
    backends._say_once.cache_clear()
    assert [choose(kernels.naive), choose(kernels.tiled)] == ["simulator"] * 2
    assert capsys.readouterr().err.count("no NVIDIA driver is installed") == 1
    assert available(kernels.cublas) == ("recorded",)
    assert available(kernels.cpu_naive) == ("cpu",)
    with pytest.raises(RuntimeError, match="no NVIDIA driver is installed"):
        run(kernels.tiled, RAGGED, "gpu")


@pytest.mark.parametrize(
    ("arguments", "options", "words"),
    [
        (("tiled", RAGGED), {}, "kernel='tiled' is not a Kernel"),
        ((kernels.tiled, (4, 4, 4)), {}, "is not a Gemm"),
        ((kernels.tiled, RAGGED, "cuda"), {}, "backend='cuda' is not known; use auto, gpu"),
        ((kernels.tiled, RAGGED), {"tiling": 16}, "tiling=16 is not a Tiling"),
        ((kernels.tiled, RAGGED), {"tiling": Tiling((16, 8, 16))}, "16×8×16 does not fit"),
        ((kernels.tiled, RAGGED, "simulator"), {"tiling": Tiling.square(64)}, "4096 threads"),
        ((kernels.tiled, Gemm(8, 8, 8, dtype="float16")), {}, "computes float32, not float16"),
        ((kernels.cublas, RAGGED, "simulator"), {}, "cublas cannot run on backend='simulator'"),
        ((kernels.cpu_naive, RAGGED, "gpu"), {}, "cpu_naive cannot run on backend='gpu'"),
        ((kernels.cublas, RAGGED), {"tiling": Tiling.square(8)}, "chooses its own tiles"),
        ((kernels.naive, Gemm(4096, 4096, 4096), "simulator"), {}, "too large to simulate"),
    ],
)
def test_bad_input_is_one_clear_error(arguments, options, words):
    with pytest.raises((TypeError, ValueError)) as error:
        run(*arguments, **options)
    assert words in str(error.value)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda a, b, c: (a[:-1], b, c), "A has shape (32, 17); this problem needs (33, 17)"),
        (lambda a, b, c: (a, b.astype(np.float64), c), "B has dtype float64"),
        (lambda a, b, c: (a, b, c.tolist()), "C is a list"),
        (lambda a, b, c: (a, np.full_like(b, np.nan), c), "B[0, 0] is nan"),
        (lambda a, b, c: (a, b, np.full_like(c, np.inf)), "C[0, 0] is inf"),
    ],
)
def test_bad_operands_are_refused(change, words):
    with pytest.raises((TypeError, ValueError)) as error:
        run(kernels.tiled, RAGGED, "simulator", operands=change(*RAGGED.operands()))
    assert words in str(error.value)


def test_a_wrong_kernel_does_not_pass():
    def build(tiling):
        def wrong(alpha, A, B, beta, C):
            i, j = cuda.grid(2)
            if i < C.shape[0] and j < C.shape[1]:
                C[i, j] = A[i, 0] * B[0, j]

        return wrong

    from gemmlab import cuda
    from gemmlab.kernels import Kernel

    kernel = Kernel("wrong", "one term", Tiling((16, 16, 1)), build, kernels.naive.launch)
    m = run(kernel, Gemm(8, 8, 8), "simulator")
    assert not m.passed
    assert run(kernel, Gemm(8, 8, 1), "simulator").passed
    with pytest.raises(ValueError, match="no model of wrong"):
        predict(Gemm(8, 8, 8), "h200", kernel)


def test_a_hazard_stops_the_run():
    def build(tiling):
        def racy(alpha, A, B, beta, C):
            C[0, 0] = A[0, 0]

        return racy

    from gemmlab.kernels import Kernel

    kernel = Kernel("racy", "all write one element", Tiling((8, 8, 1)), build, kernels.naive.launch)
    with pytest.raises(HazardError, match="global-race"):
        run(kernel, Gemm(8, 8, 8), "simulator")


def test_source_hash_ignores_layout_but_not_code():
    def kernel_of(text):
        import linecache

        name = f"<{hash(text)}>"
        linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
        scope = {}
        exec(compile(text, name, "exec"), scope)
        return kernels.Kernel("k", "", None, scope["build"])

    one = timing.source_hash(kernel_of('def build(t):\n    """Doc."""\n    return 1 + t\n'))
    same = timing.source_hash(kernel_of("def build(t):\n    # note\n\n    return 1  +  t\n"))
    other = timing.source_hash(kernel_of("def build(t):\n    return 2 + t\n"))
    assert one == same != other


def test_residual_needs_the_same_kernel_and_problem():
    m = run(kernels.naive, Gemm(8, 8, 8), "simulator")
    with pytest.raises(ValueError, match="cannot compare naive"):
        residual(m, predict(Gemm(8, 8, 8), "h200", kernels.tiled))


def test_measurement_refuses_an_unknown_backend():
    with pytest.raises(ValueError, match="backend='fpga' is not one of gpu, cpu"):
        Measurement("k", Gemm(1, 1, 1), None, "fpga", "x", "X", 0.0, 1.0)


def test_a_nan_error_never_passes():
    m = Measurement("k", Gemm(1, 1, 1), None, "cpu", "x", "X", float("nan"), 1.0)
    assert not m.passed


@pytest.mark.gpu
@pytest.mark.parametrize("kernel", [*kernels.LADDER, kernels.cublas], ids=lambda k: k.name)
@pytest.mark.parametrize("problem", [Gemm(1, 1, 1), RAGGED, Gemm(500, 300, 200)], ids=str)
def test_gpu_kernels_are_right_and_timed(kernel, problem):
    m = run(kernel, problem, "gpu", repeats=5)
    assert m.passed
    assert len(m.samples) == 5
    assert m.seconds > 0


@pytest.mark.gpu
@pytest.mark.parametrize("kernel", kernels.LADDER, ids=lambda k: k.name)
def test_gpu_and_simulator_agree_to_the_bit_on_integers(kernel):
    from gemmlab.driver import numba_cuda
    from gemmlab.simt import simulate

    problem = Gemm(70, 45, 33, alpha=2.0, beta=-1.0)
    a, b, c = problem.operands(kind="integers")
    tiling = kernel.default
    grid, block = kernel.launch(problem, tiling)
    here, there = c.copy(), c.copy()
    scalars = np.float32(problem.alpha), np.float32(problem.beta)
    simulate(kernel.build(tiling), grid, block, scalars[0], a, b, scalars[1], here)
    numba_cuda().jit(kernel.build(tiling))[grid, block](scalars[0], a, b, scalars[1], there)
    assert np.array_equal(here, there)
    assert np.array_equal(here, problem.reference((a, b, c)).astype(np.float32))


@pytest.mark.gpu
def test_auto_chooses_the_gpu():
    assert choose(kernels.tiled) == "gpu"
    with pytest.raises(ValueError, match="4096 threads is too large"):
        run(kernels.tiled, RAGGED, tiling=Tiling.square(64))


@pytest.mark.parametrize("kernel", [*kernels.LADDER, kernels.cublas], ids=lambda k: k.name)
def test_what_is_recorded_was_measured_with_the_source_that_is_here(kernel):
    from gemmlab import records

    hashes = {m.provenance["source_sha256"] for m in records.load("h200", kernel)}
    assert hashes == {timing.source_hash(kernel)}, "run: python run.py record"


def test_a_kernel_that_reads_c_where_beta_is_zero_does_not_pass():
    def build(tiling):
        def careless(alpha, A, B, beta, C):
            i, j = cuda.grid(2)
            if i < C.shape[0] and j < C.shape[1]:
                C[i, j] = alpha * A[i, 0] * B[0, j] + beta * C[i, j]

        return careless

    from gemmlab import cuda
    from gemmlab.kernels import Kernel

    tiling = Tiling((16, 16, 1))
    kernel = Kernel("careless", "0 · NaN", tiling, build, kernels.naive.launch)
    assert not run(kernel, Gemm(8, 8, 1), "simulator").passed
    assert run(kernel, Gemm(8, 8, 1, beta=1), "simulator").passed


@pytest.mark.parametrize("kernel", [kernels.naive, kernels.coalesced], ids=lambda k: k.name)
@pytest.mark.parametrize("block", [(8, 32, 1), (32, 4, 1), (3, 50, 1)], ids=str)
def test_blocks_need_not_be_square(kernel, block):
    tiling = Tiling(block)
    m = run(kernel, RAGGED, "simulator", tiling=tiling)
    assert m.passed
    assert set(residual(m, predict(RAGGED, "h200", kernel, tiling)).values()) == {0}
