"""A league: the entries of many logs, each judged anew from its text, in one table.

Nothing that a file says of an entry's time is believed: behind the walls of a grade its kernel is
made of its text, judged, and predicted for an H200, the same on every machine. Measured times are
shown as the files tell them, for those who want them.
"""

import base64
import secrets
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

from gemmlab.course.grading.definitions import RefusedError
from gemmlab.course.grading.processes import Grader
from gemmlab.course.grading.table import csv_of
from gemmlab.course.judging import drawing
from gemmlab.course.judging.apart import NotJudged
from gemmlab.course.worklog.entries import Entry, rung_of_text
from gemmlab.course.worklog.judging import GPUS, Judged, judge
from gemmlab.course.worklog.log import entries_of
from gemmlab.course.worklog.shapes import SHAPES, Shape
from gemmlab.here import files
from gemmlab.measure.measurement import duration


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
        verdict = f"{self.judged.diagnosis}{self.judged.far}"
        time = duration(self.seconds) if self.judged.seconds else ""
        why = "" if passed else "; ".join(text for _, text in self.judged.facts)
        return {
            "shape": self.shape, "who": self.who, "entry": f"{self.number} {self.name}",
            "verdict": verdict, "predicted on an H200": time,
            "measured, as told": self.measured, "why": why[:400],
        }  # fmt: skip


class League(list[Row]):
    """The rows of a league: by shape, right entries by their predicted times, then the others.

    seed : what decided which cases were drawn
    """

    seed = ""

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


def league(
    logs: Sequence[str | Path], seed: str = "", tell: Callable[[str], object] = print
) -> League:
    """Judge the entries of work logs anew, and rank them.

    logs : files that `Log` has kept; the name of a file's folder, or its own, says whose it is
    seed : decides what is drawn, the same for all; where none is given it is drawn, and told
    tell : gets a line for each entry when it was judged, and the seed
    Raises ValueError for a file that is no work log, and OSError for one that cannot be read.
    """
    paths = [Path(path) for path in logs]
    contents = [path.read_bytes() for path in paths]
    read = [entries_of(content, str(path)) for content, path in zip(contents, paths, strict=True)]
    seed, rows = seed or secrets.token_hex(4), []
    tell(f"seed {seed!r}: the same one judges the same way again")
    with tempfile.TemporaryDirectory(prefix="gemmlab-") as compiled:
        grader = Grader(seed, compiled=Path(compiled))
        grader.prepare()
        for path, content, (shape, entries) in zip(paths, contents, read, strict=True):
            own = path.stem.removeprefix("worklog-")
            who = path.resolve().parent.name if own in SHAPES else own
            for number, entry in enumerate(entries, 1):
                judged = _judged(grader, content, number - 1)
                told = next((f"{duration(s)}, {gpu}" for gpu, s in entry.measured.items()), "")
                rows.append(Row(who, shape.name, number, entry.name, judged, told))
                cells = list(rows[-1].cells.values())[1:5]
                tell(f"{number} of {len(entries)}: {', '.join(filter(None, cells))}")
    found = ranked(rows)
    found.seed = seed
    return found


def ranked(rows: Sequence[Row]) -> League:
    """The rows in the order of a league."""
    order = {name: place for place, name in enumerate(SHAPES)}
    return League(sorted(rows, key=lambda r: (order[r.shape], not r.judged.passed, r.seconds)))


def _judged(grader: Grader, content: bytes, place: int) -> Judged:
    """What a process behind walls, of its own, finds of one entry of a log."""
    job = {"log": base64.b64encode(content).decode(), "seed": grader.seed, "place": place}
    for kind, data in grader.asked(job):
        if kind == "judged":
            facts, lines = (tuple((a, b) for a, b in data.pop(key)) for key in ("facts", "lines"))
            return Judged(facts=facts, lines=lines, **data)
    return Judged("judge-ended", (("Found", "the process that judged it ended before its time"),))


def judge_text(entry: Entry, shape: Shape, seed: str) -> Judged:
    """What is found of an entry's text; for a process behind walls."""
    try:
        with drawing.seeded(f"{shape.name}/{seed}"):
            return judge(rung_of_text(entry), shape, lines=False)
    except RefusedError as refused:
        return Judged(refused.diagnosis, (("Refused", str(refused)),))
    except NotJudged as busy:
        return Judged("not-judged", (("Stopped", str(busy)),))
    except Exception as error:
        return Judged("not-judged", (("Error", f"{type(error).__name__}: {error}"),))
