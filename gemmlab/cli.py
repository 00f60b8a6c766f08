"""The command ``gemmlab``: doctor, lab, simulate, predict, grade, class, league, record, …"""

import argparse
import contextlib
import os
import runpy
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import gemmlab
from gemmlab import doctor, grading
from gemmlab.compiled.sm.facts import known
from gemmlab.here.compilers import lacking
from gemmlab.measure import recording, records
from gemmlab.programs import following, predicting, running as programs
from gemmlab.programs.formats import FORMATS
from gemmlab.programs.predicted import FORMATS as PREDICTED

RUN_PY = Path(__file__).parents[1] / "run.py"  # beside the package in a clone
# Exit statuses of `simulate`, where the program itself ended with 0.
HAZARDS = 1  # or a launch that had not ended
UNTOLD = 3  # the account could not be written
NOTHING_LAUNCHED = 5
HANDED_OVER = {  # to run.py, with all their arguments
    "lab": "open the course in JupyterLab",
    "book": "build the site into book/_build/html",
}


def main(argv: Sequence[str] | None = None) -> int:
    """Run one verb and return the exit code, 0 if all went well."""
    parser = _parser()
    argv, of_program = predicting.split(sys.argv[1:] if argv is None else argv)
    arguments, rest = parser.parse_known_args(argv)
    if rest and arguments.verb not in (*HANDED_OVER, "class"):
        parser.error(f"unrecognized arguments: {' '.join(rest)}")
    if arguments.verb is None:
        parser.print_help()
        return 0
    arguments.rest = of_program or rest
    try:
        return arguments.do(arguments)
    except (OSError, ValueError) as error:
        return _fail(str(error))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("gemmlab", description=gemmlab.__doc__.partition("\n")[0])
    parser.add_argument("--version", action="version", version=f"gemmlab {gemmlab.__version__}")
    verbs = parser.add_subparsers(dest="verb", metavar="VERB", title="verbs")
    add = verbs.add_parser(
        "doctor", help="say what works on this machine, and how to mend the rest"
    )
    add.set_defaults(do=_doctor)
    for verb, line in HANDED_OVER.items():
        add = verbs.add_parser(verb, help=line, add_help=False)
        add.set_defaults(do=_run_py)
    _add_simulate(verbs)
    predicting.add_to(verbs, PREDICTED)
    _add_grade(verbs)
    add = verbs.add_parser(
        "class", help="for teachers: assignments, a syllabus, answers, exams", add_help=False
    )
    add.set_defaults(do=_class)
    add = verbs.add_parser("league", help="judge work logs anew, and rank their entries")
    add.add_argument("logs", metavar="LOG", nargs="+", type=Path, help="a file worklog-SHAPE.json")
    add.add_argument("--csv", type=Path, metavar="FILE", help="write the table, too")
    add.add_argument(
        "--seed", default="", metavar="TEXT",
        help="decides what is drawn: a text that only you know (default: a new one, told)",
    )  # fmt: skip
    add.set_defaults(do=_league)
    _add_record(verbs)
    add = verbs.add_parser("check", help="validate files of recorded measurements")
    add.add_argument("files", nargs="*", type=Path, help="default: all that come with gemmlab")
    add.set_defaults(do=_check)
    return parser


def _add_simulate(verbs: Any) -> None:
    add = verbs.add_parser(
        "simulate",
        help="run a program of Numba-CUDA or numba-cuda-mlir on a simulated GPU; status 1 if it "
        "has hazards, 5 if it launches no kernel",
    )
    add.add_argument("--format", choices=FORMATS, default="text", help="of the account at the end")
    add.add_argument("--output", type=Path, help="file of the account (default: standard error)")
    add.add_argument(
        "--device",
        metavar="GPU",
        help=f"predict, too, how long each launch takes on it: {', '.join(known())}",
    )
    add.add_argument(
        "--sample",
        action="store_true",
        help="with --device: of launches of more than 262144 threads simulate the first and the "
        "last blocks alone; what the others store is missing",
    )
    add.add_argument(
        "--stop",
        type=_stop,
        metavar="BLOCK,THREAD:LINE",
        help="stop this thread at this line of a kernel, in Python's debugger; such as 2,5:14, "
        '"(1,0),(3,2):14" or 2,5:kernels.py:14',
    )
    add.add_argument("-m", "--module", action="store_true", help="SCRIPT is the name of a module")
    add.add_argument("script", metavar="SCRIPT", help="what `python SCRIPT` would run")
    add.add_argument("arguments", metavar="ARGS", nargs=argparse.REMAINDER, help="all that follow")
    add.set_defaults(do=_simulate)


