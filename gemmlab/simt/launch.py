"""A launch on the simulated GPU: checked, cut into batches of blocks, run, reported.

All threads of all blocks of a batch advance together, one operation of the source at a time, so
that a small GEMM takes milliseconds. Errors are told as whoever wrote the kernel sees them.
"""

import ast
import inspect
import linecache
import sys
from collections.abc import Callable
from dataclasses import replace
from functools import partial, wraps
from types import FunctionType, TracebackType
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np

from gemmlab.arguments import whole_number
from gemmlab.device import Device, device as device_called
from gemmlab.here import numbas
from gemmlab.model.transactions import WARP
from gemmlab.simt.builtins.barriers import check_resident, held_at_once, may_wait, waits_for_grid
from gemmlab.simt.machine import limits, untaken
from gemmlab.simt.machine.fibers import Fibers
from gemmlab.simt.machine.lone_fibers import LoneFibers
from gemmlab.simt.machine.loops import Grain, SpinsError, StepLimitError
from gemmlab.simt.machine.machine import Machine
from gemmlab.simt.memory.arguments import Argument, arrays_in, as_seen, put_in_memory
from gemmlab.simt.memory.l2 import L2
from gemmlab.simt.numbers.garbage import LITTLE, MUCH, SOME, garbage
from gemmlab.simt.numbers.lanes import Dim3, Launch
from gemmlab.simt.races.hazards import HazardError
from gemmlab.simt.races.memories import GlobalShadow
from gemmlab.simt.report.coverage import note_unstored
from gemmlab.simt.report.report import Report
from gemmlab.simt.report.trace import Shares, Trace
from gemmlab.simt.syntax.rewrite import SOURCE, Program
from gemmlab.simt.syntax.source import Source, UnsupportedError, read_source

# Errors that Numba would have found when it types a kernel.
TYPING = TypeError, IndexError, NameError, UnsupportedError


def told_at_the_kernel(launch: Callable) -> Callable:
    """Return a function that launches kernels, whose errors tell where in the kernel they arose.

    Their message has the line, and their traceback the frames of the kernel and of its device
    functions, without those of the simulator.
    """

    @wraps(launch)
    def run(*args: Any, **options: Any) -> Any:
        __tracebackhide__ = True  # IPython and pytest leave this frame out
        try:
            return launch(*args, **options)
        except Exception as error:
            late = isinstance(error, HazardError) and error.place is not None
            places = [] if late else _places(error)
            if not places and getattr(error, "place", None) is None:  # of the launch itself
                raise
            if places:
                _add_line(error, places[-1])
            trace = _joined(places) if places else _at(*error.place)  # of the source
            if isinstance(error, TYPING):
                error = numbas.also(error, "TypingError")
            raise error.with_traceback(trace) from None

    return run


def _places(error: Exception) -> list[TracebackType]:
    places, step = [], error.__traceback__
    while step is not None:
        if SOURCE in step.tb_frame.f_globals:
            places.append(step)
        step = step.tb_next
    return places


def _at(file: str, line: int, function: str) -> TracebackType | None:
    """Return a traceback to a line of a function, which did not run.

    IPython shows the innermost frame even of code that wants to be left out.
    """
    tree, text = ast.parse("raise RuntimeError"), linecache.getline(file, line).rstrip()
    first, last = len(text) - len(text.lstrip()), len(text)  # the whole line: Python marks less
    place = {"lineno": line, "end_lineno": line, "col_offset": first, "end_col_offset": last}
    for node in ast.walk(tree):
        vars(node).update(place if hasattr(node, "lineno") else {})
    code = compile(tree, file, "exec").replace(co_name=function, co_qualname=function)
    try:
        exec(code, {})
    except RuntimeError as error:
        return error.__traceback__.tb_next  # type: ignore[union-attr]
    return None


