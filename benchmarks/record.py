"""Measure what the library's predictions and figures rest on: ``python run.py record [campaign]``.

The ladders are measured by ``gemmlab record``, which anybody has who has installed the library.
This command knows further campaigns, for those who develop it, and hands all else over to that one.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks import guide_figures, held_out, held_out_families, microbenchmarks
from benchmarks.microbenchmarks import running
from gemmlab import cli
from gemmlab.measure import microbenchmarks as results, recording, records
from gemmlab.measure.records import FIGURES


def main(argv: Sequence[str]) -> int:
    """Run one campaign, or `gemmlab record` where none is named; the exit status."""
    if {"-h", "--help"} & {*argv}:
        parser().print_help()  # and then that of the library's command
    arguments, rest = parser().parse_known_args(argv)
    campaigns = {
        "figures": arguments.figures is not None,
        "held_out": arguments.held_out,
        "held_out_families": arguments.held_out_families is not None,
        "microbenchmarks": arguments.microbenchmarks is not None,
    }
    named = [name for name, asked in campaigns.items() if asked]
    if not named:
        return cli.main(["record", *argv])
    if rest or len(named) > 1:
        wrong = rest or [f"--{name.replace('_', '-')}" for name in named]
        parser().error(f"{' '.join(wrong)} do not go together; use one campaign at a time")
    try:
        return run(named[0], arguments)
    except (OSError, ValueError) as error:
        print(f"gemmlab: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("gemmlab: interrupted", file=sys.stderr)
        return 130


def parser() -> argparse.ArgumentParser:
    """The options of the campaigns."""
    add = argparse.ArgumentParser(
        "run.py record", description=__doc__.partition("\n\n")[2].replace("``", "`"),
        epilog="Without a campaign all options are those of `gemmlab record`.", add_help=False,
    )  # fmt: skip
    add.add_argument(
        "--figures",
        metavar="NUMBERS",
        help="counterparts of these figures of NVIDIA's guide, with commas, of "
        f"{', '.join(map(str, guide_figures.FIGURES))}",
    )
    add.add_argument(
        "--held-out",
        action="store_true",
        help="the products on which the error of predictions is stated",
    )
    add.add_argument(
        "--held-out-families",
        nargs="*",
        choices=held_out_families.SETS,
        metavar="SET",
        help="the products on which predictions are judged of kernels that divide k, of those on "
        "Tensor Cores, and of TCEC; or these sets of them",
    )
    add.add_argument(
        "--microbenchmarks",
        nargs="?",
        const="",
        metavar="PART",
        help="instructions, memories and launches (a minute); or those whose names contain PART, "
        "kept in a file of their own",
    )
    add.add_argument(
        "--kernels", default="", help="names with commas, of figures and held-out sets"
    )
    add.add_argument(
        "--repeats", type=cli.count, help="timed runs of each (default: 0.3 s of them)"
    )
    add.add_argument("--budget", type=float, default=recording.BUDGET, help="for one launch [s]")
    add.add_argument("--out", type=Path, help="folder (default: that of the device)")
    add.add_argument("--dry-run", action="store_true", help="list it all with predicted times")
    return add


def run(campaign: str, arguments: argparse.Namespace) -> int:
    """Measure what a campaign asks for, and keep it; the exit status."""
    if campaign == "microbenchmarks":
        return run_microbenchmarks(arguments)
    names = arguments.kernels or ",".join(kernel.name for kernel in recording.KERNELS)
    chosen, target = recording.parse_kernels(names), recording.target(arguments.dry_run)
    kept = held_out.ROOT
    if campaign == "figures":
        numbers = guide_figures.parse_figures(arguments.figures)
        points, folder = guide_figures.plan(numbers, chosen, target, arguments.budget), FIGURES
        kept = records.ROOT
    elif campaign == "held_out":
        judged = [kernel for kernel in chosen if kernel in held_out.KERNELS]
        points = held_out.plan(judged, target, min(arguments.budget, held_out.BUDGET))
        folder = held_out.FOLDER
    else:
        sets = arguments.held_out_families or held_out_families.SETS
        points, folder = held_out_families.plan(target, sets), held_out_families.FOLDER
    out = arguments.out or kept / target.name / folder
    return recording.campaign(points, out, target, arguments.dry_run, arguments.repeats)


def run_microbenchmarks(arguments: argparse.Namespace) -> int:
    """Time loops and launches, and keep them; the exit status."""
    part = arguments.microbenchmarks
    loops = [one for one in microbenchmarks.LOOPS if part in one.name]
    launches = [one for one in microbenchmarks.LAUNCHES if part in one.name]
    if not loops and not launches:
        known = (one.name for one in (*microbenchmarks.LOOPS, *microbenchmarks.LAUNCHES))
        raise ValueError(
            f"no microbenchmark has {part!r} in its name; there are {', '.join(known)}"
        )
    if arguments.dry_run:
        for one in (*loops, *launches):
            print(f"{one.name:<44}{one.fact}")
        return 0
    target = recording.target(dry_run=False)
    path = (arguments.out or records.ROOT / target.name) / results.file_of(part)
    measured, failures = running.measure(target, loops, launches)
    results.write(path, measured)
    print(
        f"{len(measured.loops)} timings of loops and {len(measured.launches)} of launches kept in "
        f"{path}, {len(failures)} failed"
    )
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
