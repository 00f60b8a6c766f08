"""Errors by family: by hand on made cases, and the page of them is what is stored."""

import re
from dataclasses import replace
from types import SimpleNamespace

import pytest

from benchmarks import held_out_families
from benchmarks.forecast import every_set, ladder, pages, sawtooth
from benchmarks.forecast.errors import (
    Compared,
    by_family,
    circumstances,
    compared,
    mape,
    picks,
    worst,
)
from benchmarks.forecast.written import Written, latest, other_compilers, stored
from benchmarks.held_out import SETS, problems
from benchmarks.page_tables import filled
from gemmlab import Gemm, kernels, predict
from gemmlab.compiled.forecast.rungs import predict_rung
from gemmlab.kernels.hashing import source_hash

LARGE, SMALL = Gemm(2000, 1000, 3000), Gemm(200, 100, 300)


def case(kernel="tiled", problem=LARGE, tiling="a", measured=1.0, predicted=1.1, bound=0.5):
    return Compared(kernel, problem, tiling, measured, predicted, bound, "sm")


def test_an_error_is_a_part_of_what_was_measured():
    assert case().error == pytest.approx(0.1)
    assert case().bound_error == pytest.approx(-0.5)
    assert mape([0.1, -0.3]) == pytest.approx(0.2)


def test_families_are_told_apart_by_kernel_size_and_format():
    half = Gemm(2000, 1000, 3000, dtype="float16")
    found = by_family(
        [
            case("cublas"),
            case("cublas", half),
            case("naive", SMALL),
            case("tiled"),
            case("warp_tiled"),
        ]
    )
    assert [(f, large, len(c)) for (f, large), c in found.items()] == [
        ("naive, coalesced, tiled", True, 1),
        ("naive, coalesced, tiled", False, 1),
        ("register_tiled, vectorised, warp_tiled", True, 1),
        ("cuBLAS, float32", True, 1),
        ("cuBLAS, float16", True, 1),
    ]


def test_the_worst_come_first():
    cases = [case(predicted=p) for p in (1.1, 0.5, 1.3)]
    assert [c.predicted for c in worst(cases, 2)] == [0.5, 1.3]


def test_a_pick_is_right_or_costs_time():
    """Of the first group the slower is picked, of the second the faster; a third has but one."""
    cases = [
        case(tiling="a", measured=1.0, predicted=1.2, bound=0.1),
        case(tiling="b", measured=1.1, predicted=1.0, bound=0.2),
        case(problem=SMALL, tiling="a", measured=1.0, predicted=0.9),
        case(problem=SMALL, tiling="b", measured=2.0, predicted=1.0),
        case("naive"),
    ]
    first, second = picks(cases)
    assert (first.right, second.right) == (False, True)
    assert first.loss == pytest.approx(0.1)
    assert picks(cases, "bound")[0].right


@pytest.mark.parametrize(
    ("problem", "blocks", "text"),
    [
        (LARGE, 1000, "nothing unusual"),
        (LARGE, 100, "100 blocks for 132 SMs"),
        (Gemm(4096, 64, 4098), None, "rows that begin anywhere, n = 64"),
        (Gemm(200, 100, 302), 999, "rows that begin anywhere"),
    ],
)
def test_what_is_unusual_is_said(problem, blocks, text):
    assert circumstances(replace(case(problem=problem), blocks=blocks), 132) == text


def measurement(kernel, seconds, source):
    return SimpleNamespace(
        kernel=kernel.name, problem=LARGE, tiling=kernel.default, seconds=seconds,
        provenance={"source_sha256": source},
    )  # fmt: skip


def test_predictions_and_measurements_find_each_other_or_are_refused():
    kernel = kernels.tiled
    own = {"kernel": "tiled", "problem": str(LARGE), "tiling": str(kernel.default), "by": "sm"}
    row = own | {"seconds": 2.0, "bound": 1.0, "source_sha256": source_hash(kernel)}
    alone = row | {"tiling": "8×8×8"}
    found = compared(Written({}, (row, alone)), [measurement(kernel, 4.0, source_hash(kernel))])
    assert [(c.error, c.bound_error) for c in found] == [(-0.5, -0.75)]
    with pytest.raises(ValueError, match="tiled has changed since"):
        compared(Written({}, (row,)), [measurement(kernel, 4.0, "0")])
    old = row | {"source_sha256": "0"}
    with pytest.raises(ValueError, match="tiled has changed since"):
        compared(Written({}, (old,)), [measurement(kernel, 4.0, source_hash(kernel))])


def made_times(which, on):
    """A measurement of each prediction, a quarter longer; of the first set alone."""
    rows = {(row["kernel"], row["problem"], row["tiling"]): row for row in held_out(on).rows}
    return [
        SimpleNamespace(
            kernel=one.kernel, problem=one.problem, tiling=one.tiling,
            seconds=1.25 * rows[one.key]["seconds"],
            provenance={
                "source_sha256": rows[one.key].get("source_sha256"),
                "date": "2030-01-02T03:04:05+00:00",
            },
        )
        for one in ladder.held_out_cases(on)
        if which == "held_out"
    ]  # fmt: skip


