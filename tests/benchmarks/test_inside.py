"""Marks in kernels: where they are put, what is made of clocks, and that the record is whole."""

import ast
import inspect
from dataclasses import replace

import numpy as np
import pytest

from benchmarks.inside import page
from benchmarks.inside.cases import CASES
from benchmarks.inside.marks import FIRST, SM, TIME, Places, _behind, marked
from benchmarks.inside.measured import by_sm, in_time
from benchmarks.inside.phases import alike, padded, phases, rows_of_phases
from benchmarks.inside.written import PREDICTED, read
from gemmlab import kernels, plots
from gemmlab.measure.inside import inside
from gemmlab.plots.inside import STORE
from tests.support.paths import ROOT

RECORD = inside()
# Two blocks after each other, of two warps with three tiles each.
CLOCKS = padded(
    [[[2, 50, 70, 90, 100, 140], [0, 54, 74, 94, 104, 150]],
     [[180, 200, 220, 240, 250, 290], [183, 204, 224, 244, 254, 300]]]
)  # fmt: skip


@pytest.mark.parametrize("case", CASES.values(), ids=lambda case: case.name)
def test_each_statement_of_a_case_is_in_its_kernel(case):
    tree = ast.parse(inspect.getsource(case.kernel.build))
    (function,) = (
        n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef) and n.name == case.name
    )
    found = [text for text, _, _ in _behind(function, case.places)]
    assert set(found) == set(case.places.statements)
    assert found.count(case.places.stored) == 1


@pytest.mark.ptxas
def test_a_statement_that_a_kernel_has_not_is_named():
    places = Places("cuda.syncthreads()", "no_such(statement)", "update()")
    with pytest.raises(
        ValueError, match=r"pipelined has no .*'no_such\(statement\)', 'update\(\)'"
    ):
        marked(kernels.pipelined, places, 9).function(CASES["pipelined"].problem, None)


def test_phases_of_blocks_that_follow_each_other():
    found = phases(CLOCKS, 1, 1)
    assert found[0, "start"] == 51
    assert found[0, "turn"] == 20
    assert found[0, "last"] == 10
    assert found[0, "store"] == 43
    assert found[0, "whole"] == 144
    assert found[1, "gap"] == 30
    assert (0, "gap") not in found
    assert phases(CLOCKS, 1, 2).keys() == {key for key in found if key[0] == 0}


def test_a_row_has_what_was_measured_and_simulated():
    (row,) = (
        row
        for row in rows_of_phases("x", [CLOCKS, CLOCKS + 1], CLOCKS, 1, 1)
        if (row["round"], row["phase"]) == (1, "gap")
    )
    assert row["measured"] == [30, 30, 30]
    assert row["simulated"] == 30
    assert alike(CLOCKS, CLOCKS)
    assert not alike(CLOCKS[:1], CLOCKS)


def test_clocks_of_sms_are_told_apart_and_begin_at_their_first_mark():
    rows = np.zeros((4, 2, FIRST + CLOCKS.shape[2]), np.int64)
    for sm, start in ((7, 10**6), (9, 2 * 10**6)):
        mine = slice(0, 2) if sm == 7 else slice(2, 4)
        rows[mine, :, SM], rows[mine, :, FIRST:] = sm, 1000 * CLOCKS + start
        rows[mine, :, TIME] = 500 * CLOCKS.max(axis=2) + 77 * sm
    first, second = by_sm(rows[::-1])
    assert np.array_equal(first, 1000 * CLOCKS)
    assert np.array_equal(second, 1000 * CLOCKS)
    told = in_time(rows)
    assert told["clock"] == pytest.approx(2e9)
    assert told["first_blocks_seconds"] == pytest.approx(154e-9)
    assert told["inside_seconds"] == pytest.approx(150_154e-9)


def test_what_was_measured_is_what_was_written_before():
    assert RECORD.provenance["predicted"] < RECORD.provenance["date"]
    rows = {row["kernel"]: row for row in read(PREDICTED)}
    assert [one.kernel for one in RECORD.launches] == list(rows) == list(CASES)
    for one in RECORD.launches:
        row, case = rows[one.kernel], CASES[one.kernel]
        assert (one.code, one.problem, one.resident) == (
            row["marked_code"], case.problem, row["resident"],
        )  # fmt: skip
        clocks = [list(warp) for block in row["clocks"] for warp in block]
        assert [list(w.simulated) for w in RECORD.of(one.kernel)] == clocks
        assert max(one.bare_error, one.marked_error) <= case.kernel.tolerance(case.problem)
        assert 1 < one.marked_seconds / one.bare_seconds < 1.05


def test_an_unknown_kernel_is_named():
    with pytest.raises(KeyError, match="no marks of 'naive'; there are those of pipelined"):
        RECORD.launch("naive")


def test_the_picture_has_a_bar_for_all_that_each_warp_does():
    launch = RECORD.launch("warp_specialised")
    figure, (ax,) = plots.figure(8, 2)
    artists = plots.inside(ax, RECORD.of(launch.kernel), rounds=launch.rounds)
    consumers = 8  # the other warps do not store
    assert len(artists.bars[STORE].get_paths()) == 2 * consumers * launch.rounds
    assert "63,328 cycles; 48,813 were simulated, −22.9%" in plots.alt(figure)


def test_tables_say_what_the_record_does():
    seen = page.measured(RECORD, launch := RECORD.launch("wgmma_pipelined"))
    assert seen[0, "products"] == pytest.approx(15 * seen[0, "turn"] + seen[0, "last"])
    assert page.turns(RECORD, replace(launch, rounds=1)) == 15
    assert "| `wgmma_pipelined` | −36% |" in page.errors()
    text = (ROOT / "book" / "predictions.md").read_text("utf-8")
    for name, made in page.TABLES.items():
        assert f"<!-- table {name} -->\n\n{made()}\n\n<!-- end -->" in text
