"""A GPU status for each way in which a GPU can be missing."""

import sys
from enum import IntEnum
from types import SimpleNamespace

import pytest

from gemmlab.here import driver
from gemmlab.here.driver import GpuStatus

FOUND = GpuStatus(True, "", "runs", "NVIDIA T4", "550.1", (12, 4), (7, 5), {})


@pytest.fixture
def status(monkeypatch):
    """`gpu_status` of a machine whose driver, packages and kernel answer as told."""

    def ask(found=FOUND, packages=None, trouble=""):
        packages = {"numba-cuda": "0.30.4"} if packages is None else packages
        monkeypatch.setattr(driver, "_driver", lambda: found)
        monkeypatch.setattr(driver, "package_version", packages.get)
        monkeypatch.setattr(driver, "try_kernel", lambda package: trouble)
        return driver.gpu_status.__wrapped__()

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
    s = status(packages={"numba-cuda-mlir": "0.6.0"}, trouble="OSError: libnvvm.so")
    assert s.reason == "numba-cuda-mlir 0.6.0 fails: OSError: libnvvm.so"


def test_gpu_with_numba_cuda_mlir_alone(status):
    assert status(packages={"numba-cuda-mlir": "0.6.0"}) == FOUND


def test_no_driver(monkeypatch):
    def missing(name):
        raise OSError(name)

    monkeypatch.setattr(driver.ctypes, "CDLL", missing)
    assert driver._driver() == GpuStatus(False, "no-driver", "no NVIDIA driver is installed")


def test_driver_that_finds_no_gpu(monkeypatch):
    def name_error(code, text):
        text._obj.value = b"CUDA_ERROR_NO_DEVICE"

    library = SimpleNamespace(
        cuDriverGetVersion=lambda number: 0, cuInit=lambda flags: 100, cuGetErrorName=name_error
    )
    monkeypatch.setattr(driver.ctypes, "CDLL", lambda name: library)
    s = driver._driver()
    assert (s.works, s.problem) == (False, "no-gpu")
    assert "CUDA_ERROR_NO_DEVICE to cuInit" in s.reason


def test_import_that_raises_prints_nothing(monkeypatch, capfd):
    def broken():
        print("noise")
        print("noise", file=sys.stderr)
        raise ImportError("libcudart.so\n  cannot be loaded")

    monkeypatch.setattr(driver, "numba_cuda", broken)
    assert driver.try_kernel() == "ImportError: libcudart.so cannot be loaded"
    assert capfd.readouterr() == ("", "")


def test_one_line_is_short():
    line = driver.one_line(ValueError("a\nb " * 200))
    assert len(line) == 200
    assert "\n" not in line
    assert line.startswith("ValueError: a b")


@pytest.mark.parametrize("wheels", [{}, {"nvidia-cuda-nvrtc-cu12": "12.8.93"}])
def test_cuda_wheels(monkeypatch, wheels):
    monkeypatch.setattr(driver, "package_version", wheels.get)
    assert driver.cuda_wheels() == ((12, 8) if wheels else None)


class Status(IntEnum):
    CUDA_SUCCESS = 0
    CUDA_ERROR_NO_DEVICE = 100


def test_the_drivers_answer_is_what_it_gave_or_its_word_for_what_failed():
    assert driver.answered((Status.CUDA_SUCCESS, 7)) == 7
    assert driver.answered((Status.CUDA_SUCCESS,)) is None
    with pytest.raises(RuntimeError, match="^the driver says CUDA_ERROR_NO_DEVICE$"):
        driver.answered((Status.CUDA_ERROR_NO_DEVICE, 7))
