"""Shadow memory of shared arrays that also knows atomics and `syncwarp`.

Atomics do not race with each other; with a plain read or write of the same element by another
thread that no barrier orders, they do.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gemmlab.model.transactions import WARP
from gemmlab.simt.races.shadow import ROWS, Clash, Shadow, first_clash

SYNCS = 1 << 12  # waits of a warp within a barrier interval that are told apart


class SharedShadow(Shadow):
    """A `Shadow` that also knows who updated an element by an atomic, and who waits in a warp.

    After the first `syncwarp`, races between warps are found by a shadow of whole warps, and those
    within a warp by this one, whose intervals then end at each `syncwarp` too.
    """

    unit = 0  # bytes of what is tracked, where the memory has views of several types
    atomics: Shadow | None = None  # whose readers are the lanes that update
    warps: Shadow | None = None  # who touched what, by warp
    syncs: np.ndarray | None = None  # how often each warp has waited, (blocks, warps)

    def widen(self, blocks: int) -> None:
        """Give each block a row of its own."""
        super().widen(blocks)
        for shadow in (self.atomics, self.warps):
            if shadow is not None:
                shadow.widen(blocks)

    def refine(self, unit: int) -> None:
        """Track units of so many bytes from now on, where they are smaller than those till now."""
        for shadow in (self, self.atomics, self.warps) if unit < self.unit else ():
            if shadow is not None:
                shadow.settle()
                for name in ROWS:
                    rows = np.repeat(getattr(shadow, name), self.unit // unit, axis=1)
                    setattr(shadow, name, rows)
        self.unit = min(self.unit, unit)

    def order(self, syncs: np.ndarray) -> None:
        """From now on, `syncs` counts how often each warp has waited for its lanes."""
        if self.syncs is not None:
            return
        self.settle()
        self.syncs, self.warps = syncs, Shadow(self.writer.shape[1])
        self.warps.written_in = self.written_in
        for name in ROWS:
            rows = getattr(self, name)
            if name in ("writer", "reader", "other_reader"):
                setattr(self.warps, name, rows // WARP)
                continue
            setattr(self.warps, name, rows.copy())
            if name in ("write_epoch", "read_epoch"):
                rows *= np.where(rows < 0, 1, SYNCS).astype(np.int32)

    def read(self, at: tuple, thread: np.ndarray, epoch: Any, line: int = 0) -> Clash | None:
        """As `Shadow.read`; a clash with an atomic too."""
        clash = self._access("read", at, thread, epoch, line)
        return clash or self._updated(at, thread, epoch, ("read", "atomic"))

    def write(self, at: tuple, thread: np.ndarray, epoch: Any, line: int = 0) -> Clash | None:
        """As `Shadow.write`; a clash with an atomic too."""
        clash = self._access("write", at, thread, epoch, line)
        return clash or self._updated(at, thread, epoch, ("write", "atomic"))

    def _access(
        self, op: str, at: tuple, thread: np.ndarray, epoch: Any, line: int
    ) -> Clash | None:
        note = getattr(super(), op)
        if self.warps is None or self.syncs is None:
            return note(at, thread, epoch, line)
        known = [rows[at] for rows in (self.writer, self.reader, self.other_reader)]
        clash = getattr(self.warps, op)(at, thread // WARP, epoch, line)
        interval = epoch * SYNCS + self.syncs[at[0], thread // WARP] % SYNCS
        within = note(at, thread, np.asarray(interval).astype(np.int32), line)
        if clash is None or within is not None:
            return within
        warp = clash.other  # which of that warp's threads it was
        others = [int(k[clash.lane]) for k in known if k[clash.lane] // WARP == warp]
        return clash._replace(other=(others or [warp * WARP])[0])

    def _updated(
        self, at: tuple, thread: np.ndarray, epoch: Any, ops: tuple[str, str]
    ) -> Clash | None:
        if self.atomics is None:
            return None
        found = _readers_now(self.atomics, at, thread, epoch)
        if self.syncs is not None:
            found = [(now & (who // WARP != thread // WARP), who, row) for now, who, row in found]
        return _any_clash(found, ops, at)

    def atomic(self, at: tuple, thread: np.ndarray, epoch: Any, line: int = 0) -> Clash | None:
        """Note that `thread` updates the elements `at`; the first clash, if any."""
        if self.atomics is None:
            self.atomics = Shadow(self.writer.shape[1])
            self.atomics.widen(len(self.writer))
        self.atomics.read(at, thread, epoch, line)
        if self.warps is not None:
            known, lanes = self.warps, thread // WARP
        else:
            known, lanes = self, thread
        before = known.writer[at]
        written = (known.write_epoch[at] == epoch) & (before != lanes)
        clash = first_clash(written, self.writer[at], ("atomic", "write"), known.write_line, at)
        return clash or _any_clash(
            _readers_now(known, at, lanes, epoch, self), ("atomic", "read"), at
        )


def _any_clash(found: list, ops: tuple[str, str], at: tuple) -> Clash | None:
    clashes = (first_clash(lanes, other, ops, lines, at) for lanes, other, lines in found)
    return next((clash for clash in clashes if clash is not None), None)


def _readers_now(
    shadow: Shadow, at: tuple, thread: np.ndarray, epoch: Any, named: Shadow | None = None
) -> list[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Where another thread (or warp) reads in this interval, which (of `named`), and its lines."""
    shadow.settle(epoch)
    now, named = shadow.read_epoch[at] == epoch, named or shadow
    readers = shadow.reader[at], shadow.other_reader[at]
    names = named.reader[at], named.other_reader[at]
    lines = shadow.reader_line, shadow.other_line
    return [(now & (r != thread), *n) for r, *n in zip(readers, names, lines, strict=True)]
