"""How much is on its way by `cp.async` while a learner's kernel reads shared memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any
from unittest.mock import patch

import numpy as np

from gemmlab.course.judging import guard
from gemmlab.course.judging.apart import apart
from gemmlab.course.judging.launches import SECONDS, Launch, here
from gemmlab.course.judging.verdict import Finding
from gemmlab.simt.builtins.under_way import Copies, Copy
from gemmlab.simt.memory.array import Array


def under_way(
    build: Callable, parameters: list[str], launches: Sequence[Launch]
) -> Iterator[int | Finding]:
    """For each launch, the bytes on their way at the loads of a thread, added up.

    Zeros that are written in place of what lies beyond a matrix are not on their way.
    """
    for item in apart(partial(_measured, build, parameters, launches), SECONDS):
        yield guard.cut_short(item, guard.file_of(build)) if guard.ended(item) else item


def _measured(
    build: Callable, parameters: list[str], launches: Sequence[Launch]
) -> Iterator[int | Finding]:
    with _watched() as seen:
        for item in here(build, parameters, launches):
            yield item if isinstance(item, Finding) else sum(seen.values())
            seen.clear()


@contextmanager
def _watched() -> Iterator[dict[tuple, int]]:
    """For a while the loads from shared memory note what is on its way then [B].

    An element that thread 0 loads again before it commits another group is noted once: loads for
    show count nothing.
    """
    check = Copies.check
    seen: dict[tuple, int] = {}

    def watching(
        copies: Copies, m: Any, line: int, op: str, array: Array, at: Any, mask: Any
    ) -> None:
        if op == "read":
            element, groups = m.lanes.spread(at).flat[0], np.max(copies.committed)
            coming = sum(_bytes(m, copy) for copy in copies.pending)
            seen.setdefault((array.name, int(element), int(groups)), coming)
        check(copies, m, line, op, array, at, mask)

    with patch.object(Copies, "check", watching):
        yield seen


def _bytes(m: Any, copy: Copy) -> int:
    """What the lanes of a copy read from global memory."""
    lanes = m.lanes.full(copy.mask)
    read = (lanes if from_there is None else lanes & m.lanes.full(from_there)
            for from_there in copy.read)  # fmt: skip
    return sum(int(each.sum()) for each in read) * copy.to.itemsize
