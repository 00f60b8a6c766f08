"""Predicting the time of a right answer on an H200 from its compiled code.

`judge` is for kernels that multiply large matrices by tiles, and sets the time beside a rung's;
`beside` is for any launch, and sets it beside the solution's.

The answer is compiled in a process of its own. Where the tools for that are missing, or do not
understand the code, the verdict says so, and the time is left out of it. Where that process is cut
short nothing is known of the time, and the answer is not judged: it may be one that takes too long.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from gemmlab.course.judging import guard, integrity, kernels_on_trial
from gemmlab.course.judging.apart import NotJudged, apart
from gemmlab.course.judging.kernels_on_trial import PARAMETERS
from gemmlab.course.judging.launches import Launch, built
from gemmlab.course.judging.matrices import Case
from gemmlab.course.judging.verdict import Finding
from gemmlab.device import RECORDED, Device, device as load_device
from gemmlab.here import compilers
from gemmlab.here.compilers import lacking
from gemmlab.kernels import Kernel, own
from gemmlab.measure import records
from gemmlab.measure.backends.trial import told
from gemmlab.measure.measurement import duration
from gemmlab.model import predict
from gemmlab.problem import LAYOUTS, Gemm
from gemmlab.tiling import Tiling

SIDE = 4096  # m = n = k: it fills the GPU
SECONDS = 120.0  # of the processor, to compile and predict; it takes a few
_SOLUTIONS: dict[tuple[Callable, str], Time] = {}  # times of solutions, with what they are of


@dataclass(frozen=True)
class Yardstick:
    """A rung of the ladder with a tiling, whose time at m = n = k = `SIDE` is recorded."""

    kernel: Kernel
    tiling: Tiling

    @property
    def seconds(self) -> float:
        """The recorded time [s]."""
        return records.find(self.kernel, Gemm(SIDE, SIDE, SIDE), self.tiling).seconds

    def __str__(self) -> str:
        return f"{self.kernel.name} {self.tiling}, measured: {ms(self.seconds)}"


@dataclass(frozen=True)
class Time:
    """A predicted time [s], what the kernel waits for in words, and its dearest lines.

    lines : text of a line, and its share of all issue slots; empty where nobody asked
    """

    seconds: float
    waits: str
    lines: tuple[tuple[str, float], ...] = ()


def judge(
    found: Finding, build: Callable, tiling: Callable[[int], Tiling], small: Case, beside: Yardstick
) -> Finding:
    """A finding that "passed", with the predicted time; other findings as they are.

    small : a case with the tile for which the time is predicted; the answer must be right on it
    beside : what the time is set beside; see `within` for one that it must keep to
    """
    if found.diagnosis != "passed":
        return found
    if lacking():
        return _left_out(found, lacking())
    trials = kernels_on_trial.judge(build, (small,), tiling)
    if isinstance(trials, Finding):
        return trials
    device = load_device(RECORDED)
    problem = replace(small.problem, m=SIDE, n=SIDE, k=SIDE)
    work = partial(_time, build, small.tile, tiling(small.tile), problem, device)
    times = predicted(found, work)
    if isinstance(times, Finding):
        return times
    (item,) = times
    facts = (
        (
            f"Predicted for {device.title}",
            f"{ms(item.seconds)} at m = n = k = {SIDE} with T = {small.tile}. {item.waits}",
        ),
        ("Beside it", str(beside)),
    )
    details = {**found.details, "seconds": item.seconds}
    possible = item.seconds >= predict(problem, device).times["math"]
    return Finding("passed" if possible else "work-left-out", found.facts + facts, details)


@dataclass(frozen=True)
class Example:
    """A launch large enough to be worth its time, with the names of the kernel's parameters.

    launch : makes it, where it is needed: its arrays are large; what : it is, in words
    least : seconds that no kernel can do it in
    """

    parameters: list[str]
    launch: Callable[[], Launch]
    what: str
    least: float


def of_product(
    m: int,
    n: int,
    k: int,
    what: str,
    launch: Callable[[Any, Any, Any], Launch],
    parameters: Sequence[str] = PARAMETERS,
) -> Example:
    """The example of a product in FP32; `launch` gets its A, B and C, of zeros."""

    def of_zeros() -> Launch:
        return launch(*(np.zeros(shape, np.float32) for shape in ((m, k), (k, n), (m, n))))

    least = Gemm(m, n, k).flops / load_device(RECORDED).peak_of("float32")
    return Example(list(parameters), of_zeros, f"m = {m}, n = {n}, k = {k}, {what}", least)


def beside(found: Finding, build: Callable, solution: Callable, example: Example) -> Finding:
    """A finding that "passed", with the predicted times of an answer and of the solution."""
    if found.diagnosis != "passed":
        return found
    if lacking():
        return _left_out(found, lacking())
    device = load_device(RECORDED)
    times = predicted(found, partial(_of_launch, build, example, device))
    if isinstance(times, Finding):
        return times
    (yours,) = times
    known = solution, example.what
    if known not in _SOLUTIONS:  # in a process that no answer has been in
        times = predicted(found, partial(_of_launch, solution, example, device))
        if isinstance(times, Finding):
            return times
        (_SOLUTIONS[known],) = times
    mine = _SOLUTIONS[known]
    facts = (
        (f"Predicted for {device.title}", f"{duration(yours.seconds)} for {example.what}"),
        ("Beside it", f"the solution: {duration(mine.seconds)}"),
        ("Yours", yours.waits),
    )
    details = {**found.details, "seconds": yours.seconds}
    possible = yours.seconds >= example.least
    return Finding("passed" if possible else "work-left-out", found.facts + facts, details)


def predicted(
    found: Finding, work: Callable[[], Iterator[Time | Finding | str]]
) -> list[Time] | Finding:
    """The times that `work` yields in a process of its own, or what is found instead of them.

    What compiles and predicts is loaded before, once for all such processes.
    """
    from gemmlab.compiled.forecast import kernel, rungs, telling  # noqa: F401

    compilers.load()
    times: list[Time] = []
    for item in apart(work, SECONDS):
        if guard.ended(item):
            raise NotJudged(f"compiling it and predicting its time: {item.what}", item.where)
        if isinstance(item, str):
            return _left_out(found, item)
        if isinstance(item, Finding):
            return item
        times.append(item)
    return times


def _of_launch(build: Callable, example: Example, device: Device) -> Iterator[Time | Finding | str]:
    """The time of the example with a kernel, or why there is none."""
    parts = integrity.parts()
    launch = example.launch()
    kernel = built(build, example.parameters, launch.sizes, parts)
    if isinstance(kernel, Finding):
        yield kernel
        return
    try:
        from gemmlab.compiled.forecast.kernel import predict_time
        from gemmlab.compiled.forecast.telling import sentence

        found = predict_time(kernel, launch.grid, launch.block, *launch.arguments, device=device)
        yield Time(found.seconds, sentence(found))
    except Exception as error:
        yield refused(error)


def within(found: Finding, beside: Yardstick) -> Finding:
    """The finding, "time-over-limit" where the predicted time is longer than that of a rung."""
    if found.diagnosis == "passed" and found.details.get("seconds", 0.0) > beside.seconds:
        return replace(found, diagnosis="time-over-limit")
    return found


def ms(seconds: float) -> str:
    """A duration in milliseconds."""
    return f"{1000 * seconds:.3g} ms"


def refused(error: Exception) -> Finding | str:
    """The finding for code that Numba cannot compile; for other errors why there is no time."""
    refused = type(error).__module__.startswith("numba")
    why = told(error)
    return Finding("not-compiled", (("Error", why),)) if refused else why


def _left_out(found: Finding, reason: str) -> Finding:
    return replace(found, facts=(*found.facts, ("Time on a GPU", f"left out: {reason}")))


def _time(
    build: Callable, T: int, tiling: Tiling, problem: Gemm, device: Device
) -> Iterator[Time | Finding | str]:
    """The time, or why the answer has none, or why there is nothing to say."""
    kernel = built(build, PARAMETERS, (T,), integrity.parts())
    if isinstance(kernel, Finding):
        yield kernel
        return
    try:
        from gemmlab.compiled.forecast.rungs import predict_rung
        from gemmlab.compiled.forecast.telling import sentence

        found = predict_rung(problem, device, replace(own(kernel, tiling), layouts=LAYOUTS))
        yield Time(found.seconds, sentence(found))
    except Exception as error:
        yield refused(error)
