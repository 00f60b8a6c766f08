"""Operations of neural networks: what each computes and what it must read and write.

Only the operations of the definition count, and every input and output moves once. `s` is the
number of bytes of an element, from `gemmlab.formats.FORMATS`. Layers of dot products are GEMMs.
"""

from gemmlab.model.layers.attention import Attention
from gemmlab.model.layers.convolution import Convolution
from gemmlab.model.layers.layer import (
    CATEGORIES,
    DOT_PRODUCT,
    ELEMENTWISE,
    REDUCTION,
    Batched,
    Layer,
    layer_norm,
    max_pooling,
    relu,
    softmax,
)
from gemmlab.model.layers.linear import Linear, linear
from gemmlab.model.layers.recurrent import GATES, Recurrent

__all__ = [
    "CATEGORIES",
    "DOT_PRODUCT",
    "ELEMENTWISE",
    "GATES",
    "OPERATIONS",
    "REDUCTION",
    "Attention",
    "Batched",
    "Convolution",
    "Layer",
    "Linear",
    "Recurrent",
    "layer_norm",
    "linear",
    "max_pooling",
    "relu",
    "softmax",
]

# Examples in float16, from a layer that arithmetic limits to those that memory does. The sizes of
# the last three do not change their intensity. Source: NVIDIA GPU Performance Background User's
# Guide, table 1.
OPERATIONS = {
    "linear layer, batch of 512": linear(outputs=4096, inputs=1024, batch=512),
    "linear layer, batch of 1": linear(outputs=4096, inputs=1024, batch=1),
    "max pooling, 3×3 window, unit stride": max_pooling(1 << 20, window=3),
    "ReLU": relu(1 << 20),
    "layer normalization": layer_norm(rows=512, width=1024),
}
