"""How a network learned and what a block takes: the records are whole; what is run is checked."""

import json
from types import SimpleNamespace

import numpy as np
import pytest

from benchmarks import block as of_block, training as benchmark
from gemmlab import Gemm, Tiling, device, kernels
from gemmlab.course.ch13_in_action import block as models, dense, digits, network, products, step
from gemmlab.measure import store
from gemmlab.measure.benchmarks import (
    BlockKernel,
    BlockProduct,
    BlockStep,
    Curve,
    Eager,
    SplitProduct,
    Step,
    StepLaunch,
    Timed,
    Way,
    block_times,
    training,
)  # fmt: skip
from gemmlab.model.layers import Batched

H100 = device("h100_sxm")
RECORD, BLOCK = training(), block_times()
TOLD = {"device_title": "NVIDIA H100 SXM5 80 GB", "date": "2026-11-26T15:00:00+00:00"}
SMALL = Gemm(8, 3, 5, layout="nt")
CURVE = Curve(Way("FP32", "pipelined", 1.0), (2.0, 1.0), (0.5,))
STEP = Step(
    (5, 8), 3, True, 4e-6,
    (StepLaunch("forward 1", SMALL, 1, 3e-6, 2e-6), StepLaunch("loss", None, 1, 1e-6, 1.5e-6)),
)  # fmt: skip
SPLIT = SplitProduct(
    "forward 1", 3, SMALL, Timed("split_k", dense.TILING, 4e-6),
    Timed("split_k", Tiling((64, 64, 16), split=3), 3e-6), Timed("cublas", None, 1e-6),
    (4e-6, 2e-6),
)  # fmt: skip
EAGER = Eager("@", (5, 8), 3, 1e-3, 1e-7, 0.5)
OF_BLOCK = BlockStep(False, {"vocabulary": 3}, 1e-3, (2.0,), "ab", (BlockKernel("k", 2, 1e-6),))
PRODUCT = BlockProduct("up", "forward", Batched(2, SMALL), 1e-6)
FILES = {
    "training.json": (
        training, {"curves": [CURVE], "steps": [STEP], "splits": [SPLIT], "eager": [EAGER]}
    ),
    "block.json": (block_times, {"steps": [OF_BLOCK], "products": [PRODUCT]}),
}  # fmt: skip


def rows(tables):
    """Rows as the programs hand them to the store: a block's product as a dictionary."""
    as_made = BlockProduct(
        PRODUCT.name, PRODUCT.direction, PRODUCT.product._asdict(), PRODUCT.seconds
    )
    return {n: [as_made if row is PRODUCT else row for row in t] for n, t in tables.items()}


@pytest.mark.parametrize("file", FILES)
def test_what_is_written_is_read(file, tmp_path):
    read, tables = FILES[file]
    path = tmp_path / "h100_sxm" / file
    store.write(path, TOLD, rows(tables))
    found = read("h100_sxm", tmp_path)
    assert {name: list(getattr(found, name)) for name in tables} == tables
    assert found.source == "recorded on NVIDIA H100 SXM5 80 GB, 2026-11-26"
    with pytest.raises(LookupError, match=f"no {file} of 'v100'; there is one of h100_sxm"):
        read("v100", tmp_path)
    first = next(iter(tables))
    for edit in ({first: []}, {"sha256": "0"}):
        path.write_text(json.dumps(json.loads(path.read_text("utf-8")) | edit), "utf-8")
        with pytest.raises(store.RecordError):
            read("h100_sxm", tmp_path)


# ----------------------------------------------------------------------------- what is recorded


def test_the_prediction_of_a_step_is_within_a_tenth_of_the_record():
    assert [(s.batch, s.fused) for s in RECORD.steps] == [
        (batch, fused) for batch in benchmark.BATCHES for fused in (True, False)
    ]
    for one in RECORD.steps:
        assert one.predicted == pytest.approx(sum(x.predicted for x in one.launches))
        assert one.predicted == pytest.approx(one.seconds, rel=0.10)


def test_steps_have_the_launches_that_are_here():
    for one in RECORD.steps:
        here = step.launches(benchmark.a_step(one.batch), benchmark.SLOW, one.fused)
        assert [(x.name, x.problem, x.blocks) for x in one.launches] == [
            (x.name, x.problem, int(np.prod(x.grid))) for x in here
        ]


