"""What a simulated launch did: counters, line by line, and hazards."""

from __future__ import annotations

import linecache
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

from gemmlab.model.counters import (
    OPS,
    TRANSACTIONS,
    Counters,
    InstructionCounters,
    TransactionCounters,
)
from gemmlab.model.transactions import SECTOR
from gemmlab.simt.numbers.lanes import Dim3
from gemmlab.simt.races.hazards import Hazard, HazardError, Note
from gemmlab.simt.races.release import Releases
from gemmlab.simt.races.shadow import Shadow
from gemmlab.simt.report.listing import COLUMNS, Listing, Row, dedented, times
from gemmlab.simt.report.trace import Access, Shares
from gemmlab.simt.syntax.source import Source


class Report:
    """What a simulated launch did.

    counters : totals by name, in Nsight Compute's words (`model.counters.TRANSACTIONS`); 0 for a
        counter that did not occur, KeyError for a name that is none
    instructions : the same of warp instructions (`model.counters.INSTRUCTIONS`)
    derived : ratios of them, as `derived` gives them
    by_line : counters of each line of the kernel's file, device functions in it included
    by_file : the same for every file, by_file[file][line]
    hazards : what went wrong, in the order found, each kind once a line; `.count` says how often
    notes : what is no fault but worth knowing, such as threads that had returned before a barrier,
        or indices below 0 that count from the end
    trace : accesses of the lines that were traced
    shares : what each thread loads and stores, where that was counted
    grid, block : of the launch, as (x, y, z)
    """

    def __init__(self, source: Source, grid: Dim3, block: Dim3, on_hazard: str) -> None:
        self.source, self.grid, self.block, self.on_hazard = source, grid, block, on_hazard
        self.by_line: dict[int, Counters] = {}
        self.by_file = defaultdict(dict, {source.file: self.by_line})
        self.sources = {(source.file, source.first_line): source}  # the kernel, device functions
        self.launch = Counters()  # what belongs to no line
        self.watchers: list[Callable] = []  # called with each access to memory, before it is made
        self.releases = Releases()  # of global memory, by fences and atomics
        self.hazards: list[Hazard] = []
        self.undecided: list[tuple[Shadow, int, Hazard]] = []  # by the line of a read
        self.printed: list[str] = []  # lines of text, shown when the launch is over
        self.notes: tuple[Note, ...] = ()
        self.trace: list[Access] = []
        self.shares: Shares | None = None

    @property
    def counters(self) -> TransactionCounters:
        """Totals over all lines, by name; a prediction has the same."""
        total = self._total()
        return TransactionCounters({k: v for k, v in total.items() if k in TRANSACTIONS})

    @property
    def instructions(self) -> InstructionCounters:
        """Totals of warp instructions over all lines, by name."""
        total = self._total()
        return InstructionCounters({k: v for k, v in total.items() if k not in TRANSACTIONS})

    def _total(self) -> Counter[str]:
        """Totals over all lines, without zeros."""
        lines = [counts for file in self.by_file.values() for counts in file.values()]
        return sum(lines, Counter(self.launch))

    @property
    def derived(self) -> dict[str, float]:
        """Ratios of the totals."""
        return derived(self._total())

    @property
    def divergence(self) -> dict[int, float]:
        """Active lanes per warp instruction, 32 at best, for each line of the kernel's file."""
        found = {line: derived(counts) for line, counts in sorted(self.by_line.items())}
        return {line: d["active_lanes"] for line, d in found.items() if "active_lanes" in d}

    def counters_of(self, source: Source, line: int) -> Counters:
        """The counters of `line`, a line of the function in `source`."""
        lines = self.by_file[source.file]
        if line not in lines:
            self.sources.setdefault((source.file, source.first_line), source)
            lines[line] = Counters()
        return lines[line]

    def add(self, hazard: Hazard) -> None:
        """Keep a hazard, or raise HazardError at once where that was asked for."""
        if self.on_hazard == "raise":
            raise HazardError(hazard)
        self.hazards = with_more(self.hazards, hazard)

    def postpone(self, shadow: Shadow, line: int, hazard: Hazard) -> None:
        """Keep a race of a read in `line` with an atomic, which is none if a CAS loop begins so."""
        for i, (of, read, known) in enumerate(self.undecided):
            if of is shadow and (read, known.line, known.file) == (line, hazard.line, hazard.file):
                more = replace(known, count=known.count + hazard.count)
                self.undecided[i] = shadow, line, more
                return
        self.undecided.append((shadow, line, hazard))

    def decide(self) -> None:
        """Report what was postponed, now that it is known what the threads did with what they read.

        A compare-and-swap makes sure that what its thread has read before still holds.
        """
        undecided, self.undecided = self.undecided, []
        for shadow, line, hazard in undecided:
            if line not in shadow.first_reads:
                self.add(hazard)
                continue
            text = f"reads elements of {hazard.array} that other threads update by atomics; a "
            text += "compare-and-swap compares what was read, so that this is no hazard"
            read = next(touch for touch in hazard.touches if touch.op == "read")
            code = linecache.getline(hazard.file, line).strip()
            place = read.block, read.thread
            self.note(Note(line, code, *place, text, "first-read", hazard.file, hazard.count))

    def note(self, note: Note) -> None:
        """Keep a note, one of each kind once a line."""
        self.notes = tuple(with_more(self.notes, note))

    def listing(self) -> Listing:
        """The source with the counters beside each line, as text and as a table in notebooks."""
        parts = []
        for source in self.sources.values():
            counts = self.by_file[source.file]
            marks = {
                line: tuple(dict.fromkeys(h.kind for h in self.hazards
                                          if (h.file or self.source.file) == source.file
                                          and h.line == line))
                for line in {h.line for h in self.hazards}
            }  # fmt: skip
            rows = tuple(
                Row(line, code, counts.get(line, Counters()), marks.get(line, ()))
                for line, code in enumerate(dedented(source.lines), source.first_line)
            )
            parts.append((source.tree.name, rows))
        some = [row.counts for _, rows in parts for row in rows]
        used = {c.group for c in COLUMNS if any(c.value(counts) for counts in some)}
        launch = ", ".join(f"{name} {value:,}" for name, value in self.launch.items())
        return Listing(
            title=f"{self.source.tree.name}: grid {self.grid}, block {self.block}, simulated",
            parts=tuple(parts),
            total=Row(0, "total", Counters({**self.counters, **self.instructions}), ()),
            columns=tuple(c for c in COLUMNS if c.group in used),
            notes=(*filter(None, (launch,)), *(str(n) + times(n.count) for n in self.notes)),
            hazards=tuple(str(h) + times(h.count) for h in self.hazards),
        )

    def _repr_html_(self) -> str:
        return self.listing()._repr_html_()

    def __repr__(self) -> str:
        name = self.source.tree.name
        notes = f", {len(self.notes)} notes" if self.notes else ""
        return f"<Report of {name}{self.grid}{self.block}: {len(self.hazards)} hazards{notes}>"


