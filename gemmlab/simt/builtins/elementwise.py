"""NumPy's functions on whole arrays: each thread computes all elements, one after the other."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gemmlab.simt.memory.array import Array
from gemmlab.simt.syntax.source import unsupported

if TYPE_CHECKING:
    from gemmlab.simt.machine.machine import Machine


def call(m: Machine, function: np.ufunc, *operands: Any) -> Any:
    """`function` of numbers; or of arrays, element by element, into the last of `operands`."""
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
    if np.broadcast_shapes(*shapes[:-1]) != shapes[-1]:
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
    """The index into an array of this `shape` that broadcasting pairs with `index`."""
    own = index[len(index) - len(shape) :]
    return tuple(np.int64(0 if d == 1 else i) for i, d in zip(own, shape, strict=True))
