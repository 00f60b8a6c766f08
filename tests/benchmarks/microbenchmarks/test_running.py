"""Microbenchmarks run: what is asked of the driver, and what becomes of its answers."""

import ctypes
import re
import struct
import sys
from enum import IntEnum
from types import SimpleNamespace

import numpy as np
import pytest

from benchmarks.microbenchmarks import microbenchmark, running
from benchmarks.microbenchmarks.loop import CLOCKS, ENTRY, sha256
from gemmlab.compiled.sass.compiling import machine_code
from gemmlab.device import device
from gemmlab.here import driver as asked
from gemmlab.here.compilers import assemble
from gemmlab.here.driver import GpuStatus
from gemmlab.measure import microbenchmarks as results
from gemmlab.measure.backends import sensors

CODE = b"sixteen bytes..." * 3
pytestmark = pytest.mark.measuring


def elf(name=f".text.{ENTRY}", code=CODE):
    """A 64-bit ELF file with one section of code: header, names, code, table of sections."""
    names = b"\0.names\0" + name.encode() + b"\0"
    code_at = 64 + len(names)
    table = code_at + len(code)
    header = b"\x7fELF\x02\x01".ljust(40, b"\0") + struct.pack("<Q", table)
    header = header.ljust(0x3A, b"\0") + struct.pack("<HHH", 64, 2, 0)
    # The table's place stands at 0x28, right behind the first 40 bytes.
    sections = [(1, 3, 0, 0, 64, len(names)), (8, 1, 0, 0, code_at, len(code))]
    packed = b"".join(struct.pack("<IIQQQQ", *s).ljust(64, b"\0") for s in sections)
    return header + names + code + packed


BROKEN = elf(".text.another") + b"broken"


class Status(IntEnum):
    CUDA_SUCCESS = 0
    CUDA_ERROR_INVALID_IMAGE = 200
    CUDA_ERROR_LAUNCH_FAILED = 719


