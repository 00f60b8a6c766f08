"""A kernel's source with the counters beside each line, as text and as an HTML table."""

from __future__ import annotations

import itertools
import textwrap
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from html import escape
from typing import NamedTuple

from gemmlab.model.counters import OPS, Counters
from gemmlab.model.transactions import SECTOR, WARP

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
        """The columns by their group, in order."""
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
        """A table that takes its colours from the page: light or dark."""
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
        """The first column of each group, which gets a rule at its left."""
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


def dedented(lines: tuple[str, ...]) -> list[str]:
    """The lines without the margin that they have in common."""
    margin = min([len(x) - len(x.lstrip()) for x in lines if x.strip()])
    return [line[margin:].rstrip() for line in lines]


def _folded(code: str) -> list[str]:
    """A line of code in pieces that are not too wide, the later ones further in."""
    indent = " " * (len(code) - len(code.lstrip()) + 4)
    return textwrap.wrap(code, WIDEST_CODE, subsequent_indent=indent) or [""]


def times(count: int) -> str:
    """How often a hazard was found, where it is more than once."""
    return f"  [{count:,} times in all]" if count > 1 else ""


def _text(value: float) -> str:
    """A count with its thousands apart, a ratio with up to two decimals, nothing for 0."""
    if not value:
        return ""
    return f"{value:,.0f}" if float(value).is_integer() else f"{value:,.2f}"