def _add_grade(verbs: Any) -> None:
    add = verbs.add_parser(
        "grade",
        help="grade a class's notebooks: points and reasons for each exercise; status 1 if one "
        "cannot be read",
    )
    add.add_argument(
        "submissions",
        metavar="SUBMISSION",
        nargs="+",
        type=Path,
        help="a notebook, or a folder that has one for each student",
    )
    add.add_argument("--csv", type=Path, metavar="FILE", help="write the table, too")
    add.add_argument(
        "--format",
        choices=grading.choices.FORMATS,
        default=grading.choices.FORMATS[0],
        help="of that file: all rows, or the sums that Canvas or Moodle import",
    )
    add.add_argument(
        "--html",
        type=Path,
        metavar="FOLDER",
        help="write pages with plots of the class, and one for each student",
    )
    add.add_argument("--title", default="Grades", help="of the pages and of the sums")
    seed = add.add_mutually_exclusive_group()
    seed.add_argument(
        "--seed",
        default=grading.choices.SEED,
        metavar="TEXT",
        help="decides what checks draw: the same for the whole class, and nobody else's business",
    )
    seed.add_argument(
        "--seed-file",
        type=Path,
        metavar="FILE",
        help="has that text, which others on this machine then do not see in the command",
    )
    add.add_argument(
        "--only",
        type=_words,
        default=(),
        metavar="NAMES",
        help="exercises or chapters, with commas: 04.1,05 (default: the chapters that half of the "
        "class has)",
    )
    add.add_argument("--rubric", type=Path, metavar="FILE", help="points by stages, in TOML")
    add.add_argument("--workers", type=count, help="processes at once (default: the processors)")
    add.add_argument(
        "--part",
        type=_part,
        metavar="NUMBER/JOBS",
        help="grade each so-many-th notebook alone, from this one on, and keep what is found: 3/20 "
        "is the third of twenty jobs at once; then the same command without it writes the table",
    )
    add.set_defaults(do=_grade)


def _add_record(verbs: Any) -> None:
    add = verbs.add_parser("record", help="measure the kernels on this machine's GPU, keep results")
    names = ",".join(kernel.name for kernel in recording.KERNELS)
    add.add_argument("--kernels", default=names, help=f"names with commas (default: {names})")
    add.add_argument(
        "--sizes",
        default=recording.SIZES,
        help="n or mxnxk, then :nt for a layout and :float16 for a format, with commas "
        "(default: %(default)s)",
    )
    add.add_argument(
        "--splits",
        type=_counts,
        default=(),
        metavar="NUMBERS",
        help="parts of k, with commas, in which kernels that divide it are measured besides what "
        "they suggest",
    )
    add.add_argument("--repeats", type=count, help="timed runs of each (default: 0.3 s of them)")
    add.add_argument(
        "--budget",
        type=float,
        default=recording.BUDGET,
        help="leave out what is predicted to take longer for one launch [s] (default: %(default)s)",
    )
    add.add_argument("--out", type=Path, help="folder (default: recorded/<device> in the package)")
    add.add_argument("--dry-run", action="store_true", help="list it all with predicted times")
    add.add_argument(
        "--listings",
        action="store_true",
        help="compile the kernels and keep their code, for readers without the compiler; needs no "
        "GPU",
    )
    add.set_defaults(do=_record)


