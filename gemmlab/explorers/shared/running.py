"""Explorers that run kernels: buttons, a history of runs, and what a run shows, in words.

A `Job` runs in the background, where it can be watched and stopped, so that widgets stay alive.
`Forecasts` are times of a learner's kernel from its compiled code, made there too and kept.
"""

import threading
import time
from collections.abc import Callable
from functools import partial
from typing import Any, ClassVar, NamedTuple, Self

import ipywidgets as widgets
from IPython import get_ipython

from gemmlab import Device, Gemm, Tiling
from gemmlab.explorers.shared.base import Explorer, Picture, row
from gemmlab.here.compilers import lacking
from gemmlab.here.detection import THREADS, detect, host
from gemmlab.kernels import Kernel
from gemmlab.measure import backends
from gemmlab.measure.backends.stopping import limited, raise_in, swallow
from gemmlab.measure.backends.trial import told
from gemmlab.measure.measurement import Measurement, residual
from gemmlab.model import Prediction
from gemmlab.model.bounds import latency_unknown
from gemmlab.plots import number, si
from gemmlab.plots.shared import style

TICK = 0.25  # seconds between two reports of progress


class Stopped(BaseException):
    """Raised inside the work by `Job.stop`; not an Exception, so that no handler swallows it."""


class Job:
    """Runs `work()` in one thread and reports on it from a second, until it ends or is stopped.

    report : called with the seconds elapsed, every `TICK`
    done : called once with (result, None), or with (None, what was raised), `Stopped` included

    Two threads, because a stop may strike between any two steps of the thread that works: only
    `work` is exposed to it, never `report` or `done`, which may touch widgets. A step that runs
    outside Python, such as a compiled kernel, ends first.
    """

    all: ClassVar[set["Job"]] = set()  # that have begun and not ended

    def __init__(
        self,
        work: Callable[[], Any],
        report: Callable[[float], None],
        done: Callable[[Any, BaseException | None], None],
    ) -> None:
        self._work, self._report, self._done = work, report, done
        self._lock = threading.Lock()
        self._stoppable = False  # whether the worker is where a stop may strike
        self._stop_asked = False
        self._outcome: tuple[Any, BaseException | None] = None, None
        self._worker = threading.Thread(target=self._run, name="gemmlab-work", daemon=True)
        self._watcher = threading.Thread(target=self._watch, name="gemmlab-watch", daemon=True)

    def start(self) -> Self:
        """Begin; returns at once, or in the page of a browser, which has no threads, at the end."""
        if not THREADS:
            self._run()
            self._done(*self._outcome)
            return self
        self.all.add(self)
        self._watcher.start()
        return self

    def stop(self) -> None:
        """Raise `Stopped` in the work at its next step; nothing happens if it has ended."""
        with self._lock:
            self._stop_asked = True
            if self._stoppable and THREADS:
                raise_in(self._worker.ident, Stopped)

    def wait(self, seconds: float | None = None) -> bool:
        """Wait until `done` has returned; False if that took longer than `seconds`."""
        if not THREADS:
            return True
        self._watcher.join(seconds)
        return not self._watcher.is_alive()

    def _run(self) -> None:
        try:
            try:
                with self._lock:
                    self._stoppable = not self._stop_asked
                if not self._stoppable:  # it was asked before this thread had begun
                    raise Stopped
                self._outcome = self._work(), None
            finally:
                with self._lock:
                    self._stoppable = False
                    if self._stop_asked:  # too late, perhaps: it must not strike what follows
                        swallow(Stopped)
        except BaseException as error:
            self._outcome = None, error

    def _watch(self) -> None:
        start = time.perf_counter()
        self._worker.start()
        while True:
            self._worker.join(TICK)
            if not self._worker.is_alive():
                break
            self._report(time.perf_counter() - start)
        self.all.discard(self)
        self._done(*self._outcome)


