"""A loop that runs thread by thread may ask this of the machine."""

from collections.abc import Callable, Mapping
from typing import Any, Protocol

import numpy as np

from gemmlab.simt.builtins.batch import BuiltinBatch, Loops
from gemmlab.simt.memory.array import Array
from gemmlab.simt.numbers.lanes import Lanes
from gemmlab.simt.syntax.rewrite import Program


class Scope(Protocol):
    """What the names of a kernel mean (`machine.scope`)."""

    cuda: dict[str, Any]
    functions: dict[Any, Callable]
    program: Program
    translate: Callable[[Any], Any]
    bound: Callable[..., Callable]


class Branches(Protocol):
    """Which ways of each `if` threads went (`machine.operations`)."""

    took: Callable[[int, bool, bool], None]


class LoopBatch(BuiltinBatch, Protocol):
    """A batch of blocks whose loops run thread by thread."""

    scope: Scope
    branches: Branches


class LoneLoops(Loops, Protocol):
    """The loops in which a lane is (`machine.loops`)."""

    open: list[Any]
    steps: int
    max_steps: int
    begin: Callable[[], None]
    look: Callable[[Any, dict], None]
    end: Callable[[], Any]


class LoneBatch(LoopBatch, Protocol):
    """A block whose lanes run one by one."""

    loops: LoneLoops


class LaneTally(Protocol):
    """What each lane has done is kept here, to be counted by warps (`machine.machine`)."""

    lanes: Lanes
    ticks: dict[tuple, np.ndarray]
    accesses: dict[tuple, tuple[Array, Mapping[int, list[int]]]]
