"""Additions that meet at a few addresses wait for each other in the part of L2 that has them.

L2 consists of slices, and a slice makes one pass after another: it adds to all of a sector at once,
and to one address one number after another. Neighbouring lines are in the same slice or in a few,
so that a small array has few slices to itself. `python -m benchmarks.memory.meeting` measures how
many passes a second L2 makes then, by the lines to which all SMs add; decision 038.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import numpy as np

from gemmlab.compiled.forecast.executed import Executed
from gemmlab.compiled.forecast.power import of_chip
from gemmlab.compiled.forecast.traffic import array_of
from gemmlab.measure import store
from gemmlab.model.transactions import LINE, SECTORS

FILE = "meeting.json"
FLOATS, OTHERS = "float", "red"  # rows of additions in FP32, whose sums take longer, and others
ATOMICS = {"RED", "REDG", "ATOM", "ATOMG"}
MANY = 256  # lines: so many are all over L2, and wait for other things


@dataclass(frozen=True)
class Meeting:
    """A row of the record: additions to so many addresses, `apart` bytes from one to the next."""

    kind: str
    together: bool
    apart: int
    addresses: int
    rate: float


@lru_cache(maxsize=8)
def rates(device: str, root: str | Path = store.ROOT) -> Mapping[str, tuple[list, list]] | None:
    """Return passes a second by lines, for each kind of addition; None where not recorded."""
    path = of_chip(device, FILE, root)
    if path is None:
        return None
    rows = store.read(path, {"rows": Meeting}).tables["rows"]
    one_each = [row for row in rows if row.together and row.apart == LINE]
    return {
        kind: tuple(zip(*((r.addresses, r.rate) for r in one_each if r.kind == kind), strict=True))
        for kind in {row.kind for row in one_each}
    }


class Additions(NamedTuple):
    """Additions of one kind to one array, as far as they were executed.

    passes : that L2 makes for them; lines : to which they went, by block
    """

    passes: float
    lines: Mapping[int, set[int]]


NONE = Additions(0.0, {})


def meeting_time(executed: Executed) -> float:
    """Return the time that L2 needs for the additions of a launch that meet [s]."""
    known = rates(executed.device.name)
    if known is None or not any(i.name in ATOMICS for i in executed.code.instructions):
        return 0.0
    blocks = math.prod(executed.share.grid)
    seconds = 0.0
    for key, one in additions(executed).items():
        array, kind = key
        lines = all_lines(one.lines, executed.sizes[array], blocks)
        if lines < MANY:
            passes = executed.of_all(lambda run, key=key: additions(run).get(key, NONE).passes)
            seconds += blocks / executed.count * passes / float(np.interp(lines, *known[kind]))
    return seconds


@lru_cache(maxsize=16)
def additions(executed: Executed) -> Mapping[tuple[int, str], Additions]:
    """Count the additions to each array, in FP32 and others."""
    found: dict[tuple[int, str], Additions] = {}
    for at, cost in (told for visit in executed.visits for told in visit.costs):
        if cost.op != "atomic" or cost.space != "global" or not cost.pieces.size:
            continue
        flags = executed.code.instructions[at].modifiers
        key = array_of(cost.pieces), FLOATS if "F32" in flags else OTHERS
        passes, lines = found.get(key, Additions(0, {}))
        for warp, row in zip(cost.warps.tolist(), cost.pieces, strict=True):
            mine = lines.setdefault(warp // executed.warps, set())
            mine.update((row[row >= 0] // SECTORS).tolist())
        found[key] = Additions(passes + int(cost.partial.sum()), lines)
    return found


def all_lines(of_blocks: Mapping[int, set[int]], size: int, blocks: int) -> float:
    """Return to how many lines all blocks add, by those of a few: the same, or each to others.

    >>> all_lines({0: {1, 2}, 1: {1, 2}}, 1 << 20, 100), all_lines({0: {1}, 1: {2}}, 1 << 20, 100)
    (2, 100.0)
    """
    found, each = set().union(*of_blocks.values()), max(map(len, of_blocks.values()))
    if len(found) < 1.5 * each or len(of_blocks) == 1:
        return len(found)
    return min(size / LINE, len(found) * blocks / len(of_blocks))
