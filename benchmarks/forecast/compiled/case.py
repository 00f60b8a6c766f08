"""The shape of a kernel of another compiler: how it is made, launched at any size, and checked."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

HERE = Path(__file__).parent


class Launch(NamedTuple):
    """One launch: the grid, and the arguments as C has them, arrays and NumPy's numbers."""

    grid: int | tuple[int, ...]
    arguments: tuple[Any, ...]


@dataclass(frozen=True)
class Made:
    """Triton makes a kernel of formats of arguments, constants and options."""

    arguments: Mapping[str, str]
    constants: Mapping[str, int]
    options: Mapping[str, int] = field(default_factory=lambda: {"num_warps": 4})


@dataclass(frozen=True)
class Case:
    """A kernel of another compiler is predicted, then timed.

    name : of the kernel, and of its file in `cuda` or in `triton`
    idea : what it does, in a few words
    launch : size -> the launch, its data seeded
    check : the arguments after the launch -> pairs of what is there and what NumPy says, with the
        difference allowed where rounding decides
    size, small : what is timed; what is executed here in a second
    block : of a CUDA C++ kernel; Triton's cubins say theirs
    made : how Triton makes it; None for nvcc
    """

    name: str
    idea: str
    launch: Callable[[int], Launch]
    check: Callable[..., Iterable[tuple]]
    size: int
    small: int
    block: int | tuple[int, ...] | None = None
    made: Made | None = None

    @property
    def compiler(self) -> str:
        return "nvcc" if self.made is None else "Triton"

    @property
    def source(self) -> Path:
        return HERE / (f"cuda/{self.name}.cu" if self.made is None else f"triton/{self.name}.py")

    @property
    def source_sha256(self) -> str:
        """Hash the kernel's file as it is."""
        return hashlib.sha256(self.source.read_bytes()).hexdigest()
