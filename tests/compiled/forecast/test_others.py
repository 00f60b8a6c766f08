"""Kernels that are no GEMM: right wherever they run, predicted before they were timed."""

import math
from dataclasses import replace
from datetime import datetime

import numpy as np
import pytest

from benchmarks.forecast import pages, written
from benchmarks.forecast.others import __main__ as command, timing
from benchmarks.forecast.others.case import CLASSES, IRREGULAR, REGULAR, cases
from benchmarks.forecast.others.predicting import predicted
from benchmarks.forecast.others.sets import FILES, FIRST, SECOND, SETS, asked, entry
from benchmarks.forecast.others.table import beside
from benchmarks.forecast.pages import DEVICES
from benchmarks.forecast.written import Written, latest, other_compilers, read, stored
from benchmarks.samples.realistic import is_right
from gemmlab import device, predict_time, simulate
from gemmlab.compiled.sass.compiling import listing
from gemmlab.compiled.sass.execution.machine import BANKS, dim, launch
from gemmlab.measure.backends import gpu
from tests.support import fake_gpu

CASES = cases()
QUICK = ("gather", "softmax", "stencil", "transpose_tiled")  # predicted in a second each


def done(case, run):
    """Whether the arguments are right after `run` has changed them."""
    made = case.launch(case.small)
    run(*made)
    return is_right(list(case.check(*made.arguments)))


@pytest.mark.parametrize("name", CASES)
def test_right_on_the_simulator_and_without_hazards(name):
    case = CASES[name]
    assert done(case, lambda grid, block, args: simulate(case.kernel, grid, block, *args))
    with np.errstate(all="ignore"):
        assert not done(case, lambda grid, block, args: None)


def compiled_is_right(case, architecture="sm_90"):
    def run(grid, block, arguments):
        bound = {"launch_bounds": math.prod(dim(block))}
        code = listing(case.kernel, arguments, architecture, **bound, **case.options)
        assert code.architecture == architecture
        launch(code, grid, block, *arguments).run()

    return done(case, run)


def compiled_rightly(names):
    """numba-cuda-mlir 0.6 reads the index of the histogram's atomics, a uint8, with a sign."""
    marks = {"histogram": pytest.mark.numba_cuda}
    return [pytest.param(name, marks=marks.get(name, ())) for name in names]


@pytest.mark.ptxas
@pytest.mark.parametrize("name", compiled_rightly(FIRST))
def test_the_compiled_code_that_is_predicted_is_right(name):
    assert compiled_is_right(CASES[name])


@pytest.mark.ptxas
@pytest.mark.measuring
@pytest.mark.parametrize("name", compiled_rightly(sorted(set(CASES) - set(FIRST))))
def test_the_compiled_code_of_further_kernels_is_right(name):
    assert compiled_is_right(CASES[name])


@pytest.mark.numba_cuda  # as above
@pytest.mark.ptxas
@pytest.mark.parametrize("architecture", ["sm_75", "sm_86", "sm_120"])
def test_code_for_another_gpu_is_right(architecture):
    """With a barrier, a loop of unknown length, atomics; what sm_75 saves of barriers, and 64 bits.

    All of these kernels were right on each of them on 2026-11-26.
    """
    assert compiled_is_right(CASES["histogram"], architecture)


@pytest.mark.ptxas
@pytest.mark.parametrize("name", ["t4", "rtx5090"])
def test_a_forecast_for_a_gpu_of_the_literature_says_so(name):
    """A forecast leaves out what no address needs: both words of one are needed, on sm_75, too."""
    case = CASES["stencil"]
    grid, block, arguments = case.launch(case.small)
    found = predict_time(case.kernel, grid, block, *arguments, device=name)
    assert found.seconds > device(name).launch_latency
    assert not found.measured
    assert "from the literature" in str(found)


@pytest.mark.ptxas
@pytest.mark.measuring
@pytest.mark.parametrize("architecture", [name for name in BANKS if name != "sm_90"])
@pytest.mark.parametrize("name", ["softmax", "sparse_product"])
def test_more_code_for_other_gpus_is_right(name, architecture):
    assert compiled_is_right(CASES[name], architecture)


