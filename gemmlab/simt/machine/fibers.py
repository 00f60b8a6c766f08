"""A launch in fibers: groups of lanes that run apart, so that one can wait for another.

In lock-step the lanes that leave a loop wait for those that spin in it, who may spin for just them.
So where lanes spin, the launch runs again in *fibers*: whole blocks; where lanes of one block wait
for each other, those that spin apart from the others; at last each lane by itself. A fiber runs
until it ends, spins, or comes to a barrier; then another one does. The order is always the same. A
fiber that waits keeps its Python thread, and the next one runs in a new one: only one of them runs
at any time.
"""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np

from gemmlab.instructions.clusters import cluster_sync, cluster_sync_relaxed
from gemmlab.model.transactions import WARP
from gemmlab.simt.builtins import instructions, under_way, warps
from gemmlab.simt.machine import carriers
from gemmlab.simt.machine.calls import Frame
from gemmlab.simt.machine.loops import LANES, Grain, Spin, SpinsError, StepLimitError
from gemmlab.simt.machine.machine import Control, Machine, count_lanes
from gemmlab.simt.machine.scope import VOTES, WAITS
from gemmlab.simt.memory.array import merged
from gemmlab.simt.numbers.lanes import without
from gemmlab.simt.syntax.source import unsupported


@dataclass(eq=False)
class Fiber:
    """Lanes of a block that run together: those of `mask`, (1, threads).

    kernel : what they run; at : where they are in it, while they wait; wait : for what
    baton : released when it is their turn; they have it once they have waited
    """

    machine: Machine
    mask: np.ndarray
    kernel: Callable[[], None]
    at: Control | None = None
    wait: Any = None
    baton: Any = None


@dataclass(eq=False)
class Meeting:
    """A call that is made when all have come: lanes of a block, of a warp, or of the grid.

    key : the machine, None for the grid; the `_moment` of the call; which warp, if one
    fibers, calls : who has come, and with what arguments; here : their lanes
    named : the lanes that they wait for; None for all of the block
    """

    key: tuple
    here: Any = False
    named: Any = None
    fibers: list[Fiber] = field(default_factory=list)
    calls: list[tuple] = field(default_factory=list)
    held: bool = False
    result: Any = None

    def join(self, fiber: Fiber, named: Any, call: tuple) -> None:
        """Let a fiber come, with the lanes that it names and its call."""
        m = fiber.machine
        self.fibers.append(fiber)
        self.calls.append(call)
        self.here = self.here | m.lanes.full(
            m.masks[-1] if fiber.at is None else fiber.at.masks[-1]
        )
        if named is not None:
            self.named = named if self.named is None else self.named | named


def _moment(m: Machine) -> tuple:
    """The lanes that run are at this moment: in these calls, and in these turns of their loops.

    Lanes in lock-step come to it together. A barrier that some of them leave out in one turn is
    not the one of the next turn, nor that of the same function called elsewhere.
    """
    calls = (frame.place for frame in m.calls.frames[1:])
    return (m.calls.place, *calls, *(loop.turns for loop in m.loops.open))


def _held(meeting: Meeting, function: Callable, alive: np.ndarray) -> Any:
    """Call `function` for all lanes that have come, and return what it gives."""
    m = meeting.key[0]
    own = m.masks[:]
    (args, keywords), *others = meeting.calls
    for fiber, (more, named) in zip(meeting.fibers[1:], others, strict=True):
        lanes = fiber.mask
        args = tuple(merged(lanes, *p, "") for p in zip(args, more, strict=True))
        keywords = {k: merged(lanes, v, named[k], k) for k, v in keywords.items()}
    m.masks[:] = [alive, meeting.here]
    result = function(*args, **keywords)
    m.masks[:] = own
    return result


def _named_lanes(m: Machine, mask: Any) -> np.ndarray:
    """Return the lanes that the active ones name by a mask of their warp."""
    bits = m.lanes.in_warps(np.asarray(mask).astype(np.int64))
    on = m.lanes.in_warps(m.lanes.full(m.masks[-1]))
    named = ((bits[..., :, None] >> np.arange(WARP)) & 1 == 1) & on[..., :, None]
    return named.any(axis=-2).reshape(m.lanes.shape)


ALONE = ("activemask", "lanemask_lt")  # what a lane can tell without its warp
OF_BLOCK = [name for name in WAITS if name != "syncwarp"]
OF_WARP = ["syncwarp", *(name for name in VOTES if name not in ALONE), *warps.SHUFFLES]


# The same numbers as in `loops`, for launches that are known to spin.
FIRST, PATIENCE = 2, 64


class Abandoned(BaseException):
    """Ends a fiber that waits, when the launch is over."""


