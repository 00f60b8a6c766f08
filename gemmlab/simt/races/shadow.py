"""Shadow memory: who wrote, read and updated each element of an array, and when.

Lock-step execution hides races: every thread finishes a line before any starts the next. So races
are found from who touched what, and from what puts two touches in order, not from wrong values.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from gemmlab.model.transactions import WARP
from gemmlab.simt.races.release import Releases, together
from gemmlab.simt.races.visits import Now, Visits, distance

# What two threads do to one element, the one at fault first, in words; {} is the other thread.
WORDS = {
    ("read", "write"): "reads what {} wrote",
    ("read", "atomic"): "reads what {} updates",
    ("write", "write"): "overwrites what {} wrote",
    ("write", "read"): "overwrites what {} reads",
    ("write", "atomic"): "overwrites what {} updates",
    ("atomic", "write"): "updates what {} wrote",
    ("atomic", "read"): "updates what {} reads",
}


class Clash(NamedTuple):
    """Lanes of an access that each touch an element that another thread touches, unordered.

    ops : what the two do, as in `WORDS`; lanes : which lanes of the access are at fault
    touches : what each clashes with, of `visits`
    at_once : whether both do it in the same execution of the same line
    """

    ops: tuple[str, str]
    lanes: np.ndarray
    touches: np.ndarray
    visits: Visits
    at_once: bool = False

    @property
    def lane(self) -> int:
        """The first lane at fault, by its place in the access."""
        return int(self.lanes.argmax())

    @property
    def other(self) -> int:
        """The thread with which the first lane at fault clashes."""
        return int(self.visits.lanes(self.touches[self.lane]))

    @property
    def line(self) -> int:
        """The line in which the other thread does it."""
        return int(self.visits.moments(self.touches[self.lane])[0])

    @property
    def text(self) -> str:
        """The lane at fault does this, in words; {} stands for the other thread."""
        return "writes the same element as {}" if self.at_once else WORDS[self.ops]


class Touched:
    """For each element, the last touch of some kind and one of another lane; -1 is none.

    far : where the two are of two blocks, so that every lane that nothing orders races with one
    """

    def __init__(self, size: int) -> None:
        self.size = size
        self.first: np.ndarray | None = None
        self.second: np.ndarray | None = None
        self.far: np.ndarray | None = None

    def begin(self) -> np.ndarray:
        """Return the last touches, with room for them from now on."""
        if self.first is None:
            self.first = np.full(self.size, -1, np.int64)
        return self.first

    def more(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the other touches, and which are far, with room for them from now on."""
        if self.second is None or self.far is None:
            self.second, self.far = np.full(self.size, -1, np.int64), np.zeros(self.size, bool)
        return self.second, self.far

    def kept(self) -> tuple[np.ndarray, ...]:
        """Return the arrays of touches, `first` and `second`, as far as there are any."""
        return tuple(rows for rows in (self.first, self.second) if rows is not None)

    def change(self, size: int, rule: Callable[[np.ndarray], np.ndarray]) -> None:
        """Make what is known of `size` elements from what is known of those till now."""
        self.size = size
        for name in ("first", "second", "far"):
            rows = getattr(self, name)
            setattr(self, name, None if rows is None else rule(rows))


