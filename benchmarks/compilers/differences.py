"""What the two compilers make of the same small kernels: the page's table of differences.

python -m benchmarks.compilers.differences       records it, where both are installed
python -m benchmarks.compilers.table             book/compilers.md

Each kernel is compiled for `sm_90`, and its code is executed by `compiled.sass`: no GPU is asked.
numba-cuda-mlir compiles it as it is, and with what gemmlab mends.
"""

from __future__ import annotations

import inspect
import re
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from enum import IntEnum
from pathlib import Path
from statistics import median
from types import ModuleType
from typing import Any
from unittest import mock

import numpy as np

from gemmlab import cuda
from gemmlab.compiled.sass import compiling
from gemmlab.compiled.sass.execution.machine import launch
from gemmlab.here import numbas
from gemmlab.here.compilers import COMPILERS, MLIR, NUMBA
from gemmlab.here.driver import stamp
from gemmlab.measure import store

FILE = Path(__file__).parent / "recorded" / "differences.json"
REQUIRED = ("date", "python", *(name.replace("-", "_") for name in COMPILERS))
LANES = 32
MOST = 80  # letters of what a compiler says
RIGHT, REFUSED = "right", "refused"
CHAINS = 1, 8, 32  # device functions that call each other
TRIES = 3
ROUNDING, SILENT, LACKS, SAID, HOST = "rounding", "silent", "refused", "errors", "host"
TOPICS = ROUNDING, SILENT, LACKS, SAID, HOST


@dataclass(frozen=True)
class Probe:
    """A kernel of two arrays, x and y, that a warp executes, and what may come out.

    results : names of results, and y as each leaves it; where there is one, it is the right one
    options : of the kernel's compilation
    """

    topic: str
    what: str
    kernel: Callable
    x: np.ndarray
    results: Mapping[str, np.ndarray]
    options: Mapping[str, Any] = field(default_factory=dict)


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


# ------------------------------------------------------------------------- what is compiled


def fused(x, y):
    i = cuda.threadIdx.x
    y[i] = x[i] * x[i] + x[(i + 1) % 32]


def divided(x, y):
    i = cuda.threadIdx.x
    y[i] = x[i] / x[31 - i]


def with_a_number(x, y):
    i = cuda.threadIdx.x
    y[i] = x[i] * 1.1


def squared(x, y):
    i = cuda.threadIdx.x
    y[i] = x[i] ** 2


def multiplied(x, y):
    i = cuda.threadIdx.x
    y[i] = x[i] * x[i]


def rounded(x, y):
    i = cuda.threadIdx.x
    y[i] = round(x[i])


def floored(x, y):
    i = cuda.threadIdx.x
    y[i] = x[i] // np.int32(4) + 100 * (x[i] % np.int32(4))


def negative_step(x, y):
    i = cuda.threadIdx.x
    y[i] = 0
    for step in (-1, 0, 1):
        if 0 < i < 31:
            y[i] += x[i + step]


def shuffled(x, y):
    i = cuda.threadIdx.x
    y[i] = cuda.shfl_down_sync(0xFFFFFFFF, x[i], 1)


def stored_by_index(x, y):
    y[x[cuda.threadIdx.x]] = cuda.threadIdx.x


def counted_by_index(x, y):
    cuda.atomic.add(y, x[cuda.threadIdx.x], 1)


def beyond_the_end(x, y):
    y[cuda.threadIdx.x] = x[-4:100].size


def every_second(x, y):
    y[cuda.threadIdx.x] = x[:31:2].size


def by_a_condition(x, y):
    part = cuda.shared.array(32, np.int32)
    i = cuda.threadIdx.x
    part[i] = 0
    cuda.syncthreads()
    cuda.atomic.add(part, (2 if -2 <= 1 < 1 else 3) % 32, 1)
    cuda.syncthreads()
    y[i] = part[i]


def enumerated(x, y):
    for i, value in enumerate((x[0], x[1])):
        y[i] = value


def divided_with_rest(x, y):
    i = cuda.threadIdx.x
    y[i], rest = divmod(int(x[i]), 3)
    y[i] += 100 * rest


def least_of_three(x, y):
    i = cuda.threadIdx.x
    y[i] = min(x[i], x[31 - i], x[(i + 1) % 32])


def fenced(x, y):
    i = cuda.threadIdx.x
    y[i] = 1
    cuda.threadfence()
    y[i] = x[i]


def lanes_before(x, y):
    i = cuda.threadIdx.x
    y[i] = cuda.popc(cuda.lanemask_lt()) + x[i]


def letter(x, y):
    i = cuda.threadIdx.x
    y[i] = x[i] + ord("b")


class State(IntEnum):
    """Two states with names."""

    OFF = 0
    ON = 1


def named(x, y):
    i = cuda.threadIdx.x
    y[i] = State.OFF
    if i > 3:
        y[i] = State.ON


def pairs(x, y):
    i = cuda.threadIdx.x
    y[i] = 0
    for factor, more in ((1, 5), (2, 0)):
        y[i] += factor * x[i] + more


def second_rows(x, y):
    tile = cuda.shared.array((4, 32), np.float32)
    i = cuda.threadIdx.x
    for row in range(4):
        tile[row, i] = row
    cuda.syncthreads()
    half = tile[::2]
    y[i] = x[i] + half[1, i]


def undefined(x, y):
    y[0] = nowhere(x)  # noqa: F821  # that is the question


def no_such_function(x, y):
    y[0] = cuda.no_such_function(x[0])


def of_a_dictionary(x, y):
    y[0] = {0: x[0]}[0]


def of_two_types(x, y):
    value = (x[0], 1) if x[0] > 0 else 2
    y[0] = value


