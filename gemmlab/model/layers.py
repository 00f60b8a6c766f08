"""Operations of neural networks: what each computes and what it must read and write.

Only the operations of the definition count, and every input and output moves once. `s` is the
number of bytes of an element, from `gemmlab.formats.FORMATS`. Layers of dot products are GEMMs.
"""

from dataclasses import dataclass
from typing import NamedTuple

from gemmlab import Gemm
from gemmlab.arguments import whole_number
from gemmlab.formats import number_format

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
    """Count the same operations for each element, which is read once and written once."""
    elements = whole_number("elements", elements)
    return Layer(flops * elements, 2 * number_format(dtype).bytes * elements, category)


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
    """Give a fully-connected layer as a GEMM: weights (outputs×inputs) times inputs (inputs×batch).

    >>> layer = linear(outputs=4096, inputs=1024, batch=512)
    >>> layer.flops, round(layer.intensity)
    (4294967296, 315)
    """
    return Linear(outputs, inputs, batch, dtype).forward


@dataclass(frozen=True)
class Convolution:
    """y[b, f, p, q] = Σ over c, r, t of x[b, c, p·stride + r·dilation − padding, …]·w[f, c, r, t].

    batch, channels, height, width : of x; filters, window : of w, the window being (R, S)

    Each pass is a GEMM one of whose operands is x or ∂y *unrolled*: every element stands there once
    for each place of the window. An implicit GEMM never stores it: it moves x, w and y alone.
    Raises TypeError or ValueError for sizes that are not positive whole numbers, and ValueError
    where the window is larger than the padded image.
    Source: NVIDIA Convolutional Layers User's Guide, "Convolution Algorithms".

    >>> c = Convolution(batch=32, channels=64, height=56, width=56, filters=128, window=(3, 3),
    ...                 padding=1)
    >>> str(c.forward), round(c.intensity), round(c.forward.intensity)
    ('100352×128×576 float16', 383, 105)
    """

    batch: int
    channels: int
    height: int
    width: int
    filters: int
    window: tuple[int, int]
    stride: int = 1
    padding: int = 0
    dilation: int = 1
    dtype: str = "float16"

    def __post_init__(self) -> None:
        for name in ("batch", "channels", "height", "width", "filters", "stride", "dilation"):
            object.__setattr__(self, name, whole_number(name, getattr(self, name)))
        object.__setattr__(self, "padding", whole_number("padding", self.padding, least=0))
        window = tuple(whole_number(f"window[{i}]", x) for i, x in enumerate(self.window))
        object.__setattr__(self, "window", window)
        if min(self.out_height, self.out_width) < 1:
            raise ValueError(
                f"window={window} with dilation={self.dilation} is larger than an image of "
                f"{self.height}×{self.width} with padding={self.padding}"
            )

    @property
    def out_height(self) -> int:
        """P = ⌊(height + 2·padding − dilation·(R − 1) − 1) / stride⌋ + 1."""
        return self._places(self.height, self.window[0])

    @property
    def out_width(self) -> int:
        """Q, likewise of width and S."""
        return self._places(self.width, self.window[1])

    def _places(self, size: int, window: int) -> int:
        return (size + 2 * self.padding - self.dilation * (window - 1) - 1) // self.stride + 1

    @property
    def forward(self) -> Gemm:
        """The outputs y (batch·P·Q × filters) = unrolled x · w: k = channels·R·S."""
        rows = self.batch * self.out_height * self.out_width
        return Gemm(rows, self.filters, self.channels * self._window, dtype=self.dtype)

    @property
    def activation_gradient(self) -> Gemm:
        """∂x (batch·height·width × channels) = unrolled ∂y · w: k = filters·R·S.

        With a stride, and at borders, some of its products are with zeros: it has more operations
        than the forward pass.
        """
        rows = self.batch * self.height * self.width
        return Gemm(rows, self.channels, self.filters * self._window, dtype=self.dtype)

    @property
    def weight_gradient(self) -> Gemm:
        """∂w (channels·R·S × filters) = (unrolled x)ᵀ · ∂y: k = batch·P·Q."""
        places = self.batch * self.out_height * self.out_width
        return Gemm(self.channels * self._window, self.filters, places, dtype=self.dtype)

    @property
    def _window(self) -> int:
        return self.window[0] * self.window[1]

    @property
    def bytes(self) -> int:
        """Compulsory traffic of each pass [B]: x, w and y, or gradients of them, once."""
        x = self.batch * self.channels * self.height * self.width
        w = self.filters * self.channels * self._window
        y = self.batch * self.filters * self.out_height * self.out_width
        return number_format(self.dtype).bytes * (x + w + y)

    @property
    def unrolled_bytes(self) -> int:
        """The memory that the unrolled x would take [B], batch·P·Q·channels·R·S·s."""
        return self.forward.array_bytes[0]

    @property
    def intensity(self) -> float:
        """Arithmetic intensity of the forward pass as an implicit GEMM [FLOP/B]."""
        return self.forward.flops / self.bytes


