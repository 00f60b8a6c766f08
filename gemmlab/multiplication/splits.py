"""Operands that are split once and used many times: weights, say."""

from dataclasses import dataclass
from typing import Any

from gemmlab.multiplication import arrays


@dataclass(frozen=True, eq=False)
class Split:
    """An array B with its halves in FP16, for `matmul(a, b)`.

    array : B itself, which the library multiplies where it is faster
    halves : memory of the same library, as `products.prepare` lays it out; None where no kernel
        here reads it, and B is multiplied as it is
    """

    array: Any
    halves: Any = None

    @property
    def dtype(self) -> Any:
        return self.array.dtype

    @property
    def shape(self) -> tuple[int, ...]:
        return self.array.shape

    @property
    def device(self) -> Any:
        return self.array.device

    @property
    def nbytes(self) -> int:
        """Bytes of the halves."""
        return 0 if self.halves is None else arrays.bytes_of(self.halves)


def whole(b: Any) -> Any:
    """Return B, whether it is split or not."""
    return b.array if isinstance(b, Split) else b
