"""Building a learner's kernel and launching it on the simulator, in a process of its own."""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from gemmlab.course.judging import guard, integrity, source
from gemmlab.course.judging.apart import apart
from gemmlab.course.judging.integrity import copied
from gemmlab.course.judging.verdict import Finding
from gemmlab.instructions import tensor_map
from gemmlab.simt import Hazard, Report, simulate
from gemmlab.simt.numbers.lanes import Dim3
from gemmlab.simt.races.hazards import Note

SECONDS = 10.0  # of the processor, to build and simulate once; most take some hundredths, few one
MAX_STEPS = 5_000  # loop iterations of one launch; the largest case takes a few hundred


@dataclass(frozen=True)
class Launch:
    """A launch to be made.

    sizes : what `build` is called with; grid, block : as (x, y), or (x,)
    arguments : of the kernel; the arrays stay as they are
    trace : lines whose accesses are kept, as `simulate` takes them
    shared_bytes : dynamic shared memory of a block [B]
    boxes : rows of the boxes in which the TMA copies the first arguments, whose maps a kernel gets
    """

    sizes: tuple[Any, ...]
    grid: tuple[int, ...]
    block: tuple[int, ...]
    arguments: tuple[Any, ...]
    trace: str | tuple[str, ...] = ()
    shared_bytes: int = 0
    boxes: tuple[int, ...] = ()


@dataclass(frozen=True)
class Launched:
    """A launch that was made: what it did, and the arguments after it."""

    report: Report
    arguments: tuple[Any, ...]


def fault(report: Report) -> Hazard | Note | None:
    """The fault of a launch: its first hazard, else the first note of writers of the same value.

    In an exercise each element is one thread's work, so that two writers are a fault even where
    their values agree.
    """
    same = (note for note in report.notes if note.kind == "same-value")
    return next(iter(report.hazards), None) or next(same, None)


def stores_to_input(found: Hazard | Note, inputs: Sequence[str] = ("A", "B")) -> bool:
    """Whether threads clash at an element of an array that a kernel may only read."""
    if isinstance(found, Note):
        names = "|".join(map(re.escape, inputs))
        return found.kind == "same-value" and bool(re.search(rf"\b({names})\[", found.message))
    return found.kind == "global-race" and found.array in inputs


def threads_of(found: Hazard | Note) -> tuple[Dim3, ...]:
    """The threads that a hazard or a note names, as (x, y, z)."""
    return (found.thread,) if isinstance(found, Note) else found.threads


def launched(
    build: Callable, parameters: list[str], launches: Sequence[Launch]
) -> Iterator[Launched | Finding]:
    """Make each launch of the kernel that `build` returns, or say why it cannot be made."""
    before = integrity.parts()  # a copy would have to touch each of them once more
    made, last = 0, None
    for last in apart(partial(here, build, parameters, launches, before), SECONDS):
        made += 1
        yield guard.cut_short(last, guard.file_of(build)) if guard.ended(last) else last
    if made < len(launches) and not guard.ended(last):
        yield guard.cut_short(guard.SAID_NO_MORE, guard.file_of(build))


def here(
    build: Callable,
    parameters: list[str],
    launches: Sequence[Launch],
    before: integrity.Parts | None = None,
) -> Iterator[Launched | Finding]:
    """Make each launch in this process, which is one of its own already (see `launched`).

    before : the parts as they were before the answer; as they are now if not given
    """
    before = before or integrity.parts()
    for launch in launches:
        yield _one(build, parameters, launch, before)


def _one(
    build: Callable, parameters: list[str], launch: Launch, before: integrity.Parts
) -> Launched | Finding:
    kernel = built(build, parameters, launch.sizes, before)
    if isinstance(kernel, Finding):
        return kernel
    arguments = copied(launch.arguments)
    maps = list(map(tensor_map, arguments, launch.boxes))
    given = *maps, *arguments[len(maps) :]
    try:
        report = simulate(
            kernel, launch.grid, launch.block, *given, shared_bytes=launch.shared_bytes,
            on_hazard="collect", max_steps=MAX_STEPS, shares=True, trace=launch.trace,
        )  # fmt: skip
    except Exception as error:
        return guard.fault(error)
    report.watchers.clear()
    return Launched(report, arguments)


def built(
    build: Callable, parameters: list[str], sizes: tuple[Any, ...], before: integrity.Parts
) -> Callable | Finding:
    """The kernel that `build` returns, as a plain function; for a process of its own."""
    called = guard.call(build, *sizes)
    if called.fault:
        return called.fault
    other = integrity.replaced(before)
    if other:
        return Finding("tampers", (("Replaced", other),), {"replaced": other})
    kernel = source.unwrapped(called.value)
    wrong = source.parameters_wrong(kernel, parameters)
    if wrong:
        call = f"{getattr(build, '__name__', 'build')}({', '.join(map(str, sizes))})"
        return Finding("wrong-type", (("Found", f"{call} returned: {wrong}"),))
    return kernel
