"""The table of a class: a row for each student and exercise, and what teachers read from it.

A `Row` has points and a reason. `mistakes` counts diagnoses by exercise: what to teach next week.
Rows are in the order of students and exercises, and say nothing of the machine or the day, so that
a class that is graded twice gives the same table to the byte.
"""

import csv
import io
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from gemmlab.course.grading.choices import FORMATS
from gemmlab.course.grading.judged import (
    MISSING,
    NOT_ATTEMPTED,
    NOT_JUDGED,
    PASSED,
    SOLUTION,
    UNREADABLE,
    Judged,
)
from gemmlab.course.grading.processes import Found
from gemmlab.course.grading.rubric import Rubric
from gemmlab.course.grading.students import Handed

_FORMULA = tuple("=+-@＝＋－＠\t\r")  # what spreadsheets take for a formula begins so


@dataclass(frozen=True)
class Row:
    """One exercise of one student.

    points : given, of `most`; late : whether it came late; attempts : how many there were
    look : why somebody should look at it, empty where nothing is odd
    """

    student: str
    number: str
    judged: Judged
    points: float
    most: float
    late: bool = False
    attempts: int = 1
    look: str = ""

    @property
    def exercise(self) -> str:
        """The exercise's name."""
        return self.judged.exercise

    @property
    def cells(self) -> dict[str, str]:
        """The row as a file of the table has it."""
        return {
            "student": self.student,
            "exercise": self.exercise,
            "state": self.judged.state,
            "points": number(self.points),
            "of": number(self.most),
            "diagnosis": self.judged.diagnosis,
            "stages": " ".join(self.judged.stages),
            "late": "late" if self.late else "",
            "attempts": str(self.attempts),
            "to look at": self.look,
            "reason": self.judged.reason,
        }


def number(value: float) -> str:
    """Points with two digits at most."""
    return f"{value:.2f}".rstrip("0").rstrip(".")


def exercises_of(found: Sequence[Found], only: Sequence[str], every: Sequence[str]) -> list[str]:
    """The exercises that the class has: `only` those, or all of the chapters that half of it has.

    every : the exercises that there are, in their order
    """
    if only:
        return [name for name in every if name in only]
    readable = [one for one in found if not one.fault]
    chapters = Counter(
        c for one in readable for c in {name.partition(".")[0] for name in one.asked}
    )
    usual = {c for c, count in chapters.items() if 2 * count >= len(readable)} or {*chapters}
    return [name for name in every if name.partition(".")[0] in usual]


def rows(
    handed: Sequence[Handed], found: Sequence[Found], names: Sequence[str], rubric: Rubric
) -> list[Row]:
    """The table: of each student and exercise the attempt that counts."""
    of_student: dict[str, list[tuple[Handed, Found]]] = defaultdict(list)
    for file, one in zip(handed, found, strict=True):
        of_student[file.student].append((file, one))
    table = []
    for student in sorted(of_student):
        for name in names:
            tries = [_row(student, file, one, name, rubric) for file, one in of_student[student]]
            made = [row for row in tries if row.judged.state not in (MISSING, UNREADABLE)]
            # the best of equals is the first; what is missing counts where there is nothing else
            best = max(made, key=lambda row: row.points) if made else tries[-1]
            chosen = made[-1] if made and rubric.attempts == "last" else best
            table.append(replace(chosen, attempts=len(made)))
    return _alike(table)


def _row(student: str, file: Handed, found: Found, name: str, rubric: Rubric) -> Row:
    judged = found.judged.get(name)
    if found.fault:
        judged = Judged(name, UNREADABLE, "unreadable", found.fault)
    elif judged is None:
        judged = Judged(name, MISSING, "missing", "the notebook does not have it")
    late = file.is_late(rubric.due)
    points = rubric.given(name, judged.stages, judged.every) if judged.every else 0.0
    points *= rubric.late if late else 1
    look = "; ".join(judged.looks)
    return Row(student, file.number, judged, round(points, 4), rubric.most(name), late, look=look)


def _alike(table: list[Row]) -> list[Row]:
    """The rows, with a note where several students have handed in the same answer."""
    same: dict[tuple[str, str], list[str]] = defaultdict(list)
    for row in table:
        if row.judged.like:
            same[row.exercise, row.judged.like].append(row.student)
    found = []
    for row in table:
        others = [s for s in same[row.exercise, row.judged.like] if s != row.student]
        solved = SOLUTION in row.judged.looks  # as others may have, without having met
        others = [] if solved else others
        note = f"the same as {', '.join(others[:5])}, but for names and comments" if others else ""
        if note:
            row = replace(row, look="; ".join(filter(None, [row.look, note])))
        found.append(row)
    return found


# --------------------------------------------------------------------------------- of the class

Mistakes = dict[str, Counter[str]]  # exercise -> how many answers have each diagnosis


def mistakes(table: Sequence[Row]) -> Mistakes:
    """How many answers to each exercise have each diagnosis, "passed" among them."""
    counts: Mistakes = {}
    for row in table:
        counts.setdefault(row.exercise, Counter())[row.judged.diagnosis] += 1
    return counts


NO_MISTAKE = (PASSED, "not-attempted", "missing", "unreadable", "no-python", "not-judged")
# Of these a teacher speaks with one student, not with the class.
NO_LESSON = ("borrowed", "judge-ended", "reaches-out", "tampers")


