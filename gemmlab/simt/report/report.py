"""A report tells what a launch did: counters line by line, hazards, a listing of the source."""

from __future__ import annotations

import itertools
import linecache
import textwrap
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from html import escape
from typing import NamedTuple

import numpy as np

from gemmlab.model.counters import (
    OPS,
    TRANSACTIONS,
    Counters,
    InstructionCounters,
    TransactionCounters,
)
from gemmlab.model.transactions import SECTOR, WARP
from gemmlab.simt.numbers.lanes import Dim3
from gemmlab.simt.races.hazards import Hazard, HazardError, Note
from gemmlab.simt.races.release import Releases
from gemmlab.simt.races.shadow import Shadow
from gemmlab.simt.report.trace import Access, Shares
from gemmlab.simt.report.why_slow import Reason, why_slow
from gemmlab.simt.syntax.source import Source


class Origin(NamedTuple):
    """What was launched: its name, and where it is defined."""

    name: str
    file: str
    line: int

    @classmethod
    def of(cls, function: Callable) -> Origin:
        code = function.__code__
        return cls(function.__name__, code.co_filename, code.co_firstlineno)


class Report:
    """A report of a simulated launch.

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
    origin : the kernel, or the function of which `vectorize` or `reduce` has made one
    types, numbers : the types of the arguments that are arrays, and of those that are floats
    marks : warp instructions of the kinds of `model.counters.MARKS`, by file, line and kind
    sampled : how many blocks were simulated, where these were not all
    launches : how many are added up here
    idle : threads that did nothing but test their index; None where that was not counted
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
        self.in_doubt = False  # whether all hazards are reads that perhaps decide nothing
        self.turns = 0  # of the loop that made most of them
        self.undecided: list[tuple[Shadow, int, Hazard]] = []  # by the line of a read
        self.printed: list[str] = []  # lines of text, shown when the launch is over
        self.notes: tuple[Note, ...] = ()
        self.trace: list[Access] = []
        self.shares: Shares | None = None
        self.origin = Origin(source.tree.name, source.file, source.first_line)
        self.types: dict[str, np.dtype] = {}
        self.numbers: dict[str, np.dtype] = {}
        self.marks: Counter[tuple[str, int, str]] = Counter()
        self.idle: int | None = None
        self.sampled: int | None = None
        self.launches = 1

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

    def why_slow(self) -> tuple[Reason, ...]:
        """Return what may make the kernel slow, the weightiest first, each with its line."""
        return why_slow(self)

    def counters_of(self, source: Source, line: int) -> Counters:
        """Return the counters of `line`, a line of the function in `source`."""
        lines = self.by_file[source.file]
        if line not in lines:
            self.sources.setdefault((source.file, source.first_line), source)
            lines[line] = Counters()
        return lines[line]

    def add(self, hazard: Hazard, in_doubt: bool = False) -> None:
        """Keep a hazard, or raise HazardError at once where that was asked for.

        in_doubt : it is a read of what nobody has written, and a fault if that decides anything:
            `trust` or `acquit` has to follow, unless another hazard does
        """
        self.in_doubt = in_doubt and (self.in_doubt or not self.hazards)
        if self.on_hazard == "raise" and not in_doubt:
            self.trust()
            raise HazardError(hazard)
        self.hazards = with_more(self.hazards, hazard)

    def trust(self) -> None:
        """Take the hazards in doubt for hazards: raise the first one where that was asked for."""
        self.in_doubt = False
        if self.on_hazard == "raise" and self.hazards:
            first = self.hazards[0]
            error = HazardError(first)
            names = {
                source.first_line: source.tree.name
                for source in self.sources.values()
                if source.file == first.file and source.first_line <= first.line
            }
            name = names[max(names)] if names else self.source.tree.name
            error.place = first.file, first.line, name
            raise error

    def acquit(self) -> None:
        """Note the hazards in doubt, which are none: what was read decides nothing."""
        doubted, self.hazards, self.in_doubt = self.hazards, [], False
        for hazard in doubted:
            where, _, who = hazard.message.partition(" [block")
            text = f"{where}; it is stored nowhere and decides nothing [block{who}"
            place = hazard.block, hazard.threads[0]
            self.note(Note(hazard.line, hazard.code, *place, text, "unwritten", hazard.file,
                           hazard.count))  # fmt: skip

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
            dedented = textwrap.dedent("\n".join(source.lines)).split("\n")
            rows = tuple(
                Row(line, code.rstrip(), counts.get(line, Counters()), marks.get(line, ()))
                for line, code in enumerate(dedented, source.first_line)
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
            notes=(*filter(None, (launch,)), *(str(n) + _times(n.count) for n in self.notes)),
            hazards=tuple(
                "\n".join(filter(None, (str(h) + _times(h.count), h.story))) for h in self.hazards
            ),
        )

    def _repr_html_(self) -> str:
        return self.listing()._repr_html_()

    def __repr__(self) -> str:
        name = self.source.tree.name
        notes = f", {len(self.notes)} notes" if self.notes else ""
        return f"<Report of {name}{self.grid}{self.block}: {len(self.hazards)} hazards{notes}>"


def with_more(known: Iterable, new: Hazard | Note) -> list:
    """Add a hazard or note to those known, or to the count of one of its kind at its line."""
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


WIDEST_CODE = 88  # characters, in text; longer lines go on below


class Column(NamedTuple):
    """A column of the listing: its group, its name, its number for a line, and what it means."""

    group: str
    name: str
    value: Callable[[Counters], float]
    meaning: str


class Row(NamedTuple):
    """A line of the source; `marks` names the kinds of its hazards."""

    line: int
    code: str
    counts: Counters
    marks: tuple[str, ...]


def _named(name: str) -> Callable[[Counters], float]:
    return lambda c: c[name]


def _total(space: str, what: str) -> Callable[[Counters], float]:
    return lambda c: sum(c[f"{space}_{op}_{what}"] for op in OPS)


def _ratio(over: Callable, under: Callable) -> Callable[[Counters], float]:
    return lambda c: over(c) / under(c) if under(c) else 0


_requests, _sectors = _total("global", "requests"), _total("global", "sectors")
_lanes = _ratio(_named("thread_inst_executed"), _named("inst_executed"))
WARPS, GLOBAL, SHARED = "warps", "global memory", "shared memory"
ATOMICS, BLOCK = "atomics", "block"
COLUMNS = (
    Column(WARPS, "inst", _named("inst_executed"), "warp instructions executed"),
    Column(WARPS, "lanes", _lanes, f"active lanes per warp instruction, of {WARP}"),
    Column(GLOBAL, "requests", _requests, "warp instructions that access global memory"),
    Column(GLOBAL, "sectors", _sectors, f"{SECTOR}-byte sectors that they touch"),
    Column(GLOBAL, "sect/req", _ratio(_sectors, _requests), "sectors per request"),
    Column(SHARED, "requests", _total("shared", "requests"), "warp instructions that access it"),
    Column(SHARED, "wavefronts", _total("shared", "wavefronts"), "passes that they take"),
    Column(
        SHARED, "conflicts", _named("shared_bank_conflicts"), "wavefronts due to bank conflicts"
    ),
    Column(ATOMICS, "global", _named("global_atomic_requests"), "of the requests, the atomics"),
    Column(ATOMICS, "shared", _named("shared_atomic_requests"), "of the requests, the atomics"),
    Column(BLOCK, "barriers", _named("barriers"), "barriers, counted once a block"),
)


@dataclass(frozen=True)
class Listing:
    """A kernel's source with counters; it prints as text and shows as a table in notebooks.

    title : the launch; parts : (name, rows) of the kernel and of each device function
    total : the last row; columns : those of which some line has a number, whole groups of them
    notes : counters of the launch, and what is worth knowing
    hazards : in full, with how often each was found
    """

    title: str
    parts: tuple[tuple[str, tuple[Row, ...]], ...]
    total: Row
    columns: tuple[Column, ...]
    notes: tuple[str, ...]
    hazards: tuple[str, ...]

    def groups(self) -> list[tuple[str, list[Column]]]:
        return [(k, list(g)) for k, g in itertools.groupby(self.columns, lambda c: c.group)]

    def __str__(self) -> str:
        rows = [*(row for _, rows in self.parts for row in rows), self.total]
        cells = {id(row): [_text(c.value(row.counts)) for c in self.columns] for row in rows}
        widths = [
            max(len(column.name), *(len(cells[id(row)][i]) for row in rows))
            for i, column in enumerate(self.columns)
        ]
        code = max(min(len(row.code), WIDEST_CODE) for row in rows)

        def across(line: str, text: str, values: Iterable[str]) -> str:
            parts = [f"{v:>{w}}" for v, w in zip(values, widths, strict=True)]
            return "  ".join([f"{line:>5}", f"{text:<{code}}", *parts])

        size = dict(zip(self.columns, widths, strict=True))
        over = [(group, sum(size[c] + 2 for c in columns)) for group, columns in self.groups()]
        out = [self.title, " " * (7 + code) + "".join(f"  {g:<{w - 2}}" for g, w in over)]
        out.append(across("line", "code", [c.name for c in self.columns]))
        for name, of_part in [*self.parts, ("", (self.total,))]:
            out += [across("", name, [""] * len(widths))] if name and len(self.parts) > 1 else []
            for row in of_part:
                first, *more = _folded(row.code)
                marks = "".join(f"  <- {mark}" for mark in row.marks)
                out.append(across(str(row.line or ""), first, cells[id(row)]) + marks)
                out += [" " * 7 + text for text in more]
        return "\n".join(line.rstrip() for line in [*out, *self.notes, *self.hazards])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        """Return a table that takes its colours from the page: light or dark."""
        wide = len(self.columns) + 2
        top = "".join(
            f'<th scope="colgroup" colspan="{len(columns)}" style="{_CELL}{_RULE}'
            f'text-align:center">{escape(group)}</th>'
            for group, columns in self.groups()
        )
        names = "".join(
            f'<th scope="col" title="{escape(c.meaning)}" style="{_CELL}{_EDGE[c in first]}'
            f'text-align:right">{escape(c.name)}</th>'
            for first in [self._first()]
            for c in self.columns
        )
        body = ""
        for name, rows in self.parts:
            if len(self.parts) > 1:
                body += (
                    f'<tr style="background:none"><th scope="rowgroup" colspan="{wide}" '
                    f'style="{_CELL}{_RULE}text-align:left">{escape(name)}</th></tr>'
                )
            body += "".join(self._html_row(row) for row in rows)
        total = self._html_row(self.total)
        notes = "".join(f"<br>{escape(n)}".replace("\n", "<br>") for n in self.notes)
        hazards = "".join(f"<li>{escape(h).replace(chr(10), '<br>')}</li>" for h in self.hazards)
        return (
            f'<div style="overflow-x:auto;max-width:100%" role="region" tabindex="0" '
            f'aria-label="Source of {escape(self.title)}"><table style="border-collapse:collapse;'
            f'table-layout:auto;width:auto;margin:0;font-size:12px;color:inherit">'
            f'<caption style="caption-side:top;text-align:left;color:inherit;padding:0 0 .5em">'
            f"{escape(self.title)}{notes}</caption>"
            f'<thead><tr style="background:none"><td colspan="2" style="{_CELL}"></td>{top}'
            f'</tr><tr style="background:none">'
            f'<th scope="col" style="{_CELL}text-align:right">line</th>'
            f'<th scope="col" style="{_CELL}text-align:left">code</th>{names}'
            "</tr></thead>"
            f'<tbody>{body}</tbody><tfoot style="border-top:{_LINE}">{total}</tfoot></table></div>'
            + (f'<ul style="margin:.5em 0;font-size:12px">{hazards}</ul>' if hazards else "")
        )

    def _first(self) -> set[Column]:
        """Return the first column of each group, which gets a rule at its left."""
        return {columns[0] for _, columns in self.groups()}

    def _html_row(self, row: Row) -> str:
        first = self._first()
        cells = "".join(
            f'<td style="{_CELL}{_EDGE[c in first]}text-align:right;'
            f'font-variant-numeric:tabular-nums">{_text(c.value(row.counts))}</td>'
            for c in self.columns
        )
        marks = "".join(
            f"<div><strong>\N{WARNING SIGN} {escape(mark)}</strong></div>" for mark in row.marks
        )
        look = _HAZARD if row.marks else "background:none"
        indent = len(row.code) - len(row.code.lstrip()) + 4  # of the rest of a line that wraps
        line = (
            f'<th scope="row" style="{_CELL}{_NUMBER}">{row.line}</th>' if row.line else "<td></td>"
        )
        return (
            f'<tr style="{look}">{line}'
            f'<td style="{_CELL}text-align:left;min-width:26em">'
            f'<code style="display:block;white-space:pre-wrap;background:none;padding:0 0 0 '
            f'{indent}ch;text-indent:-{indent}ch;color:inherit;font-size:inherit">'
            f"{escape(row.code)}</code>{marks}</td>{cells}</tr>"
        )


_NUMBER = "text-align:right;opacity:.75;font-weight:normal"
_CELL = "padding:1px 6px;border:0;color:inherit;vertical-align:top;"
_LINE = "1px solid rgba(128,128,128,.5)"
_RULE = f"border-bottom:{_LINE};"
_EDGE = {False: "", True: f"border-left:{_LINE};"}
# Vermilion of the Okabe-Ito palette, thin enough for black and for white text; the mark says why.
_HAZARD = "background:rgba(213,94,0,.22)"


def _folded(code: str) -> list[str]:
    """Return a line of code in pieces that are not too wide, the later ones further in."""
    indent = " " * (len(code) - len(code.lstrip()) + 4)
    return textwrap.wrap(code, WIDEST_CODE, subsequent_indent=indent) or [""]


def _times(count: int) -> str:
    """Return the words for how often a hazard was found, where it is more than once."""
    return f"  [{count:,} times in all]" if count > 1 else ""


def _text(value: float) -> str:
    """Return a count with its thousands apart, a ratio with up to two decimals, nothing for 0."""
    if not value:
        return ""
    return f"{value:,.0f}" if float(value).is_integer() else f"{value:,.2f}"
