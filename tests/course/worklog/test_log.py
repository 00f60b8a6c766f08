"""A work log: what is right is kept, what is wrong is told, and a page tells all of it."""

import json
import re
from dataclasses import replace
from datetime import date
from types import SimpleNamespace

import pytest
from numpy import float32

from benchmarks.samples import capstone_entries
from gemmlab import Tiling, cuda, kernels, worklog
from gemmlab.course.worklog import judging, page
from gemmlab.course.worklog.entries import Entry, rung_of, rung_of_text, text_of
from gemmlab.course.worklog.log import read, timed_batch
from gemmlab.course.worklog.page import WORKED
from gemmlab.course.worklog.shapes import SHAPES
from gemmlab.here.compilers import lacking

SIDE = 16


def naive(alpha, A, B, beta, C):
    x, y = cuda.grid(2)
    if y < C.shape[0] and x < C.shape[1]:
        k = A.shape[1]
        first = y // (C.shape[0] // (B.shape[0] // k)) * k
        acc, p = float32(0), 0
        while p < k:
            acc += A[y, p] * B[first + p, x]
            p += 1
        C[y, x] = alpha * acc if beta == 0 else alpha * acc + beta * C[y, x]


def one_matrix(alpha, A, B, beta, C):
    x, y = cuda.grid(2)
    if y < C.shape[0] and x < C.shape[1]:
        acc = float32(0)
        for p in range(A.shape[1]):
            acc += A[y, p] * B[p, x]
        C[y, x] = alpha * acc if beta == 0 else alpha * acc + beta * C[y, x]


