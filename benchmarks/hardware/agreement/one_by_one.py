"""A second, obvious interpreter: each thread runs the kernel's source as plain Python.

A barrier is a `yield`: every thread of a block runs to its next one, then all go on. Integers are
Python's. A float is a `Real`, which carries a bound of its rounding error: it is 0 where no
operation rounded, and then every correct machine gives the same bits, contracted or not.
"""

from __future__ import annotations

import ast
import builtins
import itertools
import math
import operator
from collections.abc import Callable, Generator
from types import SimpleNamespace
from typing import Any

import numpy as np

from benchmarks.hardware.agreement.grammar import PARAMETERS, Case


class Real:
    """A float32 or float64 and a bound of its distance from the value in exact arithmetic."""

    __slots__ = ("error", "value")

    def __init__(self, value: np.floating, error: float = 0.0) -> None:
        self.value, self.error = value, error

    @staticmethod
    def of(value: Any) -> Real:
        return value if isinstance(value, Real) else Real(np.float64(value))

    @staticmethod
    def rounded(value: np.floating, exact: float, error: float) -> Real:
        """The result of one operation, given its value in float64."""
        u = float(np.finfo(value.dtype).eps) / 2
        return Real(value, error + (0.0 if float(value) == exact else 2 * u * abs(float(value))))

    def __add__(self, other: Any) -> Real:
        o = Real.of(other)
        exact = float(self.value) + float(o.value)
        if exact - float(o.value) != float(self.value) or exact - float(self.value) != float(
            o.value
        ):
            exact = np.nan  # float64 rounds as well
        return Real.rounded(self.value + o.value, exact, self.error + o.error)

    def __sub__(self, other: Any) -> Real:
        return self + -Real.of(other)

    def __mul__(self, other: Any) -> Real:
        o = Real.of(other)
        p, q = abs(float(self.value)), abs(float(o.value))
        error = p * o.error + q * self.error + 3 * self.error * o.error
        return Real.rounded(self.value * o.value, float(self.value) * float(o.value), error)

    def __neg__(self) -> Real:
        return Real(-self.value, self.error)

    def __abs__(self) -> Real:
        return Real(abs(self.value), self.error)

    def __lt__(self, other: Any) -> bool:
        return self._exact() < Real.of(other)._exact()

    def __gt__(self, other: Any) -> bool:
        return self._exact() > Real.of(other)._exact()

    def __le__(self, other: Any) -> bool:
        return self._exact() <= Real.of(other)._exact()

    def __ge__(self, other: Any) -> bool:
        return self._exact() >= Real.of(other)._exact()

    def _exact(self) -> np.floating:
        assert self.error == 0, "a branch hangs on a rounded value"
        return self.value

    def __int__(self) -> int:
        return int(self._exact())


def float32(value: Any) -> Real:
    """The cast of kernels."""
    real = Real.of(value)
    return Real.rounded(np.float32(real.value), float(real.value), real.error)


def _extreme(pick: Any) -> Any:
    def fold(left: Any, right: Any) -> Any:
        if not isinstance(left, Real):
            return pick(left, right)
        right = Real.of(right)
        return Real(pick(left.value, right.value), max(left.error, right.error))

    return fold


class Memory:
    """An array of numbers as kernels see it."""

    def __init__(self, shape: tuple[int, ...], elements: list, offset: int = 0) -> None:
        self.shape, self.elements, self.offset = shape, elements, offset

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    def _at(self, index: Any) -> tuple[int, tuple[int, ...]]:
        parts = index if isinstance(index, tuple) else (index,)
        place, rest = self.offset, self.shape
        for part in parts:
            assert -rest[0] <= part < rest[0], f"index {part} of {rest[0]}"
            place += (part % rest[0]) * math.prod(rest[1:])
            rest = rest[1:]
        return place, rest

    def __getitem__(self, index: Any) -> Any:
        place, rest = self._at(index)
        return Memory(rest, self.elements, place) if rest else self.elements[place]

    def __setitem__(self, index: Any, value: Any) -> None:
        self.elements[self._at(index)[0]] = value


def _memory(array: np.ndarray) -> Memory:
    make = (lambda v: Real(v)) if array.dtype.kind == "f" else int
    return Memory(array.shape, [make(v) for v in array.ravel()])


