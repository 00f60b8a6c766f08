"""Microbenchmarks on this machine's GPU, by the CUDA driver alone."""

from __future__ import annotations

import ctypes
import uuid
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from benchmarks.microbenchmarks import LAUNCHES, LOOPS, microbenchmark
from benchmarks.microbenchmarks.asynchronous import HOPPER
from benchmarks.microbenchmarks.cold import UPDATE
from benchmarks.microbenchmarks.launch import DRAM_BYTES, Launch
from benchmarks.microbenchmarks.loop import CLOCKS, ENTRY, WARP, Loop, sha256
from gemmlab.compiled.sass.compiling import machine_code
from gemmlab.device import Device, name_of
from gemmlab.here.compilers import SPECIFIC, assemble
from gemmlab.here.driver import UNKNOWN, gpu_status, one_line, stamp
from gemmlab.measure.backends import sensors
from gemmlab.measure.microbenchmarks import DIGITS, LaunchTiming, LoopTiming, Results

SAMPLES = 5  # launches that are kept, after one that is not
BUSY = microbenchmark("ffma_rate")
WARM_UP_LAUNCHES = 60  # of all SMs, about a second, so that the clock rises
AHEAD = 4  # fillings of `DRAM_BYTES` that keep the GPU busy until all launches are queued


def measure(
    device: Device,
    loops: Iterable[Loop] = LOOPS,
    launches: Iterable[Launch] = LAUNCHES,
    say: Callable[[str], None] = print,
) -> tuple[Results, list[str]]:
    """Time microbenchmarks on the GPU; the results, and what failed or cannot run there.

    `say` is told of each failure. Raises RuntimeError where the driver gives no GPU.
    """
    loops, launches = tuple(loops), tuple(launches)
    failures: list[str] = []
    rows: dict[str, list] = {"loops": [], "launches": []}
    with Gpu(loops, launches) as gpu, ThreadPoolExecutor() as pool:
        code = {one.name: pool.submit(assembled, one, gpu) for one in (*loops, *launches)}
        readings = gpu.warm_up(assembled(BUSY, gpu))
        work = [("loops", gpu.time_loop, one) for one in loops]
        work += [("launches", gpu.time_launch, one) for one in launches]
        for kind, time, one in work:
            try:
                rows[kind] += time(one, code[one.name].result())
            except (RuntimeError, ValueError) as error:
                failures.append(f"{one.name}: {one_line(error)}")
                say(f"failed: {failures[-1]}")
                if not gpu.usable():
                    failures.append(f"all that follow {one.name}: the GPU's context is lost")
                    break
    return Results(provenance(device, readings), **{k: tuple(v) for k, v in rows.items()}), failures


def assembled(one: Loop | Launch, gpu: Gpu) -> bytes:
    """The cubin of a kernel, by the ptxas whose code a simulated SM gets, too.

    Raises ValueError for a GPU that lacks its instructions, RuntimeError where there is no ptxas.
    """
    if one.requires > gpu.capability:
        needs, has = (".".join(map(str, cc)) for cc in (one.requires, gpu.capability))
        raise ValueError(f"needs compute capability {needs}, this GPU has {has}")
    text = one.ptx(gpu.target)
    if gpu.capability != HOPPER and any(name in text for name in SPECIFIC):
        raise ValueError(f"needs instructions of sm_90a, this GPU is {gpu.target}")
    return assemble(text, gpu.target)[0]


def provenance(device: Device, readings: Iterable[sensors.Reading]) -> dict[str, str]:
    """With what, where and when microbenchmarks are timed."""
    return {
        "device": device.name,
        "device_title": device.title,
        **stamp("date", "driver"),
        "cuda": ".".join(map(str, gpu_status().cuda or ())) or UNKNOWN,
        **stamp("cuda_bindings", "ptxas", "python"),
        **sensors.summary(readings),
        "how": f"{SAMPLES} launches each, after one that is not kept",
    }


