"""``gemmlab class``: a class's folder, the teacher's answers, and exams."""

import argparse
from collections.abc import Sequence
from pathlib import Path

from gemmlab.arguments import whole_number
from gemmlab.course import chapters
from gemmlab.course.teaching import classroom, sheets, syllabus
from gemmlab.here import files


def main(argv: Sequence[str]) -> int:
    """Run one of the three; ValueError for what cannot be done."""
    options = _parser().parse_args(argv)
    return options.do(options)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        "gemmlab class", description="A class's folder, the teacher's answers, and exams."
    )
    verbs = parser.add_subparsers(metavar="WHAT", required=True)
    add = verbs.add_parser("new", help="write a class's folder: notebooks, syllabus, grading")
    add.add_argument("folder", type=Path, metavar="FOLDER", help="is made; it must not be there")
    _add_drawn(add, "decides the hidden cases of the grades: a text that only you know")
    add.add_argument(
        "--hours",
        type=int,
        choices=syllabus.HOURS,
        help="plan these alone (default: all, and the weeks)",
    )
    add.add_argument(
        "--weeks",
        type=_count,
        metavar="NUMBER",
        help=f"plan this many weeks alone (default: {syllabus.WEEKS})",
    )
    add.set_defaults(do=_new)
    add = verbs.add_parser("answers", help="write each exercise's answer and mistakes")
    add.add_argument("of", metavar="FOLDER|CHAPTER", help="a class's folder, or such as 04")
    add.add_argument(
        "--output", type=Path, metavar="FILE", help="default: teacher/answers.md of the folder"
    )
    add.set_defaults(do=_answers)
    add = verbs.add_parser("exam", help="draw questions, and a sheet of their answers")
    _add_drawn(add, "decides what is drawn: the same text gives the same exam")
    add.add_argument(
        "--questions", type=_count, default=6, metavar="NUMBER", help="default: %(default)s"
    )
    add.add_argument(
        "--output",
        type=Path,
        default=Path("exam.md"),
        metavar="FILE",
        help="the answers are written beside it (default: %(default)s)",
    )
    add.set_defaults(do=_exam)
    return parser


def _add_drawn(add: argparse.ArgumentParser, seed: str) -> None:
    add.add_argument(
        "--chapters", type=_chapters, required=True, metavar="NUMBERS", help="with commas: 04,05"
    )
    add.add_argument("--seed", required=True, metavar="TEXT", help=seed)


def _chapters(text: str) -> tuple[str, ...]:
    try:
        return classroom.chosen(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def _count(text: str) -> int:
    try:
        return whole_number("the number", int(text))
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 1 on") from None


def _new(options: argparse.Namespace) -> int:
    given = options.hours or options.weeks
    hours = ((options.hours,) if options.hours else ()) if given else syllabus.HOURS
    weeks = options.weeks if given else syllabus.WEEKS
    written = classroom.new(options.folder, options.chapters, options.seed, hours, weeks)
    for path in written:
        print(f"Written: {path}")
    print(f"Grade what comes back: sh {options.folder / classroom.GRADE}")
    print(f"Slides, in a clone of the course: {classroom.slides(options.chapters)}")
    return 0


def _answers(options: argparse.Namespace) -> int:
    if options.of in chapters() and not Path(options.of).exists():
        sheet, target = sheets.answers((options.of,)), options.output
    else:
        found = classroom.read_class(Path(options.of))
        sheet = sheets.answers(found.chapters)
        target = options.output or found.seed_file.parent / "answers.md"
    if target is None:
        print(sheet, end="")
        return 0
    _put({target: sheet})
    return 0


def _exam(options: argparse.Namespace) -> int:
    drawn = sheets.exam(options.chapters, options.seed, options.questions)
    beside = options.output.with_name(f"{options.output.stem}.answers.md")
    _put({options.output: drawn.questions, beside: drawn.answers})
    return 0


def _put(sheets: dict[Path, str]) -> None:
    """Write files that are not there yet; ValueError, and none is written, for one that is."""
    for path in sheets:
        if path.exists():
            raise ValueError(
                f"{path} is there already, and is left as it is; name another --output"
            )
    for path, text in sheets.items():
        files.put(path, text.encode())
        print(f"Written: {path}")
