"""A builtin may ask this of the machine: a batch with its memory, and how it computes and waits."""

from collections.abc import Callable
from typing import Any, Protocol

from gemmlab.simt.builtins.async_copies import Copies
from gemmlab.simt.builtins.under_way import UnderWay
from gemmlab.simt.memory.batch import MemoryBatch
from gemmlab.simt.memory.memory import Memory
from gemmlab.simt.report.report import Report
from gemmlab.simt.report.tally import Tally


class Operations(Protocol):
    """Operators of a kernel, computed as Numba types them, and counted (`machine.operations`)."""

    binary: Callable[[str, Any, Any, int], Any]
    unary: Callable[[str, Any, int], Any]
    compare: Callable[[str, Any, Any, int], Any]
    not_: Callable[[Any], Any]
    fma: Callable[[Any, Any, Any, int], Any]


class Loops(Protocol):
    """Lanes wait here for others in one instruction, each warpgroup by itself (`machine.loops`)."""

    await_: Callable[..., None]
    divide: Callable[[], None]


class BuiltinBatch(MemoryBatch, Protocol):
    """A batch of blocks as builtins see it: it has no variables, scopes or branches for them."""

    memory: Memory
    report: Report
    tally: Tally
    copies: Copies
    under_way: UnderWay | None
    cluster: list[Any]
    operations: Operations
    loops: Loops