def _add_line(error: Exception, place: TracebackType) -> None:
    """Let the message of an error show the line, if it does not."""
    line, source = place.tb_lineno, place.tb_frame.f_globals[SOURCE]
    told = f"line {line}: {source.code(line)}"
    if len(error.args) == 1 and told not in str(error):
        error.args = (f"{error}\n  {source.place(line)}",)


def _joined(places: list[TracebackType]) -> TracebackType | None:
    kept: TracebackType | None = None
    for place in reversed(places):
        kept = TracebackType(kept, place.tb_frame, place.tb_lasti, place.tb_lineno)
    return kept


# Lanes simulated at once: enough to hide Python's overhead, few enough to stay in a CPU's cache.
LANES = 1 << 17
SHARED_BYTES = 1 << 28  # of all the blocks that are simulated at once
MAX_STEPS = 1 << 16


@told_at_the_kernel
def simulate(
    fn: Any,
    grid: int | tuple[int, ...],
    block: int | tuple[int, ...],
    *args: Any,
    shared_bytes: int = 0,
    on_hazard: str = "raise",
    max_steps: int = MAX_STEPS,
    contract: bool = True,
    device: Device | str | None = None,
    l2: Device | str | None = None,
    trace: int | str | tuple[int | str, ...] = (),
    shares: bool = False,
    sample: bool | tuple[int, ...] = False,
    cluster: int | tuple[int, ...] = 1,
) -> Report:
    """Run kernel `fn` on `args` as `fn[grid, block](*args)` would on a GPU.

    fn : a plain function or a `cuda.jit` kernel, written with `cuda` of gemmlab or of Numba, or a
        rung of the ladder, which is built with its own tiling. Numbers and arrays of the scopes
        around it are read at each launch; of a `cuda.jit` of gemmlab's own, at the first
    grid, block : one to three sizes
    args : NumPy arrays, changed in place, and numbers
    shared_bytes : dynamic shared memory of a block [B]
    on_hazard : "raise" HazardError at the first hazard, the arrays left as they were, or "collect"
    max_steps : turns of `while` that a thread may make in all
    contract : round a·b + c of float32 or float16 once (FMA), as the compiler does; False: twice
    device : the GPU whose limits on threads and shared memory hold, instead of those of all GPUs
    l2 : the GPU whose L2 is modelled (`simt.memory.l2`): adds l2_hits, l2_misses, dram_read_bytes
        and dram_write_bytes to the counters
    trace : lines of the kernel, by number or by a part of their text, whose first accesses by
        block 0 are kept in `Report.trace`
    shares : count, for each thread, the bytes that it loads and stores (`Report.shares`)
    sample : of several batches simulate the first and the last one alone, or blocks by number, x
        fastest, which `Report.sampled` tells: what the other blocks store is missing
    cluster : one to three sizes, in blocks, of clusters, whose blocks begin together and reach each
        other's shared memory; the grid is whole clusters

    Blocks run in batches of at most 131072 threads, which bounds memory; all at once where the
    kernel waits for the whole grid (`cuda.cg.this_grid().sync()`), at most as many as a GPU holds.
    Where threads spin for others, the launch runs block by block or thread by thread instead
    (`simt.machine.fibers`), with as many blocks begun as a GPU holds; that takes longer.

    Raises UnsupportedError for source that the simulator cannot run, TypeError and ValueError for
    a launch that no GPU, or not this one, would take.

    >>> def double(x):
    ...     i = cuda.grid(1)
    ...     if i < x.size:
    ...         x[i] = 2 * x[i]
    """
    if on_hazard not in ("raise", "collect"):
        raise ValueError(f"on_hazard={on_hazard!r} is not known; use 'raise' or 'collect'")
    shared_bytes = whole_number("shared_bytes", shared_bytes, least=0)
    max_steps = whole_number("max_steps", max_steps)
    program, function = getattr(fn, "program", {}), _function(fn)
    gpu = None if device is None else device_called(device)
    sizes = _dim3("grid", grid), _dim3("block", block)
    launch = Launch(*sizes, shared_bytes, max_steps, contract, gpu, *_options(fn))
    launch = replace(launch, cluster=_dim3("cluster", cluster))
    limits.check(launch)
    source = program[function].source if function in program else read_source(function)
    asked = Asked(on_hazard, l2, trace, shares, sample)
    return _kept(_simulated(Kernel(function, source, program), args, launch, asked))


