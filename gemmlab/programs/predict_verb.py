"""The verb `gemmlab predict`: what it is asked, what it prints, and how it ends."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from gemmlab.compiled.sass.compiling import lacking
from gemmlab.compiled.sm.facts import known
from gemmlab.programs import predicting
from gemmlab.programs.predicted import Told, as_html, as_json, as_text

FAILED, WRONG, UNWRITTEN, NO_TOOLS, NO_LAUNCH = 1, 2, 3, 4, 5
HELP = "say how long a program's kernels, or a compiled one, take on a GPU that need not be here"
EPILOG = """examples:
  gemmlab predict program.py                     all of its kernels, on an H200
  gemmlab predict program.py:blur --device h200,h100_sxm   one kernel, two GPUs
  gemmlab predict program.py --html report.html -- 4096    sys.argv[1] is "4096"
  gemmlab predict kernel.cubin --grid 4096 --block 256 \\
      --arg int32:1048576 --arg 'float32[1048576]' --arg numbers.npy
  gemmlab predict kernels.ptx:gather --grid 64x8 --block 128 \\
      --arg 'int32[8192]:0..8191' --arg 'float32[8192,512]' --arg float32:2.5

A program runs with the simulated GPU in the place of Numba's; what it prints
goes to standard error. A cubin or PTX is of nvcc (-cubin, and -lineinfo for
lines), Triton, CuTe DSL or any other compiler that leaves its PTX to ptxas. An
array is of zeros, of numbers that are drawn, or what is in FILE.npy.

exit status:
  0  every launch was forecast
  1  one was not, or the program itself failed
  2  what was asked makes no sense: no such file, kernel, device or argument
  3  a file could not be written
  4  the compiler's tools are missing
  5  the program launches no kernel, or not the one that was named
"""


def add_to(verbs: Any) -> None:
    """Add the verb to a command's."""
    add = verbs.add_parser(
        "predict", help=HELP, description=HELP, epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    add.add_argument(
        "target", metavar="FILE[:KERNEL]", help="a program, a cubin or PTX; a kernel of it"
    )
    add.usage = "gemmlab predict [options] FILE[:KERNEL] [-- ARGS of the program]"
    add.add_argument(
        "--device", default="h200", metavar="GPUS",
        help=f"with commas, of {', '.join(known())} (default: %(default)s)",
    )  # fmt: skip
    add.add_argument("--json", metavar="FILE", help="write all of it as data; - for this output")
    add.add_argument("--html", metavar="FILE", help="write a page: the source with what lines cost")
    add.add_argument(
        "--whole", action="store_true",
        help="simulate all blocks of large launches, whose results later ones read; slow",
    )  # fmt: skip
    compiled = add.add_argument_group("for a cubin or PTX")
    compiled.add_argument("--grid", help="blocks: 1024, 64x64 or 8x8x8")
    compiled.add_argument("--block", help="threads; none for Triton's, which say it")
    compiled.add_argument(
        "--arg", action="append", default=[], metavar="ARG",
        help=f"one for each parameter, in order: {predicting.FORMS}",
    )  # fmt: skip
    compiled.add_argument("--shared", type=int, metavar="BYTES", help="dynamic, of a block")
    add.set_defaults(do=verb)


def parted(argv: Sequence[str]) -> tuple[Sequence[str], Sequence[str]]:
    """Part what the command is told from what a program is told, after --."""
    if argv[:1] != ["predict"] or "--" not in argv:
        return argv, ()
    at = argv.index("--")
    return argv[:at], argv[at + 1 :]


def verb(asked: argparse.Namespace) -> int:
    """Forecast what is asked for, print it, and return the exit status."""
    devices = tuple(dict.fromkeys(filter(None, asked.device.split(","))))
    target, kernel = predicting.parted(asked.target)
    if unknown := [name for name in devices if name not in known()] or not devices:
        named = ", ".join(unknown) if devices else asked.device
        return _said(f"--device {named!r} is not known; use {', '.join(known())}", WRONG)
    if not Path(target).is_file():
        return _said(f"there is no file {target!r}", WRONG)
    if lacking():
        return _said(f"a forecast needs compiled code: {lacking()}", NO_TOOLS)
    try:
        launches, status, sampled = _launches(asked, target, kernel, devices[0])
    except predicting.NoLaunchError as error:
        return _said(str(error), NO_LAUNCH)
    except (ValueError, RuntimeError, OSError) as error:
        return _said(str(error), WRONG)
    predicting.predict(launches, devices)
    remarks = _remarks(launches, status, sampled)
    written = _written(asked, Told(target, launches, devices, remarks))
    if written:
        return written
    failed = any(isinstance(made, str) for one in launches for made in one.made.values())
    return FAILED if failed or (status and not sampled) else 0


def _remarks(launches: Sequence[predicting.Launch], status: int, sampled: int) -> list[str]:
    """Say how the program ended, and of how many launches a part ran, where that may matter."""
    ended = [f"The program ended with status {status}."] if status else []
    if sampled and (status or any(launch.notes for launch in launches)):
        count = "One launch" if sampled == 1 else f"{sampled:,} launches"
        ended.append(
            f"{count} of more than 262,144 threads ran for the first and the last blocks alone: "
            "what the others store is missing in what the program saw. --whole runs all of them."
        )
    return ended


def _launches(
    asked: argparse.Namespace, target: str, kernel: str | None, device: str
) -> tuple[list[predicting.Launch], int, int]:
    """Return launches, the program's exit status, and of how many launches a part alone ran."""
    if predicting.is_compiled(Path(target)):
        if asked.grid is None:
            raise ValueError(f"{target} is compiled code: say --grid, --block and each --arg")
        given = [predicting.argument(text) for text in asked.arg]
        block = asked.block and predicting.sizes(asked.block)
        grid = predicting.sizes(asked.grid)
        one = predicting.of_module(target, kernel, grid, block, given, device, asked.shared)
        return [one], 0, 0
    if asked.grid or asked.block or asked.arg or asked.shared:
        raise ValueError(f"--grid, --block, --arg and --shared are for compiled code, not {target}")
    return predicting.of_program(target, asked.rest, kernel, asked.whole)


def _written(asked: argparse.Namespace, told: Told) -> int:
    """Write what is asked for; the text unless data go to the same output."""
    try:
        if asked.html:
            Path(asked.html).write_text(as_html(told), "utf-8")
        if asked.json and asked.json != "-":
            Path(asked.json).write_text(as_json(told), "utf-8")
    except OSError as error:
        return _said(f"it cannot be written: {error}", UNWRITTEN)
    print(as_json(told) if asked.json == "-" else as_text(told), end="")
    return 0


def _said(message: str, status: int) -> int:
    print(f"gemmlab: {message}", file=sys.stderr)
    return status
