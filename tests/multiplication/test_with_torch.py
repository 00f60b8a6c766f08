"""What PyTorch asks of a product: its compiler, tensors that stand for others, and the mode.

These need PyTorch, of any kind; without it each is skipped.
"""

from threading import Thread, current_thread
from types import SimpleNamespace

import numpy as np
import pytest

import gemmlab
from gemmlab import device
from gemmlab.multiplication import arrays, calling, plans, with_torch
from tests.support.fake_cupy import SMALL

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


@pytest.fixture
def on_gpu(gpu, monkeypatch):
    """Tensors of the host are a GPU's, on the stand-in for the driver; what of it is asked."""
    now = SimpleNamespace(device=0, records=False, stream=77, taken=[], log=gpu.log)

    def empty(place, shape, dtype):
        now.taken += [shape[0]] * (dtype == "uint8")
        return torch.empty(shape, dtype=getattr(torch, dtype))

    functions = with_torch.Here(
        lambda: now.device, lambda: now.records, lambda device: now.stream,
        lambda shape, strides, dtype: torch.empty_strided(shape, strides, dtype=dtype),
    )  # fmt: skip
    monkeypatch.setattr(calling, "here", lambda torch: functions)
    monkeypatch.setattr(arrays, "place_of", lambda name, x: arrays.Place("torch", 0))
    monkeypatch.setattr(arrays, "stream_of", lambda place: now.stream)
    monkeypatch.setattr(arrays, "empty", empty)
    monkeypatch.setattr(torch.Tensor, "is_cuda", True, raising=False)
    monkeypatch.setattr(plans, "OFTEN", 1)
    monkeypatch.setattr(calling, "few", lambda device: 0)  # no product is PyTorch's
    return now


def integers(*shape, seed=1):
    return torch.randint(-2, 3, shape, generator=torch.Generator().manual_seed(seed)).float()


def test_tensors_of_a_gpu_are_multiplied_where_they_are(on_gpu):
    """On the stand-in for the driver, whose memory is the host's; also back through the product."""
    a, b = integers(20, 8), integers(8, 12)
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


def again(on_gpu, a, b):
    """Multiply into the same memory as before; what the driver was asked, and bytes taken."""
    del on_gpu.log[:], on_gpu.taken[:]
    c = gemmlab.matmul(a, b)
    assert torch.equal(c, a.float() @ getattr(b, "array", b).float())
    return [entry[0] for entry in on_gpu.log], len(on_gpu.taken)


@pytest.fixture
def one_result(on_gpu, monkeypatch):
    """Every product lies where the last one did."""
    c = torch.empty(2, 12, 12)
    monkeypatch.setattr(torch, "empty_strided", lambda *told, **more: c)
    return on_gpu


def test_a_call_that_comes_back_is_a_graph_whose_workspace_is_kept(one_result):
    """Nothing is taken but C, and no context is entered, while the same memory comes back."""
    a, b, now = integers(2, 12, 12), integers(2, 12, 12, seed=2), one_result
    asked, taken = again(now, a, b)
    assert (asked.count("launch"), taken) == (7, 1)
    assert again(now, a, b) == (["graph"], 0)
    now.records = True  # into a caller's graph, which may be launched beside this stream
    asked, taken = again(now, a, b)
    assert (asked.count("launch"), taken) == (7, 1)
    now.records, now.device = False, 1
    assert again(now, a, b)[0].count("push") == 1
    now.device, now.stream = 0, 78
    assert again(now, a, b)[1] == 1
    assert sorted(plans.WORKSPACES) == [(0, 77), (0, 78)]


def test_other_operands_in_the_same_memory_are_no_call_that_comes_back(one_result):
    """Another k, another layout, and another split of what lies there now."""
    a, b, now = integers(2, 12, 12), integers(2, 12, 12, seed=2), one_result
    for x, y in ((a, b), (a[..., :8], b[:, :8]), (a, b.mT), (a.mT, b), (a, gemmlab.split(b))):
        assert again(now, x, y)[0].count("launch") in (5, 7)
    earlier = gemmlab.split(b)
    again(now, a, earlier)
    b += 1
    assert again(now, a, gemmlab.split(b))[0].count("launch") == 5


