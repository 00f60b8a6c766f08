import io
from dataclasses import replace
from pathlib import Path

import pytest

from gemmlab import Gemm, Measurement, Tiling, device, kernels, records
from gemmlab.kernels.hashing import source_hash
from gemmlab.measure import recording
from gemmlab.measure.recording import BUDGET, KERNELS, plan, record

H200 = device("h200")
PROBLEMS = recording.parse_sizes("16,24,16x8x4")


class FakeGpu:
    """Stands in for `backends.run`; `stop_at` gives the call that raises `error`."""

    def __init__(self, stop_at=None, error=KeyboardInterrupt):
        self.calls, self.stop_at, self.error = [], stop_at, error

    def __call__(self, kernel, problem, backend, *, tiling, operands, data, repeats):
        assert (backend, data) == ("gpu", "normal, seed 0")
        problem.check_operands(operands)
        if len(self.calls) + 1 == self.stop_at:
            self.stop_at = None
            raise self.error
        self.calls.append((kernel.name, problem, tiling))
        return Measurement(
            kernel=kernel.name,
            problem=problem,
            tiling=tiling,
            backend="gpu",
            device="h200",
            device_title="NVIDIA H200 SXM",
            error=0.0,
            tolerance=problem.tolerance,
            samples=(1e-3,) * (repeats or 3),
            provenance={
                **dict.fromkeys(records.REQUIRED, "1"),
                "date": "2026-01-31T12:00:00+00:00",
                "numba": "0.62.0",
                "source_sha256": source_hash(kernel),
            },
        )


@pytest.fixture(scope="module")
def points():
    return plan(KERNELS, PROBLEMS, H200)


def campaign(points, folder, run, **options):
    stream = io.StringIO()
    return record(points, folder, "h200", run=run, stream=stream, **options), stream.getvalue()


def kept(folder):
    files = sorted(Path(folder).glob("*.jsonl"))
    return [(m.kernel, m.problem, m.tiling) for path in files for m in records.read(path)]


# ------------------------------------------------------------------------------------- the plan


def test_kernels():
    assert recording.parse_kernels("tiled, cublas") == [kernels.tiled, kernels.cublas]
    with pytest.raises(ValueError, match="'cpu_naive' is not recorded; use naive, co.*, tiled"):
        recording.parse_kernels("cpu_naive")


def test_a_plan_has_each_point_once_and_small_problems_first(points):
    keys = [(p.kernel.name, p.problem, p.tiling) for p in points]
    tilings = [{k.default, *k.tilings} if p.m == p.k and not k.splits else {k.default}
               for p in PROBLEMS for k in KERNELS if p.arithmetic in k.arithmetic]  # fmt: skip
    assert len(keys) == len(set(keys)) == sum(map(len, tilings))
    assert [p.tiling for p in points if p.kernel is kernels.tiled] == [
        Tiling.square(t) for t in (16, 16, 8, 32, 16, 8, 32)
    ]
    flops = [p.problem.flops for p in points]
    assert flops == sorted(flops)
    assert plan(KERNELS, PROBLEMS * 2, H200) == points


def test_a_layout_is_measured_with_the_kernels_that_take_it():
    both = replace(kernels.tiled, layouts=("nn", "nt"))
    points = plan([kernels.naive, both], recording.parse_sizes("8,8:nt,8:tt"), H200)
    assert [(p.kernel.name, p.problem.layout, p.tiling) for p in points] == [
        ("naive", "nn", kernels.naive.default),
        *(("tiled", "nn", Tiling.square(t)) for t in (16, 8, 32)),
        ("tiled", "nt", Tiling.square(16)),
    ]


def test_a_format_is_measured_with_the_kernels_that_compute_it():
    half = Gemm(8, 8, 8, dtype="float16")
    both = replace(kernels.tiled, arithmetic=(*kernels.tiled.arithmetic, half.arithmetic))
    points = plan([kernels.naive, both], [half], H200)
    assert {(p.kernel.name, p.problem) for p in points} == {("tiled", half)}


def test_a_kernel_that_divides_k_is_measured_in_other_splits_of_the_tiles_that_it_suggests():
    thin = Gemm(64, 64, 8192)
    own = kernels.split_k.choose(None, thin, H200)
    chosen = [kernels.pipelined, kernels.split_k]
    assert [p.tiling for p in plan(chosen, [thin], H200)] == [kernels.pipelined.default, own]
    points = plan(chosen, [thin], H200, splits=(1, own.split, 3))
    assert [p.tiling for p in points if p.kernel is kernels.split_k] == [
        own, own.unsplit, replace(own, split=3)
    ]  # fmt: skip
    assert [p.tiling for p in points if p.kernel is kernels.pipelined] == [
        kernels.pipelined.default
    ]


def test_long_launches_are_left_out_by_prediction():
    huge = Gemm(32768, 32768, 32768)
    naive, *_, cublas = plan(KERNELS, [huge], H200)
    assert naive.seconds > BUDGET > cublas.seconds
    assert naive.skip == f"predicted {recording.in_ascii(naive.seconds)} > 2.00 s"
    assert cublas.skip == ""


def test_tilings_that_the_device_cannot_run_are_left_out():
    kernel = replace(kernels.tiled, tilings=(Tiling.square(64),))
    default, point = plan([kernel], PROBLEMS[:1], H200)
    assert default.skip == ""
    assert "4096" in point.skip  # threads, of at most 1024


def test_a_device_that_cannot_be_predicted_is_measured_all_the_same(tmp_path):
    points = plan(KERNELS, PROBLEMS, replace(H200, peak={}))
    assert {(p.seconds, p.skip) for p in points} == {(None, "")}
    *rows, _ = recording.table(points, tmp_path, "h200").splitlines()
    assert all(row.endswith(" -") for row in rows)
    assert campaign(points, tmp_path, FakeGpu())[0].measured == len(points)


