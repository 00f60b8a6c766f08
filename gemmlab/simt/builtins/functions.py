"""A kernel calls these besides `cuda`: functions of Python and NumPy, methods, bit operations.

A function or method of a whole array is a loop in which each thread goes through all elements, one
after the other: Numba makes such loops, and computes in the types that it gives `+` and `*`.
Source: Numba-CUDA, `numba.cuda.np.arraymath`; what else is there needs memory that a kernel does
not have, or does not compile, such as `min` and `max`.
"""

import builtins
import math
import operator
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from gemmlab.simt.builtins.batch import BuiltinBatch
from gemmlab.simt.memory.access import each_element
from gemmlab.simt.memory.array import Array, Choice, Record, Records, part_of_complex, row_major
from gemmlab.simt.numbers import arithmetic, bits
from gemmlab.simt.numbers.values import NUMBER, Cast, Triple, shown, translate
from gemmlab.simt.syntax.source import unsupported

MODULES = ("_operator", "builtins", "numpy")  # of functions that work on a machine


# Functions by name

BINARY = {f: name for name, f in arithmetic.BINARY.items()} | dict.fromkeys(
    (operator.pow, pow), "Pow"
)
COMPARE = {f: name for name, f in arithmetic.COMPARE.items()}
UNARY = {operator.neg: "USub", operator.pos: "UAdd", operator.invert: "Invert"}


def named(m: BuiltinBatch, function: Any) -> Callable | None:
    """Return a function of Python or NumPy as the machine executes it; None for any other value."""
    if function is print:
        return partial(_print, m)
    if isinstance(function, np.ufunc):
        return partial(_of_arrays, m, function)
    if not callable(function) or getattr(function, "__module__", "") not in MODULES:
        return None
    if function in FUNCTIONS:
        return partial(FUNCTIONS[function], m)
    if function is divmod:
        return lambda a, b: tuple(
            m.operations.binary(op, a, b, m.calls.line) for op in ("FloorDiv", "Mod")
        )
    for table, method in ((BINARY, m.operations.binary), (COMPARE, m.operations.compare)):
        if function in table:
            return lambda a, b: method(table[function], a, b, m.calls.line)
    if function in UNARY:
        return lambda a: m.operations.unary(UNARY[function], a, m.calls.line)
    if function is operator.not_:
        return m.operations.not_
    if function is operator.getitem:
        return lambda array, index: m.memory.load(array, index, m.calls.line)
    return None


def _print(m: BuiltinBatch, *values: Any) -> None:
    """Print a line of text, numbers and tuples for each active lane, as Numba formats it."""
    if m.masks[-1] is False:
        return
    columns = [_column(m, value) for value in values]
    for lane in np.argwhere(m.lanes.full(m.masks[-1])):
        m.report.printed.append(" ".join(column(tuple(lane)) for column in columns))


def _column(m: BuiltinBatch, value: Any) -> Any:
    """Return a value as a function of the lane, (block, thread), that gives its text."""
    if isinstance(value, str):
        return lambda lane: value
    if isinstance(value, Triple):
        value = value.x, value.y, value.z
    if isinstance(value, tuple):
        parts = [_column(m, v) for v in value]
        end = ",)" if len(parts) == 1 else ")"
        return lambda lane: "(" + ", ".join(part(lane) for part in parts) + end
    if not isinstance(value, NUMBER) or value.dtype.kind not in "biuf":
        raise TypeError(f"print takes text, numbers and tuples, not {shown(value)}")
    lanes = m.lanes.spread(value)
    form = "{:f}" if value.dtype.kind == "f" else "{}"
    return lambda lane: form.format(lanes[lane].item())


