"""The GPU backend on a stand-in for Numba's host functions: kernels are simulated, clocks are not.

What only a GPU can tell is in the tests marked `gpu`, and in `tests/benchmarks/hardware`.
"""

import sys
from dataclasses import replace
from types import SimpleNamespace

import pytest

from gemmlab import Gemm, Tiling, cuda, kernels, run
from gemmlab.kernels import Kernel
from gemmlab.measure.backends import gpu, sensors
from gemmlab.measure.measurement import RESOURCES
from tests.support.fake_gpu import REGISTERS, STATIC, installed

PROBLEM = Gemm(33, 20, 17, alpha=0.5, beta=-2.0)


@pytest.fixture
def host(monkeypatch):
    yield from installed(monkeypatch)


def logged(host, word):
    return [entry[1:] for entry in host.log if entry[0] == word]


def dynamic(shared, **changes):
    """The tiled kernel as if it wanted this much dynamic shared memory [B]."""
    return replace(
        kernels.tiled, shared_bytes=lambda problem, tiling: shared, dynamic=True, **changes
    )


def test_a_kernel_is_checked_timed_and_described(host):
    m = run(kernels.tiled, PROBLEM, "gpu", repeats=4)
    assert m.passed
    assert m.samples == (1e-6,) * 4
    assert (m.backend, m.device) == ("gpu", "h200")
    assert m.resources == {
        "registers": REGISTERS,
        "local_bytes": 0,
        "static_shared_bytes": STATIC,
        "dynamic_shared_bytes": 0,
        "threads": 256,
        "blocks_per_sm": 6,
        "predicted_blocks_per_sm": 6,  # 256 · 40 registers of 65,536
        "warps_per_sm": 48,
    }
    assert tuple(m.resources) == RESOURCES
    assert m.provenance["check"] == "every element, float64"
    assert m.provenance["data"] == "normal, seed 0"
    assert m.provenance["sm_clock_hz"] == "unknown"


def test_each_timed_run_finds_its_c_and_a_cold_l2(host):
    run(kernels.tiled, PROBLEM, "gpu", repeats=4)
    words = [entry[0] for entry in host.log if entry[0] in ("flush", "launch")]
    assert words == ["launch"] + ["flush", "launch"] * (gpu.WARM_UP + 4)


def test_launches_of_one_kernel_are_timed_together(host):
    tiling = Tiling(block=(32, 32, 8), warp=(32, 16), thread=(4, 4), stages=2, split=3)
    m = run(kernels.split_k, PROBLEM, "gpu", tiling=tiling, repeats=4)
    assert m.passed
    words = [entry[0] for entry in host.log if entry[0] in ("flush", "launch")]
    assert words == ["launch"] * 2 + ["flush", "launch", "launch"] * (gpu.WARM_UP + 4)
    multiplies, adds = logged(host, "launch")[:2]
    assert multiplies[:2] == kernels.split_k.configure(PROBLEM, tiling)
    assert adds[:2] == kernels.split_k.after[0].configure(PROBLEM, tiling)
    assert m.resources["threads"] == tiling.threads  # of the one that multiplies


def test_the_split_is_suggested_for_the_gpu_that_is_there(host):
    m = run(kernels.stream_k, PROBLEM, "gpu", repeats=1)
    assert m.tiling == kernels.stream_k.choose(None, PROBLEM, "h200")


def test_provenance_tells_whose_operands_were_used(host):
    own = PROBLEM.operands(seed=7)
    told = [
        run(kernels.tiled, PROBLEM, "gpu", operands=own, repeats=1, **options).provenance["data"]
        for options in ({}, {"data": "normal, seed 7"})
    ]
    assert told == ["given by the caller", "normal, seed 7"]


def test_the_block_bounds_the_registers_unless_the_kernel_says_more(host):
    run(kernels.naive, PROBLEM, "gpu", repeats=1)
    asked = replace(kernels.naive, compile=lambda tiling: {"launch_bounds": (tiling.threads, 2)})
    run(asked, PROBLEM, "gpu", repeats=1)
    assert [options for _, options in logged(host, "compile")] == [
        {"launch_bounds": 256},
        {"launch_bounds": (256, 2)},
    ]


def test_what_a_kernel_freezes_of_a_problem_reaches_its_source(host):
    seen = []

    def build(tiling, layout="nn"):
        seen.append(layout)
        return kernels.naive.build(tiling)

    kernel = replace(
        kernels.naive,
        build=build,
        layouts=("nn", "nt"),
        variant=lambda problem, capability: {"layout": problem.layout + str(capability)},
    )
    square = Gemm(16, 16, 16)
    for problem in (square, square, replace(square, layout="nt")):
        run(kernel, problem, "gpu", repeats=1)
    assert seen == ["nn(9, 0)", "nt(9, 0)"]  # the second run found its function compiled


