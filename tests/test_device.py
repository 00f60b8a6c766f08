"""Devices: figures against their files, files against their sources, the machine at hand."""

import copy
import dataclasses
import pickle
import tomllib
from dataclasses import FrozenInstanceError, fields, replace
from decimal import Decimal
from importlib import resources

import pytest

from gemmlab.device import Device, device, names, parse, sources
from gemmlab.here import detection
from gemmlab.here.detection import Rate, detect, gpu_status, host
from gemmlab.here.driver import GpuStatus

ALL = names()
H200 = (resources.files("gemmlab") / "devices" / "h200.toml").read_text("utf-8")


def test_names_are_those_of_the_files():
    folder = resources.files("gemmlab") / "devices"
    assert sorted(f"{name}.toml" for name in ALL) == sorted(f.name for f in folder.iterdir())
    assert {"v100", "h200"} <= {*ALL}


@pytest.mark.parametrize("name", ALL)
def test_peak_is_sms_times_clock_times_flop_per_cycle(name):
    """Equal to the published figure within the rounding of its last written digit."""
    text = (resources.files("gemmlab") / "devices" / f"{name}.toml").read_text("utf-8")
    written = tomllib.loads(text, parse_float=Decimal)["peak"]
    d = device(name)
    assert set(d.peak) == set(d.flop_per_cycle_per_sm) == set(written)
    for dtype, peak in d.peak.items():
        computed = d.sms * d.clock_of(dtype) * d.flop_per_cycle_per_sm[dtype]
        half_digit = 0.5 * 10.0 ** written[dtype]["value"].as_tuple().exponent
        assert abs(computed - peak) <= half_digit * (1 + 1e-9), (dtype, computed, peak)
        assert half_digit < 0.04 * peak, "too coarse a figure to check anything"


@pytest.mark.parametrize("name", ALL)
def test_every_number_has_unit_and_source(name):
    d, known = device(name), sources(name)
    for f in fields(d):
        value = getattr(d, f.name)
        if "unit" not in f.metadata or value is None:
            continue
        keys = (
            [f"{f.name}.{t}" for t in value]
            if f.name in ("peak", "flop_per_cycle_per_sm")
            else [f.name]
        )
        for key in keys:
            assert known[key].unit == f.metadata["unit"], key
            assert len(known[key].text) > 10, key


@pytest.mark.parametrize("name", ALL)
def test_limits_hang_together(name):
    d = device(name)
    assert d.kind == "gpu"
    assert d.warp_size == 32
    assert d.title
    assert d.match
    assert d.shared_bytes_per_block_default <= d.shared_bytes_per_block <= d.shared_bytes_per_sm
    assert d.threads_per_block <= d.threads_per_sm <= d.blocks_per_sm * d.threads_per_block
    assert d.threads == d.sms * d.threads_per_sm
    assert d.registers_per_sm == 65536
    assert d.l2_bytes < d.dram_bytes
    if d.l2_bandwidth is not None:
        assert d.dram_bandwidth < d.l2_bandwidth < d.shared_bandwidth


def test_course_figures():
    v100 = device("v100")
    assert v100.ops_per_byte("float16") == pytest.approx(138.9, abs=0.1)
    assert v100.ops_per_byte("float16", "l2") == pytest.approx(40, abs=0.5)
    assert (v100.dram_bandwidth, v100.l2_bandwidth) == (900e9, 3.1e12)
    for name, bandwidth in (("a100_40gb", 1555e9), ("a100_80gb", 2039e9)):
        a100 = device(name)
        assert (a100.sms, a100.clock, a100.l2_bytes) == (108, 1.41e9, 40 * 2**20)
        assert (a100.peak["float16"], a100.peak["tf32"]) == (312e12, 156e12)
        assert a100.dram_bandwidth == bandwidth
    assert device("rtx2060").sms == 30
    h200 = device("h200")
    assert (h200.sms, h200.clock, h200.clock_of("float16")) == (132, 1.98e9, 1.83e9)
    assert h200.shared_bandwidth == pytest.approx(33.5e12, rel=2e-3)


def test_unknown_device_lists_the_known_ones():
    for wrong in ("v1000", "", "../h200", 3, None):
        with pytest.raises(ValueError) as error:
            device(wrong)
        assert repr(wrong) in str(error.value)
        assert all(name in str(error.value) for name in ALL)


def test_unknown_dtype_and_level():
    with pytest.raises(ValueError, match=r"'bfloat16'.*float64, float32, float16"):
        device("v100").ops_per_byte("bfloat16")
    with pytest.raises(ValueError, match=r"'l3'.*dram, l2, l1, shared"):
        device("v100").ops_per_byte("float32", "l3")
    with pytest.raises(ValueError, match=r"no bandwidth is known.*'l2'"):
        device("t4").ops_per_byte("float32", "l2")


