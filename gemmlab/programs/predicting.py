"""`gemmlab predict`: a program's launches, or a compiled kernel, forecast for GPUs.

A program runs with the simulated GPU in Numba's place, so that values that its kernels left are
there for those that read them. Of a launch of more than 262,144 threads the first and the last
blocks alone are simulated, unless all are asked for: what the others store is missing then, and a
forecast whose launch reads such an array says so. The first launch of each kernel with one grid,
one block and arrays of the same shapes is forecast.
"""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from gemmlab.compiled.sass import cubins
from gemmlab.compiled.sass.execution.machine import Dim, dim
from gemmlab.device import device as device_called
from gemmlab.device import name_of
from gemmlab.programs import forecasts, running
from gemmlab.simt.cuda.kernels import Call, Launched, watching
from gemmlab.simt.report.report import Origin

if TYPE_CHECKING:
    from gemmlab.compiled.forecast.kernel import Forecast


@dataclass
class Launch:
    """A launch is forecast once for all that are like it.

    file, line : where the kernel is defined, None for a compiled one
    count : launches of the program that are like it
    notes : what is not certain about its data
    made : for each device its forecast, or why there is none
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

    @property
    def place(self) -> str:
        return Path(self.file).name + (f":{self.line}" if self.line else "")


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
            f"branches or addresses depend on arrays, which it shares with {name}, of which a part "
            "of the blocks was simulated; --whole simulates all"
            for name in sorted(names)
        ]


def _shape(argument: Any) -> Any:
    if isinstance(argument, np.ndarray):
        return argument.shape, argument.dtype.str
    return type(argument)


def _launch(call: Call) -> Launch:
    chosen = call.kernel.targetoptions
    options = {name: chosen[name] for name in forecasts.OPTIONS if chosen.get(name)}
    origin = call.kernel.origin or Origin.of(call.kernel.py_func)
    grid, block = dim(call.grid), dim(call.block)
    arguments = [np.array(a) if isinstance(a, np.ndarray) else a for a in call.arguments]

    def predict(device: str) -> Forecast:
        from gemmlab.compiled.forecast.kernel import predict_time

        with forecasts.generators():
            return predict_time(
                call.kernel, grid, block, *arguments, device=device,
                shared_bytes=call.shared_bytes, **options,
            )  # fmt: skip

    return Launch(origin.name, origin.file, origin.line, grid, block, predict)


def of_program(
    target: str, arguments: Sequence[str], kernel: str | None, whole: bool = False
) -> tuple[list[Launch], int, int]:
    """Run a program: its launches, its exit status, and of how many launches a part alone ran.

    What it prints goes to standard error. NoLaunchError says what it launches instead.
    """
    found = Launches(kernel)
    watched = watching(found.after, found.before, not whole)
    told = redirect_stdout(sys.stderr)
    with running.as_program(target, arguments), running.in_place_of_numba(), watched, told:
        status = running.status(target)
    if found.of_kind:
        return list(found.of_kind.values()), status, found.sampled
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
    told = Progress(list(launches), devices)
    for launch in told.launches:
        for name in devices:
            told.show(launch, name)
            try:
                launch.made[name] = launch.predict(name)
            except Exception as error:  # of others' kernels: anything that compilers say
                launch.made[name] = f"{type(error).__name__}: {' '.join(str(error).split())}"
            else:
                launch.notes = _that_count(launch, launch.made[name])
    told.clear()


def _that_count(launch: Launch, made: Forecast) -> list[str]:
    """Keep notes on the values of arrays where the code's branches or addresses depend on any."""
    from gemmlab.compiled.forecast.unsure import depends_on_data

    return launch.notes if launch.notes and depends_on_data(made.listing) else []


class Progress:
    """A line says on a terminal what is forecast, once it has taken two seconds."""

    PATIENCE = 2.0

    def __init__(self, launches: list[Launch], devices: Sequence[str]) -> None:
        self.launches, self.count, self.done = launches, len(launches) * len(devices), 0
        self.start, self.width = time.monotonic(), 0

    def show(self, launch: Launch, device: str) -> None:
        """Say what comes next."""
        self.done += 1
        if sys.stderr.isatty() and time.monotonic() - self.start > self.PATIENCE:
            text = f"predicting {self.done} of {self.count}: {launch.kernel} on {device} …"
            print(f"\r{text:<{self.width}}", end="", file=sys.stderr, flush=True)
            self.width = len(text)

    def clear(self) -> None:
        """Take the line away."""
        if self.width:
            print("\r" + " " * self.width, end="\r", file=sys.stderr, flush=True)


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
