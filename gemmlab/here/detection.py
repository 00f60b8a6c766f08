"""The machine this Python runs on is a `Device`: its GPU if one works, else its CPU.

A CPU's FLOP rate and memory bandwidth are measured. Numba is imported only when a rate is measured,
and NumPy stands in where it is missing.
"""

import contextlib
import os
import platform
import re
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache, partial
from pathlib import Path
from typing import NamedTuple

import numpy as np

from gemmlab.device import FMA_SOURCE, UNITS, Device, Source, device, names, of_capability
from gemmlab.here.driver import GpuStatus, gpu_status

SINCE_VOLTA = (  # what is the same on all GPUs
    *("registers_per_thread", "shared_bytes_per_cycle_per_sm", "issue_per_cycle_per_sm"),
    "fma_latency_cycles",
)


@cache
def detect() -> Device:
    """Return the machine this Python runs on: its GPU if one works, else its CPU.

    A GPU that has a file is described by it; another one by what its driver says. Never raises.
    """
    status = gpu_status()
    return _from_driver(status) if status.works else host()


@cache
def host() -> Device:
    """The CPU of this machine, its FLOP rates and memory bandwidth measured once (about 2 s)."""
    peak = {dtype: flop_rate(dtype) for dtype in ("float64", "float32")}
    memory = bandwidth()
    origin = {f"peak.{dtype}": Source("FLOP/s", rate.source) for dtype, rate in peak.items()}
    origin["dram_bandwidth"] = Source("B/s", memory.source)
    origin["sms"] = Source("SM", "cores that this process may use, asked of the operating system")
    return Device(
        name="cpu",
        title=processor_name(),
        kind="cpu",
        sms=cores(),
        peak={dtype: rate.value for dtype, rate in peak.items()},
        dram_bandwidth=memory.value,
        sources=origin,
    )


def _from_driver(status: GpuStatus) -> Device:
    """A GPU by its own file if there is one, else by what its driver says."""
    had = status.attributes
    for name in names():
        known = device(name)
        # The same name with fewer SMs is a slice of the GPU (MIG) or a mobile part.
        if status.name in known.match and had["sms"] == known.sms:
            return known
    clock = had["clock_khz"] * 1e3
    said = f"driver {status.driver}, cuDeviceGetAttribute"
    known = of_capability(status.compute_capability)
    flop = {dtype: 2 * fma for dtype, fma in known.fma_per_cycle.items()} if known else {}
    limits = {key: had[key] for key in UNITS if key in had}
    bandwidth = 2 * had["memory_clock_khz"] * 1e3 * had["memory_bus_bits"] / 8
    origin = {key: Source(UNITS[key], said) for key in limits}
    origin["clock"] = Source("Hz", said)
    for key in SINCE_VOLTA:
        h200 = device("h200")  # no attribute tells these
        limits[key], origin[key] = getattr(h200, key), h200.sources[key]
    origin["dram_bandwidth"] = Source("B/s", f"{said}: 2 x memory clock x bus width")
    for dtype in flop:
        origin[f"flop_per_cycle_per_sm.{dtype}"] = Source("FLOP/cycle/SM", FMA_SOURCE)
        origin[f"peak.{dtype}"] = Source("FLOP/s", "SMs x clock x FLOP/cycle/SM")
    return Device(
        name=re.sub(r"[^a-z0-9]+", "_", status.name.lower()).strip("_"),
        title=status.name,
        kind="gpu",
        compute_capability=status.compute_capability,
        clock=clock,
        flop_per_cycle_per_sm=flop,
        peak={dtype: had["sms"] * clock * rate for dtype, rate in flop.items()},
        dram_bandwidth=bandwidth,
        sources=origin,
        **limits,
    )


class Rate(NamedTuple):
    """A measured rate, in SI units, and how it was measured."""

    value: float
    source: str


# Python in the page of a browser starts no threads.
THREADS = sys.platform != "emscripten"


def cores() -> int:
    """Processors that this process may use (hardware threads count, where there are any)."""
    if not THREADS:
        return 1
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def processor_name() -> str:
    """Return the processor's name as the operating system gives it."""
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


def _matmul_rate(dtype: str) -> Rate:
    n, seconds = 64, 0.0
    while n < 1024 and seconds < 0.01:  # as large as is quick: NumPy has no BLAS in a browser
        n *= 2
        a = np.random.default_rng(0).standard_normal((n, n)).astype(dtype)
        seconds = _best_seconds(partial(np.matmul, a, a, out=np.empty_like(a)))
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
        on_each = pool.map if cores() > 1 else map
        read = _best_seconds(lambda: list(on_each(lambda p: p[0].max(), parts)))
        add = _best_seconds(lambda: list(on_each(lambda p: np.add(*p, out=p[1]), parts)))
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
