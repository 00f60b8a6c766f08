"""`matmul` and what it picks, for arrays of the host and for stand-ins of other libraries."""

import sys
from dataclasses import replace

import numpy as np
import pytest

import gemmlab
from gemmlab import device, kernels
from gemmlab.here.driver import gpu_status
from gemmlab.multiplication import arrays, choosing
from gemmlab.multiplication.arrays import Stack
from gemmlab.multiplication.choosing import SIDE, by_tensor_cores, by_units, cost, fastest, fitting
from gemmlab.multiplication.products import workspace_bytes
from gemmlab.numerics import backward_error, fma_chain_bound
from tests.support.torch_stand_in import Tensor, torch

RNG = np.random.default_rng(15)


def normal(*shape):
    return RNG.standard_normal(shape, np.float32)


def is_product(c, a, b):
    exact = a.astype(np.float64) @ b.astype(np.float64)
    pairs = zip(*(x.reshape(-1, *x.shape[-2:]) for x in (c, exact, a, b)), strict=True)
    return c.dtype == np.float32 and all(
        backward_error(*each) <= fma_chain_bound(a.shape[-1]) for each in pairs
    )


@pytest.mark.parametrize("batch", [(), (3,)])
def test_numpy_arrays_and_their_transposed_views(batch):
    for a, b in (
        (normal(*batch, 5, 7), normal(*batch, 7, 4)),
        (normal(*batch, 7, 5).swapaxes(-1, -2), normal(*batch, 4, 7).swapaxes(-1, -2)),
        (normal(*batch, 5, 14)[..., ::2], normal(*batch, 7, 4)[..., ::-1]),
    ):
        c = gemmlab.matmul(a, b)
        assert type(c) is np.ndarray
        assert is_product(c, a, b)


def test_a_file_is_multiplied_as_an_array(tmp_path):
    a, b = np.memmap(tmp_path / "a", np.float32, "w+", shape=(5, 7)), normal(7, 4)
    a[:] = normal(5, 7)
    c = gemmlab.matmul(a, b)
    assert type(c) is np.ndarray
    assert is_product(c, np.array(a), b)


A, B = normal(4, 6), normal(6, 5)
WRONG = {
    "a has dtype float64; use float32": (A.astype(float), B),
    "b has dtype float16; use float32": (A, B.astype(np.float16)),
    "a has shape (4, 6) and b (4, 6)": (A, A),
    "a has shape (6,) and b (6, 5)": (A[0], B),
    "a has shape (2, 4, 6) and b (3, 6, 5)": (np.stack([A] * 2), np.stack([B] * 3)),
    "a has shape (2, 4, 6) and b (6, 5)": (np.stack([A] * 2), B),
    "a has shape (0, 6)": (A[:0], B),
    "b is a builtins.list; use NumPy and CuPy arrays": (A, [[1.0]]),
    "a is a numpy.ma.MaskedArray; use NumPy": (np.ma.array(A, mask=A > 0), B),
}


@pytest.mark.parametrize("told", WRONG)
def test_what_does_not_fit_is_quoted(told):
    for ask in (gemmlab.matmul, gemmlab.matmul_choice):
        with pytest.raises((TypeError, ValueError)) as caught:
            ask(*WRONG[told])
        assert told in str(caught.value)
    for products in (0, 4, True):
        with pytest.raises(ValueError, match=f"products={products}; use 1, 2 or 3"):
            gemmlab.matmul(A, B, products=products)
    with pytest.raises(TypeError, match="workspace_bytes"):
        gemmlab.matmul(A, B, workspace_bytes=1.5)


@pytest.mark.skipif(gpu_status().works, reason="there is a GPU")
def test_without_a_gpu_it_says_so():
    choice = gemmlab.matmul_choice(A, B)
    assert (choice.kernel, choice.workspace_bytes) == ("numpy", 0)
    assert "no GPU" in choice.why


@pytest.mark.parametrize(
    ("gpu", "n", "kernel"),
    [
        ("v100", 4096, "pipelined"),  # no mma.sync of 16×8×16
        ("h200", 512, "pipelined"),  # one launch is queued sooner
        ("h200", 4096, "tcec_batched"),
        ("a100_80gb", 512, "pipelined"),
        ("a100_80gb", 4096, "tcec_registers"),
        ("rtx4090", 4096, "pipelined"),  # a third of the rate of its Tensor Cores is less
    ],
)
def test_the_kernel_is_chosen_by_gpu_and_size(gpu, n, kernel):
    name, tiling, why = fastest(device(gpu), (1, n, n, n), "nn")
    assert name == kernel
    ways = [*by_units(device(gpu), (1, n, n, n), "nn")]
    if device(gpu).compute_capability >= choosing.MMA:
        ways += by_tensor_cores(device(gpu), (1, n, n, n), "nn")
        assert "predicted" in why
    best = min(ways, key=cost)
    assert (best.kernel, best.tiling) == (name, tiling)


