"""Sensors: what a stand-in for NVML says arrives in SI units; what it does not say is unknown."""

import ctypes

import pytest

from gemmlab.measure.backends import sensors
from gemmlab.measure.backends.sensors import Reading


class Nvml:
    """NVML, with the answers that are given; a function that is not among them fails."""

    def __init__(self, **answers):
        self.answers = answers

    def nvmlInit_v2(self):
        return self.answers.get("init", 0)

    def nvmlDeviceGetHandleByUUID(self, uuid, device):
        device._obj.value = 0xFFFF_0000_1234  # wider than an int
        return 0 if uuid == b"GPU-1" else 6

    def _tell(self, name, device, out):
        assert device.value == 0xFFFF_0000_1234
        if name not in self.answers:
            return 3
        out._obj.value = self.answers[name]
        return 0

    def nvmlDeviceGetClockInfo(self, device, kind, out):
        assert kind == 1
        return self._tell("clock", device, out)

    def nvmlDeviceGetPowerUsage(self, device, out):
        return self._tell("mean", device, out)

    def nvmlDeviceGetCurrentClocksEventReasons(self, device, out):
        return self._tell("reasons", device, out)

    def nvmlDeviceGetFieldValues(self, device, count, values):
        assert (count, values._obj.field) == (1, 186)
        values._obj.status = 0 if "instant" in self.answers else 3
        values._obj.value = self.answers.get("instant", 0)
        return 0


@pytest.mark.parametrize(
    ("answers", "reading"),
    [
        ({"clock": 1980, "instant": 600_500, "reasons": 4}, Reading(1.98e9, 600.5, 4)),
        ({"clock": 1980, "mean": 500_000, "reasons": 0}, Reading(1.98e9, 500.0, 0)),
        ({"instant": (7 << 32) + 600_000}, Reading(None, 600.0, None)),
        ({}, Reading(None, None, None)),
    ],
)
def test_readings_are_in_si_units(answers, reading):
    assert sensors.of_library(Nvml(**answers), "GPU-1")() == pytest.approx(reading)


def test_a_library_that_does_not_start_or_know_the_gpu_gives_no_sensors():
    assert sensors.of_library(Nvml(init=9), "GPU-1") is None
    assert sensors.of_library(Nvml(), "GPU-2") is None


def test_an_old_driver_lacks_functions():
    nvml = Nvml(clock=1000)
    nvml.nvmlDeviceGetCurrentClocksEventReasons = None
    assert sensors.of_library(nvml, "GPU-1")() == Reading(1e9, None, None)


def test_without_a_library_there_are_no_sensors(monkeypatch):
    def missing(name):
        raise OSError(name)

    monkeypatch.setattr(ctypes, "CDLL", missing)
    assert sensors.sensors("GPU-1") is None


def test_the_summary_has_medians_and_every_reason():
    readings = [Reading(1.9e9, 600.0, 0), Reading(1.98e9, 650.0, 4), Reading(1.98e9, None, 0x24)]
    assert sensors.summary(readings) == {
        "sm_clock_hz": "1980000000",
        "power_watts": "625.0",
        "throttle": "power cap, software thermal slowdown",
    }
    assert sensors.summary([Reading(None, None, 0)]) == {
        "sm_clock_hz": "unknown",
        "power_watts": "unknown",
        "throttle": "none",
    }
    assert set(sensors.summary([]).values()) == {"unknown"}


def test_the_struct_is_as_large_as_nvmls():
    assert ctypes.sizeof(sensors._FieldValue) == 40
