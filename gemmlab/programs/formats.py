"""The account of a program as text, as JSON and as a page of HTML."""

import json
from collections.abc import Callable
from dataclasses import asdict
from html import escape
from typing import Any, NamedTuple

from gemmlab.device import device as load_device
from gemmlab.model.counters import OPS
from gemmlab.programs.running import Outcome, Row
from gemmlab.simt import Hazard
from gemmlab.simt.races.hazards import Note

TIMES = "seconds are this computer's, for the simulation; no GPU was timed"


class Column(NamedTuple):
    """A column of the table of launches: its name, its text for a row, and what it means."""

    name: str
    text: Callable[[Row], str]
    meaning: str


def _size(sizes: tuple[int, int, int]) -> str:
    """Return a grid or a block without the sizes of 1 at its end."""
    x, y, z = sizes
    return "×".join(map(str, (x, y, z) if z > 1 else (x, y) if y > 1 else (x,)))


def _sum(*names: str) -> Callable[[Row], str]:
    def text(row: Row) -> str:
        counts = {**row.report.counters, **row.report.instructions}
        return f"{sum(counts.get(name, 0) for name in names):,}"

    return text


COLUMNS = (
    Column("kernel", lambda row: row.kernel, "its name"),
    Column("grid", lambda row: _size(row.report.grid), "blocks along x, y, z"),
    Column("block", lambda row: _size(row.report.block), "threads along x, y, z"),
    Column("launches", lambda row: f"{row.launches:,}", "with this grid and block"),
    Column("seconds", lambda row: f"{row.seconds:.3f}", TIMES),
    Column("instructions", _sum("inst_executed"), "of warps, one for each operation of the source"),
    Column("loaded", _sum("global_load_sectors"), "32-byte sectors of global memory"),
    Column("stored", _sum("global_store_sectors"), "32-byte sectors of global memory"),
    Column("atomics", _sum("global_atomic_requests", "shared_atomic_requests"),
           "warp instructions, in global and shared memory"),
    Column("wavefronts", _sum(*(f"shared_{op}_wavefronts" for op in OPS)),
           "passes of shared memory"),
    Column("conflicts", _sum("shared_bank_conflicts"), "passes due to bank conflicts"),
    Column("barriers", _sum("barriers"), "counted once a block"),
    Column("hazards", lambda row: str(len(row.report.hazards)), "kinds of hazards, by line"),
)  # fmt: skip
LEFT = ("kernel", "grid", "block")  # columns of names, not of amounts


def headline(outcome: Outcome) -> str:
    """Return the program, and what came of it, in a sentence."""
    account = outcome.account
    what = [_count(account.launches, "launch", "launches"), _count(len(account.hazards), "hazard")]
    if outcome.unended:
        what.append(f"{_count(len(outcome.unended), 'launch', 'launches')} had not ended")
    ended = "" if outcome.status == 0 else f"; it ended with status {outcome.status}"
    return f"{outcome.target} on a simulated GPU: {', '.join(what)}{ended}"


def _count(number: int, one: str, many: str = "") -> str:
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def remarks(outcome: Outcome) -> list[str]:
    """Say what to know about the figures."""
    plain = "Numba is not installed: functions of njit ran as plain Python"
    none = "no kernel was launched"
    return [TIMES, *([] if outcome.numba else [plain]), *([] if outcome.account.rows else [none])]


def findings(outcome: Outcome) -> list[str]:
    """Launches without an end, hazards, then notes, with their places and how often."""
    notes = [note for row in outcome.account.rows for note in row.report.notes]
    return [
        *(
            f"{one.kernel}, grid {_size(one.grid)}, block {_size(one.block)}: this launch had not "
            "ended when its process did"
            for one in outcome.unended
        ),
        *(_told(found) for found in (*outcome.account.hazards, *dict.fromkeys(notes))),
    ]


def _told(found: Hazard | Note) -> str:
    first, *_ = str(found).splitlines()
    times = f"  [{found.count:,} times in all]" if found.count > 1 else ""
    story = found.story if isinstance(found, Hazard) else ""
    place = f"  {found.file}, line {found.line}: {found.code}"
    return "\n".join(filter(None, (f"{first}{times}", place, story)))


def predictions(outcome: Outcome) -> list[str]:
    """Return a heading, and a line for each kind of launch; nothing where nothing was predicted."""
    if not outcome.predicted:
        return []
    title = load_device(outcome.device).title
    lines = (
        f"{p.kernel}, grid {_size(p.grid)}, block {_size(p.block)}: "
        + (f"{1e6 * p.seconds:.4g} µs. " if p.seconds else "nothing. ")
        + p.text
        for p in outcome.predicted
    )
    return [f"One launch on an {title}, predicted from its compiled code:", *lines]


# ------------------------------------------------------------------------------------------ text