def _of_arrays(m: BuiltinBatch, function: np.ufunc, *operands: Any) -> Any:
    """Give `function` of numbers; or of arrays, element by element, into the last of `operands`."""
    if not any(isinstance(operand, Array) for operand in operands):
        return function(*operands)
    name, line = f"numpy.{function.__name__}", m.calls.line
    *inputs, out = operands
    if len(inputs) != function.nin or not isinstance(out, Array):
        raise unsupported(
            m.calls.source,
            line,
            f"{name} that makes an array",
            f"give it an array for the result, or write a loop with {name}(x[i])",
        )
    shapes = [tuple(int(d) for d in v.shape) if isinstance(v, Array) else () for v in operands]
    if np.broadcast_shapes(*shapes) != shapes[-1]:
        raise ValueError(f"{name} of shapes {shapes[:-1]} does not fit {shapes[-1]}")
    for index in np.ndindex(*shapes[-1]):
        values = [
            m.memory.load(v, _broadcast(index, shape), line) if isinstance(v, Array) else v
            for v, shape in zip(inputs, shapes, strict=False)
        ]
        m.tally.tick(line, "inst_fp" if out.dtype.kind == "f" else "inst_integer")
        m.memory.store(out, _broadcast(index, shapes[-1]), function(*values), line)
    return out


def _broadcast(index: tuple, shape: tuple) -> tuple:
    """Broadcasting pairs `index` with this index into an array of a `shape` of its own."""
    own = index[len(index) - len(shape) :]
    return tuple(np.int64(0 if d == 1 else i) for i, d in zip(own, shape, strict=True))


# Methods and attributes


def _fill(m: BuiltinBatch, array: Array, value: Any) -> None:
    """Set all elements, as `x[:] = value` does."""
    m.memory.store(array, slice(None), value, m.calls.line)


def _sum(m: BuiltinBatch, array: Array) -> Any:
    return _folded(m, "Add", array, _type_of_sum(array).type(0))


def _prod(m: BuiltinBatch, array: Array) -> Any:
    return _folded(m, "Mult", array, _type_of_sum(array).type(1))


def _mean(m: BuiltinBatch, array: Array) -> Any:
    dtype = array.dtype if array.dtype.kind in "fc" else np.dtype(np.float64)
    total = _folded(m, "Add", array, dtype.type(0))
    return m.operations.binary("Div", total, array.size, m.calls.line)


def _item(m: BuiltinBatch, array: Array) -> Any:
    if np.any(np.not_equal(array.size, 1)):
        count = int(np.max(array.size))
        raise ValueError(f"{array.name} has {count} elements, and .item() takes the only one")
    return m.memory.load(array, (np.int64(0),) * array.ndim, m.calls.line)


def _python_sum(m: BuiltinBatch, values: Any) -> Any:
    """Python's own `sum`, which begins with the integer 0."""
    if not isinstance(values, tuple):
        return _folded(m, "Add", values, np.int64(0))
    total: Any = np.int64(0)
    for value in values:
        total = m.operations.binary("Add", total, value, m.calls.line)
    return total


def _tuple(m: BuiltinBatch, values: Any = ()) -> tuple:
    if not isinstance(values, tuple):
        raise TypeError(f"{shown(values)} is no tuple, and its length is not known to the compiler")
    return tuple(values)


def _type_of_sum(array: Array) -> np.dtype:
    return arithmetic.operands("Add", array.dtype, array.dtype)[0]


def _folded(m: BuiltinBatch, op: str, array: Any, result: Any) -> Any:
    """Return `result op x[0] op x[1] …` for each lane, whose array may have a size of its own."""
    if not isinstance(array, (Array, Choice)):
        raise TypeError(f"{shown(array)} is no array, and has no elements")
    here, line = m.masks[-1], m.calls.line
    for index, lanes in each_element(m, array, here):
        value = m.memory.load(array, index, line)
        new = m.operations.binary(op, result, value, line)
        result = new if lanes is here else np.where(lanes, new, result)
    return result


def _least(m: BuiltinBatch, *values: Any) -> Any:
    return _extreme(m, "Lt", builtins.min, values)


def _greatest(m: BuiltinBatch, *values: Any) -> Any:
    return _extreme(m, "Gt", builtins.max, values)


def _extreme(m: BuiltinBatch, op: str, function: Callable, values: tuple) -> Any:
    """Return the least or greatest number of several, or of the elements of an array."""
    if len(values) != 1 or not isinstance(values[0], (Array, Choice)):
        return translate(function)(*values)
    array, here, line = values[0], m.masks[-1], m.calls.line
    result: Any = None
    for index, lanes in each_element(m, array, here):
        value = m.memory.load(array, index, line)
        better = True if result is None else m.operations.compare(op, value, result, line)
        better = better if lanes is here else better & m.lanes.full(lanes)
        result = value if result is None else np.where(better, value, result)
    if result is None:
        raise ValueError(f"{array.name} is empty")
    return result


