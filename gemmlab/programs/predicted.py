"""Forecasts of launches as text for a terminal, as JSON and as a page of HTML."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gemmlab.compiled.forecast import source_page
from gemmlab.compiled.forecast.source_page import LEAST, text_of, told
from gemmlab.compiled.forecast.telling import PARTS, LineTime, sentence
from gemmlab.here.detection import detect
from gemmlab.here.driver import version
from gemmlab.measure.measurement import duration
from gemmlab.programs import nsight
from gemmlab.programs.predicting import Formats, Launch, Told, titles

if TYPE_CHECKING:
    from gemmlab.compiled.forecast.kernel import Forecast

WIDTH = 80
MOST = 6  # lines of a kernel that are told as text
LIMITS = PARTS | {"sm": "the SMs themselves", "blocks": "the handing out of blocks"}


def size(sizes: Sequence[int]) -> str:
    """Return a grid or a block without the sizes of 1 at its end."""
    x, y, z = sizes
    return "×".join(map(str, (x, y, z) if z > 1 else (x, y) if y > 1 else (x,)))


def headline(launch: Launch) -> str:
    """Say which launch it is."""
    several = f", {launch.count:,} such launches" * (launch.count > 1)
    grid, block = size(launch.grid), size(launch.block)
    return f"{launch.kernel} ({launch.place}), grid {grid}, block {block}{several}"


def limit(forecast: Forecast) -> str:
    """Say what limits a launch, as a part of a sentence."""
    if forecast.launch > max(forecast.times.values()):
        return "the launch itself"
    return LIMITS.get(forecast.bottleneck, forecast.bottleneck)


# ------------------------------------------------------------------------------------------ text


def as_text(of: Told) -> str:
    """Return a few lines for each launch, none wider than `WIDTH`."""
    parts = ["\n".join(_launch(launch, of.devices)) for launch in of.launches]
    parts += ["\n".join(_wrapped(remark, "")) for remark in of.remarks]
    return "\n\n".join(parts) + "\n"


def _launch(launch: Launch, devices: Sequence[str]) -> list[str]:
    lines = _wrapped(headline(launch), "", "  ")
    wide = max(map(len, devices))
    for name in devices:
        made = launch.made[name]
        if isinstance(made, str):
            lines += _wrapped(f"{name:<{wide}}  not forecast: {made}", "  ", "    ")
            continue
        lines.append(f"  {name:<{wide}}  {duration(made.seconds):>9}  limited by {limit(made)}")
    good = [(name, f) for name in devices if not isinstance(f := launch.made[name], str)]
    said: list[str] = []
    for name, forecast in good:
        if sentence(forecast) not in said:
            said.append(sentence(forecast))
            lines += _wrapped(f"{name}: " * (len(said) > 1) + said[-1], "  ")
        if forecast.unsure:
            lines += _wrapped(f"Unsure: {forecast.unsure}.", "  ", "    ")
    for note in launch.notes:
        lines += _wrapped(f"Note: {note}.", "  ", "    ")
    lines += _beside(launch)
    return [*lines, *_lines(good)] if good else lines


def _beside(launch: Launch) -> list[str]:
    """Tell what a profiler saw of a launch beside its forecast, a line each."""
    if not (rows := _compared(launch)):
        return []
    wide = max(len(what) for what, *_ in rows)
    found = ["", f"  {'beside Nsight Compute':<{wide}}  {'predicted':>13}  {'measured':>13}"]
    lines = (f"  {what:<{wide}}  {a:>13}  {b:>13}  {off:>5}" for what, a, b, off in rows)
    return [*found, *map(str.rstrip, lines)]


def _compared(launch: Launch) -> list[tuple[str, str, str, str]]:
    """Return what was predicted and measured as text, and how far it is off."""
    if launch.seen is None:
        return []
    made = launch.made[detect().name]
    if isinstance(made, str):
        return []
    tell = {"s": duration, "count": "{:,.0f}".format, "part": "{:.0%}".format}
    return [
        (what, tell[kind](a), tell[kind](b), f"{a / b - 1:+.0%}" if b and kind != "part" else "")
        for what, kind, a, b in nsight.compared(made, launch.seen)
    ]


def _wrapped(text: str, indent: str, more: str | None = None) -> list[str]:
    return textwrap.wrap(
        text, WIDTH, initial_indent=indent, subsequent_indent=indent if more is None else more
    )


def _lines(good: Sequence[tuple[str, Forecast]]) -> list[str]:
    """Tell the dearest lines of the first device, with their shares on all."""
    first = [line for line in good[0][1].lines if line.place][:MOST]
    if not first:
        return _dearest(good[0][1])
    shares = [{line.place: line.share for line in f.lines} for _, f in good]
    wide = [max(4, len(name)) for name, _ in good] if len(good) > 1 else [5]
    names = [name for name, _ in good] if len(good) > 1 else ["share"]
    heads = "  ".join(f"{name:>{w}}" for name, w in zip(names, wide, strict=True))
    files = {line.place.file for line in first}
    found = ["", f"  {heads}  line"]
    indent = " " * (len(heads) + 4)
    for line in first:
        if line.share < LEAST:
            continue
        cells = "  ".join(
            f"{of.get(line.place, 0):>{w}.0%}" for of, w in zip(shares, wide, strict=True)
        )
        where = f"{Path(line.place.file).name}:" * (len(files) > 1) + str(line.place.number)
        found.append(_cut(f"  {cells}  {where:>4}  {text_of(line).strip()}"))
        found += _wrapped(told(line), f"{indent}      ")
    return found


def _dearest(forecast: Forecast) -> list[str]:
    """Tell the dearest instructions, where the compiler has kept no lines."""
    result, code = forecast.result, forecast.listing.instructions
    shares = source_page.slots_of(result) / result.slots
    order = sorted(range(len(code)), key=lambda i: -shares[i])[:MOST]
    told_ = [_cut(f"  {shares[i]:>5.0%}  {code[i].address:05x}  {code[i]}") for i in order]
    why = "no lines were kept (nvcc: -lineinfo); the dearest instructions"
    return ["", f"  share  address: {why}", *told_]


def _cut(text: str) -> str:
    return text if len(text) <= WIDTH else text[: WIDTH - 1] + "…"


# ------------------------------------------------------------------------------------------ JSON


def as_json(of: Told) -> str:
    """Give all of it as data; times are in seconds, shares are of all issue slots."""
    return json.dumps(
        {
            "gemmlab": version("gemmlab"),
            "target": of.target,
            "devices": titles(of.devices),
            "remarks": list(of.remarks),
            "launches": [_data(launch) for launch in of.launches],
        },
        indent=1,
        default=int,
    ) + "\n"  # fmt: skip


def _data(launch: Launch) -> dict[str, Any]:
    return {
        "kernel": launch.kernel,
        "file": launch.file,
        "line": launch.line,
        "grid": launch.grid,
        "block": launch.block,
        "launches": launch.count,
        "notes": launch.notes,
        "seen": nsight.data(launch.seen),
        "forecasts": {
            name: {"error": made} if isinstance(made, str) else _forecast(made)
            for name, made in launch.made.items()
        },
    }


def _forecast(one: Forecast) -> dict[str, Any]:
    return {
        "seconds": one.seconds,
        "limit": one.bottleneck,
        "parts": dict(one.times),
        "launch": one.launch,
        "sentence": sentence(one),
        "registers": one.listing.registers,
        "shared_bytes": one.listing.shared_bytes,
        "local_bytes": one.listing.local_bytes,
        "blocks_per_sm": one.share.blocks,
        "resident_blocks": one.share.resident,
        "simulated_blocks": one.sampled,
        "unsure": one.unsure and {
            "opcodes": dict(one.unsure.opcodes), "share": one.unsure.share,
            "decides": one.unsure.decides,
        },
        "lines": [_line(line) for line in one.lines],
    }  # fmt: skip


def _line(line: LineTime) -> dict[str, Any]:
    file, number = line.place or (None, None)
    return {
        "file": file,
        "line": number,
        "code": text_of(line).strip(),
        "share": line.share,
        "issues": _rounded(line.used),
        "waits_for": _rounded(line.waits),
    }


def _rounded(shares: Mapping[str, float]) -> dict[str, float]:
    return {name: round(share, 6) for name, share in shares.items()}


# ------------------------------------------------------------------------------------------ HTML

STYLE = """
:root { color-scheme: light dark; }
body { margin: 0 auto; max-width: 76em; padding: 0 1em 3em; background: light-dark(#fff, #16181c);
 color: light-dark(#1b1b1b, #e6e6e6);
 font: 15px/1.5 system-ui, sans-serif; }
h1 { font-size: 1.5em; overflow-wrap: anywhere; } h2 { font-size: 1.15em; margin-bottom: .2em;
 overflow-wrap: anywhere; }
.gl h2 small { display: block; font-weight: 400; color: var(--faint); }
.times { display: grid; grid-template-columns: max-content max-content 1fr; gap: .1em 1em;
 align-items: center; margin: .6em 0; }
.times b { text-align: right; }
.times i { display: block; height: .7em; background: var(--issued); }
.times span { color: var(--faint); }
.gl table.beside { width: auto; margin: .6em 0; font: inherit; }
.gl table.beside :is(td, th) { padding: .1em 0 .1em 1.5em; text-align: right !important; }
.gl table.beside :is(td, th):first-child { padding-left: 0; text-align: left !important; }
.device > summary { font-weight: 600; margin-top: .8em; list-style: revert; }
.note { border-left: 3px solid var(--global); padding-left: .8em; }
@media (max-width: 600px) { .times { grid-template-columns: max-content 1fr; }
 .times div { grid-column: 1 / 3; } }
"""


def as_html(of: Told) -> str:
    """Return a page that needs no other file: the times, and the source with what lines cost."""
    title = f"{Path(of.target).name}: predicted"
    sections = "".join(_section(launch, of.devices) for launch in of.launches)
    remarks = "".join(f"<p>{escape(remark)}</p>" for remark in of.remarks)
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width">'
        f"<title>{escape(title)}</title><style>{source_page.STYLE}{STYLE}</style></head>\n"
        f'<body><main class="gl"><h1>{escape(title)}</h1>{source_page.legend()}'
        f"{sections}{remarks}</main></body></html>\n"
    )


def _section(launch: Launch, devices: Sequence[str]) -> str:
    name, _, rest = headline(launch).partition(" ")
    good = {n: f for n in devices if not isinstance(f := launch.made[n], str)}
    most = max((f.seconds for f in good.values()), default=1.0)
    full = titles(devices)
    rows = "".join(
        f"<span>{escape(full[n])}</span><b>{duration(f.seconds)}</b>"
        f'<div><i style="width:{100 * f.seconds / most:.1f}%"></i></div>'
        for n, f in good.items()
    )
    notes = [f"{full[n]}: not forecast: {m}" for n, m in launch.made.items() if isinstance(m, str)]
    told_ = "".join(f'<p class="note">{escape(note)}</p>' for note in (*notes, *launch.notes))
    sources = "".join(
        _device(full[n], f, len(good) == 1 or i == 0) for i, (n, f) in enumerate(good.items())
    )
    head = f"<h2>{escape(name)} <small>{escape(rest)}</small></h2>"
    seen = _table(_compared(launch))
    return f'<section>{head}<div class="times">{rows}</div>{told_}{seen}{sources}</section>'


def _table(rows: Sequence[Sequence[str]]) -> str:
    if not rows:
        return ""
    heads = "".join(f"<th>{h}" for h in ("beside Nsight Compute", "predicted", "measured", "off"))
    lines = "".join(f"<tr>{''.join(f'<td>{escape(cell)}' for cell in row)}" for row in rows)
    return f'<table class="beside"><tr>{heads}{lines}</table>'


def _device(title: str, forecast: Forecast, is_open: bool) -> str:
    unsure = (
        f'<p class="note">Unsure: {escape(str(forecast.unsure))}.</p>' if forecast.unsure else ""
    )
    head = f"{escape(title)}: {duration(forecast.seconds)}, limited by {limit(forecast)}"
    return (
        f'<details class="device"{" open" * is_open}><summary>{head}</summary>'
        f"<p>{escape(sentence(forecast))}</p>{unsure}{source_page.listing(forecast)}</details>"
    )


FORMATS = Formats(as_text, as_json, as_html)