def few(m, n):
    return -(-n // SIDE), -(-m // SIDE)


ONE = Tiling(block=(16, 16, 1))


@pytest.fixture
def log(tmp_path, monkeypatch):
    monkeypatch.setattr(judging, "lacking", lambda: "not in this test")
    return worklog.open("batched", tmp_path)


def test_entries_are_kept_and_wrong_ones_are_told(log, tmp_path):
    assert not log.path.exists()
    told = log.add(one_matrix, ONE, changed="the first")
    assert told.startswith("**Not added: another-matrix.**")
    assert "3 matrices of 16, and the first one is right" in told
    assert not log.path.exists()
    assert "right" in log.add(naive, ONE, changed="a <b> & c", expected="slow")
    again = log.add(naive, ONE, expected="just so", came="slow indeed")  # is not judged again
    assert "Entry 1" in again
    assert "What you expected stays" in again
    (entry,) = read(log.path, log.shape)
    assert (entry.changed, entry.expected, entry.came) == ("a <b> & c", "slow", "slow indeed")
    assert entry.judged.counts["global_load_sectors"] > 0
    for said in ({}, {"changed": "...", "expected": "…"}, {"changed": "a"}, {"expected": "b"}):
        assert "say it in a sentence each" in log.add(naive, ONE, grid=few, **said)
    assert "Entry 2" in log.add(naive, ONE, grid=few, changed="the grid", expected="nothing")
    shown = log.export(tmp_path / "mine.html", "<Ann>").read_text("utf-8")
    assert "a &lt;b&gt; &amp; c" in shown
    assert f"&lt;Ann&gt;, {date.today().isoformat()}" in shown
    assert "No FP32 kernel takes less than 16.0 µs on an H200" in shown
    assert "<dt>Came</dt><dd>–</dd>" in shown
    assert "http" not in shown
    assert "+def few(m, n):" in shown
    assert worklog.open("batched", tmp_path).entries == log.entries
    example = log.example()
    assert repr(example).startswith("5 entries by somebody else; your log has 2.")
    assert "<details><summary>" in example.html
    assert "def kernel" not in example.html
    assert re.findall(r"<h4>(\d)", example.html) == ["1", "2"]
    log.entries *= 3
    assert "<details open>" in log.example().html
    assert "def kernel" in log.example().html
    assert f"1 · naive {ONE}" in repr(log)  # others have its name
    assert "1 · naive" in log._repr_html_()


def test_an_entry_is_set_beside_the_one_before_and_the_fastest(log):
    for seconds in (4.0, 1.0, 3.0, 2.0):
        found = judging.Judged("passed", seconds={"h200": seconds})
        told = log._keep(Entry("mine", "def mine(): ...", ONE, found), len(log.entries) + 1)
    assert "1.50 times the speed of entry 3, and 0.50 times that of entry 2, your fastest" in told
    assert "4.00 times the speed of entry 1." in log._told(2)


def test_right_means_as_far_as_it_was_simulated(log):
    entry = Entry("mine", "def mine(): ...", ONE, judging.Judged("passed", depth=1376))
    assert "Entry 1, mine: right as far as k = 1,376.**" in log._keep(entry, 1)
    assert read(log.path, log.shape) == [entry]
    assert "1 · mine (k ≤ 1,376)" in repr(log)
    assert "right as far as that k" in log._repr_html_()
    assert "right as far as k = 1,376, without a hazard" in page.whole(log.shape, log.entries)


def test_an_answer_to_04_2_gets_the_side_of_its_tile(log):
    def build(T):
        return naive if T == SIDE else None

    square = rung_of(build, SIDE)
    assert (square.name, square.default) == ("build (yours)", Tiling.square(SIDE))
    assert square.build(square.default) is naive
    assert rung_of(build, Tiling.square(SIDE)).default == square.default
    with pytest.raises(ValueError, match="takes the side of a square tile, not 16×16×1; call its"):
        rung_of(build, ONE)


def test_the_text_of_an_entry_makes_it_again():
    text = text_of(naive, few)
    assert "SIDE = 16" in text
    entry = Entry("naive", text, ONE, judging.Judged("not-judged"), grid="few")
    assert Entry.of(entry.data) == entry
    made = rung_of_text(entry)
    assert made.launch(SHAPES["batched"].problem, ONE, "h200")[0] == (16, 2048)
    assert text_of(made.build(ONE)) == text_of(naive)


def test_what_cannot_be_an_entry_is_told(log):
    hook = replace(kernels.own(naive, ONE), operands=lambda problem, tiling, a, b: (a, b))
    assert judging.judge(hook, SHAPES["batched"]).diagnosis == "host-work"
    assert "tile-does-not-divide" in log.add(naive, Tiling(block=(24, 16, 1)))
    assert "is not a function" in log.add(7)
    assert "no text" in log.add(naive, ONE, came=3)
    inner = 2

    def enclosed(alpha, A, B, beta, C):
        C[0, 0] = inner

    with pytest.raises(TypeError, match="hand over build"):
        text_of(enclosed)
    assert "hand over build" in log.add(enclosed)
    assert log.entries == []


def test_other_files_are_refused(log, tmp_path):
    with pytest.raises(ValueError, match="shape='round' is not known; use one of square"):
        worklog.open("round")
    for content in ("[]", "{", '{"shape": "batched", "entries": [{}]}', '{"shape": "round"}'):
        log.path.write_text(content)
        with pytest.raises(ValueError, match="is no work log"):
            worklog.open("batched", tmp_path)
        assert log.path.read_text() == content
    log.path.write_text(json.dumps({"shape": "square", "entries": []}))
    with pytest.raises(ValueError, match="the log of square"):
        worklog.open("batched", tmp_path)


@pytest.mark.parametrize("shape", SHAPES)
def test_five_entries_climb(shape):
    logs = json.loads(WORKED.read_text("utf-8"))
    entries = [Entry.of(one) for one in logs[shape]["entries"]]
    tried = capstone_entries.entries(shape)
    assert [e.name for e in entries] == [t.kernel.__name__ for t in tried]
    for entry, one in zip(entries, tried, strict=True):
        assert entry.source == text_of(one.kernel, *filter(None, [one.grid]))
        assert (entry.tiling, entry.block) == (one.tilings[shape], one.block or ())
    for gpu in judging.GPUS:
        times = [entry.judged.seconds[gpu] for entry in entries]
        assert times[0] > 4 * times[-1]
        assert min(times) == times[-1]


@pytest.mark.numba_cuda  # whose code the numbers are of
@pytest.mark.measuring
@pytest.mark.skipif(bool(lacking()), reason="nothing is compiled here")
def test_the_recorded_forecast_is_made_again():
    logs = json.loads(WORKED.read_text("utf-8"))
    entry = Entry.of(logs["skinny"]["entries"][-1])
    found = judging.judge(rung_of_text(entry), SHAPES["skinny"])
    assert found.passed, found
    assert found.seconds == pytest.approx(entry.judged.seconds, rel=0.02)


def steep(limit):
    """A kernel that does 16 products more where k is short: a line from there is flatter."""

    def kernel(alpha, A, B, beta, C):
        x, y = cuda.grid(2)
        if y < C.shape[0] and x < C.shape[1]:
            k, acc, p = A.shape[1], float32(0), 0
            if k <= limit:
                while p < 16:
                    acc += A[y, p] * B[p, x]
                    p += 1
                C[y, x] = acc
            acc, p = float32(0), 0
            while p < k:
                acc += A[y, p] * B[p, x]
                p += 1
            C[y, x] = alpha * acc if beta == 0 else alpha * acc + beta * C[y, x]

    return kernel


@pytest.mark.ptxas
def test_a_kernel_that_works_more_where_k_is_short_leaves_work_out():
    problem = SHAPES["skinny"].problem
    honest = kernels.own(one_matrix, ONE)
    assert judging.left_out(honest, problem, ONE).diagnosis == "passed"
    shorter, _ = judging.depths(problem, honest, ONE)
    found = judging.left_out(kernels.own(steep(shorter), ONE), problem, ONE)
    assert found.diagnosis == "work-left-out"
    assert "FMAs more" in found.facts[0][1]


def test_each_product_of_a_batch_has_a_b_of_its_own_on_a_gpu(monkeypatch):
    """A stand-in for the GPU's matrices: B is there once for each product, whatever was there."""
    from gemmlab.measure.backends import gpu

    class Matrices:
        a = b = None

        def __init__(self, problem):
            self.loaded = False

        def load(self, problem, operands):
            self.loaded = True

    class Array:
        def __init__(self, shape, dtype):
            self.shape = shape

        def copy_to_device(self, values):
            self.values = values

    def run(rung, problem, operands, tiling, matrices):
        _, every_b = rung.operands(problem, tiling, "A", "B")
        matrices.load(problem, operands)
        return every_b, operands.b, matrices.loaded

    monkeypatch.setattr(gpu, "Matrices", Matrices)
    cuda = SimpleNamespace(device_array=Array)
    monkeypatch.setattr("gemmlab.instructions.host.cuda", lambda: cuda)
    monkeypatch.setattr(gpu, "run", run)
    shape = SHAPES["batched"]
    every_b, b, loaded = timed_batch(kernels.own(naive, ONE), shape)
    assert loaded
    assert every_b.shape == (shape.batch * shape.problem.k, shape.problem.n)
    assert (every_b.values.reshape(shape.batch, *b.shape) == b).all()