def let_interrupts_stop_jobs() -> None:
    """Let Kernel → Interrupt stop all jobs, in a kernel that is idle but for them.

    While ipykernel deals with a message it has a handler of its own, which interrupts a cell. After
    it the one that was there before comes back, which ignores the signal: it is replaced here.
    """
    kernel = getattr(get_ipython(), "kernel", None)
    if hasattr(kernel, "saved_sigint_handler"):
        kernel.saved_sigint_handler = _interrupted


def _interrupted(*_: object) -> None:
    for job in tuple(Job.all):  # in a thread, as this one may hold the lock that a stop takes
        threading.Thread(target=job.stop, daemon=True).start()


Choice = tuple[Kernel, Tiling | None, str]


class Runner(Explorer):
    """An explorer with the buttons Run, Stop and Clear, a row of widgets called `buttons`.

    A subclass says by `problem` and `choice` what Run is to run. `history` holds every
    `Measurement` made; `device` is the device whose measurements are replayed.
    """

    def __init__(self, picture: Picture, device: Device) -> None:
        super().__init__(picture)
        self.device = device
        self.history: list[Measurement] = []
        self.job: Job | None = None
        self._running = False
        let_interrupts_stop_jobs()
        self.run = widgets.Button(description="Run", button_style="primary", icon="play")
        self.stop = widgets.Button(description="Stop", icon="stop", disabled=True)
        self.clear = widgets.Button(description="Clear", icon="trash", disabled=True)
        self.status = widgets.HTML()
        self.buttons = row(self.run, self.stop, self.clear, self.status)
        self.run.on_click(lambda _: self.start())
        self.stop.on_click(lambda _: self.job and self.job.stop())
        self.clear.on_click(lambda _: self.forget())

    @property
    def problem(self) -> Gemm:
        """The problem that the controls ask for."""
        raise NotImplementedError

    @property
    def choice(self) -> Choice:
        """The kernel, its tiling and the backend that runs it; errors as `gemmlab.run` has."""
        raise NotImplementedError

    def target(self, backend: str) -> Device:
        """Return the device that a run on `backend` is predicted for."""
        return {"gpu": detect, "cpu": host}.get(backend, lambda: self.device)()

    def start(self) -> None:
        """Run what the controls say, in the background, as the Run button does."""
        if self.run.disabled or not self.refresh():
            return
        problem, (kernel, tiling, backend) = self.problem, self.choice
        self._running = True
        self.enable()
        self._report(0.0)
        self.job = Job(
            lambda: self.execute(kernel, problem, tiling, backend), self._report, self._done
        ).start()

    def execute(
        self, kernel: Kernel, problem: Gemm, tiling: Tiling | None, backend: str
    ) -> Measurement:  # fmt: skip
        """Run a kernel, in the thread of the job."""
        return backends.run(kernel, problem, backend, tiling=tiling, device=self.device.name)

    @property
    def runnable(self) -> bool:
        return True

    def enable(self) -> None:
        """Let the buttons be pressed that have something to do."""
        self.run.disabled = self._running or not self.runnable
        self.stop.disabled = not self._running
        self.clear.disabled = not self.history

    def wait(self, seconds: float | None = None) -> bool:
        """Wait for the run to end; False if it takes longer than `seconds`.

        An interrupt of the wait stops the run, too.
        """
        try:
            return self.job is None or self.job.wait(seconds)
        except KeyboardInterrupt:
            self.job.stop()
            raise

    def forget(self) -> None:
        self.history.clear()
        self.enable()
        self.refresh()

    def _report(self, seconds: float) -> None:
        self.status.value = f'<span role="status">running… {seconds:.1f} s</span>'

    def _done(self, result: Measurement | None, error: BaseException | None) -> None:
        self.status.value = ""
        self._running = False
        if error is None:
            self.history.append(result)
        self.enable()
        if error is None:
            self.refresh()
        elif isinstance(error, Stopped):
            self.say("Stopped: nothing was added. Press Run to start again.")
        else:
            self.refuse(str(error) or type(error).__name__)


