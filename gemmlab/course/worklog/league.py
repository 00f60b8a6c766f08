"""A league: the entries of many logs, each judged anew from its text, in one table.

Nothing that a file says of an entry's time is believed: behind the walls of a grade its kernel is
made of its text, judged, and predicted for an H200, the same on every machine. Measured times are
shown as the files tell them, for those who want them.
"""

from __future__ import annotations

import base64
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

from gemmlab.course.grading.choices import SEED
from gemmlab.course.grading.definitions import RefusedError
from gemmlab.course.grading.processes import Grader
from gemmlab.course.grading.table import csv_of
from gemmlab.course.judging import drawing
from gemmlab.course.judging.apart import NotJudged
from gemmlab.course.judging.timed import duration
from gemmlab.course.worklog.entries import Entry, rung_of_text
from gemmlab.course.worklog.judging import GPUS, Judged, judge
from gemmlab.course.worklog.log import entries_of
from gemmlab.course.worklog.shapes import SHAPES, Shape
from gemmlab.here import files

START = ("-m", "gemmlab.course.worklog.worker")


@dataclass(frozen=True)
class Row:
    """One entry of a file as it was judged now."""

    who: str
    shape: str
    number: int
    name: str
    judged: Judged
    measured: str = ""

    @property
    def seconds(self) -> float:
        """The predicted time on an H200; infinite for one that did not pass, or has none."""
        return self.judged.seconds.get(GPUS[0], float("inf"))

    @property
    def cells(self) -> dict[str, str]:
        """The row as texts, by the names of its columns."""
        passed = self.judged.passed
        time = duration(self.seconds) if self.judged.seconds else ""
        why = "" if passed else "; ".join(text for _, text in self.judged.facts)
        return {
            "shape": self.shape, "who": self.who, "entry": f"{self.number} {self.name}",
            "verdict": self.judged.diagnosis, "predicted on an H200": time,
            "measured, as told": self.measured, "why": why[:400],
        }  # fmt: skip


class League(list[Row]):
    """The rows of a league: by shape, right entries by their predicted times, then the others."""

    @property
    def csv(self) -> str:
        """The table as a file for spreadsheets."""
        return csv_of([row.cells for row in self])

    def write(self, path: str | Path) -> Path:
        """Write `csv` to a file."""
        files.put(Path(path), self.csv.encode())
        return Path(path)

    def __repr__(self) -> str:
        table = [list(row.cells.values())[:6] for row in self]
        head = ["shape", "who", "entry", "verdict", "predicted on an H200", "measured, as told"]
        wide = [max(len(line[i]) for line in [head, *table]) for i in range(len(head))]
        return "\n".join(
            "  ".join(text.ljust(w) for text, w in zip(line, wide, strict=True)).rstrip()
            for line in [head, *table]
        )

    def _repr_html_(self) -> str:
        if not self:
            return "<p>No entries.</p>"
        head = "".join(f"<th>{name}</th>" for name in self[0].cells)
        body = "".join(
            "<tr>" + "".join(f"<td>{escape(t)}</td>" for t in row.cells.values()) + "</tr>"
            for row in self
        )
        return f"<table><tr>{head}</tr>{body}</table>"


def league(logs: Sequence[str | Path], seed: str = SEED) -> League:
    """Judge the entries of work logs anew, and rank them.

    logs : files that `Log` has kept; the name of a file's folder, or its own, says whose it is
    seed : decides what is drawn: the same for all, and nobody else's business
    Raises ValueError for a file that is no work log, and OSError for one that cannot be read.
    """
    paths = [Path(path) for path in logs]
    contents = [path.read_bytes() for path in paths]
    read = [entries_of(content, str(path)) for content, path in zip(contents, paths, strict=True)]
    rows = []
    with tempfile.TemporaryDirectory(prefix="gemmlab-") as compiled:
        grader = Grader(seed, compiled=Path(compiled), start=START)
        grader.prepare()
        for path, content, (shape, entries) in zip(paths, contents, read, strict=True):
            own = path.stem.removeprefix("worklog-")
            who = path.resolve().parent.name if own in SHAPES else own
            found = _judged(grader, content, len(entries))
            for number, (entry, judged) in enumerate(zip(entries, found, strict=True), 1):
                told = next((f"{duration(s)}, {gpu}" for gpu, s in entry.measured.items()), "")
                rows.append(Row(who, shape.name, number, entry.name, judged, told))
    return ranked(rows)


def ranked(rows: Sequence[Row]) -> League:
    """The rows in the order of a league."""
    order = {name: place for place, name in enumerate(SHAPES)}
    return League(sorted(rows, key=lambda r: (order[r.shape], not r.judged.passed, r.seconds)))


def _judged(grader: Grader, content: bytes, count: int) -> list[Judged]:
    """What a process behind walls finds of each entry of a log; it goes on after one that ended."""
    found, begin = [Judged("not-judged")] * count, 0
    while begin < count:
        job = {"log": base64.b64encode(content).decode(), "seed": grader.seed, "begin": begin}
        for kind, what in grader.asked(job):
            if kind == "judged":
                number, data = what
                facts = tuple((a, b) for a, b in data.pop("facts"))
                found[number] = Judged(facts=facts, **data)
                begin = number + 1
        if begin < count and found[begin].diagnosis == "not-judged":
            ended = ("Found", "the process that judged it ended before its time")
            found[begin], begin = Judged("judge-ended", (ended,)), begin + 1
    return found


def judge_text(entry: Entry, shape: Shape, seed: str) -> Judged:
    """What is found of an entry's text; for a process behind walls."""
    try:
        with drawing.seeded(f"{shape.name}/{seed}"):
            return judge(rung_of_text(entry), shape)
    except RefusedError as refused:
        return Judged(refused.diagnosis, (("Refused", str(refused)),))
    except NotJudged as busy:
        return Judged("not-judged", (("Stopped", str(busy)),))
    except Exception as error:
        return Judged("not-judged", (("Error", f"{type(error).__name__}: {error}"),))