def test_dynamic_shared_memory_is_allowed_and_launched_with(host):
    m = run(dynamic(100_000), PROBLEM, "gpu", repeats=1)
    assert logged(host, "attribute") == [("max", 232_448 - STATIC, 7, 0)]
    assert logged(host, "occupancy") == [(256, 100_000)]
    assert {shared for *_, shared in logged(host, "launch")} == {100_000}
    assert m.resources["dynamic_shared_bytes"] == 100_000
    assert m.resources["predicted_blocks_per_sm"] == 2


@pytest.mark.parametrize("shared", [232_449, 232_448])  # the second only without static arrays
def test_more_shared_memory_than_the_device_gives_is_refused_with_the_limit(host, shared):
    with pytest.raises(ValueError, match="B of shared memory is too large.*at most 232448 B"):
        run(dynamic(shared), PROBLEM, "gpu")
    assert logged(host, "launch") == []


def test_a_driver_that_refuses_is_quoted(host):
    refusal = SimpleNamespace(name="CUDA_ERROR_INVALID_VALUE")
    sys.modules["cuda.bindings"].driver.cuKernelSetAttribute = lambda *args: (refusal,)
    with pytest.raises(ValueError, match=r"230400 B .*CUDA_ERROR_INVALID_VALUE.* 232448 B"):
        run(dynamic(60_000), PROBLEM, "gpu")


def test_a_block_that_is_too_large_is_refused_before_it_is_compiled(host):
    with pytest.raises(ValueError, match="4096 threads is too large"):
        run(kernels.tiled, PROBLEM, "gpu", tiling=Tiling.square(64))
    assert logged(host, "compile") == []


def test_a_wrong_kernel_does_not_pass(host):
    def build(tiling):
        def wrong(alpha, A, B, beta, C):
            i, j = cuda.grid(2)
            if i < C.shape[0] and j < C.shape[1]:
                C[i, j] = alpha * A[i, 0] * B[0, j]

        return wrong

    kernel = Kernel("wrong", "one term", Tiling((16, 16, 1)), build, kernels.naive.configure)
    assert not run(kernel, PROBLEM, "gpu", repeats=1).passed


def test_sensors_are_read_while_launches_are_queued(host, monkeypatch):
    def read():
        host.log.append(("read",))
        return sensors.Reading(1.98e9, 600.0, 4)

    monkeypatch.setattr(sensors, "sensors", lambda uuid: read)
    runner = gpu.Runner(kernels.naive, PROBLEM, Tiling((16, 16, 1)), gpu.Matrices(PROBLEM))
    runner.compute(PROBLEM, PROBLEM.operands())
    host.log.clear()
    told = runner.under_load(0.01)
    assert told == {"sm_clock_hz": "1980000000", "power_watts": "600.0", "throttle": "power cap"}
    assert [word for word, *_ in host.log] == ["launch", "launch", "read"] * 3


# ------------------------------------------------------------------------------------ on a GPU


@pytest.mark.gpu
def test_a_kernel_can_have_more_than_48_kb_of_shared_memory():
    from numpy import float32

    def build(tiling):
        def copying(alpha, A, B, beta, C):
            row = cuda.shared.array(0, float32)
            i = cuda.blockIdx.x
            for j in range(cuda.threadIdx.x, C.shape[1], cuda.blockDim.x):
                row[j] = alpha * A[i, 0] * B[0, j]
            cuda.syncthreads()
            for j in range(cuda.threadIdx.x, C.shape[1], cuda.blockDim.x):
                C[i, j] = row[j]

        return copying

    problem = Gemm(8, 16_000, 1)
    kernel = Kernel(
        "copying",
        "a row of C in shared memory",
        Tiling((1, 128, 1)),
        build,
        configure=lambda p, t: ((p.m, 1), (128, 1)),
        shared_bytes=lambda p, t: 4 * p.n,
        dynamic=True,
    )
    m = run(kernel, problem, "gpu", repeats=1)
    assert m.passed
    assert m.resources["dynamic_shared_bytes"] == 64_000
    assert m.resources["blocks_per_sm"] == m.resources["predicted_blocks_per_sm"]


@pytest.mark.gpu
def test_clock_power_and_throttling_are_told():
    told = run(kernels.tiled, Gemm(2048, 2048, 2048), "gpu").provenance
    assert float(told["sm_clock_hz"]) > 1e8
    assert float(told["power_watts"]) > 1
    assert told["throttle"] != "unknown"


@pytest.mark.gpu
@pytest.mark.slow
@pytest.mark.parametrize("kernel", [kernels.LADDER[-1], kernels.cublas], ids=lambda k: k.name)
def test_large_results_are_probed(kernel):
    m = run(kernel, Gemm(2048, 2304, 2051, alpha=0.3, beta=-0.7), "gpu", repeats=1)
    assert m.passed
    assert "exact probes of 20 bits" in m.provenance["check"]
