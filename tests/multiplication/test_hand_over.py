"""Products that the library which owns the arrays multiplies, and those that it does not."""

import statistics
import sys
from dataclasses import replace
from types import SimpleNamespace
from typing import NamedTuple

import numpy as np
import pytest

import gemmlab
from gemmlab import Gemm, device, kernels
from gemmlab.measure.benchmarks import drawn_matmul_times
from gemmlab.measure.beside import beside_torch
from gemmlab.multiplication import arrays, calling
from gemmlab.multiplication.choosing import (
    SURE,
    by_tensor_cores,
    cost,
    fastest,
    few,
    of_library,
    parts_of,
)
from gemmlab.numerics import Policy, backward_error, emulated_matmul
from gemmlab.numerics.fma import fma_chain
from tests.support.torch_stand_in import Tensor


@pytest.mark.parametrize(
    ("sizes", "kernel"),
    [
        ((1, 4096, 4096, 4096), "tcec_batched"), ((1, 333, 7777, 5001), "tcec_batched"),
        ((16, 1024, 1024, 1024), "tcec_batched"),
        ((1, 16, 4096, 4096), "library"), ((1, 1, 8192, 8192), "library"),
        ((1, 65536, 64, 64), "library"), ((1, 256, 256, 65536), "library"),
        ((1, 352, 1, 52048), "library"), ((1, 512, 512, 512), "library"),
        ((256, 128, 128, 128), "library"),
    ],
)  # fmt: skip
def test_a_library_multiplies_where_nothing_is_known_to_be_faster(sizes, kernel):
    name, tiling, why = fastest(device("h200"), sizes, "nn", "torch")
    assert name == kernel
    assert (tiling is None) == (name == "library")
    assert ("torch multiplies by cuBLAS: Tensor Cores are not known" in why) == (name == "library")


def test_more_parts_of_k_than_were_measured_are_not_sure():
    """384×384×65536 in 14 parts is predicted to take less than SGEMM, and is the library's."""
    gpu, sizes = device("h100_sxm"), (1, 384, 384, 65536)
    way = min(by_tensor_cores(gpu, sizes, "nn"), key=cost)
    assert parts_of(way.tiling, sizes, gpu.sms) > 8
    assert SURE * way.seconds < of_library(gpu, sizes)
    assert fastest(gpu, sizes, "nn", "torch")[0] == "library"


def test_a_gpu_without_rates_or_tensor_cores_is_the_librarys():
    assert fastest(device("v100"), (1, 4096, 4096, 4096), "nn", "cupy")[0] == "library"
    card = replace(device("h200"), peak={}, clock=None)
    assert "is not known" in fastest(card, (1, 4096, 4096, 4096), "nn", "cupy")[2]


def test_no_product_was_slower_than_the_library_by_more_than_a_call():
    """On an H100: by Tensor Cores always far faster; by the library the same, but for Python."""
    products = beside_torch("h100_sxm").products
    own = [x for x in products if x.kernel != "library"]
    handed = [x for x in products if x.kernel == "library"]
    assert (len(products), len(own)) == (110, 25)
    assert min(x.ratio for x in own) > 1.4
    assert min(x.their_single / x.single for x in own) > 1.2
    longer = [x.loop - x.their_loop for x in handed]
    assert statistics.median(longer) < 1e-6
    assert all(y < max(4e-6, 0.007 * x.their_loop) for x, y in zip(handed, longer, strict=True))
    assert all(x.error <= 1.2 * x.their_error for x in products)
    assert all(x.largest <= 1.2 * x.their_largest for x in products)


def test_what_was_measured_is_what_is_chosen_now():
    gpu, products = device("h100_sxm"), beside_torch("h100_sxm").products
    for x in (*(x for x in products if x.kernel != "library"), *products[::12]):
        sizes = x.batch, x.m, x.n, x.k
        kernel, tiling, _ = fastest(gpu, sizes, "nn", "torch")
        assert kernel == x.kernel, x.name
        assert x.parts == (parts_of(tiling, sizes, gpu.sms) if tiling else 1), x.name


def test_old_records_have_no_product_far_slower_than_the_library():
    """Beside cuBLAS by CuPy on an H200, before hand-overs were short."""
    products = drawn_matmul_times().products
    own = [x for x in products if x.kernel == "tcec_batched"]
    handed = [x for x in products if x.kernel == "library"]
    assert len(own) + len(handed) == len(products) == 60
    assert min(x.cublas_loop / x.loop for x in own) > 1.4
    assert min(x.cublas_gpu / x.gpu for x in handed) > 0.85
    assert max(x.loop - x.cublas_loop for x in handed) < 20e-6
    assert all(x.error <= 1.2 * x.cublas_error for x in products)


