"""Counters beyond equality: where measured and simulated ones differ, and what explains loads."""

import pytest

from benchmarks.hardware.checks import counters, loads, realistic, wide_accesses
from benchmarks.hardware.probes.counted import CASES
from benchmarks.hardware.probes.wide import KERNELS
from benchmarks.hardware.store import recorded
from gemmlab.model import transactions

COUNTED = {
    case: one for result in recorded("h200", "counters").values()
    for case, one in result.measured.items()
}  # fmt: skip
LOADS = [x for result in recorded("h200", "loads").values() for x in result.measured["loads"]]


def test_the_collection():
    """Each case recorded once; few differ, each in what it says and with a reason."""
    assert set(COUNTED) == {case.name for case in CASES}
    assert len(CASES) >= 12
    assert {case.group for case in CASES if case.differs} == {"rungs"}
    differing = [why for case in CASES for why in case.differs.values()]
    assert {relation for relation, _ in differing} == {"less"}
    assert all(len(why) > 40 for _, why in differing)
    assert len(LOADS) >= 300


@pytest.mark.parametrize("case", [c for c in CASES if c.differs], ids=lambda c: c.name)
def test_merged_loads_of_the_tiled_rung(case):
    """Four neighbouring loads of As become one, whose lanes are all in one row or in two or four.

    Of each thread's two loads a step of p, As[y, p] and Bs[p, x], only the first is merged: a
    quarter of the requests, 16 bytes a lane, and half as many passes as the four had.
    """
    counted, measured = counters.simulated(case.name), COUNTED[case.name]["counters"]
    of_each = counted["shared_load_requests"] // 2
    assert measured["shared_load_requests"] == of_each // 4 + of_each
    assert measured["shared_load_wavefronts"] == of_each // 2 + of_each


def test_lines_alone_do_not_explain_the_loads():
    """One wavefront a line, the simpler rule, is wrong: rows of an odd number of elements."""
    load = next(x for x in LOADS if x["pattern"] == "stride 132")
    assert int(transactions.lines(*loads.lanes(load)[:2])) > 10 * loads.of_one_load(load)[0]


def test_there_are_records_of_every_wide_access():
    measured = [n for r in recorded("h200", "wide_accesses").values() for n in r.measured]
    assert {name.split(", ")[0] for name in measured} == set(KERNELS)
    assert len(measured) >= 200
    assert set(KERNELS) == {k for several in wide_accesses.GROUPS.values() for k in several}


def test_every_group_of_cases_belongs_to_one_piece():
    groups = [group for several in counters.GROUPS.values() for group in several]
    assert sorted(groups) == sorted({case.group for case in CASES})


def test_launches_are_told_apart_by_case():
    rows = [("one", {"a": 1}), ("_end_of_case_1", {"a": 0}), ("end_of_case", {"a": 0})]
    rows += [("two", {"a": 2}), ("two", {"a": 3}), ("end_of_case", {"a": 0})]
    assert realistic.by_case(rows) == [[{"a": 1}], [], [{"a": 2}, {"a": 3}]]
