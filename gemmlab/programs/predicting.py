"""`gemmlab predict`: a program's launches, or a compiled kernel, forecast for GPUs.

A program runs with the simulated GPU in Numba's place, so that values that its kernels left are
there for those that read them. Of a launch of more than `WHOLE` threads the first and the last
block alone are simulated, unless all are asked for: what the others store is missing then, and a
forecast whose branches or addresses may depend on it says so. The first launch of each kernel with
one grid, one block and arrays of the same shapes is forecast.
"""

from __future__ import annotations

import argparse
import math
import re
import sys
from collections.abc import Callable, Iterable, Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gemmlab.compiled.sass import cubins
from gemmlab.compiled.sass.execution.machine import Dim, dim
from gemmlab.compiled.sm.facts import known
from gemmlab.device import device as device_called, name_of
from gemmlab.here.compilers import lacking
from gemmlab.here.detection import detect
from gemmlab.measure.backends import trial
from gemmlab.programs import forecasts, nsight, running
from gemmlab.simt.cuda.kernels import Call, Launched, watching
from gemmlab.simt.launch import LANES
from gemmlab.simt.report.report import Origin

if TYPE_CHECKING:
    from gemmlab.compiled.forecast.kernel import Forecast
    from gemmlab.programs.nsight import Seen


@dataclass
class Launch:
    """A launch is forecast once for all that are like it.

    file, line : where the kernel is defined, None for a compiled one
    count : launches of the program that are like it
    notes : what is not certain about its data
    made : for each device its forecast, or why there is none
    seen : what a profiler says of it, if one was asked
    """

    kernel: str
    file: str
    line: int | None
    grid: Dim
    block: Dim
    predict: Callable[[str], Forecast] = field(repr=False)
    count: int = 1
    notes: list[str] = field(default_factory=list)
    made: dict[str, Forecast | str] = field(default_factory=dict)
    seen: Seen | None = None

    @property
    def place(self) -> str:
        return Path(self.file).name + (f":{self.line}" if self.line else "")


@dataclass(frozen=True)
class Told:
    """What is told: the launches of a program or of a module, and the devices.

    remarks : what to know of all of them
    """

    target: str
    launches: Sequence[Launch]
    devices: Sequence[str]
    remarks: Sequence[str] = ()


class Formats(NamedTuple):
    """What writes an answer for a terminal, for a program, and as a page."""

    text: Callable[[Told], str]
    json: Callable[[Told], str]
    html: Callable[[Told], str]


class NoLaunchError(Exception):
    """A program launches nothing, or not the kernel that was named."""


class Launches:
    """The launches of a program, those alike put together, with their arguments as they were."""

    def __init__(self, kernel: str | None = None) -> None:
        """`kernel` is the name of the only one that is forecast."""
        self.kernel = kernel
        self.of_kind: dict[tuple, Launch] = {}
        self.names: list[str] = []
        self.partial: list[tuple[np.ndarray, str]] = []  # arrays of which parts are missing
        self.sampled = 0
        self._latest: Call | None = None

    def before(self, call: Call) -> None:
        """Keep a launch that is the first of its kind."""
        self._latest, name = call, call.kernel.py_func.__name__
        if name not in self.names:
            self.names.append(name)
        if self.kernel not in (None, name):
            return
        kind = call.kernel, dim(call.grid), dim(call.block), *map(_shape, call.arguments)
        if kind in self.of_kind:
            self.of_kind[kind].count += 1
            return
        self.of_kind[kind] = _launch(call)
        self.of_kind[kind].notes += self._missing(call)

    def after(self, launched: Launched) -> None:
        """Note the arrays of a launch of which only some blocks were simulated."""
        if launched.report.sampled is None:
            return
        self.sampled += 1
        name = self._latest.kernel.py_func.__name__
        arrays = (a for a in self._latest.arguments if isinstance(a, np.ndarray))
        self.partial += [(array, name) for array in arrays]

    def _missing(self, call: Call) -> list[str]:
        arrays = [a for a in call.arguments if isinstance(a, np.ndarray)]
        names = {
            name for kept, name in self.partial for a in arrays if np.may_share_memory(a, kept)
        }
        return [
            f"branches or addresses depend on arrays, which it shares with {name}, of which "
            "two blocks were simulated; --whole simulates all"
            for name in sorted(names)
        ]


WHOLE = 2 * LANES  # threads of a launch that is simulated as a whole


