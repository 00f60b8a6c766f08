"""What a simulated launch did: counters, line by line, and hazards."""

from __future__ import annotations

from collections import Counter

from gemmlab.simt.hazards import Hazard, HazardError
from gemmlab.simt.source import Source

Dim3 = tuple[int, int, int]


class Report:
    """What a simulated launch did.

    counters : totals by name, in Nsight Compute's words; 0 for a name that did not occur
    by_line : the same for each line of the kernel's file
    hazards : what went wrong, in the order found, each kind once a line
    grid, block : of the launch, as (x, y, z)
    """

    def __init__(self, source: Source, grid: Dim3, block: Dim3, on_hazard: str) -> None:
        self.source, self.grid, self.block, self.on_hazard = source, grid, block, on_hazard
        self.by_line: dict[int, Counter[str]] = {}
        self.hazards: list[Hazard] = []

    @property
    def counters(self) -> Counter[str]:
        """Totals over all lines, by name."""
        return sum(self.by_line.values(), Counter())

    def add(self, hazard: Hazard) -> None:
        """Keep a hazard, or raise HazardError at once where that was asked for."""
        if self.on_hazard == "raise":
            raise HazardError(hazard)
        if not any(h.kind == hazard.kind and h.line == hazard.line for h in self.hazards):
            self.hazards.append(hazard)

    def __repr__(self) -> str:
        name = self.source.tree.name
        return f"<Report of {name}{self.grid}{self.block}: {len(self.hazards)} hazards>"