@pytest.mark.ptxas
def test_code_for_a_gpu_that_nobody_described_is_refused():
    with pytest.raises(NotImplementedError, match=r"sm_100 finds its arguments.*sm_75, sm_80"):
        compiled_is_right(CASES["triad"], "sm_100")


@pytest.mark.parametrize("name", CASES)
def test_blocks_are_whole_warps_and_sizes_those_of_real_work(name):
    case = CASES[name]
    assert math.prod(dim(case.launch(case.small).block)) % 32 == 0
    assert case.size > 50 * case.small
    assert case.idea.endswith(".")


def test_there_are_enough_of_both_classes():
    kinds = [case.kind for case in CASES.values()]
    assert kinds.count(REGULAR) >= 10
    assert kinds.count(IRREGULAR) >= 4
    assert set(kinds) == set(CLASSES)


def test_each_kernel_is_in_one_set():
    names = [name for which in SETS.values() for name in which]
    assert sorted(name for name in names if ":" not in name) == sorted(CASES)
    assert len(set(names)) == len(names)  # at other sizes besides
    assert all(entry(asked(name)) == name for name in names)


@pytest.mark.parametrize("wrong", ["mat_vec", "", "triad:0", "triad:many"])
def test_a_name_that_asks_for_nothing_is_quoted(wrong):
    with pytest.raises(ValueError, match=f"{wrong.rpartition(':')[2]!r} (is not one of|of triad)"):
        asked(wrong)


@pytest.mark.parametrize(
    ("arguments", "names"),
    [
        ((), FIRST),
        (("--set", "second"), SECOND),
        (("--kernels", "triad,matvec:512"), ("triad", "matvec:512")),
    ],
)
def test_the_command_predicts_a_set(monkeypatch, tmp_path, arguments, names):
    monkeypatch.setattr(command, "origin", lambda on: {"device": on})
    monkeypatch.setattr(command, "predicted", lambda case, on: {"kernel": entry(case)})
    file = tmp_path / "said.json"
    monkeypatch.setattr("sys.argv", ["others", "--predict", str(file), *arguments])
    assert command.main() == 0
    assert tuple(row["kernel"] for row in read(file).rows) == names


# --------------------------------------------------------------------------------------- the timing


@pytest.fixture
def host(monkeypatch):
    yield from fake_gpu.installed(monkeypatch)


def test_a_timing_checks_flushes_and_keeps_all(host):
    case = CASES["triad"]
    row = timing.timed(case, case.small)
    assert row["right"]
    assert row["source_sha256"] == case.source_sha256
    assert set(row["ns"]) == {1000}
    launches = [entry[0] for entry in host.log if entry[0] in ("flush", "launch")]
    timed = gpu.WARM_UP + len(row["ns"])
    assert launches == ["launch", *timed * ("flush", "launch")]
    compiled = next(options for what, _, options in host.log if what == "compile")
    assert compiled == {"launch_bounds": 256}


def test_a_kernel_that_is_wrong_says_so(host):
    wrong = replace(CASES["triad"], check=lambda *arguments: [(0.0, 1.0)])
    assert not timing.timed(wrong, wrong.small)["right"]


@pytest.mark.gpu
@pytest.mark.parametrize("name", CASES)
def test_right_on_this_gpu(name):
    assert timing.timed(CASES[name], CASES[name].small)["right"]


# ----------------------------------------------------------------------------------- what is stored


def row(name, **changed):
    own = {"kernel": name, "source_sha256": asked(name).source_sha256}
    return own | {"seconds": 1e-3, "times": {"dram": 5e-4}, "by": "sm"} | changed


def time(name, **changed):
    own = {"kernel": name, "source_sha256": asked(name).source_sha256, "right": True}
    return own | {"ns": [800_000, 900_000, 1_250_000]} | changed


