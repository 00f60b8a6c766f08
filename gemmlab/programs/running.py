"""A script or a module runs as `python SCRIPT` does, with the simulated GPU in Numba's place.

For all that this process imports, the simulated GPU has the name `numba.cuda`, and that of NVIDIA's
second compiler, `numba_cuda_mlir.cuda`, which has no simulator of its own. Where Numba is not
installed, a module `numba` stands in for it, with the names that programs with kernels use beside
`numba.cuda`: number types, and `jit` and `njit`, which leave a function as is. An `Account` is what
the program's kernels did: its launches, put together by kernel, grid and block. Once it has ended,
`forecasts` predicts its launches for a GPU, from compiled code.
"""

import __future__

import builtins
import importlib
import itertools
import linecache
import os
import runpy
import sys
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from functools import reduce
from importlib.abc import MetaPathFinder
from pathlib import Path
from types import ModuleType, SimpleNamespace, TracebackType
from typing import Any

import numpy as np

from gemmlab.compiled.sass.execution.machine import Dim
from gemmlab.here import numbas
from gemmlab.here.numbas import CUDA
from gemmlab.model.counters import Counters
from gemmlab.programs.forecasts import FirstCalls, LaunchForecast, forecasts, place
from gemmlab.simt import Hazard, Report, cuda
from gemmlab.simt.cuda import arrays, cudadrv, kernels, random, vector_types
from gemmlab.simt.cuda.kernels import Launched, watching
from gemmlab.simt.machine.debugger import Stop, stopped_at
from gemmlab.simt.numbers import types
from gemmlab.simt.report import coverage
from gemmlab.simt.report.report import with_more