def ends(call: Call) -> bool | tuple[int, ...]:
    """Return the first and the last block of a large launch; False for one that runs whole."""
    blocks = math.prod(dim(call.grid))
    return blocks * math.prod(dim(call.block)) > WHOLE and (0, blocks - 1)


def _shape(argument: Any) -> Any:
    if isinstance(argument, np.ndarray):
        return argument.shape, argument.dtype.str
    return type(argument)


def _launch(call: Call) -> Launch:
    origin = call.kernel.origin or Origin.of(call.kernel.py_func)
    arguments = (np.array(a) if isinstance(a, np.ndarray) else a for a in call.arguments)
    kept = call._replace(arguments=tuple(arguments))
    grid, block = dim(call.grid), dim(call.block)
    predict = partial(forecasts.predicted, kept)
    return Launch(origin.name, origin.file, origin.line, grid, block, predict)


class Ended(NamedTuple):
    """A program ended with a status; of so many launches two blocks ran; it may have printed."""

    status: int = 0
    sampled: int = 0
    printed: bool = False


def of_program(
    target: str, arguments: Sequence[str], kernel: str | None, whole: bool = False
) -> tuple[list[Launch], Ended]:
    """Run a program: its launches, and how it ended.

    What it prints goes to standard error. NoLaunchError says what it launches instead.
    """
    found = Launches(kernel)
    watched = watching(found.after, found.before, False if whole else ends)
    said = running.Printed()
    told = redirect_stdout(said)
    with running.as_program(target, arguments), running.in_place_of_numba(), watched, told:
        status = running.status(target)
    if found.of_kind:
        return list(found.of_kind.values()), Ended(status, found.sampled, said.anything)
    ended = f", and ended with status {status}" if status else ""
    if found.names:
        known = ", ".join(found.names)
        raise NoLaunchError(f"{target} launches no kernel {kernel!r}{ended}; it launches {known}")
    raise NoLaunchError(f"{target} launches no kernel{ended}")


def of_module(
    path: str, kernel: str | None, grid: Sequence[int], block: Sequence[int] | None,
    arguments: Sequence[Any], device: str, shared_bytes: int | None = None,
) -> Launch:  # fmt: skip
    """Return a launch of a kernel of a compiled module; ValueError as `predict_time`.

    device : one of those that it is for, for which PTX is assembled to look into it
    """
    from gemmlab.compiled.forecast.kernel import predict_time

    architecture = name_of(device_called(device).compute_capability)
    found = cubins.module(Path(path), architecture)
    name = found.one(kernel)
    threads = block or cubins.parameters(found.cubin, name).block
    if threads is None:
        raise ValueError(f"{path} does not say how many threads a block has: say --block")

    def predict(device: str) -> Forecast:
        return predict_time(
            Path(path), grid, threads, *arguments, device=device, kernel=name,
            shared_bytes=shared_bytes,
        )  # fmt: skip

    return Launch(name, path, None, dim(grid), dim(threads), predict)


def predict(launches: Iterable[Launch], devices: Sequence[str]) -> None:
    """Forecast each launch for each device; what cannot be forecast has its reason."""
    for launch in launches:
        for name in devices:
            try:
                launch.made[name] = launch.predict(name)
            except Exception as error:  # of others' kernels: anything that compilers say
                launch.made[name] = _short(error)
            else:
                launch.notes = _that_count(launch, launch.made[name])


LONGEST = 300  # characters of what a compiler says


def _short(error: Exception) -> str:
    plain = isinstance(error, (NotImplementedError, RuntimeError, ValueError))
    text = " ".join((str(error) if plain else trial.told(error)).split())
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"


def _that_count(launch: Launch, made: Forecast) -> list[str]:
    """Keep notes on the values of arrays where the code's branches or addresses depend on any."""
    from gemmlab.compiled.forecast.unsure import depends_on_data

    return launch.notes if launch.notes and depends_on_data(made.listing) else []


# ------------------------------------------------------------------------- what the shell says

_ARRAY = re.compile(r"(?P<kind>\w+)\[(?P<shape>\d+(,\d+)*)\](:(?P<low>-?\d+)\.\.(?P<high>-?\d+))?")
_NUMBER = re.compile(r"(?P<kind>\w+):(?P<value>\S+)")
FORMS = "float32[1048576], int32[4096]:0..99 (drawn from 0 to 99), int32:5, float32:1.5 or FILE.npy"