def test_the_table_lists_predictions_and_reasons(points, tmp_path):
    campaign(points[:2], tmp_path, FakeGpu())
    skipped = recording.Point(kernels.naive, PROBLEMS[0], None, None, "too slow")
    *rows, total = recording.table([*points, skipped], tmp_path, "h200").splitlines()
    assert len(rows) == len(points) + 1
    assert ["recorded already" in row for row in rows] == [True] * 2 + [False] * (len(rows) - 2)
    assert rows[-1].endswith("# too slow")
    assert total.endswith(recording.in_ascii(sum(p.seconds for p in points[2:])))
    assert all(row.isascii() for row in rows)


# ---------------------------------------------------------------------------------- the campaign


def test_a_campaign_measures_and_keeps_every_point(points, tmp_path):
    run = FakeGpu()
    outcome, text = campaign(points, tmp_path, run, repeats=7)
    assert (outcome.measured, outcome.known, outcome.skipped) == (len(points), 0, 0)
    assert sorted(map(str, kept(tmp_path))) == sorted(map(str, run.calls))
    assert {path.name for path in tmp_path.iterdir()} == {f"{p.kernel.name}.jsonl" for p in points}
    assert {len(m.samples) for m in records.read(tmp_path / "naive.jsonl")} == {7}
    assert f"{len(points)}/{len(points)}" in text
    assert "\r" not in text  # not a terminal


def test_an_interrupt_loses_nothing_and_the_rest_follows(points, tmp_path):
    first = FakeGpu(stop_at=6)
    outcome, _ = campaign(points, tmp_path, first)
    assert outcome.interrupted
    assert outcome.measured == len(kept(tmp_path)) == 5

    second = FakeGpu()
    outcome, _ = campaign(points, tmp_path, second)
    assert not outcome.interrupted
    assert (outcome.measured, outcome.known) == (len(points) - 5, 5)
    assert not set(map(str, first.calls)) & set(map(str, second.calls))
    assert len(kept(tmp_path)) == len(points)

    third = FakeGpu()
    outcome, _ = campaign(points, tmp_path, third)
    assert (outcome.measured, outcome.known, third.calls) == (0, len(points), [])


def test_a_truncated_last_line_stops_the_campaign_and_says_what_to_do(points, tmp_path):
    campaign(points, tmp_path, FakeGpu())
    path = tmp_path / "tiled.jsonl"
    path.write_bytes(path.read_bytes()[:-30])
    run = FakeGpu()
    with pytest.raises(records.RecordError, match=r"truncated.* delete the line and run"):
        campaign(points, tmp_path, run)
    assert run.calls == []


def test_an_edited_line_stops_the_campaign_before_it_starts(points, tmp_path):
    campaign(points, tmp_path, FakeGpu())
    path = tmp_path / "tiled.jsonl"
    path.write_text(path.read_text("utf-8").replace("1000000", "1000001", 1), "utf-8")
    run = FakeGpu()
    with pytest.raises(records.RecordError, match=r"tiled\.jsonl, line 2: edited"):
        campaign(points, tmp_path, run)
    assert run.calls == []


def test_a_changed_source_is_measured_again(points, tmp_path, monkeypatch):
    campaign(points, tmp_path, FakeGpu())
    monkeypatch.setattr(recording, "source_hash", lambda kernel: "cd" * 32)
    outcome, _ = campaign(points, tmp_path, FakeGpu())
    assert (outcome.measured, outcome.known) == (len(points), 0)


def test_another_device_is_measured_again(points, tmp_path):
    campaign(points, tmp_path, FakeGpu())
    assert recording.known_points(tmp_path, "h200")
    assert recording.known_points(tmp_path, "t4") == set()


def test_a_failing_point_is_named_and_the_rest_goes_on(points, tmp_path):
    outcome, text = campaign(points, tmp_path, FakeGpu(stop_at=3, error=RuntimeError("no CuPy")))
    assert outcome.measured == len(points) - 1
    assert outcome.failures == (f"{points[2]}: RuntimeError: no CuPy",)
    assert "failed: " in text


def test_a_wrong_result_is_a_failure_and_not_kept(points, tmp_path):
    def wrong(kernel, problem, *arguments, **options):
        m = FakeGpu()(kernel, problem, *arguments, **options)
        return Measurement(**{**vars(m), "error": float("nan")})

    outcome, _ = campaign(points, tmp_path, wrong)
    assert (outcome.measured, len(outcome.failures)) == (0, len(points))
    assert "error nan" in outcome.failures[0]
    assert kept(tmp_path) == []


def test_a_disk_that_cannot_be_written_ends_the_campaign(points, tmp_path):
    file = tmp_path / "taken"
    file.write_text("", "utf-8")
    run = FakeGpu()
    with pytest.raises(OSError, match="taken"):
        campaign(points, file / "h200", run)
    assert len(run.calls) == 1


def test_a_bar_on_a_terminal_redraws_one_line(points, tmp_path, monkeypatch):
    stream = io.StringIO()
    monkeypatch.setattr(stream, "isatty", lambda: True)
    record(points, tmp_path, "h200", run=FakeGpu(), stream=stream)
    text = stream.getvalue()
    assert text.count("\n") == 1
    assert text.endswith("\n")
    *_, last = text.rstrip().split("\r")
    assert f"[{'#' * recording.Progress.WIDTH}] {len(points)}/{len(points)}" in last
    assert len({len(line) for line in text.rstrip("\n").split("\r")[1:]}) == 1
