"""Operations of neural networks: what each computes and what it must read and write.

Only the operations of the definition count, and every input and output moves once. `s` is the
number of bytes of an element, from `gemmlab.formats.FORMATS`.
"""

from __future__ import annotations

from typing import NamedTuple

from gemmlab.arguments import whole_number
from gemmlab.formats import number_format
from gemmlab.problem import Gemm


class Layer(NamedTuple):
    """The operations [FLOP] and the compulsory traffic [B] of one layer."""

    flops: int
    bytes: int

    @property
    def intensity(self) -> float:
        """Arithmetic intensity [FLOP/B], flops / bytes."""
        return self.flops / self.bytes


def linear(outputs: int, inputs: int, batch: int, dtype: str = "float16") -> Gemm:
    """A fully-connected layer as a GEMM: weights (outputs×inputs) times inputs (inputs×batch).

    >>> layer = linear(outputs=4096, inputs=1024, batch=512)
    >>> layer.flops, round(layer.intensity)
    (4294967296, 315)
    """
    return Gemm(m=outputs, n=batch, k=inputs, dtype=dtype)


def max_pooling(elements: int, window: int = 3, dtype: str = "float16") -> Layer:
    """Maximum over window×window neighbours, unit stride: window²·N FLOP and 2sN bytes.

    One comparison for each element of the window, and as many outputs as inputs.

    >>> max_pooling(1 << 20).intensity
    2.25
    """
    window = whole_number("window", window)
    return _elementwise(elements, window * window, dtype)


def relu(elements: int, dtype: str = "float16") -> Layer:
    """Rectifier max(0, x): N FLOP and 2sN bytes.

    >>> relu(1 << 20).intensity
    0.25
    """
    return _elementwise(elements, 1, dtype)


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
    return Layer(7 * elements + 5 * rows, number_format(dtype).bytes * (2 * elements + 2 * width))


def _elementwise(elements: int, each: int, dtype: str) -> Layer:
    elements = whole_number("elements", elements)
    return Layer(each * elements, 2 * number_format(dtype).bytes * elements)
