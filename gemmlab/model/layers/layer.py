"""A layer as its operations and bytes, and the layers that are no products of matrices."""

from __future__ import annotations

from typing import NamedTuple

from gemmlab.arguments import whole_number
from gemmlab.formats import number_format
from gemmlab.problem import Gemm

# The three kinds of operations in a network. Source: NVIDIA GPU Performance Background User's
# Guide, "DNN Operation Categories".
CATEGORIES = ELEMENTWISE, REDUCTION, DOT_PRODUCT = "elementwise", "reduction", "dot product"


class Layer(NamedTuple):
    """The operations [FLOP] and the compulsory traffic [B] of one layer, and its category."""

    flops: int
    bytes: int
    category: str = ELEMENTWISE

    @property
    def intensity(self) -> float:
        """Arithmetic intensity [FLOP/B], flops / bytes."""
        return self.flops / self.bytes


class Batched(NamedTuple):
    """Several products of the same sizes, each with operands of its own."""

    count: int
    gemm: Gemm

    @property
    def flops(self) -> int:
        return self.count * self.gemm.flops

    @property
    def bytes(self) -> int:
        return self.count * self.gemm.bytes

    @property
    def intensity(self) -> float:
        """Arithmetic intensity [FLOP/B]: that of one of them."""
        return self.gemm.intensity

    @property
    def dtype(self) -> str:
        return self.gemm.dtype


def max_pooling(elements: int, window: int = 3, dtype: str = "float16") -> Layer:
    """Maximum over window×window neighbours, unit stride: window²·N FLOP and 2sN bytes.

    One comparison for each element of the window, and as many outputs as inputs.

    >>> max_pooling(1 << 20).intensity
    2.25
    """
    window = whole_number("window", window)
    return _each(elements, window * window, dtype, REDUCTION)


def relu(elements: int, dtype: str = "float16") -> Layer:
    """Rectifier max(0, x): N FLOP and 2sN bytes.

    >>> relu(1 << 20).intensity
    0.25
    """
    return _each(elements, 1, dtype, ELEMENTWISE)


def softmax(rows: int, width: int, dtype: str = "float16") -> Layer:
    """exp(x − max) / Σ exp(x − max) of each row: 5N FLOP and 2sN bytes, N = rows·width.

    For each element 1 operation to find the maximum, 1 to subtract it, 1 for the exponential, 1 to
    sum, 1 to divide.

    >>> softmax(512, 1024).intensity
    1.25
    """
    return _each(whole_number("rows", rows) * whole_number("width", width), 5, dtype, REDUCTION)


def layer_norm(rows: int, width: int, dtype: str = "float16") -> Layer:
    """Normalization of each row to γ·(x − mean) / √(variance + ε) + β: 7N + 5·rows FLOP.

    For each of the N = rows·width elements: 1 operation to sum for the mean, 1 to subtract it, 2 to
    square and sum for the variance, 1 to scale, 2 for γ and β. For each row: a division for the
    mean and one for the variance, ε, a root and its reciprocal. Bytes: s·(2N + 2·width), with γ
    and β read once.

    >>> round(layer_norm(rows=512, width=1024).intensity, 2)
    1.75
    """
    rows, width = whole_number("rows", rows), whole_number("width", width)
    elements = rows * width
    moved = number_format(dtype).bytes * (2 * elements + 2 * width)
    return Layer(7 * elements + 5 * rows, moved, REDUCTION)


def _each(elements: int, flops: int, dtype: str, category: str) -> Layer:
    """So many operations for each of the elements, which are read once and written once."""
    elements = whole_number("elements", elements)
    return Layer(flops * elements, 2 * number_format(dtype).bytes * elements, category)
