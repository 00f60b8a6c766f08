"""Watchers of accesses: a trace of chosen lines, and the share of each thread in the traffic."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np

from gemmlab.model import transactions
from gemmlab.simt.memory.array import Array
from gemmlab.simt.memory.batch import MemoryBatch
from gemmlab.simt.numbers.lanes import Dim3, Mask
from gemmlab.simt.syntax.source import Source

EXECUTIONS = 8  # kept of each access of a line


@dataclass(frozen=True)
class Access:
    """One access of the warps of block 0.

    line, op : where, and "load", "store" or "atomic"; space : "global" or "shared"
    array, itemsize : the array's name, and the bytes of an element
    turn : how often this access had been made before
    addresses : (warps, 32) bytes from the array's start; active : (warps, 32), the lanes that run
    merges : whether shared memory may serve neighbouring groups of lanes at once
    """

    line: int
    op: str
    space: str
    array: str
    itemsize: int
    turn: int
    addresses: np.ndarray = field(repr=False)
    active: np.ndarray = field(repr=False)
    merges: bool

    @property
    def sectors(self) -> np.ndarray:
        """32-byte sectors that each warp touches, (warps,)."""
        return transactions.sectors(self.addresses, self.active)

    @property
    def wavefronts(self) -> np.ndarray:
        """Wavefronts of shared memory for each warp, (warps,)."""
        taken, _ = transactions.SHARED_PASSES[self.merges]
        return taken(self.addresses, self.active, self.itemsize)

    def groups(self, warp: int) -> list[np.ndarray]:
        """Give the lanes of a warp, in the groups that shared memory serves one after the other."""
        return transactions.served_together(
            self.addresses[warp], self.active[warp], self.itemsize, self.merges
        )


class Trace:
    """Keeps the first accesses of `lines` of `file`, in the order of execution: `accesses`."""

    def __init__(self, lines: Iterable[int], file: str) -> None:
        self.lines, self.file = frozenset(lines), file
        self.accesses: list[Access] = []
        self.turns: Counter[tuple] = Counter()

    @classmethod
    def of(cls, chosen: Any, source: Source) -> Self:
        """Return a trace of a line, given by its number or by a part of its text, or of several.

        Raises ValueError for a line that the kernel does not have.
        """
        chosen = chosen if isinstance(chosen, (tuple, list, set, frozenset)) else (chosen,)
        numbered = dict(enumerate(source.lines, source.first_line))
        lines: set[int] = set()
        for one in chosen:
            if not isinstance(one, (int, str)):
                raise TypeError(f"trace={one!r} is not a line; use its number or a part of it")
            found = {n for n, text in numbered.items() if (one in text if isinstance(one, str)
                                                           else one == n)}  # fmt: skip
            if not found:
                raise ValueError(
                    f"trace={one!r} is no line of {source.tree.name}; use a number from "
                    f"{source.first_line} to {source.first_line + len(source.lines) - 1}, "
                    "or a part of a line's text"
                )
            lines |= found
        return cls(lines, source.file)

    def watch(self, m: MemoryBatch, line: int, op: str, array: Array, at: Any, mask: Mask) -> None:
        """Keep this access of block 0, if its line is traced and few of its kind are kept."""
        key = (line, op, array.space, array.name)
        if line not in self.lines or m.calls.source.file != self.file:
            return
        if m.lanes.blocks[0, 0] or self.turns[key] >= EXECUTIONS:
            return
        at, on = m.lanes.warps_of(at, mask)
        if not on[0].any():
            return
        size, turn = array.itemsize, self.turns[key]
        self.accesses.append(Access(*key, size, turn, at[0] * size, on[0].copy(), array.merges(op)))
        self.turns[key] += 1


class Shares:
    """The share of each thread in the traffic of a launch.

    bytes : (op, array's name) -> bytes by block and thread, (blocks, threads)
    shared_bytes : shared arrays of a fixed size that a block has
    """

    def __init__(self, grid: Dim3, block: Dim3) -> None:
        self.shape = (int(np.prod(grid)), int(np.prod(block)))
        self.bytes: dict[tuple[str, str], np.ndarray] = {}
        self.shared_bytes = 0

    def watch(self, m: MemoryBatch, line: int, op: str, array: Array, at: Any, mask: Mask) -> None:
        """Add the bytes of one access to those of its threads."""
        key = (op, array.name)
        if key not in self.bytes:
            self.bytes[key] = np.zeros(self.shape, np.int64)
        first = int(m.lanes.blocks[0, 0])  # the blocks of a batch follow each other
        rows = self.bytes[key][first : first + len(m.lanes.blocks)]
        if mask is None:
            rows += array.itemsize
        else:
            rows += m.lanes.full(mask)[:, : self.shape[1]] * np.int64(array.itemsize)
        self.shared_bytes = m.memory.static_bytes

    def of(self, op: str, *arrays: str) -> np.ndarray:
        """Return the bytes that each thread loads from or stores to `arrays`, (blocks, threads)."""
        found = [self.bytes[op, name] for name in arrays if (op, name) in self.bytes]
        return sum(found, np.zeros(self.shape, np.int64))
