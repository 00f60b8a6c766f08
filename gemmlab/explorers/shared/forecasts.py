"""Times of a learner's kernel from its compiled code, made in the background and kept."""

from __future__ import annotations

import threading
from functools import partial
from typing import NamedTuple

from gemmlab.compiled.sass.compiling import lacking
from gemmlab.device import Device
from gemmlab.explorers.shared.base import Explorer
from gemmlab.explorers.shared.job import Job
from gemmlab.kernels import Kernel
from gemmlab.measure.backends.stopping import limited
from gemmlab.measure.backends.trial import told
from gemmlab.measure.measurement import Measurement
from gemmlab.plots import number, si
from gemmlab.problem import Gemm
from gemmlab.tiling import Tiling

SIDE = 4096  # of the product in whose place a smaller one is simulated: it fills a GPU
SECONDS = 60.0  # of the processor, for one forecast; most take a few, the first some more
COMPILING = "it is being compiled …"


class Asked(NamedTuple):
    """What is predicted."""

    kernel: Kernel
    problem: Gemm
    tiling: Tiling


class Made(NamedTuple):
    """A predicted time [s], and what the kernel waits for in words."""

    seconds: float
    waits: str


class Forecasts:
    """Predicted times on a device, for an explorer that shows them in its caption.

    A run that was timed is predicted as it is. One that was simulated is small, because counting
    takes long: its kernel is predicted for m = n = k = `SIDE`.
    """

    def __init__(self, device: Device, explorer: Explorer) -> None:
        self.device, self.explorer = device, explorer
        self._found: dict[Asked, Made | str] = {}  # a text says what there is instead
        self._one_by_one = threading.Lock()
        self._jobs: list[Job] = []

    def begin(self, kernel: Kernel, run: Measurement) -> None:
        """Begin to predict what was run, unless that was begun before."""
        asked = _asked(kernel, run)
        if asked in self._found:
            return
        missing = lacking()
        self._found[asked] = missing or COMPILING
        self.explorer.refresh()  # before it can be done: then what is shown is looked at
        if not missing:
            work, done = partial(self._make, asked), partial(self._done, asked)
            self._jobs.append(Job(work, lambda _: None, done).start())

    def wait(self, seconds: float | None = None) -> bool:
        """Wait until all that were begun are made; False if one takes longer than `seconds`."""
        return all(job.wait(seconds) for job in self._jobs)

    def text(self, kernel: Kernel, run: Measurement, on: Device) -> str:
        """What is predicted of a run on the device `on`; empty where none was begun for it."""
        asked = _asked(kernel, run)
        found = self._found.get(asked)
        if found is None:
            return ""
        what = f"Predicted from its compiled code for {self.device.title}, {asked.problem}: "
        if isinstance(found, str):
            return what + found
        speed = asked.problem.flops / found.seconds
        what += f"{si(found.seconds, 's')}, {si(speed, 'FLOP/s')}. {found.waits}"
        if run.seconds and on.name == self.device.name:
            what += f"\nmeasured ÷ predicted from its code = {number(run.seconds / found.seconds)}."
        return what

    def _make(self, asked: Asked) -> Made:
        from gemmlab.compiled.forecast.rungs import predict_rung
        from gemmlab.compiled.forecast.words import sentence

        with self._one_by_one, limited(SECONDS, "the prediction"):
            found = predict_rung(asked.problem, self.device, asked.kernel, asked.tiling)
        return Made(found.seconds, sentence(found))

    def _done(self, asked: Asked, made: Made | None, error: BaseException | None) -> None:
        self._found[asked] = made or f"nothing: {told(error)}"
        if COMPILING in self.explorer.message:
            self.explorer.refresh()


def _asked(kernel: Kernel, run: Measurement) -> Asked:
    problem = Gemm(SIDE, SIDE, SIDE) if run.counters else run.problem
    return Asked(kernel, problem, run.tiling)