def argument(text: str) -> Any:
    """Read an argument of a kernel; ValueError that lists the forms for another text.

    >>> argument("int32:5"), argument("float32[2,3]").shape, int(argument("int8[9]:7..7").min())
    (np.int32(5), (2, 3), 7)
    """
    if text.endswith(".npy"):
        return np.load(text)
    if found := _ARRAY.fullmatch(text):
        shape, kind = tuple(map(int, found["shape"].split(","))), _format(found["kind"], text)
        if found["low"] is None:
            return np.zeros(shape, kind)
        low, high = int(found["low"]), int(found["high"])
        return np.random.default_rng(0).integers(low, high, shape, endpoint=True).astype(kind)
    if found := _NUMBER.fullmatch(text):
        kind = _format(found["kind"], text)
        try:
            return kind.type(float(found["value"]) if kind.kind == "f" else int(found["value"], 0))
        except (ValueError, OverflowError):
            raise ValueError(f"{text!r}: {found['value']!r} is no number of {kind}") from None
    raise ValueError(f"{text!r} is no argument, such as {FORMS}")


def _format(name: str, text: str) -> np.dtype:
    try:
        return np.dtype("uint16" if name == "bfloat16" else name)
    except TypeError:
        raise ValueError(f"{text!r}: {name!r} is no format of NumPy's, nor bfloat16") from None


def sizes(text: str) -> tuple[int, ...]:
    """Read a grid or a block, "1024" or "64x64"; ValueError for what is none.

    >>> sizes("64x8"), sizes("256")
    ((64, 8), (256,))
    """
    parts = re.split("[x×,]", text)
    if not 1 <= len(parts) <= 3 or not all(p.isdecimal() and int(p) for p in parts):
        raise ValueError(f"{text!r} is no size, such as 1024, 64x64 or 8x8x8")
    return tuple(map(int, parts))


def parted(target: str) -> tuple[str, str | None]:
    """Part FILE from KERNEL in FILE:KERNEL.

    >>> parted("a/program.py:blur"), parted("program.py")
    (('a/program.py', 'blur'), ('program.py', None))
    """
    file, _, kernel = target.rpartition(":")
    if not Path(target).exists() and file and kernel.isidentifier():
        return file, kernel
    return target, None


def is_compiled(path: Path) -> bool:
    """Say whether a file has a cubin or PTX, not a program."""
    with path.open("rb") as file:
        start = file.read(4)
    return start == b"\x7fELF" or path.suffix in (".cubin", ".ptx", ".fatbin", ".o")


def titles(devices: Iterable[str]) -> dict[str, str]:
    """Return the full names of devices."""
    return {name: device_called(name).title for name in devices}


# -------------------------------------------------------------------------------- the verb

FAILED, WRONG, UNWRITTEN, NO_TOOLS, NO_LAUNCH, NO_PROFILER = 1, 2, 3, 4, 5, 6
HELP = "say how long a program's kernels, or a compiled one, take on a GPU that need not be here"
EPILOG = """examples:
  gemmlab predict program.py                     all of its kernels, on an H200
  gemmlab predict program.py:blur --device h200,h100_sxm   one kernel, two GPUs
  gemmlab predict program.py --html report.html -- 4096    sys.argv[1] is "4096"
  gemmlab predict program.py --beside            and what Nsight Compute says of it
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
  6  --beside: there is no GPU or no Nsight Compute, or it sees no such launch
"""