def test_tables_of_made_times(monkeypatch):
    """Each is a quarter longer than predicted, so that each error is a fifth."""
    monkeypatch.setattr(pages, "measurements", made_times)
    monkeypatch.setattr(pages, "first_and_since", lambda on, name: [stored(on, name)])
    text = pages.families("held_out", "h200")
    rows = re.findall(
        r"^\| (.*) \| n\xa0[≥<]\xa01000 \| (\d+) \| \*\*20.0%\*\* \|.*−20.0% \|$", text, re.M
    )
    assert sum(int(count) for _, count in rows) == len(held_out("h200").rows)
    assert len(rows) == text.count("1000 |") == 12
    assert "measured from 2030-01-02, 03:04 UTC" in text
    found = pages.worst_cases("h200").splitlines()
    rows = [row for row in found if row.startswith("|") and "−20.0%" in row]
    assert len(rows) == 12 * pages.WORST  # of each row above
    picked = pages.picked("h200").splitlines()
    groups = 5 * len(problems(*SETS["held_out"]))  # rungs with several tilings
    assert f"| the compiled code | {groups} | {groups} (100%) | +0.0% | +0.0% |" in picked


# ----------------------------------------------------------------------------------- what is stored


def held_out(on, which="held_out"):
    return stored(on, f"{which}_predicted")


HELD_OUT = [(on, which) for on in pages.DEVICES for which in SETS if held_out(on, which)]


def test_the_first_set_is_predicted_on_all_devices_and_each_on_one():
    assert {on for on, which in HELD_OUT if which == "held_out"} == set(pages.DEVICES)
    assert {which for _, which in HELD_OUT} == set(SETS)


@pytest.mark.parametrize(("on", "which"), HELD_OUT)
def test_the_whole_set_is_predicted_once(on, which):
    rows = held_out(on, which).rows
    keys = [(row["kernel"], row["problem"], row["tiling"]) for row in rows]
    assert sorted(keys) == sorted(case.key for case in ladder.held_out_cases(on, which))
    assert held_out(on, which).provenance["device"] == on


@pytest.mark.parametrize(("on", "which"), HELD_OUT)
def test_it_was_predicted_before_it_was_measured(on, which):
    measured = pages.measurements(which, on)
    date = held_out(on, which).provenance["date"]
    assert all(date < m.provenance["date"] for m in measured)
    if measured:
        assert len(pages.cases(which, on)) == len(held_out(on, which).rows)


@pytest.mark.measuring
@pytest.mark.parametrize("which", held_out_families.SETS)
def test_the_other_families_are_predicted_once_and_before_they_are_measured(which):
    found = stored("h200", f"{which}_predicted")
    keys = [(row["kernel"], row["problem"], row["tiling"]) for row in found.rows]
    assert sorted(keys) == sorted(case.key for case in ladder.families_cases("h200", which))
    measured = pages.measurements(which, "h200")
    assert all(found.provenance["date"] < m.provenance["date"] for m in measured)


LAST = list(SETS)[-1]


def some(on):
    """A small product of each kernel, in its own tiling, of the last set."""
    small = min((c.problem for c in ladder.held_out_cases(on, LAST)), key=lambda p: p.flops)
    return [
        case
        for case in ladder.held_out_cases(on, LAST)
        if (case.problem.m, case.problem.k) == (small.m, small.k)
        and case.tiling == kernels.get(case.kernel).default
    ]


AGAIN = f"python -m benchmarks.forecast.ladder {LAST} .../{LAST}_predicted_since.json, and pages"


@pytest.mark.ptxas
@pytest.mark.slow
@pytest.mark.parametrize("asked", some("h200"), ids=lambda case: " ".join(case.key))
def test_what_was_predicted_is_what_the_code_says(asked):
    written = latest("h200", f"{LAST}_predicted")
    if reason := other_compilers(written):
        pytest.skip(reason)
    keys = {(row["kernel"], row["problem"], row["tiling"]): row for row in written.rows}
    kept, found = keys[asked.key], ladder.row(asked, "h200")
    assert found["seconds"] == pytest.approx(kept["seconds"], rel=1e-4), AGAIN
    assert found["by"] == kept["by"]


@pytest.mark.parametrize("on", pages.DEVICES)
def test_bounds_are_those_of_predict(on):
    rows = {(row["kernel"], row["problem"], row["tiling"]): row for row in held_out(on).rows}
    for asked in ladder.held_out_cases(on)[::5]:
        kernel = kernels.get(asked.kernel)
        own = {} if kernel.library else {"kernel": kernel, "tiling": asked.tiling}
        expected = predict(asked.problem, on, **own).seconds
        assert rows[asked.key]["bound"] == pytest.approx(expected, rel=1e-5)


@pytest.mark.measuring
def test_the_page_shows_what_is_stored():
    text = pages.PAGE.read_text("utf-8")
    assert filled(text, pages.TABLES) == text, "run: python -m benchmarks.forecast.pages"
    assert text.count("<!-- table ") == len(pages.TABLES)


