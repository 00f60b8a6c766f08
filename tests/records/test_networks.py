"""Products of networks: their record is whole and of the sources that are here; what is run."""

import json
from dataclasses import replace

import pytest

from benchmarks import networks as benchmark
from gemmlab import Gemm, Tiling, device, kernels
from gemmlab.kernels.hashing import source_hash
from gemmlab.model import predict
from gemmlab.records import RecordError
from gemmlab.records.networks import FILE, Layer, Timed, networks, read_networks, written

H200 = device("h200")
RECORDED = networks("h200")
RAGGED = Gemm(256, 512, 479, dtype="float16")
TILING = Tiling(block=(64, 64, 64), warp=(32, 32), thread=(4, 8), stages=4, split=3)
LAYER = Layer(
    "a layer",
    Gemm(64, 3, 1000, dtype="float16", layout="nt"),
    Timed("cublas", None, 3e-6),
    (Timed("mma_split_k", TILING, 6e-6), Timed("tma_stored", kernels.tma_stored.default, 4e-6)),
)
TOLD = {"device_title": "NVIDIA H200 SXM", "date": "2026-11-23T05:00:00+00:00"}


@pytest.fixture
def root(tmp_path):
    (tmp_path / "h200").mkdir()
    (tmp_path / "h200" / FILE).write_text(written(TOLD, [LAYER]), "utf-8")
    return tmp_path


def test_what_is_written_is_read(root):
    found = networks("h200", root)
    assert found.layers == (LAYER,)
    assert found.source == "recorded on NVIDIA H200 SXM, 2026-11-23"
    with pytest.raises(LookupError, match="nothing of 'v100'; there is h200"):
        networks("v100", root)


@pytest.mark.parametrize("edit", [{"layers": []}, {"sha256": "0"}, {"layers": [{"name": "x"}]}])
def test_an_edited_file_is_refused(root, edit):
    path = root / "h200" / FILE
    path.write_text(json.dumps(json.loads(path.read_text("utf-8")) | edit), "utf-8")
    with pytest.raises(RecordError):
        read_networks(path)


def test_the_best_is_the_fastest_and_the_picked_one_was_expected_first():
    assert (LAYER.picked, LAYER.best) == LAYER.ours
    assert LAYER.of_library(LAYER.best) == 0.75


# ----------------------------------------------------------------------------- what is recorded


def test_no_layer_is_left_out():
    assert [(one.name, one.problem) for one in RECORDED.layers] == [*benchmark.NETWORKS.items()]
    assert len(RECORDED.layers) == 20
    for one in RECORDED.layers:
        assert one.library.kernel == kernels.REFERENCE.name
        assert len(one.ours) == benchmark.MOST


def test_it_is_of_the_sources_that_are_here():
    told = RECORDED.provenance["source_sha256"]
    assert told == {k.name: source_hash(k) for k in benchmark.KERNELS}
    assert {run.kernel for one in RECORDED.layers for run in one.ours} == {*told}


def test_what_was_picked_is_what_is_expected_now():
    for one in RECORDED.layers:
        first, *_, last = (
            benchmark.expected(one.problem, H200, as_run(run)) for run in (one.picked, one.best)
        )
        assert first <= last, one.name


def test_nothing_is_faster_than_its_bound():
    for one in RECORDED.layers:
        for run in {one.picked, one.best}:
            kernel, tiling = as_run(run)
            assert predict(one.problem, H200, kernel, tiling).seconds < run.seconds, one.name


def as_run(run):
    return benchmark.Run(kernels.get(run.kernel), run.tiling)


# ------------------------------------------------------------------------------------ what is run


def test_the_fastest_are_run_in_their_order():
    found = benchmark.runs(RAGGED, benchmark.KERNELS, H200)
    times = [benchmark.expected(RAGGED, H200, run) for run in found]
    assert times == sorted(times)
    assert len(found) == len(set(found)) == benchmark.MOST
    assert {run.kernel for run in found} <= {kernels.mma_pipelined, kernels.mma_split_k}


def test_rows_that_no_box_begins_at_are_left_to_kernels_without_boxes():
    fits = benchmark.fits
    for kernel in (kernels.mma_tma, kernels.tma_stored):
        assert fits(kernel, replace(RAGGED, k=480), kernel.default, H200)
        assert not fits(kernel, RAGGED, kernel.default, H200)
    assert fits(kernels.mma_pipelined, RAGGED, kernels.mma_pipelined.default, H200)
    too_deep = replace(kernels.mma_pipelined.default, stages=20)
    assert not fits(kernels.mma_pipelined, RAGGED, too_deep, H200)


def test_a_second_launch_costs_its_blocks():
    problem = Gemm(11008, 16, 4096, dtype="float16")
    run = benchmark.Run(kernels.mma_split_k, TILING)
    blocks = 11008 * H200.block_interval
    bounds = sorted(predict(problem, H200, *run).times.values(), reverse=True)
    more = H200.launch_interval + blocks
    assert benchmark.expected(problem, H200, run) == pytest.approx([b + more for b in bounds])


def test_splits_fill_the_processors():
    problem = Gemm(576, 64, 8192, dtype="float16")
    found = set(benchmark.tilings(kernels.mma_split_k, problem, H200))
    own = kernels.mma_split_k.tilings[1]
    assert {t.split for t in found if t == replace(own, split=t.split)} >= {14, 29, 44}
    assert all(t.split <= t.steps(problem) for t in found)


@pytest.mark.parametrize(
    ("kernel", "tiling"), [(k, t) for k, thin in benchmark.THIN.items() for t in thin], ids=str
)
def test_thin_tilings_are_taken(kernel, tiling):
    kernel.check(tiling)
    assert kernel.shared_bytes(RAGGED, tiling) <= H200.shared_bytes_per_block
