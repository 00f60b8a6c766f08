"""Arithmetic of a kernel, and the count of what it executes.

Each operation of the source counts as one instruction of every warp with an active lane:
`inst_executed`, and `thread_inst_executed` for the active lanes, as Nsight Compute's
smsp__inst_executed and smsp__thread_inst_executed. They are split into `inst_fp`, `inst_integer`,
`inst_control` (branches and loops), `inst_{global,shared,local,constant}_{load,store}`,
`inst_atomic`, `inst_barrier`, `inst_shuffle`, `inst_vote` and, of `gemmlab.instructions`,
`inst_mma`, `inst_ldmatrix`, `inst_stmatrix`, `inst_wmma_{load,store}`, `inst_convert` and
`inst_async_{copy,commit,wait}`. A compiler emits more for some
operations (a division), fewer for others (what it hoists out of a loop, merges or leaves out), so
these compare lines and kernels with each other, not with the hardware's counts.
"""

from __future__ import annotations

import operator
from collections import Counter
from types import SimpleNamespace
from typing import Any

import numpy as np

from gemmlab.model.transactions import WARP
from gemmlab.simt import arithmetic
from gemmlab.simt.masks import Mask, both
from gemmlab.simt.report import Report
from gemmlab.simt.source import Source
from gemmlab.simt.whole_grid import check_absent

COMPARE = {
    "Eq": operator.eq,
    "NotEq": operator.ne,
    "Lt": operator.lt,
    "LtE": operator.le,
    "Gt": operator.gt,
    "GtE": operator.ge,
}


class Operations:
    """What the rewritten operators of a kernel call; a part of `Machine`."""

    masks: list[Mask]
    frames: list[SimpleNamespace]
    report: Report
    blocks: np.ndarray
    threads: int
    line: int
    contract: bool
    absent: Mask  # lanes that did not come to the last wait of the whole grid
    running: dict[int, tuple[Mask, int, int]]  # warps and lanes of the masks met last, by id

    def enter(self, source: Source) -> None:
        """Begin the function of `source`: what it executes is counted for its lines."""
        self.frames[-1].source, self.frames[-1].tallies = source, {}

    def tick(self, line: int, kind: str) -> None:
        """Count an operation of `line` as one instruction of each warp with an active lane."""
        mask = self.masks[-1]
        found = self.running.get(id(mask))
        if found is None:  # keeping the mask keeps its id from being used again
            if len(self.running) >= 64:
                self.running.clear()
            if self.absent is not False:
                check_absent(self, mask, line)
            found = self.running[id(mask)] = (mask, *self._active(mask))
        tallies = self.frames[-1].tallies
        counter = tallies.get(line)
        if counter is None:
            counter = tallies[line] = self._counter(line)
        _, warps, lanes = found
        if warps:
            counter["inst_executed"] += warps
            counter["thread_inst_executed"] += lanes
            counter[kind] += warps

    def _counter(self, line: int) -> Counter:
        """The counters of `line` of the function that runs."""
        source = self.frames[-1].source
        self.report.count(source, line, "inst_executed", 0)
        return self.report.by_file[source.file][line]

    def _active(self, mask: Mask) -> tuple[int, int]:
        """Warps with an active lane, and active lanes."""
        if mask is False:
            return 0, 0
        if mask is None:
            lanes = len(self.blocks) * self.threads
            return lanes // WARP, lanes
        on = np.broadcast_to(mask, (mask.shape[0], self.threads))
        times = len(self.blocks) // mask.shape[0]
        return (
            int(on.reshape(-1, WARP).any(axis=1).sum()) * times,
            int(np.count_nonzero(on)) * times,
        )

    def binary(self, op: str, a: Any, b: Any, line: int) -> Any:
        """`a op b` for each lane."""
        result = arithmetic.binary(op, a, b)
        self.tick(line, "inst_fp" if result.dtype.kind in "fc" else "inst_integer")
        return result

    def unary(self, op: str, a: Any, line: int) -> Any:
        """`op a` for each lane."""
        result = arithmetic.unary(op, a)
        self.tick(line, "inst_fp" if result.dtype.kind in "fc" else "inst_integer")
        return result

    def compare(self, op: str, a: Any, b: Any, line: int) -> Any:
        """A comparison for each lane."""
        result = COMPARE[op](a, b)
        floats = "f" in (getattr(getattr(v, "dtype", None), "kind", "") for v in (a, b))
        self.tick(line, "inst_fp" if floats else "inst_integer")
        return result

    def fused_left(self, op: str, a: Any, b: Any, c: Any, line: int) -> Any:
        """The sum a·b ± c: one instruction where the machine contracts, else two."""
        if not (self.contract and arithmetic.fuses(a, b, c)):
            return self.binary(op, self.binary("Mult", a, b, line), c, line)
        self.tick(line, "inst_fp")
        return arithmetic.fma(a, b, c if op == "Add" else -c)

    def fused_right(self, op: str, c: Any, a: Any, b: Any, line: int) -> Any:
        """The sum c ± a·b: one instruction where the machine contracts, else two."""
        if not (self.contract and arithmetic.fuses(a, b, c)):
            return self.binary(op, c, self.binary("Mult", a, b, line), line)
        self.tick(line, "inst_fp")
        return arithmetic.fma(a if op == "Add" else -a, b, c)

    def fma(self, a: Any, b: Any, c: Any) -> Any:
        """`cuda.fma`: a·b + c, rounded once."""
        self.tick(self.line, "inst_fp")
        if not all(getattr(v, "dtype", np.dtype(bool)).kind == "f" for v in (a, b, c)):
            a, b, c = (np.asarray(v).astype(np.float64)[()] for v in (a, b, c))
        return arithmetic.fma(a, b, c)

    def item(self, items: tuple, index: Any, line: int) -> Any:
        """The item of a tuple of each active lane; a negative index counts from its end."""
        count, mask = len(items), self.masks[-1]
        if np.ndim(index) == 0 and -count <= index < count:
            return items[int(index)]
        outside = both(mask, np.less(index, -count) | np.greater_equal(index, count))
        if outside is not False:
            wrong = np.broadcast_to(index, (len(self.blocks), self.threads))[self.full(outside)][0]
            raise IndexError(f"line {line}: there is no item {wrong} in a tuple of {count}")
        if len({np.asarray(item).dtype for item in items}) > 1:
            raise TypeError(f"line {line}: lanes pick from a tuple whose items differ in type")
        return np.choose(index % count, items)