def _options(fn: Any) -> tuple[bool, ...]:
    """Return what `cuda.jit` was told that changes what a kernel does: debug, fastmath."""
    options = getattr(fn, "targetoptions", {})
    return tuple(bool(options.get(name)) for name in ("debug", "fastmath"))


_last: Report | None = None


def _kept(report: Report) -> Report:
    """Keep a report for `last_report`."""
    global _last
    _last = report
    return report


def last_report() -> Report:
    """Return the report of the last launch that this process has simulated to its end.

    A launch `kernel[grid, block](x)` returns nothing, as Numba's does: this is what it did.
    RuntimeError before the first one, and where all launches ran on a GPU.
    """
    if _last is None:
        raise RuntimeError(
            "no launch was simulated in this process; kernel[grid, block](x) is, where `cuda` is "
            "gemmlab.simt.cuda, and gemmlab.simulate(kernel, grid, block, x) anywhere"
        )
    return _last


def freeze(function: Callable, program: Program) -> None:
    """Keep in `program` what the names outside of a kernel and of its device functions mean now."""
    source = read_source(function)
    launch = Launch((1, 1, 1), (1, 1, 1), 0, 1, True, None)
    report = Report(source, launch.grid, launch.block, "collect")
    m = Machine(launch, report, program, [], np.arange(1))
    m.scope.bound(function, source)
    left, seen = [function], {function}
    while left:
        for value in program[left.pop()].constants.values():
            inner = getattr(value, "py_func", value)
            if isinstance(inner, FunctionType) and inner not in seen:
                m.scope.bound(inner)
                left.append(inner)
                seen.add(inner)
    m.take_apart()


class Kernel(NamedTuple):
    """A kernel: its function, its source, and what of it is in lock-step form already."""

    function: Callable
    source: Source
    program: Program


class Asked(NamedTuple):
    """The caller of `simulate` wants to know this of a launch."""

    on_hazard: str
    l2: Device | str | None
    trace: int | str | tuple[int | str, ...]
    shares: bool
    sample: bool | tuple[int, ...] = False

    def report(self, source: Source, launch: Launch) -> tuple[Report, L2 | None]:
        """Give a report of which nothing is known yet, and the L2 cache that sees the accesses."""
        report = Report(source, launch.grid, launch.block, self.on_hazard)
        cache = None if self.l2 is None else L2.of(self.l2)
        traced = Trace.of(self.trace, source)
        report.trace = traced.accesses
        report.watchers += [cache.watch] if cache else []
        report.watchers += [traced.watch] if traced.lines else []
        if self.shares:
            report.shares = Shares(launch.grid, launch.block)
            report.watchers.append(report.shares.watch)
        return report, cache


def _simulated(kernel: Kernel, args: tuple, launch: Launch, asked: Asked) -> Report:
    """Run a launch to its end, and give the host's arrays what it has stored.

    That lanes wait for each other is known when they spin, in the middle of a launch. It then
    begins anew, from the host's arrays and with an empty report, in fibers of a finer grain, in
    which those that others wait for can go on. There are only a few grains, and each is finer than
    the last.
    """
    report, cache, arguments, check = _ran(kernel, args, launch, asked, Grain("batch"))
    report.decide()
    whole = report.sampled is None
    if report.in_doubt and whole and not _decides(kernel, args, launch, report, arguments):
        report.acquit()
    report.trust()
    check()
    if cache:
        report.launch.update(cache.finish())
    for argument in arguments:
        if whole:
            note_unstored(report, launch, argument)
        argument.copy_back(whole=whole)
    return report


