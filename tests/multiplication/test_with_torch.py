"""What PyTorch asks of a product: its compiler, tensors that stand for others, and the mode.

These need PyTorch, of any kind; without it each is skipped.
"""

from types import SimpleNamespace

import numpy as np
import pytest

import gemmlab
from gemmlab import device
from gemmlab.multiplication import arrays, calling, plans
from tests.multiplication.test_calling import gpu, host  # noqa: F401, fixtures

try:
    import torch
except ImportError:
    torch = None

pytestmark = pytest.mark.skipif(torch is None, reason="PyTorch is not installed")


def randn(*shape, **more):
    generator = torch.Generator().manual_seed(sum(shape))
    return torch.randn(*shape, generator=generator, **more)


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_a_compiled_function_is_one_graph(backend):
    a, b = (randn(*shape).requires_grad_() for shape in ((5, 7), (7, 3)))
    compiled = torch.compile(lambda x, y: gemmlab.matmul(x, y).relu(), backend=backend,
                             fullgraph=True)  # fmt: skip
    c = compiled(a, b)
    c.sum().backward()
    found = c.detach(), a.grad, b.grad
    a.grad = b.grad = None
    expected = (a @ b).relu()
    expected.sum().backward()
    for own, right in zip(found, (expected, a.grad, b.grad), strict=True):
        torch.testing.assert_close(own, right)


def test_a_compiled_function_may_have_a_split_operand():
    held = gemmlab.split(randn(7, 3))
    compiled = torch.compile(lambda x: gemmlab.matmul(x, held), backend="eager", fullgraph=True)
    torch.testing.assert_close(compiled(randn(5, 7)), randn(5, 7) @ held.array)


def test_the_operator_is_what_pytorch_asks_of_one():
    assert calling.operator_is_there()
    a, b = randn(5, 7).requires_grad_(), randn(7, 3).requires_grad_()
    torch.library.opcheck(torch.ops.gemmlab.matmul, (a, b, None, 3))


def test_tensors_that_stand_for_others_have_shapes():
    from torch._subclasses import FakeTensorMode

    calling.operator_is_there()
    with FakeTensorMode():
        a, b = torch.empty(2, 4, 6, device="cuda"), torch.empty(2, 6, 8, device="cuda")
        assert torch.ops.gemmlab.matmul(a, b, None, 3).shape == (2, 4, 8)


@pytest.fixture
def noted(monkeypatch):
    """Products of the mode: all that fit, of the host too."""
    seen = []

    def multiply(a, b, budget, products):
        seen.append((tuple(a.shape), tuple(b.shape)))
        return torch.from_numpy(a.detach().numpy() @ b.detach().numpy())

    monkeypatch.setattr(calling, "multiply", multiply)
    monkeypatch.setattr(calling, "replaces", lambda a, b, _: a.dtype == b.dtype == torch.float32)
    return seen


def test_the_mode_multiplies_in_place_of_pytorch(noted):
    x, w, bias, stack = randn(5, 7), randn(4, 7), randn(4), randn(3, 7, 2)
    many = randn(3, 5, 7)
    asked = [
        lambda: x @ w.t(), lambda: torch.matmul(x, w.t()), lambda: x.mm(w.t()),
        lambda: torch.nn.functional.linear(x, w, bias), lambda: torch.nn.functional.linear(many, w),
        lambda: torch.addmm(bias, x, w.t(), beta=2, alpha=0.5), lambda: torch.bmm(many, stack),
        lambda: torch.einsum("ij,jk->ik", x, w.t()),
        lambda: torch.einsum("xyz, xzw -> xyw", many, stack),
    ]  # fmt: skip
    plain = [ask() for ask in asked]
    with gemmlab.fp32_from_fp16():
        found = [ask() for ask in asked]
    assert len(noted) == len(asked)
    assert noted[4] == ((15, 7), (7, 4))  # a stack of A's below each other
    for own, right in zip(found, plain, strict=True):
        torch.testing.assert_close(own, right)


def test_the_mode_leaves_the_rest_alone(noted):
    x, y = randn(5, 7), randn(7, 4)
    out = torch.empty(5, 4)
    with gemmlab.fp32_from_fp16():
        torch.matmul(x, y, out=out)
        torch.testing.assert_close(torch.matmul(input=x, other=y), out)
        torch.testing.assert_close(torch.nn.functional.linear(input=x, weight=y.t()), out)
        assert torch.einsum("ij,jk->ki", x, y).shape == (4, 5)
        assert torch.einsum("ii->i", x[:, :5]).shape == (5,)
        assert (x.double() @ y.double()).dtype == torch.float64
    assert noted == []
    np.testing.assert_allclose(out, x @ y, rtol=1e-6)


def test_what_the_mode_replaces(monkeypatch):
    """Products on a GPU that no library makes, where FP32 is asked for; of the host nothing."""
    terms, there = calling.checked(None, 3), arrays.Place("torch", 0)
    assert not calling.replaces(randn(5, 7), randn(7, 4), terms)

    class OnGpu:
        """A tensor of a GPU, as far as it is asked about."""

        dtype, layout, device = torch.float32, torch.strided, torch.device("cuda", 0)

        def __init__(self, *shape):
            self.shape, self.dim = shape, lambda: len(shape)

    monkeypatch.setattr(calling, "gpu_status", lambda: SimpleNamespace(works=True))
    monkeypatch.setattr(calling, "detect", lambda: device("h100_sxm"))
    calling._choice.cache_clear()
    large, small = (OnGpu(4096, 4096), OnGpu(4096, 4096)), (OnGpu(8, 64), OnGpu(64, 8))
    assert calling.replaces(*large, terms)
    assert not calling.replaces(*small, terms)
    assert not calling.replaces(OnGpu(4096, 4096), OnGpu(4095, 4096), terms)
    torch.set_float32_matmul_precision("high")
    assert not arrays.multiplies(there)
    assert not calling.replaces(*large, terms)
    torch.set_float32_matmul_precision("highest")
    monkeypatch.setattr(calling, "gpu_status", lambda: SimpleNamespace(works=False))
    calling._choice.cache_clear()
    assert not calling.replaces(*large, terms)
    calling._choice.cache_clear()


def test_tensors_of_a_gpu_are_multiplied_where_they_are(gpu, monkeypatch):  # noqa: F811
    """On the stand-in for the driver, whose memory is the host's; also back through the product."""
    monkeypatch.setattr(arrays, "place_of", lambda name, x: arrays.Place("torch", 0))
    monkeypatch.setattr(arrays, "stream_of", lambda place: 77)
    monkeypatch.setattr(arrays, "empty", lambda place, shape, dtype: torch.empty(
        shape, dtype=getattr(torch, dtype)))  # fmt: skip
    monkeypatch.setattr(plans, "OFTEN", 1)
    a, b = (torch.randint(-2, 3, shape).float() for shape in ((20, 8), (8, 12)))
    for x, y in ((a, b), (a, b), (-a, b), (torch._neg_view(a), b), (a[:, ::2], b[::2, ::2])):
        assert torch.equal(gemmlab.matmul(x, y), x @ y)
    held = gemmlab.split(b)
    a.requires_grad_(), b.requires_grad_()
    for right in (b, held):
        a.grad = b.grad = None
        gemmlab.matmul(a, right).sum().backward()
        found = a.grad, b.grad
        a.grad = b.grad = None
        (a @ b).sum().backward()
        assert torch.equal(found[0], a.grad)
        assert torch.equal(found[1], b.grad)
