"""The benchmark of `matmul`, on a stand-in for CuPy, and its records."""

from types import SimpleNamespace

import numpy as np
import pytest

from benchmarks import matmul as benchmark
from benchmarks import readme
from gemmlab.measure import store
from gemmlab.measure.benchmarks import Part, matmul_times
from gemmlab.multiplication.choosing import Choice

MILLISECONDS = 3.0  # between any two events


def cupy_of(waited):
    """A stand-in for CuPy, whose device finishes when it is waited for."""
    event = SimpleNamespace(record=lambda: None, synchronize=lambda: waited.append("event"))
    device = SimpleNamespace(synchronize=lambda: waited.append("device"))
    cuda = SimpleNamespace(
        Event=lambda: event, Device=lambda: device, get_elapsed_time=lambda start, end: MILLISECONDS
    )
    return SimpleNamespace(cuda=cuda, matmul=np.matmul, asnumpy=np.asarray)


@pytest.fixture
def measured(monkeypatch):
    choice = Choice("tcec_batched", "", None, 2, 8, 9, 5, "nn", (2, 8, 9))
    monkeypatch.setattr(benchmark, "flush", lambda cuda: None)
    monkeypatch.setattr(benchmark, "numba_cuda", lambda: None)
    monkeypatch.setattr(benchmark, "matmul", lambda a, b: a @ b + np.float32(1))
    monkeypatch.setattr(benchmark, "matmul_choice", lambda a, b: choice)
    rng, waited = np.random.default_rng(0), []
    a, b = (rng.random(shape, np.float32) for shape in ((2, 8, 5), (2, 5, 9)))
    return benchmark.product(cupy_of(waited), a, b, 2), waited


def test_a_product_has_the_times_and_errors_of_both(measured):
    found, waited = measured
    assert found.gpu == found.cublas_gpu == pytest.approx(MILLISECONDS * 1e-3)
    assert 0 < found.host <= found.loop * 10
    assert found.error > 1e-2 > 1e-6 > found.cublas_error
    assert found.flops == 2 * 2 * 8 * 9 * 5
    assert found.name == "2 of 8×9×5"
    assert "device" in waited


@pytest.fixture
def root(measured, tmp_path):
    told = {"device": "h200", "device_title": "NVIDIA H200 SXM", "date": "2026-11-23T05:00:00"}
    tables = {"products": [measured[0]], "parts": [Part("x", "launch y", 1e-6)]}
    store.write(tmp_path / "h200" / "matmul.json", told, tables)
    return tmp_path


def test_what_is_written_is_read(root, measured):
    found = matmul_times("h200", root)
    assert found.source == "recorded on NVIDIA H200 SXM, 2026-11-23"
    assert found.products == (measured[0],)
    assert found.parts == (Part("x", "launch y", 1e-6),)


def test_others_are_refused(root):
    with pytest.raises(LookupError, match="no matmul.json of 'v100'; there is one of h200"):
        matmul_times("v100", root)
    path = root / "h200" / "matmul.json"
    path.write_text(path.read_text("utf-8").replace("tcec_batched", "pipelined"), "utf-8")
    with pytest.raises(store.RecordError, match="edited"):
        matmul_times("h200", root)


def test_the_table_of_the_readme(root, monkeypatch):
    monkeypatch.setattr(readme, "matmul_times", lambda device: matmul_times(device, root))
    monkeypatch.setattr(readme, "drawn_sizes", lambda: "drawn")
    head, _, row, _, source, _, drawn = readme.matmul_table().splitlines()
    assert drawn == "drawn"
    assert row.startswith("| 2 of 8×9×5 | tcec_batched | 0.0 TFLOP/s | 1.00 × |")
    assert head.count("|") == row.count("|")
    assert source.startswith("recorded on NVIDIA H200 SXM, 2026-11-23")

    def nothing(device):
        raise LookupError

    monkeypatch.setattr(readme, "matmul_times", nothing)
    assert "not recorded yet" in readme.matmul_table()
