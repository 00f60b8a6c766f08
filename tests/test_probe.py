"""Probes: rates of the right size, and a GPU status for each way in which a GPU can be missing."""

import sys
import time
from types import SimpleNamespace

import numpy as np
import pytest

from gemmlab import probe
from gemmlab.probe import GpuStatus

FOUND = GpuStatus(True, "", "runs", "NVIDIA T4", "550.1", (12, 4), (7, 5), {})


@pytest.fixture
def status(monkeypatch):
    """`gpu_status` of a machine whose driver, packages and kernel answer as told."""

    def ask(found=FOUND, packages=None, trouble=""):
        packages = {"numba-cuda": "0.30.4"} if packages is None else packages
        monkeypatch.setattr(probe, "_driver", lambda: found)
        monkeypatch.setattr(probe, "package_version", packages.get)
        monkeypatch.setattr(probe, "try_kernel", lambda: trouble)
        return probe.gpu_status.__wrapped__()

    return ask


def test_gpu_works(status):
    assert status() == FOUND


def test_gpu_without_numba_cuda(status):
    s = status(packages={})
    assert (s.works, s.problem, s.name) == (False, "no-numba-cuda", "NVIDIA T4")
    assert s.reason == "there is an NVIDIA T4, but no numba-cuda"


def test_driver_too_old_for_the_wheels(status):
    wheels = {"numba-cuda": "0.30.4", "cuda-toolkit": "13.0.3.0"}
    s = status(packages=wheels)
    assert (s.works, s.problem) == (False, "driver-too-old")
    assert s.reason == "driver 550.1 runs CUDA up to 12.4, the CUDA packages are for 13.0"
    assert status(packages=wheels | {"cuda-toolkit": "12.9.1"}).works


def test_broken_installation_is_quoted(status):
    s = status(trouble="OSError: libnvvm.so: cannot open")
    assert (s.works, s.problem) == (False, "broken")
    assert s.reason == "numba-cuda 0.30.4 fails: OSError: libnvvm.so: cannot open"


def test_no_driver(monkeypatch):
    def missing(name):
        raise OSError(name)

    monkeypatch.setattr(probe.ctypes, "CDLL", missing)
    assert probe._driver() == GpuStatus(False, "no-driver", "no NVIDIA driver is installed")


def test_driver_that_finds_no_gpu(monkeypatch):
    def name_error(code, text):
        text._obj.value = b"CUDA_ERROR_NO_DEVICE"

    library = SimpleNamespace(
        cuDriverGetVersion=lambda number: 0, cuInit=lambda flags: 100, cuGetErrorName=name_error
    )
    monkeypatch.setattr(probe.ctypes, "CDLL", lambda name: library)
    s = probe._driver()
    assert (s.works, s.problem) == (False, "no-gpu")
    assert "CUDA_ERROR_NO_DEVICE to cuInit" in s.reason


def test_import_that_raises_prints_nothing(monkeypatch, capfd):
    def broken():
        print("noise")
        print("noise", file=sys.stderr)
        raise ImportError("libcudart.so\n  cannot be loaded")

    monkeypatch.setattr(probe, "numba_cuda", broken)
    assert probe.try_kernel() == "ImportError: libcudart.so cannot be loaded"
    assert capfd.readouterr() == ("", "")


def test_one_line_is_short():
    line = probe.one_line(ValueError("a\nb " * 200))
    assert len(line) == 200
    assert "\n" not in line
    assert line.startswith("ValueError: a b")


@pytest.mark.parametrize("wheels", [{}, {"nvidia-cuda-nvrtc-cu12": "12.8.93"}])
def test_cuda_wheels(monkeypatch, wheels):
    monkeypatch.setattr(probe, "package_version", wheels.get)
    assert probe.cuda_wheels() == ((12, 8) if wheels else None)


def test_processor():
    assert probe.cores() >= 1
    assert probe.processor_name().strip()


def test_flop_rate_refuses_other_dtypes():
    with pytest.raises(ValueError, match=r"'float16'.*float32, float64"):
        probe.flop_rate("float16")


def test_numpy_stands_in_for_numba(monkeypatch):
    def missing(dtype):
        raise ImportError("numba")

    monkeypatch.setattr(probe, "_fma_chains", missing)
    rate = probe.flop_rate("float32")
    assert rate.value > 1e8
    assert "Numba is not usable" in rate.source


def test_peak_is_above_numpy_and_measured_quickly():
    pytest.importorskip("numba")
    start = time.perf_counter()
    single, double = probe.flop_rate("float32"), probe.flop_rate("float64")
    moved = probe.bandwidth()
    assert time.perf_counter() - start < 15  # 3 s on an idle machine
    product = probe._matmul_rate("float32")
    assert product.value < 1.1 * single.value  # 10 % for other programs on the machine
    assert 1.5 < single.value / double.value < 2.5  # a float32 register holds twice the elements
    assert single.value > 1e9
    assert moved.value > 1e8
    for rate in (single, double, moved):
        assert rate.source.startswith("measured here")


def test_fma_chains_count_their_flop():
    pytest.importorskip("numba")
    run, flop = probe._fma_chains(np.dtype(np.float64))
    assert flop % 4 == 0
    # Every chain tends to the fixed point of x = x / 2 + 1, so the first lanes add up to 2 each.
    chains = run(200) / 2
    assert chains == int(chains)
    assert flop % (2 * int(chains)) == 0
