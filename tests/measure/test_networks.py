"""Products of networks: their record is whole and of the sources that are here; what is run."""

import json
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from functools import partial
from statistics import median
from types import SimpleNamespace

import numpy as np
import pytest

from benchmarks import networks as benchmark
from gemmlab import Gemm, Tiling, device, kernels
from gemmlab.kernels.hashing import source_hash
from gemmlab.measure import store
from gemmlab.measure.benchmarks import Layer, Timed, networks
from gemmlab.model import predict
from tests.support.paths import ROOT

H200 = device("h200")
FILE = "networks.json"
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
    store.write(tmp_path / "h200" / FILE, TOLD, {"layers": [LAYER]})
    return tmp_path


def test_what_is_written_is_read(root):
    found = networks("h200", root)
    assert found.layers == (LAYER,)
    assert found.source == "recorded on NVIDIA H200 SXM, 2026-11-23"
    with pytest.raises(LookupError, match="no networks.json of 'v100'; there is one of h200"):
        networks("v100", root)


@pytest.mark.parametrize("edit", [{"layers": []}, {"sha256": "0"}, {"layers": [{"name": "x"}]}])
def test_an_edited_file_is_refused(root, edit):
    path = root / "h200" / FILE
    path.write_text(json.dumps(json.loads(path.read_text("utf-8")) | edit), "utf-8")
    with pytest.raises(store.RecordError):
        networks("h200", root)


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
    assert told == {k.name: source_hash(k) for k in benchmark.KERNELS if k.name in told}
    assert {run.kernel for one in RECORDED.layers for run in one.ours} == {*told}


def test_the_decision_says_what_an_h100_gave():
    layers = networks("h100_sxm").layers
    picked, best = (
        {one.name: one.of_library(run) for one, run in zip(layers, runs, strict=True)}
        for runs in ([one.picked for one in layers], [one.best for one in layers])
    )
    text = (ROOT / "book/decisions/052-what-held-the-clusters-back.md").read_text("utf-8")
    text = " ".join(text.split())
    assert (
        f"reaches a median {median(best.values()):.2f} of cuBLAS' speed, the one that is picked "
        f"beforehand {median(picked.values()):.2f}"
    ) in text
    first, second = sorted(best, key=best.get)[:2]
    sizes = {one.name: str(one.problem).split(" ")[0] for one in layers}
    assert (
        f"least are {best[first]:.2f} ({sizes[first]}) and {best[second]:.2f} ({sizes[second]})"
    ) in text
    assert f"what is picked there, {min(picked.values()):.2f}" in text


def expected_on(problem, gpu, run):
    return benchmark.expected(problem, gpu, as_run(run))


def test_by_what_was_measured_todays_picks_are_no_worse_than_those_recorded():
    """The epilogue counts since; what is picked now was run then, but not first."""
    layers, h100 = networks("h100_sxm").layers, device("h100_sxm")
    now, then = {}, {}
    for one in layers:
        first = min(one.ours, key=partial(expected_on, one.problem, h100))
        now[one.name] = one.of_library(first)
        then[one.name] = one.of_library(one.picked)
    assert min(now.values()) > min(then.values()) + 0.09
    assert median(now.values()) >= median(then.values())
    text = (ROOT / "book/decisions/052-what-held-the-clusters-back.md").read_text("utf-8")
    said = f"a median {median(now.values()):.2f}, and {min(now.values()):.2f} at least"
    assert said in " ".join(text.split())


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
    any_rows = {kernels.mma_pipelined, kernels.mma_split_k, kernels.tma_padded}
    assert {run.kernel for run in found} <= any_rows


def test_rows_that_no_box_begins_at_are_left_to_kernels_without_boxes():
    fits = benchmark.fits
    for kernel in (kernels.mma_tma, kernels.tma_stored, kernels.wgmma_split_k):
        assert fits(kernel, replace(RAGGED, k=480), kernel.default, H200)
        assert not fits(kernel, RAGGED, kernel.default, H200)
    assert fits(kernels.mma_pipelined, RAGGED, kernels.mma_pipelined.default, H200)
    too_deep = replace(kernels.mma_pipelined.default, stages=20)
    assert not fits(kernels.mma_pipelined, RAGGED, too_deep, H200)


def test_a_second_launch_costs_its_blocks():
    problem = Gemm(11008, 16, 4096, dtype="float16")
    run = benchmark.Run(kernels.mma_split_k, TILING)
    blocks = 11008 * H200.hand_out_interval
    bounds = sorted(predict(problem, H200, *run).times.values(), reverse=True)
    more = H200.launch_interval + blocks
    assert benchmark.expected(problem, H200, run) == pytest.approx([b + more for b in bounds])


