"""The simulator's counters against Nsight Compute's, recorded on a GPU: equal, or said why not."""

import importlib.util
import json
import sys
from pathlib import Path

import numpy as np
import pytest

from gemmlab import simulate
from gemmlab.model import transactions

ROOT = Path(__file__).resolve().parent
HARDWARE = ROOT / "hardware"
COUNTERS = (
    "global_load_requests",
    "global_load_sectors",
    "global_store_requests",
    "global_store_sectors",
    "shared_load_requests",
    "shared_load_wavefronts",
    "shared_store_requests",
    "shared_store_wavefronts",
    "shared_bank_conflicts",
)


def _load(name, path):
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # where dataclasses look up annotations
    spec.loader.exec_module(module)
    return module


cases = _load("hardware_kernels", HARDWARE / "kernels.py")
patterns = _load("hardware_patterns", HARDWARE / "patterns.py")
profiler = _load("hardware_counters", ROOT.parent / "benchmarks" / "hardware_counters.py")


def _records(name):
    text = (ROOT / "data" / name).read_text("utf-8")
    return [json.loads(line) for line in text.splitlines()]


RECORDED = {record["case"]: record for record in _records("h200_counters.jsonl")}
LOADS = _records("h200_loads.jsonl")


def _hardware(name):
    counters = dict(RECORDED[name]["counters"])
    counters["shared_bank_conflicts"] = (
        counters["shared_load_bank_conflicts"] + counters["shared_store_bank_conflicts"]
    )
    return counters


@pytest.mark.parametrize("case", cases.CASES, ids=lambda c: c.name)
def test_counters_equal_the_hardware(case):
    counted = simulate(case.kernel, case.grid, case.block, *case.arguments()).counters
    measured = _hardware(case.name)
    for name in COUNTERS:
        if name in case.differs:
            relation, _ = case.differs[name]
            assert relation == "less"
            assert 0 < measured[name] < counted[name], name
        else:
            assert measured[name] == counted[name], name


@pytest.mark.parametrize("case", cases.CASES, ids=lambda c: c.name)
def test_what_was_profiled_is_what_stands_here(case):
    record = RECORDED[case.name]
    assert record["source_sha256"] == profiler.source_hash(case.kernel)
    assert all(record[name] for name in ("device", "driver", "ncu", "numba_cuda", "date"))


def test_the_collection():
    """Each case recorded once; few differ, each in what it says and with a reason."""
    assert set(RECORDED) == {case.name for case in cases.CASES}
    assert len(cases.CASES) >= 12
    assert {case.group for case in cases.CASES if case.differs} == {"rungs"}
    assert all(len(why) > 40 for case in cases.CASES for _, why in case.differs.values())


@pytest.mark.parametrize("case", [c for c in cases.CASES if c.differs], ids=lambda c: c.name)
def test_merged_loads_of_the_tiled_rung(case):
    """Four neighbouring loads of As become one, whose lanes are all in one row or in two or four.

    Of each thread's two loads a step of p, As[y, p] and Bs[p, x], only the first is merged: a
    quarter of the requests, 16 bytes a lane, and half as many passes as the four had.
    """
    counted = simulate(case.kernel, case.grid, case.block, *case.arguments()).counters
    measured = _hardware(case.name)
    of_each = counted["shared_load_requests"] // 2
    assert measured["shared_load_requests"] == of_each // 4 + of_each
    assert measured["shared_load_wavefronts"] == of_each // 2 + of_each


def _lanes(record):
    elements, width = np.array(record["elements"]), record["width"]
    return np.where(elements >= 0, elements * width, 0), elements >= 0, width


@pytest.mark.parametrize("record", LOADS, ids=lambda r: r["pattern"])
def test_global_loads_in_l1(record):
    """Wavefronts as the rule says, but for the first round, which misses; cycles no fewer."""
    times = patterns.ROUNDS * patterns.WARPS
    measured = record["counters"]["l1_wavefronts"] / times
    assert 0 <= measured - int(transactions.l1_wavefronts(*_lanes(record))) < 0.05
    assert record["counters"]["cycles"] / times >= int(transactions.l1_cycles(*_lanes(record)))


def test_patterns_are_those_that_were_profiled():
    known = patterns.patterns()
    assert [p.name for p in known] == [record["pattern"] for record in LOADS]
    for pattern, record in zip(known, LOADS, strict=True):
        assert pattern.elements.tolist() == record["elements"]


def test_lines_alone_do_not_explain_the_loads():
    """One wavefront a line, the simpler rule, is wrong: rows of an odd number of elements."""
    record = next(r for r in LOADS if r["pattern"] == "stride 132")
    measured = record["counters"]["l1_wavefronts"] / (patterns.ROUNDS * patterns.WARPS)
    assert int(transactions.lines(*_lanes(record)[:2])) > 10 * measured
