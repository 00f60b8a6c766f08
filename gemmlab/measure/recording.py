"""The campaign of `gemmlab record`: measure kernels over problems, and keep every result at once.

A point is a kernel with a problem and a tiling. Each is written to its file when it is measured; an
interrupt loses the running one alone, and the next campaign leaves out what is there already.
"""

import shutil
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TextIO

from gemmlab import Tiling, device as load_device, kernels
from gemmlab.device import RECORDED, Device
from gemmlab.formats import FORMATS
from gemmlab.here.detection import detect
from gemmlab.here.driver import gpu_status
from gemmlab.kernels import Kernel
from gemmlab.kernels.hashing import source_hash
from gemmlab.measure import records
from gemmlab.measure.backends import run as run_backend
from gemmlab.measure.backends.timing import DATA
from gemmlab.measure.measurement import Measurement, duration
from gemmlab.model import predict
from gemmlab.problem import LAYOUTS, Gemm

# What `gemmlab record` measures where nothing else is asked for.
SIZES = (
    "256,512,1024,2048,4096,8192,16384,"  # powers of two
    "1000,1023,2049,4095,"  # ragged: no tile divides them all
    "8192x128x8192,64x64x8192,4096x4096x64,4096x1x4096,"  # skinny ones and a GEMV
    "4096x4096x4097,4096x4096x4098,4096x4096x4099,"  # alignments of k: rows of A begin at
    "4096x4096x4100,4096x4096x4104,4096x4096x4112,"  # multiples of 4, 8, 4, 16, 32 and 64 B
    "4096:nt,4096:tn,4096:tt,"  # operands that are stored transposed
    "512:float16:to-float32,1024:float16:to-float32,2048:float16:to-float32,"  # on Tensor Cores
    "4096:float16:to-float32,8192:float16:to-float32,4095:float16:to-float32,"
    "8192x128x8192:float16:to-float32,64x64x8192:float16:to-float32,"
    "4096x4096x4100:float16:to-float32,4096:float16,4096:bfloat16:to-float32,"
    "4096:nt:float16:to-float32,4096:tn:float16:to-float32,4096:tt:float16:to-float32"
)


def parse_sizes(text: str) -> list[Gemm]:
    """Read problems from a list such as ``"256,8192x128x64,4096:nt:float16"``.

    Each is n or m x n x k, and then a layout, a format of A and B and one of C after "to-", in any
    order; "nn", float32 and the usual format of C where they are left out. Raises ValueError for
    anything else.

    >>> for p in parse_sizes("256,8192x128x64,4096:nt:float16,64:tf32,64:float16:to-float32"):
    ...     print(p)
    256×256×256 float32
    8192×128×64 float32
    4096×4096×4096 float16 nt
    64×64×64 tf32
    64×64×64 float16 to float32
    """
    return [_problem(item) for item in text.split(",")]