def test_device_is_immutable_hashable_and_passes_through():
    d = device("h200")
    assert device(d) is d
    assert device("h200") is d
    assert hash(d) == hash(replace(d))
    assert replace(d) == d
    assert replace(d, dram_bandwidth=1.0) != d
    with pytest.raises(FrozenInstanceError):
        d.sms = 1
    with pytest.raises(TypeError):
        d.peak["float32"] = 1.0


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("sms = {", "smx = {", "unknown key 'smx'"),
        ('value = 132, unit = "SM"', "value = 132", "sms must be"),
        ('unit = "SM"', 'unit = "GHz"', "sms must be in 'SM', not in 'GHz'"),
        ("\nfloat16 = {", "\nfloat8 = {", "unknown dtype flop_per_cycle_per_sm.float8"),
        ("dram_bandwidth = {", "l2_bandwidth_ = {", "unknown key 'l2_bandwidth_'"),
        ("l2_bandwidth = {", "#", ""),  # may be absent
        ("dram_bandwidth = {", "#", "dram_bandwidth missing"),
    ],
)
def test_file_with_a_fault_is_refused(old, new, message):
    assert old in H200
    text = H200.replace(old, new, 1)
    if not message:
        assert parse("h200", text).l2_bandwidth is None
        return
    with pytest.raises(ValueError) as error:
        parse("h200", text)
    assert message in str(error.value)
    assert "h200.toml" in str(error.value)


def test_number_without_source_is_refused():
    text = H200.replace("NVIDIA H200 Tensor Core GPU datasheet, H200 SXM: 4.8 TB/s", " ")
    assert text != H200
    with pytest.raises(ValueError, match="dram_bandwidth has no source"):
        parse("h200", text)


# --------------------------------------------------------------------------- the machine at hand


@pytest.fixture
def machine(monkeypatch):
    """Set what the driver answers, with the measurements of the CPU replaced by constants."""
    import sys

    module = sys.modules["gemmlab.here.detection"]
    monkeypatch.setattr(detection, "flop_rate", lambda dtype: Rate(1e11, f"measured here: {dtype}"))
    monkeypatch.setattr(detection, "bandwidth", lambda: Rate(2e10, "measured here: bandwidth"))

    def answer(status):
        monkeypatch.setattr(module, "gpu_status", lambda: status)
        module.detect.cache_clear()
        module.host.cache_clear()
        return detect()

    yield answer
    module.detect.cache_clear()
    module.host.cache_clear()


DRIVER = {
    "dram_bytes": 12 * 2**30,
    "threads_per_block": 1024,
    "shared_bytes_per_block_default": 49152,
    "warp_size": 32,
    "clock_khz": 1_777_000,
    "sms": 28,
    "memory_clock_khz": 7_501_000,
    "memory_bus_bits": 192,
    "l2_bytes": 2304 * 1024,
    "threads_per_sm": 1536,
    "shared_bytes_per_sm": 102400,
    "registers_per_sm": 65536,
    "shared_bytes_per_block": 101376,
    "blocks_per_sm": 16,
}


def status(name, capability, **changes):
    return GpuStatus(True, "", "", name, "580.1", (13, 0), capability, DRIVER | changes)


def test_detect_without_gpu_is_the_cpu(machine):
    d = machine(GpuStatus(False, "no-driver", "no NVIDIA driver is installed"))
    assert (d.name, d.kind, d.sms) == ("cpu", "cpu", detection.cores())
    assert d.title
    assert d.compute_capability is None
    assert d.shared_bandwidth is None
    assert set(d.peak) == {"float32", "float64"}
    assert d.ops_per_byte("float32") == 5.0
    assert sources(d)["peak.float32"].text.startswith("measured here")
    assert device(d) is d
    assert detect() is d
    assert host() is d


def test_detect_matches_a_file_by_name_and_size(machine):
    assert machine(status("NVIDIA H200", (9, 0), sms=132)) is device("h200")
    part = machine(status("NVIDIA H200", (9, 0), sms=16))
    assert part.name == "nvidia_h200"
    assert part.sms == 16


def test_detect_describes_an_unknown_gpu_by_its_driver(machine):
    title = "NVIDIA GeForce RTX 3060 Lite"  # one that nobody described
    d = machine(status(title, (8, 6)))
    assert (d.name, d.title) == ("nvidia_geforce_rtx_3060_lite", title)
    assert d.peak["float32"] == pytest.approx(12.74e12, rel=1e-3)  # 3584 FMA x 1.777 GHz
    assert d.peak["float32"] == 64 * d.peak["float64"]
    assert d.dram_bandwidth == pytest.approx(360e9, rel=1e-3)  # 192 bit x 15 Gbit/s
    assert d.shared_bytes_per_block == 99 * 1024
    assert "driver 580.1" in sources(d)["sms"].text
    assert (d.registers_per_thread, d.shared_bytes_per_cycle_per_sm) == (255, 128)
    assert machine(status("NVIDIA Later", (99, 0))).peak == {}


def test_gpu_status_never_raises_and_says_why():
    found = gpu_status()
    assert isinstance(found, GpuStatus)
    assert found is gpu_status()
    assert found.works == (found.problem == "")
    assert found.reason
    assert "\n" not in found.reason


def test_every_field_has_a_default_but_the_names():
    assert Device("x", "X", "cpu").peak == {}


def test_a_device_can_be_copied_pickled_and_listed():
    h200 = device("h200")
    for copied in (pickle.loads(pickle.dumps(h200)), copy.deepcopy(h200)):
        assert copied == h200
        assert copied.sources == h200.sources
    assert dataclasses.asdict(h200)["peak"] == h200.peak
    for change in ("clear", "popitem"):
        with pytest.raises(TypeError, match="stays as it is"):
            getattr(h200.peak, change)()
    with pytest.raises(TypeError, match="stays as it is"):
        h200.peak["float32"] = 1.0
