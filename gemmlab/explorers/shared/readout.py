"""Predictions and measurements in words, with the numbers that decide."""

from __future__ import annotations

from gemmlab.device import Device
from gemmlab.kernels import Kernel
from gemmlab.measure.measurement import Measurement, residual
from gemmlab.model import Prediction
from gemmlab.plots import number, si
from gemmlab.plots.shared import style


def expected(p: Prediction, kernel: Kernel, target: Device, backend: str) -> str:
    """What a run is predicted to show, before it has run."""
    name = f"{kernel.name} {p.tiling}" if p.tiling else kernel.name
    return f"{name} on {p.problem}: {_predicted(p, target)}\nPress Run ({backend}) to compare."


def observed(m: Measurement, p: Prediction, target: Device) -> str:
    """What a run showed, and its residual against the prediction."""
    verdict = "right" if m.passed else "WRONG"
    first = (
        f"{style.series(m)} on {m.problem}, {m.source}: the result is {verdict} "
        f"(error {m.error:.1e}, at most {m.tolerance:.1e})."
    )
    return "\n".join([first, _counted(m, p) if m.counters else _timed(m, p, target)])


def _predicted(p: Prediction, target: Device) -> str:
    model = "predicted" if p.kernel else "predicted for an ideal kernel"
    traffic = f", {si(p.bytes['global'], 'B')} of global traffic" if "global" in p.bytes else ""
    return (
        f"{model} on {target.title}: {si(p.seconds, 's')}, "
        f"{si(p.flops_per_second, 'FLOP/s')}, limited by {p.limiter}{traffic}."
    )


def _counted(m: Measurement, p: Prediction) -> str:
    if not p.kernel:
        traffic = ", ".join(f"{si(count, 'B')} of {level}" for level, count in m.bytes.items())
        conflicts = m.counters["shared_bank_conflicts"]
        return (
            f"Counted: {traffic} traffic, {number(conflicts)} bank conflicts. There is no model of "
            "it: no counts are predicted."
        )
    differences = residual(m, p)
    off = {name: d for name, d in differences.items() if d}
    if not off:
        return f"counted − predicted = 0 for all {len(differences)} counters."
    text = ", ".join(f"{name} {d:+,.0f}" for name, d in off.items())
    return f"counted − predicted: {text}; 0 for the other {len(differences) - len(off)}."


def _timed(m: Measurement, p: Prediction, target: Device) -> str:
    low, high = m.percentile(10), m.percentile(90)
    return (
        f"Median of {len(m.samples)} runs {si(m.seconds, 's')} (10 % to 90 %: {si(low, 's')} to "
        f"{si(high, 's')}), {si(m.flops_per_second, 'FLOP/s')}; {_predicted(p, target)}\n"
        f"measured ÷ predicted time = {number(m.seconds / p.seconds)}."
    )
