"""The shape of a kernel that is no GEMM: its launch at any size, and what it must leave behind."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks.fingerprint import fingerprint

HERE = Path(__file__).parent / "kernels"
IRREGULAR = "with atomics or gathers"
REGULAR = "without atomics or gathers"
CLASSES = (REGULAR, IRREGULAR)


class Launch(NamedTuple):
    """One launch: the grid, the block, and the arguments, arrays and NumPy's numbers."""

    grid: int | tuple[int, ...]
    block: int | tuple[int, ...]
    arguments: tuple[Any, ...]


@dataclass(frozen=True)
class Case:
    """A kernel that is predicted, then timed.

    kernel : a plain function of Numba-CUDA
    launch : size -> the launch, its data seeded
    check : the arguments after the launch -> pairs of what is there and what NumPy says, with the
        difference allowed where rounding decides, as `benchmarks.samples.realistic` has them
    size, small : what is timed; what a simulator runs in a second
    kind : one of `CLASSES`
    options : of `numba.cuda.jit`
    """

    kernel: Callable
    launch: Callable[[int], Launch]
    check: Callable[..., Iterable[tuple]]
    size: int
    small: int
    kind: str = REGULAR
    options: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.kind not in CLASSES:
            raise ValueError(f"kind={self.kind!r} is not one of {', '.join(CLASSES)}")

    @property
    def name(self) -> str:
        """That of its file."""
        return self.kernel.__module__.rpartition(".")[2]

    @property
    def idea(self) -> str:
        """The first line of its file."""
        return import_module(self.kernel.__module__).__doc__.partition("\n")[0]

    @property
    def source_sha256(self) -> str:
        """Hash its file: the kernel, its data and its sizes."""
        return fingerprint(inspect.getsource(import_module(self.kernel.__module__)))


@cache
def cases() -> dict[str, Case]:
    """All of them by name, one of each file in `kernels`."""
    files = sorted(path.stem for path in HERE.glob("*.py") if path.stem != "__init__")
    return {
        name: import_module(f"benchmarks.forecast.others.kernels.{name}").CASE for name in files
    }


def compared(found: np.ndarray, expected: np.ndarray, magnitudes: np.ndarray, terms: int) -> tuple:
    """A pair of sums of `terms` numbers in the format of `found`, as parts of their magnitudes.

    Rounding errors of n additions are ε·√n of Σ|x| where they are independent.
    Source: Higham, Accuracy and Stability of Numerical Algorithms, section 2.8.
    """
    epsilon = float(np.finfo(found.dtype).eps)
    return found / magnitudes, expected / magnitudes, max(64, 4 * terms**0.5) * epsilon
