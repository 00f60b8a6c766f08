"""CUDA's vector types in kernels: `float32x4`, also called `float4`, is four numbers x, y, z, w.

They are named tuples, which a kernel makes of numbers, of other vectors, or of both.
"""

from collections import namedtuple
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from gemmlab.simt.numbers.overflow import convert

_OTHER_NAMES = {
    **{"int8": "char", "int16": "short", "int32": "int", "int64": "longlong", "uint8": "uchar"},
    **{"uint16": "ushort", "uint32": "uint", "uint64": "ulonglong", "float32": "float"},
    **{"float64": "double"},
}  # of CUDA, of the numbers


@dataclass(frozen=True)
class Vector:
    """A vector type has so many numbers of one type."""

    name: str
    dtype: np.dtype
    count: int
    kind: Callable = field(repr=False)  # the named tuple

    def make(self, *parts: Any) -> Any:
        """Return a vector of numbers and of the numbers of vectors; TypeError for another count."""
        numbers = [n for part in parts for n in (part if isinstance(part, tuple) else (part,))]
        if len(numbers) != self.count:
            raise TypeError(f"cuda.{self.name} takes {self.count} numbers, not {len(numbers)}")
        return self.kind(*(convert(number, self.dtype) for number in numbers))


def _vectors() -> dict[str, Vector]:
    made = {}
    for base, other in _OTHER_NAMES.items():
        for count in (1, 2, 3, 4):
            name = f"{base}x{count}"
            kind = namedtuple(name, list("xyzw"[:count]))  # type: ignore[misc]
            made[name] = made[f"{other}{count}"] = Vector(name, np.dtype(base), count, kind)
    return made


BY_NAME = _vectors()
