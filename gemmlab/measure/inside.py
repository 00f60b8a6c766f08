"""What the clock of a GPU's SMs said inside of kernels, and that of the simulated SM before.

Warps read the clock at marks: at their begin, when a tile along k is there, when the products of a
tile of C are done, and when it is stored. `benchmarks/inside` simulated and measured them, with the
same compiled code.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gemmlab.measure import store
from gemmlab.measure.benchmarks import Recorded, read_tables
from gemmlab.problem import Gemm


@dataclass(frozen=True)
class MarkedLaunch:
    """A launch, without and with marks, as the median of several from a cold L2 [s].

    sms : how many SMs' clocks were taken, of all launches; those whose blocks were the simulated's
    clock : of the SMs [Hz]
    inside_seconds : from the first mark to the last one of all SMs
    first_blocks_seconds, last_blocks_seconds : between the first SM's and the last one's
    predicted_… : before it was measured [s]
    code : the hash of the code with marks
    resident, rounds : blocks at a time on an SM; tiles of C that a block has
    """

    kernel: str
    problem: Gemm
    tiling: str
    sms: int
    bare_seconds: float
    marked_seconds: float
    bare_error: float
    marked_error: float
    clock: float
    inside_seconds: float
    first_blocks_seconds: float
    last_blocks_seconds: float
    predicted_bare_seconds: float
    predicted_marked_seconds: float
    code: str
    resident: int
    rounds: int


@dataclass(frozen=True)
class Phase:
    """A phase of a round of blocks [cycles]; measured : quantiles, of 10, 50 and 90 %."""

    kernel: str
    round: int
    phase: str
    measured: tuple[float, float, float]
    simulated: float

    @property
    def error(self) -> float:
        """Simulated over measured, less 1."""
        return self.simulated / self.measured[1] - 1


@dataclass(frozen=True)
class WarpMarks:
    """The marks of a warp, in cycles from its SM's first mark on.

    low, median, high : quantiles of 10, 50 and 90 % over SMs and launches
    """

    kernel: str
    block: int
    warp: int
    low: tuple[int, ...]
    median: tuple[int, ...]
    high: tuple[int, ...]
    simulated: tuple[int, ...]


@dataclass(frozen=True)
class Inside(Recorded):
    """One run of `benchmarks/inside`."""

    launches: tuple[MarkedLaunch, ...]
    phases: tuple[Phase, ...]
    warps: tuple[WarpMarks, ...]

    def launch(self, kernel: str) -> MarkedLaunch:
        """Return a kernel's launch; KeyError, which lists those that there are, for another."""
        found = {one.kernel: one for one in self.launches}
        if kernel not in found:
            raise KeyError(f"no marks of {kernel!r}; there are those of {', '.join(found)}")
        return found[kernel]

    def of(self, kernel: str) -> Sequence[WarpMarks]:
        """Return the marks of a kernel's warps."""
        return [one for one in self.warps if one.kernel == kernel]


def inside(device: str = "h100_sxm", root: str | Path = store.ROOT) -> Inside:
    """Read what the clocks of `device` said inside of kernels."""
    tables = {"launches": _launch, "phases": Phase, "warps": WarpMarks}
    return read_tables(Inside, device, "inside.json", root, tables)


def _launch(problem: dict, **told: Any) -> MarkedLaunch:
    return MarkedLaunch(problem=Gemm(**problem), **told)
