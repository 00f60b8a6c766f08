"""The benchmark of the ladder, on a stand-in for a GPU: turns, columns and verdicts."""

from dataclasses import replace
from types import SimpleNamespace

import pytest

from benchmarks import ladder
from gemmlab import Gemm, device, kernels
from tests.support.fake_gpu import installed

CHOSEN = [kernels.naive, kernels.tiled]


@pytest.fixture
def host(monkeypatch):
    yield from installed(monkeypatch)


def test_kernels_take_turns(host):
    found = ladder.measure(CHOSEN, Gemm(20, 20, 20), rounds=3, every_tiling=False)
    assert [(m.kernel, m.tiling) for m in found] == [(k.name, k.default) for k in CHOSEN]
    assert {len(m.samples) for m in found} == {3}
    assert all(m.passed for m in found)
    # Both have blocks of 16×16 threads; between two flushes there is one launch.
    timed = "".join(word[0] for word, *_ in host.log if word in ("flush", "launch"))
    assert timed.endswith("flfl" * (ladder.gpu.WARM_UP + 3))


def test_every_tiling_on_request(host):
    found = ladder.measure([kernels.tiled], Gemm(20, 20, 20), rounds=1, every_tiling=True)
    assert {m.tiling for m in found} == {kernels.tiled.default, *kernels.tiled.tilings}
    assert len(found) == len(kernels.tiled.tilings)


def test_a_layout_that_a_kernel_does_not_take_is_left_out(host):
    assert ladder.measure(CHOSEN, Gemm(20, 20, 20, layout="nt"), 1, every_tiling=False) == []


def test_the_table_relates_rates_to_cublas_and_to_the_peak(host):
    h200 = device("h200")
    slow, fast = ladder.measure(CHOSEN, Gemm(1000, 10, 10), rounds=2, every_tiling=False)
    slow = replace(slow, samples=(4e-6,) * 3, error=1.0)
    cublas = replace(fast, kernel="cublas", tiling=None, samples=(1e-6,) * 3, resources={})
    head, one, two = ladder.table([slow, cublas], h200).splitlines()
    assert head.split()[:3] == ["kernel", "tile", "TFLOP/s"]
    peak = h200.peak["float32"]
    assert one.split()[:6] == [
        *("naive", "16x16x1", "0.050", "0.05-0.05", "0.250", f"{0.05e12 / peak:.3f}"),
    ]
    assert "WRONG" in one
    assert two.split()[:5] == ["cublas", "-", "0.200", "0.20-0.20", "1.000"]
    assert two.split()[7:11] == ["-"] * 4
    assert len({len(head), len(one), len(two)}) == 1
    assert ladder.table([slow], h200).splitlines()[1].split()[4] == "-"  # nothing to relate it to


def test_without_a_gpu_it_is_one_line(monkeypatch, capsys):
    status = SimpleNamespace(works=False, reason="no NVIDIA driver is installed")
    monkeypatch.setattr(ladder, "gpu_status", lambda: status)
    assert ladder.main(["simt"]) == 1
    assert capsys.readouterr() == ("", "this needs a GPU: no NVIDIA driver is installed\n")


@pytest.mark.parametrize("wrong", [False, True])
def test_a_wrong_result_is_told_in_the_exit_code(host, monkeypatch, capsys, wrong):
    monkeypatch.setattr(ladder, "gpu_status", lambda: SimpleNamespace(works=True))
    monkeypatch.setattr(ladder, "detect", lambda: device("h200"))
    if wrong:
        monkeypatch.setattr(ladder, "check", lambda *arguments: SimpleNamespace(error=1.0))
    options = ["simt", "20", "24x8x8", "--rounds=2", "--kernels=naive,tiled"]
    assert ladder.main(options) == int(wrong)
    text = capsys.readouterr().out
    assert text.count("WRONG") == (4 if wrong else 0)
    assert "20x20x20 float32" in text
    assert "24x8x8 float32" in text


@pytest.mark.parametrize(
    ("of", "options", "told"),
    [
        ("tensor_core", ["--kernels=mma_direct", "--layout=nt"], "32x32x32 float16 to float32 nt"),
        ("tcec", ["--kernels=tcec_registers"], "tcec_registers: error "),
    ],
)
def test_other_ladders_are_compared_alike(host, monkeypatch, capsys, of, options, told):
    monkeypatch.setattr(ladder, "gpu_status", lambda: SimpleNamespace(works=True))
    monkeypatch.setattr(ladder, "detect", lambda: device("h200"))
    assert ladder.main([of, "32", "--rounds=1", *options]) == 0
    text = capsys.readouterr().out
    assert told in text
    assert "of cuBLAS" in text
