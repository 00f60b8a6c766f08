"""The fully-connected layer Y = WX and its two backward passes, as GEMMs."""

from __future__ import annotations

from dataclasses import dataclass

from gemmlab.problem import Gemm


@dataclass(frozen=True)
class Linear:
    """Y = WX with weights W (outputs×inputs), inputs X (inputs×batch) and outputs Y.

    Each pass has the same 2·outputs·inputs·batch operations and moves W, X and Y, or gradients of
    their shapes; only the roles change: what is summed over in one pass is a side of C in another.
    Source: NVIDIA Linear/Fully-Connected Layers User's Guide, "Quick Start" (which states the
    weights' gradient transposed, inputs×outputs).

    >>> layer = Linear(outputs=4096, inputs=1024, batch=512)
    >>> for gemm in (layer.forward, layer.activation_gradient, layer.weight_gradient):
    ...     print(gemm)
    4096×512×1024 float16
    1024×512×4096 float16 tn
    4096×1024×512 float16 nt
    """

    outputs: int
    inputs: int
    batch: int
    dtype: str = "float16"

    @property
    def forward(self) -> Gemm:
        """Y = W·X."""
        return Gemm(m=self.outputs, n=self.batch, k=self.inputs, dtype=self.dtype)

    @property
    def activation_gradient(self) -> Gemm:
        """∂X = Wᵀ·∂Y, with W as it is stored."""
        return Gemm(self.inputs, self.batch, self.outputs, dtype=self.dtype, layout="tn")

    @property
    def weight_gradient(self) -> Gemm:
        """∂W = ∂Y·Xᵀ, with X as it is stored: the sum runs over the batch."""
        return Gemm(self.outputs, self.inputs, self.batch, dtype=self.dtype, layout="nt")


def linear(outputs: int, inputs: int, batch: int, dtype: str = "float16") -> Gemm:
    """A fully-connected layer as a GEMM: weights (outputs×inputs) times inputs (inputs×batch).

    >>> layer = linear(outputs=4096, inputs=1024, batch=512)
    >>> layer.flops, round(layer.intensity)
    (4294967296, 315)
    """
    return Linear(outputs, inputs, batch, dtype).forward