class Gpu:
    """The first GPU, with memory for all that is to be timed."""

    def __init__(self, loops: Iterable[Loop], launches: Iterable[Launch]) -> None:
        from cuda.bindings import driver

        self.driver = driver
        self.call("cuInit", 0)
        self.device = self.call("cuDeviceGet", 0)
        self.context = self.call("cuDevicePrimaryCtxRetain", self.device)
        self.call("cuCtxSetCurrent", self.context)
        attribute = driver.CUdevice_attribute
        ask = lambda what: self.call("cuDeviceGetAttribute", what, self.device)  # noqa: E731
        self.sms = ask(attribute.CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)
        self.capability = (
            ask(attribute.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR),
            ask(attribute.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR),
        )
        self.target = name_of(self.capability)
        self.data_bytes = max([o.data_bytes for o in loops] + [o.in_bytes for o in launches])
        out_bytes = max([DRAM_BYTES, *(o.out_bytes for o in launches)])
        self.data = self.call("cuMemAlloc", self.data_bytes)
        self.out = self.call("cuMemAlloc", out_bytes)
        self.events = [self.call("cuEventCreate", 0) for _ in range(2)]

    def __enter__(self) -> Gpu:
        return self

    def __exit__(self, *error: object) -> None:
        for event in self.events:
            self.driver.cuEventDestroy(event)
        for memory in (self.data, self.out):
            self.driver.cuMemFree(memory)
        self.driver.cuDevicePrimaryCtxRelease(self.device)

    def call(self, function: str, *arguments: Any) -> Any:
        """What a function of the driver returns; RuntimeError where it fails."""
        status, *answer = getattr(self.driver, function)(*arguments)
        if status != self.driver.CUresult.CUDA_SUCCESS:
            raise RuntimeError(f"{function} of the CUDA driver: {status.name}")
        return answer[0] if len(answer) == 1 else tuple(answer)

    def usable(self) -> bool:
        """Whether no launch has left the context unusable."""
        (status,) = self.driver.cuCtxSynchronize()
        return status == self.driver.CUresult.CUDA_SUCCESS

    def loaded(self, one: Loop | Launch, cubin: bytes) -> tuple[Any, Any, dict[str, str]]:
        """A kernel, the module that it is in, and the hashes of its text and of its code."""
        module = self.call("cuModuleLoadData", cubin)
        function = self.call("cuModuleGetFunction", module, ENTRY.encode())
        hashes = {
            "ptx_sha256": sha256(one.ptx(self.target))[:DIGITS],
            "code_sha256": sha256(machine_code(cubin))[:DIGITS],
        }
        return function, module, hashes

    def launch(self, function: Any, blocks: int, threads: int) -> None:
        """Queue a kernel."""
        arguments = ((int(self.out), int(self.data)), (ctypes.c_uint64, ctypes.c_uint64))
        self.call("cuLaunchKernel", function, blocks, 1, 1, threads, 1, 1, 0, 0, arguments, 0)

    def warm_up(self, cubin: bytes) -> list[sensors.Reading]:
        """Keep all SMs busy for a while; what the sensors said of it."""
        address = self.call("cuDeviceGetUuid", self.device)
        read = sensors.sensors(f"GPU-{uuid.UUID(bytes=bytes(address.bytes))}")
        self.fill(BUSY)
        function, module, _ = self.loaded(BUSY, cubin)
        readings = []
        for _ in range(WARM_UP_LAUNCHES):
            for _ in range(50):
                self.launch(function, self.sms, WARP * max(BUSY.warps))
            readings += [read()] if read else []
            self.call("cuCtxSynchronize")
        self.call("cuModuleUnload", module)
        return readings[WARM_UP_LAUNCHES // 2 :]

    def fill(self, loop: Loop) -> None:
        """Put into memory what a loop finds there."""
        memory = loop.memory(int(self.data))
        self.call("cuMemsetD8", self.data, 0, loop.data_bytes)
        self.call("cuMemcpyHtoD", self.data, memory.ctypes.data, memory.nbytes)

    def time_loop(self, loop: Loop, cubin: bytes) -> list[LoopTiming]:
        """A loop's rows."""
        function, module, hashes = self.loaded(loop, cubin)
        blocks = loop.blocks_per_sm * max(1, round(loop.of_sms * self.sms))
        rows = []
        for warps in loop.warps:
            self.fill(loop)
            clocks = np.empty((blocks, warps), CLOCKS)
            samples = []
            for _ in range(1 + SAMPLES):
                if loop.cold:
                    self.call("cuMemsetD8", self.out, 0, DRAM_BYTES)
                self.launch(function, blocks, WARP * warps)
                self.call("cuCtxSynchronize")
                self.call("cuMemcpyDtoH", clocks.ctypes.data, self.out, clocks.nbytes)
                ns = int(clocks["end_ns"].max() - clocks["start_ns"].min())
                samples.append((tuple(loop.observe(clocks)), ns))
            cycles, ns = zip(*samples[1:], strict=True)
            count = loop.count * loop.turns
            rows.append(LoopTiming(loop.name, warps, blocks, count, cycles, ns, **hashes))
        self.call("cuModuleUnload", module)
        return rows

    def time_launch(self, one: Launch, cubin: bytes) -> list[LaunchTiming]:
        """A launch's rows."""
        function, module, hashes = self.loaded(one, cubin)
        before, its_module, _ = self.loaded(UPDATE, assembled(UPDATE, self))
        self.call("cuMemsetD8", self.data, 0, max(one.in_bytes, 1))
        rows = []
        for number in one.blocks:
            blocks = number * (self.sms if one.per_sm else 1)
            first = (before, *UPDATE.blocks) if one.cold else (function, blocks)
            ns = [self._between_events(function, blocks, one, first) for _ in range(1 + SAMPLES)][
                1:
            ]
            rows.append(
                LaunchTiming(one.name, blocks, one.in_a_row, one.bytes, tuple(ns), **hashes)
            )
        self.call("cuModuleUnload", module)
        self.call("cuModuleUnload", its_module)
        return rows

    def _between_events(
        self, function: Any, blocks: int, one: Launch, first: tuple[Any, int]
    ) -> int:
        """Nanoseconds from one event to another, with launches between them.

        All is queued behind work that takes longer than Python does, and behind a `first` launch,
        with its number of blocks, which leaves the caches as the others shall find them.
        """
        start, end = self.events
        for _ in range(AHEAD * (2 if one.in_a_row > 10 else 1)):
            self.call("cuMemsetD8Async", self.out, 0, DRAM_BYTES, 0)
        self.launch(*first, UPDATE.threads if one.cold else one.threads)
        self.call("cuEventRecord", start, 0)
        for _ in range(one.in_a_row):
            self.launch(function, blocks, one.threads)
        self.call("cuEventRecord", end, 0)
        self.call("cuEventSynchronize", end)
        return round(1e6 * self.call("cuEventElapsedTime", start, end))