def next_week(table: Sequence[Row], most: int = 5) -> list[tuple[int, str, str]]:
    """The commonest mistakes: (how many, exercise, diagnosis), the most frequent first."""
    found = [
        (count, exercise, diagnosis)
        for exercise, of in mistakes(table).items()
        for diagnosis, count in of.items()
        if diagnosis not in NO_MISTAKE + NO_LESSON
    ]
    return sorted(found, key=lambda one: (-one[0], one[1:]))[:most]


def totals(table: Sequence[Row]) -> dict[str, tuple[float, float]]:
    """The points of each student, and how many there are."""
    sums: dict[str, tuple[float, float]] = {}
    for row in table:
        points, most = sums.get(row.student, (0.0, 0.0))
        sums[row.student] = points + row.points, most + row.most
    return sums


def told(table: Sequence[Row]) -> str:
    """The tables of a class as text: points by student, and mistakes by exercise."""
    names = list(dict.fromkeys(row.exercise for row in table))
    by = {(row.student, row.exercise): row for row in table}
    wide = max([7, *(len(student) for student in totals(table))])
    wide = min(wide, 30)
    lines = [f"{'student':{wide}} {' '.join(f'{n:>6}' for n in names)}   points"]
    for student, (points, most) in totals(table).items():
        cells = " ".join(f"{_short(by[student, name]):>6}" for name in names)
        lines.append(f"{student[:wide]:{wide}} {cells}   {number(points)} of {number(most)}")
    lines += ["", "Answers to each exercise, by diagnosis:"]
    for exercise, counts in mistakes(table).items():
        most_first = sorted(counts.items(), key=lambda one: (one[0] != PASSED, -one[1], one[0]))
        lines.append(f"  {exercise}  {', '.join(f'{n} {name}' for name, n in most_first)}")
    if week := next_week(table):
        lines += ["", "What to teach next week:"]
        students = len(totals(table))
        lines += [f"  {name}: {count} of {students} {what}" for count, name, what in week]
    looks = [row for row in table if row.look]
    if looks:
        lines += ["", "To look at:"]
        lines += [f"  {row.student}, {row.exercise}: {row.look}" for row in looks]
    return "\n".join(lines) + "\n"


_SIGNS = {NOT_ATTEMPTED: "-", MISSING: "·", UNREADABLE: "?", NOT_JUDGED: "…"}


def _short(row: Row) -> str:
    mark = "*" if row.look else ""
    return _SIGNS.get(row.judged.state, number(row.points)) + mark


# --------------------------------------------------------------------------------- as files


def plain_csv(table: Sequence[Row], title: str) -> str:
    """All rows, with all that is known of each."""
    return csv_of([row.cells for row in table])


def seconds_csv(table: Sequence[Row]) -> str:
    """Seconds of the processor that each answer took, which differ each time."""
    return csv_of(
        [
            {"student": r.student, "exercise": r.exercise, "seconds": f"{r.judged.seconds:.2f}"}
            for r in table
        ]
    )


def canvas_csv(table: Sequence[Row], title: str) -> str:
    """The points of each student as Canvas's gradebook imports them.

    Canvas finds students by "ID"; it takes the first row after the names for the points possible.
    """
    most = max((m for _, m in totals(table).values()), default=0.0)
    names = ("Student", "ID", "SIS User ID", "SIS Login ID", "Section")
    first = dict.fromkeys(names, "") | {"Student": "    Points Possible", title: number(most)}
    numbers = {row.student: row.number for row in table}
    lines = [
        dict.fromkeys(names, "")
        | {"Student": student, "ID": numbers[student], title: number(points)}
        for student, (points, _) in totals(table).items()
    ]
    return csv_of([first, *lines])


def moodle_csv(table: Sequence[Row], title: str) -> str:
    """The points of each student as Moodle's grading worksheet has them, with the reasons."""
    numbers = {row.student: row.number for row in table}
    by: dict[str, list[Row]] = defaultdict(list)
    for row in table:
        by[row.student].append(row)
    lines = []
    for student, (points, most) in totals(table).items():
        said = "; ".join(
            f"{r.exercise}: {number(r.points)} of {number(r.most)}, {r.judged.diagnosis}"
            for r in by[student]
        )
        lines.append(
            {
                "Identifier": f"Participant {numbers[student]}".strip(),
                "Full name": student,
                "Email address": "",
                "Status": "",
                "Grade": number(points),
                "Maximum Grade": number(most),
                "Feedback comments": said,
            }
        )
    return csv_of(lines)


def csv_of(lines: Sequence[Mapping[str, str]]) -> str:
    """Rows as a file for spreadsheets, none of whose cells is a formula."""
    text = io.StringIO()
    if lines:
        writer = csv.DictWriter(text, list(lines[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows({k: _harmless(v) for k, v in line.items()} for line in lines)
    return text.getvalue()


def _harmless(text: str) -> str:
    """Text that no spreadsheet takes for a formula."""
    return f"'{text}" if text.lstrip(" ").startswith(_FORMULA) else text


WRITERS: dict[str, Callable[[Sequence[Row], str], str]] = dict(
    zip(FORMATS, (plain_csv, canvas_csv, moodle_csv), strict=True)
)