class FakeDriver:
    """An H200 whose every launch takes 1000 cycles, and whose events are 8 µs apart."""

    CUresult = Status
    CUdevice_attribute = SimpleNamespace(
        CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT=132,
        CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR=9,
        CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR=0,
    )

    def __init__(self):
        self.log, self.lost = [], False

    def __getattr__(self, name):
        def call(*arguments):
            self.log.append((name, *arguments))
            if name == "cuModuleLoadData" and arguments[0] == BROKEN:
                return (Status.CUDA_ERROR_INVALID_IMAGE,)
            if name == "cuCtxSynchronize" and self.lost:
                return (Status.CUDA_ERROR_LAUNCH_FAILED,)
            return (Status.CUDA_SUCCESS, *self.answer(name, arguments))

        if not name.startswith("cu"):
            raise AttributeError(name)
        return call

    def answer(self, name, arguments):
        if name == "cuDeviceGetAttribute":
            return (arguments[0],)
        if name == "cuMemAlloc":
            return (1 << 40,)
        if name == "cuEventElapsedTime":
            return (0.008,)
        if name == "cuDeviceGetUuid":
            return (SimpleNamespace(bytes=bytes(range(16))),)
        if name == "cuMemcpyDtoH":
            rows = np.zeros(arguments[2] // CLOCKS.itemsize, CLOCKS)
            rows["start"], rows["end"], rows["end_ns"] = 100, 1100, 500
            ctypes.memmove(arguments[0], rows.ctypes.data, arguments[2])
            return ()
        made = ("cuDeviceGet", "cuDevicePrimaryCtxRetain", "cuEventCreate",
                "cuModuleLoadData", "cuModuleGetFunction")  # fmt: skip
        return (name,) if name in made else ()

    def cubins(self, ptx):
        return elf()

    def calls(self, name):
        return [call[1:] for call in self.log if call[0] == name]


@pytest.fixture
def driver(monkeypatch):
    fake = FakeDriver()
    monkeypatch.setitem(sys.modules, "cuda", SimpleNamespace())
    monkeypatch.setitem(sys.modules, "cuda.bindings", SimpleNamespace(driver=fake))
    monkeypatch.setattr(running, "WARM_UP_LAUNCHES", 2)
    monkeypatch.setattr(running, "assemble", lambda ptx, target: (fake.cubins(ptx), None))
    monkeypatch.setattr(asked, "tool_version", lambda name: "13.0.88")
    monkeypatch.setattr(sensors, "sensors", lambda uuid: lambda: sensors.Reading(1.98e9, 500.0, 0))
    status = GpuStatus(True, "", "", "NVIDIA H200", "580.1", (13, 0), (9, 0))
    for module in (running, asked):
        monkeypatch.setattr(module, "gpu_status", lambda: status)
    return fake


def measured(*names):
    chosen = list(map(microbenchmark, names))
    loops = [one for one in chosen if hasattr(one, "turns")]
    launches = [one for one in chosen if not hasattr(one, "turns")]
    return running.measure(device("h200"), loops, launches, say=lambda text: None)


def test_a_loop_has_a_row_for_each_number_of_warps(driver):
    found, failures = measured("ffma_rate")
    loop = microbenchmark("ffma_rate")
    assert failures == []
    assert tuple(row.warps for row in found.loops) == loop.warps
    for row in found.loops:
        assert row.cycles == ((1000,),) * running.SAMPLES
        assert row.ns == (500,) * running.SAMPLES
        assert row.each == 1000 / (loop.count * loop.turns)
        assert row.ptx_sha256 == sha256(loop.ptx("sm_90"))[:16]
        assert row.code_sha256 == sha256(CODE)[:16]
    grids = [call[1] for call in driver.calls("cuLaunchKernel")][-6:]
    assert grids == [1] * 6


def test_a_loop_on_all_sms_has_a_block_on_each(driver):
    found, _ = measured("hmma_all_sms")
    assert [row.blocks for row in found.loops] == [132]
    assert driver.calls("cuLaunchKernel")[-1][1:5] == (132, 1, 1, 512)


def test_a_launch_has_a_row_for_each_number_of_blocks(driver):
    found, _ = measured("empty_256_threads_4_bytes", "dram_copy_32")
    assert [row.blocks for row in found.launches[:-1]] == [132 * n for n in (1, 2, 4, 8, 16, 32)]
    assert found.launches[0].seconds == pytest.approx(8e-6 / 100)
    copy = found.launches[-1]
    assert copy.bytes_per_second == pytest.approx(2 * (1 << 29) / (8e-6 / copy.launches))


def test_only_a_cold_loop_finds_its_data_nowhere(driver):
    measured("ldg_l2_latency")
    flushes = [call for call in driver.calls("cuMemsetD8") if call[2] == running.DRAM_BYTES]
    assert flushes == []
    measured("ldg_dram_latency")
    flushes = [call for call in driver.calls("cuMemsetD8") if call[2] == running.DRAM_BYTES]
    assert len(flushes) == 1 + running.SAMPLES


def test_what_the_driver_refuses_is_named_and_the_rest_goes_on(driver):
    driver.cubins = lambda ptx: BROKEN if "ex2.approx" in ptx else elf()
    found, failures = measured("mufu_ex2_latency", "ffma_latency")
    assert [row.name for row in found.loops] == ["ffma_latency"]
    assert failures == [
        "mufu_ex2_latency: RuntimeError: "
        "cuModuleLoadData of the CUDA driver: CUDA_ERROR_INVALID_IMAGE"
    ]


def test_a_kernel_that_breaks_the_context_ends_the_run_and_nothing_is_lost(driver, monkeypatch):
    loop = microbenchmark("mufu_ex2_latency")

    original = running.Gpu.time_loop

    def break_at_ex2(gpu, one, cubin):
        driver.lost = one == loop
        return original(gpu, one, cubin)

    monkeypatch.setattr(running.Gpu, "time_loop", break_at_ex2)
    found, failures = measured("ffma_latency", "mufu_ex2_latency", "fadd_latency")
    assert [row.name for row in found.loops] == ["ffma_latency"]
    assert len(failures) == 2
    assert "CUDA_ERROR_LAUNCH_FAILED" in failures[0]
    assert failures[1] == "all that follow mufu_ex2_latency: the GPU's context is lost"


def test_an_older_gpu_leaves_out_what_it_does_not_have(driver):
    driver.CUdevice_attribute = SimpleNamespace(
        CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT=40,
        CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR=7,
        CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR=5,
    )
    found, failures = measured("redux_latency", "ffma_latency")
    assert [row.name for row in found.loops] == ["ffma_latency"]
    assert failures == ["redux_latency: ValueError: needs compute capability 8.0, this GPU has 7.5"]


def test_a_run_can_be_kept(driver, tmp_path):
    found, _ = measured("ffma_latency", "empty_alone")
    path = tmp_path / results.FILE
    results.write(path, found)
    assert results.read(path) == found
    assert found.provenance["sm_clock_hz"] == "1980000000"
    assert found.provenance["driver"] == "580.1"


def test_memory_and_context_are_given_back(driver):
    measured("ffma_latency")
    assert len(driver.calls("cuMemFree")) == len(driver.calls("cuMemAlloc")) == 2
    assert len(driver.calls("cuModuleUnload")) == len(driver.calls("cuModuleLoadData"))
    assert driver.calls("cuDevicePrimaryCtxRelease")


def test_code_is_found_in_its_file():
    assert machine_code(elf()) == CODE
    with pytest.raises(ValueError, match="a cubin with one kernel is needed, this one has 0"):
        machine_code(elf(".data"))


@pytest.mark.ptxas
def test_code_is_that_of_the_listing():
    from tests.support.timed_code import listing

    ptx = microbenchmark("ffma_latency").ptx("sm_90")
    code = machine_code(assemble(ptx, "sm_90")[0])
    assert len(code) == 16 * len(listing(ptx, "sm_90").instructions)


@pytest.mark.ptxas
def test_the_assembler_tells_its_version():
    assert re.fullmatch(r"\d+\.\d+\.\d+", asked.tool_version("ptxas"))


@pytest.mark.gpu
def test_this_gpu_runs_them():
    from gemmlab.here.detection import detect

    some = [microbenchmark(name) for name in ("ffma_latency", "lds_32_latency", "ldg_l2_latency")]
    found, failures = running.measure(detect(), some, [microbenchmark("dram_read_32")])
    assert failures == []
    times = [row.each for row in found.loops]
    assert times == sorted(times)
    assert found.launches[0].bytes_per_second > 0
