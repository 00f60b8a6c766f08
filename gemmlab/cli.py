"""The command ``gemmlab``: doctor, lab, simulate, record, check, book."""

from __future__ import annotations

import argparse
import runpy
import sys
from collections.abc import Sequence
from pathlib import Path

import gemmlab
from gemmlab import (
    doctor,
    guide_figures,
    held_out,
    held_out_families,
    microbenchmarks,
    recording,
    records,
    sizes,
)
from gemmlab.architectures import name_of
from gemmlab.detection import detect
from gemmlab.device import RECORDED, Device, device
from gemmlab.driver import gpu_status
from gemmlab.microbenchmarks import results, running
from gemmlab.prediction.compiling import lacking
from gemmlab.programs import running as programs
from gemmlab.programs.formats import FORMATS
from gemmlab.records.series import FIGURES
from gemmlab.sm.facts import facts

RUN_PY = Path(__file__).parents[1] / "run.py"  # beside the package in a clone
HANDED_OVER = {  # to run.py, with all their arguments
    "lab": "open the course in JupyterLab",
    "book": "build the site into book/_build/html",
}


def main(argv: Sequence[str] | None = None) -> int:
    """Run one verb and return the exit code, 0 if all went well."""
    parser = _parser()
    arguments, rest = parser.parse_known_args(argv)
    if rest and arguments.verb not in HANDED_OVER:
        parser.error(f"unrecognized arguments: {' '.join(rest)}")
    if arguments.verb is None:
        parser.print_help()
        return 0
    arguments.rest = rest
    try:
        return arguments.do(arguments)
    except (OSError, ValueError) as error:
        return _fail(str(error))
    except KeyboardInterrupt:
        _fail("interrupted")
        return 130


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

    add = verbs.add_parser(
        "simulate",
        help="run a program of Numba-CUDA on a simulated GPU; status 1 if it has hazards",
    )
    add.add_argument("--format", choices=FORMATS, default="text", help="of the account at the end")
    add.add_argument("--output", type=Path, help="file of the account (default: standard error)")
    add.add_argument(
        "--device",
        metavar="GPU",
        help=f"predict, too, how long each launch takes on it; such as {RECORDED}",
    )
    add.add_argument("-m", "--module", action="store_true", help="SCRIPT is the name of a module")
    add.add_argument("script", metavar="SCRIPT", help="what `python SCRIPT` would run")
    add.add_argument("arguments", metavar="ARGS", nargs=argparse.REMAINDER, help="all that follow")
    add.set_defaults(do=_simulate)

    add = verbs.add_parser("record", help="measure the kernels on this machine's GPU, keep results")
    names = ",".join(kernel.name for kernel in recording.KERNELS)
    add.add_argument("--kernels", default=names, help=f"names with commas (default: {names})")
    add.add_argument(
        "--sizes",
        default=sizes.SIZES,
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
    add.add_argument(
        "--figures",
        metavar="NUMBERS",
        help="instead of sizes: counterparts of these figures of NVIDIA's guide, with commas, of "
        f"{', '.join(map(str, guide_figures.FIGURES))}",
    )
    add.add_argument(
        "--held-out",
        action="store_true",
        help="instead of sizes: the products on which the error of predictions is stated",
    )
    add.add_argument(
        "--held-out-families",
        nargs="*",
        choices=held_out_families.SETS,
        metavar="SET",
        help="the products on which predictions are judged of kernels that divide k, of those on "
        "Tensor Cores, and of TCEC; or these sets of them",
    )
    add.add_argument("--repeats", type=_count, help="timed runs of each (default: 0.3 s of them)")
    add.add_argument(
        "--budget",
        type=float,
        default=recording.BUDGET,
        help="leave out what is predicted to take longer for one launch [s] (default: %(default)s)",
    )
    add.add_argument(
        "--out",
        type=Path,
        help="folder (default: recorded/<device> in the package, and figures in it)",
    )
    add.add_argument("--dry-run", action="store_true", help="list it all with predicted times")
    add.add_argument(
        "--microbenchmarks",
        nargs="?",
        const="",
        metavar="PART",
        help="measure instructions, memories and launches instead of kernels (a minute); or those "
        "whose names contain PART, kept in a file of their own",
    )
    add.add_argument(
        "--listings",
        action="store_true",
        help="compile the kernels and keep their code, for readers without the compiler; needs no "
        "GPU",
    )
    add.set_defaults(do=_record)

    add = verbs.add_parser("check", help="validate files of recorded measurements")
    add.add_argument("files", nargs="*", type=Path, help="default: all that come with gemmlab")
    add.set_defaults(do=_check)
    return parser


def _count(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number of at least 1")
    return int(text)


def _counts(text: str) -> tuple[int, ...]:
    return tuple(_count(number.strip()) for number in text.split(","))


def _fail(message: str) -> int:
    print(f"gemmlab: {message}", file=sys.stderr)
    return 1


def _doctor(arguments: argparse.Namespace) -> int:
    print(doctor.report())
    return 0


def _run_py(arguments: argparse.Namespace) -> int:
    if not RUN_PY.is_file():
        return _fail(
            "the notebooks and the book are in gemmlab's repository, not in the installed package; "
            f"in a clone of it: python run.py {arguments.verb}"
        )
    return runpy.run_path(str(RUN_PY))["main"]([arguments.verb, *arguments.rest])


def _simulate(arguments: argparse.Namespace) -> int:
    if arguments.device:
        facts(device(arguments.device).name)
        if lacking():
            return _fail(f"--device compiles the kernels: {lacking()}")
    outcome = programs.run(
        arguments.script, arguments.arguments, arguments.module, arguments.device
    )  # fmt: skip
    account = FORMATS[arguments.format](outcome)
    sys.stdout.flush()
    if arguments.output:
        arguments.output.write_text(account, "utf-8")
    else:
        print(account, end="", file=sys.stderr)
    return 1 if outcome.account.hazards else outcome.status


def _record(arguments: argparse.Namespace) -> int:
    if arguments.microbenchmarks is not None:
        return _microbenchmarks(arguments)
    if arguments.listings:
        return _listings(arguments)
    status = gpu_status()
    chosen = recording.parse_kernels(arguments.kernels)
    figures = guide_figures.parse_figures(arguments.figures) if arguments.figures else []
    problems = sizes.parse_sizes(arguments.sizes)
    if not status.works and not arguments.dry_run:
        return _fail(
            f"record needs an NVIDIA GPU that works here, and there is none ({status.reason}); "
            "`gemmlab doctor` says how to mend that, and `gemmlab record --dry-run` lists what "
            "would be measured, with predicted times"
        )
    target: Device = detect() if status.works else device(RECORDED)
    folder = arguments.out or records.ROOT / target.name
    if arguments.held_out_families is not None:
        folder = arguments.out or folder / held_out_families.FOLDER
        sets = arguments.held_out_families or held_out_families.SETS
        points = held_out_families.plan(target, sets)
    elif arguments.held_out:  # kept apart: nobody who looks at records may come across them
        folder = arguments.out or folder / held_out.FOLDER
        judged = [kernel for kernel in chosen if kernel in held_out.KERNELS]
        points = held_out.plan(judged, target, min(arguments.budget, held_out.BUDGET))
    elif figures:
        folder = arguments.out or folder / FIGURES
        points = guide_figures.plan(figures, chosen, target, arguments.budget)
    else:
        points = recording.plan(chosen, problems, target, arguments.budget, arguments.splits)
    if arguments.dry_run:
        print(f"predicted for {target.title}, to be kept in {folder}")
        print(recording.table(points, folder, target.name))
        return 0
    outcome = recording.record(points, folder, target.name, repeats=arguments.repeats)
    print(
        f"{outcome.measured} measured and kept in {folder}, {outcome.known} recorded before, "
        f"{outcome.skipped} left out, {len(outcome.failures)} failed"
    )
    if outcome.interrupted:
        print("interrupted; the same command goes on from here")
        return 130
    return 1 if outcome.failures else 0


def _microbenchmarks(arguments: argparse.Namespace) -> int:
    part = arguments.microbenchmarks
    loops = [one for one in microbenchmarks.LOOPS if part in one.name]
    launches = [one for one in microbenchmarks.LAUNCHES if part in one.name]
    if not loops and not launches:
        known = (one.name for one in (*microbenchmarks.LOOPS, *microbenchmarks.LAUNCHES))
        return _fail(f"no microbenchmark has {part!r} in its name; there are {', '.join(known)}")
    if arguments.dry_run:
        for one in (*loops, *launches):
            print(f"{one.name:<44}{one.fact}")
        return 0
    status = gpu_status()
    if not status.works:
        return _fail(f"microbenchmarks need an NVIDIA GPU, and none works here ({status.reason})")
    target = detect()
    path = (arguments.out or records.ROOT / target.name) / results.file_of(part)
    measured, failures = running.measure(target, loops, launches)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(results.text(measured), "utf-8")
    print(
        f"{len(measured.loops)} timings of loops and {len(measured.launches)} of launches kept in "
        f"{path}, {len(failures)} failed"
    )
    return 1 if failures else 0


def _listings(arguments: argparse.Namespace) -> int:
    from gemmlab.prediction import recorded, rung_listings

    if lacking():
        return _fail(f"--listings compiles the kernels: {lacking()}")
    capability = device(RECORDED).compute_capability
    root = arguments.out or records.ROOT
    chosen = [k for k in recording.parse_kernels(arguments.kernels) if k in recorded.RUNGS]
    for kernel in chosen:
        path = recorded.path_of(kernel, name_of(capability), root)
        made = rung_listings.listings(kernel, capability)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(recorded.text(kernel, made, recorded.tools()))
        print(f"{path}: {'; '.join(dict.fromkeys(tiling for _, tiling, *_ in made))}")
    return 0


def _check(arguments: argparse.Namespace) -> int:
    files = arguments.files or sorted(records.ROOT.rglob("*.jsonl"))
    if not files:
        return _fail(f"there are no recorded measurements in {records.ROOT}")
    count = sum(len(records.read(path)) for path in files)
    print(f"{count} measurements in {len(files)} files, all as they were recorded")
    return 0