def test_a_prediction_beside_a_time():
    (one,) = beside(Written({}, (row("scan"),)), Written({}, (time("scan"),)))
    assert one.measured == pytest.approx(9e-4)
    assert one.error == pytest.approx(1 / 9e-1 - 1)
    assert one.memory_error == pytest.approx(5 / 9 - 1)
    (alone,) = beside(Written({}, (row("scan"),)), None)
    assert alone.measured is None


@pytest.mark.parametrize(
    ("predicted", "timed", "why"),
    [
        ({"source_sha256": "0"}, {}, "has changed"),
        ({}, {"source_sha256": "0"}, "has changed"),
        ({}, {"right": False}, "wrong result"),
    ],
)
def test_a_table_of_other_sources_or_wrong_results_is_refused(predicted, timed, why):
    with pytest.raises(ValueError, match=f"scan .*{why}|scan gave a {why}"):
        beside(Written({}, (row("scan", **predicted),)), Written({}, (time("scan", **timed),)))


def test_a_table_of_made_times(monkeypatch):
    """Each kernel takes twice as long as predicted."""
    first = stored("h200", "others_predicted")
    rows = [time(said["kernel"], ns=[2e9 * said["seconds"]]) for said in first.rows]
    made = {"others_predicted": first, "others_timed": Written({"date": "2030-01-02T03:04"}, rows)}
    for module in (pages, written):
        monkeypatch.setattr(module, "stored", lambda on, name: made.get(name))
    text = pages.others("h200")
    assert "timed on 2030-01-02, 03:04 UTC" in text
    assert text.count("| −50.0% |") >= len(FIRST)
    for kind in CLASSES:
        count = sum(CASES[name].kind == kind for name in FIRST)
        title = f"| **{count} kernels {kind}** |"
        (means,) = (line for line in text.splitlines() if line.startswith(title))
        assert means.startswith(f"{title}  |  | **50.0%** |")
        assert means.endswith("| mean of absolute errors |")
    since = [said | {"seconds": 2 * said["seconds"]} for said in first.rows]
    made["others_predicted_since"] = Written(first.provenance, since)
    both = pages.others("h200")
    assert both.startswith(text)
    assert both.count("| +0.0% |") == len(FIRST)
    made["others_2_predicted"] = Written(first.provenance, [row(name) for name in SECOND])
    alone = pages.others("h200")
    assert alone.startswith(both)
    assert alone.count("not measured yet") == 1
    made["others_2_timed"] = Written({"date": "2030-01-03T03:04"}, [time(name) for name in SECOND])
    whole = pages.others("h200")
    assert whole.startswith(both)
    assert "| `sgemm_student:1024` | 0.9 ms | 1 ms | +11.1% |" in whole
    assert whole.count("| +11.1% |") == len(SECOND)


@pytest.mark.parametrize("on", DEVICES)
@pytest.mark.parametrize("which", SETS)
def test_what_is_stored_is_of_these_sources_and_predicted_first(which, on):
    predictions, timings = (stored(on, f"{FILES[which]}_{what}") for what in ("predicted", "timed"))
    if predictions is None:
        assert which != "first"
        assert timings is None
        return
    assert predictions.provenance["device"] == on
    rows = beside(predictions, timings)
    assert {entry(one.case) for one in rows} == set(SETS[which])
    if timings:
        dates = [x.provenance["date"] for x in (predictions, timings)]
        assert datetime.fromisoformat(dates[0]) < datetime.fromisoformat(dates[1])
        assert timings.provenance["device"] == on
        assert all(2e-5 < one.measured < 5e-2 for one in rows)


AGAIN = "python -m benchmarks.forecast.others --predict .../others_predicted_since.json, and pages"


@pytest.mark.ptxas
@pytest.mark.slow
@pytest.mark.parametrize("name", QUICK)
def test_what_was_predicted_is_what_the_code_says(name):
    written = latest("h200", "others_predicted")
    if reason := other_compilers(written):
        pytest.skip(reason)
    kept = next(row for row in written.rows if row["kernel"] == name)
    found = predicted(CASES[name], "h200")
    assert found["registers"] == kept["registers"]
    assert found["times"] == pytest.approx(kept["times"], rel=1e-4), AGAIN