@pytest.mark.measuring
def test_each_launch_that_later_code_misses_more_has_its_reason_and_no_other_one():
    worse = [(one, launch) for one in every_set.sets() for launch in one.launches if launch.worse]
    assert all(every_set.why(one, launch) for one, launch in worse)
    names = [(one.name, one.on, launch.name) for one, launch in worse]
    for name, on, begins in every_set.REASONS:
        assert any((name, on) == of[:2] and of[2].startswith(begins) for of in names), begins


@pytest.mark.parametrize(
    ("first", "since", "worse"),
    [(1.1, 0.75, True), (0.9, 1.15, False), (1.3, 1.1, False), (1.0, None, False)],
)
def test_a_launch_is_worse_if_it_is_further_off_by_a_tenth(first, since, worse):
    assert every_set.Launch(("a",), 1.0, first, since).worse is worse


def one_set(monkeypatch, keys, since=()):
    """A set of files: a launch for each pair of a key and two numbers, predicted and measured."""
    made = {
        "x_predicted": [{"kernel": k, "seconds": said, "by": "sm"} for k, said, _ in keys],
        "x_timed": [{"kernel": k, "ns": [1e9 * seen] * 3} for k, _, seen in keys],
        "x_predicted_since": [{"kernel": k, "seconds": said, "by": "l2"} for k, said in since],
    }
    monkeypatch.setattr(
        every_set, "stored", lambda on, name: Written({}, made[name]) if made[name] else None
    )
    return every_set.of_files("x", "h200")


def test_rows_of_a_set_find_each_other(monkeypatch):
    found = one_set(monkeypatch, [("a", 1.0, 2.0), ("b", 3.0, 2.0)], [("b", 2.5)])
    assert [one.errors for one in found.launches] == [(-0.5, None), (0.5, 0.25)]
    assert (found.off(False), found.off(True)) == ([-0.5, 0.5], [0.25])
    assert [(one.by, one.last) for one in found.launches] == [("sm", -0.5), ("l2", 0.25)]
    with pytest.raises(ValueError, match="x on h200: two times for one of its launches"):
        one_set(monkeypatch, [("a", 1.0, 2.0), ("a", 3.0, 2.0)])
    with pytest.raises(ValueError, match="x on h200: predicted since, and not before"):
        one_set(monkeypatch, [("a", 1.0, 2.0)], [("b", 2.5)])


def test_what_is_timed_is_predicted_again(monkeypatch):
    """Of the first set a single launch is timed; with another source it is refused."""
    (asked,) = [c for c in ladder.held_out_cases("h200") if c.kernel == "naive"][:1]
    timed = SimpleNamespace(kernel=asked.kernel, problem=asked.problem, tiling=asked.tiling)
    monkeypatch.setattr(ladder, "measurements", lambda which, on: [timed])
    assert ladder.timed_cases("held_out", "h200") == [asked]
    monkeypatch.setattr(ladder, "source_hash", lambda kernel: "another")
    with pytest.raises(ValueError, match="naive has changed since held_out was predicted for h200"):
        ladder.timed_cases("held_out", "h200")
    with pytest.raises(ValueError, match="looked_at was not predicted for h100_sxm"):
        ladder.timed_cases("looked_at", "h100_sxm")


# ----------------------------------------------------------------------------------------- sawtooth


SERIES = [(on, key) for on in pages.DEVICES for key in sawtooth.series(on)]
# Of m = 33792: n = 136 waits for memory in FP16; in TF32 the tiles for n > 256 have other waves.
HIDDEN = {(33_792, "float16"): {136}, (33_792, "tf32"): {392, 520}}
OWN = [(on, key) for on, key in SERIES if not sawtooth.is_library(key)]


def test_series_of_the_library_and_of_our_own_are_recorded():
    assert 0 < len(OWN) < len(SERIES)


@pytest.mark.parametrize(("on", "key"), SERIES, ids=str)
def test_the_time_jumps_where_waves_begin(on, key):
    of = sawtooth.series(on)[key]
    sizes = [m.problem.n for m in of]
    found = sawtooth.jumps(sizes, [m.seconds for m in of])
    if sawtooth.is_library(key):  # it changes its tiles as well, where nobody can tell
        edges = set(sawtooth.full_waves(key, of, on, sawtooth.GUIDES))
        assert edges - set(found) == HIDDEN.get((key.m, key.dtype), set())
    else:
        assert found == sawtooth.jumps(sizes, sawtooth.predicted_seconds(key, of, on))
        assert len(found) >= 3


@pytest.mark.ptxas
@pytest.mark.slow
@pytest.mark.measuring
@pytest.mark.parametrize(("on", "key"), OWN, ids=str)
def test_the_compiled_code_jumps_there_too(on, key):
    of = sawtooth.series(on)[key]
    sizes = [m.problem.n for m in of]
    (first, *_) = sawtooth.jumps(sizes, [m.seconds for m in of])
    around = of[sizes.index(first) - 1 : sizes.index(first) + 1]
    kernel = kernels.get(key.kernel)
    seconds = [predict_rung(m.problem, on, kernel, m.tiling).seconds for m in around]
    assert sawtooth.jumps([m.problem.n for m in around], seconds) == [first]