def count(text: str) -> int:
    """Return a number of times from a command line; ArgumentTypeError for less than 1."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number of at least 1")
    return int(text)


def _part(text: str) -> tuple[int, int]:
    number, _, jobs = text.partition("/")
    try:
        found = count(number), count(jobs)
    except argparse.ArgumentTypeError:
        found = 1, 0
    if found[0] > found[1]:
        raise argparse.ArgumentTypeError(f"{text!r} is no part, such as 1/20 to 20/20")
    return found


def _stop(text: str) -> programs.Stop:
    try:
        return programs.Stop.of(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def _counts(text: str) -> tuple[int, ...]:
    return tuple(count(number.strip()) for number in text.split(","))


def _words(text: str) -> tuple[str, ...]:
    return tuple(word.strip() for word in text.split(",") if word.strip())


def _fail(message: str) -> int:
    with contextlib.suppress(OSError):  # nobody reads it, or nobody can
        print(f"gemmlab: {message}", file=sys.stderr)
    return 1


def _doctor(arguments: argparse.Namespace) -> int:
    print(f"gemmlab {gemmlab.__version__}\n{doctor.report()}")
    return 0


def _run_py(arguments: argparse.Namespace) -> int:
    if RUN_PY.is_file():
        return runpy.run_path(str(RUN_PY))["main"]([arguments.verb, *arguments.rest])
    if arguments.verb == "lab":
        return _installed_lab(arguments.rest)
    return _fail(
        "the book is in gemmlab's repository, not in the installed package; in a clone of it: "
        f"python run.py {arguments.verb}"
    )


def _installed_lab(extra: Sequence[str]) -> int:
    """Open the chapters that an installed package has inside."""
    if find_spec("jupyterlab") is None:
        return _fail('JupyterLab is not installed: pip install "gemmlab[lab]"')
    sys.argv = ["gemmlab lab", *extra]
    runpy.run_module(f"{gemmlab.__name__}.lab", run_name="__main__")
    return 0


def _simulate(arguments: argparse.Namespace) -> int:
    if arguments.sample and not arguments.device:
        return _fail("--sample is for predictions; say --device, too")
    if arguments.device:
        if arguments.device not in known():
            return _fail(
                f"--device {arguments.device}: no launch is predicted for this GPU; use "
                f"{', '.join(known())}"
            )
        if lacking():
            return _fail(f"--device compiles the kernels: {lacking()}")
    outcome = programs.Outcome(
        arguments.script, tuple(arguments.arguments), device=arguments.device
    )

    def program(spool: following.Spool) -> int:
        ended = programs.run(
            arguments.script,
            arguments.arguments,
            arguments.module,
            arguments.device,
            arguments.sample,
            arguments.stop,
        )
        spool.write("numba", ended.numba)
        spool.write("predicted", ended.predicted)
        return ended.status

    following.run(program, outcome)
    following.flush()
    account = FORMATS[arguments.format](outcome)
    try:
        if arguments.output:
            arguments.output.write_text(account, "utf-8")
        else:
            print(account, end="", file=sys.stderr or os.fdopen(2, "w"), flush=True)
    except OSError as error:
        _fail(f"the account cannot be written: {error}")
        return UNTOLD
    return _verdict(outcome)


def _verdict(outcome: programs.Outcome) -> int:
    """The exit status of `simulate`: hazards first, then the program's own, then what is odd."""
    if outcome.account.hazards:
        return HAZARDS
    if outcome.status or outcome.unended:
        return outcome.status or HAZARDS
    return 0 if outcome.account.launches else NOTHING_LAUNCHED


def _record(arguments: argparse.Namespace) -> int:
    if arguments.listings:
        return _listings(arguments)
    chosen = recording.parse_kernels(arguments.kernels)
    problems = recording.parse_sizes(arguments.sizes)
    target = recording.target(arguments.dry_run)
    folder = arguments.out or records.ROOT / target.name
    points = recording.plan(chosen, problems, target, arguments.budget, arguments.splits)
    return recording.campaign(points, folder, target, arguments.dry_run, arguments.repeats)


def _listings(arguments: argparse.Namespace) -> int:
    from gemmlab.compiled.forecast import recorded, rung_listings

    if lacking():
        return _fail(f"--listings compiles the kernels: {lacking()}")
    root = arguments.out or records.ROOT
    chosen = [k for k in recording.parse_kernels(arguments.kernels) if k in recorded.RUNGS]
    for line in rung_listings.keep(chosen, root):
        print(line)
    return 0


def _grade(arguments: argparse.Namespace) -> int:
    return grading.verb(arguments)


def _class(arguments: argparse.Namespace) -> int:
    from gemmlab import teaching

    return teaching.verb(arguments.rest)


def _league(arguments: argparse.Namespace) -> int:
    from gemmlab import worklog

    def tell(line: str) -> None:
        print(line, file=sys.stderr, flush=True)

    found = worklog.league(arguments.logs, arguments.seed, tell)
    print(found)
    if arguments.csv:
        found.write(arguments.csv)
    return 0


def _check(arguments: argparse.Namespace) -> int:
    files = arguments.files or sorted(records.ROOT.rglob("*.jsonl"))
    if not files:
        return _fail(f"there are no recorded measurements in {records.ROOT}")
    count = sum(len(records.read(path)) for path in files)
    print(f"{count} measurements in {len(files)} files, all as they were recorded")
    return 0