METHODS = {"fill": _fill, "sum": _sum, "prod": _prod, "mean": _mean, "item": _item}
FUNCTIONS: dict[Any, Callable] = {
    builtins.sum: _python_sum,
    builtins.min: _least,
    builtins.max: _greatest,
    builtins.tuple: _tuple,
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


def attribute(m: BuiltinBatch, value: Any, name: str, line: int) -> Any:
    """Return `value.name`; UnsupportedError where the value has no such attribute."""
    if isinstance(value, Record):
        return m.memory.load(value, name, line)
    if isinstance(value, Records):
        return value.field(name)
    if isinstance(value, np.dtype) and name == "type":
        return Cast(value)
    if isinstance(value, Array) and name in ("real", "imag") and value.space != "local":
        return _part(value, name)
    if isinstance(value, Array) and name in VIEWS:
        return VIEWS[name](value)
    if isinstance(value, (Array, Choice)) and name in METHODS:
        return partial(METHODS[name], m, value)
    if isinstance(value, NUMBER) and name in ("real", "imag"):
        return getattr(value, name)
    if isinstance(value, NUMBER) and name == "bit_count" and value.dtype.kind in "iu":
        return lambda: bits.popc(value).astype(np.int64)
    if isinstance(value, NUMBER) and name == "conjugate":
        return lambda: np.conj(value)
    fields = getattr(value, "_fields", "xyz")  # of a named tuple, or of cuda.threadIdx
    if name in fields and hasattr(value, name):
        return getattr(value, name)
    has = f"this has {', '.join(fields)}" if isinstance(value, tuple) and fields != "xyz" else ""
    if isinstance(value, (Array, Choice)):
        has = INSTEAD.get(name, "")
    known = ", ".join((*VIEWS, *METHODS))
    has = has or f"arrays have .shape, .size, .ndim and .dtype, {known}"
    raise unsupported(m.calls.source, line, f".{name}", has)


def _part(array: Array, name: str) -> Array:
    """Return the real or the imaginary parts of an array, which of real numbers are the array."""
    if array.dtype.kind == "c":
        return part_of_complex(array, name == "imag")
    if name == "imag":
        raise TypeError(f"{array.name} has no imaginary parts, it is {array.dtype}")
    return array


def _in_shape(array: Array, name: str, shape: tuple) -> Array:
    """The elements of an array are seen in another shape, without a copy."""
    if array.strides != row_major(array.shape):
        raise TypeError(f"{array.name}.{name} needs an array without gaps, in C order")
    return array.view(shape, row_major(shape), array.offset)


def _reshaped(array: Array, *sizes: Any) -> Array:
    """Return `array.reshape(sizes)`, of which one may be -1: what is left for it."""
    shape = sizes[0] if len(sizes) == 1 and isinstance(sizes[0], tuple) else sizes
    if any(np.ndim(size) for size in (*shape, array.size)):
        raise TypeError(f"{array.name}.reshape() needs sizes that are the same in all threads")
    known = math.prod(int(size) for size in shape if size != -1)
    open_ones = sum(int(size == -1) for size in shape)
    rest = int(array.size) // known if known else 0
    whole = tuple(np.int64(rest if size == -1 else size) for size in shape)
    if open_ones > 1 or math.prod(map(int, whole)) != array.size:
        wanted = ", ".join(str(int(size)) for size in shape)
        raise ValueError(
            f"{array.name} has {int(array.size)} elements, which do not make the shape ({wanted})"
        )
    return _in_shape(array, "reshape", whole)


def _transposed(array: Array) -> Array:
    return array.view(array.shape[::-1], array.strides[::-1], array.offset)


VIEWS = {
    "T": _transposed,
    "flat": lambda array: array if array.ndim == 1 else _in_shape(array, "flat", (array.size,)),
    "transpose": lambda array: lambda: _transposed(array),
    "ravel": lambda array: lambda: _in_shape(array, "ravel", (array.size,)),
    "reshape": lambda array: partial(_reshaped, array),
    "itemsize": lambda array: np.int64(array.itemsize),
    "nbytes": lambda array: array.size * array.itemsize,
    "strides": lambda array: tuple(np.int64(s * array.itemsize) for s in array.strides),
}
