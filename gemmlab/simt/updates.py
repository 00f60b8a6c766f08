"""Shadow memory that also knows atomics: what they may race with.

Atomics do not race with each other; with a plain read or write of the same element by another
thread that no barrier orders, they do.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gemmlab.model.transactions import WARP
from gemmlab.simt.hazards import Clash, GlobalShadow, Shadow

SYNCS = 1 << 12  # waits of a warp within a barrier interval that are told apart


class SharedShadow(Shadow):
    """A `Shadow` that also knows who updated an element by an atomic, and who waits in a warp.

    After the first `syncwarp`, races between warps are found by a shadow of whole warps, and those
    within a warp by this one, whose intervals then end at each `syncwarp` too.
    """

    atomics: Shadow | None = None  # whose readers are the lanes that update
    warps: Shadow | None = None  # who touched what, by warp
    syncs: np.ndarray | None = None  # how often each warp has waited, (blocks, warps)

    def widen(self, blocks: int) -> None:
        """Give each block a row of its own."""
        parts = {n: vars(self).pop(n, None) for n in ("atomics", "warps", "syncs")}
        super().widen(blocks)
        vars(self).update({n: part for n, part in parts.items() if part is not None})
        for shadow in (self.atomics, self.warps):
            if shadow is not None:
                shadow.widen(blocks)

    def order(self, syncs: np.ndarray) -> None:
        """From now on, `syncs` counts how often each warp has waited for its lanes."""
        if self.syncs is not None:
            return
        self.syncs, self.warps = syncs, Shadow(self.writer.shape[1])
        for name, rows in vars(self).items():
            if name in ("writer", "reader", "other_reader"):
                setattr(self.warps, name, rows // WARP)
            elif name in ("write_epoch", "read_epoch"):
                setattr(self.warps, name, rows.copy())
                rows *= np.where(rows < 0, 1, SYNCS).astype(np.int32)

    def read(self, at: tuple, thread: np.ndarray, epoch: Any) -> Clash | None:
        """As `Shadow.read`; a clash with an atomic too."""
        return self._access("read", at, thread, epoch) or self._updated(at, thread, epoch, "reads")

    def write(self, at: tuple, thread: np.ndarray, epoch: Any) -> Clash | None:
        """As `Shadow.write`; a clash with an atomic too."""
        clash = self._access("write", at, thread, epoch)
        return clash or self._updated(at, thread, epoch, "overwrites")

    def _access(self, op: str, at: tuple, thread: np.ndarray, epoch: Any) -> Clash | None:
        note = getattr(super(), op)
        if self.warps is None or self.syncs is None:
            return note(at, thread, epoch)
        known = [rows[at] for rows in (self.writer, self.reader, self.other_reader)]
        clash = getattr(self.warps, op)(at, thread // WARP, epoch)
        interval = epoch * SYNCS + self.syncs[at[0], thread // WARP] % SYNCS
        within = note(at, thread, np.asarray(interval).astype(np.int32))
        if clash is None or within is not None:
            return within
        lane, warp = clash[:2]  # which of that warp's threads it was
        others = [int(k[lane]) for k in known if k[lane] // WARP == warp]
        return Clash(lane, (others or [warp * WARP])[0], *clash[2:])

    def _updated(self, at: tuple, thread: np.ndarray, epoch: Any, verb: str) -> Clash | None:
        if self.atomics is None:
            return None
        found = _lanes_now(self.atomics, at, thread, epoch)
        if self.syncs is not None:
            found = [(now & (other // WARP != thread // WARP), other) for now, other in found]
        return _first(found, f"{verb} what thread {{}} updates")

    def atomic(self, at: tuple, thread: np.ndarray, epoch: Any) -> Clash | None:
        """Note that `thread` updates the elements `at`; the first clash, if any."""
        if self.atomics is None:
            self.atomics = Shadow(self.writer.shape[1])
            self.atomics.widen(len(self.writer))
        self.atomics.read(at, thread, epoch)
        if self.warps is not None:
            known, lanes = self.warps, thread // WARP
        else:
            known, lanes = self, thread
        before = known.writer[at]
        written = (known.write_epoch[at] == epoch) & (before != lanes)
        return _first([(written, self.writer[at])], "updates what thread {} wrote") or _first(
            _lanes_now(known, at, lanes, epoch, self), "updates what thread {} reads"
        )


def _lanes_now(
    shadow: Shadow, at: tuple, thread: np.ndarray, epoch: Any, named: Shadow | None = None
) -> list:
    """Where another thread (or warp) reads in this interval, and which; of `named`, by lanes."""
    now, named = shadow.read_epoch[at] == epoch, named or shadow
    readers = shadow.reader[at], shadow.other_reader[at]
    names = named.reader[at], named.other_reader[at]
    return [(now & (r != thread), name) for r, name in zip(readers, names, strict=True)]


def _first(clashes: list, text: str) -> Clash | None:
    for clash, other in clashes:
        if clash.any():
            i = int(clash.argmax())
            return Clash(i, int(other[i]), text, int(clash.sum()))
    return None


class GlobalAtomicShadow(GlobalShadow):
    """A `GlobalShadow` that also knows who updated an element by an atomic."""

    atomics: GlobalShadow | None = None

    def read(self, at: np.ndarray, lane: np.ndarray, threads: int, epoch: Any) -> Clash | None:
        """As `GlobalShadow.read`; a clash with an atomic too."""
        clash = super().read(at, lane, threads, epoch)
        return clash or self._updated(at, lane, threads, epoch, "reads what {} updates")

    def write(self, at: np.ndarray, lane: np.ndarray, threads: int, epoch: Any) -> Clash | None:
        """As `GlobalShadow.write`; a clash with an atomic too."""
        clash = super().write(at, lane, threads, epoch)
        return clash or self._updated(at, lane, threads, epoch, "overwrites what {} updates")

    def _updated(self, at: Any, lane: Any, threads: int, epoch: Any, text: str) -> Clash | None:
        if self.atomics is None:
            return None
        return _first(_lanes_of_grid(self.atomics, at, lane, threads, epoch), text)

    def atomic(self, at: np.ndarray, lane: np.ndarray, threads: int, epoch: Any) -> Clash | None:
        """Note that `lane` (over the whole grid) updates; the first clash, if any."""
        if self.atomics is None:
            self.atomics = GlobalShadow(len(self.writer))
        self.atomics.read(at, lane, threads, epoch)
        writer = self.writer[at]
        apart = (writer // threads != lane // threads) | (self.write_epoch[at] == epoch)
        written = (writer >= 0) & (writer != lane) & apart
        return _first([(written, writer)], "updates what {} wrote") or _first(
            _lanes_of_grid(self, at, lane, threads, epoch), "updates what {} reads"
        )


def _lanes_of_grid(shadow: GlobalShadow, at: Any, lane: Any, threads: int, epoch: Any) -> list:
    now = shadow.read_epoch[at] == epoch
    pairs = []
    for names, ordered in (
        (("visitor", "other_visitor"), False),
        (("reader", "other_reader"), now),
    ):
        for name in names:
            other = getattr(shadow, name)[at]
            apart = (other // threads != lane // threads) | ordered
            pairs.append(((other >= 0) & (other != lane) & apart, other))
    return pairs