def add_to(verbs: Any, formats: Formats) -> None:
    """Add the verb to a command's, with what writes its answers."""
    add = verbs.add_parser(
        "predict", help=HELP, description=HELP, epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    add.add_argument(
        "target", metavar="FILE[:KERNEL]", help="a program, a cubin or PTX; a kernel of it"
    )
    add.usage = "gemmlab predict [options] FILE[:KERNEL] [-- ARGS of the program]"
    add.add_argument(
        "--device",
        metavar="GPUS",
        help=f"with commas, of {', '.join(known())} (default: h200; with --beside, the one here)",
    )
    add.add_argument(
        "--beside", action="store_true",
        help="run the kernels on the GPU here, too, under Nsight Compute, and print both columns",
    )  # fmt: skip
    add.add_argument("--json", metavar="FILE", help="write all of it as data; - for this output")
    add.add_argument("--html", metavar="FILE", help="write a page: the source with what lines cost")
    add.add_argument(
        "--whole", action="store_true",
        help="simulate all blocks of large launches, whose results later ones read; slow",
    )  # fmt: skip
    add_compiled(add.add_argument_group("for a cubin or PTX"))
    add.set_defaults(do=lambda asked: verb(asked, formats))


def add_compiled(compiled: Any) -> None:
    """Add what is to be said of a compiled kernel's launch."""
    compiled.add_argument("--grid", help="blocks: 1024, 64x64 or 8x8x8")
    compiled.add_argument("--block", help="threads; none for Triton's, which say it")
    compiled.add_argument(
        "--arg", action="append", default=[], metavar="ARG",
        help=f"one for each parameter, in order: {FORMS}",
    )  # fmt: skip
    compiled.add_argument("--shared", type=int, metavar="BYTES", help="dynamic, of a block")


def split(argv: Sequence[str]) -> tuple[Sequence[str], Sequence[str]]:
    """Part what the command is told from what a program is told, after --."""
    if argv[:1] != ["predict"] or "--" not in argv:
        return argv, ()
    at = argv.index("--")
    return argv[:at], argv[at + 1 :]


def verb(asked: argparse.Namespace, formats: Formats) -> int:
    """Forecast what is asked for, print it, and return the exit status."""
    if asked.beside and (missing := nsight.lacking()):
        return _said(missing, NO_PROFILER)
    if asked.device is None:
        asked.device = detect().name if asked.beside else "h200"
    devices = tuple(dict.fromkeys(filter(None, asked.device.split(","))))
    target, kernel = parted(asked.target)
    if unknown := [name for name in devices if name not in known()] or not devices:
        named = ", ".join(unknown) if devices else asked.device
        return _said(f"--device {named!r} is not known; use {', '.join(known())}", WRONG)
    if not Path(target).is_file():
        return _said(f"there is no file {target!r}", WRONG)
    if lacking():
        return _said(f"a forecast needs compiled code: {lacking()}", NO_TOOLS)
    try:
        launches, ended = _launches(asked, target, kernel, devices[0])
    except NoLaunchError as error:
        return _said(str(error), NO_LAUNCH)
    except (ValueError, RuntimeError, OSError) as error:
        return _said(str(error), WRONG)
    predict(launches, devices)
    remarks = _remarks(launches, ended)
    if asked.beside:
        try:
            program = None if is_compiled(Path(target)) else target
            remarks += nsight.look(launches, devices, asked, program)
        except nsight.ProfilerError as error:
            return _said(f"--beside: {error}", NO_PROFILER)
    written = _written(asked, formats, Told(target, launches, devices, remarks))
    if written:
        return written
    failed = any(isinstance(made, str) for one in launches for made in one.made.values())
    return FAILED if failed or (ended.status and not ended.sampled) else 0


def _remarks(launches: Sequence[Launch], ended: Ended) -> list[str]:
    """Say how the program ended, and of how many launches two blocks ran, where that may matter."""
    status, sampled, printed = ended
    told = [f"The program ended with status {status}."] if status else []
    if sampled and (status or printed or any(launch.notes for launch in launches)):
        count = "One launch" if sampled == 1 else f"{sampled:,} launches"
        told.append(
            f"{count} of more than {WHOLE:,} threads ran for the first and the last block alone: "
            "what the others store is missing in what the program saw and printed. --whole runs "
            "all blocks."
        )
    return told


def _launches(
    asked: argparse.Namespace, target: str, kernel: str | None, device: str
) -> tuple[list[Launch], Ended]:
    """Return launches, and how the program ended."""
    if is_compiled(Path(target)):
        if asked.grid is None:
            raise ValueError(f"{target} is compiled code: say --grid, --block and each --arg")
        given = [argument(text) for text in asked.arg]
        block = asked.block and sizes(asked.block)
        grid = sizes(asked.grid)
        one = of_module(target, kernel, grid, block, given, device, asked.shared)
        return [one], Ended()
    if asked.grid or asked.block or asked.arg or asked.shared:
        raise ValueError(f"--grid, --block, --arg and --shared are for compiled code, not {target}")
    return of_program(target, asked.rest, kernel, asked.whole)


def _written(asked: argparse.Namespace, formats: Formats, told: Told) -> int:
    """Write what is asked for; the text unless data go to the same output."""
    try:
        if asked.html:
            Path(asked.html).write_text(formats.html(told), "utf-8")
        if asked.json and asked.json != "-":
            Path(asked.json).write_text(formats.json(told), "utf-8")
    except OSError as error:
        return _said(f"it cannot be written: {error}", UNWRITTEN)
    print(formats.json(told) if asked.json == "-" else formats.text(told), end="")
    return 0


def _said(message: str, status: int) -> int:
    print(f"gemmlab: {message}", file=sys.stderr)
    return status