def of_a_word(x, y):
    y[0] = "one"


def of_an_array(x, y):
    y[0] = x


def returned(x, y):
    return x[0]


# ------------------------------------------------------------------------------- the probes


def _numbers(dtype: Any) -> np.ndarray:
    """Positive numbers of which products and quotients are not exact."""
    return np.random.default_rng(0).uniform(0.5, 2, LANES).astype(dtype)


def _rounding() -> Iterator[Probe]:
    x, wide = _numbers(np.float32), _numbers(np.float32).astype(np.float64)
    whole = np.arange(-16, 16, dtype=np.int32)
    big = np.full(LANES, 100_000, np.int32)
    product = {"one rounding": wide * wide + np.roll(wide, -1), "two roundings": x * x + np.roll(x, -1)}
    yield Probe(ROUNDING, "`a * b + c`, float32", fused, x, _in(np.float32, product))
    quotient = {"to the nearest": wide / wide[::-1]}
    yield Probe(ROUNDING, "`a / b`, float32", divided, x, _in(np.float32, quotient))
    yield Probe(
        ROUNDING, "the same with `fastmath=True`", divided, x, _in(np.float32, quotient),
        {"fastmath": True},
    )  # fmt: skip
    scaled = {"in float64": wide * 1.1, "in float32": x * np.float32(1.1)}
    yield Probe(ROUNDING, "`1.1 * a`, float32", with_a_number, x, _in(np.float64, scaled))
    yield Probe(ROUNDING, "`a ** 2`, float32", squared, x, _in(np.float32, {RIGHT: wide * wide}))
    yield Probe(
        ROUNDING, "`i * i` beyond 31 bits, int32", multiplied, big,
        _in(np.int64, {"64 bits": big.astype(np.int64) ** 2, "32 bits": big * big}),
    )  # fmt: skip
    quarters = np.arange(-16, 16) / 4
    rounds = {"halves to even": np.round(quarters)}
    yield Probe(ROUNDING, "`round(a)`, float64", rounded, quarters, _in(np.float64, rounds))
    floors = {"down": whole // 4 + 100 * (whole % 4)}
    yield Probe(ROUNDING, "`i // 4` and `i % 4` below 0", floored, whole, _in(np.int32, floors))


def _silent() -> Iterator[Probe]:
    x, third = np.arange(LANES), np.arange(LANES) + 1 / 3
    high = np.arange(255, 223, -1).astype(np.uint8)
    sums = np.where((x > 0) & (x < 31), 3 * x, 0)
    stored = np.r_[np.zeros(224, np.int32), x[::-1]]
    counted = np.r_[np.zeros(224, np.int32), np.ones(LANES, np.int32)]
    atomic = np.where(x == 3, LANES, 0)
    for what, kernel, given, right, dtype in (
        ("`for step in (-1, 0, 1)`", negative_step, x, sums, np.int64),
        ("`shfl_down_sync` of float64", shuffled, third, np.r_[third[1:], third[31]], np.float64),
        ("`y[i]` with `i` of uint8", stored_by_index, high, stored, np.int32),
        ("`atomic.add(y, i, 1)` with `i` of uint8", counted_by_index, high, counted, np.int32),
        ("`x[-4:100].size`", beyond_the_end, x, np.full(LANES, 4), np.int64),
        ("`x[:31:2].size`", every_second, x, np.full(LANES, 16), np.int64),
        ("a shared atomic at `a if c else b`", by_a_condition, x, atomic, np.int32),
    ):
        yield Probe(SILENT, what, kernel, given, _in(dtype, {RIGHT: right}))


def _refused() -> Iterator[Probe]:
    x = np.arange(LANES, dtype=np.float32)
    after, before = np.roll(x, -1), np.arange(LANES)
    first = np.where(x == 1, 1, 0)
    for what, kernel, right in (
        ("`enumerate`", enumerated, first),
        ("`divmod`", divided_with_rest, x // 3 + 100 * (x % 3)),
        ("`min` and `max` of three", least_of_three, np.minimum(np.minimum(x, x[::-1]), after)),
        ("`cuda.threadfence`", fenced, x),
        ("`cuda.lanemask_lt`", lanes_before, x + before),
        ("`ord` of a letter", letter, x + ord("b")),
        ("pairs of numbers in a tuple", pairs, 3 * x + 5),
        ("`tile[::2]` of a shared array", second_rows, x + 2),
    ):
        yield Probe(LACKS, what, kernel, x, _in(np.float32, {RIGHT: right}))
    member = _in(np.int64, {RIGHT: before > 3})
    yield Probe(LACKS, "a member of an enumeration in an array", named, x, member)


def _said() -> Iterator[Probe]:
    x = np.arange(LANES, dtype=np.float32)
    for what, kernel in (
        ("a name that is not there", undefined),
        ("a name that `cuda` has not", no_such_function),
        ("a dictionary", of_a_dictionary),
        ("a variable of two types", of_two_types),
        ("a word in an array of numbers", of_a_word),
        ("an array in an array of numbers", of_an_array),
        ("a kernel that returns a value", returned),
    ):
        yield Probe(SAID, what, kernel, x, _in(np.float32, {"taken": x}))


def _in(dtype: Any, results: Mapping[str, Any]) -> dict[str, np.ndarray]:
    return {name: np.asarray(result).astype(dtype) for name, result in results.items()}


PROBES = (*_rounding(), *_silent(), *_refused(), *_said())


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
        return f"up to {units.max():.3g} units in the last place"
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
        return f"{BUG}: {re.sub(VALUES, '', own)}"
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


def chained(length: int, scope: dict[str, Any] | None = None) -> Callable:
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
    x, taken = _numbers(np.float32), []
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