def _ran(
    kernel: Kernel, args: tuple, launch: Launch, asked: Asked, grain: Grain | None
) -> tuple[Report, L2 | None, list[Argument], Callable[[], None]]:
    """Run a launch to its end; the last result checks the branches that no thread took."""
    while grain is not None:
        report, cache = asked.report(kernel.source, launch)
        arguments, values = _bind(kernel.function, args, launch, report)
        arrays = [a.array for a in arguments]
        machine = partial(Machine, launch, report, kernel.program, arrays)
        bound = partial(
            Machine.bound, function=kernel.function, source=kernel.source, values=values
        )
        taken: dict[int, int] = {}
        parts: list[np.ndarray] = []
        if grain.name == "batch":
            at_once = grain.most or _at_once(kernel.function, launch)
            parts = _batches(launch, at_once, asked.sample)
            if asked.sample and sum(map(len, parts)) < launch.blocks:
                report.sampled = sum(map(len, parts))
        try:
            grain = _run(grain, launch, report, kernel.function, parts, machine, bound, taken)
        except Exception:
            if report.in_doubt:  # perhaps because of what was read there
                report.trust()
            raise
    untaken_branches = kernel.function, kernel.source, values, taken, machine, bound
    return report, cache, arguments, partial(untaken.check, *untaken_branches)


def _decides(
    kernel: Kernel, args: tuple, launch: Launch, first: Report, arguments: list[Argument]
) -> bool:
    """Say whether what nobody has written decides anything that a launch does.

    It is tried again, with other values there: what it stores and prints must be the same, and
    so must what each line does how often.
    """
    expected = _outcome(first, arguments)
    for which in (MUCH, LITTLE, SOME):
        again = replace(launch, unwritten=which, most_turns=2 * first.turns + 64)
        try:
            asked = Asked("collect", None, (), False)
            report, _, stored, _ = _ran(kernel, args, again, asked, Grain("batch"))
            report.decide()
        except Exception:  # such as an index that no element has
            return True
        if _outcome(report, stored) != expected:
            return True
    return False


def _outcome(report: Report, arguments: list[Argument]) -> tuple:
    """Return what can be seen of a launch, to be compared."""
    stored = []
    for array in (a.array for a in arguments if a.array.written):
        unwritten, values = array.shadow.unwritten, array.buffer.view(np.uint8)
        if unwritten is not None:
            values = values.reshape(len(unwritten), -1)[~unwritten]
            stored.append(unwritten.tobytes())
        stored.append(values.tobytes())
    hazards = [(h.kind, h.file, h.line, h.count) for h in report.hazards]
    return stored, report.printed, report.by_file, hazards


def _batches(launch: Launch, at_once: int, sample: bool | tuple) -> list[np.ndarray]:
    """Give the numbers of the blocks that run together: all in turn, or those of a sample."""
    if isinstance(sample, tuple):
        return [np.unique(sample)]
    few = sample and launch.blocks > 2 * at_once
    starts = range(0, launch.blocks, launch.blocks - at_once if few else at_once)
    return [np.arange(i, min(i + at_once, launch.blocks)) for i in starts]


