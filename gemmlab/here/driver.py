"""The GPU of this machine, and NVIDIA's tools for compiled code, are asked what they are.

The driver says which GPU it is, and whether kernels run on it. `ptxas` comes with the wheel
nvidia-cuda-nvcc, `nvdisasm` with nvidia-cuda-nvdisasm; a CUDA Toolkit has both. A record says by
which versions it was made: `stamp` tells them for all records alike, and each adds what it alone
knows, such as the data or the hash of a kernel's source.
"""

import contextlib
import ctypes
import io
import platform
import re
import shutil
import subprocess
import sys
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np


@dataclass(frozen=True)
class GpuStatus:
    """Whether Numba can run kernels on a GPU here, and if not, why not."""

    works: bool
    problem: str  # "" no-driver no-gpu no-numba-cuda driver-too-old broken
    reason: str  # one line
    name: str | None = None
    driver: str | None = None  # version of the NVIDIA driver
    cuda: tuple[int, int] | None = None  # the newest CUDA that this driver can run
    compute_capability: tuple[int, int] | None = None
    attributes: Mapping[str, int] = field(default_factory=dict, repr=False, hash=False)


def answered(answer: tuple) -> Any:
    """What a call of the driver gave, by cuda.bindings; RuntimeError with its word for an error."""
    status, *found = answer
    if int(status):
        raise RuntimeError(f"the driver says {status.name}")
    return found[0] if found else None


LAUNCHING = "numba-cuda", "numba-cuda-mlir"  # the first of these that is installed launches

# CUdevice_attribute, CUDA Driver API, section Data types used by CUDA driver.
_ATTRIBUTES = {
    "threads_per_block": 1,
    "shared_bytes_per_block_default": 8,
    "warp_size": 10,
    "clock_khz": 13,
    "sms": 16,
    "memory_clock_khz": 36,
    "memory_bus_bits": 37,
    "l2_bytes": 38,
    "threads_per_sm": 39,
    "major": 75,
    "minor": 76,
    "shared_bytes_per_sm": 81,
    "registers_per_sm": 82,
    "shared_bytes_per_block": 97,
    "blocks_per_sm": 106,
}


@cache
def gpu_status() -> GpuStatus:
    """Ask the driver, then run one kernel; says precisely what is missing. Never raises or prints.

    The driver is asked directly, so that its absence is told from that of a Python package.
    """
    found = _driver()
    if found.problem:
        return found

    def unusable(problem: str, reason: str) -> GpuStatus:
        return replace(found, works=False, problem=problem, reason=reason)

    name = next(filter(package_version, LAUNCHING), None)
    if name is None:
        return unusable("no-numba-cuda", f"there is an {found.name}, but no {LAUNCHING[0]}")
    wheels = cuda_wheels()
    if wheels is not None and found.cuda[0] < wheels[0]:
        has, needs = (f"{major}.{minor}" for major, minor in (found.cuda, wheels))
        return unusable(
            "driver-too-old",
            f"driver {found.driver or ''} runs CUDA up to {has}, the CUDA packages are for {needs}",
        )
    trouble = try_kernel(name)
    if trouble:
        return unusable("broken", f"{name} {package_version(name)} fails: {trouble}")
    return found


def _driver() -> GpuStatus:
    """Return the first GPU as its driver describes it, or why there is none."""
    try:
        cuda = ctypes.CDLL("nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1")
    except OSError:
        return GpuStatus(False, "no-driver", "no NVIDIA driver is installed")
    driver = _driver_version()
    try:
        return _ask(cuda, driver)
    except Exception as error:
        reason = f"the NVIDIA driver finds no usable GPU: {one_line(error)}"
        return GpuStatus(False, "no-gpu", reason, driver=driver)