class _Cuda:
    """The names of `cuda`, for the thread whose turn it is."""

    def __init__(self, grid: tuple[int, int, int], block: tuple[int, int, int]) -> None:
        self.blockDim, self.gridDim = _xyz(block), _xyz(grid)
        self.shared = SimpleNamespace(array=self._shared_array)
        self.atomic = SimpleNamespace(add=_atomic(operator.add), max=_atomic(max), min=_atomic(min))
        self.local = SimpleNamespace(array=lambda shape, dtype: _empty(shape))

    def begin(self, thread: tuple, block: tuple, arrays: dict) -> None:
        self.threadIdx, self.blockIdx = _xyz(thread), _xyz(block)
        self.arrays, self.asked = arrays, itertools.count()

    def _shared_array(self, shape: Any, dtype: Any) -> Memory:
        return self.arrays.setdefault(next(self.asked), _empty(shape))

    @staticmethod
    def jit(**options: Any) -> Any:
        return lambda function: function


def _atomic(operation: Callable) -> Callable:
    def update(array: Memory, index: Any, value: int) -> None:
        array[index] = operation(array[index], value)

    return update


def _empty(shape: Any) -> Memory:
    sizes = shape if isinstance(shape, tuple) else (shape,)
    return Memory(sizes, [None] * int(np.prod(sizes)))


def _xyz(sizes: tuple) -> SimpleNamespace:
    return SimpleNamespace(**dict(zip("xyz", (*sizes, 1, 1)[:3], strict=True)))


def _positions(sizes: tuple) -> list[tuple]:
    return [p[::-1] for p in itertools.product(*(range(s) for s in (*sizes, 1, 1)[2::-1]))]


_DONE = object()


def _go_on(run: Generator, votes: int | None) -> Any:
    """Run a thread to its next barrier: its vote there, or _DONE at its end."""
    try:
        return run.send(votes)
    except StopIteration:
        return _DONE


class _Barriers(ast.NodeTransformer):
    """`cuda.syncthreads()` becomes `yield`, and syncthreads_count(vote) becomes `yield vote`."""

    def visit_Call(self, node: ast.Call) -> ast.expr:
        self.generic_visit(node)
        if ast.unparse(node.func) not in ("cuda.syncthreads", "cuda.syncthreads_count"):
            return node
        return ast.copy_location(ast.Yield(node.args[0] if node.args else None), node)

    def visit_ImportFrom(self, node: ast.ImportFrom) -> ast.Pass:
        return ast.copy_location(ast.Pass(), node)


def one_by_one(case: Case) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(out, fout, a bound of the rounding error of each element of fout) of a case."""
    grid, block = ((*sizes, 1, 1)[:3] for sizes in (case.grid, case.block))
    tree = ast.fix_missing_locations(_Barriers().visit(ast.parse(case.source)))
    cuda = _Cuda(grid, block)
    names: dict[str, Any] = {"cuda": cuda, "float32": float32, "int64": int}
    names |= {"min": _extreme(builtins.min), "max": _extreme(builtins.max)}
    exec(compile(tree, "<one by one>", "exec"), names)
    arguments = []
    for value in case.fresh():
        if isinstance(value, np.ndarray):
            value = _memory(value)
        arguments.append(value if isinstance(value, (Memory, int)) else Real(value))
    for block_position in _positions(grid):
        arrays: dict = {}
        waiting = []
        for thread in _positions(block):
            cuda.begin(thread, block_position, arrays)
            run = names["kernel"](*arguments)
            waiting += [(run, vote)] if (vote := _go_on(run, None)) is not _DONE else []
        while waiting:  # no name of `cuda` that differs from thread to thread follows a barrier
            votes = sum(bool(vote) for _, vote in waiting)
            waiting = [
                (run, vote) for run, _ in waiting if (vote := _go_on(run, votes)) is not _DONE
            ]
    results = dict(zip(PARAMETERS, arguments, strict=True))
    reals = [Real.of(v) for v in results["fout"].elements]
    return (
        np.array(results["out"].elements, np.int64),
        np.array([r.value for r in reals], np.float32),
        np.array([r.error for r in reals]),
    )
