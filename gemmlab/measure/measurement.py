"""Measurements: times, counts and errors of a kernel's run, with where and how they were taken."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np

from gemmlab import Gemm, Tiling
from gemmlab.model import Prediction
from gemmlab.model.counters import TransactionCounters
from gemmlab.model.transactions import LINE, SECTOR

BACKENDS = ("gpu", "cpu", "simulator", "recorded")
RESOURCES = (
    "registers",  # per thread
    "local_bytes",  # per thread: arrays and spilled registers that went to memory [B]
    "static_shared_bytes",  # per block [B]
    "dynamic_shared_bytes",  # per block [B]
    "threads",  # per block
    "blocks_per_sm",  # that one SM holds at once, as the driver says
    "predicted_blocks_per_sm",  # the same by `gemmlab.model.occupancy`
    "warps_per_sm",  # resident: blocks_per_sm times the warps of a block
)


def duration(seconds: float) -> str:
    """Return a time with three digits and its unit.

    >>> duration(4.656e-05), duration(0.0123), duration(3.2)
    ('46.6 µs', '12.3 ms', '3.20 s')
    """
    unit, size = next((u, s) for u, s in (("s", 1.0), ("ms", 1e-3), ("µs", 0)) if seconds >= s)
    value = seconds / (size or 1e-6)
    return f"{value:.{2 if value < 10 else 1 if value < 100 else 0}f} {unit}"


@dataclass(frozen=True)
class Measurement:
    """One kernel run on one problem; fields are named as in `Prediction`.

    backend : where it ran: "gpu", "cpu", "simulator", or "recorded" for a replay
    device, device_title : id and name of the processor; "simulator" for the simulated GPU
    samples : durations of the repeated runs [s]; empty where only counts were taken
    counters : exact transactions, by the names that predictions use; empty for timed runs, and 0
        for what did not occur
    resources : what the compiled kernel takes, by the names in `RESOURCES`; empty where unknown
    error, tolerance : of the result, in the measure of `Gemm.error`; it passes if error ≤ tolerance
    provenance : versions, driver, clocks, date, hash of the kernel's source, and so on, as text
    """

    kernel: str
    problem: Gemm
    tiling: Tiling | None
    backend: str
    device: str
    device_title: str
    error: float
    tolerance: float
    samples: tuple[float, ...] = ()
    counters: Mapping[str, int] = field(default_factory=TransactionCounters)
    resources: Mapping[str, int] = field(default_factory=dict)
    provenance: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.backend not in BACKENDS:
            raise ValueError(f"backend={self.backend!r} is not one of {', '.join(BACKENDS)}")
        unknown = [name for name in self.resources if name not in RESOURCES]
        if unknown:
            raise ValueError(f"resource {unknown[0]!r} is not one of {', '.join(RESOURCES)}")
        object.__setattr__(self, "counters", TransactionCounters(self.counters))

    def __str__(self) -> str:
        """Give a console one line: kernel, problem, rate or counts, resources, error and source."""
        parts = [f"{self.kernel} {self.problem}" + (f", tile {self.tiling}" * bool(self.tiling))]
        if self.samples:
            low, high = self.percentile(10), self.percentile(90)
            parts.append(f"{self.seconds:.4g} s (p10 {low:.4g}, p90 {high:.4g})")
            parts.append(f"{self.flops_per_second / 1e12:.4g} TFLOP/s")
        if self.resources:
            r = self.resources
            shared = r["static_shared_bytes"] + r["dynamic_shared_bytes"]
            parts.append(
                f"{r['registers']} registers, {r['local_bytes']} B local, {shared} B shared, "
                f"{r['warps_per_sm']} warps per SM"
            )
        verdict = "within" if self.passed else "NOT within"
        parts.append(f"error {self.error:.2g} {verdict} {self.tolerance:.2g}")
        return "; ".join([*parts, self.source])

    @property
    def seconds(self) -> float | None:
        """Median duration [s]; None where nothing was timed."""
        return self.percentile(50)

    def percentile(self, p: float) -> float | None:
        """Return the p-th percentile of the durations [s]; None where nothing was timed."""
        return _percentile(tuple(self.samples), p) if self.samples else None

    @property
    def flops(self) -> int:
        """Operations of the product, 2mnk [FLOP]."""
        return self.problem.flops

    @property
    def flops_per_second(self) -> float | None:
        """Rate at the median duration [FLOP/s]; None where nothing was timed."""
        return self.flops / self.seconds if self.samples else None

    @property
    def bytes(self) -> dict[str, int]:
        """Counted traffic by memory level [B], with the names that predictions use."""
        if not self.counters:
            return {}
        c = self.counters
        return {
            "global": SECTOR * (c["global_load_sectors"] + c["global_store_sectors"]),
            "shared": LINE * (c["shared_load_wavefronts"] + c["shared_store_wavefronts"]),
        }

    @property
    def passed(self) -> bool:
        """Whether the result is right: a NaN or an infinity anywhere makes it wrong."""
        return bool(self.error <= self.tolerance)

    @property
    def source(self) -> str:
        """Where the data comes from, as figures say it."""
        if self.backend == "simulator":
            return "simulated"
        if self.backend == "recorded":
            return f"recorded on {self.device_title}, {self.provenance.get('date', '')[:10]}"
        return f"measured here on {self.device_title}"


@lru_cache(maxsize=4096)
def _percentile(samples: tuple[float, ...], p: float) -> float:
    return float(np.percentile(samples, p))


def residual(measured: Measurement, predicted: Prediction) -> dict[str, float]:
    """Subtract what was predicted from what was measured: "seconds", and each counter.

    Raises ValueError where the two are not about the same kernel and problem, and TypeError for
    what is neither.
    """
    for name, value, kind in (
        ("measured", measured, Measurement), ("predicted", predicted, Prediction),
    ):  # fmt: skip
        if not isinstance(value, kind):
            raise TypeError(f"{name}={value!r} is not a {kind.__name__}")
    if (measured.kernel, measured.problem) != (predicted.kernel, predicted.problem):
        raise ValueError(
            f"cannot compare {measured.kernel} on {measured.problem} "
            f"with {predicted.kernel} on {predicted.problem}"
        )
    out: dict[str, float] = {}
    if measured.seconds is not None:
        out["seconds"] = measured.seconds - predicted.seconds
    if measured.counters:
        for name in sorted({*measured.counters, *predicted.counters}):
            out[name] = measured.counters[name] - predicted.counters[name]
    return out
