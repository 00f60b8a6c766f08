"""Backends: the right one is chosen, results are checked, bad input is one clear error."""

import sys
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from numpy import float32

from gemmlab import Gemm, Measurement, Tiling, cuda, device, kernels, predict, residual, run
from gemmlab.here.driver import gpu_status
from gemmlab.kernels import Kernel
from gemmlab.kernels.hashing import source_hash
from gemmlab.measure.backends import available, choose
from gemmlab.measure.measurement import RESOURCES
from gemmlab.problem import LAYOUTS, Operands
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
    from gemmlab.measure.backends import cpu

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
    from gemmlab.measure import backends

    status = gpu_status().__class__(False, "no-driver", "no NVIDIA driver is installed")
    monkeypatch.setattr(backends, "gpu_status", lambda: status)
    backends._say_once.cache_clear()
    assert [choose(kernels.naive), choose(kernels.tiled)] == ["simulator"] * 2
    assert capsys.readouterr().err.count("no NVIDIA driver is installed") == 1
    assert available(kernels.cublas) == ("recorded",)
    assert available(kernels.cpu_naive) == ("cpu",)
    with pytest.raises(RuntimeError, match="no NVIDIA driver is installed"):
        run(kernels.tiled, RAGGED, "gpu")


def test_in_a_notebook_the_message_is_no_error(capsys, monkeypatch):
    from gemmlab.measure import backends

    shell = SimpleNamespace(kernel=None)
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))
    backends._say_once.cache_clear()
    backends._say_once("no GPU is used")
    assert capsys.readouterr() == ("gemmlab: no GPU is used\n", "")
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: None))
    backends._say_once.cache_clear()
    backends._say_once("no GPU is used")
    assert capsys.readouterr() == ("", "gemmlab: no GPU is used\n")


def transposed(layouts, tiling=None):
    """The naive kernel for B that is stored transposed, one variant of its source each."""

    def build(tiling, layout="nn"):
        def straight(alpha, A, B, beta, C):
            i, j = cuda.grid(2)
            if i < C.shape[0] and j < C.shape[1]:
                acc = float32(0)
                for p in range(A.shape[1]):
                    acc += A[i, p] * B[p, j]
                C[i, j] = alpha * acc

        def across(alpha, A, B, beta, C):
            i, j = cuda.grid(2)
            if i < C.shape[0] and j < C.shape[1]:
                acc = float32(0)
                for p in range(A.shape[1]):
                    acc += A[i, p] * B[j, p]
                C[i, j] = alpha * acc

        return across if layout == "nt" else straight

    return replace(
        kernels.naive,
        name="transposed",
        build=build,
        layouts=layouts,
        variant=lambda problem, capability: {"layout": problem.layout},
    )


def test_a_kernel_is_given_the_operands_as_they_are_stored():
    problem = Gemm(17, 9, 13, layout="nt")
    assert run(transposed(("nn", "nt")), problem, "simulator").passed
    assert run(transposed(("nn", "nt")), replace(problem, layout="nn"), "simulator").passed
    with pytest.raises(ValueError, match="takes operands in layout nn and nt, not tt"):
        run(transposed(("nn", "nt")), replace(problem, layout="tt"), "simulator")
    with pytest.raises(ValueError, match="tiled takes operands in layout nn, not nt"):
        run(kernels.tiled, problem)


def test_the_simulator_has_the_dynamic_shared_memory_of_the_launch():
    def build(tiling):
        def reversing(alpha, A, B, beta, C):
            row = cuda.shared.array(0, float32)
            i, j, n = cuda.blockIdx.x, cuda.threadIdx.x, C.shape[1]
            row[n - 1 - j] = A[i, 0] * B[0, n - 1 - j]
            cuda.syncthreads()
            C[i, j] = alpha * row[j]

        return reversing

    kernel = Kernel(
        "reversing",
        "a row of C in shared memory",
        Tiling((1, 8, 1)),
        build,
        configure=lambda problem, tiling: ((problem.m, 1), (problem.n, 1)),
        shared_bytes=lambda problem, tiling: 4 * problem.n,
        dynamic=True,
    )
    assert run(kernel, Gemm(3, 8, 1), "simulator").passed
    with pytest.raises(HazardError, match="out of bounds|out-of-bounds"):
        run(replace(kernel, shared_bytes=lambda problem, tiling: 4), Gemm(3, 8, 1), "simulator")


