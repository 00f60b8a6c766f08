"""What a builtin may ask of the machine: a batch with its memory, and how it computes and waits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from gemmlab.simt.builtins.async_copies import Copies
from gemmlab.simt.builtins.under_way import UnderWay
from gemmlab.simt.memory.batch import MemoryBatch
from gemmlab.simt.memory.memory import Memory
from gemmlab.simt.numbers.lanes import Mask
from gemmlab.simt.report.report import Report
from gemmlab.simt.report.tally import Tally


class Operations(Protocol):
    """Operators of a kernel, computed as Numba types them, and counted."""

    def binary(self, op: str, a: Any, b: Any, line: int) -> Any: ...

    def unary(self, op: str, a: Any, line: int) -> Any: ...

    def not_(self, value: Any) -> Any: ...

    def compare(self, op: str, a: Any, b: Any, line: int) -> Any: ...

    def fma(self, a: Any, b: Any, c: Any, line: int) -> Any: ...


class Loops(Protocol):
    """How lanes wait for others in one instruction, and how a launch begins anew for that."""

    def await_(
        self, line: int, mask: Mask, condition: Callable[[], bool], words: Callable[[], str]
    ) -> None: ...

    def divide(self) -> None: ...


class BuiltinBatch(MemoryBatch, Protocol):
    """A batch of blocks as builtins see it: neither variables nor scopes, and no branches."""

    memory: Memory
    report: Report
    tally: Tally
    copies: Copies
    under_way: UnderWay | None
    operations: Operations
    loops: Loops