@pytest.mark.parametrize(
    ("capability", "n", "kernel"),
    [((8, 9), 8192, "pipelined"), ((12, 0), 8192, "pipelined"), ((9, 0), 8192, "tcec_batched"),
     ((9, 0), 512, "pipelined"), ((11, 0), 8192, "pipelined")],
)  # fmt: skip
def test_without_rates_nothing_is_predicted(capability, n, kernel):
    """Of Tensor Cores, by whose rates alone a product on them could be said to be faster."""
    known = ("float32", "float64") if capability < (10, 0) or capability == (12, 0) else ()
    peak = {dtype: device("h200").peak[dtype] for dtype in known}
    flop = {dtype: device("h200").flop_per_cycle_per_sm[dtype] for dtype in known}
    card = replace(
        device("h200"), compute_capability=capability, flop_per_cycle_per_sm=flop, peak=peak
    )
    name, _, why = fastest(card, (1, n, n, n), "nn")
    assert name == kernel
    assert "not known" in why
    assert "µs" not in why


def test_a_grid_has_so_many_rows_of_blocks():
    name, tiling, _ = fastest(device("h200"), (1, 5_000_000, 16, 16), "nn")
    assert -(-5_000_000 // tiling.block[0]) <= choosing.MOST_BLOCKS or name == "tcec_batched"
    with pytest.raises(ValueError, match="9000000×16×16 has more tiles than a launch has blocks"):
        fastest(device("v100"), (1, 9_000_000, 16, 16), "nn")


def test_many_small_products_are_one_launch():
    one, many = (fastest(device("h200"), (batch, 64, 64, 64), "nn")[0] for batch in (1, 256))
    assert (one, many) == ("pipelined", "tcec_batched")


def test_small_products_have_tiles_for_all_processors():
    small, large = (fastest(device("v100"), (1, n, n, n), "nn")[1].block[:2] for n in (500, 4096))
    assert small == (64, 64)
    assert large == (128, 128)
    # Two tiles of 64 columns in place of one of 128, where Python is not what takes long.
    ways = {
        way.tiling.block[1]: way.gpu
        for way in by_tensor_cores(device("h200"), (1, *[1024] * 3), "nn")
    }
    assert ways[64] < ways[128]


def test_a_kernel_that_has_no_room_is_no_way():
    stages = {
        way.tiling.stages for way in by_tensor_cores(device("rtx4090"), (1, *[512] * 3), "nn")
    }
    assert max(stages) < kernels.tcec_registers.default.stages


# ---------------------------------------------------------------------------------------- memory


@pytest.mark.parametrize("kernel", ["tcec_batched", "tcec_registers"])
def test_panels_fit_the_budget_and_the_smallest_is_told(kernel):
    def needs(batch, m, n):
        return workspace_bytes(kernel, "tn", 1000, 1, 3, batch, m, n)

    whole = needs(5, 900, 700)
    assert fitting((5, 900, 700), needs, None) == fitting((5, 900, 700), needs, whole)
    before = whole + 1
    for budget in (whole, whole - 1, whole // 3, whole // 20, needs(1, SIDE, SIDE)):
        panel = fitting((5, 900, 700), needs, budget)
        assert needs(*panel) <= min(budget, before)
        before = needs(*panel)
    with pytest.raises(ValueError, match=f"takes {needs(1, SIDE, SIDE)} B"):
        fitting((5, 900, 700), needs, needs(1, SIDE, SIDE) - 1)


def test_the_split_takes_as_many_bytes_as_the_operands():
    m, n, k = 4096, 2048, 8192
    for layout in ("nn", "tt"):
        told = workspace_bytes("tcec_batched", layout, k, 1, 3, 1, m, n)
        assert told == 4 * k * (m + n) + 8 * (m + n) + 4 * 128  # parts, lines, tensor maps


# ----------------------------------------------------------------------------------------- stacks


def stack_of(x):
    return Stack.of(*arrays.seen(x))


def seen(stack):
    return np.asarray(type("X", (), {"__array_interface__": stack.interface(3)})())


def test_stacks_are_views():
    x = normal(2, 6, 8)
    for array in (x, x.swapaxes(1, 2), x[:, 1:, :5], x[:, ::2]):
        stack = stack_of(array)
        assert np.shares_memory(seen(stack), x)
        assert np.array_equal(seen(stack), array)
        assert np.array_equal(seen(stack.transposed), array.swapaxes(1, 2))
        part = stack.cut((1, 2), (0, 3), (2, 4))
        assert np.array_equal(seen(part), array[1:2, :3, 2:4])
    assert not stack_of(x).is_transposed
    assert stack_of(x.swapaxes(1, 2)).is_transposed


VIEWS = {
    "rows": lambda x: x,
    "columns": lambda x: x.swapaxes(1, 2),
    "part": lambda x: x[:, 1:, :5],
    "gaps": lambda x: x[:, ::2, ::2],
    "gaps in columns": lambda x: x.swapaxes(1, 2)[:, ::2, ::2],
    "backwards": lambda x: x[:, ::-1],
    "one column": lambda x: x[:, :, :1],
    "one row": lambda x: x[:, :1],
    "one element": lambda x: x[:, :1, :1],
    "a matrix's columns": lambda x: x[0].T,
}


@pytest.mark.parametrize("view", VIEWS.values(), ids=VIEWS)
def test_what_is_chosen_is_told_without_a_copy(view, monkeypatch):
    x = view(normal(2, 6, 8))
    found = stack_of(x).is_transposed
    monkeypatch.setattr(arrays, "_contiguous", None)
    assert arrays.is_transposed(x) == found


def test_what_has_gaps_everywhere_is_copied():
    x = normal(6, 8)[::2, ::2]
    stack = stack_of(x)
    assert np.array_equal(seen(stack)[0], x)
    assert not np.shares_memory(seen(stack), x)


def test_rows_are_aligned_or_not():
    x = np.zeros(68, np.float32)
    start = -x.__array_interface__["data"][0] % 16 // 4
    x = x[start:][:64].reshape(2, 4, 8)
    assert stack_of(x).aligned
    for other in (x[:, :, 1:5], x[:, :, :6], x.swapaxes(1, 2), x.reshape(2, 32)[:, 2:].T):
        assert not stack_of(other).aligned


# ---------------------------------------------------------------------------------------- PyTorch


@pytest.fixture
def with_torch(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", torch)


@pytest.mark.usefixtures("with_torch")
def test_tensors_give_tensors_and_their_gradients():
    a, b, dc = normal(2, 5, 7), normal(2, 4, 7), normal(2, 5, 4)
    x, w = Tensor(a, requires_grad=True), Tensor(b, requires_grad=True)
    c = gemmlab.matmul(x, w.transpose(-2, -1))
    assert type(c) is Tensor
    assert is_product(c.data, a, b.swapaxes(1, 2))
    c.backward(Tensor(dc))
    assert is_product(x.grad.data, dc, b)
    assert is_product(w.grad.data, dc.swapaxes(1, 2), a)


@pytest.mark.usefixtures("with_torch")
def test_gradients_are_computed_where_they_are_asked_for():
    a, b = normal(5, 7), normal(7, 4)
    x, w = Tensor(a), Tensor(b, requires_grad=True)
    gemmlab.matmul(x, w).backward(Tensor(normal(5, 4)))
    assert x.grad is None
    assert w.grad.shape == (7, 4)
    with torch.no_grad():
        assert not gemmlab.matmul(x, w).requires_grad
    assert not gemmlab.matmul(x, Tensor(b)).requires_grad
    with pytest.raises(ValueError, match="torch's on the host"):
        gemmlab.matmul(x, Elsewhere(b))


def test_a_tensor_of_the_host_may_have_a_number():
    x = Tensor(normal(3, 3))
    x.device.index = 0
    assert arrays.place_of("a", x) == ("torch", None)


class Elsewhere(Tensor):
    """A tensor of another place."""

    def __init__(self, data):
        super().__init__(data)
        self.device.type, self.device.index = "cuda", 1


Elsewhere.__module__ = "torch"


# --------------------------------------------------------------------------------------- on a GPU


@pytest.mark.gpu
@pytest.mark.parametrize(("m", "n", "k"), [(1500, 1600, 1601), (64, 40, 33)])
def test_device_arrays_of_numba(m, n, k):
    from gemmlab.instructions import host

    a, b = normal(m, k), normal(k, n)
    a[3, 5], a[7, 0], b[2, 8] = np.nan, np.inf, -np.inf
    a[9] *= np.float32(2.0**20)
    cuda = host.cuda()
    c = gemmlab.matmul(cuda.to_device(a), cuda.to_device(b))
    assert cuda.is_cuda_array(c)
    found, rows = c.copy_to_host(), [0, 9, m - 1]
    with np.errstate(invalid="ignore"):
        expected = a @ b
    assert np.array_equal(np.isnan(found), np.isnan(expected))
    assert np.array_equal(np.isposinf(found), np.isposinf(expected))
    columns = np.arange(n) != 8
    assert is_product(found[rows][:, columns], a[rows], b[:, columns])


@pytest.mark.gpu
def test_many_products_of_cupy_on_a_stream():
    cupy = pytest.importorskip("cupy")
    a, b = normal(9, 640, 1000), normal(9, 700, 1000).swapaxes(1, 2)
    with cupy.cuda.Stream(non_blocking=True) as stream:
        there = cupy.asarray(a), cupy.asarray(b.swapaxes(1, 2)).swapaxes(1, 2)
        c = gemmlab.matmul(*there)
        small = gemmlab.matmul(*there, workspace_bytes=10_000_000)
        stream.synchronize()
    assert type(c) is cupy.ndarray
    assert is_product(cupy.asnumpy(c), a, b)
    assert bool((c == small).all())


@pytest.mark.gpu
def test_gradients_of_pytorch():
    torch = pytest.importorskip("torch")
    x, w = (torch.randn(1600, 1600, device="cuda", requires_grad=True) for _ in range(2))
    gemmlab.matmul(x, w.T).square().sum().backward()
    found = x.grad, w.grad
    x.grad = w.grad = None
    (x.double() @ w.double().T).square().sum().backward()
    for own, right in zip(found, (x.grad, w.grad), strict=True):
        assert (own - right).norm() < 1e-5 * right.norm()
