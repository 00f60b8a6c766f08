"""Types as Numba writes them, for programs that name them where Numba is not installed.

>>> float32[:, ::1], void(int32, float64[:])
(array(float32, 2d, C), (int32, array(float64, 1d, A)) -> none)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from gemmlab.here import numbas
from gemmlab.instructions import typed


@dataclass(frozen=True, repr=False)
class ArrayType:
    """An array of numbers: its dimensions, and its layout, "C", "F" or "A" for any."""

    number: NumberType
    ndim: int
    layout: str

    def __repr__(self) -> str:
        return f"array({self.number}, {self.ndim}d, {self.layout})"


@dataclass(frozen=True, repr=False)
class Signature:
    """The types that a function takes and returns; None for nothing."""

    args: tuple[Any, ...]
    return_type: Any = None

    def __repr__(self) -> str:
        given = ", ".join(map(repr, self.args)) + ("," if len(self.args) == 1 else "")
        return f"({given}) -> {'none' if self.return_type is None else self.return_type}"


@dataclass(frozen=True, repr=False)
class NumberType:
    """A type of numbers or records; sliced the type of an array, called with types a signature."""

    name: str
    dtype: np.dtype

    def __repr__(self) -> str:
        return self.name

    def __getitem__(self, axes: Any) -> ArrayType:
        """Return `float32[:]`, and `float32[:, ::1]` for an array whose last axis is contiguous."""
        slices = axes if isinstance(axes, tuple) else (axes,)
        if not all(isinstance(s, slice) for s in slices):
            raise TypeError(
                f"{self.name}[{axes!r}] is not a type; write {self.name}[:] of an array"
            )
        layout = "C" if slices[-1].step == 1 else "F" if slices[0].step == 1 else "A"
        return ArrayType(self, len(slices), layout)

    def __call__(self, *values: Any) -> Any:
        """Return a number of this type; of types, the signature of what returns it."""
        if all(isinstance(v, (NumberType, ArrayType)) for v in values):
            return Signature(values, self)
        return self.dtype.type(*values)

    @property
    def _numba_type_(self) -> Any:
        """The type by which the compiler that asks knows this one in a kernel."""
        cuda, _ = numbas.typing(typed.mlir_asks())
        return cuda.types.NumberClass(getattr(cuda.types, self.name))


def void(*args: Any) -> Signature:
    """Return the signature of a function that returns nothing."""
    return Signature(args)


_NAMES = {  # as Numba has them -> NumPy's
    **{f"{kind}{bits}": f"{kind}{bits}" for kind in ("int", "uint") for bits in (8, 16, 32, 64)},
    **{f"float{bits}": f"float{bits}" for bits in (16, 32, 64)},
    **{f"complex{bits}": f"complex{bits}" for bits in (64, 128)},
    "boolean": "bool",
}
_ALIASES = {
    **{f"i{size}": f"int{8 * size}" for size in (1, 2, 4, 8)},
    **{f"u{size}": f"uint{8 * size}" for size in (1, 2, 4, 8)},
    **{"f2": "float16", "f4": "float32", "f8": "float64", "c8": "complex64", "c16": "complex128"},
    **{"float_": "float32", "double": "float64", "int_": "int64", "uint": "uint64"},
    **{"intc": "int32", "uintc": "uint32", "intp": "int64", "uintp": "uint64"},
    **{"byte": "uint8", "char": "int8", "uchar": "uint8", "short": "int16", "ushort": "uint16"},
    **{"long_": "int64", "ulong": "uint64", "longlong": "int64", "ulonglong": "uint64"},
    **{"size_t": "uint64", "ssize_t": "int64", "b1": "boolean", "bool_": "boolean"},
}
NUMBERS = {name: NumberType(name, np.dtype(of)) for name, of in _NAMES.items()}
TYPES = NUMBERS | {alias: NUMBERS[name] for alias, name in _ALIASES.items()} | {"void": void}
globals().update(TYPES)