def test_who_asks_for_a_budget_has_nothing_kept_and_a_split_counts_without_b(
    one_result, monkeypatch
):
    a, b = integers(2, 12, 12), integers(2, 12, 12, seed=2)
    size, held = gemmlab.matmul_choice(a, b).workspace_bytes, gemmlab.split(b)
    gemmlab.matmul(a, b, workspace_bytes=size)
    assert plans.WORKSPACES == {}
    monkeypatch.setattr(plans, "MOST_KEPT", size - held.nbytes)
    assert [again(one_result, a, held)[1] for _ in range(2)] == [1, 0]
    assert [again(one_result, a, b)[1] for _ in range(2)] == [1, 1]


def test_what_is_kept_is_bounded(on_gpu, monkeypatch):
    """By bytes, streams and calls; a larger workspace replaces one, whose calls go with it."""
    a, b = integers(20, 8), integers(8, 12)
    again(on_gpu, a, b)
    first = plans.WORKSPACES[0, 77]
    again(on_gpu, integers(40, 8), b)
    assert plans.WORKSPACES[0, 77].size > first.size
    again(on_gpu, a, b)
    assert len(plans.WORKSPACES[0, 77].bounds) == 2
    on_gpu.stream = plans.PER_THREAD
    assert [again(on_gpu, a, b)[1] for _ in range(2)] == [1, 1]
    for on_gpu.stream in range(100, 100 + plans.STREAMS):
        again(on_gpu, a, b)
    assert len(plans.WORKSPACES) <= plans.STREAMS
    monkeypatch.setattr(plans, "KEPT", 2)
    for m in range(1, 5):
        again(on_gpu, integers(m, 8), b)
    assert len(plans.WORKSPACES[0, on_gpu.stream].bounds) <= 2
    monkeypatch.setattr(plans, "MOST_KEPT", first.size - 1)
    plans.WORKSPACES.clear()
    again(on_gpu, a, b)
    assert plans.WORKSPACES == {}


def test_launches_of_two_threads_are_not_mixed(on_gpu, monkeypatch):
    """They write to one workspace: who queues first ends first."""
    a, b, go, order = integers(20, 8), integers(8, 12), plans.go, []
    other = Thread(target=lambda: again(SimpleNamespace(log=[], taken=[]), integers(21, 8), b))

    def slowly(calls):
        for call in calls:
            if not order:
                order.append(current_thread())
                other.start()
                other.join(0.05)
            order.append(current_thread())
            go([call])

    monkeypatch.setattr(plans, "OFTEN", 9)
    calling.multiply(integers(21, 8), b, None)
    monkeypatch.setattr(plans, "go", slowly)
    assert torch.equal(gemmlab.matmul(a, b), a @ b)
    other.join()
    assert [thread is other for thread in order[1:]] == [False] * 9 + [True] * 9


def test_what_pytorch_follows_is_its_own_product(on_gpu):
    """Under its transforms a tensor stands for others, or has a tangent beside it."""
    from torch.autograd import forward_ad

    a, b, stack = integers(4, 5), integers(5, 6), integers(3, 4, 5)
    multiply = gemmlab.matmul
    multiply(a, b)
    assert torch.equal(torch.vmap(multiply, (0, None))(stack, b), stack @ b)
    for follow in (
        lambda f: torch.func.grad(lambda x: f(x, b).square().sum())(a),
        lambda f: torch.func.jvp(lambda x: f(x, b), (a,), (a,))[1],
        lambda f: torch.func.functionalize(f)(a, b),
    ):
        assert torch.equal(follow(multiply), follow(torch.matmul))
    with forward_ad.dual_level():
        c = multiply(forward_ad.make_dual(a, a + 1), b)
        assert torch.equal(forward_ad.unpack_dual(c).tangent, (a + 1) @ b)
        torch.set_float32_matmul_precision("high")
        with pytest.raises(ValueError, match="may round to TF32"):
            multiply(a, b)
        torch.set_float32_matmul_precision("highest")