@pytest.mark.parametrize("k", [32, 64, 512])
@pytest.mark.parametrize("kind", ["normal", "positive"])
def test_short_sums_err_no_more_than_a_chain(k, kind):
    """The interval of main products follows k: with 64, positive numbers err 1.66 times as much."""
    rng = np.random.default_rng(3)
    a, b = (
        rng.standard_normal(shape, np.float32)
        if kind == "normal"
        else rng.random(shape, np.float32)
        for shape in ((24, k), (k, 24))
    )
    every = kernels.tcec_split.choose(None, Gemm(24, 24, k), device("h100_sxm")).block[2] // 16
    exact, scale = a.astype(float) @ b.astype(float), np.float32(2.0**8)
    ours = emulated_matmul(a * scale, b * scale, Policy(every=every)) / scale**2
    chain = fma_chain(a[:, None, :], b.T[None, :, :])
    assert np.linalg.norm(ours - exact) <= 1.2 * np.linalg.norm(chain - exact)
    assert backward_error(ours, exact, a, b) <= 1.2 * backward_error(chain, exact, a, b)


def test_a_sum_of_few_is_for_fp32_units():
    name, _, why = fastest(device("h200"), (1, 8192, 8192, 16), "nn")
    assert name == "pipelined"
    assert "a sum of 16 is rounded less by FP32 units" in why


class Result(str):
    """What a library returns, as far as it is looked at: a name, in a format."""

    dtype = "torch.float32"


@pytest.fixture
def handing(monkeypatch):
    """A stand-in for PyTorch on a GPU, which notes what it multiplies, and by which function."""

    def product(name):
        def multiply(a, b):
            if a.device != b.device or a.shape[-1] != b.shape[-2] or len(a.shape) != len(b.shape):
                raise RuntimeError(f"{name} takes what fits together")
            torch.seen.append((name, a.shape, b.shape))
            return torch.result

        return multiply

    torch = SimpleNamespace(
        **{name: product(name) for name in ("matmul", "mm", "bmm")},
        compiler=SimpleNamespace(is_compiling=lambda: False, is_dynamo_compiling=lambda: False),
        get_float32_matmul_precision=lambda: torch.precision,
        is_autocast_enabled=lambda: torch.casts,
        is_grad_enabled=lambda: False,
        precision="highest",
        casts=False,
        result=Result("by the library"),
        seen=[],
        float32=Result.dtype,
        Tensor=Tensor,
        nn=SimpleNamespace(Parameter=Tensor),
        autograd=SimpleNamespace(),
    )
    torch.cuda = SimpleNamespace(
        current_device=lambda: 0, is_current_stream_capturing=lambda: False
    )
    monkeypatch.setitem(sys.modules, "torch", torch)
    monkeypatch.setattr(calling, "gpu_status", lambda: SimpleNamespace(works=True))
    monkeypatch.setattr(calling, "detect", lambda: device("h200"))
    monkeypatch.setattr(calling, "by_kept_calls", lambda *told: lambda a, b: "by us")
    forget()
    yield torch
    forget()


def forget():
    """Forget what was decided of operands."""
    calling._choice.cache_clear()
    calling.DECIDED.clear()
    calling.OF_TENSORS.clear()


@pytest.fixture
def checked(monkeypatch):
    """Notes each check of operands."""
    seen, check = [], arrays.check
    monkeypatch.setattr(arrays, "check", lambda *x: seen.append(1) or check(*x))
    return seen


class Device(NamedTuple):
    """A device of PyTorch's."""

    type: str
    index: int


def tensor(*shape, index=0):
    found = Tensor(np.broadcast_to(np.float32(0), shape))
    found.device = Device("cuda", index)
    return found


def test_what_is_handed_over_is_known_again(handing, checked):
    a, b = tensor(8, 16), tensor(16, 4)
    for _ in range(3):
        assert calling.multiply(a, b, None) == "by the library"
    assert handing.seen == [("matmul", (8, 16), (16, 4))] * 3
    assert len(checked) == 1
    assert calling.choose(a, b, None).kernel == "library"


def entered(call):
    """The functions of ours that a call enters, in their order."""
    seen = []

    def note(frame, event, argument):
        if event == "call" and "/gemmlab/multiplication/" in frame.f_code.co_filename:
            seen.append(frame.f_code.co_name)

    sys.setprofile(note)
    try:
        call()
    finally:
        sys.setprofile(None)
    return seen


def test_to_hand_over_takes_two_steps(handing, checked):
    """These are what a call takes beside the library's own, once a tensor has been multiplied."""
    multiply = gemmlab.matmul
    multiply(tensor(8, 16), tensor(16, 4))
    of_few, long = calling.OF_TENSORS[Tensor], 44980
    for a, b in (
        (tensor(64, 64), tensor(64, 64)), (tensor(9, 17, 5), tensor(9, 5, 2)),
        (tensor(46, long), tensor(long, 118)),
    ):  # fmt: skip
        found = []
        steps = entered(lambda a=a, b=b, found=found: found.append(multiply(a, b)))
        assert steps in (["matmul", "multiply_few"], ["matmul", "multiply_few", "<lambda>"])
        assert found == ["by the library"]
        assert handing.seen[-1] == ("mm" if len(a.shape) == 2 else "bmm", a.shape, b.shape)
    assert len(checked) == 1
    multiply(tensor(8, 16), tensor(16, 4), products=1)
    assert calling.OF_TENSORS[Tensor] is of_few  # for another one PyTorch would compile anew
    assert len(checked) == 2


