"""The account of a program as text, as JSON and as a page of HTML."""

import itertools
import json
import math
import textwrap
from collections.abc import Callable, Iterator
from dataclasses import asdict
from html import escape
from pathlib import Path
from typing import Any, NamedTuple

from gemmlab.device import device as load_device
from gemmlab.model.counters import OPS
from gemmlab.model.transactions import WARP
from gemmlab.programs.running import Outcome, Row
from gemmlab.simt import Hazard
from gemmlab.simt.races.hazards import Note

FIGURES = (
    "lanes: at work in a warp instruction, of 32; sectors have 32 bytes; used: what lanes ask for, "
    "of what moves, above 100% where they share it"
)
COMPILED = "--device h200 adds times on that GPU, registers and spills, from compiled code"
TIMES = "seconds are this computer's, for the simulation; no GPU was timed"


class Column(NamedTuple):
    """A column of the table of launches: its name, its text for a row, and what it means.

    The text is empty where there is nothing to tell; a column without any text is left out.
    group : what several columns are about, which stands above their names
    left : whether it has names, not amounts
    """

    name: str
    text: Callable[[Row], str]
    meaning: str
    group: str = ""
    left: bool = False


def _size(sizes: tuple[int, int, int]) -> str:
    """Return a grid or a block without the sizes of 1 at its end."""
    x, y, z = sizes
    return "×".join(map(str, (x, y, z) if z > 1 else (x, y) if y > 1 else (x,)))


def _counted(row: Row, names: tuple[str, ...]) -> int:
    counts = {**row.report.counters, **row.report.instructions}
    return sum(counts.get(name, 0) for name in names)


def _sum(*names: str) -> Callable[[Row], str]:
    """Return a column's text: a sum of counters, nothing for 0."""

    def text(row: Row) -> str:
        total = _counted(row, names)
        return f"{total:,}" if total else ""

    return text


def _derived(name: str, form: str) -> Callable[[Row], str]:
    """Return a column's text: a ratio of counters, nothing where there is none."""

    def text(row: Row) -> str:
        ratios = row.report.derived
        return format(ratios[name], form) if name in ratios else ""

    return text


def _conflicts_per_access(row: Row) -> str:
    conflicts = _counted(row, ("shared_bank_conflicts",))
    requests = _counted(row, tuple(f"shared_{op}_requests" for op in OPS))
    return f"{conflicts / requests:.2f}" if conflicts and requests else ""


WARPS, SHARED = "warps", "shared memory"
USED = "bytes that lanes ask for, of the bytes that move; over 100% where lanes share them"
COLUMNS = (
    Column("kernel", lambda row: row.kernel, "its name", left=True),
    Column("defined at", lambda row: row.place, "its file and line", left=True),
    Column("grid", lambda row: _size(row.report.grid), "blocks along x, y, z", left=True),
    Column("block", lambda row: _size(row.report.block), "threads along x, y, z", left=True),
    Column("launches", lambda row: f"{row.launches:,}", "with this grid and block"),
    Column("seconds", lambda row: f"{row.seconds:.3f}", TIMES),
    Column("hazards", lambda row: str(len(row.report.hazards)), "kinds of hazards, by line"),
    Column("instructions", _sum("inst_executed"), "one for each operation of the source", WARPS),
    Column("lanes", _derived("active_lanes", ".1f"), f"at work in one of them, of {WARP}", WARPS),
    *(
        column
        for op in ("load", "store")
        for column in (
            Column("sectors", _sum(f"global_{op}_sectors"), "of 32 bytes", f"global {op}s"),
            Column("used", _derived(f"global_{op}_efficiency", ".0%"), USED, f"global {op}s"),
        )
    ),
    Column("wavefronts", _sum(*(f"shared_{op}_wavefronts" for op in OPS)), "passes", SHARED),
    Column("conflicts", _sum("shared_bank_conflicts"), "passes due to bank conflicts", SHARED),
    Column("per access", _conflicts_per_access, "conflicts of a warp's access", SHARED),
    Column("atomics", _sum("global_atomic_requests", "shared_atomic_requests"),
           "warp instructions, in global and shared memory"),
    Column("barriers", _sum("barriers"), "counted once a block"),
)  # fmt: skip


