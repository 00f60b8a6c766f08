"""The benchmark of errors, on the emulator, and its records: whole, or refused if edited."""

import json

import numpy as np
import pytest

from benchmarks import tcec_errors as benchmark
from gemmlab.measure import store
from gemmlab.measure.benchmarks import TCEC_TABLES, tcec_errors
from gemmlab.numerics import (
    POLICIES,
    Policy,
    backward_error,
    emulated_matmul,
    forward_error,
    split_range,
)

FILE = "tcec_errors.json"
K = 1024  # in short sums FP32 units lose less than what is rounded toward zero in 64 of k
COMPUTE = {
    "cublas_sgemm": lambda a, b: emulated_matmul(a, b, POLICIES["simt"]),
    "tcec_split": lambda a, b: emulated_matmul(a, b, Policy(every=4)),
}


def at(interval):
    """A stand-in for a GPU: the emulator, and a time."""
    return lambda a, b: emulated_matmul(a, b, Policy(every=interval // 16)), 1e-3 / interval


@pytest.fixture(scope="module")
def tables():
    return {
        "errors": benchmark.errors(COMPUTE, (16,), (K,)),
        "flush": benchmark.flush(at, (64, 128), 16, 128),
        "ways": [
            {"way": "cublas_bf16x9", "n": 8192, "seconds": None, "by_norm": None, "largest": None,
             "least_magnitude": 2.0**-126, "largest_magnitude": 3e38, "workspace_bytes": 0,
             "note": "not here }, { at all", "shared_bytes": None}
        ],
    }  # fmt: skip


@pytest.fixture
def root(tables, tmp_path):
    told = {"device": "h200", "device_title": "NVIDIA H200 SXM", "date": "2026-11-23T05:00:00"}
    store.write(tmp_path / "h200" / FILE, told, tables)
    return tmp_path


def test_what_is_written_is_read(root, tables):
    found = tcec_errors("h200", root)
    assert found.source == "recorded on NVIDIA H200 SXM, 2026-11-23"
    for name, kind in TCEC_TABLES.items():
        assert [vars(row) for row in getattr(found, name)] == tables[name]
        assert all(type(row) is kind for row in getattr(found, name))


def test_errors_are_told_of_every_way_and_kind_of_data(root):
    rows = {(row.way, row.data): row for row in tcec_errors("h200", root).errors}
    assert len(rows) == len(COMPUTE) * len(benchmark.DATA)
    assert rows["tcec_split", "small"].by_norm > 0.1 > 1e5 * rows["cublas_sgemm", "small"].by_norm
    for data in ("uniform", "normal", "hilbert", "cancelling", "wide"):
        split, single = (rows[way, data] for way in ("tcec_split", "cublas_sgemm"))
        assert split.by_norm <= single.by_norm, data
        assert split.largest <= single.largest, data


def test_the_emulator_predicts_the_error_of_every_interval(root):
    for row in tcec_errors("h200", root).flush:
        assert row.same_bits
        assert row.predicted == row.measured


def test_short_sums_of_positive_numbers_are_where_fp32_units_lose_less():
    rows = {
        row["way"]: row
        for row in benchmark.errors(COMPUTE, (16,), (64,))
        if row["data"] == "hilbert"
    }
    assert rows["tcec_split"]["by_norm"] > 1.5 * rows["cublas_sgemm"]["by_norm"]


def test_a_way_with_the_bits_of_another_is_told(monkeypatch):
    """And one that fails, by what it says; TF32 has the range that FP16 lacks."""

    def timed(way, n, rounds):
        if way == "cublas_tf32":
            raise RuntimeError("not supported")
        return way, 1e-3

    policies = {"tcec_registers": Policy(), "tcec_stored": Policy()}
    policies |= {"tcec_split": Policy(every=4)} | benchmark.POLICIES
    monkeypatch.setattr(benchmark, "timed", timed)
    monkeypatch.setattr(
        benchmark,
        "computed",
        lambda way, a, b: emulated_matmul(a, b, policies.get(way, POLICIES["simt"])),
    )
    rows = {row["way"]: row for row in benchmark.ways(80, 1)}  # of more than one interval
    assert rows["cublas_tf32"]["note"] == "RuntimeError: not supported"
    assert rows["cublas_tf32"]["seconds"] is rows["cublas_tf32"]["by_norm"] is None
    told = {way: row["note"] for way, row in rows.items() if row["note"] and row["seconds"]}
    assert told == {
        "cublas_bf16x9": "the bits of cublas_sgemm",
        "pipelined": "the bits of cublas_sgemm",
        "tcec_stored": "the bits of tcec_registers",
    }
    least = {way: row["least_magnitude"] for way, row in rows.items()}
    assert least["policy_tcec_tf32"] < 2.0**-100 < 2.0**-14 == least["tcec_split"]
    assert least["policy_markidis"] == 0.125


def test_errors_are_those_of_numerics():
    a, b = benchmark.normal(np.random.default_rng(2), 9, 7, 40)
    c, exact = a @ b, a.astype(float) @ b.astype(float)
    found = benchmark.Exact(a, b).errors_of(c)
    assert found["largest"] == pytest.approx(backward_error(c, exact, a, b), rel=1e-3)
    assert found["by_norm"] == pytest.approx(forward_error(c, exact), rel=1e-3)
    c[3, 2] = np.nan
    assert set(benchmark.Exact(a, b).errors_of(c).values()) == {np.inf}


def test_an_emulator_of_another_interval_is_seen(monkeypatch):
    monkeypatch.setattr(benchmark, "Policy", lambda every: Policy(every=1))
    (row,) = benchmark.flush(at, (128,), 16, 128)
    assert not row["same_bits"]


def test_the_data_is_what_it_is_called():
    draws = {draw.__name__: draw(np.random.default_rng(1), 8, 8, K) for draw in benchmark.DATA}
    least, most = split_range()
    for name, in_range in (("wide", True), ("too_wide", False), ("small", False)):
        a, b = (abs(x) for x in draws[name])
        assert (min(a.min(), b.min()) >= least) == in_range
        assert max(a.max(), b.max()) <= most
    for a, b in draws.values():
        assert (a.shape, b.shape, a.dtype, b.dtype) == ((8, K), (K, 8), np.float32, np.float32)
    a, b = (x.astype(float) for x in draws["cancelling"])
    assert (abs(a @ b) < 0.01 * (abs(a) @ abs(b))).all()


def test_a_device_without_records_is_refused(root):
    with pytest.raises(LookupError, match="no tcec_errors.json of 'v100'; there is one of h200"):
        tcec_errors("v100", root)


@pytest.mark.parametrize("edit", [{"flush": []}, {"sha256": "0"}, {"errors": [{"way": "x"}]}])
def test_an_edited_file_is_refused(root, edit):
    path = root / "h200" / FILE
    path.write_text(json.dumps(json.loads(path.read_text("utf-8")) | edit), "utf-8")
    with pytest.raises(store.RecordError):
        tcec_errors("h200", root)
