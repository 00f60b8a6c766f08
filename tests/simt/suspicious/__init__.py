"""Kernels that are wrong in a way that is easy to write, and right ones that look as wrong.

In a wrong kernel `# fault` marks the line at which the hazard is to be found. Its right twin is in
the same source: without the lines that end in `# wrong`, and with what follows `# right:`. So the
finding is known to be due to that slip alone.
"""

from __future__ import annotations

import inspect
import linecache
import textwrap
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

RIGHT = "# right: "


@dataclass(frozen=True)
class Trial:
    """A kernel and a launch of it.

    kind : of the hazard that it has, "" for a right one
    why : the misconception; of a right one, what makes it look wrong
    arguments : makes them, anew for each launch
    result : what the last argument holds afterwards, for a right kernel
    """

    kernel: Callable
    kind: str
    why: str
    grid: Any
    block: Any
    arguments: Callable[[], tuple]
    result: np.ndarray | None = None
    shared_bytes: int = 0

    @property
    def name(self) -> str:
        """The name of the kernel."""
        return self.kernel.__name__


def wrong(trials: list[Trial], kind: str, why: str, grid: Any, block: Any, *arguments: Any,
          shared_bytes: int = 0) -> Callable:  # fmt: skip
    """Add a wrong kernel to `trials`."""

    def add(kernel: Callable) -> Callable:
        make = _copies(arguments)
        trials.append(Trial(kernel, kind, why, grid, block, make, shared_bytes=shared_bytes))
        return kernel

    return add


def right(trials: list[Trial], why: str, grid: Any, block: Any, *arguments: Any, result: Any,
          shared_bytes: int = 0) -> Callable:  # fmt: skip
    """Add a right kernel to `trials`, whose last argument becomes `result`."""

    def add(kernel: Callable) -> Callable:
        make = _copies(arguments)
        trials.append(Trial(kernel, "", why, grid, block, make, np.asarray(result), shared_bytes))
        return kernel

    return add


def _copies(arguments: tuple) -> Callable[[], tuple]:
    """What makes copies of the arguments; those that are made by a function are called."""
    return lambda: tuple(
        a() if callable(a) else a.copy() if isinstance(a, np.ndarray) else a for a in arguments
    )


def zeros(*shape: int, dtype: Any = np.float32) -> np.ndarray:
    """An array of zeros."""
    return np.zeros(shape, dtype)


def count(*shape: int, dtype: Any = np.float32) -> np.ndarray:
    """An array of 0, 1, 2, … in the order of memory."""
    return np.arange(np.prod(shape)).astype(dtype).reshape(shape)


def fault_of(kernel: Callable) -> int:
    """The line that is marked `# fault`."""
    lines, first = inspect.getsourcelines(kernel)
    marked = [i for i, line in enumerate(lines) if "# fault" in line]
    (at,) = marked
    return first + at


def twin(kernel: Callable) -> Callable:
    """The kernel with its slip mended."""
    source = textwrap.dedent(inspect.getsource(kernel))
    lines = source[source.index("def ") :].splitlines()
    kept = [line.replace(RIGHT, "") for line in lines if not line.endswith("wrong")]
    if kept == lines:
        raise ValueError(f"{kernel.__name__} says neither '# wrong' nor '# right:'")
    name = f"<{kernel.__name__}, mended>"
    text = "\n".join(kept) + "\n"
    linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
    scope = dict(kernel.__globals__)
    exec(compile(text, name, "exec"), scope)
    return scope[kernel.__name__]