def _ask(cuda: ctypes.CDLL, driver: str | None) -> GpuStatus:
    def call(function: str, *arguments: object) -> None:
        status = getattr(cuda, function)(*arguments)
        if status:
            text = ctypes.c_char_p()
            cuda.cuGetErrorName(status, ctypes.byref(text))
            raise OSError(f"{(text.value or b'').decode() or status} to {function}")

    number, handle, size = ctypes.c_int(), ctypes.c_int(), ctypes.c_size_t()
    call("cuDriverGetVersion", ctypes.byref(number))
    version = (number.value // 1000, number.value % 1000 // 10)
    call("cuInit", 0)
    call("cuDeviceGet", ctypes.byref(handle), 0)
    name = ctypes.create_string_buffer(256)
    call("cuDeviceGetName", name, 256, handle)
    call("cuDeviceTotalMem_v2", ctypes.byref(size), handle)
    values = {"dram_bytes": size.value}
    for key, attribute in _ATTRIBUTES.items():
        call("cuDeviceGetAttribute", ctypes.byref(number), attribute, handle)
        values[key] = number.value
    capability = (values.pop("major"), values.pop("minor"))
    title = name.value.decode()
    return GpuStatus(True, "", f"{title} runs kernels", title, driver, version, capability, values)


def _driver_version() -> str | None:
    """Return the version of the NVIDIA driver, as in "580.65.06", from its management library."""
    with contextlib.suppress(Exception):
        nvml = ctypes.CDLL("nvml.dll" if sys.platform == "win32" else "libnvidia-ml.so.1")
        text = ctypes.create_string_buffer(96)
        if nvml.nvmlInit_v2() == 0 and nvml.nvmlSystemGetDriverVersion(text, 96) == 0:
            return text.value.decode()
    return None


def package_version(name: str) -> str | None:
    """Return the installed version of a Python package, None if it is not installed."""
    from importlib import metadata  # a tenth of gemmlab's import time, so only when asked

    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def cuda_wheels() -> tuple[int, int] | None:
    """The CUDA version of the installed CUDA wheels, as (major, minor); None without wheels."""
    for name in ("cuda-toolkit", "nvidia-cuda-nvrtc", "nvidia-cuda-nvrtc-cu12"):
        version = re.match(r"(\d+)\.(\d+)", package_version(name) or "")
        if version:
            return int(version[1]), int(version[2])
    return None


def numba_cuda() -> ModuleType:
    """The module ``numba.cuda``, importable with a NumPy that no longer has ``row_stack`` too."""
    if not hasattr(np, "row_stack"):  # NumPy 2.5 dropped this alias, numba-cuda 0.30 refers to it
        np.row_stack = np.vstack  # noqa: NPY201
    from numba import config, cuda

    config.CUDA_LOW_OCCUPANCY_WARNINGS = False  # small grids are part of what the course shows
    return cuda


def try_kernel(package: str = LAUNCHING[0]) -> str:
    """Compile and run one kernel with a package: "" if it ran, else the error in one line."""
    try:
        with _quiet():
            if package == LAUNCHING[0]:
                cuda = numba_cuda()
            else:
                from numba_cuda_mlir import cuda

            @cuda.jit
            def write_one(out):
                out[0] = 1.0

            out = cuda.to_device(np.zeros(1, np.float32))
            write_one[1, 1](out)
            answer = float(out.copy_to_host()[0])
    except Exception as error:
        return one_line(error)
    return "" if answer == 1.0 else f"a kernel that writes 1.0 wrote {answer}"


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    sink = io.StringIO()
    with warnings.catch_warnings(), contextlib.redirect_stdout(sink):
        warnings.simplefilter("ignore")
        with contextlib.redirect_stderr(sink):
            yield


def one_line(error: BaseException, width: int = 200) -> str:
    """Return an exception in one line: its type and message, at most ``width`` characters."""
    text = " ".join(f"{type(error).__name__}: {error}".split())
    return text if len(text) <= width else text[: width - 3] + "..."


WHEELS = {"ptxas": "nvidia-cuda-nvcc", "nvdisasm": "nvidia-cuda-nvdisasm"}
NOT_INSTALLED = "not installed"
UNKNOWN = "unknown"  # of what the driver does not report


@cache
def tool(name: str) -> Path:
    """Find "ptxas" or "nvdisasm"; RuntimeError that says how to get it where there is none."""
    found = None
    try:
        from cuda.pathfinder import find_nvidia_binary_utility
    except ImportError:
        found = shutil.which(name)
    else:
        found = find_nvidia_binary_utility(name) or shutil.which(name)
    if found is None:
        raise RuntimeError(
            f"{name} is needed to read compiled code, and there is none: pip install {WHEELS[name]}"
        )
    return Path(found)


def tool_version(name: str) -> str:
    """Return the version of "ptxas" or "nvdisasm", "13.0.88" say."""
    return re.search(r"\bV([\d.]+\d)", run(name, "--version").stdout)[1]


def run(name: str, *arguments: Any) -> subprocess.CompletedProcess[str]:
    """Run a tool and return what it says; RuntimeError with its words where it refuses."""
    done = subprocess.run([tool(name), *arguments], capture_output=True, encoding="utf-8")
    if done.returncode:
        raise RuntimeError(f"{name} refused the code: {(done.stderr or done.stdout).strip()}")
    return done


def stamp(*names: str) -> dict[str, str]:
    """Tell the version of each name, on this machine and now.

    names : "date" (ISO 8601 in UTC), "driver", "python", "ptxas" and "nvdisasm", or a Python
        package, with underscores, as in "numba_cuda"
    Raises RuntimeError that says how to get a tool that is missing.

    >>> sorted(stamp("numpy", "python"))
    ['numpy', 'python']
    """
    return {name: _told(name) for name in names}


def version(package: str) -> str:
    """Return the version of an installed package, or "not installed"."""
    return package_version(package) or NOT_INSTALLED


def _told(name: str) -> str:
    if name == "date":
        return datetime.now(UTC).isoformat(timespec="seconds")
    if name == "driver":
        return gpu_status().driver or UNKNOWN
    if name == "python":
        return platform.python_version()
    if name in WHEELS:
        return tool_version(name)
    return version(name.replace("_", "-"))