def test_splits_fill_the_processors():
    problem = Gemm(576, 64, 8192, dtype="float16")
    found = set(benchmark.tilings(kernels.mma_split_k, problem, H200))
    own = kernels.mma_split_k.tilings[1]
    assert {t.split for t in found if t == replace(own, split=t.split)} >= {14, 29, 44}
    assert all(t.split <= t.steps(problem) for t in found)
    problem = Gemm(4096, 16, 4096, dtype="float16")  # 64 tiles
    deep = benchmark.THIN[kernels.mma_split_k][0]
    found = {t.split for t in benchmark.tilings(kernels.mma_split_k, problem, H200)
             if t == replace(deep, split=t.split)}  # fmt: skip
    assert found == {2, 4, 6}


@pytest.mark.parametrize(
    ("kernel", "tiling"),
    [(k, t) for k, thin in benchmark.THIN.items() for t in thin],
    ids=lambda one: getattr(one, "name", str(one)),
)
def test_thin_tilings_are_taken(kernel, tiling):
    kernel.check(tiling)
    assert kernel.shared_bytes(RAGGED, tiling) <= H200.shared_bytes_per_block


# ---------------------------------------------------------------------------- with no GPU at hand

SMALL = Gemm(40, 16, 64, dtype="float16")


class Matrices:
    def __init__(self, problem):
        self.loaded = None

    def load(self, problem, operands):
        self.loaded = operands


class Runner:
    """Computes by NumPy; *mma_tma* is wrong in one element, and *tma_stored* is the fastest."""

    def __init__(self, kernel, problem, tiling, matrices):
        self.kernel, self.matrices, self.samples = kernel, matrices, iter(range(100))

    def compute(self, problem, operands):
        c = problem.reference(operands).astype(np.float16)
        c[-1, -1] += self.kernel is kernels.mma_tma
        return c

    def sample(self):
        assert np.abs(self.matrices.loaded.a).max() > 2  # no whole numbers: random normal data
        warming_up = next(self.samples) < 2
        return 9.0 if warming_up else 1e-6 * (1 + (self.kernel is not kernels.tma_stored))


@pytest.fixture
def stand_in(monkeypatch):
    monkeypatch.setattr(benchmark.gpu, "Matrices", Matrices)
    monkeypatch.setattr(benchmark.gpu, "Runner", Runner)
    monkeypatch.setattr(benchmark, "detect", lambda: H200)
    monkeypatch.setattr(benchmark, "NETWORKS", {"small": SMALL})


NAMES = [kernel.name for kernel in benchmark.KERNELS]


def test_runs_are_checked_and_timed(stand_in):
    layer, wrong = benchmark.measure("small", NAMES, 1)
    assert wrong
    assert all(run.startswith("mma_tma ") for run in wrong)
    assert layer.library == Timed("cublas", None, 2e-6)
    assert (layer.best.kernel, layer.best.seconds) == ("tma_stored", 1e-6)
    assert [as_run(run) for run in layer.ours] == benchmark.runs(SMALL, benchmark.KERNELS, H200)


def test_where_the_library_is_wrong_nothing_is_right(stand_in, monkeypatch):
    monkeypatch.setattr(
        Runner, "compute", lambda self, problem, o: np.full((40, 16), np.float16(7))
    )
    layer, wrong = benchmark.measure("small", NAMES, 1)
    assert len(wrong) == len(layer.ours) + 1


def test_what_is_printed_is_written(stand_in, monkeypatch, tmp_path, capsys):
    @contextmanager
    def pool(processes, initializer, arguments):
        assert processes == 1
        yield SimpleNamespace(apply_async=lambda f, given: SimpleNamespace(get=lambda: f(*given)))

    here = SimpleNamespace(Pool=pool, Lock=nullcontext)
    monkeypatch.setattr(benchmark.multiprocessing, "get_context", lambda how: here)
    monkeypatch.setattr(benchmark, "gpu_status", lambda: SimpleNamespace(works=True))
    monkeypatch.setattr(benchmark, "provenance", lambda rounds, chosen: TOLD)
    path = tmp_path / "h200" / FILE
    path.parent.mkdir()
    assert benchmark.main([str(path), "--kernels", "mma_pipelined,tma_stored"]) == 0
    (layer,) = networks("h200", tmp_path).layers
    printed = capsys.readouterr().out
    assert benchmark.line(layer) in printed
    assert "median of 1" in printed
    assert benchmark.main([str(path), "--kernels", "mma_tma"]) == 1
    assert "WRONG: mma_tma" in capsys.readouterr().out