class Printed:
    """What a program prints goes to standard error; it is known whether there was anything."""

    anything = False

    def write(self, text: str) -> int:
        self.anything = True
        return sys.stderr.write(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(sys.stderr, name)


def jit(function: Any = None, *signatures: Any, **options: Any) -> Any:
    """Return a function as it is: plain Python, whatever the options ask for."""
    return _plain(function) if callable(function) else _plain


def _plain(function: Callable) -> Callable:
    function.py_func = function  # type: ignore[attr-defined]
    return function


def vectorize(ftylist_or_function: Any = (), target: str = "cpu", **options: Any) -> Any:
    """Return a function of arrays: NumPy's `vectorize` in plain Python, or a kernel for "cuda"."""
    if target == "cuda":
        return cuda.vectorize(ftylist_or_function, **options)
    if callable(ftylist_or_function):
        return np.vectorize(ftylist_or_function)
    return np.vectorize


class NumbaError(Exception):
    """An error of Numba's, for programs that catch them."""


class NumbaWarning(Warning):
    """A warning of Numba's, for programs that filter them."""


ERRORS = {
    **dict.fromkeys(("NumbaError", "TypingError", "LoweringError"), NumbaError),
    **dict.fromkeys(
        ("NumbaWarning", "NumbaPerformanceWarning", "NumbaDeprecationWarning",
         "NumbaPendingDeprecationWarning"),
        NumbaWarning,
    ),
}  # fmt: skip


def modules() -> dict[str, ModuleType]:
    """Return the module `numba` and its parts, by name."""
    numba, core = _module("numba", __path__=[]), _module("numba.core", __path__=[])
    errors = _module("numba.core.errors", **ERRORS)
    config = SimpleNamespace(ENABLE_CUDASIM=0, CUDA_LOW_OCCUPANCY_WARNINGS=0)
    vars(numba).update(
        types.TYPES,
        __version__="0 (gemmlab)",
        types=types,
        core=core,
        errors=errors,
        config=config,
        jit=jit,
        njit=jit,
        vectorize=vectorize,
        guvectorize=cuda.guvectorize,
        prange=range,
        literal_unroll=lambda values: values,
        get_num_threads=lambda: 1,
        set_num_threads=lambda count: None,
    )
    vars(core).update(errors=errors, config=config, types=types)
    extending = _module("numba.extending", register_jitable=jit)
    numba.extending = extending  # type: ignore[attr-defined]
    made: Sequence[ModuleType] = (numba, core, errors, extending)
    return {module.__name__: module for module in made} | {"numba.types": types}


def _module(name: str, **names: Any) -> ModuleType:
    module = ModuleType(name, "A stand-in, with the simulated GPU in a GPU's place.")
    vars(module).update(names)
    return module


class Refusal(MetaPathFinder):
    """Refuses the parts of both compilers' packages that have no simulated counterpart."""

    simulated = True  # not among the finders while Numba's own modules are put back

    def find_spec(self, name: str, path: Sequence[str] | None, target: Any = None) -> None:
        """ModuleNotFoundError for a part of theirs; other modules are for other finders."""
        whole = next((whole for whole in (CUDA, MLIR) if name.startswith(f"{whole}.")), None)
        if whole:
            known = ", ".join(sorted(m for m in sys.modules if f"{m}.".startswith(f"{whole}.")))
            raise ModuleNotFoundError(
                f"{name} is not a part of the simulated GPU, which has {known}", name=name
            )


# Parts of Numba's own that say what types and errors are, and know nothing of a GPU.
OF_NUMBA = (
    *("core", "core.errors", "core.config", "types", "typing", "typing.typeof", "np"),
    *("np.numpy_support", "utils"),
)


def parts(installed: bool) -> dict[str, ModuleType]:
    """Return `numba.cuda` and those of its parts that programs import, by name.

    installed : whether Numba is there, whose own types and errors programs then get
    """
    made = of_cuda()
    if installed:
        made.update({name: numbas.Later(name) for name in OF_NUMBA})
    else:
        made |= {"core": sys.modules["numba.core"], "core.errors": sys.modules["numba.core.errors"]}
    return {CUDA: cuda} | {f"{CUDA}.{name}": module for name, module in made.items()}


def of_cuda() -> dict[str, Any]:
    """Return the parts that programs import of `cuda`, by either compiler's name."""
    return {
        "types": cuda.types,
        "api": arrays,
        "decorators": kernels,
        "random": random,
        "cudadrv": cudadrv,
        "vector_types": vector_types,
        "libdevice": cuda.libdevice,
        "fp16": cuda.fp16,
        **{f"cudadrv.{name}": module for name, module in cudadrv.PARTS.items()},
    }


MLIR = "numba_cuda_mlir"


def of_mlir() -> dict[str, ModuleType]:
    """Return the package `numba_cuda_mlir` and its parts, by name, with the simulated GPU in it.

    Its types and errors are those of a stand-in for Numba: it has its own, of which no other
    program knows.
    """
    errors = _module(f"{MLIR}.errors", **ERRORS)
    package = _module(
        MLIR, __path__=[], __version__="0 (gemmlab)", cuda=cuda, types=cuda.types, errors=errors,
        numba_cuda=cuda,
    )  # fmt: skip
    inside = {"cuda": cuda, "numba_cuda": cuda, "types": cuda.types, "errors": errors}
    inside |= {
        f"{whole}.{name}": module
        for whole in ("cuda", "numba_cuda")
        for name, module in of_cuda().items()
    }
    return {MLIR: package} | {f"{MLIR}.{name}": module for name, module in inside.items()}


@contextmanager
def in_place_of_numba() -> Iterator[bool]:
    """Have `numba.cuda` be the simulated GPU in the body; whether Numba itself is installed.

    So is `numba_cuda_mlir.cuda`, whether that is installed or not.
    """
    before = {name: module for name, module in sys.modules.items() if _is_numbas(name)}
    try:
        numba: Any = importlib.import_module("numba")
        installed = True
    except ImportError:
        sys.modules.update(modules())
        numba, installed = sys.modules["numba"], False
    own = {name: sys.modules.pop(name) for name in list(sys.modules) if numbas.belongs(name)}
    for name in [name for name in sys.modules if _is_mlirs(name)]:
        del sys.modules[name]
    sys.modules.update(parts(installed and numbas.installed()) | of_mlir())
    refusal, of_numba = Refusal(), {name: getattr(numba, name) for name in MADE_OF_FUNCTIONS}
    sys.meta_path.insert(0, refusal)
    numba.cuda, plain_types = cuda, cuda.types
    cuda.types = sys.modules[f"{CUDA}.types"]
    for name, function in of_numba.items():
        setattr(numba, name, _for_the_gpu(function, getattr(cuda, name)))
    try:
        with numbas.hidden(own), texts_kept():
            yield installed
    finally:
        sys.meta_path.remove(refusal)
        vars(numba).update(of_numba)
        cuda.types = plain_types
        del numba.cuda
        for name in [name for name in sys.modules if _is_numbas(name)]:
            if name not in before and (not installed or name.startswith((CUDA, MLIR))):
                del sys.modules[name]
        sys.modules.update(before | own)
        if CUDA in own:
            numba.cuda = own[CUDA]


def _is_numbas(name: str) -> bool:
    return name == "numba" or name.startswith("numba.") or _is_mlirs(name)


def _is_mlirs(name: str) -> bool:
    return name == MLIR or name.startswith(f"{MLIR}.")


MADE_OF_FUNCTIONS = "vectorize", "guvectorize"  # of Numba, which make arrays' functions of numbers'


def _for_the_gpu(of_numba: Any, simulated: Any) -> Any:
    """Numba's `vectorize` or `guvectorize`, but for the GPU, which is simulated."""

    def made(*args: Any, **options: Any) -> Any:
        here = options.get("target") == "cuda"
        return (simulated if here else of_numba)(*args, **options)

    return made


@contextmanager
def texts_kept() -> Iterator[None]:
    """Keep each text that the body executes, so that the source of what it defines is found."""
    own, count = builtins.exec, itertools.count()

    def execute(source: Any, /, *scopes: Any, **options: Any) -> None:
        caller = sys._getframe(1)
        if isinstance(source, str):
            file = f"<executed text {next(count)}>"
            linecache.cache[file] = len(source), None, source.splitlines(True), file
            source = compile(source, file, "exec", caller.f_code.co_flags & FUTURE)
        own(source, *(scopes or (caller.f_globals, caller.f_locals)), **options)

    builtins.exec = execute
    try:
        yield
    finally:
        builtins.exec = own


FUTURE = reduce(lambda flags, name: flags | getattr(__future__, name).compiler_flag,
                __future__.all_feature_names, 0)  # fmt: skip


@dataclass
class Row:
    """The launches of a kernel with one grid and one block.

    report : what they did, added up; seconds : that this computer took for them
    """

    report: Report
    launches: int
    seconds: float

    @property
    def kernel(self) -> str:
        return self.report.origin.name

    @property
    def place(self) -> str:
        return place(*self.report.origin[1:])


@dataclass
class Account:
    """An account has all launches of a program, in the order in which each kind came first."""

    by_kind: dict[tuple, Row] = field(default_factory=dict)

    def add(self, launched: Launched) -> None:
        report = launched.report
        kind = (report.origin, report.grid, report.block)
        row = self.by_kind.get(kind)
        if row is None:
            self.by_kind[kind] = Row(report, 1, launched.seconds)
            return
        row.launches += 1
        row.seconds += launched.seconds
        _add(row.report, report)

    @property
    def rows(self) -> list[Row]:
        return list(self.by_kind.values())

    @property
    def launches(self) -> int:
        return sum(row.launches for row in self.rows)

    @property
    def seconds(self) -> float:
        """Time that this computer took to simulate them [s]."""
        return sum(row.seconds for row in self.rows)

    @property
    def hazards(self) -> list[Hazard]:
        """The hazards of all launches, each kind once a line, with how often."""
        hazards = (h for row in self.rows for h in row.report.hazards)
        return reduce(with_more, hazards, [])


def _add(total: Report, report: Report) -> None:
    for file, lines in report.by_file.items():
        for line, counts in lines.items():
            total.by_file[file].setdefault(line, Counters()).update(counts)
    for where, source in report.sources.items():
        total.sources.setdefault(where, source)
    total.launch.update(report.launch)
    total.marks.update(report.marks)
    total.launches += report.launches
    total.idle = None if None in (total.idle, report.idle) else total.idle + report.idle
    for hazard in report.hazards:
        total.add(hazard)
    ends = _ends(total) & _ends(report)
    for note in report.notes:
        total.note(note)
    # Launches that each store to a part of an array, one after the other, leave nothing.
    kept = (n for n in total.notes if n.kind != coverage.KIND or n.line in ends)
    total.notes = tuple(kept)


def _ends(report: Report) -> set[int]:
    """Return the lines whose stores end where the grid does."""
    return {note.line for note in report.notes if note.kind == coverage.KIND}


@dataclass(frozen=True)
class Unended:
    """A launch that had begun when its process ended."""

    kernel: str
    place: str
    grid: Dim
    block: Dim


NOT_THERE = 2  # Python's own exit status for a script that it cannot open
INTERRUPTED = 130


@dataclass
class Outcome:
    """An outcome tells how a program ended.

    status : the exit status that Python would have given it
    account : what its kernels did; unended : launches that had begun when their process ended
    numba : whether Numba is installed beside the simulated GPU
    device : the GPU for which its launches are predicted, if any; predicted : their times there
    """

    target: str
    arguments: tuple[str, ...]
    status: int = 0
    numba: bool = True
    account: Account = field(default_factory=Account)
    unended: list[Unended] = field(default_factory=list)
    device: str | None = None
    predicted: list[LaunchForecast] = field(default_factory=list)


def run(
    target: str,
    arguments: Sequence[str] = (),
    module: bool = False,
    device: str | None = None,
    sample: bool = False,
    stop: Stop | None = None,
) -> Outcome:
    """Run the script `target`, or the module of that name, with its `arguments`.

    device : the GPU for which the first launch of each kind is predicted when all has ended
    sample : whether of a large launch the first and the last blocks are enough
    stop : the thread that stops at a line of a kernel, in Python's debugger
    What it raises is printed as Python does, without the frames of gemmlab that called it.
    """
    outcome, first_calls = Outcome(target, tuple(arguments), device=device), FirstCalls()
    if not module and not Path(target).exists():
        print(f"gemmlab: there is no file {target!r}", file=sys.stderr)
        outcome.status = NOT_THERE
        return outcome
    keep = first_calls.keep if device else lambda call: None
    watched = watching(outcome.account.add, keep, sample)
    with as_program(target, arguments, module), in_place_of_numba() as outcome.numba, watched:
        with stopped_at(stop) if stop else nullcontext() as debugger:
            outcome.status = status(target, module)
        if debugger and not debugger.chosen:
            print(f"gemmlab: no launch has had {stop}", file=sys.stderr)
    if device:
        outcome.predicted = forecasts(first_calls.calls.values(), device)
    return outcome


@contextmanager
def as_program(target: str, arguments: Sequence[str], module: bool = False) -> Iterator[None]:
    """Have a program find its arguments and the modules beside it in the body."""
    argv, first = sys.argv, sys.path[0]
    sys.argv = [target, *arguments]
    sys.path[0] = os.getcwd() if module else str(Path(target).resolve().parent)
    try:
        yield
    finally:
        sys.argv, sys.path[0] = argv, first


def status(target: str, module: bool = False) -> int:
    """Run a program; return its exit status, by Python's rules for what it raises."""
    try:
        if module:
            runpy.run_module(target, run_name="__main__", alter_sys=True)
        else:
            runpy.run_path(target, run_name="__main__")
    except SystemExit as end:
        if end.code is None or isinstance(end.code, int):
            return end.code or 0
        print(end.code, file=sys.stderr)
        return 1
    except BaseException as error:
        kept = _of_the_program(error.__traceback__)
        traceback.print_exception(type(error), error, kept)
        return INTERRUPTED if isinstance(error, KeyboardInterrupt) else 1
    return 0


def _of_the_program(trace: TracebackType | None) -> TracebackType | None:
    """Return the traceback from the program's first frame on."""
    ours = (__file__, runpy.__file__, "<frozen runpy>")
    while trace is not None and trace.tb_frame.f_code.co_filename in ours:
        trace = trace.tb_next
    return trace
