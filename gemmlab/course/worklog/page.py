"""A log as it is shown: a ladder of speeds, and a page with all about each entry."""

import difflib
import json
import re
from collections.abc import Sequence
from datetime import date
from functools import cache
from html import escape
from pathlib import Path
from typing import NamedTuple

from gemmlab import kernels
from gemmlab.course.worklog.entries import SENTENCES, Entry
from gemmlab.course.worklog.judging import GPUS
from gemmlab.course.worklog.shapes import Shape
from gemmlab.device import device
from gemmlab.measure import records
from gemmlab.measure.measurement import duration

# `python -m benchmarks.capstone --forecasts` writes both.
BESIDE = Path(__file__).with_name("beside.json")  # predictions of the course's kernels
WORKED = Path(__file__).with_name("worked.json")  # logs of five entries
OURS, YOURS, THEIRS = "#9AA5B1", "#0072B2", "#E69F00"  # Okabe and Ito's, and a grey
COUNTS = {  # of a block
    "global_load_sectors": "sectors loaded from global memory",
    "global_store_sectors": "sectors stored to global memory",
    "shared_load_wavefronts": "wavefronts of shared loads",
    "shared_store_wavefronts": "wavefronts of shared stores",
    "barriers": "barriers",
}
STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem;
       color: #222; background: #fff }
