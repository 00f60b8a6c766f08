"""Persistent launches: as many blocks as the device that is asked for has SMs, whoever asks."""

import math
from dataclasses import replace

import pytest

from book.rooms import imports
from gemmlab import Gemm, device, kernels, predict
from gemmlab.compiled.forecast.rung_listings import usual
from gemmlab.compiled.forecast.rungs import predict_rung
from gemmlab.kernels.batched import tcec_batched
from gemmlab.kernels.own import own
from tests.support.paths import ROOT

H200 = device("h200")
FEWER = replace(H200, sms=114)
PERSISTENT = [kernel for kernel in kernels.GPU if kernel.persistent]
each = pytest.mark.parametrize("kernel", PERSISTENT, ids=lambda kernel: kernel.name)


def of(kernel, size):
    return usual(kernel, Gemm(*size))


def test_which_they_are():
    assert {kernel.name for kernel in PERSISTENT} == {
        *("mma_tma", "warp_specialised", "tma_stored", "wgmma_split_k"),
        *("tcec_split", "tcec_fused", "tcec_mma_tma"),
    }


@each
def test_the_grid_is_of_the_device(kernel):
    large, small = of(kernel, (8192, 8192, 64)), of(kernel, (256, 256, 64))
    covering, block = kernel.configure(large, kernel.default)
    assert covering[0] > H200.sms
    for gpu in (H200, FEWER):
        assert kernel.launch(large, kernel.default, gpu) == ((gpu.sms, 1), block)
        few = kernel.configure(small, kernel.default)
        assert kernel.launch(small, kernel.default, gpu) == few
        assert few[0][0] < gpu.sms


def test_other_launches_cover_c_on_any_device():
    for kernel in {*kernels.GPU} - {*PERSISTENT}:
        for one in kernel.launches:
            problem = of(kernel, (4096, 4096, 64))
            configured = one.configure(problem, kernel.default)
            assert one.launch(problem, kernel.default, FEWER) == configured


def test_tiles_of_many_products_share_the_blocks():
    tiling = kernels.tcec_split.default
    for gpu in (H200, FEWER):
        assert tcec_batched.launch(tiling, 50, 300, 300, gpu)[0] == (gpu.sms, 1)
        assert tcec_batched.launch(tiling, 2, 300, 300, gpu)[0] == (2 * 3 * 3, 1)


@each
def test_predictions_are_of_its_blocks(kernel):
    """Each block waits at one barrier before it begins, and has nothing else to wait at there."""
    problem = of(kernel, (8192, 8192, 64))
    work = kernel.work(problem, kernel.default)
    assert work.block_counters["barriers"] == 1
    for gpu in (H200, FEWER):
        found = predict(problem, gpu, kernel, kernel.default)
        assert found.counters["barriers"] - work.counters["barriers"] == gpu.sms
        tiles = math.prod(kernel.configure(problem, kernel.default)[0])
        math_time = max(n / gpu.peak_of(pipe) for pipe, n in work.flops.items())
        waves = -(-tiles // gpu.sms)
        assert found.times["math"] == pytest.approx(math_time * waves * gpu.sms / tiles)


@pytest.mark.parametrize(
    "kernel",
    [kernels.warp_specialised, pytest.param(kernels.tcec_split, marks=pytest.mark.measuring)],
)
def test_compiled_code_is_executed_with_its_blocks(kernel):
    problem = of(kernel, (2048, 4096, 256))
    times = []
    for gpu in (H200, FEWER):
        found = predict_rung(problem, gpu, kernel)
        assert math.prod(found.share.grid) == gpu.sms
        times.append(found.times["sm"])
    assert times[1] > times[0]  # more tiles for each


def test_a_grid_of_ones_own_stays():
    problem = of(kernels.mma_tma, (8192, 8192, 64))
    mine = own(kernels.mma_tma, grid=(200, 1))
    assert mine.launch(problem, mine.default, FEWER)[0] == (200, 1)
    assert own(kernels.mma_tma).launch(problem, mine.default, FEWER)[0] == (114, 1)


# ------------------------------------------------------------- nothing depends on where Python runs


def test_no_kernel_asks_the_machine():
    files = sorted((ROOT / "gemmlab/kernels").rglob("*.py"))
    assert len(files) > 50
    assert [path.name for path in files if "here" in imports(path.read_text("utf-8"))] == []


@pytest.mark.parametrize(
    "text",
    [
        "import gemmlab.here.driver",
        "from gemmlab import here",
        "from gemmlab.here.driver import x",
    ],
)
def test_the_rule_can_fail(text):
    assert "here" in imports(text)
    assert "here" in imports(f"def f():\n    {text}\n")
