"""Global loads whose lines are in L1: wavefronts and cycles by Nsight Compute, and by rule.

Wavefronts are as the rule says, but for the first round, which misses; cycles are no fewer.
"""

from collections.abc import Mapping

import numpy as np

from benchmarks.hardware.check import Check, Comparison, Measured
from benchmarks.hardware.probes.patterns import (
    ROUNDS,
    SPAN,
    WARPS,
    Pattern,
    pattern_dtype,
    patterns,
    probe,
)
from benchmarks.hardware.profiler import NCU, profile
from gemmlab.device import Device
from gemmlab.instructions import host
from gemmlab.model import transactions

NAME = "loads"
METRICS = {
    "l1_wavefronts": ["l1tex__data_pipe_lsu_wavefronts_mem_lgds"],
    "cycles": ["sm__cycles_active"],  # its sum over SMs, of which one is busy
}
TOGETHER = 90  # patterns of a piece
AROUND = 4  # wavefronts of a warp at most that are not the pattern's: its indices and its result
REPLAYS = 2  # wavefronts at most for a sector that misses, in the first round alone


def some(piece: str) -> list[Pattern]:
    first = int(piece.removeprefix("from "))
    return patterns()[first : first + TOGETHER]


def pieces(device: Device) -> Mapping[str, str]:
    return {f"from {first}": "" for first in range(0, len(patterns()), TOGETHER)}


def launch(piece: str) -> None:
    """Launch the probe for every pattern of a piece, in their order."""
    cuda = host.cuda()
    compiled = cuda.jit(probe)
    memory = {w: cuda.to_device(np.zeros(SPAN // w, pattern_dtype(w))) for w in (1, 2, 4, 8)}
    out = {w: cuda.to_device(np.zeros(32 * WARPS, pattern_dtype(w))) for w in memory}
    for pattern in some(piece):
        at = cuda.to_device(pattern.elements)
        width = pattern.width
        compiled[1, 32 * WARPS](memory[width], at, np.int64(0), np.int64(ROUNDS), out[width])
    cuda.synchronize()


def measure(piece: str, device: Device) -> Measured:
    rows = profile(NAME, piece, METRICS)
    return {
        "loads": [
            {**facts(pattern), "counters": counters}
            for pattern, counters in zip(some(piece), rows, strict=True)
        ]
    }


def facts(pattern: Pattern) -> dict:
    """A pattern as it is recorded."""
    elements = pattern.elements.tolist()
    return {"pattern": pattern.name, "width": pattern.width, "elements": elements}


def lanes(load: Mapping) -> tuple[np.ndarray, np.ndarray, int]:
    """Address of each lane, whether it is on, and bytes a lane."""
    elements, width = np.array(load["elements"]), load["width"]
    return np.where(elements >= 0, elements * width, 0), elements >= 0, width


def of_one_load(load: Mapping) -> tuple[float, float]:
    """(wavefronts, cycles) that were measured."""
    times, counters = ROUNDS * WARPS, load["counters"]
    return counters["l1_wavefronts"] / times, counters["cycles"] / times


def compare(piece: str, measured: Measured, device: Device) -> Comparison:
    found = Comparison()
    for pattern, load in zip(some(piece), measured["loads"], strict=True):
        name = pattern.name
        found.equal(name, {k: load[k] for k in ("pattern", "width", "elements")}, facts(pattern))
        passes, cycles = of_one_load(load)
        rule, least, sectors = (
            int(f(*lanes(load)))
            for f in (transactions.l1_wavefronts, transactions.l1_cycles, transactions.sectors)
        )
        more = (AROUND + REPLAYS * sectors) / ROUNDS
        found.holds(0 <= passes - rule < more, f"{name}: {passes} wavefronts, {rule} by the rule")
        found.holds(cycles >= least, f"{name}: {cycles} cycles, at least {least} by the rule")
    return found


CHECK = Check(
    NAME,
    "wavefronts and cycles of global loads in L1: Nsight Compute's and the rule's",
    pieces,
    measure,
    compare,
    tool=NCU,
    launch=launch,
)