def expected(p: Prediction, kernel: Kernel, target: Device, backend: str) -> str:
    """Say what a run is predicted to show, before it has run."""
    name = f"{kernel.name} {p.tiling}" if p.tiling else kernel.name
    press = "It is not recorded." if backend == "recorded" else f"Press Run ({backend}) to compare."
    return f"{name} on {p.problem}: {_predicted(p, target)}\n{press}"


def observed(m: Measurement, p: Prediction, target: Device) -> str:
    """Say what a run showed, and its residual against the prediction."""
    verdict = "right" if m.passed else "WRONG"
    error, most = (style.raised(f"{x:.1e}") for x in (m.error, m.tolerance))
    first = (
        f"{style.series(m)} on {m.problem}, {m.source}: the result is {verdict} "
        f"(error {error}, at most {most})."
    )
    return "\n".join([first, _counted(m, p) if m.counters else _timed(m, p, target)])


def _predicted(p: Prediction, target: Device) -> str:
    model = "predicted" if p.kernel else "predicted for an ideal kernel"
    traffic = f", {si(p.bytes['global'], 'B')} of global traffic" if "global" in p.bytes else ""
    if latency_unknown(target, p.seconds):
        return f"{model} on {target.title}: no time, as its latency is not recorded{traffic}."
    return (
        f"{model} on {target.title}: {si(p.seconds, 's')}, "
        f"{si(p.flops_per_second, 'FLOP/s')}, limited by {p.limiter}{traffic}."
    )


def _counted(m: Measurement, p: Prediction) -> str:
    if not p.kernel:
        traffic = ", ".join(f"{si(count, 'B')} of {level}" for level, count in m.bytes.items())
        conflicts = m.counters["shared_bank_conflicts"]
        return (
            f"Counted: {traffic} traffic, {style.count(conflicts, 'bank conflict')}. There is no "
            "model of it: no counts are predicted."
        )
    differences = residual(m, p)
    off = {name: d for name, d in differences.items() if d}
    if not off:
        return f"Counted − predicted = 0 for all {len(differences)} counters."
    text = ", ".join(f"{name} {d:+,.0f}" for name, d in off.items())
    return f"Counted − predicted: {text}; 0 for the other {len(differences) - len(off)}."


def _timed(m: Measurement, p: Prediction, target: Device) -> str:
    low, high = m.percentile(10), m.percentile(90)
    runs = style.count(len(m.samples), "run")
    return (
        f"Median of {runs} {si(m.seconds, 's')} (10 % to 90 %: {si(low, 's')} to "
        f"{si(high, 's')}), {si(m.flops_per_second, 'FLOP/s')}; {_predicted(p, target)}\n"
        f"Measured ÷ predicted time = {number(m.seconds / p.seconds)}."
    )


SIDE = 4096  # of the product in whose place a smaller one is simulated: it fills a GPU
SECONDS = 60.0  # of the processor, for one forecast; most take a few, the first some more
COMPILING = "it is being compiled …"


class Asked(NamedTuple):
    """A forecast is asked for a kernel, a problem and a tiling."""

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
        """Say what is predicted of a run on the device `on`; "" where none was begun."""
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
            what += f"\nMeasured ÷ predicted from its code = {number(run.seconds / found.seconds)}."
        return what

    def _make(self, asked: Asked) -> Made:
        from gemmlab.compiled.forecast.rungs import predict_rung
        from gemmlab.compiled.forecast.telling import sentence

        with self._one_by_one, limited(SECONDS, "the prediction"):
            found = predict_rung(asked.problem, self.device, asked.kernel, asked.tiling)
        return Made(found.seconds, sentence(found))

    def _done(self, asked: Asked, made: Made | None, error: BaseException | None) -> None:
        if isinstance(error, Stopped):
            del self._found[asked]  # the next run begins it again
        else:
            self._found[asked] = made or f"nothing: {told(error)}"
        if COMPILING in self.explorer.message:
            self.explorer.refresh()


def _asked(kernel: Kernel, run: Measurement) -> Asked:
    problem = Gemm(SIDE, SIDE, SIDE) if run.counters else run.problem
    return Asked(kernel, problem, run.tiling)