pre { background: #f6f6f6; padding: .75rem; overflow-x: auto; font-size: 14px; line-height: 1.35 }
h1, h2 { line-height: 1.2 } h2 { margin-top: 2.5rem } dt { font-weight: 600 }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .2rem 1rem } dd { margin: 0 }
pre ins { color: #0b6121; text-decoration: none } pre del { color: #a31515; text-decoration: none }
@media (max-width: 600px) { dl { display: block } dd { margin-bottom: .4rem } }
table { border-collapse: collapse } td { padding: .2rem 1rem .2rem 0 }
"""


class Row(NamedTuple):
    """A row of the ladder: seconds by the name of a GPU, predicted and measured."""

    name: str
    colour: str
    predicted: dict[str, float]
    measured: dict[str, float]


@cache
def _beside() -> dict[str, dict[str, dict[str, float]]]:
    return json.loads(BESIDE.read_text("utf-8"))


def rows(shape: Shape, entries: Sequence[Entry]) -> list[Row]:
    """The course's kernels and cuBLAS, then the entries."""
    found = []
    for name, predicted in _beside()[shape.name].items():
        colour = THEIRS if name == kernels.REFERENCE.name else OURS
        found.append(Row(name, colour, predicted, _recorded(name, shape)))
    names = [entry.name for entry in entries]
    for number, entry in enumerate(entries, 1):
        name = f"{number} · {entry.name}"
        name += f" {entry.tiling}" if names.count(entry.name) > 1 else ""
        name += f" (k ≤ {entry.judged.depth:,})" if entry.judged.depth else ""
        found.append(Row(name, YOURS, entry.judged.seconds, entry.measured))
    return found


def dearest(lines: Sequence[tuple[str, float]]) -> str:
    """Lines of a kernel with their shares of the issue slots, in Markdown."""
    return "; ".join(f"{share:.0%} `{text}`" for text, share in lines)


def _recorded(name: str, shape: Shape) -> dict[str, float]:
    if shape.batch > 1:
        return {}
    try:
        return {device(GPUS[0]).title: records.find(kernels.get(name), shape.problem).seconds}
    except LookupError:
        return {}


def as_text(shape: Shape, entries: Sequence[Entry]) -> str:
    """The ladder for a terminal."""
    every = rows(shape, entries)
    wide = max(32, *(len(row.name) for row in every))
    lines = [f"{shape!s:{wide}} {'predicted, H200':>16} {'predicted, H100':>16} {'measured':>10}"]
    for row in every:
        times = (duration(row.predicted[g]) if g in row.predicted else "" for g in GPUS)
        seen = next(map(duration, row.measured.values()), "")
        lines.append("{:{}} {:>16} {:>16} {:>10}".format(row.name, wide, *times, seen))
    return "\n".join(lines)


def ladder(shape: Shape, entries: Sequence[Entry]) -> str:
    """The ladder as HTML: a bar of speed for each kernel, and its times."""
    every, flops = rows(shape, entries), shape.problem.flops
    peak = device(GPUS[0]).peak_of("float32")
    cell = 'style="padding:.15rem .8rem .15rem 0;text-align:{};white-space:nowrap;border:0"'
    left, right = cell.format("left"), cell.format("right")
    head = "".join(
        f"<th {align}>{name}</th>"
        for name, align in (
            ("kernel", left), ("speed on an H200, predicted", left), ("TFLOP/s", right),
            ("H200, predicted", right), ("H100, predicted", right), ("measured", right),
        )
    )  # fmt: skip
    lines = []
    for row in every:
        first = row.predicted.get(GPUS[0])
        share = 100 * flops / first / peak if first else 0
        bar = (
            f'<div style="width:9rem;background:#8884" role="img" aria-label="{share:.0f} % of '
            f'the FMA peak"><div style="width:{min(100, share):.1f}%;height:.9rem;'
            f'background:{row.colour}"></div></div>'
        )
        times = [duration(row.predicted[g]) if g in row.predicted else "" for g in GPUS]
        seen = "; ".join(f"{duration(s)}, {escape(title)}" for title, s in row.measured.items())
        speed = f"{flops / first / 1e12:.1f}" if first else ""
        numbers = "".join(f"<td {right}>{text}</td>" for text in (speed, *times, seen))
        name = (
            f'<td {left}><div style="white-space:normal;width:10rem">{escape(row.name)}</div></td>'
        )
        lines.append(f"<tr>{name}<td {left}>{bar}</td>{numbers}</tr>")
    whole = f"{peak / 1e12:.1f} TFLOP/s, the FMA peak of an H200"
    under = "" if shape.batch == 1 else (
        " Times beside yours are those of one product with as many tiles."
    )  # fmt: skip
    if any(entry.judged.depth for entry in entries):
        under += " (k ≤ …): right as far as that k, up to which blocks were simulated."
    return (
        f'<figure style="margin:0;overflow-x:auto"><table style="font-size:90%">'
        f"<caption style='text-align:left'><strong>{escape(str(shape))}</strong></caption>"
        f"<tr>{head}</tr>{''.join(lines)}</table><figcaption style='font-size:85%'>A whole bar is "
        f"{whole}. Blue: yours; grey: the course's kernels; orange: cuBLAS.{under}</figcaption>"
        "</figure>"
    )


def example(shape: Shape, entries: Sequence[Entry], shown: int, sources: bool) -> str:
    """The ladder of a recorded log, and its first entries, with their kernels where `sources`."""
    pairs = list(zip([None, *entries], entries[:shown], strict=False))
    parts = [_section(i, entry, before, sources) for i, (before, entry) in enumerate(pairs, 1)]
    return ladder(shape, entries) + "".join(parts)


def bound(shape: Shape) -> str:
    """What no FP32 kernel beats on this shape, in a sentence."""
    gpu = device(GPUS[0])
    times = shape.bound(gpu)
    parts = " and ".join(f"{duration(s)} for {what}" for what, s in times.items())
    return f"No FP32 kernel takes less than {duration(max(times.values()))} on an H200: {parts}."


def whole(shape: Shape, entries: Sequence[Entry], who: str = "") -> str:
    """The whole page, of today."""
    title = f"Work log: {shape}"
    by = f"{who}, {date.today().isoformat()}".removeprefix(", ")
    body = [f"<h1>{escape(title)}</h1><p>{escape(by)}</p><p>{bound(shape)}</p>"]
    body.append(ladder(shape, entries))
    for number, entry in enumerate(entries, 1):
        before = entries[number - 2] if number > 1 else None
        body.append(_section(number, entry, before))
    return (
        f'<!doctype html>\n<html lang="en"><meta charset="utf-8"><title>{escape(title)}</title>'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<style>{STYLE}</style>\n<body><main>\n{''.join(body)}</main></body></html>\n"
    )


def _section(number: int, entry: Entry, before: Entry | None, sources: bool = True) -> str:
    said = zip(("Changed", "Expected", "Came"), SENTENCES, strict=True)
    told = [(label, getattr(entry, name)) for label, name in said]
    launch = [f"tile {entry.tiling}"]
    launch += [f"grid {entry.grid}"] if entry.grid else []
    launch += [f"block {entry.block}"] if entry.block else []
    times = [
        f"{duration(s)} on an {g.split('_')[0].upper()}" for g, s in entry.judged.seconds.items()
    ]
    seen = [f"{duration(s)} on {title}" for title, s in entry.measured.items()]
    told += [
        ("Launch", ", ".join(launch)),
        ("Predicted", ", ".join(times)),
        *([("Measured", ", ".join(seen))] if seen else []),
        ("Verdict", f"right{entry.judged.far}, without a hazard"),
        *entry.judged.facts,
        ("Dearest lines", dearest(entry.judged.lines)),
        ("Waits, on an H200", entry.judged.waits.get(GPUS[0], "")),
    ]
    terms = "".join(f"<dt>{escape(a)}</dt><dd>{_code(b or '–')}</dd>" for a, b in told)
    if not sources:
        return f"<h4>{number} · {escape(entry.name)}</h4><dl>{terms}</dl>"
    counts = "".join(
        f"<tr><td>{what}</td><td>{entry.judged.counts[name]:,}</td></tr>"
        for name, what in COUNTS.items()
        if name in entry.judged.counts
    )
    diff = f"<h3>Changed since entry {number - 1}</h3>{_diff(before, entry)}" if before else ""
    return (
        f"<h2>{number} · {escape(entry.name)}</h2><dl>{terms}</dl>"
        f"<p>A block, simulated:</p><table>{counts}</table>{diff}"
        f"<details><summary>Source</summary><pre>{escape(entry.source)}</pre></details>"
    )


def _code(text: str) -> str:
    """A text as HTML, with what stands between backquotes as code."""
    return re.sub("`([^`]*)`", r"<code>\1</code>", escape(text))


def _diff(before: Entry, entry: Entry) -> str:
    old, new = before.source.splitlines(), entry.source.splitlines()
    marks = {"+": "<ins>{}</ins>", "-": "<del>{}</del>"}
    shown = [
        "  ..." if line.startswith("@@") else marks.get(line[:1], "{}").format(escape(line))
        for line in list(difflib.unified_diff(old, new, lineterm="", n=1))[3:]
    ]
    return f"<pre>{chr(10).join(shown).lstrip()}</pre>"
