"""Layers as GEMMs: the products have the sizes stated, and compute what the layer is."""

import numpy as np
import pytest

from gemmlab.device import device
from gemmlab.formats import FORMATS
from gemmlab.model import predict
from gemmlab.model.layers import (
    DOT_PRODUCT,
    ELEMENTWISE,
    GATES,
    OPERATIONS,
    Attention,
    Batched,
    Convolution,
    Layer,
    Linear,
    Recurrent,
    layer_norm,
    linear,
    max_pooling,
    relu,
    softmax,
)
from gemmlab.problem import Gemm, Operands

V100 = device("v100")
RNG = np.random.default_rng(3)


def draw(*shape):
    return RNG.standard_normal(shape)


def product(gemm, a, b):
    """A·B by a problem's own definition, of arrays as it has them stored."""
    assert (a.shape, b.shape) == gemm.shapes[:2]
    return gemm.reference(Operands(a, b, np.zeros(gemm.shapes[2])))


# ----------------------------------------------------------------------------- elementwise and sums


def test_layers_count_whole_tensors():
    assert relu(10) == Layer(10, 40, ELEMENTWISE)
    assert relu(10, "float32").bytes == 80
    assert max_pooling(10, window=5).flops == 250
    assert layer_norm(2, 8).bytes == 2 * (2 * 16 + 2 * 8)
    assert softmax(2, 8).flops == 5 * 16


def test_layers_refuse_bad_sizes_and_formats():
    one_size = (relu, max_pooling, lambda n: layer_norm(n, 4), lambda n: layer_norm(4, n),
                lambda n: softmax(n, 4), lambda n: softmax(4, n))  # fmt: skip
    for make in one_size:
        with pytest.raises(ValueError, match="=0 is too small"):
            make(0)
        with pytest.raises(TypeError, match=r"=2\.5 is not a whole number"):
            make(2.5)
    with pytest.raises(ValueError, match="float31.*float32"):
        relu(4, "float31")


def test_the_table_of_operations_is_limited_by_math_once():
    limits = []
    for operation in OPERATIONS.values():
        if isinstance(operation, Gemm):
            limits.append(predict(operation, V100).limiter)
        else:
            assert operation.intensity < V100.ops_per_byte("float16")
            limits.append("DRAM")
    assert limits == ["math", *["DRAM"] * 4]


# ---------------------------------------------------------------------------------- fully connected


def test_backward_passes_of_a_linear_layer_are_its_gradients():
    """Σ ∂Y·(W·X) is bilinear: its derivatives by X and W are the two products."""
    layer = Linear(outputs=5, inputs=7, batch=3, dtype="float64")
    w, x, dy = draw(5, 7), draw(7, 3), draw(5, 3)
    loss = np.sum(dy * product(layer.forward, w, x))
    dx = product(layer.activation_gradient, w, dy)
    dw = product(layer.weight_gradient, dy, x)
    assert (dx.shape, dw.shape) == (x.shape, w.shape)
    assert np.sum(dx * x) == pytest.approx(loss)
    assert np.sum(dw * w) == pytest.approx(loss)
    step = draw(7, 3)
    moved = np.sum(dy * product(layer.forward, w, x + step))
    assert moved - loss == pytest.approx(np.sum(dx * step))


def test_passes_of_a_linear_layer_have_the_same_operations_and_bytes():
    layer = Linear(4096, 1024, 512)
    passes = layer.forward, layer.activation_gradient, layer.weight_gradient
    assert len({p.flops for p in passes}) == len({p.bytes for p in passes}) == 1
    assert layer.forward == linear(4096, 1024, 512)


# -------------------------------------------------------------------------------------- convolution

CONVOLUTIONS = [
    Convolution(2, 3, 6, 5, 4, (3, 3), padding=1, dtype="float64"),
    Convolution(1, 2, 9, 8, 3, (3, 2), stride=2, padding=1, dtype="float64"),
    Convolution(2, 1, 7, 7, 2, (2, 3), dilation=2, dtype="float64"),
    Convolution(3, 5, 4, 4, 6, (1, 1), dtype="float64"),
]


def places(c):
    """Each (b, p, q, r, t) of a convolution, and the row and column of x that it reads."""
    window = [range(size) for size in c.window]
    for b in range(c.batch):
        for p in range(c.out_height):
            for q in range(c.out_width):
                for r in window[0]:
                    for t in window[1]:
                        row = p * c.stride + r * c.dilation - c.padding
                        col = q * c.stride + t * c.dilation - c.padding
                        if 0 <= row < c.height and 0 <= col < c.width:
                            yield (b, p, q, r, t), (row, col)


def convolved(c, x, w):
    """The definition, loop by loop."""
    y = np.zeros((c.batch, c.filters, c.out_height, c.out_width))
    for (b, p, q, r, t), (row, col) in places(c):
        y[b, :, p, q] += w[:, :, r, t] @ x[b, :, row, col]
    return y


def unrolled(c, x):
    """Of x, a row for each place of the result and a column for each channel and window place."""
    out = np.zeros((c.batch, c.out_height, c.out_width, c.channels, *c.window))
    for (b, p, q, r, t), (row, col) in places(c):
        out[b, p, q, :, r, t] = x[b, :, row, col]
    return out.reshape(c.batch * c.out_height * c.out_width, -1)


def unrolled_gradient(c, dy):
    """Of ∂y, a row for each pixel of x and a column for each filter and window place."""
    out = np.zeros((c.batch, c.height, c.width, c.filters, *c.window))
    for (b, p, q, r, t), (row, col) in places(c):
        out[b, row, col, :, r, t] = dy[b, :, p, q]
    return out.reshape(c.batch * c.height * c.width, -1)


