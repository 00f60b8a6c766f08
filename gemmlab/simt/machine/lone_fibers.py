"""Fibers of one lane each, which runs the whole kernel as a function of one thread."""

from functools import partial
from typing import Any

import numpy as np

from gemmlab.simt.machine import carriers
from gemmlab.simt.machine.calls import Frame
from gemmlab.simt.machine.fibers import Fibers
from gemmlab.simt.machine.loops import Grain, SpinsError
from gemmlab.simt.machine.machine import Machine, count_lanes
from gemmlab.simt.threads.lone import Done, Lone
from gemmlab.simt.threads.text import UnfitError

# How the launch runs where the function cannot be written, or gives up.
OTHERWISE = Grain("batch", tried=True)
AT_ONCE = 1 << 14  # lanes that are counted together: a thousand bytes of each are kept until then


class LoneFibers(Fibers):
    """Runs a launch lane by lane, if it does what the function does, and does it without a fault.

    Else SpinsError has it run again, by the machine, which tells what there is to tell.
    done : what lanes have done that are not counted yet
    """

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.done: list[Done] = []
        whole = self._whole()
        try:
            self.lone = Lone(whole, self.kernel(whole))
        except UnfitError:
            raise SpinsError(OTHERWISE) from None
        finally:
            whole.take_apart()

    def _whole(self) -> Machine:
        return self.machine(np.arange(self.blocks))

    def run(self) -> None:
        """Run all lanes, and count what they have done by warps."""
        try:
            with carriers.uncollected(anywhere=True):
                super().run()
        except Exception:
            raise SpinsError(OTHERWISE) from None
        self._count()

    def _count(self) -> None:
        """Count what lanes have done whose blocks have ended."""
        if self.done:
            whole = self._whole()
            counts = count_lanes(whole, [])
            self.lone.count(self.done, counts)
            counts.finish()
            whole.take_apart()
            self.done.clear()

    def _frames(self, m: Machine) -> list[Frame]:
        return m.calls.frames  # of which the function changes nothing

    def _begin_block(self, block: int, _: int) -> Machine:
        m = self.machine(np.array([block]))
        m.apart = _Block(self)
        threads = np.flatnonzero(m.lanes.full(m.lanes.present)).tolist()
        masks = [m.lanes.thread == thread for thread in threads]
        self._add_fibers(m, masks, [partial(self._run_lane, m, thread) for thread in threads])
        return m

    def _run_lane(self, m: Machine, thread: int) -> None:
        m.apart.done.append(self.lone.run(m, thread))


class _Block:
    """Keeps what the lanes of a block have done, until all have ended."""

    def __init__(self, fibers: LoneFibers) -> None:
        self.fibers, self.done = fibers, []

    def finish(self) -> None:
        """Have it counted, together with that of other blocks."""
        self.fibers.done += self.done
        if len(self.fibers.done) >= AT_ONCE:
            self.fibers._count()
