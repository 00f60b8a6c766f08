"""Clock, power and what holds the clock back, read from a GPU while it computes.

They are asked of NVML, the management library that comes with every NVIDIA driver: a reading takes
a fraction of a millisecond, so that several fall into a short run.
"""

import ctypes
import statistics
import sys
from collections.abc import Callable, Iterable
from typing import NamedTuple

from gemmlab.here.driver import UNKNOWN

# NVML API Reference, nvmlClockType_t, field identifiers and nvmlClocksEventReasons.
_CLOCK_SM = 1
_POWER_INSTANT = 186
_REASONS = {
    0x001: "idle",
    0x002: "application clocks",
    0x004: "power cap",
    0x008: "hardware slowdown",
    0x010: "sync boost",
    0x020: "software thermal slowdown",
    0x040: "hardware thermal slowdown",
    0x080: "power brake",
    0x100: "display clock",
}


class Reading(NamedTuple):
    """A reading is what the sensors said at one moment; None stands for what they do not tell."""

    clock: float | None  # of the SMs [Hz]
    power: float | None  # [W]
    reasons: int | None  # that hold the clock back, a bit each


class _FieldValue(ctypes.Structure):
    """The structure nvmlFieldValue_t of NVML."""

    _fields_ = (
        ("field", ctypes.c_uint),
        ("scope", ctypes.c_uint),
        ("timestamp", ctypes.c_longlong),
        ("latency", ctypes.c_longlong),
        ("type", ctypes.c_int),
        ("status", ctypes.c_int),
        ("value", ctypes.c_ulonglong),
    )


def sensors(uuid: str) -> Callable[[], Reading] | None:
    """Make a function that reads the sensors of the GPU with this UUID; None if nothing does."""
    try:
        nvml = ctypes.CDLL("nvml.dll" if sys.platform == "win32" else "libnvidia-ml.so.1")
    except OSError:
        return None
    return of_library(nvml, uuid)


def of_library(nvml: ctypes.CDLL, uuid: str) -> Callable[[], Reading] | None:
    """Make the same function with an NVML that is loaded."""
    device = ctypes.c_void_p()
    if nvml.nvmlInit_v2() or nvml.nvmlDeviceGetHandleByUUID(uuid.encode(), ctypes.byref(device)):
        return None

    def ask(function: str, value: ctypes._SimpleCData, *arguments: object) -> int | None:
        call = getattr(nvml, function, None)
        if call is None or call(device, *arguments, ctypes.byref(value)):
            return None
        return value.value

    def milliwatts() -> int | None:
        now = _FieldValue(field=_POWER_INSTANT)
        failed = nvml.nvmlDeviceGetFieldValues(device, 1, ctypes.byref(now))
        if not failed and not now.status and now.value:
            return now.value & 0xFFFFFFFF  # an unsigned int in a union of eight bytes
        return ask("nvmlDeviceGetPowerUsage", ctypes.c_uint())  # the mean of a second, or so

    def read() -> Reading:
        megahertz = ask("nvmlDeviceGetClockInfo", ctypes.c_uint(), _CLOCK_SM)
        power = milliwatts()
        return Reading(
            None if megahertz is None else megahertz * 1e6,
            None if power is None else power * 1e-3,
            ask("nvmlDeviceGetCurrentClocksEventReasons", ctypes.c_ulonglong()),
        )

    return read


def summary(readings: Iterable[Reading]) -> dict[str, str]:
    """Sum readings up for a provenance: median clock and power, and every reason seen."""
    readings = list(readings)
    clocks = [r.clock for r in readings if r.clock]
    powers = [r.power for r in readings if r.power]
    masks = [r.reasons for r in readings if r.reasons is not None]
    seen = [name for bit, name in _REASONS.items() if any(mask & bit for mask in masks)]
    return {
        "sm_clock_hz": f"{statistics.median(clocks):.0f}" if clocks else UNKNOWN,
        "power_watts": f"{statistics.median(powers):.1f}" if powers else UNKNOWN,
        "throttle": (", ".join(seen) or "none") if masks else UNKNOWN,
    }
