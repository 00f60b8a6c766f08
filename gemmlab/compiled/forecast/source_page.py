"""A kernel's source with what each line costs: as text, and as a part of a page.

The page is like that of a profiler: a bar a line, its parts by what the line's slots were for, and
below a line, on demand, the instructions that the compiler made of it.
"""

import linecache
from collections.abc import Callable, Iterator, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import NamedTuple

from gemmlab.compiled.forecast.telling import LineTime, Told, sentence, slots_of

ISSUED = "issued"


class Family(NamedTuple):
    """A family of uses of a slot has a colour: its name in a page, its words in the legend."""

    name: str
    words: str
    has: Callable[[str], bool]


FAMILIES = (
    Family("global", "waits for global memory", lambda cause: cause == "global memory"),
    Family("shared", "waits for shared memory", lambda cause: cause == "shared memory"),
    Family("queue", "waits for a place in a queue or a pipe",
           lambda cause: "queue" in cause or "pipe" in cause or "port" in cause),
    Family("before", "waits for the arithmetic before", lambda cause: "arithmetic" in cause),
    Family("barrier", "waits at a barrier", lambda cause: "barrier" in cause),
    Family("other", "waits for something else", lambda cause: True),
)  # fmt: skip
LEAST = 0.005  # of the slots: what takes less has no word


def family(cause: str) -> str:
    """Return the name of the family of what a slot waited for."""
    return next(one.name for one in FAMILIES if one.has(cause))


def by_family(line: LineTime) -> dict[str, float]:
    """Return the shares of a line by family, what it issued first."""
    found = {ISSUED: sum(line.used.values())}
    for cause, share in line.waits.items():
        name = family(cause)
        found[name] = found.get(name, 0.0) + share
    return {name: share for name, share in found.items() if share}


def told(line: LineTime, most: int = 3) -> str:
    """Say what a line's slots were for, in a few words."""
    issued = sum(line.used.values())
    parts = [f"waits for {cause} {share:.0%}" for cause, share in line.waits.items()]
    parts = parts[:most] if line.waits else []
    parts = [p for p, share in zip(parts, line.waits.values(), strict=False) if share >= LEAST]
    return ", ".join([*parts, *[f"issues {issued:.0%}"] * (issued >= LEAST)])


def text_of(line: LineTime) -> str:
    """Return the text of a line of the source, if its file is here."""
    return linecache.getline(*line.place).rstrip() if line.place else ""


# ------------------------------------------------------------------------------------------ page

STYLE = """
.gl { --faint: color-mix(in srgb, currentColor 66%, transparent); --rule: color-mix(in srgb,
 currentColor 18%, transparent); --issued: #2b87cc; --global: #e2640a; --shared: #d99a00;
 --queue: #c76a9f; --before: #8c7ae6; --barrier: #009e73; --other: #8a8a8a;
 font: 14px/1.45 system-ui, sans-serif; }
.gl .legend span { display: inline-block; margin-right: 1.1em; white-space: nowrap; }
.gl .legend i { display: inline-block; width: .8em; height: .8em; margin-right: .35em; }
.gl .file { color: var(--faint); margin: 1em 0 .2em; overflow-wrap: anywhere; }
.gl .lines { overflow-x: auto; border-top: 1px solid var(--rule);
 border-bottom: 1px solid var(--rule); }
.gl .line { display: grid; grid-template-columns: 3em 9em 4.6em max-content; align-items: center;
 min-width: max-content; font: 12.5px/1.5 ui-monospace, monospace; }
.gl .line b { font-weight: 400; color: var(--faint); text-align: right; padding-right: .8em; }
.gl .line u { text-decoration: none; text-align: right; padding-right: .9em; }
.gl .line code { white-space: pre; font: inherit; background: none; color: inherit; padding: 0; }
.gl .bar { display: flex; height: .8em; }
.gl .bar i { height: 100%; }
.gl summary { cursor: pointer; list-style: none; }
.gl summary::-webkit-details-marker { display: none; }
.gl .line:hover, .gl details[open] > .line { background: color-mix(in srgb, var(--issued) 13%,
 transparent); }
.gl summary code::after { content: " ▸"; color: var(--faint); }
.gl details[open] > summary code::after { content: " ▾"; }
.gl table { border-collapse: collapse; font: 12px/1.4 ui-monospace, monospace; margin: .2em 0 .7em
 3em; }
.gl td, .gl th { padding: 0 .9em 0 0; text-align: left !important; white-space: pre;
 font-weight: 400; }
.gl th { color: var(--faint); } .gl td.n { text-align: right !important; }
.gl .code { max-height: 24em; overflow: auto; }
.gl .gap { color: var(--faint); padding-left: 3em; }
@media (max-width: 600px) { .gl .line { grid-template-columns: 2.4em 4em 4.2em max-content; }
 .gl table { margin-left: .5em; } }
"""
COLOURS = {
    ISSUED: "issues an instruction",
    **{one.name: one.words for one in FAMILIES},
}