def with_more(known: Iterable, new: Hazard | Note) -> list:
    """What is known and what is new, counted as one with that of its kind at its line, if any."""
    found = list(known)
    for i, one in enumerate(found):
        if (one.kind, one.file, one.line) == (new.kind, new.file, new.line):
            found[i] = replace(one, count=one.count + new.count)
            return found
    return [*found, new]


def derived(counts: Mapping[str, int]) -> dict[str, float]:
    """Ratios of counters, each where its denominator is not 0.

    global_load_sectors_per_request : 4 for 32 neighbouring 4-byte elements, 32 at worst
    global_load_efficiency : bytes that lanes ask for / bytes of the sectors that move; above 1
        where lanes share an element
    shared_load_wavefronts_per_request : 1 without bank conflicts, for elements of 4 bytes
    active_lanes : lanes that run per warp instruction, 32 at best

    The same for stores and atomics.

    >>> derived({"global_load_requests": 2, "global_load_sectors": 8, "global_load_bytes": 256})
    {'global_load_sectors_per_request': 4.0, 'global_load_efficiency': 1.0}
    """
    ratios: dict[str, tuple[str, str, int]] = {}
    for op in OPS:
        at = f"global_{op}_"
        ratios[f"{at}sectors_per_request"] = f"{at}sectors", f"{at}requests", 1
        ratios[f"{at}efficiency"] = f"{at}bytes", f"{at}sectors", SECTOR
    for op in OPS:
        at = f"shared_{op}_"
        ratios[f"{at}wavefronts_per_request"] = f"{at}wavefronts", f"{at}requests", 1
    ratios["active_lanes"] = "thread_inst_executed", "inst_executed", 1
    return {
        name: counts[over] / (unit * counts[under])
        for name, (over, under, unit) in ratios.items()
        if counts.get(over) and counts.get(under)
    }