def as_text(outcome: Outcome) -> str:
    """Return a table of launches, then hazards and notes."""
    rows = [[column.text(row) for column in COLUMNS] for row in outcome.account.rows]
    lines = [[column.name for column in COLUMNS], *rows]
    widths = [max(map(len, cells)) for cells in zip(*lines, strict=True)]
    table = [
        "  ".join(
            f"{cell:<{width}}" if column.name in LEFT else f"{cell:>{width}}"
            for cell, width, column in zip(cells, widths, COLUMNS, strict=True)
        ).rstrip()
        for cells in lines
    ]
    parts = [headline(outcome), "\n".join(table) if rows else "", *findings(outcome)]
    parts += ["\n  ".join(predictions(outcome))]
    return "\n\n".join(filter(None, [*parts, *remarks(outcome)])) + "\n"


# ------------------------------------------------------------------------------------------ JSON


def _as_data(hazard: Hazard) -> dict:
    """Return the fields of a hazard, and its story."""
    return asdict(hazard) | {"story": hazard.story}


def as_json(outcome: Outcome) -> str:
    """Give all of it as data: the names of counters and fields are those of `simt.Report`."""
    return json.dumps(
        {
            "program": outcome.target,
            "arguments": list(outcome.arguments),
            "status": outcome.status,
            "simulated": True,
            "remarks": remarks(outcome),
            "launches": [_row(row) for row in outcome.account.rows],
            "hazards": [_as_data(hazard) for hazard in outcome.account.hazards],
            "unended": [asdict(one) for one in outcome.unended],
            "predicted_for": outcome.device,
            "predicted": [asdict(one) for one in outcome.predicted],
        },
        indent=1,
        default=int,
    )


def _row(row: Row) -> dict[str, Any]:
    report = row.report
    return {
        "kernel": row.kernel,
        "file": report.source.file,
        "line": report.source.first_line,
        "grid": report.grid,
        "block": report.block,
        "launches": row.launches,
        "seconds": row.seconds,
        "counters": dict(report.counters),
        "instructions": dict(report.instructions),
        "derived": report.derived,
        "hazards": [_as_data(hazard) for hazard in report.hazards],
        "notes": [asdict(note) for note in report.notes],
    }


# ------------------------------------------------------------------------------------------ HTML

STYLE = """
:root { color-scheme: light dark; }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 80em; margin: 2em auto; padding: 0 1em; }
.wide { overflow-x: auto; }
table.launches { border-collapse: collapse; font-variant-numeric: tabular-nums; }
table.launches th, table.launches td { padding: 2px 10px; text-align: right; }
table.launches .name { text-align: left; }
table.launches thead { border-bottom: 1px solid; }
pre { white-space: pre-wrap; border-left: 3px solid #d55e00; padding-left: .8em; }
summary { cursor: pointer; }
"""


def as_html(outcome: Outcome) -> str:
    """A page that needs no other file: the table, the hazards, and the source of each kernel."""
    title = escape(headline(outcome))
    found = "".join(f"<pre>{escape(text)}</pre>" for text in findings(outcome))
    sources = "".join(
        f"<details{' open' if row.report.hazards else ''}><summary>{escape(row.kernel)}, grid "
        f"{_size(row.report.grid)}, block {_size(row.report.block)}, "
        f"{_count(row.launches, 'launch', 'launches')}</summary>"
        f"{row.report.listing()._repr_html_()}</details>"
        for row in outcome.account.rows
    )
    parts = [
        _html_table(outcome),
        "".join(f"<p>{escape(line)}</p>" for line in predictions(outcome)),
        f"<h2>Hazards and notes</h2>{found}" if found else "",
        f"<h2>Source, line by line</h2>{sources}" if sources else "",
        "".join(f"<p>{escape(remark)}</p>" for remark in remarks(outcome)),
    ]
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width">'
        f"<title>{title}</title><style>{STYLE}</style></head>\n"
        f"<body><main><h1>{title}</h1>{''.join(parts)}</main></body></html>\n"
    )


def _html_table(outcome: Outcome) -> str:
    """Return the table of launches; nothing where there were none."""
    if not outcome.account.rows:
        return ""

    def kind(column: Column) -> str:
        return ' class="name"' if column.name in LEFT else ""

    head = "".join(
        f'<th scope="col"{kind(c)} title="{escape(c.meaning)}">{c.name}</th>' for c in COLUMNS
    )
    body = "".join(
        "<tr>" + "".join(f"<td{kind(c)}>{escape(c.text(row))}</td>" for c in COLUMNS) + "</tr>"
        for row in outcome.account.rows
    )
    return (
        '<div class="wide" role="region" tabindex="0" aria-label="Launches">'
        f'<table class="launches"><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'
    )


FORMATS = {"text": as_text, "json": as_json, "html": as_html}