@pytest.mark.parametrize("c", CONVOLUTIONS, ids=str)
def test_a_convolution_is_a_gemm_of_its_unrolled_operand(c):
    x = draw(c.batch, c.channels, c.height, c.width)
    w = draw(c.filters, c.channels, *c.window)
    y = convolved(c, x, w)
    rows = y.transpose(0, 2, 3, 1).reshape(-1, c.filters)
    assert product(c.forward, unrolled(c, x), w.reshape(c.filters, -1).T) == pytest.approx(rows)

    dy = draw(*y.shape)
    dx = product(c.activation_gradient, unrolled_gradient(c, dy),
                 w.transpose(0, 2, 3, 1).reshape(-1, c.channels))  # fmt: skip
    pixels = x.transpose(0, 2, 3, 1).reshape(-1, c.channels)
    assert np.sum(dx * pixels) == pytest.approx(np.sum(dy * y))

    grad = dy.transpose(0, 2, 3, 1).reshape(-1, c.filters)
    dw = product(c.weight_gradient, np.ascontiguousarray(unrolled(c, x).T), grad)
    assert np.sum(dw * w.reshape(c.filters, -1).T) == pytest.approx(np.sum(dy * y))
    s = FORMATS[c.dtype].bytes
    assert c.bytes == s * (x.size + w.size + y.size)
    assert c.unrolled_bytes == s * unrolled(c, x).size


def test_an_implicit_gemm_moves_less_than_the_gemm_of_its_sizes():
    big = Convolution(32, 64, 56, 56, 128, (3, 3), padding=1)
    assert big.bytes < big.forward.bytes
    assert big.intensity > big.forward.intensity
    assert big.unrolled_bytes == 9 * 32 * 64 * 56 * 56 * 2  # 3×3 copies of each element
    pointwise = Convolution(32, 64, 56, 56, 128, (1, 1))
    assert pointwise.bytes == pointwise.forward.bytes
    assert pointwise.intensity == pointwise.forward.intensity


def test_a_stride_makes_the_gradient_of_activations_multiply_zeros():
    even = Convolution(1, 8, 16, 16, 8, (3, 3), stride=2, padding=1)
    assert even.activation_gradient.flops == 4 * even.forward.flops
    assert even.weight_gradient.flops == even.forward.flops


def test_convolutions_refuse_bad_sizes():
    with pytest.raises(ValueError, match=r"window=\(5, 5\).* 3×3 with padding=0"):
        Convolution(1, 1, 3, 3, 1, (5, 5))
    with pytest.raises(ValueError, match="stride=0 is too small"):
        Convolution(1, 1, 3, 3, 1, (1, 1), stride=0)
    with pytest.raises(ValueError, match="padding=-1 is too small"):
        Convolution(1, 1, 3, 3, 1, (1, 1), padding=-1)
    with pytest.raises(TypeError, match=r"window\[1\]=1.5"):
        Convolution(1, 1, 3, 3, 1, (1, 1.5))


# ---------------------------------------------------------------------------- attention, recurrence


def test_attention_is_two_products_a_head():
    a = Attention(batch=1, heads=1, queries=4, keys=6, head_size=3, dtype="float64")
    q, k, v = draw(4, 3), draw(6, 3), draw(6, 3)
    scores = product(a.scores.gemm, q, k)
    assert scores == pytest.approx(q @ k.T)
    assert product(a.values.gemm, scores, v).shape == (4, 3)


def test_fused_attention_moves_no_scores():
    a = Attention(batch=8, heads=16, queries=2048, keys=2048, head_size=64)
    assert a.scores.count == a.values.count == 128
    assert a.scores.flops == a.values.flops == 2 * 128 * 2048 * 2048 * 64
    assert a.fused.flops == a.apart.flops == 2 * a.scores.flops + a.softmax.flops
    scores = 2 * 128 * 2048 * 2048
    assert a.apart.bytes - a.fused.bytes == 4 * scores  # written, read and written, read
    ratio = V100.ops_per_byte("float16")
    assert a.apart.intensity < ratio < a.fused.intensity
    one_word = Attention(batch=8, heads=16, queries=1, keys=2048, head_size=64)
    assert one_word.fused.intensity < 2.1
    with pytest.raises(ValueError, match="keys=0"):
        Attention(1, 1, 1, 0, 1)


@pytest.mark.parametrize(("cell", "gates"), GATES.items())
def test_a_recurrent_layer_has_a_product_of_each_gate(cell, gates):
    layer = Recurrent(cell, hidden=8, inputs=5, batch=2, steps=3)
    assert layer.of_inputs == Gemm(8 * gates, 6, 5, dtype="float16")
    assert layer.of_state == Batched(3, Gemm(8 * gates, 2, 8, dtype="float16"))
    assert layer.of_state.flops == 3 * 2 * 8 * gates * 2 * 8
    assert layer.of_state.bytes == 3 * layer.of_state.gemm.bytes
    assert layer.of_state.intensity == layer.of_state.gemm.intensity


def test_recurrent_layers_refuse_bad_input():
    with pytest.raises(ValueError, match="'lstn' is not known; use one of rnn, gru, lstm"):
        Recurrent("lstn", 1, 1, 1, 1)
    with pytest.raises(ValueError, match="steps=0"):
        Recurrent("lstm", 1, 1, 1, 0)


def test_layers_of_products_belong_to_the_dot_products():
    a = Attention(1, 1, 2, 2, 2)
    assert {a.apart.category, a.fused.category} == {DOT_PRODUCT}
