"""Who wrote, read and updated each element of an array in global memory, over a whole launch."""

from __future__ import annotations

import numpy as np

from gemmlab.simt.races.release import Releases
from gemmlab.simt.races.shadow import Clash, Shadow
from gemmlab.simt.races.visits import Now


class GlobalShadow(Shadow):
    """A `Shadow` of global memory, where fences and atomics order threads of any two blocks.

    written : whether anybody has stored to the array
    unwritten : the elements that nobody has ever written; None where all have been
    """

    def __init__(
        self, size: int, threads: int, lanes: int, releases: Releases | None = None
    ) -> None:
        super().__init__(size, threads, lanes)
        self.releases = releases or Releases()
        self.written = False
        self.unwritten: np.ndarray | None = None

    def order(self) -> None:
        """Note a wait of the whole grid: what came before is over."""
        self.floor = self.visits.next
        for kept in (self.readers, self.updaters):
            if kept.far is not None:
                kept.far[:] = False

    def read(self, at: np.ndarray, lane: np.ndarray, now: Now) -> tuple[Clash, ...]:
        """As `Shadow.read`."""
        self.fences = self.releases.fences
        return super().read(at, lane, now)

    def write(self, at: np.ndarray, lane: np.ndarray, now: Now) -> tuple[Clash, ...]:
        """As `Shadow.write`."""
        self.fences, self.written = self.releases.fences, True
        if self.unwritten is not None:
            self.unwritten[at] = False
        return super().write(at, lane, now)

    def atomic(self, at: np.ndarray, lane: np.ndarray, now: Now) -> tuple[Clash, ...]:
        """As `Shadow.atomic`."""
        self.fences, self.written = self.releases.fences, True
        if self.unwritten is not None:
            self.unwritten[at] = False
        clashes = super().atomic(at, lane, now)
        epochs = np.broadcast_to(now.epoch, lane.shape)
        self.releases.update(id(self), at, lane, self.threads, epochs)
        return clashes

    def unset(self, at: np.ndarray) -> np.ndarray | None:
        """Which of the elements `at` nobody has written, (elements,); None if all are."""
        if self.unwritten is None:
            return None
        unset = self.unwritten[at]
        return unset if unset.any() else None

    def _ordered(self, touches: np.ndarray, lane: np.ndarray, now: Now) -> np.ndarray:
        ordered = super()._ordered(touches, lane, now)
        if self.fences:
            _, epochs, _, fences = self.visits.moments(touches)
            others, epoch = self.visits.lanes(touches), np.broadcast_to(now.epoch, lane.shape)
            for i in np.flatnonzero(~ordered).tolist():
                old = int(others[i]), int(epochs[i]), int(fences[i])
                ordered[i] = self.releases.orders(old, int(lane[i]), int(epoch[i]), self.threads)
        return ordered