def test_no_product_of_few_is_for_tensor_cores():
    """On any GPU, as far as sizes go; and not far fewer than could be handed over."""
    rng = np.random.default_rng(8)
    for gpu in map(device, ("h100_sxm", "h200", "a100_80gb", "rtx4090")):
        for count in (1, 64):
            for m, k in np.rint(2 ** rng.uniform(5, 11, (4, 2))).astype(int).tolist():
                sizes = count, m, int(0.99 * few(gpu) / (count * m * k)), k
                assert fastest(gpu, sizes, "nn", "torch")[0] == "library", (gpu.name, sizes)
    assert few(device("v100")) == few(replace(device("h200"), peak={}, clock=None)) == np.inf
    assert few(device("h100_sxm")) > 1536**3 / 2.5
    assert fastest(device("h100_sxm"), (1, 1536, 1536, 1536), "nn", "torch")[0] == "tcec_batched"


WRONG = {
    "a has shape (8, 16) and b (8, 16)": (tensor(8, 16), tensor(8, 16)),
    "a has shape (16,) and b (16, 4)": (tensor(16), tensor(16, 4)),
    "a has shape (8, 16) and b (16,)": (tensor(8, 16), tensor(16)),
    "a has shape (8, 16) and b ()": (tensor(8, 16), tensor()),
    "a has shape (2, 8, 16) and b (16, 4)": (tensor(2, 8, 16), tensor(16, 4)),
    "a has shape (8, 0) and b (0, 4)": (tensor(8, 0), tensor(0, 4)),
    "a is torch's on GPU 0 and b torch's on GPU 1": (tensor(8, 16), tensor(16, 4, index=1)),
    "a is torch's on GPU 0 and b numpy's on the host": (
        tensor(8, 16), np.zeros((16, 4), np.float32)
    ),
    "b is a builtins.list; use NumPy and CuPy arrays": (tensor(8, 16), [[1.0]] * 16),
}  # fmt: skip


@pytest.mark.parametrize("told", WRONG)
def test_what_does_not_fit_is_quoted_although_little_is_looked_at(handing, told):
    gemmlab.matmul(tensor(8, 16), tensor(16, 4))
    with pytest.raises((TypeError, ValueError)) as caught:
        gemmlab.matmul(*WRONG[told])
    assert told in str(caught.value)
    assert len(handing.seen) == 1


def test_terms_are_checked_where_little_is_looked_at(handing):
    a, b = tensor(8, 16), tensor(16, 4)
    gemmlab.matmul(a, b)
    with pytest.raises(ValueError, match="products=4; use 1, 2 or 3"):
        gemmlab.matmul(a, b, products=4)
    with pytest.raises(TypeError, match="workspace_bytes"):
        gemmlab.matmul(a, b, workspace_bytes=1.5)
    assert gemmlab.matmul(a, b, products=1) == "by the library"


def test_what_the_library_itself_cannot_do_is_its_own_error(handing):
    a, b = tensor(8, 16), tensor(16, 4)
    gemmlab.matmul(a, b)

    def refuse(a, b):
        raise RuntimeError("out of memory")

    handing.mm = handing.matmul = refuse
    forget()
    with pytest.raises(RuntimeError, match="out of memory"):
        gemmlab.matmul(a, b)


@pytest.mark.parametrize("multiply", [gemmlab.matmul, lambda a, b: calling.multiply(a, b, None)])
def test_a_library_that_rounds_to_tf32_or_casts_does_not_multiply(handing, checked, multiply):
    """It is asked at each call; what is known of operands stays known."""

    def raising():
        raise RuntimeError("PyTorch is checking the matmul precision without a specific name")

    a, b = tensor(8, 16), tensor(16, 4)
    half = Result("rounded")
    half.dtype = "torch.float16"
    keeps = {"precision": "highest", "casts": False, "result": handing.result}
    for now, expected in (
        ({}, "by the library"),
        ({"precision": "high"}, "by us"),
        ({}, "by the library"),
        ({"casts": True, "result": half}, "by us"),  # autocast's product is in 16 bits
        ({"precision": "medium"}, "by us"),
        ({}, "by the library"),
    ):
        vars(handing).update({**keeps, **now})
        assert multiply(a, b) == expected
    assert len(checked) == 1
    vars(handing).update({**keeps, "get_float32_matmul_precision": raising})
    forget()
    assert [multiply(a, b) for _ in range(2)] == ["by us"] * 2
    assert calling.choose(a, b, None).kernel == "pipelined"
