"""Methods of arrays, for which each thread goes through all elements, one after the other.

Numba makes such loops of them, and computes in the types that it gives `+` and `*`.
Source: Numba-CUDA, `numba.cuda.np.arraymath`; what else is there needs memory that a kernel does
not have, or does not compile, such as `min` and `max`.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from gemmlab.simt.memory.access import each_element
from gemmlab.simt.memory.array import Array
from gemmlab.simt.memory.choice import Choice
from gemmlab.simt.numbers.arithmetic import operands
from gemmlab.simt.numbers.no_numbers import shown

if TYPE_CHECKING:
    from gemmlab.simt.machine.machine import Machine


def _fill(m: Machine, array: Array, value: Any) -> None:
    """Set all elements, as `x[:] = value` does."""
    m.memory.store(array, slice(None), value, m.calls.line)


def _sum(m: Machine, array: Array) -> Any:
    return _folded(m, "Add", array, _type_of_sum(array).type(0))


def _prod(m: Machine, array: Array) -> Any:
    return _folded(m, "Mult", array, _type_of_sum(array).type(1))


def _mean(m: Machine, array: Array) -> Any:
    dtype = array.dtype if array.dtype.kind in "fc" else np.dtype(np.float64)
    total = _folded(m, "Add", array, dtype.type(0))
    return m.operations.binary("Div", total, array.size, m.calls.line)


def _item(m: Machine, array: Array) -> Any:
    """The only element."""
    if np.any(np.not_equal(array.size, 1)):
        count = int(np.max(array.size))
        raise ValueError(f"{array.name} has {count} elements, and .item() takes the only one")
    return m.memory.load(array, (np.int64(0),) * array.ndim, m.calls.line)


def _python_sum(m: Machine, values: Any) -> Any:
    """Python's own `sum`, which begins with the integer 0."""
    if not isinstance(values, tuple):
        return _folded(m, "Add", values, np.int64(0))
    total: Any = np.int64(0)
    for value in values:
        total = m.operations.binary("Add", total, value, m.calls.line)
    return total


def _type_of_sum(array: Array) -> np.dtype:
    return operands("Add", array.dtype, array.dtype)[0]


def _folded(m: Machine, op: str, array: Any, result: Any) -> Any:
    """`result op x[0] op x[1] …` for each lane, whose array may have a size of its own."""
    if not isinstance(array, (Array, Choice)):
        raise TypeError(f"{shown(array)} is no array, and has no elements")
    here, line = m.masks[-1], m.calls.line
    for index, lanes in each_element(m, array, here):
        value = m.memory.load(array, index, line)
        new = m.operations.binary(op, result, value, line)
        result = new if lanes is here else np.where(lanes, new, result)
    return result


METHODS = {"fill": _fill, "sum": _sum, "prod": _prod, "mean": _mean, "item": _item}
FUNCTIONS: dict[Any, Callable] = {
    builtins.sum: _python_sum,
    np.sum: _sum,
    np.prod: _prod,
    np.mean: _mean,
}

_LOOP = "write a loop over elements"
_MEMORY = "make a cuda.local.array, and fill it in a loop"
INSTEAD = {  # of methods that kernels do not have here
    **dict.fromkeys(("min", "max"), f"Numba does not compile it in kernels, too; {_LOOP}"),
    **dict.fromkeys(("any", "all", "argmin", "argmax", "var", "std", "dot", "nonzero"), _LOOP),
    **dict.fromkeys(("copy", "astype", "flatten", "cumsum", "repeat", "take", "conj"), _MEMORY),
    **dict.fromkeys(("sort", "argsort"), "sort in a loop over elements"),
    **dict.fromkeys(("real", "imag"), "take it of an element, as in x[i].real"),
    "view": "make the view on the host, and pass it",
}


def named(m: Machine, function: Any) -> Callable | None:
    """What a function of whole arrays does on the machine; None for any other value."""
    return partial(FUNCTIONS[function], m) if function in FUNCTIONS else None
