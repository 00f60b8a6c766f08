"""The convolution and its two backward passes, as GEMMs of unrolled operands."""

from __future__ import annotations

from dataclasses import dataclass

from gemmlab.arguments import whole_number
from gemmlab.formats import number_format
from gemmlab.problem import Gemm


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
        """What storing the unrolled x would take [B], batch·P·Q·channels·R·S·s."""
        return self.forward.array_bytes[0]

    @property
    def intensity(self) -> float:
        """Arithmetic intensity of the forward pass as an implicit GEMM [FLOP/B]."""
        return self.forward.flops / self.bytes
