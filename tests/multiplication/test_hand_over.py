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
    assert min(x.their_single / x.single for x in own) > 1.3
    longer = [x.loop - x.their_loop for x in handed]
    assert statistics.median(longer) < 2.5e-6
    assert all(y < max(5e-6, 0.003 * x.their_loop) for x, y in zip(handed, longer, strict=True))
    assert all(x.error <= 1.2 * x.their_error for x in products)
    assert all(x.largest <= 1.2 * x.their_largest for x in products)


def test_what_was_measured_is_what_is_chosen_now():
    gpu, products = device("h100_sxm"), beside_torch("h100_sxm").products
    for x in (*(x for x in products if x.kernel != "library"), *products[::8]):
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


def handing(monkeypatch, precision="highest", casts=False):
    """A stand-in for PyTorch on a GPU, which notes what it multiplies."""
    seen = []

    def product(a, b):
        seen.append((a.shape, b.shape))
        return "by the library"

    torch = SimpleNamespace(
        compiler=SimpleNamespace(is_compiling=lambda: False),
        matmul=product,
        get_float32_matmul_precision=lambda: precision,
        is_autocast_enabled=lambda: casts,
        Tensor=Tensor,
    )
    monkeypatch.setitem(sys.modules, "torch", torch)
    monkeypatch.setattr(calling, "gpu_status", lambda: SimpleNamespace(works=True))
    monkeypatch.setattr(calling, "detect", lambda: device("h200"))
    calling._choice.cache_clear()
    calling.DECIDED.clear()
    return seen


class Device(NamedTuple):
    """A device of PyTorch's."""

    type: str
    index: int


def tensor(*shape):
    return Tensor(np.zeros(shape, np.float32))


def test_what_is_handed_over_is_known_again(monkeypatch):
    seen = handing(monkeypatch)
    a, b = tensor(8, 16), tensor(16, 4)
    a.device = b.device = Device("cuda", 0)
    checked = []
    monkeypatch.setattr(
        arrays, "check", lambda *x, real=arrays.check: checked.append(1) or real(*x)
    )
    for _ in range(3):
        assert calling.multiply(a, b, None) == "by the library"
    assert seen == [((8, 16), (16, 4))] * 3
    assert len(checked) == 1
    assert calling.choose(a, b, None).kernel == "library"
    calling._choice.cache_clear()
    calling.DECIDED.clear()


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


def test_to_hand_over_takes_two_steps(monkeypatch):
    """Half a microsecond each: these are what a call takes beside the library's own."""
    handing(monkeypatch)
    a, b = tensor(8, 16), tensor(16, 4)
    a.device = b.device = Device("cuda", 0)
    multiply = gemmlab.matmul
    multiply(a, b)
    assert entered(lambda: multiply(a, b)) == ["matmul", "multiply_in_fp32"]
    calling._choice.cache_clear()
    calling.DECIDED.clear()


@pytest.mark.parametrize("told", [("high", False), ("highest", True)])
def test_a_library_that_rounds_to_tf32_or_casts_does_not_multiply(monkeypatch, told):
    """It is asked at each call; what is known of operands stays known."""
    seen, checked = handing(monkeypatch, *told), []
    monkeypatch.setattr(calling, "multiplied", lambda *_: "by us")
    monkeypatch.setattr(calling, "is_recorded", lambda a, b: False)
    monkeypatch.setattr(
        arrays, "check", lambda *x, real=arrays.check: checked.append(1) or real(*x)
    )
    a, b = tensor(8, 16), tensor(16, 4)
    a.device = b.device = Device("cuda", 0)
    assert [calling.multiply(a, b, None) for _ in range(3)] == ["by us"] * 3
    assert len(checked) == 1
    assert seen == []
    assert calling.choose(a, b, None).kernel == "pipelined"
    calling._choice.cache_clear()
    calling.DECIDED.clear()
