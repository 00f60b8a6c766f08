"""What a launch does takes energy, and the board gives only so much: the rest is the clock.

`python -m benchmarks.power` measures loops of one idea: the energy of what they do, and the clock
that is left where the board's limit holds them back. What is dynamic of the power grows with the
clock and, since a higher clock needs a higher voltage, with a power of it. Two limits are seen. One
acts at once, and lets a launch have more than the board may take for long. The other holds the mean
of some tens of milliseconds at the limit that the board says; between launches it recovers. For the
mean, what SMs and L2 do takes an energy that goes with a power of the clock; device memory has a
clock and a voltage of its own. Decisions 038 and 049.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from math import log
from pathlib import Path
from statistics import median
from typing import NamedTuple

import numpy as np

from gemmlab.compiled.sass.listing import Instruction, Listing
from gemmlab.compiled.sm.pipes import GROUP_OF, WARPS
from gemmlab.compiled.sm.result import Result
from gemmlab.compiled.sm.streams import Block
from gemmlab.measure import store
from gemmlab.model.transactions import LINE, SECTOR
from gemmlab.tiling import WARP

FILE = "power.json"
SAME_CHIP = {"h200": "h100_sxm"}  # and the same limit, where the board itself is not recorded
POWER_CAP = 0x4  # NVML API Reference, nvmlClocksEventReasonSwPowerCap
EDGES = 0.1e-3, 0.3e-3  # of the first two parts of a course [s]
HALVINGS = 40  # of an interval of clocks


class Load(NamedTuple):
    """A launch keeps an SM busy: Tensor Cores for a part of the time, with so much power.

    use : part of the time for which the Tensor Cores of an SM with blocks are busy
    watts : dynamic, of the board, at the clock that nothing holds back; None where not known
    chip : of SMs and L2 alone, with the energies that their work takes at that clock's voltage
    memory : of device memory
    """

    use: float = 1.0
    watts: float | None = None
    chip: float = 0.0
    memory: float = 0.0


@dataclass(frozen=True)
class Loop:
    """A row of the record: a loop of one idea that went on for more than a second.

    rate : products, operations of a lane, or bytes [1/s]; read : bytes besides [1/s]; clock [MHz];
        power, said : by the counter of energy and by the sensor [W]
    course : the clock from its beginning on [MHz]
    """

    name: str
    power: float
    said: float
    said_clock: float
    reasons: int
    blocks: int = 0
    rate: float = 0.0
    read: float = 0.0
    clock: float | None = None
    course: tuple[float, ...] = field(default=(), repr=False)

    @property
    def free(self) -> bool:
        """Whether the limit of power did not hold it back."""
        return not self.reasons & POWER_CAP


@dataclass(frozen=True)
class Pulses:
    """A row of launches with pauses between them, as timed launches have."""

    name: str
    milliseconds: float
    period: float
    clocks: tuple[float, ...] = field(repr=False)


@dataclass(frozen=True)
class Power:
    """What a board takes and gives, from its record.

    rest : with a context and nothing to do [W]
    energies : of a product, an operation of a lane, or a byte [J], by the name of the loop
    clocks : at which they were measured [Hz]
    voltage : the energy of what SMs and L2 do goes with this power of the clock
    exponent : for the limit at once, dynamic power goes with this power of the clock
    peak : dynamic, that the board gives at once [W]
    limit : of the mean, by the sensor, in loops that are at it [W]
    dip, settles : how far the clock dips at first for each W² that is dynamic, and how long [s]
    pause : between timed launches [s], and what the board takes then [W]
    """

    rest: float
    energies: Mapping[str, float]
    clocks: Mapping[str, float]
    voltage: float
    exponent: float
    peak: float
    limit: float
    dip: float
    settles: float
    pause: tuple[float, float]

    def clock(self, full: float, watts: float) -> float:
        """Return the clock of a launch that would take so much at clock `full` [Hz]."""
        return full * min(1.0, (self.peak / max(watts, 1e-9)) ** (1 / self.exponent))

    def at(self, clock: float) -> Mapping[str, float]:
        """Return the energies of what SMs and L2 do at a clock [J], by the name of the loop."""
        return {
            name: of * (clock / self.clocks[name]) ** self.voltage
            for name, of in self.energies.items()
        }

    def part(self, load: Load, may: float) -> float:
        """Return the part of its full clock at which a load takes what it may [W], or all of it."""
        low, high = 0.0, 1.0
        for _ in range(HALVINGS):
            part = (low + high) / 2
            taken = load.chip * part ** (1 + self.voltage) + load.memory * part
            low, high = (part, high) if taken <= may else (low, part)
        return high

    def sustained(self, full: float, load: Load, seconds: float, pause: float) -> float:
        """Return the clock of launches of so many seconds, one after another with a pause.

        What the pause leaves of the limit, the launch may have more.
        """
        may = self.limit - self.rest + (self.limit - self.pause[1]) * pause / max(seconds, 1e-9)
        return min(self.clock(full, load.watts), full * self.part(load, may))

    def onset(self, clock: float, full: float, watts: float, seconds: float) -> float:
        """Return the time that is lost while the clock dips, at the beginning of a launch [s]."""
        first = min(clock, full * (1 - self.dip * min(watts, self.peak) ** 2))
        gone = 1 - np.exp(-seconds / self.settles)
        return float((1 - first / clock) * self.settles * gone)


def of_chip(device: str, file: str, root: str | Path) -> Path | None:
    """Return the path of a record of a device, or of one with its chip; None without either."""
    paths = (Path(root) / name / file for name in (device, SAME_CHIP.get(device, device)))
    return next((path for path in paths if path.exists()), None)


@lru_cache(maxsize=8)
def power(device: str, root: str | Path = store.ROOT) -> Power | None:
    """Return what is recorded of the power of a device, or of one with its chip; else None."""
    path = of_chip(device, FILE, root)
    if path is None:
        return None
    found = store.read(path, {"rows": Loop, "pulses": Pulses})
    return _power(found.tables["rows"], found.tables["pulses"])


def _power(rows: tuple[Loop, ...], pulses: tuple[Pulses, ...]) -> Power:
    """Make the facts of the rows."""
    named = {row.name: row for row in rows}
    rest = next(row.power for row in rows if row.name.startswith("rest_"))
    loops = [row for row in rows if row.rate and not row.name.endswith("zeros")]
    free = {row.name.rpartition("_")[0]: row for row in loops if row.free}  # the most SMs are last
    energies = {name: (row.power - rest) / row.rate for name, row in free.items()}
    energies["dram"] -= energies["l2"]  # what comes from there passes L2
    held = [row for row in loops if not row.free and row.name.rpartition("_")[0] in energies]

    def watts(row: Loop, clock: float) -> float:
        """Return what a loop would take if it had that clock [MHz], and nothing held it back."""
        return energies[row.name.rpartition("_")[0]] * row.rate / row.clock * clock

    def of_course(row: Loop) -> float:
        return float(np.mean(row.course[1:5]))  # settled, and the mean is not yet at the limit

    voltage = median(
        log((row.said - rest) / row.rate / energies[loop]) / log(row.clock / free[loop].clock)
        for row in held
        for loop in [row.name.rpartition("_")[0]]
    )
    full = max(of_course(row) for row in held)  # that of Tensor Cores
    exponent = median(
        log(watts(row, full) / (row.said - rest)) / log(full / row.clock) for row in held
    )
    at_once = [row for row in held if of_course(row) < 0.95 * full]
    peak = median(watts(row, full) * (of_course(row) / full) ** exponent for row in at_once)
    slow = [row for row in held if row not in at_once]
    dips = [1 - row.course[0] / row.course[2] for row in slow]
    later = median((1 - r.course[1] / r.course[2]) / d for r, d in zip(slow, dips, strict=True))
    left = (np.sqrt(1 + 8 * later) - 1) / 2  # of a dip after the first part of the course
    settles = EDGES[0] / -log(left)
    dip = median(d / watts(r, full) ** 2 for r, d in zip(slow, dips, strict=True))
    pause = median(p.period - 1e-3 * p.milliseconds for p in pulses if p.milliseconds >= 2)
    return Power(
        rest, energies, {name: 1e6 * row.clock for name, row in free.items()}, voltage, exponent,
        peak, median(row.said for row in held),
        float(dip * EDGES[0] / settles / (1 - left)), float(settles),
        (pause, (named["idle"].power + free["dram"].power) / 2),
    )  # fmt: skip


def energy(
    code: Listing,
    result: Result,
    blocks: Sequence[Block],
    energies: Mapping[str, float],
    together: float = 1.0,
) -> float:
    """Count the energy of what an SM did while it was simulated [J], without device memory.

    blocks : that were executed, of which it had as many as ended
    together : how often what comes from L2 once is asked for
    """
    each = np.array([of_warp(i, energies) for i in code.instructions])
    near, far = (
        sum(int(getattr(s, name).sum()) for block in blocks for s in block) / len(blocks)
        for name in ("cycles", "sectors")
    )
    of_blocks = LINE * near * energies["shared"] + SECTOR * far * energies["l2"] / together
    return float(each @ result.issued) + len(result.block_ends) * of_blocks


def of_warp(instruction: Instruction, energies: Mapping[str, float]) -> float:
    """Return the energy of an instruction of a warp [J], without what it asks of memory.

    >>> of_warp(Instruction(0, "", "HMMA.16816.F32", ()), {"hmma": 1e-12})
    2.048e-09
    >>> float(of_warp(Instruction(0, "", "QGMMA.64x128x32.F32.E4M3.E4M3", ()), {"wgmma": 1e-12}))
    3.2768e-08
    """
    shape = instruction.modifiers[:1]
    match GROUP_OF.get(instruction.name, ""):
        case "tensor":
            short = "1688" in shape
            kind = "hmma_tf32" if "TF32" in instruction.modifiers else "hmma"
            return energies[kind] * (1024 if short else 2048)
        case "warpgroup":
            kind = "wgmma_tf32" if "TF32" in instruction.modifiers else "wgmma"
            sides = next(m for m in instruction.modifiers if m.startswith("64x")).split("x")
            products = np.prod([int(side) for side in sides], dtype=float) / WARPS
            # Not measured for bytes: as much is taken to be done for as many bytes that are read.
            return energies[kind] * products / (2 if instruction.name == "QGMMA" else 1)
        case "fma":
            return WARP * energies["fma32"]
        case "fp64":
            return WARP * energies["fma64"]
        case "alu" | "product" | "special" | "conversion":
            return WARP * energies["alu"]
    return 0.0