class Fibers:
    """Runs the blocks of a launch in fibers of a `grain` finer than a batch.

    machine : makes the machine of a block; kernel : the kernel on a machine, to be called
    clusters : the blocks of each cluster, which begin together, by rank
    held : tells how many blocks with so many bytes of shared arrays a GPU holds, and which GPU
    static_bytes, at_once, holder : of the blocks so far; how many such blocks may have begun and
        not ended; that GPU
    watchers : of the accesses of whole warps
    begun : blocks so far; turn : of those that spin, the one asked last
    in_vain : fibers in a row that went on without being sure to do something else
    open : the fibers of these blocks that have not ended; new : those of them not begun
    alive : their lanes that have not returned, by machine
    ready, spinning, patient, meetings : those that wait: not any more, in a loop until memory
        changes, in a loop that may do something else, for each other
    """

    def __init__(
        self, machine: Callable[[np.ndarray], Machine], kernel: Callable,
        clusters: np.ndarray, grain: Grain, held: Callable[[int], tuple[int, str]],
        watchers: list[Callable],
    ) -> None:  # fmt: skip
        self.machine, self.kernel, self.grain = machine, kernel, grain
        self.clusters, self.held, self.static_bytes = clusters, held, -1
        self.blocks = clusters.size
        self.at_once, self.holder = 0, ""
        self.watchers = watchers[:]
        if grain.name in ("group", "lane"):  # they are told of whole warps, later
            watchers.clear()
        self.begun, self.turn, self.in_vain = 0, 0, 0
        self.open: dict[Machine, list[Fiber]] = {}
        self.alive: dict[Machine, np.ndarray] = {}
        self.new: deque[Fiber] = deque()
        self.ready: deque[Fiber] = deque()
        self.spinning: list[Fiber] = []
        self.patient: deque[Fiber] = deque()
        self.meetings: dict[tuple, Meeting] = {}
        self.now: Fiber | None = None
        self.threads: list[Any] = []
        self.over = carriers.turn()
        self.failure: BaseException | None = None

    def run(self) -> None:
        """Run all of them; raises what the kernel raises, and SpinsError."""
        with carriers.uncollected():
            self._work(None)
            self.over.acquire()
            for thread in self.threads:
                thread.join()
        for machine in self.open:  # what did not end is counted too
            machine.tally.settle()
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
                if waiting.baton is not None:
                    waiting.baton.release()
            self.over.release()

    def _begin(self, fiber: Fiber) -> None:
        m = fiber.machine
        self.now = fiber
        m.go_on(Control([fiber.mask], self._frames(m)))
        fiber.kernel()
        self.open[m].remove(fiber)
        self.alive[m] = self.alive[m] & ~fiber.mask
        if not self.open[m]:
            del self.open[m], self.alive[m]
            if m.under_way is not None:
                m.under_way.finish(m)
            if m.apart is not None:
                m.apart.finish()
            m.cluster[m.cluster.index(m)] = None
            m.take_apart()

    def _frames(self, m: Machine) -> list[Frame]:
        """Return the functions in which a fiber of a machine begins."""
        return [Frame(m.report.source, depth=0)]

    def _suspend(self, wait: Any) -> None:
        """Let others run until `wait` is over."""
        fiber, m = self.now, self.now.machine
        fiber.wait, fiber.at = wait, m.control()
        fiber.baton = fiber.baton or carriers.turn()
        self.alive[m] = self.alive[m] & (m.lanes.full(m.masks[0]) | ~fiber.mask)
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
        m.go_on(fiber.at)
        fiber.wait = fiber.at = None

    def _begin_thread(self, fiber: Fiber) -> None:
        thread = carriers.carrier(self._work, fiber)
        try:
            thread.start()
        except RuntimeError:
            what, calls = "a thread that waits for others", fiber.machine.calls
            raise unsupported(calls.source, calls.line, what, carriers.INSTEAD) from None
        self.threads.append(thread)

    # The order of the fibers

    def _next(self) -> Fiber | None:
        """Return the fiber to run now; None if all have ended."""
        fiber = self._next_sure()
        if fiber is not None:
            self.in_vain = 0
            return fiber
        if self.patient:
            self.in_vain += 1
            finer = _finer_grain(self) if self.in_vain > 2 * len(self.patient) else None
            if finer:
                raise SpinsError(finer)
            return self.patient.popleft()
        if self.spinning:
            _give_up(self)
        for meeting in self.meetings.values():  # its function reports who does not come
            return meeting.fibers[0]
        return None

    def _next_sure(self) -> Fiber | None:
        if self.ready:
            return self.ready.popleft()
        if self.new:
            return self.new.popleft()
        for meeting in self.meetings.values():
            if self._complete(meeting):
                return meeting.fibers[0]
        for _ in self.spinning:  # one after the other, from the last one to the first
            self.turn = (self.turn or len(self.spinning)) - 1
            if self.spinning[self.turn].wait.ready:
                return self.spinning.pop(self.turn)
        if self.begun < self.blocks and self._is_held():
            self._begin_cluster()
            return self.new.popleft()
        return None

    def _is_held(self) -> bool:
        """Say whether a GPU that holds the open blocks holds another one, as far as is known."""
        if not self.open:
            return True
        static = max(m.memory.static_bytes for m in self.open)
        if static > self.static_bytes:
            self.static_bytes = static
            self.at_once, self.holder = self.held(static)
        size = self.clusters.shape[1]
        return len(self.open) + size <= max(size, self.at_once)

    def _begin_cluster(self) -> None:
        begun = self.clusters[self.begun // self.clusters.shape[1]]
        machines = [self._begin_block(int(block), len(begun)) for block in begun]
        peers = [m.under_way for m in machines]
        for rank, m in enumerate(machines):
            m.cluster = machines
            if m.under_way is not None:
                m.under_way.peers, m.under_way.rank = peers, rank

    def _begin_block(self, block: int, of: int) -> Machine:
        """Begin a block of a cluster of so many; returns its machine."""
        m = self.machine(np.array([block]))
        lanes, cuda = m.lanes, m.scope.cuda
        present, masks = lanes.full(lanes.present), [lanes.full(lanes.present)]
        if self.grain.name == "group":
            spin = self.grain.groups.get(block, next(iter(self.grain.groups.values())))
            masks = [mask for mask in (present & spin, present & ~spin) if mask.any()]
        elif self.grain.name in LANES:
            m.under_way = under_way.UnderWay(lanes, m.report.releases, of)
            size = LANES[self.grain.name]
            m.scope.translate = partial(self._translate, m, m.scope.translate)
            groups = (lanes.thread // size == i for i in range(-(-lanes.threads // size)))
            masks = [present & group for group in groups]
        elif self.grain.name == "lane":
            masks = [lanes.thread == thread for thread in np.flatnonzero(present)]
        if self.grain.name != "block":
            for name in OF_BLOCK:
                cuda[name] = partial(self._meet, m, "block", cuda[name])
        if self.grain.name in ("group", "lane"):  # which divide warps
            for name in OF_WARP:
                cuda[name] = partial(self._meet, m, "named", cuda[name])
            m.scope.translate = partial(self._translate, m, m.scope.translate)
            count_lanes(m, self.watchers)
        sync = cuda["cg.this_grid"]().sync
        whole_grid = SimpleNamespace(sync=partial(self._meet_grid, m, sync))
        cuda["cg.this_grid"] = lambda: whole_grid
        self._add_fibers(m, masks, [self.kernel(m)] * len(masks))
        return m

    def _add_fibers(
        self, m: Machine, masks: list[np.ndarray], kernels: list[Callable[[], None]]
    ) -> None:
        """Add a fiber for each mask of a block's lanes, with what it runs."""
        m.loops.wait, m.loops.first, m.loops.patience = self._suspend, FIRST, PATIENCE
        self.begun, self.alive[m] = self.begun + 1, m.lanes.full(m.lanes.present)
        self.open[m] = [Fiber(m, *each) for each in zip(masks, kernels, strict=True)]
        self.new.extend(self.open[m])

    # Where fibers meet

    def _meet(
        self, m: Machine, whom: str, function: Callable, /, *args: Any, **keywords: Any
    ) -> Any:
        """Call `function` for all lanes of the block, of the warp, or "named" by its mask."""
        if m.masks[-1] is False:
            return function(*args, **keywords)
        named, warp = None, None
        if whom != "block":
            every = (1 << WARP) - 1
            mask = every if whom == "warp" else args[0] if args else keywords.get("mask", every)
            named = _named_lanes(m, mask)
            if self.grain.name == "lane":
                warp = m.lanes.first(m.masks[-1])[1] // WARP
        meeting = self._join((m, _moment(m), warp), named, (args, keywords))
        if not meeting.held:
            meeting.held = True
            meeting.result = _held(meeting, function, self.alive[m])
        return meeting.result

    def _meet_machines(
        self, m: Machine, which: tuple[Machine | None, ...] | None, sync: Callable, call: tuple
    ) -> dict[Machine, np.ndarray]:
        """Call `sync` for all lanes that have come of each block, of a cluster or of the grid.

        Returns these lanes, to the one fiber that goes on for all. Threads of a cluster meet at
        whichever call of theirs is the next one.
        """
        meeting = self._join((which, () if which else _moment(m), None), None, (m, sync, call))
        if meeting.held:
            return {}
        meeting.held = True
        together: dict[Machine, Meeting] = {}
        functions = {}
        for fiber, (machine, function, args) in zip(meeting.fibers, meeting.calls, strict=True):
            part = together.setdefault(machine, Meeting((machine, *meeting.key[1:])))
            part.join(fiber, None, (args, {}))
            functions[machine] = function
        for machine, part in together.items():
            _held(part, functions[machine], self.alive[machine])
        return {machine: part.here for machine, part in together.items()}

    def _meet_cluster(self, stores: bool, m: Machine, sync: Callable, *call: Any) -> None:
        """Meet the cluster; stores : what threads have stored before is there afterwards."""
        if m.masks[-1] is False:
            return
        together = self._meet_machines(m, tuple(m.cluster), sync, call)
        missing = [x for x in m.cluster if x in self.open and x not in together]
        if together and missing:
            block = m.lanes.block_name(int(missing[0].lanes.blocks[0, 0]))
            text = f"thread {{thread}} waits for its cluster, but block {block} does not come"
            m.findings.hazard("divergent-barrier", m.calls.line, m.masks[-1], text)
        here = {x.under_way: np.flatnonzero(lanes[0]) for x, lanes in together.items()}
        under_way.meet(here) if stores else under_way.show(here)

    def _meet_grid(self, m: Machine, sync: Callable) -> None:
        if m.masks[-1] is False:
            return
        together = self._meet_machines(m, None, sync, ())
        if not together:
            return
        epoch = max(int(np.max(machine.waits.epoch)) for machine in together)
        for machine in together:
            machine.waits.epoch = epoch
        for array in m.memory.global_arrays:
            if array.shadow is not None:
                array.shadow.order()

    def _join(self, key: tuple, named: Any, call: tuple) -> Meeting:
        """Come to a meeting, and wait until all have, or nobody else can."""
        fiber = self.now
        for loop in fiber.machine.loops.open:  # turns that depend on others are not watched
            loop.unwatch()
        meeting = self.meetings.setdefault(key, Meeting(key))
        meeting.join(fiber, named, call)
        self._suspend(meeting)
        if not meeting.held:
            del self.meetings[key]
            self.ready.extend(f for f in meeting.fibers if f is not fiber)
        return meeting

    def _complete(self, meeting: Meeting) -> bool:
        """Say whether all for whom a meeting waits have come."""
        m = meeting.key[0]
        if m is None:
            everybody = sum(len(fibers) for fibers in self.open.values())
            return self.begun == self.blocks and len(meeting.fibers) == everybody
        if isinstance(m, tuple):
            return len(meeting.fibers) == sum(len(self.open.get(block, ())) for block in m)
        missing = self.alive[m] & ~meeting.here
        return not (missing if meeting.named is None else missing & meeting.named).any()

    def _translate(self, m: Machine, translate: Callable, value: Any) -> Any:
        """Return a value as fibers use it: instructions of a warp, or of a cluster, wait."""
        result = translate(value)
        if value is cluster_sync or value is cluster_sync_relaxed:
            return partial(self._meet_cluster, value is cluster_sync, m, result)
        apart = self.grain.name not in LANES
        if apart and isinstance(value, instructions.KINDS) and value.collective:
            return partial(self._meet, m, "warp", result)
        return result


def _give_up(fibers: Fibers) -> None:
    """Nobody can go on: run in finer fibers if that may help, else report a deadlock."""
    finer = _finer_grain(fibers)
    if finer:
        raise SpinsError(finer)
    firsts: dict[tuple, Fiber] = {}  # of those that spin in a line
    for fiber in fibers.spinning:
        source = fiber.at.frames[-1].source
        firsts.setdefault((source.file, fiber.wait.line), fiber)
    for (_, line), first in firsts.items():
        m = first.machine
        m.go_on(first.at)
        m.findings.hazard("deadlock", line, first.wait.mask, _why(fibers, first))
    raise StepLimitError


def _finer_grain(fibers: Fibers) -> Grain | None:
    """The grain in which lanes that are out of a loop do not wait for those that spin in it."""
    if fibers.grain.name in LANES:
        whole = any(m.under_way.undivided for m in fibers.open)
        return Grain("warp") if fibers.grain.name == "warpgroup" and not whole else None
    groups = {}
    for fiber in (*fibers.spinning, *fibers.patient):
        lanes = fiber.machine.lanes
        if without(fiber.at.masks[0], fiber.wait.mask) is not False:
            groups[int(lanes.blocks[0, 0])] = lanes.full(fiber.wait.mask)
    if not groups:
        return None
    return Grain("group", groups) if fibers.grain.name == "block" else Grain("lane")


def _why(fibers: Fibers, fiber: Fiber) -> str:
    """A sentence says what a fiber waits for that spins, and why nobody will set it."""
    text = f"thread {{thread}} spins until {fiber.wait.until}, "
    waiting = [f for meeting in fibers.meetings.values() for f in meeting.fibers]
    others = [f for f in (*fibers.spinning, *waiting) if f is not fiber]
    left = fibers.blocks - fibers.begun
    if left:
        return text + (
            f"and {fibers.holder} holds {fibers.at_once} such blocks at once: "
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
