"""What this machine has: FLOP rate and memory bandwidth of its CPU, measured; its GPU, asked for.

Everything here is a question to the machine; `gemmlab.device` makes a `Device` of the answers.
Numba is imported only when a rate is measured, and NumPy stands in where it is missing.
"""

from __future__ import annotations

import contextlib
import ctypes
import io
import os
import platform
import re
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

import numpy as np

# ------------------------------------------------------------------------------------- the CPU


class Rate(NamedTuple):
    """A measured rate, in SI units, and how it was measured."""

    value: float
    source: str


def cores() -> int:
    """Processors that this process may use (hardware threads count, where there are any)."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def processor_name() -> str:
    """The processor's name as the operating system gives it."""
    with contextlib.suppress(Exception):
        if sys.platform == "win32":
            import winreg

            key = r"HARDWARE\DESCRIPTION\System\CentralProcessor\0"
            with winreg.OpenKey(winreg.HKEY_LOCAL_MACHINE, key) as entry:
                return " ".join(winreg.QueryValueEx(entry, "ProcessorNameString")[0].split())
        if sys.platform == "darwin":
            ask = ["sysctl", "-n", "machdep.cpu.brand_string"]
            return subprocess.run(ask, capture_output=True, text=True, check=True).stdout.strip()
        found = re.search(r"model name\s*:\s*(.+)", Path("/proc/cpuinfo").read_text("utf-8"))
        if found:
            return " ".join(found[1].split())
    return platform.processor() or platform.machine() or "unknown processor"


def flop_rate(dtype: str = "float32") -> Rate:
    """Peak arithmetic rate of all cores together, one FMA being 2 FLOP [FLOP/s].

    With Numba: independent FMA chains in vector registers, all cores at once, each in pieces of a
    millisecond; the lower quartile of each core's times leaves out the pieces that other programs
    interrupted. Without: NumPy's matrix product, which stays below the peak.
    Raises ``ValueError`` for a dtype other than "float32" and "float64".
    """
    if dtype not in ("float32", "float64"):
        raise ValueError(f"cannot measure dtype {dtype!r}; can measure float32, float64")
    try:
        chains, flops = _fma_chains(np.dtype(dtype))
    except Exception:  # not installed, or unable to compile here
        return _matmul_rate(dtype)
    count = int(1e-3 / _best_seconds(lambda: chains(100_000)) * 100_000)
    together = threading.Barrier(cores())

    def piece_seconds(_: int) -> float:
        together.wait()
        times = [time.perf_counter()]
        while times[-1] < times[0] + 0.2:
            chains(count)
            times.append(time.perf_counter())
        return float(np.quantile(np.diff(times), 0.25))

    with ThreadPoolExecutor(cores()) as pool:
        rate = sum(count * flops / seconds for seconds in pool.map(piece_seconds, range(cores())))
    how = "FMA chains in vector registers, compiled by Numba"
    return Rate(rate, f"measured here: {how}, {cores()} cores")


def _matmul_rate(dtype: str, n: int = 1024) -> Rate:
    a = np.random.default_rng(0).standard_normal((n, n)).astype(dtype)
    product = np.empty_like(a)
    seconds = _best_seconds(lambda: np.matmul(a, a, out=product))
    how = f"NumPy matrix product, n = {n}, since Numba is not usable; the peak is higher"
    return Rate(2 * n**3 / seconds, f"measured here: {how}")


def _fma_chains(dtype: np.dtype) -> tuple[Callable[[int], float], int]:
    """A function that makes ``count`` steps of independent FMA chains, and the FLOP of one step.

    The vectors are as wide as the processor's registers and written out as such: left to itself
    LLVM halves them on many AVX-512 processors. There are enough chains to hide the latency of an
    FMA (4 cycles on 2 to 4 units) and few enough to stay in registers.
    """
    from llvmlite import binding, ir
    from numba import njit, types
    from numba.core import cgutils
    from numba.extending import intrinsic

    features = binding.get_host_cpu_features()
    wide = bool(features.get("avx512f"))
    register_bytes = 64 if wide else 32 if features.get("avx") else 16
    n_registers = 32 if wide or platform.machine().lower() in ("arm64", "aarch64") else 16
    n_chains = n_registers * 3 // 4
    lanes = register_bytes // dtype.itemsize
    scalar = ir.FloatType() if dtype == np.float32 else ir.DoubleType()
    vector = ir.VectorType(scalar, lanes)

    def splat(value: float) -> ir.Constant:
        return ir.Constant(vector, [value] * lanes)

    @intrinsic
    def chains(typing_context, count):
        def emit(context, builder, signature, arguments):
            form = ir.FunctionType(vector, [vector] * 3)
            name = f"llvm.fmuladd.v{lanes}f{8 * dtype.itemsize}"
            fma = cgutils.get_or_insert_function(builder.module, form, name)
            # Different starts, or the compiler would see that all chains are one.
            sums = [cgutils.alloca_once_value(builder, splat(i)) for i in range(n_chains)]
            with cgutils.for_range(builder, arguments[0]):
                for x in sums:
                    builder.store(builder.call(fma, [builder.load(x), splat(0.5), splat(1.0)]), x)
            total = builder.load(sums[0])
            for x in sums[1:]:
                total = builder.fadd(total, builder.load(x))
            first = builder.extract_element(total, ir.Constant(ir.IntType(32), 0))
            return first if dtype == np.float64 else builder.fpext(first, ir.DoubleType())

        return types.float64(types.int64), emit

    @njit("float64(int64)", nogil=True)
    def run(count):
        return chains(count)

    return run, 2 * n_chains * lanes