def legend() -> str:
    """Return what the colours of bars stand for."""
    marks = "".join(
        f'<span><i style="background:var(--{name})"></i>{escape(words)}</span>'
        for name, words in COLOURS.items()
    )
    what = "A bar is a line's share of the issue slots of an SM; a click shows its instructions."
    return f'<p class="legend">{marks}</p><p class="file">{what}</p>'


def listing(forecast: Told) -> str:
    """Return the source with bars, by file; of code without lines, its dearest instructions."""
    lines = [line for line in forecast.lines if line.place]
    if not lines:
        return (
            '<p class="file">No lines of a source: the code was compiled without them (nvcc keeps '
            "them with -lineinfo). These are all of its instructions.</p>"
            + _instructions(forecast, range(len(forecast.listing.instructions)))
        )
    files: dict[str, dict[int, LineTime]] = {}
    for line in lines:
        files.setdefault(line.place.file, {})[line.place.number] = line
    most = max(line.share for line in lines)
    return "".join(_file(forecast, file, found, most) for file, found in files.items())


def _file(forecast: Told, file: str, found: Mapping[int, LineTime], most: float) -> str:
    rows, before = [], None
    for number in _shown(sorted(found)):
        if before is not None and number > before + 1:
            rows.append('<div class="gap">⋮</div>')
        rows.append(_row(forecast, number, linecache.getline(file, number), found.get(number),
                         most))  # fmt: skip
        before = number
    cell = Path(file).parent.name.startswith("ipykernel_")
    name = f'<p class="file">{"a cell of this notebook" if cell else escape(file)}</p>'
    region = f'role="region" tabindex="0" aria-label="Source of {escape(Path(file).name)}"'
    return f'{name}<div class="lines" {region}>{"".join(rows)}</div>'


NEAR = 6  # lines without code that are shown between two that have some


def _shown(numbers: Sequence[int]) -> Iterator[int]:
    for number, following in zip(numbers, [*numbers[1:], None], strict=True):
        yield number
        if following is not None and following - number <= NEAR:
            yield from range(number + 1, following)


def _row(forecast: Told, number: int, text: str, line: LineTime | None, most: float) -> str:
    code = f"<code>{escape(text.rstrip()) or ' '}</code>"
    if line is None:
        return f'<div class="line"><b>{number}</b><span></span><u></u>{code}</div>'
    bar = "".join(
        f'<i style="width:{100 * share / most:.2f}%;background:var(--{name})"></i>'
        for name, share in by_family(line).items()
    )
    share = f"{line.share:.1%}" if line.share >= LEAST else ""
    cells = f'<b>{number}</b><span class="bar">{bar}</span><u>{share}</u>{code}'
    title = escape(f"line {number}: {line.share:.1%} of the issue slots: {told(line, 9)}")
    inside = _instructions(forecast, line.instructions)
    return f'<details><summary class="line" title="{title}">{cells}</summary>{inside}</details>'


def _instructions(forecast: Told, places: Sequence[int]) -> str:
    """Return a table of instructions: how often warps issued them, and their share of the slots."""
    result, listing = forecast.result, forecast.listing
    slots = slots_of(result) / result.slots
    head = "<tr><th>address<th>issued<th>share<th>control<th>instruction</tr>"
    rows = []
    for i in places:
        one = listing.instructions[i]
        if not result.issued[i]:  # nobody came there
            continue
        rows.append(
            f'<tr><td>{one.address:05x}<td class="n">{int(result.issued[i]):,}'
            f'<td class="n">{slots[i]:.1%}<td>{escape(str(one.control))}<td>{escape(str(one))}</tr>'
        )
    region = 'class="code" role="region" tabindex="0" aria-label="Instructions"'
    return f"<div {region}><table>{head}{''.join(rows)}</table></div>"


def as_html(forecast: Told) -> str:
    """Return a forecast as a notebook shows it: the time, what limits it, and the source."""
    head = f"<p><b>{escape(str(forecast))}</b><br>{escape(sentence(forecast))}</p>"
    if not forecast.lines:
        return head
    return f'<div class="gl"><style>{STYLE}</style>{head}{legend()}{listing(forecast)}</div>'
