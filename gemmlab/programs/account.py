"""What the kernels of a program did: its launches, put together by kernel, grid and block."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import reduce

from gemmlab.model.counters import Counters
from gemmlab.simt import Hazard, Report
from gemmlab.simt.cuda.kernels import Launched
from gemmlab.simt.report.report import with_more


@dataclass
class Row:
    """The launches of a kernel with one grid and one block.

    report : what they did, added up; seconds : that this computer took for them
    """

    report: Report
    launches: int
    seconds: float

    @property
    def kernel(self) -> str:
        """The name of the kernel."""
        return self.report.source.tree.name


@dataclass
class Account:
    """All launches of a program, in the order in which each kind came first."""

    by_kind: dict[tuple, Row] = field(default_factory=dict)

    def add(self, launched: Launched) -> None:
        """Add a launch."""
        report = launched.report
        source = report.source
        kind = (source.file, source.first_line, source.tree.name, report.grid, report.block)
        row = self.by_kind.get(kind)
        if row is None:
            self.by_kind[kind] = Row(report, 1, launched.seconds)
            return
        row.launches += 1
        row.seconds += launched.seconds
        _add(row.report, report)

    @property
    def rows(self) -> list[Row]:
        """The launches by kernel, grid and block."""
        return list(self.by_kind.values())

    @property
    def launches(self) -> int:
        """How many launches there were."""
        return sum(row.launches for row in self.rows)

    @property
    def seconds(self) -> float:
        """Time that this computer took to simulate them [s]."""
        return sum(row.seconds for row in self.rows)

    @property
    def hazards(self) -> list[Hazard]:
        """What went wrong, each kind once a line, with how often."""
        hazards = (h for row in self.rows for h in row.report.hazards)
        return reduce(with_more, hazards, [])


def _add(total: Report, report: Report) -> None:
    """Add to `total` what another launch of its kernel did."""
    for file, lines in report.by_file.items():
        for line, counts in lines.items():
            total.by_file[file].setdefault(line, Counters()).update(counts)
    for place, source in report.sources.items():
        total.sources.setdefault(place, source)
    total.launch.update(report.launch)
    for hazard in report.hazards:
        total.add(hazard)
    for note in report.notes:
        total.note(note)