def test_each_way_learned_the_same_from_the_same_seed():
    assert tuple(curve.way for curve in RECORD.curves) == benchmark.WAYS
    assert RECORD.provenance["seed"] == benchmark.SEED
    for curve in RECORD.curves:
        assert len(curve.losses) == 12 * (1437 // benchmark.BATCH)
        assert len(curve.accuracies) == 12
        assert kernels.get(curve.way.kernel).name == curve.way.kernel


@pytest.mark.measuring
def test_the_recorded_curve_is_that_of_numpy():
    net = network.initial(benchmark.SIZES, benchmark.SEED)
    exact = products.rounded_to("float32")
    losses = network.train(net, digits.load()[0], exact, epochs=1, rate=benchmark.RATE)
    np.testing.assert_allclose(list(losses), RECORD.curves[0].losses[:22], rtol=2e-3)


@pytest.mark.measuring
def test_a_split_is_the_one_that_is_suggested():
    assert len(RECORD.splits) == 2 * 8
    for one in RECORD.splits:
        assert one.whole.tiling == dense.TILING
        assert one.parts.tiling == kernels.split_k.suggest(one.problem, H100)
        assert one.whole.seconds >= 0.97 * one.parts.seconds


@pytest.mark.measuring
def test_a_block_was_timed_product_by_product():
    of_text, every = of_block.text()[0], BLOCK.steps
    assert [one.looked_up for one in every] == [False, True]
    assert {one.sizes["vocabulary"] for one in every} == {104}
    assert set(every[0].sample) <= set(of_text) | {"\n"}
    model = models.Block(**every[0].sizes)
    assert [(w.name, w.product) for w in models.products(model)] == [
        (p.name, p.product) for p in BLOCK.products
    ]
    for one in every:
        assert one.losses[0] > 4 > 1.5 > one.losses[-1]
        assert sum(k.seconds for k in one.kernels) == pytest.approx(one.seconds, rel=0.03)


# ------------------------------------------------------------------------------ with no GPU at hand


def test_a_curve_is_a_training_by_the_ways_kernel(monkeypatch):
    asked = []

    def by(kernel, backend):
        asked.append((kernel.name, backend))
        return products.rounded_to("float32")

    monkeypatch.setattr(benchmark.products, "by", by)
    monkeypatch.setattr(benchmark, "SIZES", (64, 8, 10))
    found = benchmark.curve(Way("TF32", "policy_tf32", 1.0), 2)
    assert asked == [("policy_tf32", "gpu")]
    assert len(found.losses) == 44
    assert len(found.accuracies) == 2
    assert found.accuracies[1] > 0.3


class Queue:
    """A device on which each call takes a microsecond, and copies stay where they are."""

    def __init__(self):
        self.calls = 0

    def to_device(self, array):
        return array.copy()

    def event(self, timing):
        mark = SimpleNamespace(synchronize=lambda: None)
        mark.record = lambda: setattr(mark, "at", self.calls)
        return mark

    def event_elapsed_time(self, begin, end):
        return (end.at - begin.at) * 1e-3


def test_a_step_and_its_launches_are_timed_by_the_call(monkeypatch):
    queue = Queue()

    def call(one):
        return lambda: setattr(queue, "calls", queue.calls + 1)

    monkeypatch.setattr(benchmark.host, "cuda", lambda: queue)
    monkeypatch.setattr(benchmark, "call", call)
    monkeypatch.setattr(benchmark, "detect", lambda: H100)
    monkeypatch.setattr(benchmark.gpu, "flush", lambda cuda: None)
    monkeypatch.setattr(benchmark, "SIZES", (64, 8, 10))
    found = benchmark.training_step(64, True, [2e-6] * 8, rounds=3)
    assert len(found.launches) == 8
    assert found.seconds == pytest.approx(8e-6)
    assert {one.seconds for one in found.launches} == {1e-6}
    assert found.predicted == pytest.approx(16e-6)


def test_arrays_go_to_the_gpu_with_their_network(monkeypatch):
    monkeypatch.setattr(benchmark.host, "cuda", Queue)
    here = benchmark.a_step(64)
    there = benchmark.on_gpu(here)
    assert np.array_equal(there.network.weights[1], here.network.weights[1])
    assert there.network.weights[1] is not here.network.weights[1]
    assert [x.shape for x in there.values] == [x.shape for x in here.values]


def test_without_a_gpu_the_programs_say_so(monkeypatch, tmp_path, capsys):
    none = SimpleNamespace(works=False, reason="no driver")
    told = tmp_path / "told.json"
    told.write_text("{}", "utf-8")
    monkeypatch.setattr(benchmark, "gpu_status", lambda: none)
    assert benchmark.main(["measure", str(told), str(tmp_path / "out.json")]) == 1
    assert "this needs a GPU: no driver" in capsys.readouterr().err


def test_what_was_predicted_of_another_device_is_refused(monkeypatch, tmp_path, capsys):
    told = tmp_path / "told.json"
    told.write_text(json.dumps({"device": "h200"}), "utf-8")
    monkeypatch.setattr(benchmark, "gpu_status", lambda: SimpleNamespace(works=True))
    monkeypatch.setattr(benchmark, "detect", lambda: H100)
    with pytest.raises(SystemExit):
        benchmark.main(["measure", str(told), str(tmp_path / "out.json")])
    assert "is about h200, and here is h100_sxm" in capsys.readouterr().err
    assert not (tmp_path / "out.json").exists()


@pytest.mark.measuring
def test_a_text_is_numbers_of_its_characters():
    every, numbers = of_block.text()
    assert list(every) == sorted(set(every))
    assert numbers.max() == len(every) - 1
    assert len(numbers) > 400_000
