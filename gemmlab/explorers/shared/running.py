"""Explorers that run kernels: buttons, a job in the background, and a history of runs."""

from __future__ import annotations

import ipywidgets as widgets

from gemmlab.device import Device
from gemmlab.explorers.shared.base import Explorer, row
from gemmlab.explorers.shared.job import Job, Stopped
from gemmlab.explorers.shared.picture import Picture
from gemmlab.here.detection import detect, host
from gemmlab.kernels import Kernel
from gemmlab.measure import backends
from gemmlab.measure.measurement import Measurement
from gemmlab.problem import Gemm
from gemmlab.tiling import Tiling

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
        self.run = widgets.Button(description="Run", button_style="primary", icon="play")
        self.stop = widgets.Button(description="Stop", icon="stop", disabled=True)
        self.clear = widgets.Button(description="Clear", icon="trash")
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
        """The device that a run on `backend` is predicted for."""
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
        """Whether there is something to run."""
        return True

    def enable(self) -> None:
        """Let the buttons be pressed that have something to do."""
        self.run.disabled = self._running or not self.runnable
        self.stop.disabled = not self._running

    def wait(self, seconds: float | None = None) -> bool:
        """Wait for the run to end; False if it takes longer than `seconds`."""
        return self.job is None or self.job.wait(seconds)

    def forget(self) -> None:
        """Drop the history, as the Clear button does."""
        self.history.clear()
        self.refresh()

    def _report(self, seconds: float) -> None:
        self.status.value = f'<span role="status">running… {seconds:.1f} s</span>'

    def _done(self, result: Measurement | None, error: BaseException | None) -> None:
        self.status.value = ""
        self._running = False
        self.enable()
        if error is None:
            self.history.append(result)
            self.refresh()
        elif isinstance(error, Stopped):
            self.say("Stopped: nothing was added. Press Run to start again.")
        else:
            self.refuse(str(error) or type(error).__name__)