class Shadow:
    """A shadow knows who touched each element of an array, and finds accesses in no order.

    Two threads are ordered by a barrier if they are of one block, by `syncwarp` too if they are of
    one warp, and any two by fences and atomics. Atomics do not race with each other.
    Of the readers, and of those who update, two are kept that are as far from each other as any:
    of two blocks, else of two warps, else two lanes. Whoever races with any of them races with one
    of these two. Of those who write, the last one is kept, and of those it raced with one that is
    as far from it as any.

    size : elements; threads : of a block; lanes : of the launch, numbered block by block
    unit : bytes of an element, where the memory has views of several types
    first_reads : the lines whose reads a compare-and-swap of the same thread repeats
    """

    unit = 0

    def __init__(
        self, size: int, threads: int, lanes: int, releases: Releases | None = None
    ) -> None:
        self.size, self.threads = size, threads
        self.releases = releases or Releases()
        self.visits = Visits(lanes)
        self.floor = 0  # touches below come before whatever follows
        self.fences = 0  # of the launch, before what is done now
        self.writers, self.readers, self.updaters = Touched(size), Touched(size), Touched(size)
        self.against = {  # what reads, writes and atomics clash with
            "read": (self.writers, self.updaters),
            "write": (self.writers, self.readers, self.updaters),
            "atomic": (self.writers, self.readers),
        }
        self.first_reads: set[int] = set()
        self.last_reads: dict[int, tuple[Any, Any]] = {}

    def read(self, at: np.ndarray, lane: np.ndarray, now: Now) -> tuple[Clash, ...]:
        """Note that `lane` reads the elements `at`; what it clashes with."""
        if len(at) == 1 and self.one("read", int(at[0]), int(lane[0]), now):
            return ()
        self.last_reads[now.line] = at, lane
        clashes = self._clashes("read", at, lane, now, write=self.writers, atomic=self.updaters)
        self._keep(self.readers, at, lane, now)
        return clashes

    def write(self, at: np.ndarray, lane: np.ndarray, now: Now) -> tuple[Clash, ...]:
        """Note that `lane` writes the elements `at`; what it clashes with."""
        if len(at) == 1 and self.one("write", int(at[0]), int(lane[0]), now):
            return ()
        clashes = self._clashes(
            "write", at, lane, now, write=self.writers, read=self.readers, atomic=self.updaters
        )
        last, touches = self.writers.begin(), self.visits.touches(lane, now, self.fences)
        last[at] = touches
        stays = last[at]
        lost = stays != touches
        if lost.any():
            clashes += (Clash(("write", "write"), lost, stays, self.visits, at_once=True),)
        for clash in clashes:
            if clash.ops == ("write", "write"):
                which = np.flatnonzero(clash.lanes)
                other = (touches if clash.at_once else clash.touches)[which]
                lanes = self.visits.lanes(other)
                self._keep_beside(self.writers, at[which], lanes, other, now.of(which))
        return clashes

    def atomic(self, at: np.ndarray, lane: np.ndarray, now: Now) -> tuple[Clash, ...]:
        """Note that `lane` updates the elements `at` by an atomic; what it clashes with."""
        if len(at) == 1 and self.one("atomic", int(at[0]), int(lane[0]), now):
            return ()
        clashes = self._clashes("atomic", at, lane, now, write=self.writers, read=self.readers)
        self._keep(self.updaters, at, lane, now)
        return clashes

    def compare(self, at: np.ndarray, lane: np.ndarray) -> None:
        """Note that `lane` compares the elements `at` by an atomic with what it has read."""
        keys = None
        for line in self.last_reads.keys() - self.first_reads:
            keys = at * (self.visits.low + 1) + lane if keys is None else keys
            read, reader = self.last_reads[line]
            if np.isin(keys, read * (self.visits.low + 1) + reader).any():
                self.first_reads.add(line)

    def one(self, op: str, at: int, lane: int, now: Now) -> bool:
        """Note that one lane touches an element, if it clashes with nothing; whether it is so.

        What is done for many lanes takes ten times as long for one.
        """
        return now.heard is None and self._one(op, at, lane, now.of_one())

    def _one(self, op: str, at: int, lane: int, now: Now) -> bool:
        """Do what `one` does at a moment in plain numbers."""
        for touched in self.against[op]:
            if touched.first is not None and self._one_races(touched.first.item(at), lane, now):
                return False
            if touched.second is not None and self._one_races(touched.second.item(at), lane, now):
                return False
        touch = self.visits.touch(lane, now, self.fences)
        if op == "write":
            self.writers.begin()[at] = touch
        elif op == "atomic":
            self._keep_one(self.updaters, at, lane, touch, now)
        else:
            self._keep_one(self.readers, at, lane, touch, now)
            self.last_reads[now.line] = at, lane
        return True

    def raced(self, lane: int, now: Now) -> np.ndarray:
        """Mark the elements of which nothing puts another lane's touch before what a lane does."""
        marks = np.zeros(self.size, bool)
        for touched in (self.writers, self.readers, self.updaters):
            for rows in touched.kept():
                others = np.flatnonzero((rows >= self.floor) & (self.visits.lanes(rows) != lane))
                races = self._unordered(rows[others], np.full(len(others), lane), now)
                if races is not None:
                    marks[others[races]] = True
        return marks

    def _one_races(self, touch: int, lane: int, now: Now) -> bool:
        """Say whether a touch is one by another lane that nothing puts before now."""
        other, threads = touch & self.visits.low, self.threads
        if touch < self.floor or other == lane:
            return False
        _, epoch, sync, fences = self.visits.listed[touch >> self.visits.bits]
        if epoch < now.epoch and lane // threads == other // threads:  # a barrier came between
            return False
        if sync < now.sync and lane // WARP == other // WARP:
            return False
        if not self.fences or now.lane is None:
            return True
        me, old = now.lane, (other + now.lane - lane, epoch, fences, sync)
        if self.releases.under_way:
            asked = np.array([old[0]]), np.array([fences]), np.array([me])
            if self.releases.told(*asked, threads)[0]:
                return False
        return not self.releases.orders(old, me, now.epoch, threads, now.sync)

    def _keep_one(self, kept: Touched, at: int, lane: int, touch: int, now: Now) -> None:
        """Do for one lane what `_keep` and `_keep_beside` do for many."""
        if kept.far is not None and not self.fences and kept.far.item(at):
            return
        first, low = kept.begin(), self.visits.low
        if not self._one_races(first.item(at), lane, now):
            first[at] = touch
            return
        second, far = kept.more()
        known, last = second.item(at), first.item(at) & low
        apart = _distance(last, lane, self.threads)
        before = _distance(last, known & low, self.threads)
        if apart and (apart > before or not self._one_races(known, lane, now)):
            second[at], before = touch, apart
        far[at] = before == 3

    def _clashes(
        self, op: str, at: np.ndarray, lane: np.ndarray, now: Now, **others: Touched
    ) -> tuple[Clash, ...]:
        """Return the clashes of the access with those of `others`, each by what it does."""
        found = []
        for other, touched in others.items():
            for rows in touched.kept():
                touches = rows[at]
                races = self._unordered(touches, lane, now)
                if races is not None:
                    found.append(Clash((op, other), races, touches, self.visits))
        return tuple(found)

    def _unordered(self, touches: np.ndarray, lane: np.ndarray, now: Now) -> np.ndarray | None:
        """Mark touches by another lane that nothing puts before now; None where there is none."""
        if touches.max(initial=-1) < self.floor:
            return None
        if len(touches) == 1 and now.heard is None:
            races = self._one_races(touches.item(), lane.item(), now.of_one())
            return np.array([True]) if races else None
        plain = type(now.epoch) is type(now.sync) is int and not self.releases.under_way
        if plain and now.heard is None and (touches == touches[0]).all():
            known = now.lane is None or bool((now.lane - lane == now.lane[0] - lane[0]).all())
            races = self._unordered_by(int(touches[0]), lane, now) if known else None
            if known:
                return races if races.any() else None
        races = (touches >= self.floor) & (self.visits.lanes(touches) != lane)
        which = np.flatnonzero(races)
        if len(which):
            races[which] = ~self._ordered(touches[which], lane[which], now.of(which))
        return races if races.any() else None

    def _unordered_by(self, touch: int, lane: np.ndarray, now: Now) -> np.ndarray:
        """Mark the lanes of an access to one element that nothing puts after a touch of it."""
        other, visit = touch & self.visits.low, touch >> self.visits.bits
        _, epoch, sync, fences = self.visits.listed[visit]
        races = lane != other
        if epoch < now.epoch:
            races &= lane // self.threads != other // self.threads
        if sync < now.sync:
            races &= lane // WARP != other // WARP
        if not self.fences or now.lane is None:
            return races
        old = other + int(now.lane[0] - lane[0]), epoch, fences, sync
        if not self.releases.may_release(old, self.threads):
            return races
        which = np.flatnonzero(races)
        lanes = now.lane[which]
        for block, some in together(np.zeros_like(lanes), lanes, self.threads):
            asked = block, lanes[some].tolist(), now.epoch, self.threads
            ordered = self.releases.order(old, *asked, [now.sync] * len(lanes[some]))
            races[which[some]] = np.logical_not(ordered)
        return races

    def _ordered(self, touches: np.ndarray, lane: np.ndarray, now: Now) -> np.ndarray:
        """Whether a barrier, a `syncwarp` or a release puts each touch of another lane before."""
        other = self.visits.lanes(touches)
        _, epoch, sync, fences = self.visits.moments(touches)
        ordered = (lane // self.threads == other // self.threads) & (epoch < now.epoch)
        known = now.sync if now.heard is None else now.heard[now.hearer, other % WARP]
        ordered |= (lane // WARP == other // WARP) & (sync < known)
        if self.fences and now.lane is not None:
            others, epochs = other + (now.lane - lane), np.broadcast_to(now.epoch, lane.shape)
            if self.releases.under_way:
                ordered |= self.releases.told(others, fences, now.lane, self.threads)
            # Most launches have no flags, of which lanes would be asked one by one.
            which = np.flatnonzero(~ordered) if self.releases.of_block else np.arange(0)
            heard = [known for _, known in now.of(which).syncs.each(len(which))]
            for block, some in together(touches[which], now.lane[which], self.threads):
                first, lanes = which[some.start], now.lane[which[some]].tolist()
                old = tuple(int(part[first]) for part in (others, epoch, fences, sync))
                asked = block, lanes, int(epochs[first]), self.threads, heard[some]
                ordered[which[some]] = self.releases.order(old, *asked)
        return ordered

    def _keep(self, kept: Touched, at: np.ndarray, lane: np.ndarray, now: Now) -> None:
        """Note an access among those that may be concurrent, two of which are kept."""
        if kept.far is not None and not self.fences:
            near = np.flatnonzero(~kept.far[at])
            if len(near) == 0:
                return
            if len(near) < len(at):
                at, lane, now = at[near], lane[near], now.of(near)
        first, touches = kept.begin(), self.visits.touches(lane, now, self.fences)
        races = self._unordered(first[at], lane, now)
        if races is None:
            first[at] = touches
        else:
            first[at[~races]] = touches[~races]
        beside = np.flatnonzero(self.visits.lanes(first[at]) != lane)
        if len(beside):
            self._keep_beside(kept, at[beside], lane[beside], touches[beside], now.of(beside))

    def _keep_beside(
        self, kept: Touched, at: np.ndarray, lane: np.ndarray, touches: np.ndarray, now: Now
    ) -> None:
        """Keep touches that are concurrent with the last ones, where they are farther away."""
        second, far = kept.more()
        races = self._unordered(second[at], lane, now)
        free = np.ones(len(at), bool) if races is None else ~races
        last = self.visits.lanes(kept.begin()[at])
        apart = distance(last, lane, self.threads)
        known = distance(last, self.visits.lanes(second[at]), self.threads)
        for step in (1, 2, 3):
            put = (apart == step) & (free | (known < step))
            if put.any():
                second[at[put]] = touches[put]
                known = distance(last, self.visits.lanes(second[at]), self.threads)
        far[at] = known == 3


def _distance(a: int, b: int, threads: int) -> int:
    """The `distance` of two lanes."""
    block = a // threads != b // threads
    return (a != b) + (block or a // WARP != b // WARP) + block
