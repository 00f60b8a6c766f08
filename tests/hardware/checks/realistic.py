"""Kernels as courses have them: their results on the GPU, and Nsight Compute's counters beside.

The kernels are those of `tests/simt/realistic`, of which a piece is a topic. What a case launches
is counted launch by launch; the simulator must count the same, but for what `DIFFERS` names.
"""

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

from gemmlab.device import Device
from gemmlab.driver import numba_cuda
from tests.hardware.check import Check, Comparison, Measured
from tests.hardware.checks.counters import COUNTERS, METRICS, hardware
from tests.hardware.profiler import NCU, profile
from tests.simt.test_realistic import CASES, is_right, simulated

NAME = "realistic"
# Cases whose counters depend on who comes first, and why.
BY_CHANCE: dict[str, str] = {}
# Cases whose counters differ otherwise: the counters, and the reason.
DIFFERS: dict[str, tuple[tuple[str, ...], str]] = {}


def cases(piece: str) -> dict[str, Callable]:
    return {name: case for name, case in CASES.items() if name.partition(".")[0] == piece}


def pieces(device: Device) -> Mapping[str, str]:
    return dict.fromkeys(sorted({name.partition(".")[0] for name in CASES}), "")


def launched(kernel: Callable, grid: Any, block: Any, *arguments: Any, shared_bytes: int = 0):
    """Run a kernel on the GPU on NumPy arrays, which Numba copies there and back."""
    kernel[grid, block, 0, shared_bytes](*arguments)
    numba_cuda().synchronize()


def launch(piece: str) -> None:
    for case in cases(piece).values():
        case(launched)


def measure(piece: str, device: Device) -> Measured:
    """Of each case, whether its result was right, and the counters of its launches."""
    found: Measured = {}
    for name, case in cases(piece).items():
        made = []

        def counting(*arguments: Any, made: list = made, **options: Any) -> None:
            launched(*arguments, **options)
            made.append(arguments[0])

        found[name] = {"right": bool(is_right(case(counting))), "launches": len(made)}
    counted = iter(profile(NAME, piece, METRICS))
    for one in found.values():
        one["counters"] = [next(counted) for _ in range(one.pop("launches"))]
    return found


@cache
def here(name: str) -> list[Mapping[str, int]]:
    """The simulator's counters of the launches of a case."""
    return [report.counters for report in simulated(CASES[name])[1]]


def compare(piece: str, measured: Measured, device: Device) -> Comparison:
    found = Comparison()
    for name in cases(piece):
        one = measured[name]
        found.holds(one["right"], f"{name}: the result on the GPU is wrong")
        if name in BY_CHANCE:
            continue
        known, _ = DIFFERS.get(name, ((), ""))
        found.equal(f"{name}: launches", len(one["counters"]), len(here(name)))
        for i, (there, counted) in enumerate(zip(one["counters"], here(name), strict=False)):
            read = hardware(there)
            for counter in set(COUNTERS) - set(known):
                found.equal(f"{name}, launch {i}: {counter}", read[counter], counted[counter])
    return found


CHECK = Check(
    NAME,
    "kernels as courses have them: results, and counters of Nsight Compute and simulated",
    pieces,
    measure,
    compare,
    tool=NCU,
    launch=launch,
    quick=("reductions",),
)