def table(outcome: Outcome) -> tuple[list[Column], list[list[str]]]:
    """Return the columns that have something to tell, and a row of their texts for each kind."""
    rows = [[column.text(row) for column in COLUMNS] for row in outcome.account.rows]
    some = [i for i, column in enumerate(COLUMNS) if any(row[i] for row in rows)]
    return [COLUMNS[i] for i in some], [[row[i] for i in some] for row in rows]


def _groups(columns: list[Column]) -> list[tuple[str, int]]:
    """Return the groups of columns that follow each other, each with its number of columns."""
    return [(name, len(list(g))) for name, g in itertools.groupby(columns, lambda c: c.group)]


def _called(row: Row) -> str:
    return f"{row.kernel} ({row.place})"


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
    said = [FIGURES, TIMES] if outcome.account.rows else [TIMES, "no kernel was launched"]
    if outcome.account.rows and not outcome.device:
        said.insert(1, COMPILED)
    return said if outcome.numba else [*said, plain]


def findings(outcome: Outcome) -> list[str]:
    """Launches without an end or of a sample, hazards, then notes, with places and how often."""
    notes = [note for row in outcome.account.rows for note in row.report.notes]
    return [
        *(
            f"{one.kernel} ({one.place}), grid {_size(one.grid)}, block {_size(one.block)}: this "
            "launch had not ended when its process did"
            for one in outcome.unended
        ),
        *(
            f"{_called(row)}, grid {_size(row.report.grid)}: {row.report.sampled:,} of "
            f"{math.prod(row.report.grid):,} blocks were simulated, the first and the last; what "
            "the others store is missing, and they are not counted"
            for row in outcome.account.rows
            if row.report.sampled is not None
        ),
        *(_told(found) for found in (*outcome.account.hazards, *dict.fromkeys(notes))),
    ]


def _told(found: Hazard | Note) -> str:
    first, *_ = str(found).splitlines()
    times = f"  [{found.count:,} times in all]" if found.count > 1 else ""
    story = found.story if isinstance(found, Hazard) else ""
    place = f"  {found.file}, line {found.line}: {found.code}"
    return "\n".join(filter(None, (f"{first}{times}", place, story)))


def reasons(outcome: Outcome) -> list[str]:
    """Say of each kernel what may make it slow, line by line; once for all its launches."""
    told: dict[str, dict[str, list[str]]] = {}
    known = set()
    for row in outcome.account.rows:
        for one in row.report.why_slow():
            if (kind := (_called(row), one.file, one.line, one.kind)) in known:
                continue
            known.add(kind)
            elsewhere = f"{Path(one.file).name}, " * (one.file != row.report.source.file)
            place = f"{elsewhere}line {one.line}: {one.code}" if one.line else "the launch"
            of_kernel = told.setdefault(f"Why {_called(row)} may be slow:", {})
            of_kernel.setdefault(place, []).append(f"{one.kind}: {one.text}")
    blocks = []
    for title, places in told.items():
        lines = [title]
        for place, texts in places.items():
            lines += [f"  {place}", *(line for text in texts for line in _wrapped(text))]
        blocks.append("\n".join(lines))
    return blocks


def _wrapped(text: str) -> list[str]:
    return textwrap.wrap(text, 110, initial_indent="    ", subsequent_indent="      ")


def predictions(outcome: Outcome) -> list[str]:
    """Return a heading, and some lines for each kind of launch; nothing if nothing is predicted."""
    if not outcome.predicted:
        return []
    title = load_device(outcome.device).title
    told = (
        "\n".join([
            f"{p.kernel} ({p.place}), grid {_size(p.grid)}, block {_size(p.block)}: "
            + (f"{1e6 * p.seconds:.4g} µs" if p.seconds else "nothing"),
            p.text, *p.code,
        ])
        for p in outcome.predicted
    )  # fmt: skip
    return [f"One launch on an {title}, predicted from its compiled code:", *told]


# ------------------------------------------------------------------------------------------ text


def as_text(outcome: Outcome) -> str:
    """Return a table of launches, then hazards and notes."""
    parts = [headline(outcome), _text_table(*table(outcome)), *findings(outcome)]
    heading, *told = predictions(outcome) or [""]
    lines = [heading]
    for first, *more in (one.split("\n") for one in told):
        lines += [f"  {first}", *(line for text in more for line in _wrapped(text))]
    parts += [*reasons(outcome), "\n".join(lines), "\n".join(remarks(outcome))]
    return "\n\n".join(filter(None, parts)) + "\n"


