"""``gemmlab grade``: notebooks go in; a table, files and pages come out."""

import os
import stat
import sys
import tempfile
from argparse import Namespace
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from importlib.util import find_spec
from pathlib import Path

from gemmlab.course import chapters, exercise_modules
from gemmlab.course.grading import report, rubric, table
from gemmlab.course.grading.choices import SEED
from gemmlab.course.grading.judged import UNREADABLE
from gemmlab.course.grading.processes import Found, Grader
from gemmlab.course.grading.students import Handed, handed_in, printable
from gemmlab.course.grading.submission import LARGEST
from gemmlab.course.grading.table import Row
from gemmlab.course.judging.apart import copies
from gemmlab.here import files
from gemmlab.here.compilers import lacking
from gemmlab.here.detection import cores

INTERRUPTED = 130


@dataclass
class Work:
    """Notebooks to be graded, and how.

    kept : where outcomes are kept, to go on from; None where they are not
    part : of how many, (1, 20) for the first of twenty jobs; None for all
    say : takes lines about how far it has come
    """

    paths: Sequence[Path]
    seed: str = SEED
    only: Sequence[str] = ()
    rubric: Path | None = None
    workers: int | None = None
    kept: Path | None = None
    part: tuple[int, int] | None = None
    say: Callable[[str], None] = lambda line: None
    done: int = 0
    handed: list[Handed] = field(default_factory=list)

    def rows(self) -> list[Row]:
        """Grade all of them; ValueError, before anything runs, for what cannot be done.

        Of a part nothing but what is kept comes: the table is that of all of them.
        """
        given = rubric.read(self.rubric)
        names = chosen(self.only)
        self.handed = handed_in(self.paths)
        if self.part:
            number, of = self.part
            self.handed = self.handed[number - 1 :: of]
        if not copies():
            raise ValueError(
                "answers are judged in copies of a process, which this system has not: grade on "
                "Linux, on macOS, or in Windows' WSL"
            )
        with tempfile.TemporaryDirectory(prefix="gemmlab-") as spare:
            grader = Grader(
                self.seed, tuple(names), self.kept, (self.kept or Path(spare)) / "numba"
            )
            self._announce(grader)
            every = self._found(grader)
        if self.part:
            return []
        judged = table.exercises_of(every, names, list(exercise_modules()))
        if not judged:
            faults = "; ".join(dict.fromkeys(one.fault for one in every if one.fault))
            raise ValueError(f"no notebook has an exercise; --only names them. {faults}".strip())
        self._say_left_out(every, judged)
        return table.rows(self.handed, every, judged, given)

    def _found(self, grader: Grader) -> list[Found]:
        """What is found in each notebook, as they come."""
        named = {path.absolute() for path in self.paths}
        notebooks = [partial(_content, one.path, one.path in named) for one in self.handed]
        found: dict[int, Found] = {}
        for at, one in grader.every(notebooks, self.workers or cores()):
            found[at] = one
            self.done += 1
            one_of = self.handed[at]
            file = printable(one_of.path.name)
            self.say(f"{self.done} of {len(self.handed)}: {one_of.student}, {file}")
        return [found[at] for at in sorted(found)]

    def _announce(self, grader: Grader) -> None:
        self.say(grader.walls().told)
        if self.seed == SEED:
            self.say(
                f"Cases are drawn from the seed {SEED!r}, which everybody knows: choose one of "
                "your own with --seed."
            )
        grader.prepare()
        if lacking():
            self.say(f"Times are left out of all grades: {lacking()}")

    def _say_left_out(self, found: Sequence[Found], names: Sequence[str]) -> None:
        others = {name for one in found for name in one.asked} - {*names}
        if others and not self.only:
            self.say(
                f"Left out, since less than half of the notebooks have them: "
                f"{', '.join(sorted(others))}; --only names what counts."
            )


def chosen(only: Sequence[str]) -> list[str]:
    """The exercises that these words name: exercises, and chapters with all of theirs."""
    every = list(exercise_modules())
    names = []
    for word in only:
        own = [name for name in every if word in (name, name.partition(".")[0])]
        if not own:
            known = f"an exercise, such as {every[0]}, or a chapter, {', '.join(chapters())}"
            raise ValueError(f"--only {word!r} names no exercise; use {known}")
        names += own
    return [name for name in every if name in names]


def _content(path: Path, own: bool) -> bytes:
    """The bytes of a notebook; no more than are read, and one that says so beyond those.

    own : whether the teacher named it; what a student's link, or queue, leads to is not theirs
    """
    if path.is_symlink() and not own:
        raise OSError(0, "it is a link to another file; hand in the notebook itself")
    with open(os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0)), "rb") as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise OSError(0, "it is no file")
        return file.read(LARGEST + 1)


def run(options: Namespace) -> int:
    """Grade, print the table, and write what was asked for.

    The status is 0 if every notebook could be read, 1 if one could not, 130 after Ctrl-C.
    """
    if options.html and not find_spec("matplotlib"):
        raise ValueError(
            "--html draws plots with matplotlib, which is not here: pip install matplotlib"
        )
    kept = options.csv and options.csv.with_name(f"{options.csv.stem}.kept")
    if options.part and not kept:
        raise ValueError("--part keeps what it finds beside the table: say --csv, too")
    work = Work(
        options.submissions, seed(options), options.only, options.rubric, options.workers, kept,
        options.part, _to_stderr,
    )  # fmt: skip
    try:
        rows = work.rows()
    except KeyboardInterrupt:
        goes_on = f"; the same command goes on from {kept}" if kept else "; --csv keeps them"
        told = f"{work.done} of {len(work.handed)} notebooks are graded{goes_on}"
        print(f"gemmlab: interrupted: {told}", file=sys.stderr)
        return INTERRUPTED
    if options.part:
        _to_stderr(f"Kept in {kept}; the same command without --part writes the table of all")
        return 0
    print(table.told(rows), end="")
    if options.csv:
        text = table.WRITERS[options.format](rows, options.title)
        files.put(options.csv, text.encode("utf-8"))
        seconds = options.csv.with_name(f"{options.csv.stem}.seconds.csv")
        files.put(seconds, table.seconds_csv(rows).encode("utf-8"))
        _to_stderr(f"Written: {options.csv}, {seconds}")
    if options.html:
        _to_stderr(f"Written: {report.write(options.html, rows, options.title)}")
    return 1 if any(row.judged.diagnosis == UNREADABLE for row in rows) else 0


def seed(options: Namespace) -> str:
    """The class's seed: what was said, or the line in the file that was named."""
    if options.seed_file is None:
        return options.seed
    text = options.seed_file.read_text("utf-8").rstrip("\r\n")
    if not text or not text.isprintable():
        raise ValueError(f"--seed-file {options.seed_file} has no single line of text")
    return text


def _to_stderr(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