def test_own_operands_are_told_from_drawn_ones():
    problem = Gemm(5, 6, 7)
    own = problem.operands(seed=3)
    told = [
        run(kernels.cpu_numpy, problem, repeats=1, **options).provenance["data"]
        for options in ({}, {"operands": own}, {"operands": own, "data": "normal, seed 3"})
    ]
    assert told == ["normal, seed 0", "given by the caller", "normal, seed 3"]


@pytest.mark.parametrize(
    ("arguments", "options", "words"),
    [
        (("tiled", RAGGED), {}, "kernel='tiled' is not a Kernel"),
        ((kernels.cpu_numpy, Gemm(8, 8, 8), "cpu"), {"repeats": -1}, "repeats=-1 is too small"),
        ((kernels.tiled, (4, 4, 4)), {}, "is not a Gemm"),
        ((kernels.tiled, RAGGED, "cuda"), {}, "backend='cuda' is not known; use auto, gpu"),
        ((kernels.tiled, RAGGED), {"tiling": 16}, "tiling=16 is not a Tiling"),
        ((kernels.tiled, RAGGED, "simulator"), {"device": "x"}, "device='x' is not known; use one"),
        ((kernels.tiled, RAGGED, "simulator"), {"device": 3}, "device=3 is not known"),
        ((kernels.tiled, RAGGED), {"tiling": Tiling((16, 8, 16))}, "16×8×16 does not fit"),
        ((kernels.tiled, RAGGED, "simulator"), {"tiling": Tiling.square(64)}, "4096 threads"),
        ((kernels.tiled, Gemm(8, 8, 8, dtype="float16")), {}, "computes float32, not float16"),
        (
            (kernels.tiled, Gemm(8, 8, 8, accumulate="float64")),
            {},
            "tiled computes float32, not float32 summed in float64",
        ),
        (
            (kernels.cpu_naive, Gemm(8, 8, 8, out_dtype="float16")),
            {},
            "computes float32 and float64, not float32 to float16",
        ),
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


def test_a_gpu_without_a_file_may_be_given_as_a_device():
    own = replace(device("h200"), name="nvidia_of_this_machine")
    assert run(kernels.tiled, RAGGED, "simulator", device=own).passed
    with pytest.raises(LookupError, match="nvidia_of_this_machine"):
        run(kernels.tiled, RAGGED, "recorded", device=own)


def test_a_wrong_kernel_does_not_pass():
    def build(tiling):
        def wrong(alpha, A, B, beta, C):
            i, j = cuda.grid(2)
            if i < C.shape[0] and j < C.shape[1]:
                C[i, j] = A[i, 0] * B[0, j]

        return wrong

    kernel = Kernel("wrong", "one term", Tiling((16, 16, 1)), build, kernels.naive.configure)
    m = run(kernel, Gemm(8, 8, 8), "simulator")
    assert not m.passed
    assert run(kernel, Gemm(8, 8, 1), "simulator").passed
    with pytest.raises(ValueError, match="no model of wrong"):
        predict(Gemm(8, 8, 8), "h200", kernel)


def test_a_hazard_stops_the_run():
    def build(tiling):
        def racy(alpha, A, B, beta, C):
            C[0, 0] = cuda.threadIdx.x

        return racy

    kernel = Kernel(
        "racy", "all write one element", Tiling((8, 8, 1)), build, kernels.naive.configure
    )
    with pytest.raises(HazardError, match="global-race"):
        run(kernel, Gemm(8, 8, 8), "simulator")


def test_devices_are_known_by_their_file_or_by_their_records(monkeypatch):
    from gemmlab.measure import backends

    monkeypatch.setattr(backends.records, "devices", lambda: ["my_gpu"])
    for name in ("my_gpu", "t4", device("t4")):
        assert run(kernels.naive, Gemm(2, 2, 2), "simulator", device=name).passed
    with pytest.raises(ValueError, match="device='x' is not known; use one of .*my_gpu, .*t4"):
        run(kernels.naive, Gemm(2, 2, 2), "simulator", device="x")


def test_residual_needs_the_same_kernel_and_problem():
    m = run(kernels.naive, Gemm(8, 8, 8), "simulator")
    with pytest.raises(ValueError, match="cannot compare naive"):
        residual(m, predict(Gemm(8, 8, 8), "h200", kernels.tiled))


def test_measurement_refuses_an_unknown_backend():
    with pytest.raises(ValueError, match="backend='fpga' is not one of gpu, cpu"):
        Measurement("k", Gemm(1, 1, 1), None, "fpga", "x", "X", 0.0, 1.0)


def test_measurement_refuses_an_unknown_resource():
    with pytest.raises(ValueError, match="resource 'wings' is not one of registers, local_bytes"):
        Measurement("k", Gemm(1, 1, 1), None, "gpu", "x", "X", 0.0, 1.0, resources={"wings": 2})


def test_a_measurement_says_what_it_is():
    m = Measurement(
        kernel="k",
        problem=Gemm(100, 100, 100),
        tiling=Tiling.square(16),
        backend="gpu",
        device="h200",
        device_title="NVIDIA H200",
        error=1e-7,
        tolerance=1e-5,
        samples=(2e-6,) * 10,
        resources={**dict.fromkeys(RESOURCES, 0), "registers": 40, "static_shared_bytes": 2048},
    )
    assert str(m) == (
        "k 100×100×100 float32, tile 16×16×16; 2e-06 s (p10 2e-06, p90 2e-06); 1 TFLOP/s; "
        "40 registers, 0 B local, 2048 B shared, 0 warps per SM; error 1e-07 within 1e-05; "
        "measured here on NVIDIA H200"
    )
    text = str(replace(m, samples=(), resources={}, backend="simulator", error=1.0))
    assert text == ("k 100×100×100 float32, tile 16×16×16; error 1 NOT within 1e-05; simulated")


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
@pytest.mark.parametrize("arithmetic", kernels.cublas.arithmetic, ids=str)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_cublas_computes_in_every_format_and_layout(arithmetic, layout):
    formats = dict(zip(arithmetic._fields, arithmetic, strict=True))
    problem = Gemm(264, 72, 520, alpha=0.5, beta=-2.0, layout=layout, **formats)
    assert run(kernels.cublas, problem, "gpu", repeats=3).passed
    ragged = Gemm(33, 20, 17, layout=layout, **formats)
    assert run(kernels.cublas, ragged, "gpu", repeats=3).passed


@pytest.mark.gpu
def test_cublas_rounds_nothing_to_tf32_in_float32():
    """1 + 2⁻¹² is 1 in TF32: sums of 512 of them would be off by sixteen times the tolerance."""
    problem = Gemm(256, 256, 512)
    a, b = (np.full(shape, np.float32(1 + 2.0**-12)) for shape in problem.shapes[:2])
    operands = Operands(a, b, np.zeros(problem.shapes[2], np.float32))
    assert run(kernels.cublas, problem, "gpu", operands=operands, repeats=3).passed


@pytest.mark.gpu
@pytest.mark.parametrize("kernel", kernels.LADDER, ids=lambda k: k.name)
def test_gpu_and_simulator_agree_to_the_bit_on_integers(kernel):
    from gemmlab.measure.backends import gpu
    from gemmlab.simt import simulate

    problem = Gemm(70, 45, 33, alpha=2.0, beta=-1.0)
    a, b, c = operands = problem.operands(kind="integers")
    tiling = kernel.default
    grid, block = kernel.configure(problem, tiling)
    here = c.copy()
    simulate(
        *(kernel.function(problem, tiling), grid, block),
        *(np.float32(problem.alpha), a, b, np.float32(problem.beta), here),
        shared_bytes=kernel.dynamic_shared_bytes(problem, tiling),
    )
    there = gpu.Runner(kernel, problem, tiling, gpu.Matrices(problem)).compute(problem, operands)
    assert np.array_equal(here, there)
    assert np.array_equal(here, problem.reference(operands).astype(np.float32))


@pytest.mark.gpu
def test_auto_chooses_the_gpu():
    assert choose(kernels.tiled) == "gpu"
    with pytest.raises(ValueError, match="4096 threads is too large"):
        run(kernels.tiled, RAGGED, tiling=Tiling.square(64))


@pytest.mark.parametrize(
    "kernel", [*kernels.GPU, *kernels.HOPPER_CLUSTERS, kernels.cublas], ids=lambda k: k.name
)
def test_what_is_recorded_was_measured_with_the_source_that_is_here(kernel):
    from gemmlab import records

    there = [m for name in records.devices() for m in records.load(name) if m.kernel == kernel.name]
    assert {m.provenance["source_sha256"] for m in there} == {source_hash(kernel)}, (
        "python run.py record"
    )


def test_a_kernel_that_reads_c_where_beta_is_zero_does_not_pass():
    def build(tiling):
        def careless(alpha, A, B, beta, C):
            i, j = cuda.grid(2)
            if i < C.shape[0] and j < C.shape[1]:
                C[i, j] = alpha * A[i, 0] * B[0, j] + beta * C[i, j]

        return careless

    tiling = Tiling((16, 16, 1))
    kernel = Kernel("careless", "0 · NaN", tiling, build, kernels.naive.configure)
    assert not run(kernel, Gemm(8, 8, 1), "simulator").passed
    assert run(kernel, Gemm(8, 8, 1, beta=1), "simulator").passed


@pytest.mark.parametrize("kernel", [kernels.naive, kernels.coalesced], ids=lambda k: k.name)
@pytest.mark.parametrize("block", [(8, 32, 1), (32, 4, 1), (3, 50, 1)], ids=str)
def test_blocks_need_not_be_square(kernel, block):
    tiling = Tiling(block)
    m = run(kernel, RAGGED, "simulator", tiling=tiling)
    assert m.passed
    assert set(residual(m, predict(RAGGED, "h200", kernel, tiling)).values()) == {0}


@pytest.mark.parametrize("k", [1, 2, 5])
@pytest.mark.parametrize("kernel", [kernels.tcec_split, kernels.tcec_registers])
def test_short_sums_of_parts_are_within_the_kernels_own_tolerance(kernel, k):
    """For k = 1 FP32 has five roundings, and three products of halves differ by up to twelve."""
    m = run(kernel, Gemm(16, 16, k), "simulator")
    assert m.passed
    assert m.tolerance == Gemm(16, 16, k).tolerance + 12 * 2.0**-24


def test_a_size_is_refused_before_operands_are_drawn(monkeypatch):
    monkeypatch.setattr(Gemm, "operands", None)
    with pytest.raises(ValueError, match="too large to simulate"):
        run(kernels.tiled, Gemm(8192, 8192, 8192), "simulator")


def test_what_is_compared_is_a_measurement_and_a_prediction():
    with pytest.raises(TypeError, match="measured=None is not a Measurement"):
        residual(None, None)
    with pytest.raises(TypeError, match="predicted=1 is not a Prediction"):
        residual(run(kernels.naive, Gemm(8, 8, 8), "simulator"), 1)
