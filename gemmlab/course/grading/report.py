"""The report of a class as pages: plots of all, and a page for each student with the reasons.

The pages need no network: plots stand in them as SVG. What students wrote is text in them, never
markup.
"""

import hashlib
import io
import re
from collections import Counter
from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import Any

from gemmlab.course.exercises import get
from gemmlab.course.grading import table as tables
from gemmlab.course.grading.judged import STATES
from gemmlab.course.grading.table import Row, number
from gemmlab.course.judging.diagnoses import about
from gemmlab.here import files

COLOURS = {  # of states: Okabe and Ito's, and greys
    "passed": "#009E73",
    "not passed": "#D55E00",
    "not attempted": "#BBBBBB",
    "missing": "#DDDDDD",
    "unreadable": "#CC79A7",
    "error": "#E69F00",
    "not judged": "#56B4E9",
}
OWN = {  # diagnoses of grading alone
    "reaches-out": "An answer is judged with Python, math, NumPy, numba.cuda and gemmlab's "
    "instructions alone; what reaches the machine or the judge earns no points.",
    "borrowed": "An answer is a function that the notebook defines itself.",
    "not-defined": "What is handed to check has to be a function that the notebook defines.",
    "not-computed": "What a function refers to could not be computed, or is no data.",
    "judge-ended": "The process that judged the answer was brought down, most likely by it.",
}
STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; max-width: 62rem; margin: 2rem auto; padding: 0 1rem;
       color: #222; background: #fff }