WIDEST = 140  # characters of a table; what does not fit stands in another one below


def _text_table(columns: list[Column], rows: list[list[str]]) -> str:
    """Return the names of groups, the names of columns, and the rows, all under each other.

    Where that is too wide, the columns that follow stand below, beside the names of the launches.
    """
    if not rows:
        return ""
    cells = [_group(*args) for args in _grouped(columns, rows)]
    (names, *amounts), tables = cells, []
    shown = [names]
    for group in amounts:
        if sum(len(block[0]) + 2 for block in (*shown, group)) > WIDEST:
            tables.append(shown)
            shown = [names]
        shown.append(group)
    return "\n\n".join(
        "\n".join("  ".join(parts).rstrip() for parts in zip(*one, strict=True)).lstrip("\n")
        for one in (*tables, shown)
    )


def _grouped(
    columns: list[Column], rows: list[list[str]]
) -> Iterator[tuple[list[Column], list[list[str]]]]:
    """Yield the columns that stay together, with their part of each row: the names, the groups."""
    whole = itertools.groupby(range(len(columns)), lambda i: (columns[i].left, columns[i].group))
    for _, places in whole:
        first, *more = places
        part = slice(first, first + 1 + len(more))
        yield columns[part], [row[part] for row in rows]


def _group(columns: list[Column], rows: list[list[str]]) -> list[str]:
    """Return the lines of some columns: what they are about, their names, and the rows."""
    lines = [[column.name for column in columns], *rows]
    widths = [max(map(len, cells)) for cells in zip(*lines, strict=True)]
    told = [
        "  ".join(
            f"{cell:<{width}}" if column.left else f"{cell:>{width}}"
            for cell, width, column in zip(cells, widths, columns, strict=True)
        )
        for cells in lines
    ]
    about = columns[0].group
    width = max(len(about), len(told[0]))
    return [f"{text:>{width}}" for text in (about, *told)]


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
        "file": report.origin.file,
        "line": report.origin.line,
        "grid": report.grid,
        "block": report.block,
        "launches": row.launches,
        "seconds": row.seconds,
        "counters": dict(report.counters),
        "instructions": dict(report.instructions),
        "derived": report.derived,
        "hazards": [_as_data(hazard) for hazard in report.hazards],
        "notes": [asdict(note) for note in report.notes],
        "why_slow": [asdict(reason) for reason in report.why_slow()],
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
        f"<details{' open' if row.report.hazards else ''}><summary>{escape(_called(row))}, grid "
        f"{_size(row.report.grid)}, block {_size(row.report.block)}, "
        f"{_count(row.launches, 'launch', 'launches')}</summary>"
        f"{row.report.listing()._repr_html_()}</details>"
        for row in outcome.account.rows
    )
    parts = [
        _html_table(outcome),
        "".join(f"<p>{escape(p)}</p>".replace("\n", "<br>") for p in predictions(outcome)),
        f"<h2>Hazards and notes</h2>{found}" if found else "",
        "".join(f"<pre>{escape(text)}</pre>" for text in reasons(outcome)),
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
    columns, rows = table(outcome)
    if not rows:
        return ""
    kinds = [' class="name"' if column.left else "" for column in columns]
    above = "".join(
        f'<th scope="colgroup" colspan="{count}">{name}</th>'
        if name
        else f'<td colspan="{count}"></td>'
        for name, count in _groups(columns)
    )
    head = "".join(
        f'<th scope="col"{kind} title="{escape(c.meaning)}">{c.name}</th>'
        for c, kind in zip(columns, kinds, strict=True)
    )
    body = "".join(
        "<tr>"
        + "".join(f"<td{k}>{escape(cell)}</td>" for cell, k in zip(row, kinds, strict=True))
        + "</tr>"
        for row in rows
    )
    return (
        '<div class="wide" role="region" tabindex="0" aria-label="Launches">'
        f'<table class="launches"><thead><tr>{above}</tr><tr>{head}</tr></thead>'
        f"<tbody>{body}</tbody></table></div>"
    )


FORMATS = {"text": as_text, "json": as_json, "html": as_html}
