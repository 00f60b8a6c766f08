"""The machine this Python runs on, as a `Device`: its GPU if one works, else its CPU."""

import re
from functools import cache

from gemmlab.device import FMA_SOURCE, UNITS, Device, Source, device, names, of_capability
from gemmlab.here import probe
from gemmlab.here.driver import GpuStatus, gpu_status

SINCE_VOLTA = (  # what is the same on all GPUs
    *("registers_per_thread", "shared_bytes_per_cycle_per_sm", "issue_per_cycle_per_sm"),
    "fma_latency_cycles",
)


@cache
def detect() -> Device:
    """The machine this Python runs on: its GPU if one works, else its CPU.

    A GPU that has a file is described by it; another one by what its driver says. Never raises.
    """
    status = gpu_status()
    return _from_driver(status) if status.works else host()


@cache
def host() -> Device:
    """The CPU of this machine, its FLOP rates and memory bandwidth measured once (about 2 s)."""
    cores = probe.cores()
    peak = {dtype: probe.flop_rate(dtype) for dtype in ("float64", "float32")}
    bandwidth = probe.bandwidth()
    origin = {f"peak.{dtype}": Source("FLOP/s", rate.source) for dtype, rate in peak.items()}
    origin["dram_bandwidth"] = Source("B/s", bandwidth.source)
    origin["sms"] = Source("SM", "cores that this process may use, asked of the operating system")
    return Device(
        name="cpu",
        title=probe.processor_name(),
        kind="cpu",
        sms=cores,
        peak={dtype: rate.value for dtype, rate in peak.items()},
        dram_bandwidth=bandwidth.value,
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