def _run(
    grain: Grain,
    launch: Launch,
    report: Report,
    function: Callable,
    parts: list[np.ndarray],
    machine: Callable[[np.ndarray], Machine],
    kernel: Callable[[Machine], Callable[[], None]],
    taken: dict[int, int],
) -> Grain | None:
    """Run blocks in these `parts`, or all in fibers of a `grain`, and print what they print.

    Returns the grain in which the launch must run again, where lanes wait for others, or may wait
    for blocks that a GPU does not begin before they end.
    """

    def held(static_bytes: int) -> tuple[int, str]:
        return held_at_once(launch.threads, launch.shared_bytes + static_bytes, launch.gpu)

    try:
        if grain.name == "batch":
            otherwise = launch.debug, launch.unwritten, report.watchers, sys.gettrace()
            may_be_lone = not any((grain.tried, *otherwise)) and launch.cluster == (1, 1, 1)
            for m in map(machine, parts):
                m.loops.may_be_lone = may_be_lone
                try:
                    with np.errstate(all="ignore"):  # infinities and NaNs are values, as on a GPU
                        kernel(m)()
                finally:
                    m.tally.settle()
                report.idle = (report.idle or 0) + m.tally.idle()
                if len(m.lanes.blocks) > 1:
                    most = max(1, held(m.memory.static_bytes)[0])
                    if len(m.lanes.blocks) > most and may_wait(function):
                        raise SpinsError(replace(grain, most=most))
                for line, ways in m.branches.taken.items():
                    taken[line] = taken.get(line, 0) | ways
                m.take_apart()
        else:
            kind = LoneFibers if grain.name == "lone" else Fibers
            kind(machine, kernel, launch.clusters(), grain, held, report.watchers).run()
    except SpinsError as spins:
        report.printed.clear()
        return spins.finer
    except StepLimitError:
        pass
    finally:
        if report.printed and not launch.unwritten:
            print(*report.printed, sep="\n")
    return None


@runtime_checkable
class Rung(Protocol):
    """A kernel of a ladder, as `gemmlab.kernels.Kernel` is one: `build` takes its own tiling."""

    name: str
    machine: str
    library: bool
    default: Any
    build: Callable


def _function(fn: Any) -> Callable:
    if isinstance(fn, Rung):
        if fn.machine != "gpu" or fn.library:
            raise ValueError(f"{fn.name} is not written for a GPU in Python; simulate one that is")
        fn = fn.build(fn.default)
    return getattr(fn, "py_func", fn)


def _at_once(function: Callable, launch: Launch) -> int:
    """So many blocks are simulated together; all of them where one waits for all."""
    if waits_for_grid(function):
        check_resident(launch.blocks, launch.threads, launch.shared_bytes, launch.gpu)
        return launch.blocks
    padded = -(-launch.threads // WARP) * WARP
    return max(1, min(LANES // padded, SHARED_BYTES // max(1, launch.shared_bytes)))


def _bind(
    function: Callable, args: tuple[Any, ...], launch: Launch, report: Report
) -> tuple[list[Argument], list[Any]]:
    """Give the arguments that are arrays, in simulated memory, and all as the kernel sees them."""
    names = list(inspect.signature(function).parameters)
    if len(names) != len(args):
        raise TypeError(
            f"{function.__name__} takes {len(names)} arguments ({', '.join(names)}), "
            f"not {len(args)}"
        )
    threads = -(-launch.threads // WARP) * WARP
    given = list(zip(names, args, strict=True))
    stored = report.source.stored_parameters
    arguments, writeable = [], set()
    for name, value in given:
        own = list(arrays_in(name, value))
        report.types |= {a.name: a.host.dtype for a in own}
        if isinstance(value, (float, np.floating)):
            report.numbers[name] = np.asarray(value).dtype
        arguments += own
        writeable |= {a.name for a in own if name in stored}
    put_in_memory(
        arguments,
        writeable,
        lambda size: GlobalShadow(size, threads, launch.blocks * threads, report.releases),
    )
    for a in arguments if launch.unwritten else ():
        if a.unwritten is not None:
            elements = a.over(a.array.buffer, int(a.array.offset))
            elements[a.unwritten] = garbage(a.host.dtype, launch.unwritten)
    arrays = {a.name: a.array for a in arguments}
    return arguments, [as_seen(name, value, arrays) for name, value in given]


def _dim3(name: str, value: Any) -> Dim3:
    sizes = value if isinstance(value, (tuple, list)) else (value,)
    if not 1 <= len(sizes) <= 3:
        raise ValueError(f"{name}={value!r} has {len(sizes)} dimensions; use 1, 2 or 3")
    whole = [whole_number(f"{name}[{i}]", s) for i, s in enumerate(sizes)]
    x, y, z = [*whole, 1, 1][:3]
    return x, y, z