def _problem(item: str) -> Gemm:
    size, *words = item.strip().lower().split(":")
    sizes = size.split("x")
    if len(sizes) not in (1, 3) or not all(s.isdecimal() and int(s) > 0 for s in sizes):
        raise ValueError(f"size {item!r} is not known; use n or mxnxk, such as 256,8192x128x64")
    said: dict[str, str] = {}
    for word in words:
        form = word.removeprefix("to-")
        what = "layout" if word in LAYOUTS else "dtype" if word in FORMATS else ""
        what = what or ("out_dtype" if form in FORMATS else "")
        if not what:
            raise ValueError(
                f"{word!r} of {item!r} is no layout and no format; use one of "
                f"{', '.join((*LAYOUTS, *FORMATS))}, and to- before the format of C"
            )
        if what in said:
            raise ValueError(f"{item!r} has two of {said[what]!r} and {word!r}; use one")
        said[what] = form
    return Gemm(*map(int, sizes * (3 // len(sizes))), **said)


KERNELS = (*kernels.GPU, kernels.REFERENCE)
BUDGET = 2.0  # of predicted time for one launch [s]


@dataclass(frozen=True)
class Point:
    """One measurement to make, and what is known of it beforehand.

    seconds : predicted for one launch [s]; None where nothing can be predicted
    skip : why it is left out; empty if it is to be measured
    """

    kernel: Kernel
    problem: Gemm
    tiling: Tiling | None
    seconds: float | None = None
    skip: str = ""

    @property
    def key(self) -> tuple[str, Gemm, Tiling | None, str]:
        """What identifies a measurement; a point whose key is recorded is not measured again."""
        return self.kernel.name, self.problem, self.tiling, source_hash(self.kernel)

    def __str__(self) -> str:
        text = f"{self.kernel.name} {self.problem}" + (f" tile {self.tiling}" * bool(self.tiling))
        return text.replace("×", "x")  # for any console


@dataclass(frozen=True)
class Outcome:
    """How a campaign ended: numbers of points, and what went wrong."""

    measured: int
    known: int
    skipped: int
    failures: tuple[str, ...] = ()
    interrupted: bool = False


def parse_kernels(text: str) -> list[Kernel]:
    """Find kernels by a list of names; ValueError for one that is not a kernel for GPUs."""
    known = {kernel.name: kernel for kernel in KERNELS}
    chosen = [name.strip() for name in text.split(",")]
    for name in chosen:
        if name not in known:
            raise ValueError(f"kernel {name!r} is not recorded; use {', '.join(known)}")
    return [known[name] for name in chosen]


def plan(
    chosen: Iterable[Kernel],
    problems: Iterable[Gemm],
    device: Device,
    budget: float = BUDGET,
    splits: Sequence[int] = (),
) -> list[Point]:
    """Plan every point of a campaign on `device`, the small problems first.

    A square problem in the layout "nn" is measured with each of a kernel's tilings, any other with
    the kernel's own alone; layouts and formats that a kernel does not take are left out. A kernel
    that divides k is measured with what it suggests, and with these tiles in each of `splits`.
    Points that would take longer than `budget` [s], or cannot run there, say so in `skip`.
    """
    points = {}
    for problem in sorted(problems, key=lambda p: p.flops):
        for kernel in chosen:
            for tiling in _tilings(kernel, problem, device, splits):
                points[kernel.name, problem, tiling] = point(
                    kernel, problem, tiling, device, budget
                )
    return list(points.values())


def _tilings(
    kernel: Kernel, problem: Gemm, device: Device, splits: Sequence[int]
) -> list[Tiling | None]:
    if problem.layout not in kernel.layouts or problem.arithmetic not in kernel.arithmetic:
        return []
    own = kernel.choose(None, problem, device)
    square = problem.m == problem.n == problem.k and problem.layout == "nn"
    others = kernel.tilings if square else ()
    if kernel.splits:
        others = [replace(own, split=split) for split in splits]
    return [own, *(tiling for tiling in others if tiling != own)]


def point(
    kernel: Kernel, problem: Gemm, tiling: Tiling | None, device: Device, budget: float = BUDGET
) -> Point:
    """Make a point of a campaign, with its predicted time, and why it is left out if it is."""
    if problem.accumulate not in device.peak:  # a GPU without a file: measured all the same
        return Point(kernel, problem, tiling)
    modelled = {"kernel": kernel, "tiling": tiling} if kernel.work else {}
    try:
        seconds = predict(problem, device, **modelled).seconds
    except ValueError as error:
        return Point(kernel, problem, tiling, skip=str(error))
    late = f"predicted {in_ascii(seconds)} > {in_ascii(budget)}" if seconds > budget else ""
    return Point(kernel, problem, tiling, seconds, late)


def known_points(folder: Path, device: str) -> set[tuple]:
    """List the keys of the measurements in `folder`; RecordError for lines that are not right."""
    return {
        (m.kernel, m.problem, m.tiling, m.provenance["source_sha256"])
        for path in sorted(folder.glob("*.jsonl"))
        for m in records.read(path)
        if m.device == device
    }


def record(
    points: Iterable[Point],
    folder: Path,
    device: str,
    *,
    repeats: int | None = None,
    run: Callable[..., Measurement] = run_backend,
    stream: TextIO | None = None,
) -> Outcome:
    """Measure `points` on the GPU and append each to ``folder/<kernel>.jsonl``.

    Points that are recorded already with the same source of their kernel, and points to skip, are
    left out; one that fails is named and the rest goes on. Ctrl-C ends the campaign, and nothing
    that was measured is lost. Raises RecordError for a file in `folder` that was edited.
    """
    stream = stream or sys.stderr
    points = list(points)
    known = known_points(folder, device)
    wanted = [p for p in points if not p.skip]
    todo = [p for p in wanted if p.key not in known]
    bar = Progress(len(todo), stream)
    failures: list[str] = []
    done, interrupted = 0, False
    problem = operands = None
    try:
        for index, point in enumerate(todo):
            bar.show(index, str(point))
            if point.problem != problem:
                problem, operands = point.problem, point.problem.operands()
            try:
                measurement = run(
                    point.kernel,
                    point.problem,
                    "gpu",
                    tiling=point.tiling,
                    operands=operands,
                    data=DATA,
                    repeats=repeats,
                )
                records.append(folder / f"{point.kernel.name}.jsonl", measurement)
                done += 1
            except OSError:
                raise  # nothing can be written: the rest would be measured in vain
            except Exception as error:
                failures.append(f"{point}: {type(error).__name__}: {error}")
                bar.say(f"failed: {failures[-1]}")
        bar.show(len(todo), "done")
    except KeyboardInterrupt:
        interrupted = True
    finally:
        bar.close()
    recorded, skipped = len(wanted) - len(todo), len(points) - len(wanted)
    return Outcome(done, recorded, skipped, tuple(failures), interrupted)


def table(points: Iterable[Point], folder: Path, device: str) -> str:
    """Write a campaign as text: a line for each point, with its predicted time, and the total."""
    known = known_points(folder, device)
    rows = []
    total = 0.0
    for point in points:
        note = point.skip or ("recorded already" if point.key in known else "")
        seconds = "-" if point.seconds is None else in_ascii(point.seconds)
        rows.append(f"{point!s:<56}{seconds:>10}  {note and '# ' + note}".rstrip())
        total += 0.0 if note else point.seconds or 0.0
    rows.append(
        f"{'predicted for one launch of each that would be measured':<56}{in_ascii(total):>10}"
    )
    return "\n".join(rows)


def in_ascii(seconds: float) -> str:
    """Return a `duration` for any terminal: machines with GPUs may have ASCII alone."""
    return duration(seconds).replace("µ", "u")


class Progress:
    """A bar that redraws its line on a terminal, and prints lines where there is none."""

    WIDTH = 24

    def __init__(self, total: int, stream: TextIO) -> None:
        self.total, self.stream, self.start = total, stream, time.monotonic()
        self.live = stream.isatty()

    def show(self, done: int, text: str) -> None:
        """Draw the bar with `done` points behind it, and say what comes."""
        bar = ("#" * (done * self.WIDTH // max(self.total, 1))).ljust(self.WIDTH, ".")
        line = f"[{bar}] {done}/{self.total} {time.monotonic() - self.start:.0f} s  {text}"
        if self.live:
            room = shutil.get_terminal_size().columns - 1
            line = "\r" + line[:room].ljust(room)
        print(line, end="" if self.live else "\n", file=self.stream, flush=True)

    def say(self, text: str) -> None:
        print(("\n" if self.live else "") + text, file=self.stream, flush=True)

    def close(self) -> None:
        """Leave the bar's line."""
        if self.live:
            print(file=self.stream, flush=True)


def target(dry_run: bool) -> Device:
    """Find the GPU to measure on: this machine's.

    Where there is none, a dry run is of the one whose measurements come with gemmlab. Raises
    ValueError where there is nothing to measure on.
    """
    status = gpu_status()
    if not status.works and not dry_run:
        raise ValueError(
            f"record needs an NVIDIA GPU that works here, and there is none ({status.reason}); "
            "`gemmlab doctor` says how to mend that, and `gemmlab record --dry-run` lists what "
            "would be measured, with predicted times"
        )
    return detect() if status.works else load_device(RECORDED)


def campaign(
    points: Iterable[Point], folder: Path, device: Device, dry_run: bool, repeats: int | None = None
) -> int:
    """Measure points and say how it went, or list them; the exit status of the command."""
    if dry_run:
        print(f"predicted for {device.title}, to be kept in {folder}")
        print(table(points, folder, device.name))
        return 0
    outcome = record(points, folder, device.name, repeats=repeats)
    print(
        f"{outcome.measured} measured and kept in {folder}, {outcome.known} recorded before, "
        f"{outcome.skipped} left out, {len(outcome.failures)} failed"
    )
    if outcome.interrupted:
        print("interrupted; the same command goes on from here")
        return 130
    return 1 if outcome.failures else 0