# Matrices of weights of a cell, whose products make one GEMM. Sources: NVIDIA Recurrent Layers
# User's Guide; S. Hochreiter, J. Schmidhuber, "Long short-term memory" (1997); K. Cho et al.,
# "Learning phrase representations using RNN encoder-decoder" (2014).
GATES = {"rnn": 1, "gru": 3, "lstm": 4}


@dataclass(frozen=True)
class Recurrent:
    """A layer of `hidden` cells over `steps` of a sequence: gates from W·x and U·h of each step.

    cell : a name in `GATES`; inputs : the length of x; batch : sequences side by side
    Raises TypeError or ValueError for sizes that are not positive whole numbers, and ValueError for
    another cell.

    >>> layer = Recurrent("lstm", hidden=1024, inputs=512, batch=64, steps=50)
    >>> str(layer.of_inputs), str(layer.of_state.gemm), layer.of_state.count
    ('4096×3200×512 float16', '4096×64×1024 float16', 50)
    """

    cell: str
    hidden: int
    inputs: int
    batch: int
    steps: int
    dtype: str = "float16"

    def __post_init__(self) -> None:
        if self.cell not in GATES:
            raise ValueError(f"cell={self.cell!r} is not known; use one of {', '.join(GATES)}")
        for name in ("hidden", "inputs", "batch", "steps"):
            object.__setattr__(self, name, whole_number(name, getattr(self, name)))

    @property
    def of_inputs(self) -> Gemm:
        """W·x of all steps: (gates·hidden × inputs)·(inputs × batch·steps).

        The inputs are there beforehand, so that every step is a column of one product.
        """
        rows, columns = GATES[self.cell] * self.hidden, self.batch * self.steps
        return Gemm(rows, columns, self.inputs, dtype=self.dtype)

    @property
    def of_state(self) -> Batched:
        """U·h of each step: (gates·hidden × hidden)·(hidden × batch), one after the other.

        Each waits for the one before, and reads U again where it does not stay on the chip.
        """
        rows = GATES[self.cell] * self.hidden
        return Batched(self.steps, Gemm(rows, self.batch, self.hidden, dtype=self.dtype))


@dataclass(frozen=True)
class Attention:
    """The attention of `queries` places to `keys` places, in each head of each of `batch` texts.

    head_size : d, the length of a head's vectors; queries is 1 where text is generated word by word
    Raises TypeError or ValueError for sizes that are not positive whole numbers.
    Sources: A. Vaswani et al., "Attention is all you need", NeurIPS 2017, section 3.2; T. Dao et
    al., "FlashAttention", NeurIPS 2022 (`fused`).

    >>> a = Attention(batch=8, heads=16, queries=2048, keys=2048, head_size=64)
    >>> str(a.scores.gemm), str(a.values.gemm), a.scores.count
    ('2048×2048×64 float16 nt', '2048×64×2048 float16', 128)
    >>> round(a.apart.intensity, 1), round(a.fused.intensity)
    (31.6, 1044)
    """

    batch: int
    heads: int
    queries: int
    keys: int
    head_size: int
    dtype: str = "float16"

    def __post_init__(self) -> None:
        for name in ("batch", "heads", "queries", "keys", "head_size"):
            object.__setattr__(self, name, whole_number(name, getattr(self, name)))

    @property
    def scores(self) -> Batched:
        """Q·Kᵀ of each head: (queries×d)·(d×keys), K as it is stored."""
        gemm = Gemm(self.queries, self.keys, self.head_size, dtype=self.dtype, layout="nt")
        return Batched(self.batch * self.heads, gemm)

    @property
    def softmax(self) -> Layer:
        """The softmax of each row of all scores."""
        return softmax(self.batch * self.heads * self.queries, self.keys, self.dtype)

    @property
    def values(self) -> Batched:
        """P·V of each head: (queries×keys)·(keys×d)."""
        gemm = Gemm(self.queries, self.head_size, self.keys, dtype=self.dtype)
        return Batched(self.batch * self.heads, gemm)

    @property
    def apart(self) -> Layer:
        """The layer as three launches: the scores are written and read in between."""
        parts = self.scores, self.softmax, self.values
        return Layer(sum(p.flops for p in parts), sum(p.bytes for p in parts), DOT_PRODUCT)

    @property
    def fused(self) -> Layer:
        """The layer as one launch, whose scores stay on the chip: Q, K, V and the result move."""
        q, k, _ = self.scores.gemm.array_bytes
        _, v, out = self.values.gemm.array_bytes
        return Layer(self.apart.flops, self.scores.count * (q + k + v + out), DOT_PRODUCT)


__all__ = [
    "CATEGORIES", "DOT_PRODUCT", "ELEMENTWISE", "GATES", "OPERATIONS", "REDUCTION", "Attention",
    "Batched", "Convolution", "Layer", "Linear", "Recurrent", "layer_norm", "linear", "max_pooling",
    "relu", "softmax",
]  # fmt: skip

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