def bandwidth() -> Rate:
    """Memory bandwidth of all cores together [B/s]: bytes that the program reads and writes.

    The better of reading an array (``max``) and adding one to another in place (2 reads and 1
    write), over arrays of several times the last-level cache. Best of several runs.
    """
    n = _bandwidth_bytes() // 8 // cores() * cores()
    a, b = np.full(n, 1.0), np.full(n, 2.0)
    parts = list(zip(np.split(a, cores()), np.split(b, cores()), strict=True))
    with ThreadPoolExecutor(cores()) as pool:
        read = _best_seconds(lambda: list(pool.map(lambda p: p[0].max(), parts)))
        add = _best_seconds(lambda: list(pool.map(lambda p: np.add(*p, out=p[1]), parts)))
    how, rate = max(
        ("reading (max)", a.nbytes / read),
        ("adding in place (2 reads, 1 write)", 3 * a.nbytes / add),
        key=lambda measured: measured[1],
    )
    size = f"arrays of {a.nbytes / 1e6:.0f} MB, {cores()} cores"
    return Rate(rate, f"measured here: {how} with NumPy, {size}; bytes read + written")


def _bandwidth_bytes() -> int:
    """Bytes of an array that caches cannot hold: 4 times the largest cache, 128 MB if unknown."""
    sizes = [0]
    for path in Path("/sys/devices/system/cpu/cpu0/cache").glob("index*/size"):
        with contextlib.suppress(OSError, ValueError):
            sizes.append(int(path.read_text("ascii").strip().removesuffix("K")) * 1024)
    return min(max(4 * max(sizes), 128_000_000), 512_000_000)


def _best_seconds(run: Callable[[], object], budget: float = 0.1) -> float:
    """The shortest of at least 3 and at most 15 runs, within the budget, after a warm-up [s]."""
    run()
    times = [time.perf_counter()]
    while len(times) <= 3 or (len(times) <= 15 and times[-1] < times[0] + budget):
        run()
        times.append(time.perf_counter())
    return float(np.diff(times).min())


# ------------------------------------------------------------------------------------- the GPU


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

    package, wheels = package_version("numba-cuda"), cuda_wheels()
    if package is None:
        return unusable("no-numba-cuda", f"there is an {found.name}, but no numba-cuda")
    if wheels is not None and found.cuda[0] < wheels[0]:
        has, needs = (f"{major}.{minor}" for major, minor in (found.cuda, wheels))
        return unusable(
            "driver-too-old",
            f"driver {found.driver or ''} runs CUDA up to {has}, the CUDA packages are for {needs}",
        )
    trouble = try_kernel()
    if trouble:
        return unusable("broken", f"numba-cuda {package} fails: {trouble}")
    return found


def _driver() -> GpuStatus:
    """The first GPU as its driver describes it, or why there is none."""
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
    """The version of the NVIDIA driver, as in "580.65.06", from its management library."""
    with contextlib.suppress(Exception):
        nvml = ctypes.CDLL("nvml.dll" if sys.platform == "win32" else "libnvidia-ml.so.1")
        text = ctypes.create_string_buffer(96)
        if nvml.nvmlInit_v2() == 0 and nvml.nvmlSystemGetDriverVersion(text, 96) == 0:
            return text.value.decode()
    return None


def package_version(name: str) -> str | None:
    """The installed version of a Python package, None if it is not installed."""
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
    from numba import cuda

    return cuda


def try_kernel() -> str:
    """Compile and run one kernel with Numba: "" if it ran, else the error in one line."""
    try:
        with _quiet():
            cuda = numba_cuda()

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
    """An exception in one line: its type and message, at most ``width`` characters."""
    text = " ".join(f"{type(error).__name__}: {error}".split())
    return text if len(text) <= width else text[: width - 3] + "..."
