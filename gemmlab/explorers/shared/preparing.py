"""Explorers whose pictures need something that may take long: it is made beside them, once."""

import threading
from collections.abc import Hashable
from typing import Any

import ipywidgets as widgets

from gemmlab.explorers.shared.base import Explorer, Picture, row
from gemmlab.explorers.shared.running import Job, Stopped, let_interrupts_stop_jobs

PATIENCE = 0.5  # seconds in which most is made, so that nothing need be said of it


class Preparer(Explorer):
    """An explorer that draws what `prepare` makes for what the controls say, when it is there.

    What takes longer than `PATIENCE` is made in the background, with a button to stop it. Until
    then the picture is pale, and the caption says what it waits for and what the picture is of;
    where it is stopped, the controls go back to that. A subclass lays out the row `progress`.
    """

    def __init__(self, picture: Picture) -> None:
        super().__init__(picture)
        self.job: Job | None = None
        let_interrupts_stop_jobs()
        self.stop = widgets.Button(description="Stop", icon="stop", layout={"width": "6em"})
        self.status = widgets.HTML()
        self.progress = row(self.stop, self.status)
        self.progress.layout.visibility = "hidden"  # its place stays: nothing jumps
        self.stop.on_click(lambda _: self.job and self.job.stop())
        self._made: dict[Hashable, Any] = {}
        self._asked: Hashable = None  # what the job makes
        self._drawn: Hashable = None

    @property
    def wanted(self) -> Hashable:
        """What the controls ask for."""
        raise NotImplementedError

    def called(self, wanted: Any) -> str:
        """Name it in a sentence."""
        raise NotImplementedError

    def prepare(self, wanted: Any) -> Any:
        """Make what the picture needs, in the thread of a job."""
        raise NotImplementedError

    def choose(self, wanted: Any) -> None:
        """Set the controls to it."""
        raise NotImplementedError

    @property
    def prepared(self) -> Any:
        """What was made for what the controls say."""
        return self._made[self.wanted]

    def wait(self, seconds: float | None = None) -> bool:
        """Wait until the picture is what was asked for; False if it takes longer than `seconds`."""
        job = self.job
        return job is None or job.wait(seconds)

    def refresh(self, _change: object = None) -> bool:
        """Draw what the controls say if it is made; else begin to make it, and say so."""
        if self._held:
            return False
        with self._drawing:
            wanted = self.wanted
            if wanted in self._made or self._begin(wanted):
                self._end()
                self._drawn = wanted
                return super().refresh()
            if self.job:  # where no thread can be started it has ended already, and said why
                self._say_so(wanted)
            return False

    def _begin(self, wanted: Hashable) -> bool:
        """Begin to make something, unless that has begun; return whether it is there already."""
        if self.job and self._asked == wanted:
            return False
        self._end()
        there = threading.Event()

        def work() -> None:
            try:
                self._made[wanted] = self.prepare(wanted)
            finally:
                there.set()

        job = Job(
            work, lambda seconds: self._report(job, seconds), lambda *of: self._done(job, *of)
        )
        self.job, self._asked = job, wanted
        job.start()
        return there.wait(PATIENCE) and wanted in self._made

    def _end(self) -> None:
        """Go on without the job: it is stopped, if it runs, and its end is not told."""
        if self.job:
            self.job.stop()
        self.job = self._asked = None
        self.progress.layout.visibility = "hidden"

    def _say_so(self, wanted: Hashable) -> None:
        reason = (
            f"The compiled code of {self.called(wanted)} is being simulated: a moment, or half a "
            "minute where that is the first time after an installation."
        )
        self.progress.layout.visibility = "visible"
        if self._drawn is None:
            self._draw_nothing(reason)
        else:
            self.picture.fade(reason)
            reason += f"\nThe pale picture is still of {self.called(self._drawn)}."
        self.say(reason)

    def _draw_nothing(self, reason: str) -> None:
        """Draw figures as large as they will be, without anything in them."""
        axes = [ax for panel in self.picture.panels for ax in panel.figure.axes]
        for ax in axes:
            ax.set_visible(False)
        self.picture.draw(reason)
        for ax in axes:
            ax.set_visible(True)

    def _report(self, job: Job, seconds: float) -> None:
        if job is self.job:
            self.status.value = f'<span role="status">{seconds:.1f} s</span>'

    def _done(self, job: Job, _result: None, error: BaseException | None) -> None:
        with self._drawing:
            if job is not self.job:  # it was drawn at once, or something else is asked for now
                return
            self._end()
            if error is None:
                self.refresh()
            elif not isinstance(error, Stopped):
                self.refuse(str(error) or type(error).__name__)
            elif self._drawn is None:
                self.say("Stopped: choose anything to begin again.")
            else:
                self.choose(self._drawn)
