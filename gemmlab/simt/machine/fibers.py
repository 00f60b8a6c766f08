"""A launch in fibers: groups of lanes that run apart, so that one can wait for another.

In lock-step the lanes that leave a loop wait for those that spin in it, who may spin for just them.
So where lanes spin, the launch runs again in *fibers*: whole blocks, or, where lanes of one block
wait for each other, its warps, or each lane by itself. A fiber runs until it ends, spins, or
comes to a barrier; then another one does. The order is always the same. A fiber that waits keeps
its Python thread, and the next one runs in a new one: only one of them runs at any time.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np

from gemmlab.model.transactions import WARP
from gemmlab.simt.builtins.instructions import KINDS
from gemmlab.simt.builtins.warps import SHUFFLES
from gemmlab.simt.machine.calls import Frame
from gemmlab.simt.machine.lane_counts import count_lanes
from gemmlab.simt.machine.loops import StepLimitError
from gemmlab.simt.machine.machine import Control, Machine
from gemmlab.simt.machine.scope import VOTES, WAITS
from gemmlab.simt.machine.spinning import Spin, SpinsError
from gemmlab.simt.machine.variables import merged
from gemmlab.simt.numbers.masks import Mask, without
from gemmlab.simt.syntax.source import unsupported

ALONE = ("activemask", "lanemask_lt")  # what a lane can tell without its warp
OF_BLOCK = [name for name in WAITS if name != "syncwarp"]
OF_WARP = ["syncwarp", *(name for name in VOTES if name not in ALONE), *SHUFFLES]


class Abandoned(BaseException):
    """Ends a fiber that waits, when the launch is over."""


@dataclass(eq=False)
class Fiber:
    """Lanes of a block that run together: those of `mask`.

    at : where they are in the kernel, while they wait; wait : for what
    baton : released when it is their turn
    """

    machine: Machine
    mask: Mask
    kernel: Callable[[], None]
    at: Control | None = None
    wait: Any = None
    baton: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))

    @property
    def alive(self) -> Mask:
        """The lanes that have not returned."""
        return self.mask if self.at is None else self.at.masks[0]


@dataclass(eq=False)
class Meeting:
    """A call that is made when all have come: lanes of a block, of a warp, or of the grid.

    key : the machine, None for the grid; the place of the call; the warp, None for the block
    fibers, calls : who has come, and with what arguments
    names : the lanes of the warp that they wait for, as bits
    """

    key: tuple
    fibers: list[Fiber] = field(default_factory=list)
    calls: list[tuple] = field(default_factory=list)
    names: int = 0
    held: bool = False
    result: Any = None

    def join(self, fiber: Fiber, names: int, call: tuple) -> None:
        """Add a fiber."""
        self.fibers.append(fiber)
        self.calls.append(call)
        self.names |= names


class Fibers:
    """Runs the blocks of a launch in fibers of a `grain`: "block", "warp" or "lane".

    machine : makes the machine of a block; kernel : the kernel on a machine, to be called
    at_once : blocks that may have begun and not ended, as many as a GPU holds; holder : that GPU
    watchers : of the accesses of whole warps
    open : the fibers of these blocks that have not ended; new : those of them not begun
    ready, spinning, patient, meetings : those that wait: not any more, in a loop until memory
        changes, in a loop that may do something else, for each other
    """

    def __init__(
        self, machine: Callable[[np.ndarray], Machine], kernel: Callable,
        blocks: int, grain: str, at_once: int, holder: str, watchers: list[Callable],
    ) -> None:  # fmt: skip
        self.machine, self.kernel, self.grain = machine, kernel, grain
        self.blocks, self.at_once, self.holder = blocks, at_once, holder
        self.watchers = watchers
        self.begun = 0
        self.open: dict[Machine, list[Fiber]] = {}
        self.new: deque[Fiber] = deque()
        self.ready: deque[Fiber] = deque()
        self.spinning: list[Fiber] = []
        self.patient: deque[Fiber] = deque()
        self.meetings: dict[tuple, Meeting] = {}
        self.now: Fiber | None = None
        self.threads: list[threading.Thread] = []
        self.over = threading.Semaphore(0)
        self.failure: BaseException | None = None

    def run(self) -> None:
        """Run all of them; raises what the kernel raises, and SpinsError."""
        self._work(None)
        self.over.acquire()
        for thread in self.threads:
            thread.join()
        if self.failure is not None:
            raise self.failure

    # Threads: each runs fibers one after the other, until it must leave that to another one

    def _work(self, fiber: Fiber | None) -> None:
        try:
            with np.errstate(all="ignore"):
                while (fiber := fiber or self._next()) is not None:
                    if fiber.at is not None:
                        fiber.baton.release()
                        return
                    self._begin(fiber)
                    fiber = None
            self.over.release()
        except Abandoned:
            pass
        except BaseException as error:  # whatever it is, it ends the launch
            self.failure = error
            for waiting in [f for fibers in self.open.values() for f in fibers]:
                waiting.baton.release()
            self.over.release()

    def _begin(self, fiber: Fiber) -> None:
        """Run a fiber from the start to its end."""
        m = fiber.machine
        self.now = fiber
        m.go_on(Control([fiber.mask], [Frame(m.report.source, depth=0)]))
        fiber.kernel()
        self.open[m].remove(fiber)
        if not self.open[m]:
            del self.open[m]
            if m.apart is not None:
                m.apart.finish()
            m.take_apart()

    def _suspend(self, wait: Any) -> None:
        """Let others run until `wait` is over."""
        fiber = self.now
        fiber.wait, fiber.at = wait, fiber.machine.control()
        if isinstance(wait, Spin):
            (self.spinning if wait.exact else self.patient).append(fiber)
        other = self._next()
        if other is not fiber:
            if other.at is not None:
                other.baton.release()
            else:
                self._begin_thread(other)
            fiber.baton.acquire()
            if self.failure is not None:
                raise Abandoned
        self.now = fiber
        fiber.machine.go_on(fiber.at)
        fiber.wait = fiber.at = None

    def _begin_thread(self, fiber: Fiber) -> None:
        thread = threading.Thread(target=self._work, args=(fiber,), daemon=True)
        try:
            thread.start()
        except RuntimeError:
            m = self.now.machine
            raise unsupported(m.calls.source, m.calls.line, "a loop that waits for other threads",
                              "run it where Python has threads, or wait at a barrier") from None  # fmt: skip
        self.threads.append(thread)

    # The order of the fibers

    def _next(self) -> Fiber | None:
        """The fiber to run now; None if all have ended."""
        if self.ready:
            return self.ready.popleft()
        if self.new:
            return self.new.popleft()
        for meeting in self.meetings.values():
            if self._complete(meeting):
                return meeting.fibers[0]
        for i, fiber in enumerate(self.spinning):
            if fiber.wait.ready:
                return self.spinning.pop(i)
        if self.begun < self.blocks and len(self.open) < self.at_once:
            self._begin_block()
            return self.new.popleft()
        if self.patient:
            return self.patient.popleft()
        if self.spinning:
            self._give_up()
        for meeting in self.meetings.values():  # its function reports who does not come
            return meeting.fibers[0]
        return None

    def _begin_block(self) -> None:
        m = self.machine(np.array([self.begun]))
        self.begun += 1
        lanes = m.lanes
        present = np.broadcast_to(True if lanes.present is None else lanes.present, lanes.shape)
        groups, cuda = [lanes.present], m.scope.cuda
        if self.grain != "block":
            number = lanes.thread // WARP if self.grain == "warp" else lanes.thread
            masks = (present & (number == n) for n in range(int(number[0, -1]) + 1))
            groups = [mask for mask in masks if mask.any()]
            for name in OF_BLOCK:
                cuda[name] = partial(self._meet, m, "block", cuda[name])
        if self.grain == "lane":
            for name in OF_WARP:
                cuda[name] = partial(self._meet, m, "named", cuda[name])
            m.scope.translate = partial(self._translate, m, m.scope.translate)
            count_lanes(m, self.watchers)
        sync = cuda["cg.this_grid"]().sync
        whole_grid = SimpleNamespace(sync=partial(self._meet_grid, m, sync))
        cuda["cg.this_grid"] = lambda: whole_grid
        m.loops.wait = self._suspend
        kernel = self.kernel(m)
        self.open[m] = [Fiber(m, mask, kernel) for mask in groups]
        self.new.extend(self.open[m])

    # Where fibers meet

    def _meet(
        self, m: Machine, whom: str, function: Callable, /, *args: Any, **keywords: Any
    ) -> Any:
        """Call `function` for all lanes of the block, of the warp, or "named" by its mask."""
        if m.masks[-1] is False:
            return function(*args, **keywords)
        thread = m.lanes.first(m.masks[-1])[1]
        warp, names = None if whom == "block" else thread // WARP, (1 << WARP) - 1
        if whom == "named":
            mask = args[0] if args else keywords.get("mask", names)
            names &= int(m.lanes.spread(mask)[0, thread])
        meeting = self._join((m, m.calls.place, warp), names, (args, keywords))
        if not meeting.held:
            meeting.held = True
            meeting.result = self._held(meeting, function)
        return meeting.result

    def _meet_grid(self, m: Machine, sync: Callable) -> None:
        """Wait for the whole grid: `this_grid().sync()`."""
        if m.masks[-1] is False:
            return
        meeting = self._join((None, m.calls.place, None), 0, (m, sync))
        if meeting.held:
            return
        meeting.held = True
        together: dict[Machine, Meeting] = {}
        for fiber, (machine, _) in zip(meeting.fibers, meeting.calls, strict=True):
            part = together.setdefault(machine, Meeting((machine, *meeting.key[1:])))
            part.join(fiber, 0, ((), {}))
        for part, (_, function) in zip(together.values(), meeting.calls, strict=False):
            self._held(part, function)
        epoch = max(int(np.max(machine.waits.epoch)) for machine in together)
        for machine in together:
            machine.waits.epoch = epoch
        for array in m.memory.global_arrays:
            if array.shadow is not None:
                array.shadow.order(epoch)

    def _join(self, key: tuple, names: int, call: tuple) -> Meeting:
        """Come to a meeting, and wait until all have, or nobody else can."""
        fiber = self.now
        for loop in fiber.machine.loops.open:  # turns that depend on others are not watched
            loop.unwatch()
        meeting = self.meetings.setdefault(key, Meeting(key))
        meeting.join(fiber, names, call)
        self._suspend(meeting)
        if not meeting.held:
            del self.meetings[key]
            self.ready.extend(f for f in meeting.fibers if f is not fiber)
        return meeting

    def _complete(self, meeting: Meeting) -> bool:
        """Whether all for whom a meeting waits have come."""
        m, _, warp = meeting.key
        if m is None:
            everybody = sum(len(fibers) for fibers in self.open.values())
            return self.begun == self.blocks and len(meeting.fibers) == everybody
        if warp is None:
            return len(meeting.fibers) == len(self.open[m])
        alive, here = (_bits(m, warp, fibers) for fibers in (self.open[m], meeting.fibers))
        return not meeting.names & alive & ~here

    def _held(self, meeting: Meeting, function: Callable) -> Any:
        """What `function` returns for all lanes that have come."""
        m = meeting.key[0]
        own = m.masks[:]
        (args, keywords), *others = meeting.calls
        for fiber, (more, named) in zip(meeting.fibers[1:], others, strict=True):
            lanes = _lanes(m, fiber)
            args = tuple(merged(lanes, *p, "", m.calls.line) for p in zip(args, more, strict=True))
            keywords = {k: merged(lanes, v, named[k], k, m.calls.line) for k, v in keywords.items()}
        here = _any(_lanes(m, fiber) for fiber in meeting.fibers)
        alive = _any(m.lanes.full(own[0] if f is self.now else f.alive) for f in self.open[m])
        m.masks[:] = [alive, here]
        result = function(*args, **keywords)
        m.masks[:] = own
        return result

    def _translate(self, m: Machine, translate: Callable, value: Any) -> Any:
        """A value as a lane by itself uses it: instructions of a warp wait for its lanes."""
        result = translate(value)
        if isinstance(value, KINDS) and value.collective:
            return partial(self._meet, m, "warp", result)
        return result

    # The end

    def _give_up(self) -> None:
        """Nobody can go on: run in finer fibers if that may help, else report a deadlock."""
        finer = self._finer()
        if finer:
            raise SpinsError(finer)
        lines: dict[tuple, list[Fiber]] = {}
        for fiber in self.spinning:
            source = fiber.at.frames[-1].source
            lines.setdefault((source.file, fiber.wait.line), []).append(fiber)
        for (_, line), fibers in lines.items():
            first, m = fibers[0], fibers[0].machine
            m.go_on(first.at)
            m.findings.hazard("deadlock", line, first.wait.mask, self._why(first))
        raise StepLimitError

    def _finer(self) -> str:
        """The grain in which lanes that are out of a loop do not wait for those that spin in it."""
        mixed = False
        outside = False
        for fiber in self.spinning:
            lanes = fiber.machine.lanes
            out = without(fiber.at.masks[0], fiber.wait.mask)
            if out is False:
                continue
            outside = True
            inside, out = (lanes.in_warps(lanes.full(m)) for m in (fiber.wait.mask, out))
            mixed = mixed or bool((inside.any(axis=-1) & out.any(axis=-1)).any())
        if not outside:
            return ""
        return "lane" if mixed or self.grain == "warp" else "warp"

    def _why(self, fiber: Fiber) -> str:
        """What a fiber that spins waits for, and why nobody will set it."""
        touched = next(t for t in fiber.wait.touched if t.awaited)
        element = touched.array.element(touched.where[-1][0])
        text = f"thread {{thread}} spins until {element} changes, which is {touched.values[0]}, "
        others = [f for f in (*self.spinning, *_waiting(self.meetings)) if f is not fiber]
        left = self.blocks - self.begun
        if left:
            return text + (
                f"and {self.holder} holds {self.at_once} such blocks at once: "
                f"{left} do not begin before others have ended"
            )
        if not others:
            return text + "and all other threads have ended"
        other = others[0]
        m, thread = other.machine, other.machine.lanes.first(other.at.masks[-1])[1]
        does = "spins in" if isinstance(other.wait, Spin) else "waits at"
        line = other.wait.line if isinstance(other.wait, Spin) else other.at.line
        return text + (
            f"and all others have ended or wait too: thread {m.lanes.thread_name(thread)} of "
            f"block {m.lanes.block_name(int(m.lanes.blocks[0, 0]))} {does} line {line}"
        )


def _waiting(meetings: dict[tuple, Meeting]) -> list[Fiber]:
    return [fiber for meeting in meetings.values() for fiber in meeting.fibers]


def _lanes(m: Machine, fiber: Fiber) -> np.ndarray:
    """The lanes of a fiber that are active where it waits, or runs."""
    return m.lanes.full(m.masks[-1] if fiber.at is None else fiber.at.masks[-1])


def _any(masks: Iterable[np.ndarray]) -> np.ndarray:
    """The lanes that are in any of the masks."""
    return np.logical_or.reduce(list(masks))


def _bits(m: Machine, warp: int, fibers: list[Fiber]) -> int:
    """The lanes of a warp that are in fibers, of a lane each, as bits."""
    threads = (m.lanes.first(fiber.mask)[1] for fiber in fibers)
    return sum(1 << thread % WARP for thread in threads if thread // WARP == warp)
