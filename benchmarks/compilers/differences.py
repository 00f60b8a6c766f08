"""What the two compilers make of the same small kernels: the page's table of differences.

python -m benchmarks.compilers.differences       records it, where both are installed
python -m benchmarks.compilers.table             book/compilers.md

Each kernel is compiled for `sm_90`, and its code is executed by `compiled.sass`: no GPU is asked.
numba-cuda-mlir compiles it as it is, and with what gemmlab mends.
"""

import inspect
import re
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from types import ModuleType
from typing import Any
from unittest import mock

import numpy as np

from benchmarks.compilers.probes import (
    LACKS,
    LANES,
    PROBES,
    ROUNDING,
    SAID,
    SILENT,
    Probe,
    numbers,
)
from gemmlab import cuda
from gemmlab.compiled.sass import compiling
from gemmlab.compiled.sass.execution.machine import launch
from gemmlab.here import numbas
from gemmlab.here.compilers import COMPILERS, MLIR, NUMBA
from gemmlab.here.driver import stamp
from gemmlab.measure import store

FILE = Path(__file__).parent / "recorded" / "differences.json"
REQUIRED = ("date", "python", *(name.replace("-", "_") for name in COMPILERS))
MOST = 80  # letters of what a compiler says
REFUSED = "refused"
CHAINS = 1, 8, 32  # device functions that call each other
TRIES = 3
HOST = "host"
TOPICS = ROUNDING, SILENT, LACKS, SAID, HOST


@dataclass(frozen=True)
class Difference:
    """What each compiler makes of a probe.

    outcomes : by compiler; mended : numba-cuda-mlir's with gemmlab's mends
    """

    topic: str
    what: str
    outcomes: Mapping[str, str]
    mended: str


@dataclass(frozen=True)
class Chain:
    """The time to compile a kernel that calls the first of some device functions in a chain."""

    functions: int
    seconds: Mapping[str, float]


# -------------------------------------------------------------------------- what comes out


def outcome(probe: Probe, compiler: str, mended: bool = False) -> str:
    """Compile a probe and execute its code: say which of its results came out."""
    y = np.zeros_like(next(iter(probe.results.values())))
    try:
        with nullcontext() if mended or compiler == NUMBA else _unmended():
            made = compiling.cubin(probe.kernel, (probe.x, y), compiler=compiler, **probe.options)
    except Exception as error:
        return f"{REFUSED}: {_words(error)}"
    code = replace(compiling.disassemble(*made), memrefs=compiler == MLIR)
    try:
        launch(code, 1, LANES, probe.x, y).run(100_000)
    except IndexError:
        return "outside of the arrays"
    for name, result in probe.results.items():
        if np.array_equal(y, result):
            return name
    return _difference(y, next(iter(probe.results.values())))


def _difference(found: np.ndarray, right: np.ndarray) -> str:
    """Say how far a result is from the right one."""
    at = int(np.flatnonzero(found != right)[0])
    if found.dtype.kind == "f" and np.allclose(found, right, rtol=1e-3):
        units = np.abs(found.astype(float) - right) / np.spacing(np.abs(right))
        return f"up to {units.max():.3g} in the last place"
    return f"{found[at]:.9g}, not {right[at]:.9g}"


def _unmended() -> Any:
    """Let numba-cuda-mlir compile as it is."""
    from gemmlab.instructions.numba_cuda_mlir import arrays

    return mock.patch.object(arrays, "mends", tuple)


BUG = "a compiler bug"
VALUES = r"\s*[(=$[].*"  # of which an error of the compiler's own goes on to tell
STEP = re.compile(r"Failed in \w+ mode pipeline .*|\s*")  # before the words that say what is wrong


def _words(error: BaseException) -> str:
    """Return the first line in which an error says what is wrong, without places and colours."""
    if BUG in str(error) and error.__context__:
        own = re.sub(r"<[^<>]*?(\w+)'?>", r"\1", str(error.__context__).partition("\n")[0])
        return f"{BUG}: {re.sub(VALUES, '', own).rstrip(':')}"
    text = re.sub(r"\x1b\[[0-9;]*m", "", str(error))
    lines = [line for line in map(str.strip, text.splitlines()) if not STEP.fullmatch(line)]
    first = re.sub(r" for '\$.*| found for signature:", "", lines[0])
    return first if len(first) <= MOST else first[: MOST - 1] + "…"