# --------------------------------------------------------------------------------- handed over


@pytest.fixture
def handed(on_gpu, monkeypatch):
    """Few multiplications are PyTorch's; which of its functions were called."""
    seen = []

    def noting(name, function):
        return lambda *operands: seen.append(name) or function(*operands)

    for name in ("mm", "bmm", "matmul"):
        monkeypatch.setattr(torch, name, noting(name, getattr(torch, name)))
    monkeypatch.setattr(calling, "few", lambda device: 1e6)
    ours = "tcec_batched", SMALL, "asked for"
    monkeypatch.setattr(
        calling, "fastest", lambda device, sizes, layout, library=None, *_:
        ("library", None, "asked for") if library else ours
    )  # fmt: skip
    calling._choice.cache_clear()
    gemmlab.matmul(integers(4, 5), integers(5, 6))
    seen.clear()
    yield seen
    torch.set_float32_matmul_precision("highest")


def test_few_multiplications_are_pytorchs_at_once(handed, monkeypatch):
    monkeypatch.setattr(calling, "multiply", None)
    monkeypatch.setattr(calling, "product_of", None)
    a, b, stack = integers(4, 5), integers(5, 6), integers(3, 4, 5)
    weights = torch.nn.Parameter(b)
    assert torch.equal(gemmlab.matmul(a, b), a @ b)
    assert torch.equal(gemmlab.matmul(stack, stack.mT), stack @ stack.mT)
    assert torch.equal(gemmlab.matmul(torch._neg_view(a), b.t().contiguous().t()), -a @ b)
    gemmlab.matmul(a, weights).sum().backward()
    assert torch.equal(weights.grad, a.sum(0)[:, None].expand(5, 6))
    assert torch.equal(torch.vmap(gemmlab.matmul, (0, None))(stack, b), stack @ b)
    assert handed == ["mm", "bmm", "mm", "mm", "mm"]


def test_what_is_compiled_is_the_operator_although_few_are_pytorchs(handed):
    """Also where a call of a GPU came before, after which tensors take another way."""
    graphs = []

    def noting(graph, inputs):
        graphs.append([node.target for node in graph.graph.nodes if node.op == "call_function"])
        return graph.forward

    a, b = integers(4, 5), integers(5, 6)
    for function in (gemmlab.matmul, lambda x, y: gemmlab.matmul(x, y)):
        compiled = torch.compile(function, backend=noting, fullgraph=True)
        assert torch.equal(compiled(a, b), a @ b)
        assert graphs.pop() == [torch.ops.gemmlab.matmul]
        assert not graphs


def test_tf32_and_autocast_between_two_calls_are_seen(handed, on_gpu):
    """Each by its old name and by its new one: then FP32 is not PyTorch's."""
    a, b, matmul = integers(4, 5), integers(5, 6), torch.backends.cuda.matmul

    def by_pytorch():
        handed.clear()
        assert torch.equal(gemmlab.matmul(a, b), a @ b)
        return handed == ["mm"]

    assert by_pytorch()
    for precision in ("high", "medium"):
        torch.set_float32_matmul_precision(precision)
        assert not by_pytorch()
        torch.set_float32_matmul_precision("highest")
        assert by_pytorch()
    matmul.allow_tf32 = True
    assert not by_pytorch()
    matmul.allow_tf32 = False
    assert by_pytorch()
    if hasattr(matmul, "fp32_precision"):
        matmul.fp32_precision = "tf32"
        assert not by_pytorch()
        matmul.fp32_precision = "ieee"
        assert by_pytorch()
    with torch.autocast("cpu", torch.bfloat16):  # of the host, whose tensors these are
        torch.set_autocast_enabled("cuda", True)
        c = gemmlab.matmul(a, b)
        torch.set_autocast_enabled("cuda", False)
    assert torch.equal(c, a @ b)
    assert by_pytorch()
