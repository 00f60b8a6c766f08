"""A loop that runs thread by thread may ask this of the machine."""

from collections.abc import Callable
from typing import Any, Protocol

from gemmlab.simt.builtins.batch import BuiltinBatch
from gemmlab.simt.syntax.rewrite import Program


class Scope(Protocol):
    """What the names of a kernel mean (`machine.scope`)."""

    cuda: dict[str, Any]
    functions: dict[Any, Callable]
    program: Program
    translate: Callable[[Any], Any]


class Branches(Protocol):
    """Which ways of each `if` threads went (`machine.operations`)."""

    took: Callable[[int, bool, bool], None]


class LoopBatch(BuiltinBatch, Protocol):
    """A batch of blocks whose loops run thread by thread."""

    scope: Scope
    branches: Branches