def _names(compiler: str) -> ModuleType:
    """Return a compiler's own `cuda`."""
    if compiler == NUMBA:
        with numbas.own() as own:
            return own
    from numba_cuda_mlir import cuda as own

    return own


def _vectorized(compiler: str) -> str:
    """Say whether `cuda.vectorize` makes a function of arrays."""
    try:
        with numbas.own() if compiler == NUMBA else nullcontext():
            _names(compiler).vectorize(lambda a: a + 1)
    except Exception as error:
        return f"{REFUSED}: {_words(error)}"
    return "there"


def _options(compiler: str) -> dict[str, bool]:
    """Return the options that `cuda.jit` takes, and whether its help tells of each."""
    if compiler == NUMBA:
        with numbas.own() as own:
            from numba.cuda.dispatcher import _Kernel

            taken = {**inspect.signature(own.jit).parameters}
            taken |= inspect.signature(_Kernel.__init__).parameters
        no_options = {"self", "func_or_sig", "py_func", "argtypes", "kws"}
        return dict.fromkeys(taken.keys() - no_options, True)
    from numba_cuda_mlir.decorators import _get_schema

    return {option.name: not option.hidden for option in _get_schema()}


def host_differences(compilers: tuple[str, ...] = tuple(COMPILERS)) -> Iterator[Difference]:
    """What differs outside of kernels, for compilers that are installed."""
    outcomes = {one: _vectorized(one) for one in compilers}
    yield Difference(HOST, "`cuda.vectorize`", outcomes, outcomes.get(MLIR, ""))
    known = {one: _options(one) for one in compilers}
    own = {}
    for one, taken in known.items():
        others = set().union(*(names for other, names in known.items() if other != one))
        told = sorted(name for name, is_told in taken.items() if is_told and name not in others)
        own[one] = ", ".join(f"`{name}`" for name in told)
    yield Difference(HOST, "options of `cuda.jit` that it alone has", own, own.get(MLIR, ""))


# ------------------------------------------------------------------------ composed functions


def chained(length: int) -> Callable:
    """Return a kernel that calls the first of `length` device functions, which call each other."""
    following: Callable | None = None
    for number in range(length):
        following = _link(following, float(number))
    first = cuda.jit(device=True)(following)

    def kernel(x, y):
        i = cuda.threadIdx.x
        y[i] = first(x[i])

    return kernel


def _link(following: Callable | None, number: float) -> Callable:
    if following is None:
        return lambda value: value * value + number
    after = cuda.jit(device=True)(following)

    def link(value):
        total = after(value)
        for _ in range(3):
            total = total * value + number
        return total

    return link


def seconds(length: int, compiler: str) -> float:
    """Time the compilation of a chain, which nothing has compiled before."""
    x, taken = numbers(np.float32), []
    for _ in range(TRIES):
        kernel, start = chained(length), time.perf_counter()
        compiling.cubin(kernel, (x, x), compiler=compiler)
        taken.append(time.perf_counter() - start)
    return round(median(taken), 2)


# --------------------------------------------------------------------------------- the record


def made() -> tuple[list[Difference], list[Chain]]:
    """Compile all with both compilers."""
    found = []
    for probe in PROBES:
        outcomes = {one: outcome(probe, one) for one in COMPILERS}
        found.append(Difference(probe.topic, probe.what, outcomes, outcome(probe, MLIR, True)))
        print(probe.what, outcomes, found[-1].mended, sep="\n   ", file=sys.stderr)
    found += host_differences()
    for one in COMPILERS:
        seconds(1, one)  # which loads what compiles
    chains = [Chain(n, {one: seconds(n, one) for one in COMPILERS}) for n in CHAINS]
    return found, chains


def main() -> None:
    """Record what differs."""
    tools = stamp("date", "python", *(name.replace("-", "_") for name in COMPILERS), "ptxas")
    found, chains = made()
    store.write(FILE, tools, {"differences": found, "chains": chains}, REQUIRED)


def recorded() -> store.Stored:
    """Read the record."""
    return store.read(FILE, {"differences": Difference, "chains": Chain}, REQUIRED)


if __name__ == "__main__":
    main()