table { border-collapse: collapse; margin: 1rem 0 } th, td { padding: .25rem .6rem;
       border-bottom: 1px solid #ddd; text-align: left; vertical-align: top }
td.n, th.n { text-align: right; font-variant-numeric: tabular-nums }
pre { background: #f6f6f6; padding: .75rem; overflow-x: auto; font-size: 14px }
.reason { white-space: pre-wrap } .wide { overflow-x: auto } svg { max-width: 100%; height: auto }
h1, h2, h3 { line-height: 1.2 } .state { font-weight: 600 } a { color: #0072B2 }
"""
SVG = {"svg.hashsalt": "gemmlab", "svg.fonttype": "none", "font.family": "sans-serif"}


def write(folder: Path, table: Sequence[Row], title: str) -> Path:
    """Write the pages into a folder; the path of the first."""
    students = list(tables.totals(table))
    pages = {student: _file(student) for student in students}
    for student in students:
        own = [row for row in table if row.student == student]
        files.put(folder / pages[student], _student(student, own, title).encode())
    first = folder / "index.html"
    files.put(first, _class(table, pages, title).encode())
    return first


def _file(student: str) -> str:
    """The name of a student's page, of letters that every file system and address has."""
    plain = re.sub(r"[^A-Za-z0-9]+", "-", student).strip("-")[:40] or "student"
    return f"{plain}-{hashlib.sha256(student.encode()).hexdigest()[:8]}.html"


def _page(title: str, body: str) -> str:
    return (
        f'<!doctype html>\n<html lang="en"><meta charset="utf-8"><title>{escape(title)}</title>'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<style>{STYLE}</style>\n<body><main>\n{body}</main></body></html>\n"
    )


# --------------------------------------------------------------------------------- of the class


def _class(table: Sequence[Row], pages: dict[str, str], title: str) -> str:
    totals = tables.totals(table)
    names = list(dict.fromkeys(row.exercise for row in table))
    by = {(row.student, row.exercise): row for row in table}
    body = [f"<h1>{escape(title)}</h1>", f"<p>{len(totals)} students, {len(names)} exercises.</p>"]
    body += ["<h2>Who got how far</h2>", f'<div class="wide">{_states(table)}</div>']
    body += ["<h2>What to teach next week</h2>", _week(table)]
    body += ["<h2>Answers by diagnosis</h2>", f'<div class="wide">{_diagnoses(table)}</div>']
    body += ["<h2>Points</h2>", '<div class="wide"><table><tr><th>student</th>']
    body += [f'<th class="n">{name}</th>' for name in names]
    body += ['<th class="n">points</th></tr>']
    for student, (points, most) in totals.items():
        link = f'<a href="{pages[student]}">{escape(student)}</a>'
        cells = "".join(
            f'<td class="n" title="{escape(by[student, n].judged.diagnosis)}" '
            f'style="border-left: .3rem solid {COLOURS[by[student, n].judged.state]}">'
            f"{number(by[student, n].points)}{'*' if by[student, n].look else ''}</td>"
            for n in names
        )
        of = f"{number(points)} of {number(most)}"
        body.append(f'<tr><td>{link}</td>{cells}<td class="n">{of}</td></tr>')
    body.append("</table></div><p>* to look at: the student's page says why.</p>")
    return _page(title, "\n".join(body) + "\n")


def _week(table: Sequence[Row]) -> str:
    week, students = tables.next_week(table), len(tables.totals(table))
    if not week:
        return "<p>No mistake was found.</p>"
    lines = []
    for count, exercise, diagnosis in week:
        task = get(exercise).task
        cause = OWN.get(diagnosis) or escape(about(diagnosis, {}, task.diagnoses).cause)
        what = f"{exercise}, {escape(task.title)}: {count} of {students} <b>{escape(diagnosis)}</b>"
        where = f"See {escape(task.section)}."
        lines.append(f"<li>{what}. {cause} {where}</li>")
    return f"<ol>{''.join(lines)}</ol>"


def _states(table: Sequence[Row]) -> str:
    """A bar for each exercise, of how many answers are in each state."""
    counts: dict[str, Counter[str]] = {}
    for row in table:
        counts.setdefault(row.exercise, Counter())[row.judged.state] += 1
    names = list(counts)[::-1]
    figure, ax = _figure(8.5, 0.9 + 0.42 * len(names))
    left = [0] * len(names)
    for state in STATES:
        widths = [counts[name][state] for name in names]
        if not any(widths):
            continue
        ax.barh(names, widths, left=left, color=COLOURS[state], label=state, height=0.7)
        for i, width in enumerate(widths):
            if width:
                ax.text(left[i] + width / 2, i, str(width), ha="center", va="center", fontsize=9)
        left = [a + b for a, b in zip(left, widths, strict=True)]
    ax.set_xlabel("students")
    ax.set_xlim(0, max(left))
    ax.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=4, frameon=False, fontsize=9)
    told = "; ".join(
        f"{name}: {', '.join(f'{n} {state}' for state, n in counts[name].items())}"
        for name in counts
    )
    return _svg(figure, f"Answers to each exercise by state. {told}")


def _diagnoses(table: Sequence[Row]) -> str:
    """A grid of exercises and diagnoses, with how many answers there are in each place."""
    counts = tables.mistakes(table)
    sums: Counter[str] = Counter()
    for of in counts.values():
        sums.update({name: n for name, n in of.items() if name not in tables.NO_MISTAKE})
    columns = [name for name, _ in sorted(sums.items(), key=lambda one: (-one[1], one[0]))][:24]
    if not columns:
        return "<p>All answers pass.</p>"
    names = list(counts)
    figure, ax = _figure(max(5.0, 1.6 + 0.38 * len(columns)), 2.4 + 0.34 * len(names))
    grid = [[counts[name][column] for column in columns] for name in names]
    ax.imshow(grid, cmap="Oranges", vmin=0, aspect="auto")
    most = max(map(max, grid))
    for i, line in enumerate(grid):
        for j, count in enumerate(line):
            if count:
                dark = count > 0.6 * most
                ax.text(j, i, str(count), ha="center", va="center", fontsize=9,
                        color="white" if dark else "black")  # fmt: skip
    ax.set_xticks(range(len(columns)), columns, rotation=60, ha="right", fontsize=9)
    ax.set_yticks(range(len(names)), names)
    told = "; ".join(f"{n}: {', '.join(f'{c} {d}' for d, c in counts[n].items())}" for n in names)
    return _svg(figure, f"How many answers to each exercise have each diagnosis. {told}")


def _figure(width: float, height: float) -> tuple[Any, Any]:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    ax = figure.subplots()
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)
    ax.tick_params(length=0)
    return figure, ax


def _svg(figure: Any, told: str) -> str:
    """A figure as SVG for the middle of a page, the same each time, with what it shows in words."""
    import matplotlib

    text = io.StringIO()
    with matplotlib.rc_context(SVG):
        figure.savefig(text, format="svg", metadata={"Date": None, "Creator": None})
    svg = text.getvalue()
    svg = svg[svg.index("<svg") :]
    return svg.replace("<svg", f'<svg role="img" aria-label="{escape(told)}"', 1)


# --------------------------------------------------------------------------------- of a student


def _student(student: str, own: Sequence[Row], title: str) -> str:
    points, most = sum(row.points for row in own), sum(row.most for row in own)
    body = [
        f'<p><a href="index.html">{escape(title)}</a></p><h1>{escape(student)}</h1>',
        f"<p>{number(points)} of {number(most)} points.</p>",
    ]
    for row in own:
        task, judged = get(row.exercise).task, row.judged
        colour = COLOURS[judged.state]
        body.append(f"<h2>{row.exercise} {escape(task.title)}</h2>")
        of = f"{number(row.points)} of {number(row.most)}"
        state = f'<span class="state" style="border-bottom: .2rem solid {colour}">'
        late = ", late" if row.late else ""
        body.append(f"<p>{state}{judged.state}</span>, {of} points{late}. {_stages(row)}</p>")
        if row.judged.reason:
            body.append(f'<p class="reason">{escape(judged.reason)}</p>')
        if judged.diagnosis in OWN:
            body.append(f"<p>{OWN[judged.diagnosis]}</p>")
        if row.look:
            body.append(f"<p><b>To look at:</b> {escape(row.look)}</p>")
        if judged.code:
            summary = "<summary>The answer that was judged</summary>"
            body.append(f"<details>{summary}<pre>{escape(judged.code)}</pre></details>")
    return _page(f"{student}: {title}", "\n".join(body) + "\n")


def _stages(row: Row) -> str:
    if not row.judged.every:
        return ""
    left = [stage for stage in row.judged.every if stage not in row.judged.stages]
    reached = ", ".join(row.judged.stages) or "none"
    return f"Stages passed: {reached}." + (f" Not: {', '.join(left)}." if left else "")
